//! Facts about a machine. Unreadable values are shown as unknown and never left out.

use crate::caveat::{CaveatBook, Topic};
use crate::facts::{count, or_unknown};
use crate::page::{Fact, FactList};
use dyno_record::disk::DiskCapacity;
use dyno_record::model::{CpuSettings, Environment, IdleState, StorageRecord};
use dyno_record::quantity::{Quantity, Unit};
use dyno_record::server::ServerMachine;
use dyno_record::storage::PreparedStorageRecord;
use dyno_record::verdict::{Level, Verdict};

/// Title used when hosts of a fleet have machines of their own.
pub(crate) const OF_CONTROLLER: &str = "Machine of the controller";

/// The machine of an experiment, if it is known.
pub(crate) fn list(environment: Option<&Environment>, book: &CaveatBook) -> Option<FactList> {
    titled("Machine", environment, book)
}

/// The machine with a given title.
pub(crate) fn titled(
    title: &'static str,
    environment: Option<&Environment>,
    book: &CaveatBook,
) -> Option<FactList> {
    environment.map(|environment| FactList { title: title.into(), facts: facts(environment, book) })
}

/// The machines of other hosts, with the names of the hosts.
pub(crate) fn of_hosts<'a>(
    hosts: impl IntoIterator<Item = (&'a str, &'a Environment)>,
) -> impl Iterator<Item = FactList> {
    hosts.into_iter().map(|(host, environment)| FactList {
        title: format!("Machine {host}").into(),
        facts: facts(environment, &CaveatBook::new(&[])),
    })
}

/// The machines of remote servers, with the address of the server that reported them.
pub(crate) fn of_servers<'a>(
    machines: impl ExactSizeIterator<Item = (&'a str, &'a ServerMachine)>,
) -> impl Iterator<Item = FactList> {
    let is_one = machines.len() == 1;
    machines.map(move |(address, machine)| FactList {
        title: match is_one {
            true => "Machine of the server".into(),
            false => format!("Machine of the server {address}").into(),
        },
        facts: reported(address, machine),
    })
}

fn reported(address: &str, machine: &ServerMachine) -> Vec<Fact> {
    let by = Fact::new("Reported by", format!("{address} (hostInfo)"));
    if let Some(reason) = &machine.reason {
        return vec![by, Fact::new("Unknown", reason)];
    }
    let plain = |label: &str, value: &Option<String>| Fact::new(label, or_unknown(value.as_ref()));
    vec![
        plain("Host", &machine.hostname),
        Fact::new("CPU", reported_processor(machine)),
        Fact::new("NUMA nodes", or_unknown(machine.numa_nodes)),
        Fact::new("Memory", reported_memory(machine)),
        plain("System", &machine.os),
        plain("Kernel", &machine.kernel),
        by,
    ]
}

/// `8 × AMD EPYC (x86_64), 2 for the server`.
fn reported_processor(machine: &ServerMachine) -> String {
    let model = or_unknown(machine.cpu_model.as_ref());
    let mut text = match machine.cpus {
        Some(cpus) => format!("{} × {model}", count(cpus)),
        None => model,
    };
    if let Some(kind) = &machine.architecture {
        text.push_str(&format!(" ({kind})"));
    }
    if let Some(usable) = machine.usable_cpus.filter(|_| machine.usable_cpus < machine.cpus) {
        text.push_str(&format!(", {} for the server", count(usable)));
    }
    text
}

fn reported_memory(machine: &ServerMachine) -> String {
    let size = or_unknown(machine.memory_bytes.map(Quantity::bytes));
    let limit = machine.memory_limit_bytes;
    match limit.filter(|_| limit < machine.memory_bytes) {
        Some(limit) => format!("{size}, {} for the server", Quantity::bytes(limit)),
        None => size,
    }
}

/// The hardware of a machine, its settings, and the results of its checks.
pub(crate) fn facts(environment: &Environment, book: &CaveatBook) -> Vec<Fact> {
    let marks = |topic| book.marks(topic, None);
    let settings = marks(Topic::MachineSettings);
    let size = |bytes: Option<u64>| or_unknown(bytes.map(Quantity::bytes));
    let plain = |label: &str, value: &Option<String>| Fact::new(label, or_unknown(value.as_ref()));
    let cpus = &environment.cpu_settings;
    let mut facts = vec![
        plain("Host", &environment.hostname),
        Fact::new("CPU", processor(environment)).marked(&marks(Topic::SharedMachine)),
        plain("CPU governor", &environment.cpu_governor).marked(&marks(Topic::CpuFrequency)),
        Fact::new("CPU frequencies", frequencies(cpus)).marked(&marks(Topic::CpuFrequency)),
        Fact::new("CPU idle states", idle_states(cpus)),
        Fact::new("Prefetchers", prefetchers(cpus)),
        plain("SMT", &cpus.smt),
        Fact::new("NUMA nodes", nodes(environment)),
        Fact::new("Memory", size(environment.memory_bytes)),
        Fact::new("Swap", size(environment.swap_bytes)).marked(&settings),
        plain("Transparent huge pages", &environment.transparent_hugepages).marked(&settings),
        Fact::new("Clock", clock(environment)).marked(&marks(Topic::Clock)),
        Fact::new("Load average before", or_unknown(environment.load_average)),
        Fact::new("irqbalance", irqbalance(cpus)),
        plain("Virtualization", &environment.virtualization),
        Fact::new("Firmware", firmware(cpus)),
        plain("System", &environment.os),
        plain("Kernel", &environment.kernel),
    ];
    if let Some(storage) = &environment.data_storage {
        facts.extend(storage_facts(storage, &settings));
    }
    facts.push(Fact::new("Checks", checks(&environment.doctor)).marked(&settings));
    facts
}

/// `8 × AMD EPYC, 31.2 GiB`; empty if neither is known.
pub(crate) fn in_short(environment: &Environment) -> String {
    let memory = environment.memory_bytes.map(Quantity::bytes);
    let known = environment.cpu_model.as_ref().map(|_| processor(environment));
    let parts = known.into_iter().chain(memory.map(|memory| memory.to_string()));
    parts.collect::<Vec<_>>().join(", ")
}

fn processor(environment: &Environment) -> String {
    let model = or_unknown(environment.cpu_model.as_ref());
    let known = environment.machine_cpus.or(environment.cpus);
    let mut text = match known {
        Some(cpus) => format!("{} × {model}", count(cpus)),
        None => model,
    };
    let allowed = environment.allowed_cpus.as_ref();
    if let Some(allowed) = allowed.filter(|_| environment.cpus < known) {
        text.push_str(&format!(", CPU {} for the client", allowed.cpus));
    }
    if let Some(quota) = allowed.and_then(|allowed| allowed.quota()) {
        let quota = Quantity::plain(quota);
        text.push_str(&format!(", CPU quota of the client {quota}"));
    }
    text
}

fn frequencies(cpus: &CpuSettings) -> String {
    let turbo = |is_on| if is_on { "turbo on" } else { "turbo off" };
    let chosen = |by_hardware| {
        if by_hardware { "chosen by the hardware" } else { "chosen by the kernel" }
    };
    let preference = cpus.energy_preference.as_ref();
    known([
        cpus.frequency_driver.clone(),
        cpus.hardware_pstates.map(|by| chosen(by).to_owned()),
        cpus.turbo.map(|is_on| turbo(is_on).to_owned()),
        preference.map(|preference| format!("energy preference `{preference}`")),
    ])
}

/// The known parts, joined.
fn known<const N: usize>(parts: [Option<String>; N]) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    or_unknown((!parts.is_empty()).then(|| parts.join(", ")))
}

fn idle_states(cpus: &CpuSettings) -> String {
    let state = |state: &IdleState| {
        let IdleState { name, exit_latency_us, enabled } = state;
        let off = if *enabled { "" } else { ", off" };
        format!("{name} ({exit_latency_us} µs{off})")
    };
    let states: Vec<String> = cpus.idle_states.iter().map(state).collect();
    let driver = cpus.idle_driver.as_ref();
    match (driver, states.is_empty()) {
        (Some(driver), false) => format!("{driver}: {}", states.join(", ")),
        (Some(driver), true) => driver.clone(),
        (None, _) => or_unknown((!states.is_empty()).then(|| states.join(", "))),
    }
}

fn prefetchers(cpus: &CpuSettings) -> String {
    or_unknown(cpus.prefetchers_off.as_ref().map(|off| match &off[..] {
        [] => "all on".to_owned(),
        off => format!("off: {}", off.join(", ")),
    }))
}

fn nodes(environment: &Environment) -> String {
    let nodes = or_unknown(environment.numa_nodes);
    match environment.cpu_settings.nodes_per_socket {
        Some(several) if several > 1 => format!("{nodes}, {several} for each socket"),
        _ => nodes,
    }
}

fn clock(environment: &Environment) -> String {
    let source = or_unknown(environment.clock_source.as_ref());
    match environment.clock_read_ns {
        Some(read_ns) => {
            let cost = Quantity::microseconds(read_ns / 1_000.0);
            format!("{source}, {cost} per reading")
        }
        None => source,
    }
}

fn irqbalance(cpus: &CpuSettings) -> String {
    let said = |runs| if runs { "runs" } else { "does not run" };
    or_unknown(cpus.irqbalance.map(said))
}

fn firmware(cpus: &CpuSettings) -> String {
    let microcode = cpus.microcode.as_ref();
    known([cpus.bios.clone(), microcode.map(|revision| format!("microcode {revision}"))])
}

/// The results of `dyno doctor`: names of the changes that it suggests, and counts of the other checks.
fn checks(verdicts: &[Verdict]) -> String {
    if verdicts.is_empty() {
        return "none were done".to_owned();
    }
    let of = |level| verdicts.iter().filter(move |one| one.level == level);
    let named = [(Level::Fail, "fail"), (Level::Warn, "warn")].map(|(level, word)| {
        let names: Vec<String> =
            of(level).map(|one| format!("`{}` ({})", one.check, one.found)).collect();
        (!names.is_empty()).then(|| format!("{word}: {}", names.join(", ")))
    });
    let [pass, unknown] = [Level::Pass, Level::Unknown].map(|level| of(level).count());
    let counts = format!("{pass} pass, {unknown} unknown");
    named.into_iter().flatten().chain([counts]).collect::<Vec<_>>().join("; ")
}

fn storage_facts(storage: &StorageRecord, marks: &[usize]) -> Vec<Fact> {
    let size = |bytes: Option<u64>| or_unknown(bytes.map(Quantity::bytes));
    let filesystem = format!(
        "{} ({})",
        or_unknown(storage.filesystem.as_ref()),
        or_unknown(storage.mount_options.as_ref())
    );
    let kind = match storage.rotational {
        Some(true) => ", rotational",
        Some(false) => ", not rotational",
        None => "",
    };
    let device = format!("{}{kind}", or_unknown(storage.device.as_ref()));
    let mut facts = vec![
        Fact::new("Data folder", &storage.path),
        Fact::new("File system", filesystem),
        Fact::new("Device", device),
    ];
    if let Some(prepared) = &storage.prepared {
        facts.extend([
            Fact::new("Storage made for the run", &prepared.setting),
            Fact::new("Devices of the storage", prepared.devices.join(", ")),
            Fact::new("Limit of the storage", limit(prepared)),
        ]);
        facts.extend(storage.capacities.iter().map(|(device, capacity)| {
            Fact::new(format!("Capacity of `{device}`"), capacity_of(capacity))
        }));
        let reason = prepared.no_capacity.as_ref();
        facts.extend(reason.map(|reason| Fact::new("Capacity not known", reason)));
    }
    facts.extend([
        Fact::new("Readahead", size(storage.readahead_bytes)).marked(marks),
        Fact::new("I/O scheduler", or_unknown(storage.scheduler.as_ref())),
        Fact::new("Free space before", size(storage.free_bytes)),
    ]);
    facts
}

/// Measured limits of storage without a server.
fn limit(prepared: &PreparedStorageRecord) -> String {
    match &prepared.limits {
        Some(limits) => format!(
            "{} random reads and {} synced writes of 4 KiB ({})",
            Quantity::per_second(limits.random_reads_per_s),
            Quantity::per_second(limits.synced_writes_per_s),
            limits.measured_by
        ),
        None => {
            let reason = prepared.not_measured.as_deref();
            format!("not measured: {}", reason.unwrap_or("unknown"))
        }
    }
}

/// Measured capacity of a device.
fn capacity_of(capacity: &DiskCapacity) -> String {
    let error = capacity
        .uncertainty_ratio
        .map(|ratio| format!("each known to ±{}", Quantity::ratio(ratio)));
    let per_s = |value: Option<f64>, what: &str| {
        value.map(|value| format!("{} {what}", Quantity::per_second(value)))
    };
    let bytes_per_s = |value: Option<f64>, what: &str| {
        value.map(|value| format!("{} {what}", Quantity::new(value, Unit::BytesPerSecond)))
    };
    let limit = capacity.limit_per_s.map(|limit| {
        format!("limited to {} reads and as many writes", Quantity::per_second(limit))
    });
    let parts = [
        per_s(capacity.read_per_s, "random reads"),
        per_s(capacity.write_per_s, "random writes of 4 KiB"),
        bytes_per_s(capacity.read_bytes_per_s, "read"),
        bytes_per_s(capacity.write_bytes_per_s, "written"),
        error,
        per_s(capacity.flush_per_s, "flushes at least"),
        limit,
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::storage::StorageLimitsRecord;
    use dyno_record::verdict::CheckName;

    fn value(environment: &Environment, label: &str) -> String {
        let facts = facts(environment, &CaveatBook::new(&[]));
        let mut facts = facts.into_iter().filter(|fact| fact.label == label);
        facts.next().expect("it is always there").value
    }

    fn server() -> Environment {
        let state = |name: &str, exit_latency_us, enabled| IdleState {
            name: name.to_owned(),
            exit_latency_us,
            enabled,
        };
        let verdict = |check, level, found: &str| Verdict {
            check,
            level,
            found: found.to_owned(),
            advised: String::new(),
            why: String::new(),
            change: None,
        };
        Environment {
            numa_nodes: Some(4),
            cpu_settings: CpuSettings {
                frequency_driver: Some("intel_pstate (active)".to_owned()),
                energy_preference: Some("balance_performance".to_owned()),
                turbo: Some(false),
                hardware_pstates: Some(true),
                idle_driver: Some("intel_idle".to_owned()),
                idle_states: vec![state("C1", 2, true), state("C6", 133, false)],
                smt: Some("off".to_owned()),
                nodes_per_socket: Some(2),
                prefetchers_off: Some(vec!["L2 adjacent line".to_owned()]),
                microcode: Some("0x2b000461".to_owned()),
                bios: Some("Example Inc. 3.2 05/12/2025".to_owned()),
                irqbalance: Some(true),
            },
            doctor: vec![
                verdict(CheckName::Swappiness, Level::Pass, "1"),
                verdict(CheckName::Readahead, Level::Fail, "16384 sectors"),
            ],
            ..Environment::default()
        }
    }

    #[test]
    fn every_cpu_setting_is_shown() {
        let labels = [
            "CPU frequencies",
            "CPU idle states",
            "Prefetchers",
            "SMT",
            "NUMA nodes",
            "irqbalance",
            "Firmware",
            "Checks",
        ];
        let lines = labels.map(|label| format!("{label}: {}", value(&server(), label)));
        insta::assert_snapshot!(lines.join("\n"), @r"
        CPU frequencies: intel_pstate (active), chosen by the hardware, turbo off, energy preference `balance_performance`
        CPU idle states: intel_idle: C1 (2 µs), C6 (133 µs, off)
        Prefetchers: off: L2 adjacent line
        SMT: off
        NUMA nodes: 4, 2 for each socket
        irqbalance: runs
        Firmware: Example Inc. 3.2 05/12/2025, microcode 0x2b000461
        Checks: fail: `readahead` (16384 sectors); 1 pass, 0 unknown
        ");
    }

    #[test]
    fn prepared_storage_is_shown_with_its_limits() {
        let mut environment = server();
        let storage = |prepared| StorageRecord {
            filesystem: Some("xfs".to_owned()),
            prepared: Some(prepared),
            ..StorageRecord::default()
        };
        let mut prepared = PreparedStorageRecord {
            setting: "btrfs-raid0 on loop:1GiB,loop:1GiB".to_owned(),
            devices: vec!["/dev/loop0".to_owned(), "/dev/loop1".to_owned()],
            size_bytes: 2 << 30,
            limits: Some(StorageLimitsRecord {
                random_reads_per_s: 9_000.0,
                synced_writes_per_s: 400.0,
                measured_by: "fio-3.33".to_owned(),
            }),
            not_measured: None,
            no_capacity: None,
        };
        environment.data_storage = Some(storage(prepared.clone()));
        let devices = value(&environment, "Devices of the storage");
        assert_eq!(devices, "/dev/loop0, /dev/loop1");
        let limit = value(&environment, "Limit of the storage");
        for part in ["9,000/s", "400.0/s", "(fio-3.33)"] {
            assert!(limit.contains(part), "{part}: {limit}");
        }
        let reason = "`fio` is not installed";
        prepared.limits = None;
        prepared.not_measured = Some(reason.to_owned());
        environment.data_storage = Some(storage(prepared));
        let limit = value(&environment, "Limit of the storage");
        assert!(limit.ends_with(reason) && limit != reason, "{limit}");
    }

    #[test]
    fn setting_is_unknown_when_the_machine_does_not_show_it() {
        let nothing = Environment::default();
        for label in ["CPU frequencies", "CPU idle states", "Prefetchers", "SMT"] {
            assert_eq!(value(&nothing, label), "unknown", "{label}");
        }
        for label in ["NUMA nodes", "irqbalance", "Firmware"] {
            assert_eq!(value(&nothing, label), "unknown", "{label}");
        }
        assert!(value(&nothing, "Checks").starts_with("none"));
        let mut one = server();
        one.cpu_settings.nodes_per_socket = Some(1);
        one.cpu_settings.prefetchers_off = Some(Vec::new());
        assert_eq!(value(&one, "NUMA nodes"), "4");
        assert_eq!(value(&one, "Prefetchers"), "all on");
    }
}
