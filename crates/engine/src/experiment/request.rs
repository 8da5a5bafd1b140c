//! Requests for experiments, and their common options.

pub use super::points::WhichPlan;
use crate::cancel::Cancel;
use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Error, Kind};
use crate::load_source::LoadSource;
use crate::observer::SharedObserver;
use crate::version::VERSION;
use dyno_plan::Plan;
use dyno_plan::model::{Schedule, ScheduleKind};
use dyno_plan::task::Task;
use dyno_record::experiment::{Experiment, Options, SCHEMA_VERSION, Verb};
use dyno_record::model::RunStatus;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Resolves a task from a workload (`None` for the requested one) and plan keys, with a schedule
/// and a rate in operations per second. Both default to the plan's.
pub type Resolve<'a> = &'a dyn Fn(
    Option<&str>,
    &[(String, String)],
    (Option<ScheduleKind>, Option<f64>),
) -> Result<Task, Error>;

/// Options of an experiment that are not in its plans.
#[derive(Clone, Default)]
pub struct ExperimentOptions<'a> {
    pub environment: Environment,
    /// Drop the collection before each run.
    pub fresh: bool,
    /// Drop it even if it holds documents that neither this program nor YCSB has written.
    pub drop_foreign: bool,
    /// Load nothing.
    pub no_load: bool,
    /// Folder of the experiment. Default: a new one below `experiments`.
    pub out: Option<PathBuf>,
    /// Path of the embedded server, if it was given.
    pub embedded_server: Option<PathBuf>,
    /// Result of the last selfcheck.
    pub selfcheck: Option<serde_json::Value>,
    /// Source of the load, if not this process.
    pub source: Option<&'a dyn LoadSource>,
}

impl<'a> ExperimentOptions<'a> {
    pub(super) fn context(
        &'a self,
        observer: &'a dyn SharedObserver,
        cancel: &'a Cancel,
    ) -> Context<'a> {
        Context { environment: &self.environment, cancel, observer, source: self.source }
    }
}

/// Creates a document without points.
pub fn document(verb: Verb, question: String, task: &Task) -> Experiment {
    Experiment {
        schema_version: SCHEMA_VERSION,
        dyno_version: VERSION.to_owned(),
        verb,
        question,
        name: task.plan.name.clone(),
        started_at: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        ended_at: None,
        status: RunStatus::Running,
        status_reason: None,
        plan: dyno_plan::file::recorded(&task.plan),
        options: Options::default(),
        axes: Vec::new(),
        environment: None,
        hosts: BTreeMap::new(),
        server_machines: BTreeMap::new(),
        points: Vec::new(),
        answer: None,
        findings: Vec::new(),
        caveats: Vec::new(),
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
    Err(Error::new(Kind::BadInput, text).with_hint("leave it out, or use `dyno sweep --clients`"))
}

/// The tasks of an experiment: one, or one for each side or workload.
pub type Tasks = Vec<(WhichPlan, Task)>;

/// Whether values of this key may contain secrets: watching commands and exporter addresses, also
/// as part of a whole table.
pub(super) fn may_hold_secrets(key: &str) -> bool {
    key == "observe" || key.starts_with("observe.exporters") || key.starts_with("traces")
}
