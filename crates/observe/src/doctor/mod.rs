//! Checks of a host and a server before a run: [`observe`] reads facts, pure functions turn them
//! into verdicts ([`examine`]), and [`change`] applies and reverts advised changes.
//!
//! Advice comes from MongoDB's manual: the pages "Production Notes", "Operations Checklist",
//! "TCMalloc Performance Optimization" and "UNIX ulimit Settings", at
//! <https://www.mongodb.com/docs/manual/administration/>. A comment at the check marks advice of
//! our own.

pub mod change;
mod cpu;
pub mod facts;
mod finding;
mod firmware;
mod memory;
pub mod network;
pub mod processes;
mod server;
mod storage;

#[cfg(test)]
mod tests;

pub use cpu::level_of as level_of_other_load;
pub use facts::{Facts, OpenServer, Product, RoundTrip, ServerFacts, Subject, WATCH, observe};

use dyno_record::verdict::{CheckName, Level, Verdict};
use finding::Finding;

/// One verdict per check, in the order of [`CheckName::ALL`]. A check whose facts are missing is
/// [`Level::Unknown`].
pub fn examine(facts: &Facts) -> Vec<Verdict> {
    CheckName::ALL.iter().map(|check| judge(*check, facts)).collect()
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
        CheckName::IdleStates => firmware::idle_states(facts),
        CheckName::EnergyBias => firmware::energy_bias(facts),
        CheckName::Smt => firmware::smt(facts),
        CheckName::SocketNodes => firmware::socket_nodes(facts),
        CheckName::Prefetchers => firmware::prefetchers(facts),
        CheckName::ClockSource => cpu::clock_source(facts),
        CheckName::OtherLoad => cpu::other_load(facts),
        CheckName::SharedCores => cpu::shared_cores(facts),
        CheckName::OpenFiles => server::open_files(facts),
        CheckName::Processes => server::processes(facts),
        CheckName::BindAddress => server::bind_address(facts),
        CheckName::RoundTrip => server::round_trip(facts),
        CheckName::ServerKernel => server::kernel(facts),
        CheckName::ServerTracing => server::tracing(facts),
        CheckName::FreeConnections => server::free_connections(facts),
    }
}

/// Checks that do not apply to this machine if the server is on another one.
fn concerns_server_host(check: CheckName) -> bool {
    !matches!(
        check,
        CheckName::OwnHugePages
            | CheckName::CpuGovernor
            | CheckName::CpuTurbo
            | CheckName::IdleStates
            | CheckName::EnergyBias
            | CheckName::ClockSource
            | CheckName::OtherLoad
            | CheckName::SharedCores
            | CheckName::BindAddress
            | CheckName::RoundTrip
            | CheckName::ServerTracing
            | CheckName::FreeConnections
    )
}

impl Facts {
    fn server_is_elsewhere(&self) -> bool {
        self.subject.server.as_ref().is_some_and(|server| !server.local)
    }
}
