//! Figures that rules need and a record does not have. Rules without their figures are silent; this module
//! reports them.

use super::view::subject;
use crate::experiment::figures::resource_name;
use crate::experiment::machines::is_of_kind;
use dyno_record::experiment::{Experiment, Figures, Finding};
use dyno_record::model::ResourceKind;
use dyno_record::statement;
use dyno_record::statement::Statement;

/// A figure of a run that rules need.
#[derive(Clone, Copy)]
pub(super) enum Asked {
    /// Utilization of a resource.
    Use(ResourceKind),
    /// CPU time that the hypervisor took.
    StolenTime,
    /// Whether there was a steady state.
    SteadyState,
}

/// Figures that the rules of single runs and of sweeps need.
pub(super) const OF_LEVELS: [Asked; 4] = [
    Asked::Use(ResourceKind::ServerCpu),
    Asked::Use(ResourceKind::Disk),
    Asked::Use(ResourceKind::HostCpu),
    Asked::SteadyState,
];

impl Asked {
    fn is_known(self, run: &Figures) -> bool {
        match self {
            Asked::Use(kind) => {
                // For a remote machine, the whole machine stands for its servers.
                let whole = [ResourceKind::ServerCpu, ResourceKind::HostCpu].contains(&kind);
                run.demands.iter().any(|demand| {
                    demand.name == resource_name(kind)
                        || whole && is_of_kind(&demand.name, ResourceKind::ServerHostCpu)
                })
            }
            Asked::StolenTime => run.stolen_ratio.is_some(),
            Asked::SteadyState => run.steady.is_some(),
        }
    }

    fn name(self) -> Statement {
        match self {
            Asked::Use(kind) => statement!("use-of", resource = subject(resource_name(kind))),
            Asked::StolenTime => statement!("stolen-time"),
            Asked::SteadyState => statement!("steady-state"),
        }
    }
}

/// The measured runs of an experiment.
pub(super) fn runs(experiment: &Experiment) -> Vec<&Figures> {
    experiment.points.iter().filter_map(|point| point.figures.as_ref()).collect()
}

/// The list of unwatched figures. `is_limit_asked` says that the server's limit remains open without them.
pub(super) fn not_watched(
    runs: &[&Figures],
    asked: &[Asked],
    is_limit_asked: bool,
) -> Option<Finding> {
    let without = |figure: &Asked| runs.iter().filter(|run| !figure.is_known(run)).count();
    let missing = || asked.iter().filter(|figure| without(figure) > 0);
    let figures: Vec<Statement> = missing().map(|figure| figure.name()).collect();
    let evidence = missing().map(|figure| {
        statement!(
            "runs-without-figure",
            figure = figure.name(),
            runs = without(figure),
            all = runs.len()
        )
    });
    let evidence: Vec<Statement> = evidence.collect();
    let number = figures.len();
    (number > 0).then(|| {
        if is_limit_asked {
            let said = statement!("server-not-watched", figures = figures, number = number);
            Finding::warning(said, evidence)
        } else {
            Finding::found(statement!("not-watched", figures = figures), evidence)
        }
    })
}
