//! Doubts about the machine. Settings that concern the server count only if it is on this machine:
//! of other machines nothing is known. Runs that hold the verdicts of `dyno doctor` are judged by
//! those; the settings are looked at in the record of older runs.

use super::{Facts, about_run};
use dyno_record::model::{Caveat, CaveatKind};
use dyno_record::quantity::Quantity;
use dyno_record::verdict::{CheckName, Level};

/// Clock sources that are read without a system call and count with the CPU. The two of
/// hypervisors are scaled readings of the same counter.
const GOOD_CLOCKS: [&str; 4] = [
    "tsc",
    "arch_sys_counter",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
];
/// A clock that is read without a system call costs 20 to 50 ns; above 100 ns it goes through the
/// kernel, and two readings are a visible part of a fast operation.
const SLOW_CLOCK_NS: f64 = 100.0;
/// MongoDB's production notes ask for a readahead of 8 to 32 sectors of 512 bytes.
const MAX_READAHEAD_BYTES: u64 = 32 * 512;
/// First major version of MongoDB whose allocator wants transparent huge pages.
const THP_WANTED_FROM: u64 = 8;

/// Client and server share the machine.
pub(super) fn shared_machine(facts: &Facts<'_>) -> Vec<Caveat> {
    if !facts.document.server.local {
        return Vec::new();
    }
    let cpus = match facts.document.environment.cpus {
        Some(1) => "its one CPU".to_owned(),
        Some(cpus) => format!("its {cpus} CPUs"),
        None => "its CPUs".to_owned(),
    };
    vec![about_run(
        CaveatKind::SharedMachine,
        format!("client and server share the machine and {cpus}; each slows the other"),
        "fit for comparing settings on this machine; for absolute figures use two machines and `--uri`",
    )]
}

/// Checks of machine and server that failed before the run. What client and server take from each
/// other is said of every run on one machine, and not again for their CPUs.
pub(super) fn failed_checks(facts: &Facts<'_>) -> Vec<Caveat> {
    let verdicts = facts.document.environment.doctor.iter();
    verdicts
        .filter(|verdict| verdict.level == Level::Fail && verdict.check != CheckName::SharedCores)
        .map(|verdict| Caveat {
            kind: match verdict.check {
                CheckName::CpuGovernor => CaveatKind::CpuFrequency,
                CheckName::ClockSource => CaveatKind::ClockCoarse,
                CheckName::OtherLoad => CaveatKind::SharedMachine,
                _ => CaveatKind::MachineSetting,
            },
            message: format!(
                "the check `{}` fails: found {}, advised {}; {}",
                verdict.check, verdict.found, verdict.advised, verdict.why
            ),
            hint: verdict.change.as_ref().map(|change| change.command.clone()),
            phase: None,
        })
        .collect()
}

/// Whether the checks were made: then they say what the settings below mean.
fn is_checked(facts: &Facts<'_>) -> bool {
    !facts.document.environment.doctor.is_empty()
}

/// CPU frequency is not fixed.
pub(super) fn cpu_frequency(facts: &Facts<'_>) -> Vec<Caveat> {
    if is_checked(facts) {
        return Vec::new();
    }
    match facts.document.environment.cpu_governor.as_deref() {
        None | Some("performance") => Vec::new(),
        Some(governor) => vec![about_run(
            CaveatKind::CpuFrequency,
            format!(
                "the CPU frequency governor is `{governor}`; latencies at low load include waking up"
            ),
            "set the governor to `performance`",
        )],
    }
}

/// The clock is coarse or slow to read.
pub(super) fn clock_coarse(facts: &Facts<'_>) -> Vec<Caveat> {
    let environment = &facts.document.environment;
    let mut reasons = Vec::new();
    if let Some(source) = environment.clock_source.as_deref()
        && !GOOD_CLOCKS.contains(&source)
        && !is_checked(facts)
    {
        reasons.push(format!("the clock source is `{source}`"));
    }
    if let Some(cost_ns) = environment.clock_read_ns
        && cost_ns > SLOW_CLOCK_NS
    {
        reasons.push(format!("reading the clock takes {cost_ns:.0} ns"));
    }
    if reasons.is_empty() {
        return Vec::new();
    }
    vec![about_run(
        CaveatKind::ClockCoarse,
        reasons.join("; "),
        "boot with `clocksource=tsc` if the CPU's counter is stable",
    )]
}

/// Memory settings that are known to disturb a server.
pub(super) fn settings(facts: &Facts<'_>) -> Vec<Caveat> {
    if !facts.document.server.local || is_checked(facts) {
        return Vec::new();
    }
    huge_pages(facts).into_iter().chain(swap(facts)).collect()
}

/// MongoDB's advice on transparent huge pages turned round with version 8.0; other servers give none.
fn huge_pages(facts: &Facts<'_>) -> Option<Caveat> {
    let server = &facts.document.server;
    let mode = facts
        .document
        .environment
        .transparent_hugepages
        .as_deref()?;
    if server.kind == "embedded" {
        return None;
    }
    let version = server.version.as_deref()?;
    let major: u64 = version.split('.').next()?.parse().ok()?;
    let advised = if major >= THP_WANTED_FROM {
        "always"
    } else {
        "never"
    };
    (mode != advised).then(|| {
        about_run(
            CaveatKind::MachineSetting,
            format!("transparent huge pages are `{mode}`; MongoDB {version} is advised to run with `{advised}`"),
            "write the advised mode to /sys/kernel/mm/transparent_hugepage/enabled before the server starts",
        )
    })
}

fn swap(facts: &Facts<'_>) -> Option<Caveat> {
    let swap_bytes = facts
        .document
        .environment
        .swap_bytes
        .filter(|size| *size > 0)?;
    Some(about_run(
        CaveatKind::MachineSetting,
        format!(
            "the machine has {} of swap; pages of the server may be moved there during a run",
            Quantity::bytes(swap_bytes)
        ),
        "turn it off (`swapoff -a`), or set `vm.swappiness` to 1",
    ))
}

/// Settings of the storage that holds the server's data.
pub(super) fn storage_settings(facts: &Facts<'_>) -> Vec<Caveat> {
    if is_checked(facts) {
        return Vec::new();
    }
    let storage = facts.document.environment.data_storage.as_ref();
    let readahead = storage.and_then(|storage| storage.readahead_bytes);
    match readahead {
        Some(readahead_bytes) if readahead_bytes > MAX_READAHEAD_BYTES => vec![about_run(
            CaveatKind::MachineSetting,
            format!(
                "the readahead of the data's device is {}; MongoDB is advised to run with at most {}",
                Quantity::bytes(readahead_bytes),
                Quantity::bytes(MAX_READAHEAD_BYTES)
            ),
            "set it with `blockdev --setra 32`, unless the data fits into memory",
        )],
        _ => Vec::new(),
    }
}
