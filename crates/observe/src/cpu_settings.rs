//! CPU and firmware settings that decide how fast and how evenly a machine works. A setting is
//! absent if the machine does not show it: most virtual machines show few, and only root may read
//! some files.

use crate::health::{Health, Reading};
use crate::host::{
    container, field, has_hypervisor, line, members_of_list, number, online_list, text, turbo,
};
use dyno_record::model::{CpuSettings, IdleState};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";

/// Upper bound on the idle states read per CPU; the kernel has at most ten.
const MOST_IDLE_STATES: u32 = 16;

/// Register of Intel's processors since Nehalem with one bit per hardware prefetcher; a set bit
/// turns it off. (Intel, "Disclosure of Hardware Prefetcher Control on Some Intel Processors".)
const MISC_FEATURE_CONTROL: u64 = 0x1a4;

/// Names of the prefetchers, from bit 0 of the register.
const PREFETCHERS: [&str; 4] = ["L2 stream", "L2 adjacent line", "L1 next line", "L1 IP"];

pub(crate) fn read(root: &Path) -> CpuSettings {
    let of = |path: &str| line(root, &format!("{CPU}/{path}")).ok();
    let pstate = of("intel_pstate/status");
    let mode = pstate.clone().or_else(|| of("amd_pstate/status"));
    CpuSettings {
        frequency_driver: of("cpu0/cpufreq/scaling_driver").map(|driver| match mode {
            Some(mode) => format!("{driver} ({mode})"),
            None => driver,
        }),
        energy_preference: energy_preference(root).ok(),
        turbo: turbo(root).ok().map(|(is_on, _)| is_on),
        // The file exists only if the hardware chooses the frequencies; passive mode does not show
        // who does.
        hardware_pstates: (pstate.as_deref() == Some("active"))
            .then(|| root.join(CPU).join("intel_pstate/hwp_dynamic_boost").exists()),
        idle_driver: of("cpuidle/current_driver"),
        idle_states: idle_states(root).unwrap_or_default(),
        smt: smt(root).ok(),
        nodes_per_socket: nodes_per_socket(root).ok(),
        prefetchers_off: prefetchers_off(root).ok(),
        microcode: of("cpu0/microcode/version").or_else(|| of_cpuinfo(root, "microcode")),
        bios: bios(root),
        irqbalance: irqbalance(root),
    }
}

fn of_cpuinfo(root: &Path, name: &str) -> Option<String> {
    let text = text(root, "proc/cpuinfo").ok()?;
    field(&text, name).map(str::to_owned)
}

fn energy_preference(root: &Path) -> Reading<String> {
    line(root, &format!("{CPU}/cpu0/cpufreq/energy_performance_preference"))
}

/// CPU 0's preference as a word, or else its bias from 0 (performance) to 15 (energy).
pub(crate) fn energy_bias(root: &Path) -> Reading<String> {
    let bias = || line(root, &format!("{CPU}/cpu0/power/energy_perf_bias"));
    energy_preference(root).or_else(|_| bias())
}

pub(crate) fn smt(root: &Path) -> Reading<String> {
    line(root, &format!("{CPU}/smt/control"))
}

/// Idle states of CPU 0, the lightest first.
pub(crate) fn idle_states(root: &Path) -> Reading<Vec<IdleState>> {
    // The first state gives the reason if there are none.
    line(root, &format!("{CPU}/cpu0/cpuidle/state0/name"))?;
    let state = |place: u32| {
        let file = |name: &str| format!("{CPU}/cpu0/cpuidle/state{place}/{name}");
        Some(IdleState {
            name: line(root, &file("name")).ok()?,
            exit_latency_us: number(root, &file("latency")).ok()?,
            enabled: number(root, &file("disable")).ok()? == 0,
        })
    };
    Ok((0..MOST_IDLE_STATES).map_while(state).collect())
}

/// NUMA nodes with CPUs per socket: more than 1 with sub-NUMA clustering (Intel) or several nodes
/// per socket (AMD).
pub(crate) fn nodes_per_socket(root: &Path) -> Reading<u64> {
    let socket = |cpu: &u64| {
        let file = format!("{CPU}/cpu{cpu}/topology/physical_package_id");
        line(root, &file)
    };
    let cpus = online_list(root)?;
    let sockets: Reading<BTreeSet<String>> = cpus.iter().map(socket).collect();
    let uneven = || Health::unsupported("the sockets have different numbers of nodes");
    let nodes = line(root, &format!("{NODE}/online"))?;
    let nodes = members_of_list(&nodes).ok_or_else(uneven)?;
    // Nodes without CPUs are a different kind of memory.
    let has_cpus = |node: &&u64| line(root, &format!("{NODE}/node{node}/cpulist")).is_ok();
    let nodes = nodes.iter().filter(has_cpus).count() as u64;
    let sockets = sockets?.len() as u64;
    let is_even = nodes > 0 && sockets > 0 && nodes.is_multiple_of(sockets);
    is_even.then(|| nodes / sockets).ok_or_else(uneven)
}

/// Hardware prefetchers that are off. Not read in a virtual machine, where the hypervisor makes up
/// the register.
pub(crate) fn prefetchers_off(root: &Path) -> Reading<Vec<String>> {
    if has_hypervisor(root) {
        return Err(Health::unsupported(
            "a virtual machine does not show the registers of the CPU",
        ));
    }
    if of_cpuinfo(root, "vendor_id").as_deref() != Some("GenuineIntel") {
        return Err(Health::unsupported("only Intel CPUs show it"));
    }
    let mut bytes = [0; 8];
    let file = fs::File::open(root.join("dev/cpu/0/msr"));
    file.and_then(|file| file.read_exact_at(&mut bytes, MISC_FEATURE_CONTROL)).map_err(
        |error| {
            let reason =
                format!("cannot read `/dev/cpu/0/msr`: {error}; run `modprobe msr` as root");
            Health::Failed { reason }
        },
    )?;
    let bits = u64::from_le_bytes(bytes);
    let off = PREFETCHERS.iter().enumerate().filter(|(place, _)| bits >> place & 1 == 1);
    Ok(off.map(|(_, name)| (*name).to_owned()).collect())
}

/// BIOS vendor, version and date.
fn bios(root: &Path) -> Option<String> {
    let of = |name: &str| line(root, &format!("sys/class/dmi/id/bios_{name}")).ok();
    let version = of("version")?;
    let known = [of("vendor"), Some(version), of("date")];
    Some(known.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

/// Whether `irqbalance` runs; unknown in a container, which does not see the host's processes.
fn irqbalance(root: &Path) -> Option<bool> {
    if container(root).is_some() {
        return None;
    }
    let mut processes = fs::read_dir(root.join("proc")).ok()?.flatten();
    Some(processes.any(|entry| {
        let name = fs::read_to_string(entry.path().join("comm"));
        name.is_ok_and(|name| name.trim() == "irqbalance")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::Fixture;

    const INTEL: &str =
        "vendor_id\t: GenuineIntel\nflags\t\t: fpu sse hwp\nmicrocode\t: 0x2b000461\n";

    fn with_registers(fixture: Fixture, value: u64) -> Fixture {
        let path = fixture.root().join("dev/cpu/0/msr");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = fs::File::create(path).unwrap();
        file.write_all_at(&value.to_le_bytes(), 0x1a4).unwrap();
        fixture
    }

    /// Two sockets with two nodes each.
    fn server() -> Fixture {
        let cpu = |path: &str| format!("sys/devices/system/cpu/{path}");
        let mut fixture = Fixture::new()
            .with("proc/cpuinfo", INTEL)
            .with("proc/812/comm", "irqbalance\n")
            .with(&cpu("cpu0/cpufreq/scaling_driver"), "intel_pstate\n")
            .with(&cpu("cpu0/cpufreq/energy_performance_preference"), "balance_performance\n")
            .with(&cpu("intel_pstate/status"), "active\n")
            .with(&cpu("intel_pstate/hwp_dynamic_boost"), "0\n")
            .with(&cpu("intel_pstate/no_turbo"), "1\n")
            .with(&cpu("cpuidle/current_driver"), "intel_idle\n")
            .with(&cpu("smt/control"), "off\n")
            .with(&cpu("online"), "0-3\n")
            .with("sys/devices/system/node/online", "0-4\n")
            .with("sys/devices/system/node/node4/cpulist", "\n")
            .with("sys/class/dmi/id/bios_vendor", "Example Inc.\n")
            .with("sys/class/dmi/id/bios_version", "3.2\n")
            .with("sys/class/dmi/id/bios_date", "05/12/2025\n");
        for node in 0..4 {
            let file = format!("cpu{node}/topology/physical_package_id");
            fixture = fixture
                .with(&cpu(&file), &format!("{}\n", node / 2))
                .with(&format!("sys/devices/system/node/node{node}/cpulist"), &format!("{node}\n"));
        }
        let states = [("POLL", 0, 0), ("C1", 2, 0), ("C6", 133, 1)];
        for (place, (name, latency, disable)) in states.into_iter().enumerate() {
            let file = |what: &str| cpu(&format!("cpu0/cpuidle/state{place}/{what}"));
            fixture = fixture
                .with(&file("name"), name)
                .with(&file("latency"), &latency.to_string())
                .with(&file("disable"), &disable.to_string());
        }
        with_registers(fixture, 0b0010)
    }

    #[test]
    fn all_settings_of_a_server_are_read() {
        let state = |name: &str, exit_latency_us, enabled| IdleState {
            name: name.to_owned(),
            exit_latency_us,
            enabled,
        };
        assert_eq!(
            read(server().root()),
            CpuSettings {
                frequency_driver: Some("intel_pstate (active)".to_owned()),
                energy_preference: Some("balance_performance".to_owned()),
                turbo: Some(false),
                hardware_pstates: Some(true),
                idle_driver: Some("intel_idle".to_owned()),
                idle_states: vec![
                    state("POLL", 0, true),
                    state("C1", 2, true),
                    state("C6", 133, false)
                ],
                smt: Some("off".to_owned()),
                nodes_per_socket: Some(2),
                prefetchers_off: Some(vec!["L2 adjacent line".to_owned()]),
                microcode: Some("0x2b000461".to_owned()),
                bios: Some("Example Inc. 3.2 05/12/2025".to_owned()),
                irqbalance: Some(true),
            }
        );
    }

    #[test]
    fn settings_that_a_machine_does_not_show_are_absent() {
        let nothing = Fixture::new().with("proc/self/comm", "dyno\n");
        let read_of = |fixture: &Fixture| read(fixture.root());
        assert_eq!(
            read_of(&nothing),
            CpuSettings { irqbalance: Some(false), ..CpuSettings::default() }
        );
        assert_eq!(read_of(&server().with(".dockerenv", "")).irqbalance, None);
    }

    #[test]
    fn hwp_is_reported_only_with_an_active_driver() {
        let status = "sys/devices/system/cpu/intel_pstate/status";
        let of = |fixture: Fixture| read(fixture.root()).hardware_pstates;
        assert_eq!(of(Fixture::new().with(status, "active\n")), Some(false));
        assert_eq!(of(server().with(status, "passive\n")), None);
    }

    #[test]
    fn prefetchers_are_unknown_on_other_cpus_and_in_guests() {
        let of = |cpuinfo: &str| {
            let fixture = server().with("proc/cpuinfo", cpuinfo);
            read(fixture.root()).prefetchers_off
        };
        assert!(of(INTEL).is_some());
        assert_eq!(of(&INTEL.replace("GenuineIntel", "AuthenticAMD")), None);
        assert_eq!(of(&INTEL.replace("fpu", "hypervisor")), None);
        let none_off = with_registers(server(), 0);
        assert_eq!(read(none_off.root()).prefetchers_off, Some(Vec::new()));
    }
}
