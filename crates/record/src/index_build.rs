//! `index-build.json`: an index that was built under trace, once, or before and after something was done about the
//! order of the documents. The traces are in folders beside it.

use crate::consumption::Consumption;
use crate::document::Document;
use crate::model::{Environment, RunStatus};
use crate::plan::RecordedPlan;
use crate::server::ExperimentServer;
use crate::statement::Statement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Version of the form that is written now.
pub const SCHEMA_VERSION: u32 = 2;
/// Name of the file in the folder of the experiment.
pub const FILE: &str = "index-build.json";

/// The experiment.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IndexBuildDocument {
    /// Version of the form.
    pub schema_version: u32,
    /// Version of the program.
    pub dyno_version: String,
    /// Its start, RFC 3339 in UTC.
    pub started_at: String,
    /// Its end, RFC 3339 in UTC; absent before, and in records of earlier versions.
    pub ended_at: Option<String>,
    /// How it ended.
    pub status: RunStatus,
    /// Why it ended early.
    pub status_reason: Option<String>,
    /// Name of the plan.
    pub name: String,
    /// The plan, without secrets.
    pub plan: Value,
    /// The server; the first one of several.
    pub server: ExperimentServer,
    /// The collection, over all servers of a configuration.
    pub collection: CollectionFacts,
    /// The machine that it ran on; absent in records of earlier versions.
    pub environment: Option<Environment>,
    /// Where its data is; absent of a server that was not started for it.
    pub disk: Option<DiskFacts>,
    /// The builds in their order: one, or two with a remedy between them, of each configuration.
    pub builds: Vec<BuildRecord>,
    /// What was done between two builds; of several configurations it stands with each.
    pub remedy: Option<RemedyRecord>,
    /// Topologies on which the same index was built, in their order; empty if it was built on one server alone, or on one that
    /// ran already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<ConfigurationRecord>,
    /// Reasons to doubt it.
    pub caveats: Vec<IndexBuildCaveat>,
}

impl Document for IndexBuildDocument {
    const FILE: &'static str = FILE;
    const SCHEMA_VERSION: u32 = SCHEMA_VERSION;
    const FOLDER: &'static str = "the folder of an index build";

    fn schema_version(&mut self) -> &mut u32 {
        &mut self.schema_version
    }
}

/// The collection, and how it came to be.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CollectionFacts {
    /// `database.collection`.
    pub namespace: String,
    /// Documents in it.
    pub documents: u64,
    /// Their size as BSON, in bytes.
    pub bytes: u64,
    /// Hash of all documents, whatever their order.
    pub content_hash: String,
    /// How long loading took; absent if the collection was there.
    pub load_s: Option<f64>,
}

/// A topology on which the index was built, with documents of its own.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationRecord {
    /// The topology, such as `standalone`, `split=2` or `sharded=2x1`.
    pub topology: String,
    /// Its documents, each counted once.
    pub collection: CollectionFacts,
    /// Its servers with data, and the documents of each: members of a set have the same ones.
    pub members: Vec<MemberFacts>,
    /// What was done between two builds.
    pub remedy: Option<RemedyRecord>,
}

/// A server with its part of the documents.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemberFacts {
    /// Its name: `server` if it stands alone, else `split-0`, `member-0`, `shard-0-0` and so on.
    pub name: String,
    /// Documents in it.
    pub documents: u64,
    /// Their size as BSON, in bytes.
    pub bytes: u64,
    /// Folder of its data while the index was built, by which its files are known in a trace; absent if it is not known.
    pub data: Option<String>,
}

/// Where the data of the server is.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskFacts {
    /// Kernel's name of the device, such as `vda1` or `loop0`; empty if it is not known.
    pub device: String,
    /// File system, such as `ext4`; empty if it is not known.
    pub file_system: String,
    /// Whether it is a file on another disk that was made for the experiment.
    pub made: bool,
    /// Most reads, and most writes, per second while an index was built; absent without a limit.
    pub iops: Option<u32>,
}

/// One build of the index.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildRecord {
    /// `before` or `after`, behind the topology where there are several (`split-2-before`); also the name of the folder of
    /// its trace.
    pub name: String,
    /// The topology that it was made on, one of the configurations; absent if there are none.
    pub configuration: Option<String>,
    /// Its start, RFC 3339 in UTC.
    pub started_at: String,
    /// From the command to its answer, in seconds; on several servers at once, until the last one has answered. Of a set it is
    /// the answer of its primary, of a cluster that of the router.
    pub duration_s: f64,
    /// Whether the server was restarted before, so that its own cache held what it reads at its start, and no more.
    pub server_restarted: bool,
    /// Whether the page cache of the machine was dropped before.
    pub page_cache_dropped: bool,
    /// Bytes of the data files that were in the page cache when the build began; absent if it is not known.
    pub cached_bytes: Option<u64>,
    /// Bytes that the server had read from the device between its start and the build: they may be in its cache. Absent if it is not
    /// known.
    pub read_at_start_bytes: Option<u64>,
    /// Size of the data files when the build began, in bytes; absent of a server that was not started for it.
    pub data_bytes: Option<u64>,
    /// What the process read and wrote while the index was built.
    pub process: Option<IoFigures>,
    /// What the device did while the index was built, for everybody.
    pub device: Option<IoFigures>,
    /// What all servers, their devices and the processors used for it; absent in records of earlier versions.
    pub consumption: Option<Consumption>,
    /// Counters of the server by dotted name: how much they grew while the index was built; those of several servers are
    /// added up.
    pub server: BTreeMap<String, f64>,
    /// The same build on each of several servers with data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberBuild>,
    /// The same build with and without a trace, in turns; empty if it was made with one only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tracing: Vec<TracingPair>,
}

/// A build on one of several servers, which built at the same time.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemberBuild {
    /// Name of the server.
    pub name: String,
    /// From the command to its answer, in seconds; members of a set or a cluster share one command.
    pub duration_s: f64,
    /// What its process read and wrote.
    pub process: Option<IoFigures>,
    /// What its device did; absent if it is that of other servers, too.
    pub device: Option<IoFigures>,
}

/// A build under trace and the same build without, both from caches that were made cold in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TracingPair {
    /// Duration of the build under trace, in seconds.
    pub traced_s: f64,
    /// Duration of the build without a trace, in seconds.
    pub untraced_s: f64,
    /// Whether the one under trace came first.
    pub traced_first: bool,
}

/// What was read and written.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IoFigures {
    /// Reads: calls of a process, requests of a device.
    pub reads: u64,
    /// Bytes read: by a process from devices, page cache not counted.
    pub read_bytes: u64,
    /// Writes: calls of a process, requests of a device.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Share of the time in which a device had something to do; absent of a process.
    pub busy_ratio: Option<f64>,
}

/// What was done about the order of the documents.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemedyRecord {
    /// Its name in a plan.
    pub kind: String,
    /// How long it took with all verification, in seconds.
    pub duration_s: f64,
    /// Documents before and after.
    pub documents: (u64, u64),
    /// Hash of all documents, whatever their order, before and after.
    pub content_hash: (String, String),
    /// Cache of the server meanwhile, where it was another one than for the builds, in bytes.
    pub cache_bytes: Option<u64>,
    /// The only server that it was applied on; absent if it was applied on all of them.
    pub on: Option<String>,
}

/// A reason to doubt it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IndexBuildCaveat {
    /// What is the matter.
    #[serde(flatten)]
    pub statement: Statement,
    /// The build that it touches; all when absent.
    pub build: Option<String>,
}

impl RemedyRecord {
    /// Whether every document is what it was.
    pub fn is_identical(&self) -> bool {
        self.documents.0 == self.documents.1 && self.content_hash.0 == self.content_hash.1
    }
}

impl IndexBuildDocument {
    /// The plan by its fields.
    pub fn recorded_plan(&self) -> RecordedPlan {
        RecordedPlan::new(&self.plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_identical_only_with_the_same_number_and_the_same_content() {
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
