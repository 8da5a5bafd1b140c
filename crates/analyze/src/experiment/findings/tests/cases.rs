//! Every finding of runs and experiments with its measurement, and without it.

use super::*;
use crate::experiment::{outages, run};
use dyno_testkit::findings::{Reported, case};

mod plans;
mod searches;
mod suites;
mod sweeps;
mod tunings;
mod tunings_across;

type Case = dyno_testkit::findings::Case<Experiment>;

#[test]
fn every_finding_is_measured_and_silent_where_it_is_not() {
    let mut reported = Reported::default();
    run::tests::cases::check(&mut reported);
    outages::tests::check(&mut reported);
    let all = [
        sweeps::cases(),
        searches::cases(),
        plans::cases(),
        suites::cases(),
        tunings::cases(),
        tunings_across::cases(),
    ];
    for cases in all {
        reported.check(findings, cases);
    }
    reported.finish("crates/analyze/src/experiment");
}

fn with(mut experiment: Experiment, change: impl FnOnce(&mut Experiment)) -> Experiment {
    change(&mut experiment);
    experiment
}

/// The figures of all runs.
fn runs(experiment: &mut Experiment) -> impl Iterator<Item = &mut Figures> {
    experiment.points.iter_mut().filter_map(|point| point.figures.as_mut())
}

/// Removes a resource from all runs.
fn unwatched(experiment: &mut Experiment, kind: ResourceKind) {
    let name = resource_name(kind);
    for run in runs(experiment) {
        run.resources.retain(|resource| resource.name != name);
        run.demands.retain(|demand| demand.name != name);
    }
}

fn unsteady(experiment: &mut Experiment, steady: Option<bool>) {
    runs(experiment).for_each(|run| run.steady = steady);
}

fn caveat(experiment: &mut Experiment, kind: CaveatKind, statement: Statement) {
    experiment.caveats.push(Caveat::of_run(kind, statement));
}
