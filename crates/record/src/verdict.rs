//! What the checks of a machine and a server say before a run: one verdict per check, with the
//! change that would cure it. The checks themselves are made elsewhere.

use crate::named::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Result of one check.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// What was checked.
    pub check: CheckName,
    /// How it stands.
    pub level: Level,
    /// The value found, or why there is none.
    pub found: String,
    /// The value advised.
    pub advised: String,
    /// Why that value is advised.
    pub why: String,
    /// What would change the value, where it can be changed and should be.
    pub change: Option<Change>,
}

named! {
    /// How a check stands, from best to worst.
    Level {
        /// As advised, or of no concern here.
        Pass = "pass",
        /// Nothing can be said: the value cannot be read, or what would be needed to judge it is not known.
        Unknown = "unknown",
        /// May disturb a measurement.
        Warn = "warn",
        /// Known to disturb measurements or to endanger the server.
        Fail = "fail",
    }
}

/// A change of the machine, and how it is typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What a person would type. It holds until the machine restarts.
    pub command: String,
    /// What `dyno doctor --apply` does; empty where it must be done by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
}

/// One step of a change that can be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Action {
    /// Write a value to a file of the kernel.
    Write {
        /// The file.
        path: PathBuf,
        /// The value, without a line end.
        value: String,
    },
    /// Mount a file system again with another rule for access times.
    Remount {
        /// Where it is mounted.
        mount_point: PathBuf,
        /// The rule: `noatime`, `relatime` or `strictatime`.
        value: String,
    },
}

named! {
    /// Names of the checks.
    // In the order in which they are shown.
    CheckName {
        /// Mode of transparent huge pages.
        HugePages = "huge_pages",
        /// What the kernel does when no huge page is free.
        HugePagesDefrag = "huge_pages_defrag",
        /// How many missing small pages a huge page may be padded with.
        HugePagesPadding = "huge_pages_padding",
        /// Whether our own process, and with it a server that it starts, may have huge pages.
        OwnHugePages = "own_huge_pages",
        /// Inclination of the kernel to swap.
        Swappiness = "swappiness",
        /// Whether a NUMA node reclaims its own memory before it uses that of another.
        ZoneReclaim = "zone_reclaim",
        /// Whether the kernel moves pages between NUMA nodes.
        NumaBalancing = "numa_balancing",
        /// How the server's memory is spread over the NUMA nodes.
        NumaInterleave = "numa_interleave",
        /// Memory mappings that a process may have.
        MaxMapCount = "max_map_count",
        /// Memory of the machine against the caches of the servers.
        CacheMemory = "cache_memory",
        /// Readahead of the device with the data.
        Readahead = "readahead",
        /// File system of the data.
        Filesystem = "filesystem",
        /// Whether reading files of the data writes access times.
        AccessTimes = "access_times",
        /// Free space for the data.
        FreeDisk = "free_disk",
        /// Governor of the CPU's frequency.
        CpuGovernor = "cpu_governor",
        /// Frequencies above the nominal one.
        CpuTurbo = "cpu_turbo",
        /// Deepest state that an idle CPU goes to.
        IdleStates = "idle_states",
        /// Whether the CPU prefers speed or saving energy.
        EnergyBias = "energy_bias",
        /// Simultaneous multithreading.
        Smt = "smt",
        /// NUMA nodes of each socket.
        SocketNodes = "socket_nodes",
        /// Hardware prefetchers of the CPU.
        Prefetchers = "prefetchers",
        /// Clock of the kernel.
        ClockSource = "clock_source",
        /// Files that the server may open.
        OpenFiles = "open_files",
        /// Processes and threads that the server's user may have.
        Processes = "processes",
        /// Work of others on the machine.
        OtherLoad = "other_load",
        /// Whether client and server share CPUs.
        SharedCores = "shared_cores",
        /// Who can reach the server without a password.
        BindAddress = "bind_address",
        /// Time of an empty command, and what lies between client and server.
        RoundTrip = "round_trip",
        /// Whether the kernel is one on which the server ends at its start.
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

    /// Reads a name; `-` counts as `_`.
    fn from_str(text: &str) -> Result<Self, UnknownCheck> {
        CheckName::from_name(&text.replace('-', "_")).ok_or_else(|| UnknownCheck {
            name: text.to_owned(),
        })
    }
}

/// There is no check of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no check `{name}`")]
pub struct UnknownCheck {
    /// The name.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_files_and_on_the_command_line_are_the_same() {
        for check in CheckName::ALL {
            assert_eq!(
                serde_json::to_value(check).expect("a name"),
                check.as_str(),
                "{check:?}"
            );
            assert_eq!(check.as_str().parse(), Ok(check));
            assert_eq!(check.as_str().replace('_', "-").parse(), Ok(check));
        }
        assert!("swap".parse::<CheckName>().is_err());
    }

    #[test]
    fn what_cannot_be_said_is_worse_than_a_pass_and_better_than_a_warning() {
        assert!(Level::Pass < Level::Unknown && Level::Unknown < Level::Warn);
        assert!(Level::Warn < Level::Fail);
    }
}
