//! Assembles the environment of a run document from the readings of a machine.

use crate::clock::read_cost_ns;
use crate::doctor::{self, Subject};
use crate::health::{Health, ProbeHealth, Reading};
use crate::{allowed_cpus, cpu_settings, host, storage};
use dyno_record::model::{Environment, StorageRecord};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The environment with the health of every reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    pub environment: Environment,
    /// Health of each reading, in the order of the environment's fields.
    pub probes: Vec<ProbeHealth>,
}

/// The environment of this machine. `data_dir` is the folder of the server's data if it is on this
/// machine; it need not exist yet. Takes about a millisecond, mostly to time the clock.
pub fn capture(data_dir: Option<&Path>) -> Environment {
    observe(data_dir).environment
}

/// Like [`capture`], with the results of `dyno doctor` before a measurement, including other
/// processes on the machine.
pub fn examine(subject: Subject) -> Environment {
    let watching = Subject { watch: doctor::WATCH, ..subject };
    Environment {
        doctor: doctor::examine(&doctor::observe(Path::new("/"), &watching)),
        ..capture(watching.data_dir.as_deref())
    }
}

/// Like [`capture`], with the reasons for missing values.
pub fn observe(data_dir: Option<&Path>) -> Observation {
    observe_root(Path::new("/"), data_dir)
}

/// The storage of a folder, which need not exist yet; `None` if even its mount is unknown.
pub fn storage_of(folder: &Path) -> Option<StorageRecord> {
    storage::storage(Path::new("/"), folder).ok()
}

/// Name of this machine.
pub fn hostname() -> Option<String> {
    host::hostname(Path::new("/")).ok()
}

/// Space that a process without privileges may still use on the disk of a folder or its nearest
/// existing parent.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    storage::free_bytes(&storage::nearest_existing(folder))
}

/// Number of the file system of a folder or its nearest existing parent, and the space there that a
/// process without privileges may still use.
pub fn space_of(folder: &Path) -> Option<(u64, u64)> {
    let existing = storage::nearest_existing(folder);
    let number = existing.metadata().ok()?.dev();
    Some((number, storage::free_bytes(&existing)?))
}

/// Share of this machine's memory that is available to processes; `None` if the kernel does not
/// report it.
pub fn available_memory_ratio() -> Option<f64> {
    host::available_memory_ratio(Path::new("/")).ok()
}

/// Drops the page cache of this machine.
///
/// # Errors
/// Mostly missing rights: it needs root.
pub fn drop_page_cache() -> std::io::Result<()> {
    storage::drop_page_cache(Path::new("/"))
}

/// Checks whether [`drop_page_cache`] is permitted, without dropping anything.
///
/// # Errors
/// The errors of [`drop_page_cache`].
pub fn may_drop_page_cache() -> std::io::Result<()> {
    storage::may_drop_page_cache(Path::new("/"))
}

pub(crate) fn observe_root(root: &Path, data_dir: Option<&Path>) -> Observation {
    let mut probes = Probes::default();
    let environment = Environment {
        hostname: probes.note("hostname", host::hostname(root)),
        kernel: probes.note("kernel", host::kernel(root)),
        os: probes.note("os", host::os(root)),
        cpu_model: probes.note("cpu_model", host::cpu_model(root)),
        cpus: probes.note("cpus", host::cpus(root)),
        allowed_cpus: allowed_cpus::of_process(root, "self").ok(),
        machine_cpus: probes.note("machine_cpus", host::cpus_online(root)),
        numa_nodes: probes.note("numa_nodes", host::numa_nodes(root)),
        cpu_governor: probes.note("cpu_governor", host::cpu_governor(root)),
        cpu_settings: cpu_settings::read(root),
        memory_bytes: probes.note("memory_bytes", host::memory_bytes(root)),
        swap_bytes: probes.note("swap_bytes", host::swap_bytes(root)),
        transparent_hugepages: probes
            .note("transparent_hugepages", host::transparent_hugepages(root)),
        clock_source: probes.note("clock_source", host::clock_source(root)),
        clock_read_ns: Some(read_cost_ns()),
        load_average: probes.note("load_average", host::load_average(root)),
        virtualization: host::virtualization(root),
        data_storage: data_dir
            .and_then(|folder| probes.note("data_storage", storage::storage(root, folder))),
        doctor: Vec::new(),
    };
    Observation { environment, probes: probes.0 }
}

/// Collects the health of readings.
#[derive(Default)]
struct Probes(Vec<ProbeHealth>);

impl Probes {
    fn note<T>(&mut self, name: &'static str, reading: Reading<T>) -> Option<T> {
        let (value, health) = match reading {
            Ok(value) => (Some(value), Health::Healthy),
            Err(health) => (None, health),
        };
        self.0.push(ProbeHealth { name, health });
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::{caveat, roll_up};
    use crate::host::tests::Fixture;

    #[test]
    fn unreadable_facts_are_empty_and_have_a_reason() {
        let fixture = Fixture::new()
            .with("proc/sys/kernel/hostname", "bench-1\n")
            .with("proc/loadavg", "garbage\n");
        let observation = observe_root(fixture.root(), Some(Path::new("/")));
        assert_eq!(observation.environment.hostname.as_deref(), Some("bench-1"));
        assert_eq!(observation.environment.cpu_governor, None);
        assert_eq!(observation.environment.load_average, None);
        let health = |name: &str| {
            let probe = observation.probes.iter().find(|probe| probe.name == name);
            probe.unwrap().health.clone()
        };
        assert_eq!(health("hostname"), Health::Healthy);
        assert!(matches!(health("cpu_governor"), Health::Unsupported { .. }));
        assert!(matches!(health("load_average"), Health::Degraded { .. }));
        assert!(matches!(health("data_storage"), Health::Unsupported { .. }));
        assert!(matches!(roll_up(&observation.probes), Health::Degraded { .. }));
        assert!(
            caveat(&observation.probes).unwrap().statement.to_string().contains("load_average")
        );
    }

    #[test]
    fn this_machine_reports_the_basics() {
        let environment = capture(Some(Path::new("/")));
        assert!(environment.kernel.is_some_and(|kernel| kernel.starts_with("Linux ")));
        assert!(environment.cpus.is_some_and(|cpus| cpus >= 1));
        assert!(environment.memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
        assert!(environment.clock_read_ns.is_some_and(|cost_ns| cost_ns > 0.0));
        let storage = environment.data_storage.unwrap();
        assert!(storage.filesystem.is_some() && storage.free_bytes.is_some());
    }
}
