//! Whether two runs can use the same servers.

use dyno_plan::Plan;
use dyno_plan::host_setting::HostSetting;
use dyno_plan::model::{Backend, ObservePlan, ServerPlan};
use dyno_plan::task::Task;
use std::collections::BTreeMap;

/// Servers can be kept for the next point if all of this is the same.
#[derive(Clone, PartialEq)]
pub(super) struct DeploymentKey {
    server: ServerPlan,
    /// Readings of the server hosts.
    observe: Option<ObservePlan>,
    backend: Backend,
    namespace: (String, String),
}

impl DeploymentKey {
    /// Whether some of the tasks have different servers.
    pub(super) fn differ<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> bool {
        let mut keys = tasks.into_iter().map(|task| Self::of(&task.plan));
        let first = keys.next();
        keys.any(|key| first.as_ref() != Some(&key))
    }

    /// The key of the servers that `plan` describes.
    pub(super) fn of(plan: &Plan) -> Self {
        // These are set for each run.
        let runtime_parameters = BTreeMap::new();
        let mut host_settings = plan.server.host_settings.clone();
        host_settings
            .retain(|name, _| HostSetting::from_name(name).is_some_and(HostSetting::needs_start));
        DeploymentKey {
            server: ServerPlan { runtime_parameters, host_settings, ..plan.server.clone() },
            observe: plan.fleet.is_some().then(|| plan.observe.clone()),
            backend: plan.client.backend,
            namespace: (plan.data.database.clone(), plan.data.collection.clone()),
        }
    }
}
