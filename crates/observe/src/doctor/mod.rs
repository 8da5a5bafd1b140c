//! Checks of a host and a server before a run: facts are read ([`observe`]), pure functions turn
//! them into verdicts ([`examine`]), and what is wrong can be changed and changed back ([`change`]).
//!
//! Advice comes from MongoDB's manual: the pages "Production Notes", "Operations Checklist",
//! "TCMalloc Performance Optimization" and "UNIX ulimit Settings", at
//! <https://www.mongodb.com/docs/manual/administration/>. Where it is ours, the check says why.

pub mod change;
mod cpu;
pub mod facts;
mod memory;
pub mod network;
pub mod processes;
mod server;
mod storage;

#[cfg(test)]
mod tests;

pub use facts::{Facts, Product, RoundTrip, ServerFacts, Subject, observe};

use crate::health::{Health, Reading};
use dyno_record::verdict::{Action, Change, CheckName, Level, Verdict};
use std::path::PathBuf;

/// One verdict per check, in the order of [`CheckName::ALL`]. What is missing among the facts makes
/// the checks that need it [`Level::Unknown`].
pub fn examine(facts: &Facts) -> Vec<Verdict> {
    CheckName::ALL
        .iter()
        .map(|check| judge(*check, facts))
        .collect()
}

fn judge(check: CheckName, facts: &Facts) -> Verdict {
    let finding = if concerns_server_host(check) && facts.server_is_elsewhere() {
        Finding::elsewhere()
    } else {
        finding(check, facts)
    };
    Verdict {
        check,
        level: finding.level,
        found: finding.found,
        advised: finding.advised,
        why: finding.why.to_owned(),
        change: finding.change.filter(|_| finding.level >= Level::Warn),
    }
}

fn finding(check: CheckName, facts: &Facts) -> Finding {
    match check {
        CheckName::HugePages => memory::huge_pages(facts),
        CheckName::HugePagesDefrag => memory::huge_pages_defrag(facts),
        CheckName::HugePagesPadding => memory::huge_pages_padding(facts),
        CheckName::OwnHugePages => memory::own_huge_pages(facts),
        CheckName::Swappiness => memory::swappiness(facts),
        CheckName::ZoneReclaim => memory::zone_reclaim(facts),
        CheckName::NumaBalancing => memory::numa_balancing(facts),
        CheckName::NumaInterleave => memory::numa_interleave(facts),
        CheckName::MaxMapCount => memory::max_map_count(facts),
        CheckName::CacheMemory => memory::cache_memory(facts),
        CheckName::Readahead => storage::readahead(facts),
        CheckName::Filesystem => storage::filesystem(facts),
        CheckName::AccessTimes => storage::access_times(facts),
        CheckName::FreeDisk => storage::free_disk(facts),
        CheckName::CpuGovernor => cpu::governor(facts),
        CheckName::CpuTurbo => cpu::turbo(facts),
        CheckName::ClockSource => cpu::clock_source(facts),
        CheckName::OtherLoad => cpu::other_load(facts),
        CheckName::SharedCores => cpu::shared_cores(facts),
        CheckName::OpenFiles => server::open_files(facts),
        CheckName::Processes => server::processes(facts),
        CheckName::BindAddress => server::bind_address(facts),
        CheckName::RoundTrip => server::round_trip(facts),
    }
}

/// Checks that say nothing on this machine if the server is on another one.
fn concerns_server_host(check: CheckName) -> bool {
    !matches!(
        check,
        CheckName::OwnHugePages
            | CheckName::CpuGovernor
            | CheckName::CpuTurbo
            | CheckName::ClockSource
            | CheckName::OtherLoad
            | CheckName::SharedCores
            | CheckName::BindAddress
            | CheckName::RoundTrip
    )
}

impl Facts {
    fn server_is_elsewhere(&self) -> bool {
        self.subject
            .server
            .as_ref()
            .is_some_and(|server| !server.local)
    }
}

/// A verdict without the name of its check.
#[derive(Clone, Debug)]
struct Finding {
    level: Level,
    found: String,
    advised: String,
    why: &'static str,
    change: Option<Change>,
}

impl Finding {
    fn new(
        level: Level,
        found: impl Into<String>,
        advised: impl Into<String>,
        why: &'static str,
    ) -> Self {
        Finding {
            level,
            found: found.into(),
            advised: advised.into(),
            why,
            change: None,
        }
    }

    fn elsewhere() -> Self {
        Finding::new(
            Level::Unknown,
            "the server is on another machine",
            "run `dyno doctor` there",
            "the setting matters on the server's machine",
        )
    }

    /// Shown only if something is wrong.
    fn with_change(mut self, change: Option<Change>) -> Self {
        self.change = change;
        self
    }
}

/// What a check says whose value cannot be read.
fn unread(health: &Health, advised: impl Into<String>, why: &'static str) -> Finding {
    let reason = health.reason().unwrap_or("it was not read");
    Finding::new(Level::Unknown, format!("not known: {reason}"), advised, why)
}

/// Judges a value that was read.
fn judged<T>(
    reading: &Reading<T>,
    advised: &str,
    why: &'static str,
    judge: impl FnOnce(&T) -> (Level, String, Option<Change>),
) -> Finding {
    match reading {
        Ok(value) => {
            let (level, found, change) = judge(value);
            Finding::new(level, found, advised, why).with_change(change)
        }
        Err(health) => unread(health, advised, why),
    }
}

/// Writes one value to one file.
fn write_file(path: &str, value: &str) -> Change {
    Change {
        command: format!("echo {value} | sudo tee {path}"),
        actions: vec![write_action(path, value)],
    }
}

fn write_action(path: &str, value: &str) -> Action {
    Action::Write {
        path: PathBuf::from(path),
        value: value.to_owned(),
    }
}

/// Sets one variable of the kernel.
fn sysctl(name: &str, value: &str) -> Change {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    Change {
        command: format!("sudo sysctl -w {name}={value}"),
        actions: vec![write_action(&path, value)],
    }
}

/// A change that nobody but a person makes.
fn by_hand(command: impl Into<String>) -> Change {
    Change {
        command: command.into(),
        actions: Vec::new(),
    }
}
