//! Checks of the server's process and of the route to it.

use super::facts::{Facts, OpenServer, Product};
use super::finding::{Finding, by_hand, judged, unread};
use super::network::{Relay, RouteKind};
use dyno_record::quantity::Quantity;
use dyno_record::verdict::{Change, Level};

/// "UNIX ulimit Settings": 64000 files and 64000 processes; `mongod` warns below that.
const ADVISED_LIMIT: u64 = 64_000;
/// Below this limit a server of any size is in danger; the common default of 1024 files is below
/// it.
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

/// "Security Checklist": access control, and listening only on addresses that clients need.
pub(super) fn bind_address(facts: &Facts) -> Finding {
    let why = "strangers read, change and ransom a server that other machines can reach without a password";
    let advised = "only loopback addresses, or a password";
    let Some(server) = &facts.subject.server else {
        return found_servers(&facts.subject.found, advised, why);
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
        // We reached it from here.
        let address = server.address.map(|address| address.ip().to_string());
        vec![address.unwrap_or_else(|| "the network".to_owned())]
    };
    let (level, found) = openness(&open.join(", "), server.authentication);
    Finding::new(level, found, advised, why).with_change(Some(closing()))
}

/// How to protect a server from strangers.
fn closing() -> Change {
    by_hand(
        "start the server with `--auth --tls` if `dyno` starts it (`server.auth`, \
            `server.encryption`), other servers with `--auth` and a user, or let it listen only on \
            127.0.0.1",
    )
}

/// Judges a server that is reachable on these addresses in addition to loopback; `open` is empty if
/// there are none.
fn openness(open: &str, authentication: Option<bool>) -> (Level, String) {
    match (open, authentication) {
        ("", _) => (Level::Pass, "loopback only".to_owned()),
        (open, Some(true)) => (Level::Pass, format!("open on {open}, with a password")),
        (open, Some(false)) => (Level::Fail, format!("OPEN ON {open} WITHOUT A PASSWORD")),
        (open, None) => {
            (Level::Warn, format!("open on {open}; unknown whether it requires a password"))
        }
    }
}

/// Judges the servers found on this machine if none was named: the worst one decides.
fn found_servers(found: &[OpenServer], advised: &str, why: &'static str) -> Finding {
    let judged = found.iter().map(|server| {
        let addresses: Vec<String> = server.addresses.iter().map(ToString::to_string).collect();
        let (level, text) = openness(&addresses.join(", "), server.authentication);
        (level, format!("`{}` ({}): {text}", server.name, server.pid))
    });
    let judged: Vec<(Level, String)> = judged.collect();
    let Some(worst) = judged.iter().map(|(level, _)| *level).max() else {
        return Finding::new(Level::Unknown, "no server was given", advised, why);
    };
    let texts: Vec<&str> =
        judged.iter().filter(|(level, _)| *level == worst).map(|(_, text)| text.as_str()).collect();
    Finding::new(worst, texts.join("; "), advised, why).with_change(Some(closing()))
}

/// The advice is our own. A round trip to an idle server takes 20 to 100 µs over loopback, and up
/// to half a millisecond over a network within one room.
const LOOPBACK_WARN_US: f64 = 300.0;
const NETWORK_WARN_US: f64 = 1_000.0;
const NETWORK_FAIL_US: f64 = 10_000.0;
/// A tail this many times the median, and longer than the fastest operations, is visible in
/// results.
const TAIL_RATIO: f64 = 20.0;
const TAIL_US: f64 = 2_000.0;

/// Round-trip time of empty commands, and whether a container's network is on the route: a bridge
/// with its address translation adds some 50 to 200 µs to every operation.
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
            RouteKind::Pair => {
                Some(format!("over the container's interface `{}`", route.interface))
            }
            RouteKind::Loopback | RouteKind::Card => None,
        },
        Err(_) => None,
    };
    let loopback = facts.route.as_ref().is_ok_and(|route| route.kind == RouteKind::Loopback);
    let limit_us = if loopback { LOOPBACK_WARN_US } else { NETWORK_WARN_US };
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
        detour.as_ref().map(|detour| format!(", {detour}")).unwrap_or_default()
    );
    let change = if detour.is_some() {
        by_hand("run the container with `--network host`, or run the client next to the server")
    } else {
        by_hand("move the client closer to the server, and check both for other load")
    };
    Finding::new(level, found, advised, why).with_change(Some(change))
}

/// First kernel on which MongoDB 8.0 and later crash at startup: its restartable sequences do not
/// match the expectations of their TCMalloc.
const BAD_KERNEL: (u64, u64) = (6, 19);
/// First version of MongoDB with that allocator.
const FIRST_BAD_VERSION: u64 = 8;

pub(super) fn kernel(facts: &Facts) -> Finding {
    let why = "MongoDB 8.0 and later crash at startup on Linux 6.19 and later because their \
        allocator does not support its restartable sequences";
    judged(&facts.kernel, "before 6.19, or MongoDB before 8.0", why, |kernel| {
        let server = facts.subject.server.as_ref();
        let server = server.filter(|server| server.product == Product::MongoDb);
        let level = match (version_of(kernel), server) {
            (Some(version), _) if version < BAD_KERNEL => Level::Pass,
            (_, None) => Level::Pass,
            (None, Some(_)) => Level::Unknown,
            (Some(_), Some(server)) => match server.major_version() {
                None => Level::Unknown,
                Some(version) if version >= FIRST_BAD_VERSION => Level::Warn,
                Some(_) => Level::Pass,
            },
        };
        let change = by_hand("boot a kernel before 6.19 for these versions of the server");
        (level, kernel.clone(), Some(change))
    })
}

/// First two numbers of a kernel's release.
fn version_of(release: &str) -> Option<(u64, u64)> {
    let is_digit = |c: char| c.is_ascii_digit();
    let release = &release[release.find(is_digit)?..];
    let mut numbers = release.split(|c: char| !is_digit(c));
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

/// "Database Profiler" and "Auditing": both write for many operations.
pub(super) fn tracing(facts: &Facts) -> Finding {
    let why = "a profiler or an audit log writes for the operations that are measured";
    let advised = "no profiler, no audit log";
    let server = facts.subject.server.as_ref();
    let Some(active) = server.and_then(|server| server.tracing.as_ref()) else {
        return Finding::new(Level::Unknown, "no server was asked", advised, why);
    };
    if active.is_empty() {
        return Finding::new(Level::Pass, "none", advised, why);
    }
    let change = by_hand(
        "`db.setProfilingLevel(0)` in each of these databases; the audit log needs a restart without `auditLog`",
    );
    Finding::new(Level::Warn, active.join("; "), advised, why).with_change(Some(change))
}

/// "net.maxIncomingConnections": the server closes connections beyond it without a message.
pub(super) fn free_connections(facts: &Facts) -> Finding {
    let why = "at its limit, the server closes new connections without giving a reason";
    let needed = facts.subject.connections;
    let advised = match needed {
        Some(needed) => format!("at least {needed}"),
        None => "more than the number of clients".to_owned(),
    };
    let server = facts.subject.server.as_ref();
    let Some(free) = server.and_then(|server| server.available_connections) else {
        return Finding::new(Level::Unknown, "no server was asked", advised, why);
    };
    let level = match needed {
        Some(needed) if free < needed => Level::Fail,
        _ => Level::Pass,
    };
    let change = by_hand(
        "raise `net.maxIncomingConnections` (`--maxConns`) and the server's limit of open files, then restart it",
    );
    Finding::new(level, format!("{free} left"), advised, why).with_change(Some(change))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worst_server_of_this_machine_decides() {
        let judge = |found: &[(&str, Option<bool>)]| {
            let open = |((name, authentication), pid): (&(&str, Option<bool>), u32)| OpenServer {
                pid,
                name: (*name).to_owned(),
                addresses: vec!["0.0.0.0:27017".parse().unwrap()],
                authentication: *authentication,
            };
            let found: Vec<OpenServer> = found.iter().zip(1..).map(open).collect();
            found_servers(&found, "a password", "why")
        };
        assert_eq!(judge(&[]).level, Level::Unknown);
        let closed = judge(&[("mongod", Some(true))]);
        assert_eq!(closed.level, Level::Pass);
        let found = &closed.found;
        assert!(found.starts_with("`mongod` (1): open on 0.0.0.0:27017"), "{found}");
        let names = ["mongod", "secantusd-rs", "mongos"];
        let open = judge(&[(names[0], Some(true)), (names[1], Some(false)), (names[2], None)]);
        assert_eq!(open.level, Level::Fail);
        // In capitals, and without the others.
        let found = &open.found;
        assert!(found.starts_with("`secantusd-rs` (2): OPEN ON 0.0.0.0:27017"), "{found}");
        assert!(!found.contains("mongo"), "{found}");
        let change = open.change.unwrap().command;
        assert!(change.contains("`--auth --tls`") && change.contains("127.0.0.1"));
        assert_eq!(judge(&[("mongod", None)]).level, Level::Warn);
    }
}
