//! What is asked of an experiment, and what its kinds have in common.

pub use super::points::WhichPlan;
use crate::cancel::Cancel;
use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Error, Kind};
use crate::load_source::LoadSource;
use crate::observer::SharedObserver;
use crate::version::VERSION;
use dyno_plan::Plan;
use dyno_plan::model::Schedule;
use dyno_plan::request::ScheduleKind;
use dyno_plan::task::Task;
use dyno_record::experiment::{Experiment, SCHEMA_VERSION, Verb};
use dyno_record::model::RunStatus;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Name of the option that tells that the runs are those of a fleet.
pub(super) const ON_FLEET: &str = "fleet";

/// Resolves a task: of a workload (`None` for the one that was asked for), with these keys of the plan set, and with a
/// schedule and a rate in operations per second, each of which may be that of the plan.
pub type Resolve<'a> = &'a dyn Fn(
    Option<&str>,
    &[(String, String)],
    (Option<ScheduleKind>, Option<f64>),
) -> Result<Task, Error>;

/// How the runs of an experiment are done, besides what their plans say.
#[derive(Clone, Default)]
pub struct ExperimentOptions<'a> {
    /// The place that they are done in.
    pub environment: Environment,
    /// Drop the collection before each run.
    pub fresh: bool,
    /// Drop it also if it holds documents that neither this program nor YCSB has written.
    pub drop_foreign: bool,
    /// Load nothing.
    pub no_load: bool,
    /// The folder of the experiment; a new one below `experiments` if none is named.
    pub out: Option<PathBuf>,
    /// Path of the embedded server, if it is named.
    pub embedded_server: Option<PathBuf>,
    /// Result of the last selfcheck.
    pub selfcheck: Option<serde_json::Value>,
    /// Where the load comes from, if not from this process.
    pub source: Option<&'a dyn LoadSource>,
}

impl<'a> ExperimentOptions<'a> {
    pub(super) fn context(
        &'a self,
        observer: &'a dyn SharedObserver,
        cancel: &'a Cancel,
    ) -> Context<'a> {
        Context {
            environment: &self.environment,
            cancel,
            observer,
            source: self.source,
        }
    }
}

/// A document that has no points yet.
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
        options: BTreeMap::new(),
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

/// Name of the schedule with which a plan's rates are offered: its own, or a constant one in place of a closed loop.
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
    let text = "`client.think_time` has no meaning at the rates that the search offers";
    Err(Error::new(Kind::BadInput, text).with_hint("`dyno sweep --clients` takes it"))
}

/// The tasks of an experiment: one, or one for each side or workload.
pub type Tasks = Vec<(WhichPlan, Task)>;

/// Name of the option that holds the plan of the side that is not that of the document.
pub(crate) const PLAN_OF_B: &str = "plan_of_b";

/// Whether values of this key may hold secrets: commands that watch, and addresses of exporters, also in a whole table.
pub(super) fn may_hold_secrets(key: &str) -> bool {
    key == "observe" || key.starts_with("observe.exporters") || key.starts_with("traces")
}
