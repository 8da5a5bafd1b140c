//! `index-build.json`: index builds under trace, either one, or one before and one after a remedy for the order of the
//! documents. The traces are in folders next to it.

use crate::consumption::Consumption;
use crate::document::document;
use crate::model::{Environment, RunStatus};
use crate::plan::RecordedPlan;
use crate::server::ExperimentServer;
use crate::statement::Statement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Format version that is written.
pub const SCHEMA_VERSION: u32 = 1;
/// Name of the file in the experiment's folder.
pub const FILE: &str = "index-build.json";

/// An index build experiment.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IndexBuildDocument {
    /// Format version.
    pub schema_version: u32,
    pub dyno_version: String,
    /// Start, RFC 3339 in UTC.
    pub started_at: String,
    /// End, RFC 3339 in UTC; absent until then.
    pub ended_at: Option<String>,
    pub status: RunStatus,
    /// Why the experiment ended early.
    pub status_reason: Option<String>,
    /// Name of the plan.
    pub name: String,
    /// Plan without secrets.
    pub plan: Value,
    /// The server, or the first of several.
    pub server: ExperimentServer,
    /// The collection, over all servers of a configuration.
    pub collection: CollectionFacts,
    /// Machine of the experiment.
    pub environment: Option<Environment>,
    /// Location of the data; absent for a server that was not started for the experiment.
    pub disk: Option<DiskFacts>,
    /// Builds in order: for each configuration one, or two with a remedy between them.
    pub builds: Vec<BuildRecord>,
    /// Remedy between two builds; with several configurations, each has its own.
    pub remedy: Option<RemedyRecord>,
    /// Topologies on which the same index was built, in order; empty for a single server, or for servers that were
    /// already running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<ConfigurationRecord>,
    pub caveats: Vec<IndexBuildCaveat>,
}

document!(IndexBuildDocument, FILE, SCHEMA_VERSION, "an index build folder");

/// The collection and its origin.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectionFacts {
    /// `database.collection`.
    pub namespace: String,
    pub documents: u64,
    /// Size of the documents as BSON.
    pub bytes: u64,
    /// Hash of all documents, independent of their order.
    pub content_hash: String,
    /// Time to load the documents; absent if the collection existed.
    pub load_s: Option<f64>,
}

/// A topology with its own documents, on which the index was built.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationRecord {
    /// Topology, such as `standalone`, `split=2` or `sharded=2x1`.
    pub topology: String,
    /// The documents, each counted once.
    pub collection: CollectionFacts,
    /// Servers with data, and their documents: members of a set have the same ones.
    pub members: Vec<MemberFacts>,
    /// Remedy between two builds.
    pub remedy: Option<RemedyRecord>,
}

/// A server with its part of the documents.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemberFacts {
    /// Name: `server` if it is the only one, otherwise `split-0`, `member-0`, `shard-0-0` and so on.
    pub name: String,
    pub documents: u64,
    /// Size of the documents as BSON.
    pub bytes: u64,
    /// Data folder during the build, which identifies the server's files in a trace; absent if unknown.
    pub data: Option<String>,
}

/// Location of a server's data.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskFacts {
    /// Kernel name of the device, such as `vda1` or `loop0`; empty if unknown.
    pub device: String,
    /// File system, such as `ext4`; empty if unknown.
    pub file_system: String,
    /// Whether the device is a file on another disk, created for the experiment.
    pub made: bool,
    /// Limit of reads per second, and of writes per second, during a build; absent without a limit.
    pub iops: Option<u32>,
}

/// One build of the index.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildRecord {
    /// `before` or `after`, with the topology as a prefix if there are several (`split-2-before`); also the name of the
    /// trace's folder.
    pub name: String,
    /// Topology of the configuration; absent without configurations.
    pub configuration: Option<String>,
    /// Start, RFC 3339 in UTC.
    pub started_at: String,
    /// Seconds from the command to its answer; on several servers at once, to the last answer. The answer of a replica
    /// set comes from its primary, the answer of a cluster from its router.
    pub duration_s: f64,
    /// Whether the server was restarted before, so that its cache held only data that it reads at its start.
    pub server_restarted: bool,
    /// Whether the machine's page cache was dropped before.
    pub page_cache_dropped: bool,
    /// Bytes of the data files in the page cache at the start of the build; absent if unknown.
    pub cached_bytes: Option<u64>,
    /// Bytes that the server read from the device between its start and the build, which may be in its cache. Absent if
    /// unknown.
    pub read_at_start_bytes: Option<u64>,
    /// Size of the data files at the start of the build; absent for a server that was not started for the experiment.
    pub data_bytes: Option<u64>,
    /// Reads and writes of the server process during the build.
    pub process: Option<IoFigures>,
    /// Reads and writes of the device during the build, by all processes.
    pub device: Option<IoFigures>,
    /// Consumption of all servers, their devices and the processors.
    pub consumption: Option<Consumption>,
    /// Growth of server counters during the build, by dotted name; summed over several servers.
    pub server: BTreeMap<String, f64>,
    /// The build on each server, if several have data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberBuild>,
    /// Pairs of the same build with and without a trace; empty if it was built only one way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tracing: Vec<TracingPair>,
}

/// A build on one of several servers that built at the same time.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemberBuild {
    pub name: String,
    /// Seconds from the command to its answer; members of a set or a cluster share one command.
    pub duration_s: f64,
    /// Reads and writes of the server process.
    pub process: Option<IoFigures>,
    /// Reads and writes of the device; absent if other servers share it.
    pub device: Option<IoFigures>,
}

/// A traced and an untraced build, both started with cold caches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TracingPair {
    /// Duration of the traced build.
    pub traced_s: f64,
    /// Duration of the untraced build.
    pub untraced_s: f64,
    /// Whether the traced build came first.
    pub traced_first: bool,
}

/// Reads and writes of a process or device.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IoFigures {
    /// Reads: calls of a process, requests of a device.
    pub reads: u64,
    /// Bytes read; for a process only from devices, not from the page cache.
    pub read_bytes: u64,
    /// Writes: calls of a process, requests of a device.
    pub writes: u64,
    pub written_bytes: u64,
    /// Share of the time in which the device was busy; absent for a process.
    pub busy_ratio: Option<f64>,
}

/// A remedy for the order of the documents.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemedyRecord {
    /// Name in a plan.
    pub kind: String,
    /// Duration including all verification.
    pub duration_s: f64,
    /// Number of documents before and after.
    pub documents: (u64, u64),
    /// Hash of all documents before and after, independent of their order.
    pub content_hash: (String, String),
    /// Cache size of the server during the remedy, if it differs from the builds.
    pub cache_bytes: Option<u64>,
    /// The only server with the remedy; absent if all servers had it.
    pub on: Option<String>,
}

/// A reason to doubt the result.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IndexBuildCaveat {
    #[serde(flatten)]
    pub statement: Statement,
    /// Affected build; absent for all.
    pub build: Option<String>,
}

impl RemedyRecord {
    /// Whether the documents are unchanged.
    pub fn is_identical(&self) -> bool {
        self.documents.0 == self.documents.1 && self.content_hash.0 == self.content_hash.1
    }
}

impl IndexBuildDocument {
    /// The plan's fields.
    pub fn recorded_plan(&self) -> RecordedPlan {
        RecordedPlan::new(&self.plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_identical_compares_number_and_content() {
        let record = |documents, hashes: (&str, &str)| RemedyRecord {
            kind: "rewrite".into(),
            duration_s: 1.0,
            documents,
            content_hash: (hashes.0.into(), hashes.1.into()),
            cache_bytes: None,
            on: None,
        };
        assert!(record((3, 3), ("a", "a")).is_identical());
        assert!(!record((3, 2), ("a", "a")).is_identical());
        assert!(!record((3, 3), ("a", "b")).is_identical());
    }
}
