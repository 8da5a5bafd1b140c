//! Common parts of the requests for experiments.

pub use super::points::WhichPlan;
use crate::error::{Error, refuse};
use crate::version::VERSION;
use dyno_plan::Plan;
use dyno_plan::model::{Schedule, ScheduleKind};
use dyno_plan::task::Task;
use dyno_record::experiment::{Experiment, SCHEMA_VERSION, Verb};
use dyno_record::model::RunStatus;
use jiff::Timestamp;

/// Resolves a task from a workload (`None` for the requested one) and plan keys, with a schedule
/// and a rate in operations per second. Both default to the plan's.
pub type Resolve<'a> = &'a dyn Fn(
    Option<&str>,
    &[(String, String)],
    (Option<ScheduleKind>, Option<f64>),
) -> Result<Task, Error>;

/// Creates a document without points.
pub fn document(verb: Verb, question: String, task: &Task) -> Experiment {
    Experiment {
        schema_version: SCHEMA_VERSION,
        dyno_version: VERSION.to_owned(),
        verb,
        question,
        name: task.plan.name.clone(),
        started_at: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        status: RunStatus::Running,
        plan: dyno_plan::file::recorded(&task.plan),
        ..Experiment::default()
    }
}

/// Schedule for a plan's offered rates: its own, or `constant` instead of a closed loop.
pub(super) fn kind_at_rate(schedule: &Schedule) -> &'static str {
    match schedule {
        Schedule::Poisson { .. } => ScheduleKind::Poisson.as_str(),
        Schedule::Throttled { .. } => ScheduleKind::Throttled.as_str(),
        Schedule::Closed {} | Schedule::Constant { .. } => ScheduleKind::Constant.as_str(),
    }
}

/// Refuses a think time in a search that offers rates after its closed loop.
pub(super) fn refuse_think_time(plan: &Plan) -> Result<(), Error> {
    if plan.client.mean_think_time().is_none() {
        return Ok(());
    }
    let text = "`client.think_time` has no effect at offered rates, which the search uses";
    refuse(text, "leave it out, or use `dyno sweep --clients`")
}

/// The tasks of an experiment: one, or one for each side or workload.
pub type Tasks = Vec<(WhichPlan, Task)>;

/// Whether values of this key may contain secrets: watching commands and exporter addresses, also
/// as part of a whole table.
pub(super) fn may_hold_secrets(key: &str) -> bool {
    key == "observe" || key.starts_with("observe.exporters") || key.starts_with("traces")
}
