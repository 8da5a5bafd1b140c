//! Results of the checks of a machine and a server before a run, with the change that fixes each problem. Other crates
//! run the checks.

use dyno_plan::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Result of one check.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    pub check: CheckName,
    pub level: Level,
    /// Value found, or the reason why it is missing.
    pub found: String,
    /// Advised value.
    pub advised: String,
    /// Reason for the advised value.
    pub why: String,
    /// Change that sets the advised value, if possible and needed.
    pub change: Option<Change>,
}

named! {
    /// Result levels, from best to worst.
    Level {
        /// As advised, or irrelevant here.
        Pass = "pass",
        /// Undecided: the value, or the information to judge it, is unavailable.
        Unknown = "unknown",
        /// May disturb a measurement.
        Warn = "warn",
        /// Known to disturb measurements or to endanger the server.
        Fail = "fail",
    }
}

/// A change of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Shell command for the change, which lasts until the machine restarts.
    pub command: String,
    /// Actions of `dyno doctor --apply`; empty for changes that must be made by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
}

/// One reversible step of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Action {
    /// Write a value to a kernel file.
    Write {
        path: PathBuf,
        /// Value without a line end.
        value: String,
    },
    /// Remount a file system with another rule for access times.
    Remount {
        mount_point: PathBuf,
        /// Rule: `noatime`, `relatime` or `strictatime`.
        value: String,
    },
}

named! {
    /// Names of the checks.
    // Listed in display order.
    CheckName {
        /// Mode of transparent huge pages.
        HugePages = "huge_pages",
        /// How the kernel allocates when no huge page is free.
        HugePagesDefrag = "huge_pages_defrag",
        /// Maximum number of missing small pages that a huge page may be padded with.
        HugePagesPadding = "huge_pages_padding",
        /// Whether dyno's own process, and with it a server that it starts, may use huge pages.
        OwnHugePages = "own_huge_pages",
        /// Tendency of the kernel to swap.
        Swappiness = "swappiness",
        /// Whether a NUMA node reclaims its own memory before it uses another node's.
        ZoneReclaim = "zone_reclaim",
        /// Whether the kernel moves pages between NUMA nodes.
        NumaBalancing = "numa_balancing",
        /// How the server's memory is spread over the NUMA nodes.
        NumaInterleave = "numa_interleave",
        /// Maximum number of memory mappings per process.
        MaxMapCount = "max_map_count",
        /// Memory of the machine compared with the servers' caches.
        CacheMemory = "cache_memory",
        /// Readahead of the data device.
        Readahead = "readahead",
        /// File system of the data.
        Filesystem = "filesystem",
        /// Whether reading data files writes access times.
        AccessTimes = "access_times",
        /// Free space for the data.
        FreeDisk = "free_disk",
        /// CPU frequency governor.
        CpuGovernor = "cpu_governor",
        /// CPU frequencies above the nominal one.
        CpuTurbo = "cpu_turbo",
        /// Deepest idle state of a CPU.
        IdleStates = "idle_states",
        /// Whether the CPU prefers speed or saving energy.
        EnergyBias = "energy_bias",
        /// Simultaneous multithreading.
        Smt = "smt",
        /// NUMA nodes of each socket.
        SocketNodes = "socket_nodes",
        /// Hardware prefetchers of the CPU.
        Prefetchers = "prefetchers",
        /// Clock source of the kernel.
        ClockSource = "clock_source",
        /// Maximum number of files that the server may open.
        OpenFiles = "open_files",
        /// Maximum number of processes and threads of the server's user.
        Processes = "processes",
        /// CPU use by other processes on the machine.
        OtherLoad = "other_load",
        /// Whether client and server share CPUs.
        SharedCores = "shared_cores",
        /// Who can reach the server without a password.
        BindAddress = "bind_address",
        /// Round-trip time of an empty command, and the network path between client and server.
        RoundTrip = "round_trip",
        /// Whether the server is known to crash at its start on this kernel.
        ServerKernel = "server_kernel",
        /// Profiler and audit log of the server.
        ServerTracing = "server_tracing",
        /// Connections that the server has left.
        FreeConnections = "free_connections",
    }
}

impl fmt::Display for CheckName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl FromStr for CheckName {
    type Err = UnknownCheck;

    /// Parses a name; `-` counts as `_`.
    fn from_str(text: &str) -> Result<Self, UnknownCheck> {
        CheckName::from_name(&text.replace('-', "_"))
            .ok_or_else(|| UnknownCheck { name: text.to_owned() })
    }
}

/// Error for an unknown check name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown check `{name}`")]
pub struct UnknownCheck {
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_files_and_on_the_command_line_are_the_same() {
        for check in CheckName::ALL {
            assert_eq!(serde_json::to_value(check).expect("a name"), check.as_str(), "{check:?}");
            assert_eq!(check.as_str().parse(), Ok(check));
            assert_eq!(check.as_str().replace('_', "-").parse(), Ok(check));
        }
        assert!("swap".parse::<CheckName>().is_err());
    }

    #[test]
    fn unknown_is_worse_than_pass_and_better_than_warn() {
        assert!(Level::Pass < Level::Unknown && Level::Unknown < Level::Warn);
        assert!(Level::Warn < Level::Fail);
    }
}
