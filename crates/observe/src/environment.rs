//! Assembles the environment of a run document from the readings of a machine.

use crate::clock::read_cost_ns;
use crate::doctor::{self, Subject};
use crate::health::{Health, Reading};
use crate::{allowed_cpus, cpu_settings, host, storage};
use dyno_record::model::{Caveat, CaveatKind, Environment, StorageRecord};
use dyno_record::statement;
use dyno_record::statement::Statement;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The environment of this machine. `data_dir` is the folder of the server's data if it is on this
/// machine; it need not exist yet. Takes about a millisecond, mostly to time the clock.
pub fn capture(data_dir: Option<&Path>) -> Environment {
    observe(data_dir).0
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

/// Like [`capture`], with a caveat if something failed or was not understood. A feature that the
/// machine does not have is not a reason to doubt a result.
pub fn observe(data_dir: Option<&Path>) -> (Environment, Option<Caveat>) {
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

/// File that makes the kernel drop its caches.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Writes dirty data to the disks of this machine and drops its page cache.
///
/// # Errors
/// Mostly missing rights: it needs root.
pub fn drop_page_cache() -> io::Result<()> {
    nix::unistd::sync();
    // 1 drops only the page cache; names and attributes of files stay.
    fs::write(DROP_CACHES, "1")
}

/// Checks whether [`drop_page_cache`] is permitted. The kernel does nothing when the file is opened.
///
/// # Errors
/// The errors of [`drop_page_cache`].
pub fn may_drop_page_cache() -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(DROP_CACHES).map(drop)
}

pub(crate) fn observe_root(root: &Path, data_dir: Option<&Path>) -> (Environment, Option<Caveat>) {
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
    let caveat = (!probes.0.is_empty()).then(|| {
        let statement = statement!("probes-not-read", probes = probes.0);
        Caveat::of_run(CaveatKind::ProbeUnavailable, statement)
    });
    (environment, caveat)
}

/// Collects the readings that failed or were not understood.
#[derive(Default)]
struct Probes(Vec<Statement>);

impl Probes {
    fn note<T>(&mut self, name: &str, reading: Reading<T>) -> Option<T> {
        match reading {
            Ok(value) => Some(value),
            Err(Health::Unsupported { .. }) => None,
            Err(health) => {
                self.0.push(statement!("probe", probe = name, reason = health.reason()));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::Fixture;

    #[test]
    fn unreadable_facts_are_empty_and_have_a_reason() {
        let fixture = Fixture::new()
            .with("proc/sys/kernel/hostname", "bench-1\n")
            .with("proc/loadavg", "garbage\n");
        let (environment, caveat) = observe_root(fixture.root(), Some(Path::new("/")));
        assert_eq!(environment.hostname.as_deref(), Some("bench-1"));
        assert_eq!(environment.cpu_governor, None);
        assert_eq!(environment.load_average, None);
        // Only what was not understood.
        let said = caveat.unwrap().statement.to_string();
        assert!(
            said.starts_with("probes-not-read (probes: [probe (probe: load_average, "),
            "{said}"
        );
        assert!(!said.contains("cpu_governor") && !said.contains("data_storage"), "{said}");
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
