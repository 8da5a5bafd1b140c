//! The resolved plan: what will be done, as plain validated data.
//!
//! A `Plan` printed as TOML is itself a valid plan file, so the copy that is kept in a run
//! directory can be run again. It never holds a secret: a connection string is split into
//! [`Target`](crate::uri::Target) and [`Credentials`](crate::uri::Credentials) before it gets here.

use crate::command_words::{MASK, lacks_secrets, without_query, without_secrets};
use crate::fleet::FleetPlan;
use crate::index_build::IndexBuildPlan;
use crate::io_trace::{self, IoTracePlan};
use crate::names::choices;
use crate::price::PricePlan;
use crate::storage::Storage;
use crate::tail::TailPlan;
use crate::topology::{Topology, TopologyError};
use crate::units::{Bytes, CacheSize, Span};
use crate::uri::redact;
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
    /// One sentence that says what the workload is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The server under test.
    pub server: ServerPlan,
    /// The documents: how many, what they look like, where they are stored.
    pub data: DataPlan,
    /// Weights of the operations.
    pub operations: OperationWeights,
    /// Which documents the operations touch.
    pub keys: KeyDistribution,
    /// Details of single operations.
    pub access: AccessPlan,
    /// Connections, threads, protocol backend and failure handling.
    pub client: ClientPlan,
    /// When operations start.
    pub schedule: Schedule,
    /// How long each phase lasts.
    pub phases: PhasePlan,
    /// What is watched while the load runs.
    #[serde(default)]
    pub observe: ObservePlan,
    /// What the whole bench costs; its price is unknown when absent.
    pub price: Option<PricePlan>,
    /// Windows of the run in which other programs watch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<TracePlan>,
    /// I/O trace of the servers' files: `true`, or a table with its window; none when absent.
    #[serde(default, deserialize_with = "io_trace::switch")]
    #[schemars(with = "Option<io_trace::Switch>")]
    pub trace: Option<IoTracePlan>,
    /// The experiment of `dyno index-build`, which other commands do not do; none when absent.
    pub index_build: Option<IndexBuildPlan>,
    /// The messages of `dyno tail`, which other commands do not send; none when absent.
    pub tail: Option<TailPlan>,
    /// The hosts of `dyno fleet`, which other commands do not look at; none when absent.
    pub fleet: Option<FleetPlan>,
}

choices! {
    /// Which server is measured.
    #[derive(Default)]
    ServerKind {
        /// The first of these that is there: a `mongod` that is named, one on `PATH`, one that `dyno server install` has
        /// put here, the embedded server. A plan that is carried out names what was chosen.
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

/// The server under test and the settings it is started with.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerPlan {
    /// Which server is measured.
    pub kind: ServerKind,
    /// Which servers are started and joined: `standalone`, `pairs=N`, `replica-set=N`, `sharded=SxR` with their
    /// details, and for an index build `split=N`, see `docs/servers.md`. One server, or `pairs` of them, when absent.
    pub topology: Option<String>,
    /// Independent servers, each with a client of its own that does what the plan says; 1 to 64. All of
    /// them start together, and the result has them together and one by one.
    #[schemars(range(min = 1, max = 64))]
    pub pairs: u32,
    /// CPUs and memory of the servers and their clients, on this machine or on each host of a fleet, such as `spread` or
    /// `cores-per-instance=4 client=other`; left to the system when absent.
    pub placement: Option<String>,
    /// Connection string without credentials; only with `kind = "uri"`.
    pub uri: Option<String>,
    /// The `mongod` program: a path, or the version of one that `dyno server install` has put here, such as `6.0.27`.
    /// The first one that is found when absent. It makes `kind = "auto"` a `mongod`.
    pub mongod: Option<String>,
    /// Path of the `mongos` program; `mongos` beside `mongod` or on `PATH` when absent. Not with the embedded server.
    pub mongos: Option<String>,
    /// Storage-engine cache of a server that we start: bytes, or `smallest` for the smallest that shows how this kind of
    /// server works. The server's own default when absent.
    pub cache: Option<CacheSize>,
    /// Block compressor of a server that we start (`none`, `lz4`, `zlib`, `snappy`, `zstd`; not every server has each).
    pub block_compressor: Option<String>,
    /// A write is acknowledged when it is on the disk: the embedded server flushes its log on every commit, of other
    /// servers the operations ask for it by `journal=true` in their write concern.
    // Plans of version 0.1 have it under the name of the embedded server's option.
    #[serde(alias = "sync_on_commit")]
    pub durable_writes: bool,
    /// Time between checkpoints of a server that we start. The server's own default when absent.
    pub checkpoint_interval: Option<Span>,
    /// Data folder of a server that we start. A temporary folder inside the run directory when absent.
    pub data_dir: Option<String>,
    /// Data folders on several disks, used by the servers with data as `disk_mapping` says; in place of `data_dir`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub data_dirs: Vec<String>,
    /// How servers are laid on `data_dirs`.
    pub disk_mapping: DiskMapping,
    /// Storage that is prepared for the data of all servers that we start, and taken away with them, such as
    /// `xfs on /dev/nvme1n1` or `ext4 on loop:4GiB at 500 iops`; in place of `data_dir`. Needs root, see `docs/storage.md`.
    pub storage: Option<Storage>,
    /// Whether connections are encrypted, by certificates that are made for the run.
    pub encryption: Encryption,
    /// Clients must authenticate, as a user with a random password that is made for the run.
    pub auth: bool,
    /// Write-ahead journal of `mongod`; off up to version 6.0 and outside of replica sets only. On when absent.
    pub journal: Option<bool>,
    /// Longest time between two writes of the journal of `mongod`, 1 ms to 500 ms in whole milliseconds; 100 ms
    /// when absent.
    pub journal_commit_interval: Option<Span>,
    /// Compressor of the journal of `mongod` (`none`, `snappy`, `zlib`, `zstd`); `snappy` when absent.
    pub journal_compressor: Option<String>,
    /// Storage engine of `mongod`; `wired-tiger` when absent.
    pub storage_engine: Option<StorageEngine>,
    /// Parameters of `mongod` by name, as after `--setParameter`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Parameters that are set by the command `setParameter` on every server with data once it runs, by name: those that need
    /// no restart. What was set before comes back at the end of the run, also on servers that ran already.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub runtime_parameters: BTreeMap<String, String>,
    /// Settings of the kernel and of devices of this machine, made for the time of the run and put back after it, by name:
    /// `swappiness`, `dirty_ratio`, `dirty_background_ratio`, `zone_reclaim`, `numa_balancing`, `huge_pages`,
    /// `huge_pages_defrag`, `cpu_governor`, and of the disk with the data `readahead` and `io_scheduler`. They need root, and a
    /// server that we start.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub host_settings: BTreeMap<String, String>,
    /// Options of the connection string to servers that we start, such as `w=majority&readConcernLevel=majority`:
    /// the concerns of the run, compression, read preference.
    pub connection_options: Option<String>,
    /// Address of its machine on which a server that we start accepts connections, such as `10.0.0.21`, or `0.0.0.0` for all
    /// of them, which needs `advertise`; 127.0.0.1 when absent. Whoever reaches it can do everything with a server that
    /// asks for no password (`auth`).
    pub listen: Option<String>,
    /// Name or address by which clients and members reach a server that listens on `listen`, such as `db1.example.com`; that
    /// address itself when absent. Certificates are valid for it.
    pub advertise: Option<String>,
    /// Network card of the machine of the servers whose receive packet steering is set for the time of the run: `eth0` for all
    /// CPUs online, or `eth0=0-3`; `auto` in place of the name is the card with the address that the servers listen on. What was
    /// set before comes back afterwards. Unchanged when absent.
    pub receive_packet_steering: Option<String>,
}

/// How servers with data are laid on several data folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DiskMapping {
    /// In turn: server i on folder i modulo their number.
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
    /// The cache that `smallest` means; `None` for a server that is already running, or is not chosen yet. `mongod` refuses less; the embedded server
    /// takes 1 MiB, but with that one would measure little but eviction.
    pub const fn smallest_cache(self) -> Option<Bytes> {
        match self {
            ServerKind::Embedded => Some(Bytes::from_mib(64)),
            ServerKind::Mongod => Some(Bytes::from_mib(256)),
            ServerKind::Auto | ServerKind::Uri => None,
        }
    }
}

impl ServerPlan {
    /// The topology that [`ServerPlan::topology`] and [`ServerPlan::pairs`] name together.
    ///
    /// # Errors
    /// The text is no topology.
    pub fn topology(&self) -> Result<Topology, TopologyError> {
        match &self.topology {
            Some(text) => text.parse(),
            None if self.pairs > 1 => Ok(Topology::Pairs { n: self.pairs }),
            None => Ok(Topology::Standalone),
        }
    }

    /// Gives the topology its one form: independent servers are `pairs`, and one server needs no words. A text that is no
    /// topology stays.
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

    /// Whether the collection is divided among shards: one that is dropped would come back undivided.
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

    /// Whether the write concern makes writes durable. The embedded server answers to `journal=true` without waiting for
    /// its disk; it is started with an option for that.
    pub fn waits_for_journal(&self) -> bool {
        self.durable_writes && matches!(self.kind, ServerKind::Mongod | ServerKind::Uri)
    }

    /// The address that servers listen on. A text that is no address, which a valid plan has not, is 127.0.0.1.
    pub fn listen_address(&self) -> IpAddr {
        let given = self.listen.as_deref().and_then(|text| text.parse().ok());
        given.unwrap_or(Ipv4Addr::LOCALHOST.into())
    }
}

impl Default for ServerPlan {
    fn default() -> Self {
        ServerPlan {
            kind: ServerKind::default(),
            topology: None,
            pairs: 1,
            placement: None,
            uri: None,
            mongod: None,
            mongos: None,
            cache: None,
            block_compressor: None,
            durable_writes: false,
            checkpoint_interval: None,
            data_dir: None,
            data_dirs: Vec::new(),
            disk_mapping: DiskMapping::default(),
            storage: None,
            encryption: Encryption::default(),
            auth: false,
            journal: None,
            journal_commit_interval: None,
            journal_compressor: None,
            storage_engine: None,
            parameters: BTreeMap::new(),
            runtime_parameters: BTreeMap::new(),
            host_settings: BTreeMap::new(),
            connection_options: None,
            listen: None,
            advertise: None,
            receive_packet_steering: None,
        }
    }
}

/// The documents of the collection under test.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DataPlan {
    /// Database.
    pub database: String,
    /// Collection.
    pub collection: String,
    /// Documents that the whole data set has (YCSB `recordcount`). At least 1.
    pub records: u64,
    /// As many documents as are this many times the cache of one server, in place of `records`: a resolved plan has
    /// `records` alone. Needs `server.cache`.
    pub times_cache: Option<f64>,
    /// Number of the first document that this client loads and works on (YCSB `insertstart`).
    pub insert_start: u64,
    /// Documents that this client loads (YCSB `insertcount`); `records - insert_start` when absent.
    pub insert_count: Option<u64>,
    /// Documents that operations insert have every so many numbers after the data set: as many as clients insert into
    /// it, each of them with an `insert_offset` of its own. At least 1.
    #[schemars(range(min = 1))]
    pub insert_step: u32,
    /// Which of `insert_step` numbers this client takes, from 0.
    pub insert_offset: u32,
    /// Fields of a document besides `_id`. At least 1.
    pub field_count: u32,
    /// Field names are this prefix and a number from 0.
    pub field_name_prefix: String,
    /// Distribution of the length of a field's value.
    pub field_length: FieldLength,
    /// Share of each value that a compressor can remove, 0 (random bytes as YCSB makes them) to 1.
    pub compressible_ratio: f64,
    /// Values are computed from key and field name, so that every read can be checked.
    pub integrity: bool,
    /// Order of document numbers in the key space.
    pub key_order: KeyOrder,
    /// Text before the number in a key. YCSB: `user`.
    pub key_prefix: String,
    /// Numbers in keys are filled with zeros to this width.
    pub zero_padding: u32,
    /// Secondary indexes that are created once the documents are loaded, each as names of fields separated by commas, such as
    /// `field0` or `field1,field0`, ascending.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<String>,
    /// What a run begins with.
    pub fresh: FreshData,
    /// What the kernel keeps of files in memory when the load begins.
    pub page_cache: PageCache,
}

impl Default for DataPlan {
    fn default() -> Self {
        DataPlan {
            database: "ycsb".into(),
            collection: "usertable".into(),
            records: 100_000,
            times_cache: None,
            insert_start: 0,
            insert_count: None,
            insert_step: 1,
            insert_offset: 0,
            field_count: 10,
            field_name_prefix: "field".into(),
            field_length: FieldLength::default(),
            compressible_ratio: 0.0,
            integrity: false,
            key_order: KeyOrder::Hashed,
            key_prefix: "user".into(),
            zero_padding: 1,
            indexes: Vec::new(),
            fresh: FreshData::WhenChanged,
            page_cache: PageCache::Keep,
        }
    }
}

impl DataPlan {
    /// Fields of each secondary index, in their order.
    pub fn index_keys(&self) -> impl Iterator<Item = Vec<&str>> {
        let indexes = self.indexes.iter();
        indexes.map(|fields| fields.split(',').map(str::trim).collect())
    }

    /// Mean size of a document in bytes, without its key and the names of fields; `None` where lengths follow a
    /// histogram. Of zipfian lengths it is too much: the short ones are the most frequent.
    pub fn mean_document_bytes(&self) -> Option<u64> {
        let field = match self.field_length {
            FieldLength::Constant { bytes } => bytes,
            FieldLength::Uniform {
                min_bytes,
                max_bytes,
            }
            | FieldLength::Zipfian {
                min_bytes,
                max_bytes,
            } => min_bytes.midpoint(max_bytes),
            FieldLength::Histogram { .. } => return None,
        };
        Some(u64::from(field) * u64::from(self.field_count))
    }
}

/// What a run begins with: the data that earlier runs left, or new data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FreshData {
    /// In an experiment on servers that it starts, a run after one that inserted or deleted gets a new collection; everything
    /// else finds what is there.
    #[default]
    WhenChanged,
    /// Every run finds what is there.
    Never,
    /// The collection is dropped and loaded before each run.
    Collection,
    /// In an experiment a new server is started for each run, and the collection is loaded anew.
    Server,
}

impl FreshData {
    /// Whether every run loads its own data.
    pub fn is_for_each_run(self) -> bool {
        matches!(self, FreshData::Collection | FreshData::Server)
    }
}

/// The page cache of the machine before the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PageCache {
    /// As the load phase left it.
    #[default]
    Keep,
    /// Written to the disks and dropped, so that first reads are those of a disk. Needs root, and a server on this machine. The
    /// server's own cache stays.
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
    /// Bucket `i` (from 0) has weight `weights[i]` and means a length of `(i + 1) * block_bytes`.
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
    /// The number is hashed (FNV-1a, 64 bit, as YCSB does): neighbours are far apart in the index.
    #[default]
    Hashed,
    /// The number is used as it is.
    Ordered,
}

/// Weights of the operations. They are divided by their sum; at least one is positive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OperationWeights {
    /// Find one document by key.
    pub read: f64,
    /// Set fields of one document.
    pub update: f64,
    /// Insert a new document.
    pub insert: f64,
    /// Find a range of documents in key order.
    pub scan: f64,
    /// Read a document, then update it.
    pub read_modify_write: f64,
    /// Delete one document by key.
    pub delete: f64,
}

impl OperationWeights {
    /// Whether some operation writes.
    pub fn has_writes(&self) -> bool {
        self.update + self.insert + self.read_modify_write + self.delete > 0.0
    }
}

/// Rule that chooses the document of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "kebab-case", deny_unknown_fields)]
pub enum KeyDistribution {
    /// Every document with the same probability.
    Uniform {},
    /// What YCSB calls `zipfian`: a zipfian draw (exponent 0.99) over ten billion items, hashed into the key space. Flatter than its name.
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
    /// One document after the other, again from the start after the last.
    Sequential {},
    /// Exponentially less often the older the document is.
    Exponential {
        /// This percentage of the operations, 0 to 100 exclusive …
        percentile: f64,
        /// … goes to this share of the newest documents.
        data_ratio: f64,
    },
}

/// Details of single operations.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AccessPlan {
    /// Reads return all fields (otherwise one, chosen uniformly).
    pub read_all_fields: bool,
    /// Reads of all fields name each of them in a projection.
    pub read_all_fields_by_name: bool,
    /// Updates set all fields (otherwise one, chosen uniformly).
    pub write_all_fields: bool,
    /// Shortest scan in documents.
    pub min_scan_length: u32,
    /// Longest scan in documents.
    pub max_scan_length: u32,
    /// Distribution of the scan length.
    pub scan_length_distribution: ScanLength,
    /// What scans go along; `_id` when absent.
    pub scan_along: Option<ScanPath>,
    /// How the kinds of operations follow each other; drawn at random when absent.
    pub operation_order: Option<OperationOrder>,
    /// Inserts replace an existing document with the same key (YCSB `mongodb.upsert`).
    pub upsert: bool,
}

impl Default for AccessPlan {
    fn default() -> Self {
        AccessPlan {
            read_all_fields: true,
            read_all_fields_by_name: false,
            write_all_fields: false,
            min_scan_length: 1,
            max_scan_length: 1000,
            scan_length_distribution: ScanLength::Uniform,
            scan_along: None,
            operation_order: None,
            upsert: false,
        }
    }
}

/// What scans go along.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScanPath {
    /// `_id`, from the key of a document on; documents are returned.
    #[default]
    Key,
    /// The secondary indexes of `data.indexes`, each scan along one of them, from a random value of its first field on; only
    /// the fields of the index are returned, so that it covers the query.
    Indexes,
}

/// How the kinds of operations follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OperationOrder {
    /// The kind of each is drawn by the weights.
    #[default]
    Random,
    /// Kinds are dealt out evenly: with a constant schedule each has a fixed rate, its share of that of the schedule.
    Even,
}

/// Distribution of the number of documents of a scan.
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
    /// Who speaks the protocol.
    #[derive(Default)]
    Backend {
        /// Our own wire protocol path: the cheapest client.
        #[default]
        Wire = "wire", "Our own protocol path";
        /// The official Rust driver: its cost is part of the result.
        Driver = "driver", "The official Rust driver";
    }
}

/// Connections, threads, protocol backend and failure handling.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientPlan {
    /// Concurrent connections, each with at most one operation in flight (YCSB's threads). At least 1.
    pub clients: u32,
    /// Worker threads that share the connections, 1 to `clients`.
    pub threads: u32,
    /// Who speaks the protocol.
    pub backend: Backend,
    /// Start of all random sequences; the same seed repeats the same operations.
    pub seed: u64,
    /// An operation without an answer after this time counts as a timeout and its connection is replaced.
    pub timeout: Span,
    /// A run ends when no connection could be had for this time, or for `timeout` if that is longer.
    pub give_up: Span,
    /// Pin each worker thread to one core.
    pub pin: bool,
    /// Documents per insert command of the load phase, 1 to 100 000.
    pub batch: u32,
    /// Connections of the load phase; `clients` when absent.
    pub load_clients: Option<u32>,
    /// Mean time that a client of a closed loop waits between an answer and its next operation; none when absent or 0.
    pub think_time: Option<Span>,
    /// Distribution of the think time; `constant` when absent.
    pub think_time_distribution: Option<ThinkTime>,
    /// Largest share of failed operations that is not a failure of the run, 0 to 1.
    pub tolerated_error_ratio: f64,
}

impl Default for ClientPlan {
    fn default() -> Self {
        ClientPlan {
            clients: 16,
            threads: 1,
            backend: Backend::Wire,
            seed: 42,
            timeout: Span::from_secs(10),
            give_up: Span::from_secs(30),
            pin: false,
            batch: 100,
            load_clients: None,
            think_time: None,
            think_time_distribution: None,
            tolerated_error_ratio: 0.0,
        }
    }
}

/// Distribution of the think time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkTime {
    /// Always the mean.
    #[default]
    Constant,
    /// Exponentially distributed, as of users who know nothing of each other.
    Exponential,
}

impl ClientPlan {
    /// The mean think time; `None` for none.
    pub fn mean_think_time(&self) -> Option<Span> {
        self.think_time.filter(|mean| !mean.0.is_zero())
    }
}

/// Rule that gives the intended start of every operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// Each client starts its next operation when the last one has ended and its think time is over.
    Closed {},
    /// Starts at equal distances, whatever the server does.
    Constant {
        /// Offered rate in operations per second, above 0.
        rate_per_s: f64,
        /// An arrival that could not start within this time is dropped and counted.
        #[serde(default = "default_max_start_delay")]
        max_start_delay: Span,
    },
    /// Starts with exponentially distributed distances, whatever the server does.
    Poisson {
        /// Mean offered rate in operations per second, above 0.
        rate_per_s: f64,
        /// An arrival that could not start within this time is dropped and counted.
        #[serde(default = "default_max_start_delay")]
        max_start_delay: Span,
    },
    /// YCSB's `target`: a closed loop in which each client has its share of the rate, as starts at equal distances. One that
    /// is behind starts its next operation when the last one has ended, until it has caught up; nothing is dropped.
    Throttled {
        /// Target rate of all clients in operations per second, above 0.
        rate_per_s: f64,
    },
}

fn default_max_start_delay() -> Span {
    Schedule::DEFAULT_MAX_START_DELAY
}

impl Schedule {
    /// `max_start_delay` of a schedule that does not mention it: enough to see a stall at full weight,
    /// and bounded, so that a server that stays too slow does not collect an endless queue.
    pub const DEFAULT_MAX_START_DELAY: Span = Span::from_secs(10);

    /// Operations per second that are offered; `None` of a closed loop.
    pub fn rate_per_s(&self) -> Option<f64> {
        match *self {
            Schedule::Closed {} => None,
            Schedule::Constant { rate_per_s, .. }
            | Schedule::Poisson { rate_per_s, .. }
            | Schedule::Throttled { rate_per_s } => Some(rate_per_s),
        }
    }

    /// The rate, to be changed; `None` of a closed loop.
    pub fn rate_mut(&mut self) -> Option<&mut f64> {
        match self {
            Schedule::Closed {} => None,
            Schedule::Constant { rate_per_s, .. }
            | Schedule::Poisson { rate_per_s, .. }
            | Schedule::Throttled { rate_per_s } => Some(rate_per_s),
        }
    }

    /// How late an arrival may start; `None` where clients start their operations themselves.
    pub fn max_start_delay(&self) -> Option<Span> {
        match *self {
            Schedule::Closed {} | Schedule::Throttled { .. } => None,
            Schedule::Constant {
                max_start_delay, ..
            }
            | Schedule::Poisson {
                max_start_delay, ..
            } => Some(max_start_delay),
        }
    }
}

/// How long each phase lasts.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PhasePlan {
    /// Time before measuring starts, under the same load; its operations are kept apart. 0: none.
    pub warmup: Span,
    /// Longest measuring time; no limit when absent. At least one of `duration` and `operations` is given.
    pub duration: Option<Span>,
    /// Operations to measure; no limit when absent.
    pub operations: Option<u64>,
}

impl Default for PhasePlan {
    fn default() -> Self {
        PhasePlan {
            warmup: Span::from_secs(5),
            duration: Some(Span::from_secs(30)),
            operations: None,
        }
    }
}

/// What is watched while the load runs: machine, servers and exporters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ObservePlan {
    /// Whether this machine and the processes of client and servers are watched.
    pub host: bool,
    /// Whether the servers are asked what they do, each over a connection of its own.
    pub server: bool,
    /// Time from one reading to the next: 100 ms to 1 minute.
    pub interval: Span,
    /// Prometheus exporters that are read as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exporters: Vec<ExporterPlan>,
    /// A Grafana that is told, once a run is recorded, what happened in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grafana: Option<GrafanaPlan>,
}

impl Default for ObservePlan {
    fn default() -> Self {
        ObservePlan {
            host: true,
            server: true,
            interval: Span::from_secs(1),
            exporters: Vec::new(),
            grafana: None,
        }
    }
}

/// The disk with the data, or the disks that share it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "`disk` is the name of a disk, or a list of names"
)]
pub enum DiskNames {
    /// One disk.
    One(String),
    /// Disks that have a part of the data each.
    Several(Vec<String>),
}

impl DiskNames {
    /// All of them.
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
    /// Names its file, `metrics/NAME.csv` in the run directory. One to 64 characters of `[A-Za-z0-9._-]`.
    pub name: String,
    /// Where it answers, such as `http://db1:9100/metrics` or `https://db1:9100/metrics`, without credentials.
    pub url: String,
    /// Whether it is about a machine that a server under test runs on. Without it, an exporter at the address of a server is.
    pub of_server: Option<bool>,
    /// The disk there that holds the data of the servers, such as `nvme1n1`, or the disks, such as the members of an array. Without
    /// it, the one below the data folder that the server names.
    pub disk: Option<DiskNames>,
    /// File that holds a bearer token and nothing else. It is read at each reading, and never recorded.
    pub token_file: Option<PathBuf>,
    /// Name for HTTP Basic authentication, with `password_file`.
    pub user: Option<String>,
    /// File that holds the password of `user` and nothing else. It is read at each reading, and never recorded.
    pub password_file: Option<PathBuf>,
    /// File of certificates (PEM) that an `https` exporter is trusted by, instead of those of this system.
    pub ca_file: Option<PathBuf>,
}

impl ExporterPlan {
    /// An exporter that answers anybody.
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
    /// Where its pages begin, such as `http://monitor:3000`, without credentials and query.
    pub url: String,
    /// File that holds the token of a service account and nothing else. It is read for each annotation, and never recorded.
    pub token_file: Option<PathBuf>,
    /// File of certificates (PEM) that one of `https` is trusted by, instead of those of this system.
    pub ca_file: Option<PathBuf>,
}

/// A phase that a trace window can be in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TracePhase {
    /// Inserts the data set.
    Load,
    /// Under load, before measuring.
    Warmup,
    /// The result.
    #[default]
    Measure,
}

impl Plan {
    /// The plan as it may be kept and shown: passwords, tokens and the like in a connection string, in commands that watch,
    /// and in the queries of exporters are hidden.
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

    /// Whether something that it needs was hidden when it was kept.
    pub fn lacks_secrets(&self) -> bool {
        let mut exporters = self.observe.exporters.iter();
        self.traces
            .iter()
            .any(|trace| lacks_secrets(&trace.command))
            || exporters.any(|exporter| exporter.url.ends_with(&format!("?{MASK}")))
    }
}

/// A window of the run in which another program watches, such as `perf` or `sar`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TracePlan {
    /// Names its folder, `traces/NAME` in the run directory. One to 64 characters of `[A-Za-z0-9._-]`.
    pub name: String,
    /// Program and arguments. It runs in its folder and is asked to end with SIGINT.
    pub command: Vec<String>,
    /// Phase that the window is in.
    #[serde(default)]
    pub phase: TracePhase,
    /// Time from the start of the phase to that of the program.
    #[serde(default)]
    pub from: Span,
    /// Longest time that it runs; to the end of the phase when absent.
    #[serde(rename = "for")]
    pub length: Option<Span>,
}
