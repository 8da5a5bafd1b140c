//! Stateless readers of `/proc`, `/sys` and `/etc` that describe a machine. Each takes the root of
//! the file tree, so that tests can pass a fixture.

use crate::health::{Health, Reading};
pub(crate) use dyno_record::cpus::members_of_list;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Host name.
pub(crate) fn hostname(root: &Path) -> Reading<String> {
    line(root, "proc/sys/kernel/hostname")
}

/// Kernel name and release, the first and third word of `uname -a`.
pub(crate) fn kernel(root: &Path) -> Reading<String> {
    let name = line(root, "proc/sys/kernel/ostype")?;
    let release = line(root, "proc/sys/kernel/osrelease")?;
    Ok(format!("{name} {release}"))
}

/// Name of the distribution.
pub(crate) fn os(root: &Path) -> Reading<String> {
    let text = text(root, "etc/os-release").or_else(|_| text(root, "usr/lib/os-release"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map(|name| name.trim_matches('"').to_owned())
        .ok_or_else(|| Health::not_understood(&root.join("etc/os-release"), "`PRETTY_NAME`"))
}

/// CPU model. Arm machines report maker and part numbers instead of a name.
pub(crate) fn cpu_model(root: &Path) -> Reading<String> {
    let path = "proc/cpuinfo";
    let text = text(root, path)?;
    if let Some(name) = field(&text, "model name") {
        return Ok(name.to_owned());
    }
    match (field(&text, "CPU implementer"), field(&text, "CPU part")) {
        (Some(maker), Some(part)) => Ok(format!("implementer {maker} part {part}")),
        _ => Err(Health::not_understood(&root.join(path), "CPU model")),
    }
}

/// Logical CPUs that this process may use, after affinity and cpusets.
pub(crate) fn cpus(root: &Path) -> Reading<u64> {
    let online = online_list(root).ok();
    let allowed = affinity(root, "proc/self/status", online.as_deref())?;
    Ok(allowed.len() as u64)
}

/// The online CPUs in the `status` of a process or thread. Kernels list all CPUs that could ever be
/// added.
pub(crate) fn affinity(root: &Path, path: &str, online: Option<&[u64]>) -> Reading<Vec<u64>> {
    let text = text(root, path)?;
    let allowed = field(&text, "Cpus_allowed_list").and_then(members_of_list);
    let mut allowed =
        allowed.ok_or_else(|| Health::not_understood(&root.join(path), "`Cpus_allowed_list`"))?;
    if let Some(online) = online.filter(|online| allowed.iter().any(|cpu| online.contains(cpu))) {
        allowed.retain(|cpu| online.contains(cpu));
    }
    Ok(allowed)
}

/// NUMA nodes that are online.
pub(crate) fn numa_nodes(root: &Path) -> Reading<u64> {
    let path = "sys/devices/system/node/online";
    count_of_list(&line(root, path)?)
        .ok_or_else(|| Health::not_understood(&root.join(path), "list of nodes"))
}

/// Frequency governor of CPU 0.
pub(crate) fn cpu_governor(root: &Path) -> Reading<String> {
    line(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
}

/// Memory of the machine.
pub(crate) fn memory_bytes(root: &Path) -> Reading<u64> {
    meminfo_bytes(root, "MemTotal")
}

/// Share of the memory that is available to processes.
pub(crate) fn available_memory_ratio(root: &Path) -> Reading<f64> {
    let available = meminfo_bytes(root, "MemAvailable")?;
    Ok(available as f64 / memory_bytes(root)?.max(1) as f64)
}

/// Swap of the machine; 0 without swap.
pub(crate) fn swap_bytes(root: &Path) -> Reading<u64> {
    meminfo_bytes(root, "SwapTotal")
}

/// Selected mode of transparent huge pages.
pub(crate) fn transparent_hugepages(root: &Path) -> Reading<String> {
    let path = "sys/kernel/mm/transparent_hugepage/enabled";
    selected(&line(root, path)?)
        .ok_or_else(|| Health::not_understood(&root.join(path), "selected mode"))
}

/// Clock source of the kernel.
pub(crate) fn clock_source(root: &Path) -> Reading<String> {
    line(root, "sys/devices/system/clocksource/clocksource0/current_clocksource")
}

/// One-minute load average.
pub(crate) fn load_average(root: &Path) -> Reading<f64> {
    let path = "proc/loadavg";
    let text = line(root, path)?;
    let first = text.split_ascii_whitespace().next();
    first
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| Health::not_understood(&root.join(path), "load average"))
}

/// A file that holds one number.
pub(crate) fn number(root: &Path, path: &str) -> Reading<u64> {
    let line = line(root, path)?;
    line.parse().map_err(|_| Health::not_understood(&root.join(path), "number"))
}

/// The word in brackets in a file.
pub(crate) fn selected_in(root: &Path, path: &str) -> Reading<String> {
    selected(&line(root, path)?)
        .ok_or_else(|| Health::not_understood(&root.join(path), "selected value"))
}

/// Frequency governor of each CPU that is online.
pub(crate) fn governors(root: &Path) -> Reading<BTreeMap<u64, String>> {
    // The first CPU gives the reason if there are none.
    cpu_governor(root)?;
    let mut governors = BTreeMap::new();
    for cpu in online_list(root)? {
        let path = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        if let Ok(governor) = line(root, &path) {
            governors.insert(cpu, governor);
        }
    }
    Ok(governors)
}

/// File of Intel's driver: 1 forbids frequencies above the nominal one.
pub(crate) const NO_TURBO: &str = "sys/devices/system/cpu/intel_pstate/no_turbo";
/// File of the other drivers: 1 allows them.
pub(crate) const BOOST: &str = "sys/devices/system/cpu/cpufreq/boost";

/// Whether frequencies above the nominal one are allowed, and the file that says so.
pub(crate) fn turbo(root: &Path) -> Reading<(bool, &'static str)> {
    match number(root, NO_TURBO) {
        Ok(forbidden) => Ok((forbidden == 0, NO_TURBO)),
        Err(_) => number(root, BOOST).map(|allowed| (allowed != 0, BOOST)),
    }
}

/// Clock sources that the kernel offers.
pub(crate) fn clock_sources(root: &Path) -> Reading<Vec<String>> {
    let path = "sys/devices/system/clocksource/clocksource0/available_clocksource";
    let line = line(root, path)?;
    Ok(line.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Number of CPUs that are online.
pub(crate) fn cpus_online(root: &Path) -> Reading<u64> {
    Ok(online_list(root)?.len() as u64)
}

/// Numbers of the CPUs that are online, ascending.
pub(crate) fn online_list(root: &Path) -> Reading<Vec<u64>> {
    let path = "sys/devices/system/cpu/online";
    members_of_list(&line(root, path)?)
        .ok_or_else(|| Health::not_understood(&root.join(path), "list of CPUs"))
}

/// Share of the last ten seconds in which some task waited for a CPU, in percent.
pub(crate) fn cpu_pressure_percent(root: &Path) -> Reading<f64> {
    let path = "proc/pressure/cpu";
    let text = text(root, path)?;
    let some = text.lines().find_map(|line| line.strip_prefix("some avg10="));
    some.and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok())
        .ok_or_else(|| Health::not_understood(&root.join(path), "`some avg10`"))
}

/// Container and hypervisor, if the machine shows any; `None` without a sign of either.
pub(crate) fn virtualization(root: &Path) -> Option<String> {
    let found: Vec<String> = container(root).into_iter().chain(hypervisor(root)).collect();
    (!found.is_empty()).then(|| found.join(" on "))
}

pub(crate) fn container(root: &Path) -> Option<String> {
    if let Ok(name) = line(root, "run/systemd/container") {
        return Some(format!("container ({name})"));
    }
    let marks = [(".dockerenv", "docker"), ("run/.containerenv", "podman")];
    marks
        .into_iter()
        .find(|(file, _)| root.join(file).exists())
        .map(|(_, name)| format!("container ({name})"))
}

/// Whether the flags of the CPUs show a hypervisor.
pub(crate) fn has_hypervisor(root: &Path) -> bool {
    text(root, "proc/cpuinfo").is_ok_and(|text| {
        field(&text, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
    })
}

/// The hypervisor, if the machine shows one.
pub(crate) fn hypervisor(root: &Path) -> Option<String> {
    if let Ok(kind) = line(root, "sys/hypervisor/type") {
        return Some(format!("virtual machine ({kind})"));
    }
    // The maker's name alone proves nothing: cloud providers put it on their bare-metal machines as
    // well.
    let vendor = line(root, "sys/class/dmi/id/sys_vendor").ok();
    match (has_hypervisor(root), vendor) {
        (false, Some(vendor)) if vendor == "QEMU" => Some("virtual machine (QEMU)".to_owned()),
        (false, _) => None,
        (true, Some(vendor)) => Some(format!("virtual machine ({vendor})")),
        (true, None) => Some("virtual machine".to_owned()),
    }
}

/// Whole content of a file below `root`.
pub(crate) fn text(root: &Path, path: &str) -> Reading<String> {
    let path = root.join(path);
    fs::read_to_string(&path).map_err(|error| Health::from_io(&path, &error))
}

/// Content of a one-line file without the line end. An empty file is not understood.
pub(crate) fn line(root: &Path, path: &str) -> Reading<String> {
    let text = text(root, path)?;
    match text.trim() {
        "" => Err(Health::not_understood(&root.join(path), "content")),
        line => Ok(line.to_owned()),
    }
}

/// Maps an absolute path into the file tree of a machine.
pub(crate) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// The word in brackets of `always [madvise] never`.
pub(crate) fn selected(text: &str) -> Option<String> {
    let (_, after) = text.split_once('[')?;
    let (word, _) = after.split_once(']')?;
    Some(word.to_owned())
}

/// Value of the first line `name : value`.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn meminfo_bytes(root: &Path, name: &str) -> Reading<u64> {
    let path = "proc/meminfo";
    let text = text(root, path)?;
    field(&text, name)
        .and_then(|value| value.strip_suffix("kB"))
        .and_then(|number| number.trim().parse::<u64>().ok())
        .map(|kibibytes| kibibytes * 1024)
        .ok_or_else(|| Health::not_understood(&root.join(path), name))
}

/// Number of entries in a list such as `0-3,8,10-11`.
fn count_of_list(list: &str) -> Option<u64> {
    members_of_list(list).map(|members| members.len() as u64)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A tree of files for the readers.
    pub(crate) struct Fixture(tempfile::TempDir);

    impl Fixture {
        pub(crate) fn new() -> Self {
            Fixture(tempfile::tempdir().unwrap())
        }

        pub(crate) fn with(self, path: &str, text: &str) -> Self {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            self
        }

        pub(crate) fn root(&self) -> &Path {
            self.0.path()
        }
    }

    const X86: &str = "processor\t: 0\nmodel name\t: Example CPU @ 2.60GHz\nflags\t\t: fpu hypervisor sse\n\nprocessor\t: 1\nmodel name\t: other\n";
    const ARM: &str = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";

    #[test]
    fn machine_is_read_from_its_files() {
        let fixture = Fixture::new()
            .with("proc/sys/kernel/hostname", "bench-1\n")
            .with("proc/sys/kernel/ostype", "Linux\n")
            .with("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n")
            .with(
                "etc/os-release",
                "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
            )
            .with("proc/cpuinfo", X86)
            .with(
                "proc/self/status",
                "Name:\tdyno\nCpus_allowed:\tf0f\nCpus_allowed_list:\t0-3,8,10-11\n",
            )
            .with("sys/devices/system/node/online", "0-1\n")
            .with("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n")
            .with(
                "proc/meminfo",
                "MemTotal:       16308156 kB\nMemFree: 1 kB\nSwapTotal:             0 kB\n",
            )
            .with("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
            .with("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
            .with("proc/loadavg", "0.42 0.30 0.25 1/234 5678\n");
        let root = fixture.root();
        assert_eq!(hostname(root), Ok("bench-1".to_owned()));
        assert_eq!(kernel(root), Ok("Linux 6.1.0-18-amd64".to_owned()));
        assert_eq!(os(root), Ok("Debian GNU/Linux 12 (bookworm)".to_owned()));
        assert_eq!(cpu_model(root), Ok("Example CPU @ 2.60GHz".to_owned()));
        assert_eq!(cpus(root), Ok(7));
        assert_eq!(numa_nodes(root), Ok(2));
        assert_eq!(cpu_governor(root), Ok("performance".to_owned()));
        assert_eq!(memory_bytes(root), Ok(16_308_156 * 1024));
        assert_eq!(swap_bytes(root), Ok(0));
        assert_eq!(transparent_hugepages(root), Ok("madvise".to_owned()));
        assert_eq!(clock_source(root), Ok("tsc".to_owned()));
        assert_eq!(load_average(root), Ok(0.42));
    }

    #[test]
    fn empty_machine_is_unsupported_everywhere() {
        let fixture = Fixture::new();
        let root = fixture.root();
        let unsupported =
            |reading: Reading<String>| matches!(reading, Err(Health::Unsupported { .. }));
        for reader in
            [hostname, kernel, os, cpu_model, cpu_governor, transparent_hugepages, clock_source]
        {
            assert!(unsupported(reader(root)));
        }
        for reader in [cpus, numa_nodes, memory_bytes, swap_bytes] {
            assert!(matches!(reader(root), Err(Health::Unsupported { .. })));
        }
        assert_eq!(virtualization(root), None);
    }

    #[test]
    fn unparsable_content_is_degraded() {
        let fixture = Fixture::new()
            .with("proc/cpuinfo", "processor: 0\n")
            .with("proc/self/status", "Cpus_allowed_list:\t3-1\n")
            .with("sys/devices/system/node/online", "x\n")
            .with("proc/meminfo", "MemTotal: many kB\n")
            .with("sys/kernel/mm/transparent_hugepage/enabled", "always\n")
            .with("proc/loadavg", "\n")
            .with("etc/os-release", "NAME=x\n");
        let root = fixture.root();
        for reader in [cpu_model, transparent_hugepages, os] {
            assert!(matches!(reader(root), Err(Health::Degraded { .. })));
        }
        for reader in [cpus, numa_nodes, memory_bytes, swap_bytes] {
            assert!(matches!(reader(root), Err(Health::Degraded { .. })));
        }
        assert!(matches!(load_average(root), Err(Health::Degraded { .. })));
    }

    #[test]
    fn arm_cpu_is_named_by_its_numbers() {
        let fixture = Fixture::new().with("proc/cpuinfo", ARM);
        assert_eq!(cpu_model(fixture.root()), Ok("implementer 0x41 part 0xd0c".to_owned()));
    }

    #[test]
    fn containers_and_hypervisors_are_found() {
        let both = Fixture::new().with("proc/cpuinfo", X86).with(".dockerenv", "");
        assert_eq!(
            virtualization(both.root()).as_deref(),
            Some("container (docker) on virtual machine")
        );
        let cloud = Fixture::new()
            .with("proc/cpuinfo", X86)
            .with("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        assert_eq!(virtualization(cloud.root()).as_deref(), Some("virtual machine (Amazon EC2)"));
        let metal = Fixture::new()
            .with("proc/cpuinfo", ARM)
            .with("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        assert_eq!(virtualization(metal.root()), None);
        let xen = Fixture::new().with("sys/hypervisor/type", "xen\n");
        assert_eq!(virtualization(xen.root()).as_deref(), Some("virtual machine (xen)"));
    }
}
