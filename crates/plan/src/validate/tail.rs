//! Checks of the table `tail`.

use super::problems::Problems;
use crate::model::{Encryption, Plan};
use crate::tail::TailPlan;
use std::time::Duration;

/// Largest number of messages of a producer: at the end, some 50 bytes per message are in memory.
const MOST_MESSAGES: u64 = 100_000_000;
/// Largest number of connections that drivers support.
const MOST_POOL: u32 = 100_000;
/// Longest time of a consumer per message.
const MOST_WORK: Duration = Duration::from_secs(1000);
/// Largest number of concurrent producers, and of concurrent consumers.
const MOST_AT_ONCE: u32 = 64;
/// Largest number of rounds; more would take too long.
const MOST_REPEAT: u32 = 1000;
/// Largest number of bytes added to a message, so that it stays below a document's 16 MiB.
const MOST_SIZE: u64 = 16_000_000;
/// Smallest capped collection that servers create.
const LEAST_CAPPED: u64 = 4096;

pub(super) fn check_tail(problems: &mut Problems, plan: &Plan) {
    let Some(tail) = &plan.tail else { return };
    check_drivers(problems, tail);
    check_axes(problems, tail);
    check_messages(problems, tail);
    check_hosts(problems, tail);
    check_times(problems, tail);
    // Drivers there would look for the certificates on their own host.
    let is_elsewhere = tail.producer_host.is_some() || tail.consumer_host.is_some();
    problems.require_or(
        ["server.encryption", "tail.producer_host", "tail.consumer_host"],
        !is_elsewhere || plan.server.encryption == Encryption::Off,
        "remove `server.encryption`, or use a running server with `--uri`",
        "`server.encryption` cannot be combined with `tail.producer_host` and \
            `tail.consumer_host`: the certificates are files of this machine",
    );
}

fn check_drivers(problems: &mut Problems, tail: &TailPlan) {
    for (key, drivers) in [("producers", &tail.producers), ("consumers", &tail.consumers)] {
        for (place, name) in drivers.iter().enumerate() {
            // `@` precedes the version of a driver, as in `node@6.8`.
            let allowed = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
            let is_name = !name.is_empty() && name.chars().all(allowed) && !name.starts_with('.');
            problems.require(&format!("tail.{key}"), is_name, || {
                format!("names `{name}`, which is not the folder of a driver")
            });
            problems.require(&format!("tail.{key}"), !drivers[..place].contains(name), || {
                format!("names `{name}` twice")
            });
        }
    }
    problems.require(
        "tail.consumers",
        !tail.consumers.is_empty(),
        "is empty, so no consumer would receive the messages",
    );
    for (key, count) in [
        ("tail.producers_at_once", tail.producers_at_once),
        ("tail.consumers_at_once", tail.consumers_at_once),
    ] {
        problems.within(key, count, 1..=MOST_AT_ONCE);
    }
}

fn check_axes(problems: &mut Problems, tail: &TailPlan) {
    problems.require(
        ["tail.in_flight", "tail.pool"],
        !tail.in_flight.is_empty() && !tail.pool.is_empty(),
        "`tail.in_flight` or `tail.pool` is empty, so nothing would be measured",
    );
    let bounds: Vec<_> = tail.in_flight.iter().map(|b| TailPlan::bound(b)).collect();
    for (text, bound) in tail.in_flight.iter().zip(&bounds) {
        if let Err(reason) = bound {
            problems.require("tail.in_flight", false, || format!("has `{text}`: {reason}"));
        }
    }
    let twice = |place: usize| bounds[..place].contains(&bounds[place]);
    problems.require("tail.in_flight", !(0..bounds.len()).any(twice), "has a number twice");
    problems.within("tail.repeat", tail.repeat, 1..=MOST_REPEAT);
    problems.require(
        "tail.pool",
        !tail.pool.contains(&0),
        "has `0`, but drivers need at least one connection",
    );
    problems.require("tail.pool", tail.pool.iter().all(|pool| *pool <= MOST_POOL), || {
        format!("has more than {MOST_POOL} connections, the most that drivers accept")
    });
}

fn check_messages(problems: &mut Problems, tail: &TailPlan) {
    problems.within("tail.messages", tail.messages, 1..=MOST_MESSAGES);
    problems.require("tail.size", tail.size.0 <= MOST_SIZE, || {
        let size = tail.size;
        format!("is `{size}`: messages would exceed the server's limit of 16 MiB")
    });
    let fits = tail.capped_size.is_none_or(|size| size.0 >= LEAST_CAPPED);
    problems.require(
        "tail.capped_size",
        fits,
        "is below 4 KiB, the smallest size that servers create",
    );
    let concern = tail.write_concern.as_str();
    let is_concern = concern == "majority" || concern.parse::<u8>().is_ok_and(|w| w <= 50);
    problems.require("tail.write_concern", is_concern, || {
        format!("is `{concern}`, but must be `majority` or 0 to 50")
    });
}

fn check_hosts(problems: &mut Problems, tail: &TailPlan) {
    for (key, host) in
        [("producer_host", &tail.producer_host), ("consumer_host", &tail.consumer_host)]
    {
        let is_name = host.as_ref().is_none_or(|host| {
            !host.is_empty() && !host.starts_with('-') && !host.contains(char::is_whitespace)
        });
        problems.require(&format!("tail.{key}"), is_name, "is not a host name that `ssh` accepts");
    }
    let folder = tail.host_drivers.as_ref();
    problems.require(
        "tail.host_drivers",
        folder.is_none_or(|folder| folder.starts_with('/')),
        "must be an absolute path",
    );
}

fn check_times(problems: &mut Problems, tail: &TailPlan) {
    let work = tail.work;
    problems.require("tail.work", work.0 <= MOST_WORK, || {
        format!("is `{work}`, more than 1000 seconds per message")
    });
    problems.require(
        "tail.work",
        work.0.subsec_nanos().is_multiple_of(1000),
        "must be whole microseconds",
    );
    let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
    problems.require("tail.rate_per_s", tail.rate_per_s.is_none_or(is_rate), "must be above 0");
    for (key, span) in [("idle", tail.idle), ("limit", tail.limit)] {
        problems.require(
            &format!("tail.{key}"),
            span.0.subsec_nanos() == 0 && !span.0.is_zero(),
            || format!("is `{span}`, but must be whole seconds from 1"),
        );
    }
}
