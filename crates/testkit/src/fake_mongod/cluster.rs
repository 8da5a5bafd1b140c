//! The router of the fake `mongod`: shards, sharded collections and their chunks.

use std::cmp::Ordering;
use std::net::SocketAddr;

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, doc};

use super::node::Node;
use super::shapes::{Refusal, bad};
use super::{note, wire};

/// State of a router.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    shards: Vec<String>,
    enabled: Vec<String>,
    collection: Option<Collection>,
}

#[derive(Debug)]
struct Collection {
    namespace: String,
    field: String,
    hashed: bool,
    /// Ascending, without gaps.
    chunks: Vec<Chunk>,
}

#[derive(Clone, Debug)]
struct Chunk {
    min: Bson,
    max: Bson,
    shard: String,
}

impl Node {
    /// Answers router commands.
    pub(super) fn route(&mut self, name: &str, command: &Document) -> Result<Document, Refusal> {
        let database = command.get_str("$db").unwrap_or_default();
        if name != "find" && database != "admin" {
            return Err((13, format!("{name} may only be run against the admin database.")));
        }
        match name {
            "addShard" => self.add_shard(command),
            "balancerStart" | "balancerStop" => Ok(doc! {}),
            "enableSharding" => {
                let database = command.get_str("enableSharding").unwrap_or_default();
                self.cluster.enabled.push(database.to_owned());
                Ok(doc! {})
            }
            "shardCollection" => self.shard_collection(command),
            "split" => self.split(command),
            "moveChunk" => self.move_chunk(command),
            "find" => self.find(command),
            // Like the real router: replica set commands go to the sets themselves.
            _ => Err((76, format!("{name} is not supported through mongos"))),
        }
    }

    fn add_shard(&mut self, command: &Document) -> Result<Document, Refusal> {
        let text = command.get_str("addShard").unwrap_or_default();
        let (set, hosts) = text.split_once('/').ok_or_else(|| bad("no replica set is named"))?;
        let mut is_real = false;
        for host in hosts.split(',') {
            let address: SocketAddr =
                host.parse().map_err(|_| bad(format!("{host}: no address")))?;
            let state = wire::state(address).map_err(|error| (133, format!("{host}: {error}")))?;
            if state.get_str("set").is_ok_and(|found| found != set) {
                return Err((96, format!("{host} is not part of {set}")));
            }
            if !state.get_bool("shard").unwrap_or(false) {
                return Err((96, format!("{host} was not started with --shardsvr")));
            }
            is_real = state.get_bool("real").unwrap_or(false);
            if state.get_i32("state").is_ok_and(|state| state == 0 || state == 5) {
                return Err((133, format!("{host} is not ready")));
            }
        }
        let name = command.get_str("name").unwrap_or(set).to_owned();
        if self.cluster.shards.contains(&name) {
            return Err((96, format!("{name} is a shard already")));
        }
        if is_real {
            self.dealer.add(hosts);
        }
        // Other routers should know the shard as well.
        note(&self.folder, &self.shards_file(), hosts);
        self.cluster.shards.push(name.clone());
        Ok(doc! { "shardAdded": name })
    }

    fn shard_collection(&mut self, command: &Document) -> Result<Document, Refusal> {
        let namespace = command.get_str("shardCollection").unwrap_or_default();
        let (database, _) = namespace.split_once('.').ok_or_else(|| bad("no namespace"))?;
        let shards = self.cluster.shards.len();
        if shards == 0 {
            return Err((70, "no shard was added".to_owned()));
        }
        if self.version < (6, 0) && !self.cluster.enabled.iter().any(|one| one == database) {
            return Err((20, format!("sharding not enabled for db {database}")));
        }
        let empty = Document::new();
        let key = command.get_document("key").unwrap_or(&empty);
        let (field, kind) = key.iter().next().ok_or_else(|| bad("the key is empty"))?;
        let hashed = match kind {
            Bson::String(kind) if kind == "hashed" => true,
            Bson::Int32(1) => false,
            _ => return Err(bad(format!("{kind} is not a key type"))),
        };
        let initial = match command.get("numInitialChunks") {
            None => None,
            Some(_) if !hashed => return Err((72, "numInitialChunks needs a hashed key".into())),
            Some(value) => value.as_i32().and_then(|value| usize::try_from(value).ok()),
        };
        if initial.is_some_and(|count| count > shards * 8192) {
            return Err((72, "too many initial chunks".to_owned()));
        }
        let count = match (hashed, self.version >= (8, 0)) {
            (false, _) => 1,
            (true, true) => shards,
            (true, false) => initial.unwrap_or(2 * shards),
        };
        self.cluster.collection = Some(Collection {
            namespace: namespace.to_owned(),
            field: field.clone(),
            hashed,
            chunks: even_chunks(count, &self.cluster.shards),
        });
        self.create_sharded(namespace)?;
        Ok(doc! { "collectionsharded": namespace })
    }

    fn collection(&mut self, namespace: &str) -> Result<&mut Collection, Refusal> {
        self.cluster
            .collection
            .as_mut()
            .filter(|collection| collection.namespace == namespace)
            .ok_or_else(|| (118, format!("{namespace} is not sharded")))
    }

    fn split(&mut self, command: &Document) -> Result<Document, Refusal> {
        one_of(command, &["find", "middle", "bounds"])?;
        let namespace = command.get_str("split").unwrap_or_default();
        let collection = self.collection(namespace)?;
        let middle = command.get_document("middle").map_err(|_| bad("only middle is played"))?;
        let point = middle.get(&collection.field).filter(|_| middle.len() == 1);
        let point = point.ok_or_else(|| bad("middle is not of the shard key"))?.clone();
        if collection.hashed && !matches!(point, Bson::Int64(_)) {
            return Err(bad("a hash is a 64-bit number"));
        }
        let inside = |chunk: &Chunk| {
            compare(&chunk.min, &point) == Some(Ordering::Less)
                && compare(&point, &chunk.max) == Some(Ordering::Less)
        };
        let at = collection.chunks.iter().position(inside);
        let at = at.ok_or_else(|| bad("new split key is a boundary key of existing chunk"))?;
        let upper = Chunk { min: point.clone(), ..collection.chunks[at].clone() };
        collection.chunks[at].max = point;
        collection.chunks.insert(at + 1, upper);
        Ok(doc! {})
    }

    fn move_chunk(&mut self, command: &Document) -> Result<Document, Refusal> {
        one_of(command, &["find", "bounds"])?;
        let to = command.get_str("to").unwrap_or_default().to_owned();
        if !self.cluster.shards.contains(&to) {
            return Err((70, format!("Shard {to} not found")));
        }
        let namespace = command.get_str("moveChunk").unwrap_or_default();
        let collection = self.collection(namespace)?;
        let bounds = command.get_array("bounds").map_err(|_| bad("only bounds are played"))?;
        let bound = |at: usize| bounds.get(at)?.as_document()?.get(&collection.field).cloned();
        let (min, max) = (bound(0), bound(1));
        let chunk = collection
            .chunks
            .iter_mut()
            .find(|chunk| Some(&chunk.min) == min.as_ref() && Some(&chunk.max) == max.as_ref())
            .ok_or_else(|| bad("no chunk has these bounds"))?;
        if chunk.shard == to {
            return Err(bad("that chunk is already on that shard"));
        }
        chunk.shard = to;
        Ok(doc! {})
    }

    /// Queries the catalog: collections by name, chunks by identifier since 5.0 and by name before.
    fn find(&mut self, command: &Document) -> Result<Document, Refusal> {
        let uuid = Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: vec![7; 16] });
        let by_name = self.version < (5, 0);
        let Some(collection) = &self.cluster.collection else {
            return Ok(cursor(Vec::new()));
        };
        let empty = Document::new();
        let filter = command.get_document("filter").unwrap_or(&empty);
        let found = match command.get_str("find").unwrap_or_default() {
            "collections" if filter.get_str("_id").is_ok_and(|id| id == collection.namespace) => {
                vec![doc! { "_id": &collection.namespace, "uuid": uuid }]
            }
            "chunks" => {
                let wanted = if by_name {
                    doc! { "ns": &collection.namespace }
                } else {
                    doc! { "uuid": uuid }
                };
                if *filter != wanted {
                    return Err(bad(format!("chunks of this version have no {filter}")));
                }
                collection.listed()
            }
            _ => Vec::new(),
        };
        Ok(cursor(found))
    }
}

impl Collection {
    fn listed(&self) -> Vec<Document> {
        let bound = |value: &Bson| doc! { &self.field: value.clone() };
        self.chunks
            .iter()
            .map(|chunk| {
                doc! { "min": bound(&chunk.min), "max": bound(&chunk.max), "shard": &chunk.shard }
            })
            .collect()
    }
}

fn cursor(batch: Vec<Document>) -> Document {
    doc! { "cursor": { "id": 0_i64, "ns": "config", "firstBatch": batch } }
}

fn one_of(command: &Document, fields: &[&str]) -> Result<(), Refusal> {
    match fields.iter().filter(|field| command.contains_key(**field)).count() {
        1 => Ok(()),
        count => Err(bad(format!("exactly one of {fields:?} is needed, not {count}"))),
    }
}

/// `count` chunks of equal width over the hashes, distributed to the shards in turn.
fn even_chunks(count: usize, shards: &[String]) -> Vec<Chunk> {
    let count = count.max(1);
    let width = (1_i128 << 64) / count as i128;
    let edge = |at: usize| match at {
        0 => Bson::MinKey,
        at if at == count => Bson::MaxKey,
        at => Bson::Int64((i128::from(i64::MIN) + width * at as i128) as i64),
    };
    (0..count)
        .map(|at| Chunk {
            min: edge(at),
            max: edge(at + 1),
            shard: shards[at % shards.len()].clone(),
        })
        .collect()
}

/// Order of the shard key values in tests.
fn compare(a: &Bson, b: &Bson) -> Option<Ordering> {
    let rank = |value: &Bson| match value {
        Bson::MinKey => 0,
        Bson::Int32(_) | Bson::Int64(_) => 1,
        Bson::String(_) => 2,
        _ => 3,
    };
    let whole = |value: &Bson| value.as_i64().or_else(|| value.as_i32().map(i64::from));
    match rank(a).cmp(&rank(b)) {
        Ordering::Equal => match (whole(a), whole(b)) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => Some(a.as_str()?.cmp(b.as_str()?)),
        },
        order => Some(order),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_chunks_cover_all_hashes_without_a_gap() {
        let shards = ["a".to_owned(), "b".to_owned()];
        for count in [1, 2, 5, 64] {
            let chunks = even_chunks(count, &shards);
            assert_eq!(chunks.len(), count);
            assert_eq!((&chunks[0].min, &chunks[count - 1].max), (&Bson::MinKey, &Bson::MaxKey));
            for pair in chunks.windows(2) {
                assert_eq!(pair[0].max, pair[1].min);
                assert_eq!(compare(&pair[0].min, &pair[1].min), Some(Ordering::Less));
            }
        }
    }
}
