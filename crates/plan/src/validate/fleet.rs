//! Checks of the table `fleet`.

use super::problems::Problems;
use crate::fleet::{FleetPlan, KubernetesPlan, MOST_AGENTS, Mapping};
use crate::model::{Plan, ServerKind};
use crate::units::Span;
use std::time::Duration;

/// Checks the table, and other parts of the plan that a fleet does not support.
pub(super) fn check_fleet(problems: &mut Problems, plan: &Plan) {
    let Some(fleet) = &plan.fleet else { return };
    check_hosts(problems, fleet);
    check_rest(problems, plan, fleet);
    check_times(problems, fleet);
    if let Some(kubernetes) = &fleet.kubernetes {
        check_kubernetes(problems, kubernetes);
    }
}

fn check_hosts(problems: &mut Problems, fleet: &FleetPlan) {
    problems.require_or(
        "fleet.clients",
        !fleet.clients.is_empty() || fleet.kubernetes.is_some(),
        "such as `clients = [\"clients\"]`, a group of the inventory",
        "does not name a host",
    );
    for (key, names) in [("clients", &fleet.clients), ("servers", &fleet.servers)] {
        for (index, name) in names.iter().enumerate() {
            let hint = "letters, digits, `.`, `_`, `:` and `-`";
            problems.require_or(&format!("fleet.{key}"), is_host_name(name), hint, || {
                format!("has `{name}`, which is neither a host nor a group")
            });
            problems.require(&format!("fleet.{key}"), !names[..index].contains(name), || {
                format!("has `{name}` twice")
            });
        }
    }
    problems.within("fleet.agents_per_host", fleet.agents_per_host, 1..=64);
    if let Some(hosts) = fleet.client_hosts {
        problems.within("fleet.client_hosts", hosts, 1..=MOST_AGENTS);
    }
}

fn check_rest(problems: &mut Problems, plan: &Plan, fleet: &FleetPlan) {
    let starts_servers = plan.server.kind != ServerKind::Uri;
    let is_deployment = fleet.mapping == Mapping::Deployment;
    problems.require(
        ["fleet.mapping", "server.uri"],
        starts_servers || is_deployment,
        "`fleet.mapping` needs independent servers, but `server.uri` is one deployment",
    );
    problems.require_or(
        ["server.pairs", "fleet.mapping"],
        plan.server.pairs <= 1 || !is_deployment,
        "`fleet.mapping = \"pairs\"`, `\"all-to-all\"` or `\"table\"`",
        "`server.pairs` starts independent servers on each host, but `fleet.mapping` is \
            `deployment`",
    );
    check_table(problems, fleet);
    problems.require(
        ["data.insert_start"],
        plan.data.insert_start == 0 && plan.data.insert_count.is_none(),
        "the fleet sets `data.insert_start` and `insert_count` of each agent",
    );
}

fn check_table(problems: &mut Problems, fleet: &FleetPlan) {
    let is_table = fleet.mapping == Mapping::Table;
    problems.require_or(
        "fleet.table",
        is_table || fleet.table.is_empty(),
        "`fleet.mapping = \"table\"`",
        "has no effect with this `fleet.mapping`",
    );
    problems.require_or(
        "fleet.mapping",
        !is_table || !fleet.table.is_empty(),
        "such as `table = [[0, 1], [2, 3]]`, a list of servers for each agent",
        "is `table`, but `fleet.table` is not set",
    );
    for (agent, servers) in fleet.table.iter().enumerate() {
        problems.require("fleet.table", !servers.is_empty(), || {
            format!("gives agent {agent} no server")
        });
        let is_repeated = |(place, server): (usize, &u32)| servers[..place].contains(server);
        problems.require("fleet.table", !servers.iter().enumerate().any(is_repeated), || {
            format!("gives agent {agent} a server twice")
        });
    }
}

/// Whether a text can be a host name or a group, and can follow a program as an argument.
fn is_host_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    !name.is_empty() && name.len() <= 253 && name.chars().all(allowed) && !name.starts_with('-')
}

fn check_times(problems: &mut Problems, fleet: &FleetPlan) {
    let second = Span::from_secs(1);
    let minute = Span::from_secs(60);
    let day = Span::from_secs(86_400);
    let month = Span::from_secs(30 * 86_400);
    let tenth = Span(Duration::from_millis(100));
    problems.within("fleet.join_within", fleet.join_within, second..=day);
    problems.within("fleet.load_within", fleet.load_within, second..=month);
    problems.within("fleet.lease", fleet.lease, second..=minute);
    problems.within("fleet.start_lead", fleet.start_lead, tenth..=minute);
}

fn check_kubernetes(problems: &mut Problems, kubernetes: &KubernetesPlan) {
    let names = [
        ("namespace", Some(&kubernetes.namespace)),
        ("storage_class", kubernetes.storage_class.as_ref()),
    ];
    for (key, name) in names {
        let Some(name) = name else { continue };
        let hint = "1 to 63 lower-case letters, digits and `-`, such as `dyno`";
        problems.require_or(&format!("fleet.kubernetes.{key}"), is_label(name), hint, || {
            format!("is `{name}`, which Kubernetes does not accept as a name")
        });
    }
    for (key, image) in [
        ("image", &kubernetes.image),
        ("server_image", &kubernetes.server_image),
        ("redis_image", &kubernetes.redis_image),
    ] {
        problems.require(&format!("fleet.kubernetes.{key}"), is_image(image), || {
            format!("is `{image}`, which is not an image reference")
        });
    }
    for (key, value, high) in [
        ("client_pods", kubernetes.client_pods, MOST_AGENTS),
        ("server_pods", kubernetes.server_pods, 64),
        ("client_cpus", kubernetes.client_cpus, 4096),
        ("server_cpus", kubernetes.server_cpus, 4096),
    ] {
        problems.within(&format!("fleet.kubernetes.{key}"), value, 1..=high);
    }
    problems.within("fleet.kubernetes.disks", kubernetes.disks, 0..=16);
    for (key, size) in [
        ("client_memory", kubernetes.client_memory),
        ("server_memory", kubernetes.server_memory),
        ("disk_size", kubernetes.disk_size),
    ] {
        problems.require(&format!("fleet.kubernetes.{key}"), size.0 >= 64 << 20, || {
            format!("is `{size}`, but must be at least 64MiB")
        });
    }
}

/// Whether a text is a DNS label, as names in Kubernetes are.
fn is_label(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&name.len())
        && name.chars().all(allowed)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// Whether a text is an image reference: `REPOSITORY`, optionally followed by `:TAG`,
/// `@sha256:DIGEST` or both.
fn is_image(text: &str) -> bool {
    let (name, digest) = match text.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (text, None),
    };
    let is_digest = |digest: &str| {
        let digits = digest.strip_prefix("sha256:").unwrap_or_default();
        digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    !name.is_empty() && name.chars().all(allowed) && digest.is_none_or(is_digest)
}
