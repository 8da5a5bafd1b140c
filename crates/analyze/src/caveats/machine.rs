//! Caveats about the machine. Settings that affect the server count only if it is on this machine: nothing is
//! known about other machines. Runs with the results of `dyno doctor` are judged by them; for older runs the
//! recorded settings are judged.

use super::facts::Facts;
use crate::values::{bytes, us};
use dyno_record::model::{Caveat, CaveatKind, Environment};
use dyno_record::statement;
use dyno_record::verdict::{CheckName, Level};

/// Clock sources that are read without a system call and count with the CPU. The two hypervisor clocks are
/// scaled readings of the same counter.
const GOOD_CLOCKS: [&str; 4] =
    ["tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"];
/// A clock that is read without a system call costs 20 to 50 ns; above 100 ns it goes through the kernel, and
/// two readings are a visible part of a fast operation.
const SLOW_CLOCK_NS: f64 = 100.0;
/// MongoDB's production notes recommend a readahead of 8 to 32 sectors of 512 bytes.
const MAX_READAHEAD_BYTES: u64 = 32 * 512;
/// First major version of MongoDB with an allocator that needs transparent huge pages.
const THP_WANTED_FROM: u64 = 8;

/// Client and server share the machine.
pub(super) fn shared_machine(facts: &Facts<'_>) -> Option<Caveat> {
    let environment = &facts.document.environment;
    let cpus = environment.machine_cpus.or(environment.cpus);
    let said = statement!("client-and-server-share-machine", cpus = cpus);
    let is_shared = facts.document.server.local;
    is_shared.then(|| Caveat::of_run(CaveatKind::SharedMachine, said))
}

/// Checks of machine and server that failed before the measurement. Competition between client and server has
/// its own caveat for every run on one machine, so it is not repeated for their CPUs.
pub fn failed_checks(environment: &Environment) -> Vec<Caveat> {
    environment
        .doctor
        .iter()
        .filter(|verdict| verdict.level == Level::Fail && verdict.check != CheckName::SharedCores)
        .map(|verdict| Caveat {
            kind: kind_of_check(verdict.check),
            statement: statement!(
                "check-fails",
                check = verdict.check.as_str(),
                found = &verdict.found,
                advised = &verdict.advised,
                why = &verdict.why,
                change = verdict.change.as_ref().map(|change| &change.command)
            ),
            phase: None,
        })
        .collect()
}

/// Whether the check `other_load` failed.
pub fn has_other_load(environment: &Environment) -> bool {
    environment
        .doctor
        .iter()
        .any(|one| one.check == CheckName::OtherLoad && one.level == Level::Fail)
}

/// The kind of the caveat of a failed check.
pub fn kind_of_check(check: CheckName) -> CaveatKind {
    match check {
        CheckName::CpuGovernor => CaveatKind::CpuFrequency,
        CheckName::ClockSource => CaveatKind::ClockCoarse,
        CheckName::OtherLoad => CaveatKind::SharedMachine,
        _ => CaveatKind::MachineSetting,
    }
}

/// Whether the checks were made: then they judge the settings below.
fn is_checked(facts: &Facts<'_>) -> bool {
    !facts.document.environment.doctor.is_empty()
}

/// CPU frequency is not fixed.
pub(super) fn cpu_frequency(facts: &Facts<'_>) -> Option<Caveat> {
    let governor = facts.document.environment.cpu_governor.as_deref()?;
    let said = statement!("cpu-governor", governor = governor);
    let is_free = governor != "performance" && !is_checked(facts);
    is_free.then(|| Caveat::of_run(CaveatKind::CpuFrequency, said))
}

/// The clock is coarse or slow to read.
pub(super) fn clock_coarse(facts: &Facts<'_>) -> Option<Caveat> {
    let environment = &facts.document.environment;
    let mut reasons = Vec::new();
    if let Some(source) = environment.clock_source.as_deref()
        && !GOOD_CLOCKS.contains(&source)
        && !is_checked(facts)
    {
        reasons.push(statement!("clock-source", source = source));
    }
    if let Some(cost_ns) = environment.clock_read_ns
        && cost_ns > SLOW_CLOCK_NS
    {
        let cost = us(cost_ns / 1e3);
        reasons.push(statement!("clock-slow-to-read", cost = cost));
    }
    (!reasons.is_empty()).then(|| {
        let said = statement!("clock-coarse", reasons = reasons);
        Caveat::of_run(CaveatKind::ClockCoarse, said)
    })
}

/// Memory settings that are known to disturb a server.
pub(super) fn settings(facts: &Facts<'_>) -> Vec<Caveat> {
    if !facts.document.server.local || is_checked(facts) {
        return Vec::new();
    }
    huge_pages(facts).into_iter().chain(swap(facts)).collect()
}

/// MongoDB's advice on transparent huge pages was reversed in version 8.0; other servers give none.
fn huge_pages(facts: &Facts<'_>) -> Option<Caveat> {
    let server = &facts.document.server;
    let mode = facts.document.environment.transparent_hugepages.as_deref()?;
    if server.kind == "embedded" {
        return None;
    }
    let version = server.version.as_deref()?;
    let major: u64 = version.split('.').next()?.parse().ok()?;
    let advised = if major >= THP_WANTED_FROM { "always" } else { "never" };
    (mode != advised).then(|| {
        Caveat::of_run(
            CaveatKind::MachineSetting,
            statement!("huge-pages", mode = mode, version = version, advised = advised),
        )
    })
}

fn swap(facts: &Facts<'_>) -> Option<Caveat> {
    let swap_bytes = facts.document.environment.swap_bytes.filter(|size| *size > 0)?;
    Some(Caveat::of_run(
        CaveatKind::MachineSetting,
        statement!("has-swap", size = bytes(swap_bytes as f64)),
    ))
}

/// Settings of the data storage.
pub(super) fn storage_settings(facts: &Facts<'_>) -> Option<Caveat> {
    let storage = facts.document.environment.data_storage.as_ref()?;
    let readahead_bytes = storage.readahead_bytes?;
    let said = statement!(
        "readahead",
        found = bytes(readahead_bytes as f64),
        advised = bytes(MAX_READAHEAD_BYTES as f64)
    );
    let is_large = readahead_bytes > MAX_READAHEAD_BYTES && !is_checked(facts);
    is_large.then(|| Caveat::of_run(CaveatKind::MachineSetting, said))
}
