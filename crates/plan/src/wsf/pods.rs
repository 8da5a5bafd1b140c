//! Parameters in Kubernetes pods, which cannot use CPUs by number, folders of their node, or
//! settings of their node.

use super::Setting;
use super::read::Given;
use crate::problem::Problem;

const PIN_CPUS: &str =
    "with `fleet.kubernetes.pin_cpus` the kubelet gives each server its own CPUs";
const CPUS: &str =
    "remove it, and set their number with `fleet.kubernetes.server_cpus` and `client_cpus`";
const VOLUMES: &str = "remove it, and describe the volumes with `fleet.kubernetes.disks`, \
    `disk_size` and `storage_class`";
const NODE: &str = "pods may not change their nodes: set it there before the run";

/// Removes keys that pods do not support. A typed value that would be lost is a problem; other
/// removed keys are a warning.
pub(super) fn keep_possible(given: &mut Given, keys: &mut Vec<Setting>) -> Vec<Problem> {
    let mut problems = Vec::new();
    keys.retain(|setting| {
        let variable = setting.variable;
        let refusal = match setting.name {
            "server.journal" if setting.value == "false" && setting.given => {
                Some(("the `mongod` of a pod has a journal", "remove it"))
            }
            "server.journal" if setting.value == "false" => {
                let reason = "the `mongod` of a pod has a journal";
                let text =
                    format!("`{variable}=false`, that workload's default, has no effect: {reason}");
                given.warnings.push(text);
                return false;
            }
            "server.receive_packet_steering" => {
                given.unused(variable, NODE);
                return false;
            }
            "server.data_dir" | "server.data_dirs" | "server.disk_mapping" => {
                Some(("pods have volumes instead of folders", VOLUMES))
            }
            "server.topology" => Some((
                "pods have independent servers",
                "remove it, or use a running set with `--uri`",
            )),
            _ => None,
        };
        problems.extend(refusal.map(|(reason, hint)| given.problem(variable, reason, hint)));
        refusal.is_none()
    });
    problems
}

/// The placement in a form that pods support; `None` if there is a problem.
pub(super) fn placement(
    given: &mut Given,
    text: String,
    problems: &mut Vec<Problem>,
) -> Option<String> {
    let before = problems.len();
    let is_custom = given.get("CUSTOMER_NUMAOPT_SERVER").is_some();
    let option = given.number("NUMACTL_OPTION").unwrap_or(0);
    let has_cores = !is_custom && option == 2;
    let has_client_options = given.get("CUSTOMER_NUMAOPT_CLIENT").is_some();
    for (name, has_effect) in [
        ("CORES", has_cores),
        ("YCSB_CORES", !has_client_options),
        ("CUSTOMER_NUMAOPT_CLIENT", true),
    ] {
        if has_effect && given.get(name).is_some() {
            let reason = "a pod cannot choose CPUs of its node";
            problems.push(given.problem(name, reason, CPUS));
        }
    }
    let server = text.split(' ').next().unwrap_or_default();
    let text = match (is_custom, option) {
        (true, _) if !is_memory_policy(server) => {
            let reason = "pods have `--interleave=all`, and `-N K -m K` for one node";
            problems.push(given.problem("CUSTOMER_NUMAOPT_SERVER", reason, CPUS));
            text
        }
        (true, _) => text,
        (false, 1) => {
            given.unused("NUMACTL_OPTION", PIN_CPUS);
            "none".into()
        }
        (false, 3) => "none".into(),
        (false, 4) => {
            let reason = "a pod cannot ask for both threads of a core";
            problems.push(given.problem("NUMACTL_OPTION", reason, "use `NUMACTL_OPTION=3`"));
            text
        }
        (false, _) => text,
    };
    (problems.len() == before).then_some(text)
}

fn is_memory_policy(server: &str) -> bool {
    let is_node = |node: &str| node.bytes().all(|byte| byte.is_ascii_digit());
    ["none", "interleave"].contains(&server) || server.strip_prefix("node=").is_some_and(is_node)
}
