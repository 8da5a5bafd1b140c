//! Input and common parts of all manifests: names, labels, limits and permissions.

use crate::permits::Permits;
use dyno_plan::Plan;
use dyno_plan::fleet::{FleetPlan, KubernetesPlan};
use dyno_plan::model::ServerKind;
use dyno_plan::units::Bytes;
use serde_json::{Value, json};

/// Name of the `Secret` with the Redis address and password.
pub const SECRET: &str = "dyno-redis";
/// Name of the clients' `Job`.
pub const JOB: &str = "dyno-client";
/// Name of the `Deployment` and the `Service` of Redis.
pub const REDIS: &str = "dyno-redis";
/// Name of the `StatefulSet` and the `Service` of the servers.
pub const SERVERS: &str = "dyno-server";
/// Port of Redis.
pub const REDIS_PORT: u16 = 6379;
/// Port of the first `mongod` of a pod; the others use the following ports.
pub const SERVER_PORT: u16 = 27_017;

/// Input of all parts.
pub(super) struct RenderInput<'a> {
    pub(super) plan: &'a Plan,
    pub(super) fleet: &'a FleetPlan,
    pub(super) kubernetes: &'a KubernetesPlan,
    /// The agents' permits, in addition to the servers of the pods.
    pub(super) permits: &'a Permits,
    /// Whether loading agents get users or certificates.
    pub(super) with_secrets: bool,
    /// Run name, part of the keys in Redis.
    pub(super) run: &'a str,
    /// Run name of the agents next to the servers.
    pub(super) watch_run: &'a str,
}

/// Whether an agent runs next to the servers of each pod.
pub fn watches_servers(plan: &Plan) -> bool {
    plan.server.kind != ServerKind::Uri && plan.observe.host
}

/// Servers of each pod for a plan with `pairs`: at least one for each disk.
pub(crate) fn servers_of_pod(kubernetes: &KubernetesPlan, pairs: u32) -> u32 {
    kubernetes.disks.max(pairs).max(1)
}

impl RenderInput<'_> {
    pub(super) fn starts_servers(&self) -> bool {
        !matches!(self.plan.server.kind, ServerKind::Uri)
    }

    pub(super) fn metadata(&self, name: &str, part: &str) -> Value {
        json!({"name": name, "namespace": self.kubernetes.namespace, "labels": self.labels(part)})
    }

    /// Labels of one part of the run.
    pub(super) fn labels(&self, part: &str) -> Value {
        let mut labels = self.labels_of_run();
        labels["app.kubernetes.io/component"] = part.into();
        labels
    }

    /// Labels that all parts of the run have.
    pub(super) fn labels_of_run(&self) -> Value {
        json!({
            "app.kubernetes.io/name": "dyno",
            "app.kubernetes.io/instance": label(self.run),
        })
    }

    /// Resources of a pod. With exclusive CPUs, limits equal requests in whole CPUs and memory: the pod is then `Guaranteed`, which
    /// the static policy needs.
    pub(super) fn resources(&self, cpus: u32, memory: Bytes) -> Value {
        let amounts = json!({"cpu": cpus.to_string(), "memory": quantity(memory)});
        if self.kubernetes.pin_cpus {
            return json!({"requests": amounts, "limits": amounts});
        }
        json!({"requests": amounts, "limits": {"memory": quantity(memory)}})
    }

    /// Network of a pod: its own, or its node's.
    pub(super) fn add_network(&self, pod: &mut Value) {
        if self.kubernetes.host_network {
            pod["hostNetwork"] = true.into();
            pod["dnsPolicy"] = "ClusterFirstWithHostNet".into();
        }
    }
}

/// The text as a valid label value.
fn label(text: &str) -> String {
    let text: String = text.chars().take(63).collect();
    text.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

/// Bytes as a quantity in the largest unit with a whole number.
pub(super) fn quantity(Bytes(bytes): Bytes) -> String {
    let units = [(30, "Gi"), (20, "Mi"), (10, "Ki")];
    let fits = units.iter().find(|(shift, _)| bytes % (1 << shift) == 0);
    fits.map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// Security context without root, without privilege escalation, and with a read-only root file system.
pub(super) fn container_security() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
    })
}

pub(super) fn pod_security(user: u32) -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_as_whole_numbers() {
        assert_eq!(quantity(Bytes(3 << 30)), "3Gi");
        assert_eq!(quantity(Bytes(1536 << 20)), "1536Mi");
        assert_eq!(quantity(Bytes(1_000_000_001)), "1000000001");
    }
}
