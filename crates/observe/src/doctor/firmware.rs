//! Checks of firmware settings that a running system shows: idle states, energy bias, threads per
//! core, nodes per socket, prefetchers. Vendors advise these values for a database under load. This
//! program changes none of them.

use super::facts::Facts;
use super::finding::{Finding, by_hand, judged};
use dyno_record::verdict::Level;

/// C1E needs about 10 µs; the next state of current CPUs needs 50 µs or more.
const LONGEST_EXIT_US: u64 = 10;

pub(super) fn idle_states(facts: &Facts) -> Finding {
    let why = "a CPU in a deep idle state needs up to a fraction of a millisecond to wake up, \
        which adds to latencies at low load";
    let advised = "no deeper than C1E (an exit within 10 µs)";
    judged(&facts.idle_states, advised, why, |states| {
        let deep = states
            .iter()
            .filter(|state| state.enabled && state.exit_latency_us > LONGEST_EXIT_US)
            .max_by_key(|state| state.exit_latency_us);
        match deep {
            Some(state) => {
                let found =
                    format!("{} is on, with an exit of {} µs", state.name, state.exit_latency_us);
                let change = by_hand(format!("sudo cpupower idle-set -D {LONGEST_EXIT_US}"));
                (Level::Warn, found, Some(change))
            }
            None => (Level::Pass, "no deep state is on".to_owned(), None),
        }
    })
}

pub(super) fn energy_bias(facts: &Facts) -> Finding {
    let why = "a CPU that saves energy raises its frequency late, so that bursts are slower than a steady load";
    judged(&facts.energy_bias, "`performance` (a bias of 0)", why, |bias| {
        let level = match bias.as_str() {
            "performance" | "0" => Level::Pass,
            _ => Level::Warn,
        };
        let change = match bias.parse::<u64>() {
            Ok(_) => "sudo cpupower set --perf-bias 0",
            Err(_) => {
                "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference"
            }
        };
        (level, format!("`{bias}`"), Some(by_hand(change)))
    })
}

pub(super) fn smt(facts: &Facts) -> Finding {
    let why = "two threads of a core serve more operations than one, so machines with and without \
        them cannot be compared";
    judged(&facts.smt, "on", why, |control| {
        let (level, change) = match control.as_str() {
            "on" => (Level::Pass, None),
            "off" => {
                let change = "echo on | sudo tee /sys/devices/system/cpu/smt/control";
                (Level::Warn, Some(by_hand(change)))
            }
            "forceoff" => (Level::Warn, Some(by_hand("boot without `nosmt`"))),
            // The CPU or the firmware does not support it.
            _ => (Level::Pass, None),
        };
        (level, format!("`{control}`"), change)
    })
}

pub(super) fn socket_nodes(facts: &Facts) -> Finding {
    let why = "a server larger than its node accesses memory of other nodes more slowly, even in \
        the same socket";
    judged(&facts.nodes_per_socket, "one NUMA node for each socket", why, |nodes| {
        let level = if *nodes > 1 { Level::Warn } else { Level::Pass };
        let change = by_hand(
            "turn off SNC (Intel) or choose NPS1 (AMD) in the firmware, or place a server in each node",
        );
        (level, format!("{nodes} in each socket"), Some(change))
    })
}

pub(super) fn prefetchers(facts: &Facts) -> Finding {
    let why = "reading ahead into the CPU caches speeds up scans and large documents";
    judged(&facts.prefetchers_off, "all on", why, |off| {
        if off.is_empty() {
            return (Level::Pass, "all on".to_owned(), None);
        }
        let change = by_hand("turn them on in the firmware");
        (Level::Warn, format!("off: {}", off.join(", ")), Some(change))
    })
}
