//! The resolved plan as plain validated data.
//!
//! A `Plan` printed as TOML is itself a valid plan file, so the copy in a run directory can be run
//! again. It never contains a secret: a connection string is split into
//! [`Target`](crate::uri::Target) and [`Credentials`](crate::uri::Credentials) before it gets here.

use crate::command_words::{MASK, lacks_secrets, without_query, without_secrets};
use crate::fleet::FleetPlan;
use crate::index_build::IndexBuildPlan;
use crate::io_trace::{self, IoTracePlan};
use crate::names::{choices, named, with_defaults};
use crate::operation;
use crate::price::PricePlan;
use crate::storage::Storage;
use crate::tail::TailPlan;
use crate::topology::{Topology, TopologyError};
use crate::units::{Bytes, CacheSize, Span};
use crate::uri::redact;
use crate::workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// Everything a run does, resolved from defaults, file and options in that order.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Short name of the workload, used in the name of the run directory. One to 64 characters of `[A-Za-z0-9._-]`.
    pub name: String,
    /// One sentence about the purpose of the workload.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Labels of the run, by which `dyno runs --tag` finds it. One to 64 characters of `[A-Za-z0-9._-]` each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The server under test.
    pub server: ServerPlan,
    /// The documents: their number, content and location.
    pub data: DataPlan,
    /// The operations: weights of YCSB's operations, or a list of own operations.
    pub operations: OperationWeights,
    /// Which documents the operations access.
    pub keys: KeyDistribution,
    /// Details of single operations.
    pub access: AccessPlan,
    /// Connections, threads, protocol backend and failure handling.
    pub client: ClientPlan,
    /// When operations start.
    pub schedule: Schedule,
    /// How long each phase lasts.
    pub phases: PhasePlan,
    /// Observation of machine, servers and exporters while the load runs.
    #[serde(default)]
    pub observe: ObservePlan,
    /// Price of all machines of the bench; unknown when absent.
    pub price: Option<PricePlan>,
    /// Windows of the run in which other programs observe it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TracePlan>,
    /// I/O trace of the servers' files: `true`, or a table with its window; none when absent.
    #[serde(default, deserialize_with = "io_trace::switch")]
    #[schemars(with = "Option<io_trace::Switch>")]
    pub trace: Option<IoTracePlan>,
    /// The experiment of `dyno index-build`, which other commands do not run; none when absent.
    pub index_build: Option<IndexBuildPlan>,
    /// The messages of `dyno tail`, which other commands do not send; none when absent.
    pub tail: Option<TailPlan>,
    /// The hosts of `dyno fleet`, which other commands ignore; none when absent.
    pub fleet: Option<FleetPlan>,
    /// Aggregations of own collections with an expected result, after the load and after the measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<workload::Check>,
    /// Folder of the plan file, whose files templates can name. Not a key: a plan cannot choose it.
    #[serde(skip)]
    pub folder: Option<PathBuf>,
}

choices! {
    /// Which server is measured.
    #[derive(Default)]
    ServerKind {
        /// The first available one of these: a named `mongod`, one on `PATH`, one installed by
        /// `dyno server install`, the embedded server. A resolved plan names the chosen server.
        #[default]
        Auto = "auto",
            "The first of these that exists: a named server (`--mongod`, `--embedded-server`), a `mongod` on `PATH`, an installed `mongod`, the embedded server";
        /// The embedded server `secantusd-rs`, started for the run.
        Embedded = "embedded", "The embedded server `secantusd-rs`";
        /// A `mongod` started for the run.
        Mongod = "mongod", "MongoDB's own server";
        /// A server that is already running, addressed by `uri`.
        Uri = "uri", "A server that is already running";
    }
}

with_defaults! {
    /// The server under test and the settings it is started with.
    #[serde_with::skip_serializing_none]
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct ServerPlan {
        /// Which server is measured.
        pub kind: ServerKind,
        /// The servers to start and join: `standalone`, `pairs=N`, `replica-set=N`, `sharded=SxR`
        /// with their details, and for an index build `split=N`, see `docs/servers.md`. One server,
        /// or `pairs` servers, when absent.
        pub topology: Option<String>,
        /// Number of independent servers, each with its own client that executes the plan; 1 to 64.
        /// All of them start together, and the result shows them together and individually.
        #[schemars(range(min = 1, max = 64))]
        pub pairs: u32 = 1,
        /// CPUs and memory of the servers and their clients, on this machine or on each fleet host,
        /// such as `spread` or `cores-per-instance=4 client=other`; the system decides when absent.
        pub placement: Option<String>,
        /// Connection string without credentials; only with `kind = "uri"`.
        pub uri: Option<String>,
        /// The `mongod` program: a path, or a version installed by `dyno server install`, such as
        /// `6.0.27`. The first one found when absent. If set, `kind = "auto"` means `mongod`.
        pub mongod: Option<String>,
        /// Path of the `mongos` program; `mongos` next to `mongod` or on `PATH` when absent. Not
        /// with the embedded server.
        pub mongos: Option<String>,
        /// Storage-engine cache of a server that we start: bytes, or `smallest` for the smallest
        /// useful size for this kind of server. The server's own default when absent.
        pub cache: Option<CacheSize>,
        /// Block compressor of a server that we start: `none`, `lz4`, `zlib`, `snappy` or `zstd`,
        /// if the server supports it.
        pub block_compressor: Option<String>,
        /// A write is acknowledged when it is on the disk. The embedded server flushes its log on
        /// every commit; for other servers the operations use `journal=true` in their write
        /// concern.
        pub durable_writes: bool,
        /// Time between checkpoints of a server that we start. The server's own default when
        /// absent.
        pub checkpoint_interval: Option<Span>,
        /// Data folder of a server that we start. A temporary folder inside the run directory when
        /// absent.
        pub data_dir: Option<String>,
        /// Data folders on several disks, instead of `data_dir`; `disk_mapping` assigns the servers
        /// with data to them.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub data_dirs: Vec<String>,
        /// How servers are assigned to `data_dirs`.
        pub disk_mapping: DiskMapping,
        /// Storage that is prepared for the data of all servers that we start, and removed
        /// afterwards, such as `xfs on /dev/nvme1n1` or `ext4 on loop:4GiB at 500 iops`; instead of
        /// `data_dir`. Needs root, see `docs/storage.md`.
        pub storage: Option<Storage>,
        /// Whether connections are encrypted, with certificates created for the run.
        pub encryption: Encryption,
        /// Whether clients must authenticate, as a user with a random password created for the run.
        pub auth: bool,
        /// Write-ahead journal of `mongod`; can be off only up to version 6.0 and outside replica
        /// sets. On when absent.
        pub journal: Option<bool>,
        /// Longest time between two journal writes of `mongod`, 1 ms to 500 ms in whole
        /// milliseconds; 100 ms when absent.
        pub journal_commit_interval: Option<Span>,
        /// Compressor of the journal of `mongod` (`none`, `snappy`, `zlib`, `zstd`); `snappy` when
        /// absent.
        pub journal_compressor: Option<String>,
        /// Storage engine of `mongod`; `wired-tiger` when absent.
        pub storage_engine: Option<StorageEngine>,
        /// Parameters of `mongod` by name, as after `--setParameter`.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub parameters: BTreeMap<String, String>,
        /// Parameters, by name, that the command `setParameter` sets at run time on every server
        /// with data. The previous values are restored at the end of the run, even on servers that
        /// were already running.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub runtime_parameters: BTreeMap<String, String>,
        /// Settings of the kernel and of devices of this machine by name, set for the run and
        /// restored afterwards: `swappiness`, `dirty_ratio`, `dirty_background_ratio`,
        /// `zone_reclaim`, `numa_balancing`, `huge_pages`, `huge_pages_defrag`, `cpu_governor`, and
        /// for the disk with the data `readahead` and `io_scheduler`. They need root, and a server
        /// that we start.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub host_settings: BTreeMap<String, String>,
        /// Options of the connection string to servers that we start, such as
        /// `w=majority&readConcernLevel=majority`: read and write concern, compression, read
        /// preference.
        pub connection_options: Option<String>,
        /// Address of its machine on which a server that we start accepts connections, such as
        /// `10.0.0.21`, or `0.0.0.0` for all addresses, which needs `advertise`; 127.0.0.1 when
        /// absent. Without a password (`auth`), everyone who reaches the server has full access.
        pub listen: Option<String>,
        /// Name or address by which clients and members reach a server that listens on `listen`,
        /// such as `db1.example.com`; the value of `listen` when absent. Certificates are valid for
        /// it.
        pub advertise: Option<String>,
        /// Network card on the servers' machine whose receive packet steering is set for the run:
        /// `eth0` for all online CPUs, or `eth0=0-3`; the name `auto` means the card with the
        /// servers' listening address. The previous setting is restored afterwards. Unchanged when
        /// absent.
        pub receive_packet_steering: Option<String>,
    }
}

/// How servers with data are assigned to several data folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiskMapping {
    /// In turn: server i on folder i modulo the number of folders.
    #[default]
    RoundRobin,
    /// Server i on folder i; fewer folders than servers are refused.
    Direct,
}

/// Whether connections to servers that we start are encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Encryption {
    /// Plain text.
    #[default]
    Off,
    /// TLS; clients check the certificate of the server.
    Server,
    /// TLS; the server checks a certificate of the clients as well.
    Mutual,
}

/// Storage engines of `mongod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StorageEngine {
    /// On disk, in every edition.
    WiredTiger,
    /// In memory, in MongoDB Enterprise and Percona Server.
    InMemory,
}

impl ServerKind {
    /// The cache that `smallest` means; `None` for a server that is already running or not chosen
    /// yet. `mongod` refuses smaller caches. The embedded server accepts 1 MiB, but then mostly
    /// eviction would be measured.
    pub const fn smallest_cache(self) -> Option<Bytes> {
        match self {
            ServerKind::Embedded => Some(Bytes::from_mib(64)),
            ServerKind::Mongod => Some(Bytes::from_mib(256)),
            ServerKind::Auto | ServerKind::Uri => None,
        }
    }
}

impl ServerPlan {
    /// The topology specified by [`ServerPlan::topology`] and [`ServerPlan::pairs`] together.
    ///
    /// # Errors
    /// The text is not a topology.
    pub fn topology(&self) -> Result<Topology, TopologyError> {
        match &self.topology {
            Some(text) => text.parse(),
            None if self.pairs > 1 => Ok(Topology::Pairs { n: self.pairs }),
            None => Ok(Topology::Standalone),
        }
    }

    /// Normalizes the topology: independent servers become `pairs`, and a single server needs no
    /// topology. An invalid text stays.
    pub fn resolve_topology(&mut self) {
        if self.topology.is_none() {
            return;
        }
        match self.topology() {
            Ok(Topology::Standalone) => self.topology = None,
            Ok(Topology::Pairs { n }) => {
                self.topology = None;
                self.pairs = n;
            }
            Ok(joined) => self.topology = Some(joined.to_string()),
            Err(_) => {}
        }
    }

    /// Whether the collection is divided among shards: dropping and recreating it would lose the
    /// division.
    pub fn is_sharded(&self) -> bool {
        matches!(self.topology(), Ok(Topology::Sharded(_)))
    }

    /// The cache in bytes; `None` for the server's own default.
    pub fn cache_bytes(&self) -> Option<Bytes> {
        match self.cache? {
            CacheSize::Smallest => self.kind.smallest_cache(),
            CacheSize::Of(bytes) => Some(bytes),
        }
    }

    /// Whether the write concern makes writes durable. The embedded server acknowledges
    /// `journal=true` without waiting for its disk, so it is started with an option instead.
    pub fn waits_for_journal(&self) -> bool {
        self.durable_writes && matches!(self.kind, ServerKind::Mongod | ServerKind::Uri)
    }

    /// The listening address of the servers. An invalid address, which a valid plan does not
    /// contain, means 127.0.0.1.
    pub fn listen_address(&self) -> IpAddr {
        let given = self.listen.as_deref().and_then(|text| text.parse().ok());
        given.unwrap_or(Ipv4Addr::LOCALHOST.into())
    }
}

with_defaults! {
    /// The documents of the collection under test.
    #[serde_with::skip_serializing_none]
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct DataPlan {
        /// Database.
        pub database: String = "ycsb".into(),
        /// Collection.
        pub collection: String = "usertable".into(),
        /// Documents in the whole data set (YCSB `recordcount`). At least 1.
        pub records: u64 = 100_000,
        /// Size of the data set as a multiple of one server's cache, instead of `records`; a
        /// resolved plan contains only `records`. Needs `server.cache`.
        pub times_cache: Option<f64>,
        /// Number of the first document that this client loads and uses (YCSB `insertstart`).
        pub insert_start: u64,
        /// Documents that this client loads (YCSB `insertcount`); `records - insert_start` when
        /// absent.
        pub insert_count: Option<u64>,
        /// Distance between the numbers of two documents that operations insert after the data set:
        /// the number of clients that insert into it, each with its own `insert_offset`. At least
        /// 1.
        #[schemars(range(min = 1))]
        pub insert_step: u32 = 1,
        /// Which of `insert_step` consecutive numbers this client uses, from 0.
        pub insert_offset: u32,
        /// Fields of a document besides `_id`. At least 1.
        pub field_count: u32 = 10,
        /// Field names consist of this prefix and a number from 0.
        pub field_name_prefix: String = "field".into(),
        /// Distribution of the length of a field's value.
        pub field_length: FieldLength,
        /// Share of each value that a compressor can remove, 0 (random bytes as in YCSB) to 1.
        pub compressible_ratio: f64,
        /// Whether values are computed from key and field name, so that every read can be verified.
        pub integrity: bool,
        /// Order of document numbers in the key space.
        pub key_order: KeyOrder = KeyOrder::Hashed,
        /// Text before the number in a key. YCSB: `user`.
        pub key_prefix: String = "user".into(),
        /// Numbers in keys are padded with zeros to this width.
        pub zero_padding: u32 = 1,
        /// Secondary indexes that are created after loading, each as ascending field names
        /// separated by commas, such as `field0` or `field1,field0`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub indexes: Vec<String>,
        /// The data at the start of a run.
        pub fresh: FreshData = FreshData::WhenChanged,
        /// State of the kernel's page cache when the load begins.
        pub page_cache: PageCache = PageCache::Keep,
        /// Own collections. Of the other keys, only `database`, `fresh` and `page_cache` apply to them.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub collections: Vec<workload::Collection>,
    }
}

impl DataPlan {
    /// Fields of each secondary index, in their order.
    pub fn index_keys(&self) -> impl Iterator<Item = Vec<&str>> {
        self.indexes.iter().map(|fields| fields.split(',').map(str::trim).collect())
    }

    /// Documents of the whole data set, over all own collections if there are any.
    pub fn planned_documents(&self) -> u64 {
        if self.collections.is_empty() {
            return self.records;
        }
        self.collections.iter().filter_map(|collection| collection.records).sum()
    }

    /// Mean size of a document in bytes, without its key and field names; `None` if lengths follow
    /// a histogram, or for own collections. Too large for zipfian lengths, where short values are
    /// the most frequent.
    pub fn mean_document_bytes(&self) -> Option<u64> {
        if !self.collections.is_empty() {
            return None;
        }
        let field = match self.field_length {
            FieldLength::Constant { bytes } => bytes,
            FieldLength::Uniform { min_bytes, max_bytes }
            | FieldLength::Zipfian { min_bytes, max_bytes } => min_bytes.midpoint(max_bytes),
            FieldLength::Histogram { .. } => return None,
        };
        Some(u64::from(field) * u64::from(self.field_count))
    }
}

/// The data at the start of a run: data of earlier runs, or new data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FreshData {
    /// In an experiment that starts its servers, a run after one that inserted or deleted gets a
    /// new collection; all other runs use the existing data.
    #[default]
    WhenChanged,
    /// Every run uses the existing data.
    Never,
    /// The collection is dropped and loaded before each run.
    Collection,
    /// In an experiment, each run starts a new server and loads the collection.
    Server,
}

impl FreshData {
    /// Whether every run loads its own data.
    pub fn is_for_each_run(self) -> bool {
        matches!(self, FreshData::Collection | FreshData::Server)
    }
}

/// The machine's page cache before the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PageCache {
    /// As the load phase left it.
    #[default]
    Keep,
    /// Written to the disks and dropped, so that first reads come from the disk. Needs root, and a
    /// server on this machine. The server's own cache stays.
    Drop,
}

/// Length of a field's value in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FieldLength {
    /// Always `bytes`.
    Constant {
        /// Length.
        bytes: u32,
    },
    /// Uniform in `min_bytes..=max_bytes`.
    Uniform {
        /// Shortest length.
        min_bytes: u32,
        /// Longest length.
        max_bytes: u32,
    },
    /// Zipfian (exponent 0.99) over `min_bytes..=max_bytes`, short values most frequent.
    Zipfian {
        /// Shortest length.
        min_bytes: u32,
        /// Longest length.
        max_bytes: u32,
    },
    /// Bucket `i` (from 0) has weight `weights[i]` and the length `(i + 1) * block_bytes`.
    Histogram {
        /// Width of a bucket.
        block_bytes: u32,
        /// Weight of each bucket.
        weights: Vec<u64>,
    },
}

impl Default for FieldLength {
    fn default() -> Self {
        FieldLength::Constant { bytes: 100 }
    }
}

/// Order of document numbers in the key space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeyOrder {
    /// The number is hashed (FNV-1a, 64 bit, as in YCSB): neighbours are far apart in the index.
    #[default]
    Hashed,
    /// The number is used unchanged.
    Ordered,
}

/// The operations of a mix: YCSB's by their weights, or the user's own. Weights are divided by their sum; at least one is
/// positive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "OperationsForm", into = "OperationsForm")]
#[schemars(with = "OperationsForm")]
pub struct OperationWeights {
    pub read: f64,
    pub update: f64,
    pub insert: f64,
    pub scan: f64,
    pub read_modify_write: f64,
    pub delete: f64,
    /// Own operations. If there are any, all weights above are 0.
    pub own: Vec<workload::Operation>,
}

/// Form of the operations in a file.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum OperationsForm {
    /// Weights of YCSB's operations.
    Weights(WeightsTable),
    /// Own operations.
    Own(Vec<workload::Operation>),
}

/// Weights of YCSB's operations.
#[derive(Serialize, Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
struct WeightsTable {
    /// Find one document by key.
    read: f64,
    /// Set fields of one document.
    update: f64,
    /// Insert a new document.
    insert: f64,
    /// Find a range of documents in key order.
    scan: f64,
    /// Read a document, then update it.
    read_modify_write: f64,
    /// Delete one document by key.
    delete: f64,
}

impl From<OperationsForm> for OperationWeights {
    fn from(form: OperationsForm) -> Self {
        match form {
            OperationsForm::Own(own) => OperationWeights { own, ..Default::default() },
            OperationsForm::Weights(WeightsTable {
                read,
                update,
                insert,
                scan,
                read_modify_write,
                delete,
            }) => OperationWeights {
                read,
                update,
                insert,
                scan,
                read_modify_write,
                delete,
                own: Vec::new(),
            },
        }
    }
}

impl From<OperationWeights> for OperationsForm {
    fn from(weights: OperationWeights) -> Self {
        let OperationWeights { read, update, insert, scan, read_modify_write, delete, own } =
            weights;
        if !own.is_empty() {
            return OperationsForm::Own(own);
        }
        OperationsForm::Weights(WeightsTable {
            read,
            update,
            insert,
            scan,
            read_modify_write,
            delete,
        })
    }
}

impl OperationWeights {
    /// The weights of YCSB's operations with their names.
    pub fn by_name(&self) -> [(&'static str, f64); 6] {
        [
            (operation::READ, self.read),
            (operation::UPDATE, self.update),
            (operation::INSERT, self.insert),
            (operation::SCAN, self.scan),
            (operation::READ_MODIFY_WRITE, self.read_modify_write),
            (operation::DELETE, self.delete),
        ]
    }

    /// Whether some operation writes.
    pub fn has_writes(&self) -> bool {
        self.update + self.insert + self.read_modify_write + self.delete > 0.0 || self.own_writes()
    }

    /// Whether operations may insert documents. An own operation that writes may do so in several ways.
    pub fn may_insert(&self) -> bool {
        self.insert > 0.0 || self.own_writes()
    }

    /// Whether operations may delete documents.
    pub fn may_delete(&self) -> bool {
        self.delete > 0.0 || self.own_writes()
    }

    fn own_writes(&self) -> bool {
        self.own.iter().any(|operation| operation.effect() != operation::Effect::Read)
    }
}

/// Rule that chooses the document of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "kebab-case", deny_unknown_fields)]
pub enum KeyDistribution {
    /// Every document with the same probability.
    Uniform {},
    /// YCSB's `zipfian`: a zipfian draw (exponent 0.99) over ten billion items, hashed into the key
    /// space. Flatter than its name suggests.
    ScrambledZipfian {},
    /// Exact zipfian: the document of rank `r` has probability proportional to `r^-exponent`; ranks are spread over the key space.
    Zipfian {
        /// Exponent, above 0.
        exponent: f64,
    },
    /// Zipfian (exponent 0.99) over the documents from newest to oldest.
    Latest {},
    /// A share of the operations goes to a share of the documents, uniformly inside both.
    Hotspot {
        /// Share of the documents that are hot, above 0 and up to 1.
        hot_data_ratio: f64,
        /// Share of the operations that go to hot documents, 0 to 1.
        hot_operation_ratio: f64,
    },
    /// One document after the other, starting over after the last one.
    Sequential {},
    /// Exponentially less often the older the document is.
    Exponential {
        /// This percentage of the operations, 0 to 100 exclusive …
        percentile: f64,
        /// … goes to this share of the newest documents.
        data_ratio: f64,
    },
}

with_defaults! {
    /// Details of single operations.
    #[serde_with::skip_serializing_none]
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct AccessPlan {
        /// Whether reads return all fields (otherwise one, chosen uniformly).
        pub read_all_fields: bool = true,
        /// Whether reads of all fields name each field in a projection.
        pub read_all_fields_by_name: bool,
        /// Whether updates set all fields (otherwise one, chosen uniformly).
        pub write_all_fields: bool,
        /// Shortest scan in documents.
        pub min_scan_length: u32 = 1,
        /// Longest scan in documents.
        pub max_scan_length: u32 = 1000,
        /// Distribution of the scan length.
        pub scan_length_distribution: ScanLength = ScanLength::Uniform,
        /// Index that scans follow; `_id` when absent.
        pub scan_along: Option<ScanPath>,
        /// Order of the kinds of operations; random when absent.
        pub operation_order: Option<OperationOrder>,
        /// Whether inserts replace an existing document with the same key (YCSB `mongodb.upsert`).
        pub upsert: bool,
    }
}

/// Index that scans follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScanPath {
    /// `_id`, starting at the key of a document; documents are returned.
    #[default]
    Key,
    /// The secondary indexes of `data.indexes`, one per scan, starting at a random value of the
    /// first field. Only the fields of the index are returned, so that it covers the query.
    Indexes,
}

/// Order of the kinds of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OperationOrder {
    /// The kind of each operation is drawn by the weights.
    #[default]
    Random,
    /// Kinds are distributed evenly: with a constant schedule each kind has a fixed rate, its share
    /// of the schedule's rate.
    Even,
}

/// Distribution of the number of documents in a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScanLength {
    /// Every length with the same probability.
    #[default]
    Uniform,
    /// Zipfian (exponent 0.99), short scans most frequent.
    Zipfian,
}

choices! {
    /// Implementation of the protocol.
    #[derive(Default)]
    Backend {
        /// Our own wire protocol implementation: the cheapest client.
        #[default]
        Wire = "wire", "Our own protocol path";
        /// The official Rust driver: its cost is part of the result.
        Driver = "driver", "The official Rust driver";
    }
}

with_defaults! {
    /// Connections, threads, protocol backend and failure handling.
    #[serde_with::skip_serializing_none]
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct ClientPlan {
        /// Concurrent connections, each with at most one operation in flight (YCSB's threads). At
        /// least 1.
        pub clients: u32 = 16,
        /// Worker threads that share the connections, 1 to `clients`.
        pub threads: u32 = 1,
        /// Implementation of the protocol.
        pub backend: Backend = Backend::Wire,
        /// Seed of all random sequences; the same seed repeats the same operations.
        pub seed: u64 = 42,
        /// An operation without an answer after this time counts as a timeout, and its connection
        /// is replaced.
        pub timeout: Span = Span::from_secs(10),
        /// A run ends if no connection is available for this time, or for `timeout` if that is
        /// longer.
        pub give_up: Span = Span::from_secs(30),
        /// Whether to pin each worker thread to one core.
        pub pin: bool,
        /// Documents per insert command of the load phase, 1 to 100 000.
        pub batch: u32 = 100,
        /// Connections of the load phase; `clients` when absent.
        pub load_clients: Option<u32>,
        /// Mean time that a client of a closed loop waits between an answer and its next operation;
        /// none when absent or 0.
        pub think_time: Option<Span>,
        /// Distribution of the think time; `constant` when absent.
        pub think_time_distribution: Option<ThinkTime>,
        /// Largest share of failed operations with which a run still succeeds, 0 to 1.
        pub tolerated_error_ratio: f64,
    }
}

/// Distribution of the think time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkTime {
    /// Always the mean.
    #[default]
    Constant,
    /// Exponentially distributed, like independent users.
    Exponential,
}

impl ClientPlan {
    /// The mean think time; `None` without think time.
    pub fn mean_think_time(&self) -> Option<Span> {
        self.think_time.filter(|mean| !mean.0.is_zero())
    }
}

choices! {
    /// Name of a schedule, as given by an option.
    ScheduleKind {
        /// See [`Schedule::Closed`].
        Closed = "closed", "Each client starts its next operation when its last one has ended";
        /// See [`Schedule::Constant`].
        Constant = "constant", "Operations start at equal distances, whatever the server does";
        /// See [`Schedule::Poisson`].
        Poisson = "poisson",
            "Operations start at random, exponentially distributed distances, whatever the server does";
        /// See [`Schedule::Throttled`].
        Throttled = "throttled",
            "Each client starts its share of the rate at equal distances, or when its last operation has ended (YCSB's target)";
    }
}

/// Rule for the intended start of every operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// Each client starts its next operation when the previous one has ended and its think time is
    /// over.
    Closed {},
    /// Starts at equal intervals, independent of the server.
    Constant {
        /// Offered rate in operations per second, above 0.
        rate_per_s: f64,
        /// An arrival that cannot start within this time is dropped and counted.
        #[serde(default = "default_max_start_delay")]
        max_start_delay: Span,
    },
    /// Starts at exponentially distributed intervals, independent of the server.
    Poisson {
        /// Mean offered rate in operations per second, above 0.
        rate_per_s: f64,
        /// An arrival that cannot start within this time is dropped and counted.
        #[serde(default = "default_max_start_delay")]
        max_start_delay: Span,
    },
    /// YCSB's `target`: a closed loop in which each client starts its share of the rate at equal
    /// intervals. A client that is behind starts its next operation when the previous one has
    /// ended, until it has caught up; nothing is dropped.
    Throttled {
        /// Target rate of all clients in operations per second, above 0.
        rate_per_s: f64,
    },
}

fn default_max_start_delay() -> Span {
    Schedule::DEFAULT_MAX_START_DELAY
}

impl Schedule {
    /// `max_start_delay` of a schedule that does not set it: long enough to show a stall
    /// completely, but bounded, so that a permanently slow server does not collect an endless
    /// queue.
    pub const DEFAULT_MAX_START_DELAY: Span = Span::from_secs(10);

    /// Its kind.
    pub fn kind(&self) -> ScheduleKind {
        match self {
            Schedule::Closed {} => ScheduleKind::Closed,
            Schedule::Constant { .. } => ScheduleKind::Constant,
            Schedule::Poisson { .. } => ScheduleKind::Poisson,
            Schedule::Throttled { .. } => ScheduleKind::Throttled,
        }
    }

    /// Offered operations per second; `None` for a closed loop.
    pub fn rate_per_s(&self) -> Option<f64> {
        match *self {
            Schedule::Closed {} => None,
            Schedule::Constant { rate_per_s, .. }
            | Schedule::Poisson { rate_per_s, .. }
            | Schedule::Throttled { rate_per_s } => Some(rate_per_s),
        }
    }

    /// The rate, for modification; `None` for a closed loop.
    pub fn rate_mut(&mut self) -> Option<&mut f64> {
        match self {
            Schedule::Closed {} => None,
            Schedule::Constant { rate_per_s, .. }
            | Schedule::Poisson { rate_per_s, .. }
            | Schedule::Throttled { rate_per_s } => Some(rate_per_s),
        }
    }

    /// Longest delay of an arrival; `None` if clients start their operations themselves.
    pub fn max_start_delay(&self) -> Option<Span> {
        match *self {
            Schedule::Closed {} | Schedule::Throttled { .. } => None,
            Schedule::Constant { max_start_delay, .. }
            | Schedule::Poisson { max_start_delay, .. } => Some(max_start_delay),
        }
    }
}

with_defaults! {
    /// How long each phase lasts.
    #[serde_with::skip_serializing_none]
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct PhasePlan {
        /// Time before measuring starts, under the same load; its operations are recorded
        /// separately. 0: none.
        pub warmup: Span = Span::from_secs(5),
        /// Longest measuring time; no limit when absent. At least one of `duration` and
        /// `operations` is given.
        pub duration: Option<Span> = Some(Span::from_secs(30)),
        /// Operations to measure; no limit when absent.
        pub operations: Option<u64>,
    }
}

with_defaults! {
    /// Observation of machine, servers and exporters while the load runs.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct ObservePlan {
        /// Whether this machine and the processes of client and servers are observed.
        pub host: bool = true,
        /// Whether the servers' metrics are read, each over its own connection.
        pub server: bool = true,
        /// Time between two readings: 100 ms to 1 minute.
        pub interval: Span = Span::from_secs(1),
        /// Prometheus exporters to read as well.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub exporters: Vec<ExporterPlan>,
        /// A Grafana that gets annotations after a run is recorded.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub grafana: Option<GrafanaPlan>,
    }
}

/// The disk with the data, or several disks that share it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "`disk` is the name of a disk, or a list of names")]
pub enum DiskNames {
    /// One disk.
    One(String),
    /// Disks that each hold a part of the data.
    Several(Vec<String>),
}

impl DiskNames {
    /// All disks.
    pub fn names(&self) -> &[String] {
        match self {
            DiskNames::One(name) => std::slice::from_ref(name),
            DiskNames::Several(names) => names,
        }
    }
}

/// A Prometheus exporter, such as `node_exporter` or `mongodb_exporter`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExporterPlan {
    /// Name of its file, `metrics/NAME.csv` in the run directory. One to 64 characters of
    /// `[A-Za-z0-9._-]`.
    pub name: String,
    /// Its address, such as `http://db1:9100/metrics` or `https://db1:9100/metrics`, without
    /// credentials.
    pub url: String,
    /// Whether it reports a machine on which a server under test runs. When absent: whether it has
    /// the address of a server.
    pub of_server: Option<bool>,
    /// The disk there with the servers' data, such as `nvme1n1`, or several disks, such as the
    /// members of an array. When absent, the disk below the data folder that the server reports.
    pub disk: Option<DiskNames>,
    /// File that contains only a bearer token. It is read for each reading, and never recorded.
    pub token_file: Option<PathBuf>,
    /// Name for HTTP Basic authentication, with `password_file`.
    pub user: Option<String>,
    /// File that contains only the password of `user`. It is read for each reading, and never
    /// recorded.
    pub password_file: Option<PathBuf>,
    /// File of trusted certificates (PEM) for an `https` exporter, instead of the system's
    /// certificates.
    pub ca_file: Option<PathBuf>,
}

impl ExporterPlan {
    /// An exporter that requires no credentials.
    #[must_use]
    pub fn open(name: String, url: String) -> ExporterPlan {
        ExporterPlan {
            name,
            url,
            of_server: None,
            disk: None,
            token_file: None,
            user: None,
            password_file: None,
            ca_file: None,
        }
    }
}

/// A Grafana that shows what Prometheus reads of a run.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrafanaPlan {
    /// Its base address, such as `http://monitor:3000`, without credentials and query.
    pub url: String,
    /// File that contains only the token of a service account. It is read for each annotation, and
    /// never recorded.
    pub token_file: Option<PathBuf>,
    /// File of trusted certificates (PEM) for `https`, instead of the system's certificates.
    pub ca_file: Option<PathBuf>,
}

named! {
    /// Purpose of a phase.
    // Listed in execution order.
    #[derive(Default)]
    PhaseKind {
        /// Inserts the data set.
        Load = "load",
        /// The same load as `Measure`, until the server has settled; not part of the result.
        Warmup = "warmup",
        /// The measured load.
        #[default]
        Measure = "measure",
    }
}

/// Keys of `data` that apply to own collections.
pub(crate) const OWN_DATA: [&str; 4] = ["database", "fresh", "page_cache", "collections"];

impl Plan {
    /// Whether the plan has own collections or operations.
    pub fn is_own(&self) -> bool {
        !self.operations.own.is_empty() || !self.data.collections.is_empty()
    }

    /// The plan's own collections, operations and checks.
    pub fn own_workload(&self) -> workload::Workload {
        workload::Workload {
            data: workload::Data { collections: self.data.collections.clone() },
            operations: self.operations.own.clone(),
            checks: self.checks.clone(),
            folder: self.folder.clone(),
        }
    }

    /// The plan in a form that may be stored and shown: hides passwords, tokens and similar secrets
    /// in a connection string, in observing commands, and in the queries of exporters.
    #[must_use]
    pub fn without_secrets(&self) -> Plan {
        let mut plan = self.clone();
        plan.server.uri = plan.server.uri.map(|uri| redact(&uri));
        for trace in &mut plan.traces {
            trace.command = without_secrets(&trace.command);
        }
        for exporter in &mut plan.observe.exporters {
            exporter.url = without_query(&exporter.url);
        }
        plan
    }

    /// Whether a secret that the plan needs was hidden when it was stored.
    pub fn lacks_secrets(&self) -> bool {
        let mut exporters = self.observe.exporters.iter();
        self.traces.iter().any(|trace| lacks_secrets(&trace.command))
            || exporters.any(|exporter| exporter.url.ends_with(&format!("?{MASK}")))
    }
}

/// A window of the run in which another program observes it, such as `perf` or `sar`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TracePlan {
    /// Name of its folder, `traces/NAME` in the run directory. One to 64 characters of
    /// `[A-Za-z0-9._-]`.
    pub name: String,
    /// Program and arguments. It runs in its folder and is asked to end with SIGINT.
    pub command: Vec<String>,
    /// Phase of the window.
    #[serde(default)]
    pub phase: PhaseKind,
    /// Time from the start of the phase to the start of the program.
    #[serde(default)]
    pub from: Span,
    /// Longest duration of the program; until the end of the phase when absent.
    #[serde(rename = "for")]
    pub length: Option<Span>,
}

/// Replaces a value if a new one is given.
pub(crate) fn set<T>(target: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *target = value;
    }
}
