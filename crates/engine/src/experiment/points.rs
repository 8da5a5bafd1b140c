//! The points of an experiment: their runs, and checks that the runs fit together.

use super::folder::PLANS;
use crate::error::{Error, Kind, refuse};
use dyno_plan::Plan;
use dyno_plan::model::{DataPlan, FreshData};
use dyno_plan::resolve::check_loads_what_it_drops;
use dyno_plan::task::Task;
use dyno_record::document::variant_name;
use dyno_record::experiment::{Experiment, Keys, Point, Side, Verb};
use dyno_record::model::{PhaseKind, RunDocument, RunStatus};
use std::collections::BTreeMap;

/// The plan that a point changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhichPlan {
    /// The only plan.
    Only,
    /// Plan of one side of a comparison.
    Side(Side),
    /// Plan of a suite's workload.
    Workload(String),
}

impl WhichPlan {
    /// The plan of a point.
    pub(super) fn of(point: &Point) -> Self {
        match (point.side, &point.workload) {
            (Some(side), _) => WhichPlan::Side(side),
            (None, Some(workload)) => WhichPlan::Workload(workload.clone()),
            (None, None) => WhichPlan::Only,
        }
    }

    /// Path of its copy, inside the experiment's folder.
    pub(super) fn file(&self) -> String {
        match self {
            WhichPlan::Only => "plan.toml".to_owned(),
            WhichPlan::Side(side) => format!("plan-{}.toml", variant_name(side)),
            WhichPlan::Workload(workload) => format!("{PLANS}/{workload}.toml"),
        }
    }
}

/// Facts about the runs before the first one.
pub(crate) struct Planned {
    /// A search has the plans of its sides; the points of a sweep have their own plans.
    pub(crate) tasks: Vec<Task>,
    /// Whether a point may find documents other than its own: the points work on different ones, or
    /// some add or delete documents.
    pub(super) varies_data: bool,
}

/// Checks the plans of all points, so that no run starts if a plan is wrong.
pub(crate) fn planned(
    document: &Experiment,
    tasks: &BTreeMap<WhichPlan, Task>,
    (fresh, no_load): (bool, bool),
) -> Result<Planned, Error> {
    for task in tasks.values() {
        check_loads_what_it_drops(&task.plan, no_load)?;
    }
    let of_point = |point: &Point| {
        let task = tasks.get(&WhichPlan::of(point)).ok_or_else(|| {
            let text = format!("`{}` belongs to a side without a plan", point.directory);
            Error::new(Kind::BadInput, text)
        })?;
        task.with_keys(&point.settings).map_err(Error::from)
    };
    let points = document.points.iter().map(of_point);
    let points = points.collect::<Result<Vec<_>, _>>()?;
    let tasks = if document.axes.is_empty() {
        let as_planned = tasks.values().map(|task| task.with_keys(&Keys::new()));
        as_planned.collect::<Result<_, _>>()?
    } else {
        points
    };
    let varies_data = check_data(&tasks, fresh, no_load)?;
    match document.verb {
        Verb::Suite => check_inserts(
            &tasks,
            fresh,
            "give `--fresh`, so that each run loads its own, or a single workload that inserts, and no `--repeat`",
        )?,
        // Each plan of a search runs repeatedly.
        Verb::Tune => check_inserts(
            &[&tasks[..], &tasks[..]].concat(),
            fresh,
            "give `--fresh`, so that each run loads its own",
        )?,
        _ => {}
    }
    let changes_data = tasks.iter().any(|task| changes_the_collection(&task.plan));
    if changes_data && no_load && !tasks.iter().all(is_kept) {
        let text = "runs that insert or delete need new documents, and `--no-load` loads none";
        return refuse(text, "leave out `--no-load`");
    }
    Ok(Planned { tasks, varies_data: varies_data || changes_data })
}

/// Whether the points work on different documents. An error if a run would measure old documents
/// instead of its plan's.
fn check_data(plans: &[Task], fresh: bool, no_load: bool) -> Result<bool, Error> {
    let differs = |one: &Task, other: &Task| documents(&one.plan) != documents(&other.plan);
    let varies = plans.iter().any(|task| differs(task, &plans[0]));
    let stays = |task: &Task| !begins_anew(task, fresh);
    for task in plans.iter().filter(|task| varies && stays(task)) {
        let is_kept = is_kept(task);
        let mut others = plans.iter().filter(|other| place(other) == place(task));
        if is_kept && others.any(|other| differs(other, task)) {
            return Err(other_documents(
                "give `--fresh`, so that each run loads its own, or a collection of its own to each",
            ));
        }
    }
    if varies && no_load && plans.iter().any(|task| task.remote.is_none()) {
        return Err(other_documents("leave out `--no-load`"));
    }
    Ok(varies)
}

/// Refuses runs that would find documents inserted by an earlier run, because nothing removes them.
/// Deleted documents are loaded again.
fn check_inserts(plans: &[Task], fresh: bool, hint: &str) -> Result<(), Error> {
    for (number, task) in plans.iter().enumerate() {
        let mut later = plans[number + 1..].iter();
        let finds_them = |other: &Task| {
            place(other) == place(task) && is_kept(other) && !begins_anew(other, fresh)
        };
        if task.plan.operations.may_insert() && later.any(finds_them) {
            let name = &task.plan.name;
            let text = format!(
                "`{name}` inserts documents, which the runs after it would find in addition to their own"
            );
            return refuse(text, hint);
        }
    }
    Ok(())
}

/// Whether a run always drops existing documents.
fn begins_anew(task: &Task, fresh: bool) -> bool {
    fresh || task.plan.data.fresh.is_for_each_run()
}

/// Whether existing documents are kept unless `--fresh` is given.
fn is_kept(task: &Task) -> bool {
    task.remote.is_some() || task.plan.data.fresh == FreshData::Never
}

/// Location of a plan's documents.
fn place(task: &Task) -> (&str, &str, Option<&str>) {
    let plan = &task.plan;
    let uri = plan.server.uri.as_deref();
    (&plan.data.database, &plan.data.collection, uri)
}

/// The settings that determine the loaded documents.
pub(super) fn documents(plan: &Plan) -> DataPlan {
    let standard = DataPlan::default();
    DataPlan { fresh: standard.fresh, page_cache: standard.page_cache, ..plan.data.clone() }
}

/// Error: runs would find documents of other plans.
fn other_documents(hint: &str) -> Error {
    let text = "the runs work on different documents (`data`) in the same collection, and would find the documents of the previous run";
    Error::new(Kind::BadInput, text).with_hint(hint)
}

/// A new point without results.
pub(crate) fn point(number: usize, settings: Keys, which: WhichPlan, repeat: u32) -> Point {
    let mut label = format!("{:03}", number + 1);
    let (side, workload) = match which {
        WhichPlan::Only => (None, None),
        WhichPlan::Side(side) => (Some(side), None),
        WhichPlan::Workload(workload) => (None, Some(workload)),
    };
    let what = side.map(|side| variant_name(&side)).or(workload.clone());
    label.extend(what.map(|what| format!("-{what}")));
    for (key, value) in &settings {
        let name = key.rsplit('.').next().unwrap_or(key);
        label.push_str(&format!("-{name}-{value}"));
    }
    let label: String = label
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' => c,
            _ => '_',
        })
        .take(LABEL_CHARACTERS)
        .collect();
    Point {
        settings,
        side,
        workload,
        repeat,
        directory: format!("runs/{label}"),
        ..Point::default()
    }
}

/// Longest name of a run's folder.
const LABEL_CHARACTERS: usize = 80;

/// Whether a run changes the number of documents.
pub(super) fn changes_the_collection(plan: &Plan) -> bool {
    plan.operations.may_insert() || plan.operations.may_delete()
}

/// Measured time of a run that was ended early; `None` if it ran to its end.
pub(super) fn ended_after_s(run: &RunDocument) -> Option<f64> {
    let measure = run.phases.iter().find(|phase| phase.name == PhaseKind::Measure);
    let measured_s = measure.map_or(0.0, |phase| phase.duration_s);
    (run.status != RunStatus::Complete).then_some(measured_s)
}
