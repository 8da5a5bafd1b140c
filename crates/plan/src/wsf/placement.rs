//! Parameters for the CPUs and the memory of servers and clients.

use super::numactl::{CLIENT_HINT, HOST_CLIENT_HINT, Options, Policy, SERVER_HINT};
use super::read::Given;

/// Parameters that affect the placement.
const NAMES: [&str; 7] = [
    "NUMACTL_OPTION",
    "SELECT_NUMA_NODE",
    "CORES",
    "CORE_NUMS_EACH_INSTANCE",
    "YCSB_CORES",
    "CUSTOMER_NUMAOPT_SERVER",
    "CUSTOMER_NUMAOPT_CLIENT",
];

/// Parameters that place only the clients, in order of precedence.
pub(crate) const OF_CLIENTS: [&str; 2] = ["CUSTOMER_NUMAOPT_CLIENT", "YCSB_CORES"];

/// Note about the resulting placement.
pub(crate) fn note(variable: &str, text: &str) -> String {
    format!("`{variable}` and its kind mean `--placement '{text}'`")
}

/// The placement, and the most important parameter for it. `None` if no parameter is given. With
/// `on_hosts` clients have their own machines.
pub(super) fn placement(
    given: &mut Given,
    pairs: u32,
    on_hosts: bool,
) -> Option<(&'static str, String)> {
    if !NAMES.iter().any(|name| given.is_given(name)) {
        return None;
    }
    let custom = "CUSTOMER_NUMAOPT_SERVER";
    let (variable, server) = match given.get(custom).map(str::to_owned) {
        Some(text) => {
            let reason = "`CUSTOMER_NUMAOPT_SERVER` overrides it";
            for name in &NAMES[..4] {
                given.unused(name, reason);
            }
            let policy = Options::parse(&text).and_then(|options| options.server(pairs));
            (custom, accept(given, custom, policy, SERVER_HINT)?)
        }
        None => ("NUMACTL_OPTION", by_option(given)?),
    };
    let client = client(given, &server, pairs, on_hosts)?;
    let text = match client {
        Some(client) => format!("{server} client={client}"),
        None => server,
    };
    let variable = if given.is_given(variable) {
        variable
    } else {
        NAMES.iter().find(|name| given.is_given(name))?
    };
    Some((variable, text))
}

/// The servers' policy for `NUMACTL_OPTION`.
fn by_option(given: &mut Given) -> Option<String> {
    if given.is_given("NUMACTL_OPTION") && given.get("NUMACTL_OPTION").is_none() {
        return None;
    }
    let option = given.number("NUMACTL_OPTION").unwrap_or(0);
    if option != 2 {
        let reason = "it has an effect only with `NUMACTL_OPTION=2`";
        given.unused("CORES", reason);
        given.unused("SELECT_NUMA_NODE", reason);
    }
    if !matches!(option, 3 | 4) {
        let reason = "it has an effect only with `NUMACTL_OPTION=3` or `4`";
        given.unused("CORE_NUMS_EACH_INSTANCE", reason);
    }
    Some(match option {
        0 => "interleave".into(),
        1 => "spread".into(),
        2 => match given.get("CORES") {
            Some(cores) => format!("cores={cores}"),
            None => format!("node={}", given.get("SELECT_NUMA_NODE").unwrap_or("0")),
        },
        3 | 4 => {
            let Some(cores) = given.number("CORE_NUMS_EACH_INSTANCE") else {
                if !given.is_given("CORE_NUMS_EACH_INSTANCE") {
                    let reason = "`CORE_NUMS_EACH_INSTANCE` is missing";
                    let hint = "set the number of cores of each server";
                    given.refuse("NUMACTL_OPTION", reason, hint);
                }
                return None;
            };
            let siblings = if option == 4 { ",smt" } else { "" };
            format!("cores-per-instance={cores}{siblings}")
        }
        _ => "none".into(),
    })
}

/// The clients' placement; the inner `None` leaves it to the policy, which then means unpinned.
fn client(given: &mut Given, server: &str, pairs: u32, on_hosts: bool) -> Option<Option<String>> {
    let custom = "CUSTOMER_NUMAOPT_CLIENT";
    if let Some(text) = given.get(custom).map(str::to_owned) {
        given.unused("YCSB_CORES", "`CUSTOMER_NUMAOPT_CLIENT` overrides it");
        let options = Options::parse(&text);
        let (place, hint) = if on_hosts {
            let place = options.and_then(|options| options.client_on_hosts());
            (place, HOST_CLIENT_HINT)
        } else {
            let place = options.and_then(|options| options.client(server, pairs));
            (place, CLIENT_HINT)
        };
        return accept(given, custom, place, hint).map(Some);
    }
    if let Some(cpus) = given.get("YCSB_CORES") {
        return Some(Some(cpus.to_owned()));
    }
    let by_option = !given.is_given("CUSTOMER_NUMAOPT_SERVER");
    let is_unpinned = ["none", "interleave"].contains(&server) || server.starts_with("custom=");
    Some(match (by_option, server) {
        _ if is_unpinned => None,
        (false, _) | (true, "spread") => Some("none".into()),
        _ if on_hosts => Some("none".into()),
        (true, _) => Some("other".into()),
    })
}

/// The policy for options of `numactl`; a difference between them is a warning.
fn accept(given: &mut Given, name: &'static str, policy: Policy, hint: &str) -> Option<String> {
    match policy {
        Ok((policy, difference)) => {
            if let Some(difference) = difference {
                given.warnings.push(format!("`{name}`: {difference}"));
            }
            Some(policy)
        }
        Err(reason) => {
            given.refuse(name, &reason, hint);
            None
        }
    }
}
