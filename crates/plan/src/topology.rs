//! The servers of a deployment, as plain data with a text form: `standalone`, `pairs=4`, `split=2`,
//! `replica-set=3+1`, `sharded=2x3,key=_id:hashed`. `servers` starts them.

mod text;

/// Largest number of members of a replica set, and of voting members.
/// Source: MongoDB manual, "MongoDB Limits and Thresholds", replica sets.
const MOST_MEMBERS: u32 = 50;
const MOST_VOTERS: u32 = 7;

/// A larger number of processes on one host is probably a typing error.
const MOST_INSTANCES: u32 = 64;

/// Largest number of initial chunks per shard.
/// Source: MongoDB manual, `shardCollection`, `numInitialChunks`.
const MOST_CHUNKS_PER_SHARD: u32 = 8191;

/// Why only an index build accepts a [`Topology::Split`].
pub(crate) const NOT_DEALT: &str =
    "only `dyno index-build` distributes documents over servers without a router";
/// Advice for other work.
pub(crate) const INSTEAD_OF_SPLIT: &str =
    "use `pairs=N` for servers with one client each, or `sharded=SxR` for a cluster";

/// The servers of a deployment.
#[derive(Clone, Debug, PartialEq)]
pub enum Topology {
    /// One server.
    Standalone,
    /// Independent servers, each with its own client.
    Pairs {
        /// At least 1.
        n: u32,
    },
    /// Independent servers over which an index build distributes its documents by the hash of
    /// `_id`, without a router, like the data members of a sharded cluster. Other work does not
    /// support it.
    Split {
        /// At least 2.
        n: u32,
    },
    /// One replica set.
    ReplicaSet(ReplicaSet),
    /// Shards that are replica sets, config servers and routers.
    Sharded(Sharded),
}

/// A replica set of at most 50 members, 7 of them voting.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSet {
    /// Members with data, at least 1. Members after the seventh voter do not vote.
    pub data_members: u32,
    /// Members without data that vote.
    pub arbiters: u32,
    /// Priority of each data member, 0 to 1000 and not all 0; all 1 when empty. Members without a
    /// vote have priority 0.
    pub priorities: Vec<u16>,
}

/// A sharded cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Sharded {
    /// Shards, at least 1.
    pub shards: u32,
    /// Data members of each shard, at least 1 and at most 7.
    pub members_per_shard: u32,
    /// Members of the replica set of the config servers, at least 1 and at most 7.
    pub config_members: u32,
    /// `mongos` processes, at least 1.
    pub routers: u32,
    /// The key by which the collection under test is divided.
    pub shard_key: ShardKey,
    /// Number of chunks before the first document.
    pub pre_split: PreSplit,
    /// Whether chunks may be moved during the run.
    pub balancer: Balancer,
}

/// Shard key of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardKey {
    /// Name of the field, dotted for an embedded one.
    pub field: String,
    pub kind: ShardKeyKind,
}

/// How values of a shard key are ordered into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardKeyKind {
    /// By their hash.
    Hashed,
    /// By their value.
    Ranged,
}

/// Chunks of an empty collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PreSplit {
    /// The server's default.
    #[default]
    Default,
    /// This many chunks, evenly over the shards; only for a hashed key.
    Chunks(u32),
    /// Chunks that begin at these ascending texts, distributed over the shards in turn; only for a
    /// ranged key with text values. It has no text form, because the values depend on the data.
    At(Vec<String>),
}

/// Whether the balancer may move chunks during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balancer {
    /// Chunks may be moved.
    On,
    /// The balancer is stopped before the collection is sharded.
    Off,
}

/// A text or a value is not a valid topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not a topology: {reason}")]
pub struct TopologyError {
    /// The given text.
    pub value: String,
    /// The error, and the valid forms.
    pub reason: String,
}

impl ReplicaSet {
    /// A set of `data_members` equal members.
    pub fn new(data_members: u32) -> ReplicaSet {
        ReplicaSet { data_members, arbiters: 0, priorities: Vec::new() }
    }

    /// Whether data member `index` votes. Arbiters always vote, and data members get the remaining
    /// votes.
    pub fn votes(&self, index: u32) -> bool {
        index + self.arbiters < MOST_VOTERS
    }

    /// Priority of data member `index` in an election.
    pub fn priority(&self, index: u32) -> u16 {
        if self.votes(index) { *self.priorities.get(index as usize).unwrap_or(&1) } else { 0 }
    }
}

impl Sharded {
    /// `shards` of `members_per_shard` members, one config server, one router, `_id` hashed, the
    /// balancer off: chunks that move during a measurement are not part of a workload.
    pub fn new(shards: u32, members_per_shard: u32) -> Sharded {
        Sharded {
            shards,
            members_per_shard,
            config_members: 1,
            routers: 1,
            shard_key: ShardKey { field: "_id".to_owned(), kind: ShardKeyKind::Hashed },
            pre_split: PreSplit::Default,
            balancer: Balancer::Off,
        }
    }
}

impl Topology {
    /// Number of processes.
    pub fn instances(&self) -> u32 {
        match self {
            Topology::Standalone => 1,
            Topology::Pairs { n } | Topology::Split { n } => *n,
            Topology::ReplicaSet(set) => set.data_members.saturating_add(set.arbiters),
            Topology::Sharded(cluster) => cluster
                .shards
                .saturating_mul(cluster.members_per_shard)
                .saturating_add(cluster.config_members)
                .saturating_add(cluster.routers),
        }
    }

    /// Number of connection strings for clients: one per independent server, else one.
    pub fn clients(&self) -> u32 {
        match self {
            Topology::Pairs { n } | Topology::Split { n } => *n,
            _ => 1,
        }
    }

    /// The feature that the embedded server lacks for this topology; `None` if it supports it.
    pub fn lacking_in_embedded(&self) -> Option<&'static str> {
        match self {
            Topology::ReplicaSet(_) => Some("replica sets"),
            Topology::Sharded(_) => Some("sharding"),
            Topology::Standalone | Topology::Pairs { .. } | Topology::Split { .. } => None,
        }
    }

    /// Number of servers that hold the data under test.
    pub fn data_servers(&self) -> u32 {
        match self {
            Topology::Standalone => 1,
            Topology::Pairs { n } | Topology::Split { n } => *n,
            Topology::ReplicaSet(set) => set.data_members,
            Topology::Sharded(cluster) => cluster.shards.saturating_mul(cluster.members_per_shard),
        }
    }

    /// Number of servers that hold each document. Pairs all hold the same documents.
    pub fn copies(&self) -> u32 {
        match self {
            Topology::Standalone | Topology::Split { .. } => 1,
            Topology::Pairs { n } => *n,
            Topology::ReplicaSet(set) => set.data_members,
            Topology::Sharded(cluster) => cluster.members_per_shard,
        }
    }

    /// Whether a single client uses all servers, which are joined into replica sets.
    pub fn is_joined(&self) -> bool {
        matches!(self, Topology::ReplicaSet(_) | Topology::Sharded(_))
    }

    /// Checks every number against the servers' limits.
    ///
    /// # Errors
    /// [`TopologyError`] with the number and its range.
    pub fn check(&self) -> Result<(), TopologyError> {
        let wrong = match self {
            Topology::Standalone => None,
            Topology::Pairs { n } => outside("pairs", *n, MOST_INSTANCES),
            Topology::Split { n } => (!(2..=MOST_INSTANCES).contains(n))
                .then(|| format!("servers must be 2 to {MOST_INSTANCES}, not {n}")),
            Topology::ReplicaSet(set) => wrong_set(set),
            Topology::Sharded(cluster) => wrong_cluster(cluster),
        };
        let wrong = wrong.or_else(|| {
            (self.instances() > MOST_INSTANCES).then(|| {
                format!("it has {} processes; the limit is {MOST_INSTANCES}", self.instances())
            })
        });
        match wrong {
            None => Ok(()),
            Some(reason) => Err(TopologyError { value: self.to_string(), reason }),
        }
    }
}

fn outside(what: &str, number: u32, most: u32) -> Option<String> {
    (number == 0 || number > most).then(|| format!("{what} must be 1 to {most}, not {number}"))
}

fn wrong_set(set: &ReplicaSet) -> Option<String> {
    if let Some(wrong) = outside("data members", set.data_members, MOST_MEMBERS) {
        return Some(wrong);
    }
    if set.arbiters >= MOST_VOTERS {
        return Some(format!("arbiters must be 0 to {}, not {}", MOST_VOTERS - 1, set.arbiters));
    }
    let given = set.priorities.len();
    if given != 0 && given != set.data_members as usize {
        return Some(format!(
            "{given} priorities for {} data members; give one for each",
            set.data_members
        ));
    }
    if let Some(high) = set.priorities.iter().find(|&&priority| priority > 1000) {
        return Some(format!("a priority must be 0 to 1000, not {high}"));
    }
    if (0..set.data_members).all(|index| set.priority(index) == 0) {
        return Some("all priorities are 0; no member could become the primary".to_owned());
    }
    None
}

fn wrong_cluster(cluster: &Sharded) -> Option<String> {
    let numbers = [
        ("shards", cluster.shards, MOST_INSTANCES),
        ("members per shard", cluster.members_per_shard, MOST_VOTERS),
        ("config servers", cluster.config_members, MOST_VOTERS),
        ("routers", cluster.routers, MOST_INSTANCES),
    ];
    for (what, number, most) in numbers {
        if let Some(wrong) = outside(what, number, most) {
            return Some(wrong);
        }
    }
    let field = &cluster.shard_key.field;
    if field.is_empty() || field.starts_with('$') || field.split('.').any(str::is_empty) {
        return Some(format!("`{field}` is not a field name"));
    }
    match (&cluster.pre_split, cluster.shard_key.kind) {
        (PreSplit::Default, _) | (PreSplit::At(_), ShardKeyKind::Ranged) => None,
        (PreSplit::Chunks(n), ShardKeyKind::Hashed) => {
            outside("chunks", *n, cluster.shards.saturating_mul(MOST_CHUNKS_PER_SHARD))
        }
        (PreSplit::Chunks(_), ShardKeyKind::Ranged) => Some(
            "a number of chunks needs a hashed key; a ranged key is split at given values"
                .to_owned(),
        ),
        (PreSplit::At(_), ShardKeyKind::Hashed) => {
            Some("a hashed key is split into a number of chunks, not at given values".to_owned())
        }
    }
}

#[cfg(test)]
mod tests;
