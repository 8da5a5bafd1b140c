//! Number and time of an experiment's runs, estimated from its plans before the first run; likewise of a single run.

use super::deployment_key::DeploymentKey;
use super::points::WhichPlan;
use super::tune::planned_run_s;
use crate::deployment::storage::planned_bytes;
use crate::run::options::{Extent, RunOptions};
use dyno_analyze::experiment::xmax::CONFIRMATION_RATIOS;
use dyno_analyze::search::clients::{ClientsSearch, ClientsSettings, ClientsStep};
use dyno_analyze::search::objective::{ObjectiveSearch, ObjectiveSettings, ObjectiveStep};
use dyno_plan::model::FreshData;
use dyno_plan::task::Task;
use dyno_record::experiment::{Experiment, Keys, Verb};
use dyno_record::quantity::Quantity;
use std::collections::BTreeMap;
use std::fmt::{self, Display};

/// Typical time to stop the servers of a run and to start the next ones: `mongod` writes a checkpoint when it stops,
/// and answers a few seconds after its start.
const RESTART_S: f64 = 5.0;

/// Number and time of an experiment's runs. Loading documents and the first start of the servers are not included,
/// nor are runs that are repeated because the hypervisor took CPU time.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Kind of the experiment: a comparison counts pairs, and a search for an objective begins with a closed loop.
    pub verb: Verb,
    pub least_runs: usize,
    pub most_runs: usize,
    /// Shortest and longest time in seconds; `None` if a run ends after a number of operations.
    pub time_s: Option<(f64, f64)>,
}

impl Estimate {
    /// Estimates an experiment from its options, points and plans.
    pub(crate) fn of(document: &Experiment, tasks: &BTreeMap<WhichPlan, Task>) -> Estimate {
        let options = &document.options;
        let compares_servers = compares_servers(document, tasks);
        let run_s = |task: &Task| {
            let restarts = compares_servers || task.plan.data.fresh == FreshData::Server;
            let start_s = if restarts && task.remote.is_none() { RESTART_S } else { 0.0 };
            task.plan.phases.duration.map(|_| planned_run_s(task) + start_s)
        };
        let of_plans: Option<f64> = tasks.values().map(run_s).sum();
        let mean_s = of_plans.map(|sum_s| sum_s / tasks.len().max(1) as f64);
        let of_runs = |least_runs: usize, most_runs: usize| {
            mean_s.map(|run_s| (least_runs as f64 * run_s, most_runs as f64 * run_s))
        };
        // The last runs begin before the limit and end after it.
        let limited =
            |runs: (usize, usize), limit_s: Option<f64>, (first, last): (usize, usize)| {
                let (least_s, most_s) = of_runs(runs.0, runs.1)?;
                let run_s = mean_s?;
                let end_s = |limit_s: f64| limit_s.max(first as f64 * run_s) + last as f64 * run_s;
                let end_s = limit_s.map_or(f64::INFINITY, end_s);
                Some((least_s.min(end_s), most_s.min(end_s)))
            };
        let ((least_runs, most_runs), time_s) = match document.verb {
            Verb::Sweep | Verb::Suite => {
                let of_point = |settings: &Keys, which: &WhichPlan| {
                    run_s(&tasks.get(which)?.with_keys(settings).ok()?)
                };
                let points = document.points.iter();
                let sum_s: Option<f64> =
                    points.map(|point| of_point(&point.settings, &WhichPlan::of(point))).sum();
                let runs = document.points.len();
                ((runs, runs), sum_s.map(|sum_s| (sum_s, sum_s)))
            }
            Verb::Xmax => {
                let clients = options.max_clients.unwrap_or(u32::MAX);
                let runs = runs_of_xmax(clients, options.repeat.unwrap_or_default());
                (runs, of_runs(runs.0, runs.1))
            }
            Verb::Slo => {
                let own = options.slo.as_ref();
                let runs = own.map_or((1, 1), |own| runs_of_slo(own.resolution, own.max_runs));
                // The closed loop and one more run are always made.
                (runs, limited(runs, own.and_then(|own| own.time_limit_s), (1, 1)))
            }
            Verb::Ab => {
                let own = options.ab.as_ref();
                let runs = own
                    .map_or((2, 2), |own| (2 * own.min_pairs as usize, 2 * own.max_pairs as usize));
                (runs, limited(runs, own.and_then(|own| own.time_limit_s), (runs.0, 2)))
            }
            Verb::Tune => {
                let budget_s = options.tune.as_ref().map_or(0.0, |own| own.budget_s);
                let runs = mean_s.map_or(1, |run_s| (budget_s / run_s).ceil() as usize);
                ((1, runs), Some((budget_s, budget_s)))
            }
        };
        Estimate { verb: document.verb, least_runs, most_runs, time_s }
    }
}

/// Whether each run starts its servers, because the plans have different ones.
fn compares_servers(document: &Experiment, tasks: &BTreeMap<WhichPlan, Task>) -> bool {
    matches!(document.verb, Verb::Ab | Verb::Suite) && DeploymentKey::differ(tasks.values())
}

/// Time and documents of a run, such as `takes about 70 seconds, and loads 9 documents (8.79 KiB) if they are missing`.
pub fn of_run(task: &Task, options: &RunOptions<'_>) -> String {
    let plan = &task.plan;
    let time = match plan.phases.duration {
        _ if options.extent == Extent::Load => None,
        Some(_) => Some(in_words(planned_run_s(task), planned_run_s(task))),
        None => Some("as long as its operations take".to_owned()),
    };
    let loads = (!options.no_load).then(|| {
        let first = plan.data.records.saturating_sub(plan.data.insert_start);
        let documents = match plan.is_own() {
            true => plan.data.planned_documents(),
            false => plan.data.insert_count.unwrap_or(first),
        };
        let bytes = planned_bytes(&plan.data, documents);
        let bytes = bytes.map_or(String::new(), |bytes| format!(" ({})", Quantity::bytes(bytes)));
        let is_of_each = plan.server.topology().is_ok_and(|topology| topology.clients() > 1);
        let each = if is_of_each { " on each server" } else { "" };
        let documents = Quantity::counted(documents, "document");
        format!("loads {documents}{bytes}{each} if they are missing")
    });
    match (time, loads) {
        (Some(time), Some(loads)) => format!("takes {time}, and {loads}"),
        (Some(time), None) => format!("takes {time}"),
        (None, loads) => loads.unwrap_or_default(),
    }
}

/// Fewest and most runs of a search for the highest rate.
fn runs_of_xmax(max_clients: u32, repeats: u32) -> (usize, usize) {
    let settings = ClientsSettings::for_search(1, max_clients, repeats);
    let mut search = ClientsSearch::new(settings);
    let mut least = 0;
    // It ends soonest if more clients are slower.
    while let ClientsStep::Measure { clients } = search.step() {
        search.record(1.0 / f64::from(clients));
        least += 1;
    }
    (least + 1, settings.max_measurements as usize + CONFIRMATION_RATIOS.len())
}

/// Fewest and most runs of a search for an objective, with the closed loop before it.
fn runs_of_slo(resolution_ratio: f64, max_runs: u32) -> (usize, usize) {
    const START_PER_S: f64 = 1000.0;
    let mut search = ObjectiveSearch::new(ObjectiveSettings {
        resolution_ratio,
        max_measurements: max_runs,
        ..ObjectiveSettings::starting_at(START_PER_S)
    });
    let mut runs = 1;
    // It ends soonest if the limit is sharp and close to the first rate.
    while let ObjectiveStep::Measure { rate_per_s } = search.step() {
        search.record(rate_per_s <= START_PER_S);
        runs += 1;
    }
    (runs, max_runs as usize + 1)
}

impl Display for Estimate {
    /// Such as `up to 20 pairs, 4 to 24 minutes plus loading; stops early when sure`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (noun, most, after) = match self.verb {
            Verb::Ab => ("pair", self.most_runs / 2, ""),
            // The limit of the runs does not include it.
            Verb::Slo => ("run", self.most_runs.saturating_sub(1), " after the closed loop"),
            _ => ("run", self.most_runs, ""),
        };
        let may_stop = self.least_runs < self.most_runs;
        let plural = if most == 1 { "" } else { "s" };
        let up_to = if may_stop { "up to " } else { "" };
        write!(f, "{up_to}{most} {noun}{plural}{after}")?;
        match self.time_s {
            Some((least_s, most_s)) => write!(f, ", {} plus loading", in_words(least_s, most_s))?,
            None => f.write_str(", each as long as its operations take")?,
        }
        f.write_str(if may_stop { "; stops early when sure" } else { "" })
    }
}

/// `4 to 24 minutes`, `40 seconds to 3 minutes` or `about 2 hours`.
fn in_words(least_s: f64, most_s: f64) -> String {
    let [least, most] = [least_s, most_s].map(rounded);
    match least == most {
        true => format!("about {} {}", most.0, most.1),
        false if least.1 == most.1 => format!("{} to {} {}", least.0, most.0, most.1),
        false => format!("{} {} to {} {}", least.0, least.1, most.0, most.1),
    }
}

/// A duration in the largest unit that fits one and a half times, with the unit.
fn rounded(time_s: f64) -> (String, &'static str) {
    const MINUTE_S: f64 = 60.0;
    const HOUR_S: f64 = 3600.0;
    match time_s {
        time_s if time_s < 1.5 * MINUTE_S => (format!("{:.0}", time_s.ceil()), "seconds"),
        time_s if time_s < 1.5 * HOUR_S => (format!("{:.0}", time_s / MINUTE_S), "minutes"),
        time_s => (format!("{:.1}", time_s / HOUR_S).replace(".0", ""), "hours"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::model::ServerKind;
    use dyno_plan::units::Span;

    #[test]
    fn times_are_rounded_to_their_unit() {
        assert_eq!(in_words(213.0, 1420.0), "4 to 24 minutes");
        assert_eq!(in_words(40.2, 180.0), "41 seconds to 3 minutes");
        assert_eq!(in_words(7200.0, 7200.0), "about 2 hours");
        assert_eq!(in_words(3600.0, 9000.0), "60 minutes to 2.5 hours");
    }

    #[test]
    fn estimate_of_a_run_has_its_time_and_documents() {
        let mut plan = dyno_plan::builtin::find("a").expect("it is listed");
        plan.phases.warmup = Span::from_secs(10);
        plan.phases.duration = Some(Span::from_secs(60));
        plan.data.records = 10_000;
        plan.server.kind = ServerKind::Mongod;
        let mut task = Task::from_plan(plan, None, None).expect("it is valid");
        let mut options = RunOptions::default();
        let said = of_run(&task, &options);
        assert!(said.contains("seconds") && said.contains("10,000 documents (9.54 MiB)"), "{said}");
        options.no_load = true;
        assert!(!of_run(&task, &options).contains("documents"));
        task.plan.phases.duration = None;
        assert!(!of_run(&task, &options).contains("seconds"));
        let load = RunOptions { extent: Extent::Load, ..RunOptions::default() };
        assert!(of_run(&task, &load).starts_with("loads 10,000 documents"));
    }

    #[test]
    fn searches_end_between_their_fewest_and_most_runs() {
        let (least, most) = runs_of_slo(0.04, 60);
        assert!((5..30).contains(&least) && most == 61, "{least} {most}");
        assert_eq!(runs_of_slo(0.04, 2), (3, 3));
        let (least, most) = runs_of_xmax(1024, 3);
        assert!((5..12).contains(&least) && most == 69, "{least} {most}");
        assert!(runs_of_xmax(1, 3).0 < least);
    }

    #[test]
    fn estimate_says_pairs_and_whether_it_may_stop() {
        let time_s = Some((213.0, 1420.0));
        let pairs = Estimate { verb: Verb::Ab, least_runs: 6, most_runs: 40, time_s };
        assert_eq!(
            pairs.to_string(),
            "up to 20 pairs, 4 to 24 minutes plus loading; stops early when sure"
        );
        let one = Estimate { verb: Verb::Sweep, least_runs: 1, most_runs: 1, time_s: None };
        assert_eq!(one.to_string(), "1 run, each as long as its operations take");
        let after = Estimate { verb: Verb::Slo, most_runs: 15, ..one };
        assert!(after.to_string().starts_with("up to 14 runs after the closed loop, "), "{after}");
    }
}
