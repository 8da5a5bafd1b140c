//! Noise of runs on this bench, from earlier experiments on it.

use crate::experiment::folder::ExperimentFolder;
use crate::experiment::request::{ExperimentOptions, Tasks};
use dyno_analyze::experiment::tune::noise_reported;
use dyno_plan::Plan;
use dyno_record::experiment::{Experiment, TuneGoal};
use dyno_record::model::Environment;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Parts of the plan that must be equal for two runs to vary alike, in addition to similar
/// durations.
const ALIKE: [&str; 8] =
    ["name", "server", "data", "operations", "keys", "access", "client", "schedule"];

/// Allowed ratio of run durations: shorter runs vary more.
const AS_LONG: RangeInclusive<f64> = 0.5..=2.0;

/// The noise of a workload on this bench.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KnownNoise {
    /// Standard deviation of a run, as a share.
    pub(super) noise_ratio: f64,
    /// Folder of the experiment with this noise.
    pub(super) folder: PathBuf,
    /// Start of the experiment, RFC 3339 in UTC.
    pub(super) started_at: String,
}

impl KnownNoise {
    pub(super) fn date(&self) -> &str {
        self.started_at.split('T').next().unwrap_or_default()
    }
}

/// Noise of each workload, from the newest experiment with the same plan on the same machine, among
/// those next to the new one. Unknown for a fleet, because a plan does not name the hosts of the
/// inventory.
pub(super) fn known(
    tasks: &Tasks,
    goal: TuneGoal,
    options: &ExperimentOptions<'_>,
) -> Vec<Option<KnownNoise>> {
    if options.source.is_some() {
        return vec![None; tasks.len()];
    }
    let machine = dyno_observe::environment::capture(None);
    let experiments = ExperimentFolder::beside(options.out.as_deref());
    newest(experiments, tasks, goal, &machine)
}

fn newest(
    experiments: impl Iterator<Item = (PathBuf, Experiment)>,
    tasks: &Tasks,
    goal: TuneGoal,
    machine: &Environment,
) -> Vec<Option<KnownNoise>> {
    let mut all: Vec<Option<KnownNoise>> = vec![None; tasks.len()];
    for (folder, document) in experiments {
        for ((_, task), known) in tasks.iter().zip(&mut all) {
            let plan = &task.plan;
            let is_newer = |known: &KnownNoise| document.started_at > known.started_at;
            let is_asked_for = known.as_ref().is_none_or(is_newer)
                && is_of_bench(&document, machine)
                && is_of_plan(&document, plan);
            if is_asked_for && let Some(noise_ratio) = noise_reported(&document, &plan.name, goal) {
                *known = Some(KnownNoise {
                    noise_ratio,
                    folder: folder.clone(),
                    started_at: document.started_at.clone(),
                });
            }
        }
    }
    all
}

/// Whether this machine alone made the runs.
fn is_of_bench(document: &Experiment, machine: &Environment) -> bool {
    let own = document.environment.as_ref();
    !document.options.fleet
        && own.is_some_and(|own| {
            own.hostname == machine.hostname
                && own.cpu_model == machine.cpu_model
                && own.cpus == machine.cpus
        })
}

/// Whether the unchanged runs had this plan and a similar duration.
fn is_of_plan(document: &Experiment, plan: &Plan) -> bool {
    let own = document.options.plans.get(&plan.name).unwrap_or(&document.plan);
    let planned = dyno_plan::file::recorded(plan);
    let run = document.points.iter().find_map(|point| {
        let workload = point.workload.as_ref();
        let figures = point.figures.as_ref();
        figures.filter(|_| workload.is_none_or(|workload| *workload == plan.name))
    });
    let times = run.zip(plan.phases.duration);
    let times = times.map(|(run, planned)| run.duration_s / planned.0.as_secs_f64());
    ALIKE.iter().all(|part| own.get(part) == planned.get(part))
        && times.is_some_and(|times| AS_LONG.contains(&times))
}

#[cfg(test)]
mod tests {
    use super::super::values::tests::task;
    use super::*;
    use crate::experiment::points::{WhichPlan, point};
    use crate::experiment::request::document;
    use dyno_record::experiment::{Point, Verb};
    use serde_json::json;
    use std::collections::BTreeMap;

    fn machine() -> Environment {
        Environment { hostname: Some("bench".to_owned()), cpus: Some(2), ..Environment::default() }
    }

    /// A search for the rate that started on a day of a month, with runs of 30 s that varied by
    /// this share.
    fn search(day: u32, noise_ratio: f64) -> Experiment {
        let mut document = document(Verb::Tune, "?".to_owned(), &task());
        document.started_at = format!("2026-08-{day:02}T10:15:00Z");
        document.environment = Some(machine());
        let options = json!({"goal": "rate", "failed_ratio": 0.001, "seed": 1, "margin_ratio": 0.05, "budget_s": 60.0});
        document.options.tune = serde_json::from_value(options).expect("it has all fields");
        let answer = json!({
            "kind": "tune", "baseline": {"value": 100.0}, "noise_ratio": noise_ratio, "visible_ratio": 0.1, "trials": [],
            "settings": {}, "keys": {}, "ablation": [], "effects": [],
        });
        document.answer = Some(serde_json::from_value(answer).expect("it has all fields"));
        let figures = json!({
            "clients": 1, "threads": 1, "rate_per_s": {"value": 100.0}, "response_mean_us": {"value": 10.0},
            "response_us": {}, "service_mean_us": 10.0, "mean_in_flight": 1.0, "succeeded": 100, "failed_ratio": 0.0,
            "dropped_ratio": 0.0, "duration_s": 30.0, "resources": [], "demands": [], "laws": [], "caveats": [],
        });
        document.points.push(Point {
            figures: Some(serde_json::from_value(figures).expect("it has all fields")),
            ..point(0, BTreeMap::new(), WhichPlan::Only, 0)
        });
        document
    }

    fn found(experiments: Vec<Experiment>, goal: TuneGoal) -> Option<KnownNoise> {
        let experiments = experiments.into_iter().enumerate();
        let experiments = experiments.map(|(number, one)| (PathBuf::from(number.to_string()), one));
        let tasks = vec![(WhichPlan::Only, task())];
        newest(experiments, &tasks, goal, &machine()).remove(0)
    }

    #[test]
    fn noise_comes_from_newest_experiment_of_same_plan_and_machine() {
        let three = vec![search(3, 0.03), search(21, 0.042), search(9, 0.02)];
        let known = found(three, TuneGoal::Rate).expect("there are three");
        assert_eq!((known.noise_ratio, known.date()), (0.042, "2026-08-21"));
        assert_eq!(known.folder, PathBuf::from("1"));
        assert_eq!(found(Vec::new(), TuneGoal::Rate), None);
        assert_eq!(found(vec![search(3, 0.03)], TuneGoal::Cpu), None);
    }

    #[test]
    fn noise_of_another_machine_or_plan_is_ignored() {
        type Change = fn(&mut Experiment);
        let changes: [(&str, Change); 7] = [
            ("no end", |it| it.answer = None),
            ("an unknown machine", |it| it.environment = None),
            ("another machine", |it| {
                let machine = it.environment.as_mut();
                machine.expect("it is known").hostname = Some("other".to_owned());
            }),
            ("a fleet", |it| it.options.fleet = true),
            ("more documents", |it| it.plan["data"]["records"] = 7.into()),
            ("more clients", |it| it.plan["client"]["clients"] = 7.into()),
            ("short runs", |it| {
                let figures = it.points[0].figures.as_mut();
                figures.expect("it was measured").duration_s = 10.0;
            }),
        ];
        for (what, change) in changes {
            let mut other = search(3, 0.03);
            change(&mut other);
            assert_eq!(found(vec![other], TuneGoal::Rate), None, "{what}");
        }
        // Other observation settings and a similar duration do not matter.
        let mut same = search(3, 0.03);
        same.plan["observe"]["host"] = false.into();
        let figures = same.points[0].figures.as_mut();
        figures.expect("it was measured").duration_s = 20.0;
        assert!(found(vec![same], TuneGoal::Rate).is_some());
    }
}
