//! Checks of the server's process and of the way to it.

use super::facts::Facts;
use super::finding::{Finding, by_hand, judged, unread};
use super::network::{Relay, RouteKind};
use dyno_record::quantity::Quantity;
use dyno_record::verdict::{Change, Level};

/// "UNIX ulimit Settings": 64000 files and 64000 processes; `mongod` says so itself below.
const ADVISED_LIMIT: u64 = 64_000;
/// Below it a server of any size is in danger: the common default of 1024 files is.
const LEAST_LIMIT: u64 = 4_096;
/// "UNIX ulimit Settings": two files and one thread per connection.
const FILES_PER_CONNECTION: u64 = 2;

pub(super) fn open_files(facts: &Facts) -> Finding {
    let why = "each connection takes two open files, and each collection and index at least one; at the limit the server refuses connections or exits";
    judged(&facts.limits, "at least 64000", why, |limits| {
        let connections = facts.subject.connections.unwrap_or(0);
        let needed = LEAST_LIMIT.max(connections.saturating_mul(FILES_PER_CONNECTION) + 1_000);
        limit(facts, limits.open_files, needed, "LimitNOFILE", "ulimit -n")
    })
}

pub(super) fn processes(facts: &Facts) -> Finding {
    let why =
        "each connection has a thread of its own; at the limit the server refuses connections";
    judged(&facts.limits, "at least 64000", why, |limits| {
        let connections = facts.subject.connections.unwrap_or(0);
        let needed = LEAST_LIMIT.max(connections + 1_000);
        limit(facts, limits.processes, needed, "LimitNPROC", "ulimit -u")
    })
}

fn limit(
    facts: &Facts,
    found: Option<u64>,
    needed: u64,
    unit: &str,
    shell: &str,
) -> (Level, String, Option<Change>) {
    let whose = if facts.limits_of_server {
        "of the server"
    } else {
        "of this process; a server that it starts inherits the limit"
    };
    let level = match found {
        Some(found) if found < needed => Level::Fail,
        Some(found) if found < ADVISED_LIMIT => Level::Warn,
        _ => Level::Pass,
    };
    let text = found.map_or_else(|| "unlimited".to_owned(), |found| found.to_string());
    let command = format!(
        "`{shell} 64000` in the shell that starts it, or `{unit}=64000` in its systemd unit; then restart it"
    );
    (level, format!("{text}, {whose}"), Some(by_hand(command)))
}

/// "Security Checklist": access control, and listening only where clients are.
pub(super) fn bind_address(facts: &Facts) -> Finding {
    let why = "strangers read, change and ransom a server that other machines can reach without a password";
    let advised = "only loopback addresses, or a password";
    let Some(server) = &facts.subject.server else {
        return Finding::new(Level::Unknown, "no server was given", advised, why);
    };
    let open: Vec<String> = if server.local {
        match &facts.listening {
            Ok(addresses) => addresses
                .iter()
                .filter(|address| !address.is_loopback())
                .map(ToString::to_string)
                .collect(),
            Err(health) => return unread(health, advised, why),
        }
    } else {
        // It was reached from here.
        let address = server.address.map(|address| address.ip().to_string());
        vec![address.unwrap_or_else(|| "the network".to_owned())]
    };
    let change =
        by_hand("start the server with `--bind_ip 127.0.0.1`, or with `--auth` and a user");
    let (level, found) = match (open.as_slice(), server.authentication) {
        ([], _) => (Level::Pass, "loopback only".to_owned()),
        (open, Some(true)) => (
            Level::Pass,
            format!("open on {}, with a password", open.join(", ")),
        ),
        (open, Some(false)) => (
            Level::Fail,
            format!("OPEN ON {} WITHOUT A PASSWORD", open.join(", ")),
        ),
        (open, None) => (
            Level::Warn,
            format!(
                "open on {}; unknown whether it requires a password",
                open.join(", ")
            ),
        ),
    };
    Finding::new(level, found, advised, why).with_change(Some(change))
}

/// Ours. A round trip over loopback takes 20 to 100 µs with an idle server, over a network of one
/// room up to half a millisecond.
const LOOPBACK_WARN_US: f64 = 300.0;
const NETWORK_WARN_US: f64 = 1_000.0;
const NETWORK_FAIL_US: f64 = 10_000.0;
/// A tail this many times the median, and longer than the fastest operations, is visible in results.
const TAIL_RATIO: f64 = 20.0;
const TAIL_US: f64 = 2_000.0;

/// Time of empty commands, and whether a container's network lies between: a bridge with its
/// address translation adds some 50 to 200 µs to every operation.
pub(super) fn round_trip(facts: &Facts) -> Finding {
    let why = "every operation takes at least one round trip; the bridge or proxy of a container adds to each one and is not part of the server";
    let advised = "a direct route, and a round trip far shorter than the measured latencies";
    let server = facts.subject.server.as_ref();
    let Some(time) = server.and_then(|server| server.round_trip) else {
        return Finding::new(Level::Unknown, "no server was asked", advised, why);
    };
    let listener = facts.listener.as_deref().unwrap_or_default();
    let detour = match &facts.route {
        _ if Relay::from_name(listener).is_some() => Some(format!("through `{listener}`")),
        Ok(route) => match route.kind {
            RouteKind::Bridge => Some(format!("over the bridge `{}`", route.interface)),
            RouteKind::Pair => Some(format!(
                "over the container's interface `{}`",
                route.interface
            )),
            RouteKind::Loopback | RouteKind::Card => None,
        },
        Err(_) => None,
    };
    let loopback = facts
        .route
        .as_ref()
        .is_ok_and(|route| route.kind == RouteKind::Loopback);
    let limit_us = if loopback {
        LOOPBACK_WARN_US
    } else {
        NETWORK_WARN_US
    };
    let tail = time.p99_us > TAIL_US && time.p99_us > TAIL_RATIO * time.median_us;
    let level = if time.median_us > NETWORK_FAIL_US {
        Level::Fail
    } else if time.median_us > limit_us || tail || detour.is_some() {
        Level::Warn
    } else {
        Level::Pass
    };
    let found = format!(
        "median {}, p99 {} of {} commands{}",
        Quantity::microseconds(time.median_us),
        Quantity::microseconds(time.p99_us),
        time.count,
        detour
            .as_ref()
            .map(|detour| format!(", {detour}"))
            .unwrap_or_default()
    );
    let change = if detour.is_some() {
        by_hand("run the container with `--network host`, or run the client next to the server")
    } else {
        by_hand("move the client closer to the server, and check both for other load")
    };
    Finding::new(level, found, advised, why).with_change(Some(change))
}
