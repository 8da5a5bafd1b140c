//! Parses and prints the text form of a topology.

use std::fmt;
use std::str::FromStr;

use super::{
    Balancer, PreSplit, ReplicaSet, ShardKey, ShardKeyKind, Sharded, Topology, TopologyError,
};

/// The valid forms, for error messages.
pub(super) const FORMS: &str = "`standalone`, `pairs=N`, `replica-set=N[+ARBITERS][,priorities=P/P/...]`, \
    `sharded=SHARDSxMEMBERS[,config=N][,routers=N][,key=FIELD:hashed|ranged][,chunks=N][,balancer=on|off]`, \
    and for index builds `split=N`";

impl fmt::Display for ShardKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ShardKeyKind::Hashed => "hashed",
            ShardKeyKind::Ranged => "ranged",
        };
        write!(formatter, "{}:{kind}", self.field)
    }
}

/// The text form; default parts are omitted.
impl fmt::Display for Topology {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Topology::Standalone => formatter.write_str("standalone"),
            Topology::Pairs { n } => write!(formatter, "pairs={n}"),
            Topology::Split { n } => write!(formatter, "split={n}"),
            Topology::ReplicaSet(set) => {
                write!(formatter, "replica-set={}", set.data_members)?;
                if set.arbiters > 0 {
                    write!(formatter, "+{}", set.arbiters)?;
                }
                if !set.priorities.is_empty() {
                    let texts: Vec<_> = set.priorities.iter().map(u16::to_string).collect();
                    write!(formatter, ",priorities={}", texts.join("/"))?;
                }
                Ok(())
            }
            Topology::Sharded(cluster) => write_cluster(formatter, cluster),
        }
    }
}

fn write_cluster(formatter: &mut fmt::Formatter<'_>, cluster: &Sharded) -> fmt::Result {
    let usual = Sharded::new(cluster.shards, cluster.members_per_shard);
    write!(formatter, "sharded={}x{}", cluster.shards, cluster.members_per_shard)?;
    if cluster.config_members != usual.config_members {
        write!(formatter, ",config={}", cluster.config_members)?;
    }
    if cluster.routers != usual.routers {
        write!(formatter, ",routers={}", cluster.routers)?;
    }
    if cluster.shard_key != usual.shard_key {
        write!(formatter, ",key={}", cluster.shard_key)?;
    }
    if let PreSplit::Chunks(n) = cluster.pre_split {
        write!(formatter, ",chunks={n}")?;
    }
    if cluster.balancer == Balancer::On {
        formatter.write_str(",balancer=on")?;
    }
    Ok(())
}

impl FromStr for Topology {
    type Err = TopologyError;

    fn from_str(text: &str) -> Result<Topology, TopologyError> {
        let wrong = |reason: String| TopologyError {
            value: text.to_owned(),
            reason: format!("{reason}; valid forms are {FORMS}"),
        };
        let mut parts = text.trim().split(',');
        let (name, value) = pair(parts.next().unwrap_or_default());
        let options: Vec<_> = parts.map(pair).collect();
        let topology = parse(name, value, &options).map_err(wrong)?;
        topology.check().map_err(|error| wrong(error.reason))?;
        Ok(topology)
    }
}

/// Splits `name=value`; no value without `=`.
fn pair(text: &str) -> (&str, Option<&str>) {
    match text.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (text.trim(), None),
    }
}

fn parse(
    name: &str,
    value: Option<&str>,
    options: &[(&str, Option<&str>)],
) -> Result<Topology, String> {
    match (name, value) {
        ("standalone", None) => no_options(options).map(|()| Topology::Standalone),
        ("pairs", Some(n)) => {
            no_options(options)?;
            Ok(Topology::Pairs { n: number(n)? })
        }
        ("split", Some(n)) => {
            no_options(options)?;
            Ok(Topology::Split { n: number(n)? })
        }
        ("replica-set", Some(members)) => parse_set(members, options).map(Topology::ReplicaSet),
        ("sharded", Some(size)) => parse_cluster(size, options).map(Topology::Sharded),
        ("standalone", Some(_)) => Err("`standalone` takes no number".to_owned()),
        ("pairs" | "split" | "replica-set" | "sharded", None) => {
            Err(format!("`{name}` needs a number"))
        }
        _ => Err(format!("`{name}` is unknown")),
    }
}

fn no_options(options: &[(&str, Option<&str>)]) -> Result<(), String> {
    match options.first() {
        None => Ok(()),
        Some((name, _)) => Err(format!("unknown option `{name}`")),
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number"))
}

fn parse_set(members: &str, options: &[(&str, Option<&str>)]) -> Result<ReplicaSet, String> {
    let (data, arbiters) = members.split_once('+').unwrap_or((members, "0"));
    let mut set = ReplicaSet::new(number(data)?);
    set.arbiters = number(arbiters)?;
    for option in options {
        match option {
            ("priorities", Some(list)) => {
                set.priorities = list
                    .split('/')
                    .map(|text| text.parse().map_err(|_| format!("`{text}` is not a priority")))
                    .collect::<Result<_, _>>()?;
            }
            (name, _) => return Err(format!("unknown replica set option `{name}`")),
        }
    }
    Ok(set)
}

fn parse_cluster(size: &str, options: &[(&str, Option<&str>)]) -> Result<Sharded, String> {
    let (shards, members) =
        size.split_once('x').ok_or_else(|| format!("`{size}` is not SHARDSxMEMBERS"))?;
    let mut cluster = Sharded::new(number(shards)?, number(members)?);
    for option in options {
        match option {
            ("config", Some(n)) => cluster.config_members = number(n)?,
            ("routers", Some(n)) => cluster.routers = number(n)?,
            ("chunks", Some(n)) => cluster.pre_split = PreSplit::Chunks(number(n)?),
            ("key", Some(key)) => cluster.shard_key = parse_key(key)?,
            ("balancer", Some("on")) => cluster.balancer = Balancer::On,
            ("balancer", Some("off")) => cluster.balancer = Balancer::Off,
            ("balancer", _) => return Err("`balancer` must be `on` or `off`".to_owned()),
            (name, _) => return Err(format!("unknown sharded cluster option `{name}`")),
        }
    }
    Ok(cluster)
}

fn parse_key(text: &str) -> Result<ShardKey, String> {
    let (field, kind) = match text.rsplit_once(':') {
        Some((field, "hashed")) => (field, ShardKeyKind::Hashed),
        Some((field, "ranged")) => (field, ShardKeyKind::Ranged),
        _ => return Err(format!("`{text}` is not FIELD:hashed or FIELD:ranged")),
    };
    Ok(ShardKey { field: field.to_owned(), kind })
}
