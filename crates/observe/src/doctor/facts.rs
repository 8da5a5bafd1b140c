//! Input of the checks: readings of the machine, the storage and the processes, and the caller's
//! knowledge of the server. Readers take a root so that tests can pass a fixture, and every reading
//! can be missing with a reason.

use super::network::{self, Route};
use super::processes::{self, BusyProcess, Limits, MemoryPolicy, OwnHugePages};
use crate::health::{Health, Reading};
use crate::watch::memory_limit;
use crate::{clock, cpu_settings, host, storage};
use dyno_record::model::{IdleState, StorageRecord};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to watch other processes before a measurement: long enough to notice a busy one, and no
/// longer than a server takes to start.
pub const WATCH: Duration = Duration::from_millis(100);

/// What to check. Checks that need an absent field report it as unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subject {
    /// Data folder of the server if it is on this machine; it need not exist yet.
    pub data_dir: Option<PathBuf>,
    /// Size of the data that the run will load.
    pub planned_data_bytes: Option<u64>,
    /// Connections that the load will use.
    pub connections: Option<u64>,
    pub server: Option<ServerFacts>,
    /// Servers on this machine that other machines can reach, if no server was named.
    pub found: Vec<OpenServer>,
    /// How long to watch other processes; zero skips it.
    pub watch: Duration,
    /// Processes that belong to the measurement, in addition to this process and the server.
    pub own: Vec<u32>,
}

/// A server found among the processes of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenServer {
    pub pid: u32,
    /// Name of the process.
    pub name: String,
    /// Listening addresses other than loopback; at least one.
    pub addresses: Vec<SocketAddr>,
    /// Whether it requires a password.
    pub authentication: Option<bool>,
}

/// The caller's knowledge of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerFacts {
    pub product: Product,
    /// Version of the product, such as `8.0.3`.
    pub version: Option<String>,
    /// Name of its storage engine, such as `wiredTiger`.
    pub storage_engine: Option<String>,
    /// Whether it runs on this machine.
    pub local: bool,
    /// Its process, if it is on this machine.
    pub pid: Option<u32>,
    pub address: Option<SocketAddr>,
    /// Cache of one instance.
    pub cache_bytes: Option<u64>,
    /// Number of such servers on the machine.
    pub instances: u64,
    /// Whether it requires a password.
    pub authentication: Option<bool>,
    /// Round-trip time of empty commands.
    pub round_trip: Option<RoundTrip>,
    /// Connections that it would still accept.
    pub available_connections: Option<u64>,
    /// Active profilers and audit log, one text each; `None` if the server does not report them.
    pub tracing: Option<Vec<String>>,
}

impl Default for ServerFacts {
    fn default() -> Self {
        ServerFacts {
            product: Product::MongoDb,
            version: None,
            storage_engine: None,
            local: true,
            pid: None,
            address: None,
            cache_bytes: None,
            instances: 1,
            authentication: None,
            round_trip: None,
            available_connections: None,
            tracing: None,
        }
    }
}

impl ServerFacts {
    /// Major version number.
    pub fn major_version(&self) -> Option<u64> {
        self.version.as_deref()?.split('.').next()?.parse().ok()
    }
}

/// Server product. Advice on its memory depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Product {
    /// MongoDB's own server, or a build of its sources.
    MongoDb,
    /// The embedded server.
    Embedded,
    /// Another server that speaks the protocol.
    Other(String),
}

/// Round-trip time of empty commands, sent one after the other on one connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTrip {
    pub count: u64,
    pub median_us: f64,
    pub p99_us: f64,
}

/// All readings. `Err` holds the reason for a missing reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    pub subject: Subject,
    /// Mode of transparent huge pages.
    pub huge_pages: Reading<String>,
    /// `defrag` setting of transparent huge pages.
    pub huge_pages_defrag: Reading<String>,
    /// `khugepaged/max_ptes_none`, 0 to 511.
    pub huge_pages_padding: Reading<u64>,
    /// Huge pages of our own process.
    pub own_huge_pages: Reading<OwnHugePages>,
    /// Whether the server's process may have huge pages.
    pub server_huge_pages_allowed: Reading<bool>,
    /// `vm.swappiness`.
    pub swappiness: Reading<u64>,
    pub swap_bytes: Reading<u64>,
    /// `vm.zone_reclaim_mode`.
    pub zone_reclaim_mode: Reading<u64>,
    /// `kernel.numa_balancing`.
    pub numa_balancing: Reading<u64>,
    /// NUMA nodes online.
    pub numa_nodes: Reading<u64>,
    /// How the server's memory is spread.
    pub server_policy: Reading<MemoryPolicy>,
    /// `vm.max_map_count`.
    pub max_map_count: Reading<u64>,
    pub memory_bytes: Reading<u64>,
    /// Memory limit of the server's control group, or of ours without a server; `None` without a
    /// limit.
    pub memory_limit_bytes: Reading<Option<u64>>,
    /// Storage of the data folder.
    pub storage: Reading<StorageRecord>,
    /// Mount point of the data folder's file system.
    pub mount_point: Reading<PathBuf>,
    /// Folder with the queue settings of the device.
    pub queue: Reading<PathBuf>,
    /// Frequency governor of each CPU online.
    pub governors: Reading<BTreeMap<u64, String>>,
    /// Whether frequencies above the nominal one are allowed, and the file that says so.
    pub turbo: Reading<(bool, &'static str)>,
    /// Idle states of CPU 0.
    pub idle_states: Reading<Vec<IdleState>>,
    /// Energy preference of CPU 0 as a word, or its energy bias as a number.
    pub energy_bias: Reading<String>,
    /// `smt/control`.
    pub smt: Reading<String>,
    /// NUMA nodes with CPUs for each socket.
    pub nodes_per_socket: Reading<u64>,
    /// Hardware prefetchers that are off.
    pub prefetchers_off: Reading<Vec<String>>,
    /// Clock source in use.
    pub clock_source: Reading<String>,
    /// Clock sources to choose from.
    pub clock_sources: Reading<Vec<String>>,
    /// Median cost of reading the clock.
    pub clock_read_ns: f64,
    /// Limits of the server's process; without one, our own limits, which a server started by us
    /// inherits.
    pub limits: Reading<Limits>,
    /// Whether `limits` belong to the server.
    pub limits_of_server: bool,
    /// One-minute load average.
    pub load_average: Reading<f64>,
    /// CPUs online.
    pub cpus: Reading<u64>,
    /// Share of the last ten seconds in which some task waited for a CPU, in percent.
    pub cpu_pressure_percent: Reading<f64>,
    /// Other processes that used CPU while we watched, the busiest first.
    pub busy: Reading<Vec<BusyProcess>>,
    /// CPUs that this process may use.
    pub client_cpus: Reading<Vec<u64>>,
    /// CPUs that the server may use.
    pub server_cpus: Reading<Vec<u64>>,
    /// Addresses on which the server's port is open.
    pub listening: Reading<Vec<IpAddr>>,
    /// Name of the process that holds the port.
    pub listener: Reading<String>,
    /// Network route to the server.
    pub route: Reading<Route>,
    /// Release of the kernel, such as `6.1.0-13-amd64`.
    pub kernel: Reading<String>,
}

impl Facts {
    /// The folder whose storage was examined: the data folder's nearest existing parent. `None` if
    /// no data folder was named.
    pub fn storage_folder(&self) -> Option<PathBuf> {
        let folder = self.subject.data_dir.as_deref()?;
        Some(crate::storage::nearest_existing(folder))
    }
}

/// Reads everything. Takes about a millisecond plus the time to watch.
pub fn observe(root: &Path, subject: &Subject) -> Facts {
    let server = subject.server.as_ref();
    let pid = server.filter(|server| server.local).and_then(|server| server.pid);
    let address = server.and_then(|server| server.address);
    let of_server = |name: &str| {
        pid.map(|pid| format!("proc/{pid}/{name}"))
            .ok_or_else(|| absent("the server's process is unknown"))
    };
    let data_dir = subject.data_dir.as_deref();
    let data_dir = data_dir.ok_or_else(|| absent("no data folder was named"));
    let address = address.ok_or_else(|| absent("the server's address is unknown"));
    let own = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
    let own_processes: Vec<u32> = [Some(std::process::id()), pid]
        .into_iter()
        .flatten()
        .chain(subject.own.iter().copied())
        .collect();
    let thp = "sys/kernel/mm/transparent_hugepage";
    Facts {
        subject: subject.clone(),
        huge_pages: host::transparent_hugepages(root),
        huge_pages_defrag: host::selected_in(root, &format!("{thp}/defrag")),
        huge_pages_padding: host::number(root, &format!("{thp}/khugepaged/max_ptes_none")),
        own_huge_pages: processes::own_huge_pages(root),
        server_huge_pages_allowed: of_server("status")
            .and_then(|path| processes::huge_pages_allowed(root, &path)),
        swappiness: host::number(root, "proc/sys/vm/swappiness"),
        swap_bytes: host::swap_bytes(root),
        zone_reclaim_mode: host::number(root, "proc/sys/vm/zone_reclaim_mode"),
        numa_balancing: host::number(root, "proc/sys/kernel/numa_balancing"),
        numa_nodes: host::numa_nodes(root),
        server_policy: of_server("numa_maps").and_then(|path| processes::policy(root, &path)),
        max_map_count: host::number(root, "proc/sys/vm/max_map_count"),
        memory_bytes: host::memory_bytes(root),
        memory_limit_bytes: memory_limit(root, &root.join(format!("proc/{own}"))),
        storage: data_dir.clone().and_then(|folder| storage::storage(root, folder)),
        mount_point: data_dir.clone().and_then(|folder| storage::mount_point(root, folder)),
        queue: data_dir.and_then(|folder| storage::queue(root, folder)),
        governors: host::governors(root),
        turbo: host::turbo(root),
        idle_states: cpu_settings::idle_states(root),
        energy_bias: cpu_settings::energy_bias(root),
        smt: cpu_settings::smt(root),
        nodes_per_socket: cpu_settings::nodes_per_socket(root),
        prefetchers_off: cpu_settings::prefetchers_off(root),
        clock_source: host::clock_source(root),
        clock_sources: host::clock_sources(root),
        clock_read_ns: clock::read_cost_ns(),
        limits: processes::limits(root, &format!("proc/{own}/limits")),
        limits_of_server: pid.is_some(),
        load_average: host::load_average(root),
        cpus: host::cpus_online(root),
        cpu_pressure_percent: host::cpu_pressure_percent(root),
        busy: processes::busy(root, subject.watch, &own_processes),
        client_cpus: processes::cpus(root, "proc/self/status"),
        server_cpus: of_server("status").and_then(|path| processes::cpus(root, &path)),
        listening: address.clone().and_then(|at| network::listening(root, at.port())),
        listener: address
            .clone()
            .and_then(|at| network::holder(root, at.port()))
            .map(|holder| holder.name),
        route: address.and_then(|at| network::route(root, at.ip())),
        kernel: host::kernel(root),
    }
}

fn absent(reason: &str) -> Health {
    Health::Unsupported { reason: reason.to_owned() }
}
