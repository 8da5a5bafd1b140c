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

/// Declares the facts, each with its reading. The readings share the variables of the block.
macro_rules! facts {
    (
        |$root:ident, $subject:ident| { $($shared:tt)* }
        $($(#[$meaning:meta])* $field:ident: $type:ty = $reading:expr,)*
    ) => {
        /// All readings. `Err` holds the reason for a missing reading.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Facts {
            pub subject: Subject,
            $($(#[$meaning])* pub $field: $type,)*
        }

        /// Reads everything. Takes about a millisecond plus the time to watch.
        pub fn observe($root: &Path, $subject: &Subject) -> Facts {
            $($shared)*
            Facts { subject: $subject.clone(), $($field: $reading,)* }
        }
    };
}

facts! {
    |root, subject| {
        let server = subject.server.as_ref();
        let pid = server.filter(|server| server.local).and_then(|server| server.pid);
        let address = server.and_then(|server| server.address);
        let of_server = |name: &str| {
            pid.map(|pid| format!("proc/{pid}/{name}"))
                .ok_or_else(|| Health::unsupported("the server's process is unknown"))
        };
        let data_dir = subject.data_dir.as_deref();
        let data_dir = data_dir.ok_or_else(|| Health::unsupported("no data folder was named"));
        let address = address.ok_or_else(|| Health::unsupported("the server's address is unknown"));
        let own = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
        let own_processes: Vec<u32> = [Some(std::process::id()), pid]
            .into_iter()
            .flatten()
            .chain(subject.own.iter().copied())
            .collect();
        let thp = "sys/kernel/mm/transparent_hugepage";
    }
    /// Mode of transparent huge pages.
    huge_pages: Reading<String> = host::transparent_hugepages(root),
    /// `defrag` setting of transparent huge pages.
    huge_pages_defrag: Reading<String> = host::selected_in(root, &format!("{thp}/defrag")),
    /// `khugepaged/max_ptes_none`, 0 to 511.
    huge_pages_padding: Reading<u64> =
        host::number(root, &format!("{thp}/khugepaged/max_ptes_none")),
    /// Huge pages of our own process.
    own_huge_pages: Reading<OwnHugePages> = processes::own_huge_pages(root),
    /// Whether the server's process may have huge pages.
    server_huge_pages_allowed: Reading<bool> =
        of_server("status").and_then(|path| processes::huge_pages_allowed(root, &path)),
    /// `vm.swappiness`.
    swappiness: Reading<u64> = host::number(root, "proc/sys/vm/swappiness"),
    swap_bytes: Reading<u64> = host::swap_bytes(root),
    /// `vm.zone_reclaim_mode`.
    zone_reclaim_mode: Reading<u64> = host::number(root, "proc/sys/vm/zone_reclaim_mode"),
    /// `kernel.numa_balancing`.
    numa_balancing: Reading<u64> = host::number(root, "proc/sys/kernel/numa_balancing"),
    /// NUMA nodes online.
    numa_nodes: Reading<u64> = host::numa_nodes(root),
    /// How the server's memory is spread.
    server_policy: Reading<MemoryPolicy> =
        of_server("numa_maps").and_then(|path| processes::policy(root, &path)),
    /// `vm.max_map_count`.
    max_map_count: Reading<u64> = host::number(root, "proc/sys/vm/max_map_count"),
    memory_bytes: Reading<u64> = host::memory_bytes(root),
    /// Memory limit of the server's control group, or of ours without a server; `None` without a
    /// limit.
    memory_limit_bytes: Reading<Option<u64>> =
        memory_limit(root, &root.join(format!("proc/{own}"))),
    /// Storage of the data folder.
    storage: Reading<StorageRecord> =
        data_dir.clone().and_then(|folder| storage::storage(root, folder)),
    /// Mount point of the data folder's file system.
    mount_point: Reading<PathBuf> =
        data_dir.clone().and_then(|folder| storage::mount_point(root, folder)),
    /// Folder with the queue settings of the device.
    queue: Reading<PathBuf> = data_dir.and_then(|folder| storage::queue(root, folder)),
    /// Frequency governor of each CPU online.
    governors: Reading<BTreeMap<u64, String>> = host::governors(root),
    /// Whether frequencies above the nominal one are allowed, and the file that says so.
    turbo: Reading<(bool, &'static str)> = host::turbo(root),
    /// Idle states of CPU 0.
    idle_states: Reading<Vec<IdleState>> = cpu_settings::idle_states(root),
    /// Energy preference of CPU 0 as a word, or its energy bias as a number.
    energy_bias: Reading<String> = cpu_settings::energy_bias(root),
    /// `smt/control`.
    smt: Reading<String> = cpu_settings::smt(root),
    /// NUMA nodes with CPUs for each socket.
    nodes_per_socket: Reading<u64> = cpu_settings::nodes_per_socket(root),
    /// Hardware prefetchers that are off.
    prefetchers_off: Reading<Vec<String>> = cpu_settings::prefetchers_off(root),
    /// Clock source in use.
    clock_source: Reading<String> = host::clock_source(root),
    /// Clock sources to choose from.
    clock_sources: Reading<Vec<String>> = host::clock_sources(root),
    /// Median cost of reading the clock.
    clock_read_ns: f64 = clock::read_cost_ns(),
    /// Limits of the server's process; without one, our own limits, which a server started by us
    /// inherits.
    limits: Reading<Limits> = processes::limits(root, &format!("proc/{own}/limits")),
    /// Whether `limits` belong to the server.
    limits_of_server: bool = pid.is_some(),
    /// One-minute load average.
    load_average: Reading<f64> = host::load_average(root),
    /// CPUs online.
    cpus: Reading<u64> = host::cpus_online(root),
    /// Share of the last ten seconds in which some task waited for a CPU, in percent.
    cpu_pressure_percent: Reading<f64> = host::cpu_pressure_percent(root),
    /// Other processes that used CPU while we watched, the busiest first.
    busy: Reading<Vec<BusyProcess>> = processes::busy(root, subject.watch, &own_processes),
    /// CPUs that this process may use.
    client_cpus: Reading<Vec<u64>> = processes::cpus(root, "proc/self/status"),
    /// CPUs that the server may use.
    server_cpus: Reading<Vec<u64>> =
        of_server("status").and_then(|path| processes::cpus(root, &path)),
    /// Addresses on which the server's port is open.
    listening: Reading<Vec<IpAddr>> =
        address.clone().and_then(|at| network::listening(root, at.port())),
    /// Name of the process that holds the port.
    listener: Reading<String> =
        address.clone().and_then(|at| network::holder(root, at.port())).map(|holder| holder.name),
    /// Network route to the server.
    route: Reading<Route> = address.and_then(|at| network::route(root, at.ip())),
    /// Release of the kernel, such as `6.1.0-13-amd64`.
    kernel: Reading<String> = host::kernel(root),
}

impl Facts {
    /// The folder whose storage was examined: the data folder's nearest existing parent. `None` if
    /// no data folder was named.
    pub fn storage_folder(&self) -> Option<PathBuf> {
        let folder = self.subject.data_dir.as_deref()?;
        Some(crate::storage::nearest_existing(folder))
    }
}
