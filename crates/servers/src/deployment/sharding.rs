//! Makes a sharded cluster of running shards and routers: adds shards, shards the collection,
//! distributes chunks, sets the balancer. Source of the commands: MongoDB manual, "Sharding
//! Commands".

use bson::{Bson, Document, doc};

use super::assemble::StepContext;
use super::replica_set::number;
use super::{Deployment, InstanceKind, Namespace};
use crate::version::major_minor;
use crate::{CommandFailure, ServerError};
use dyno_plan::topology::{Balancer, PreSplit, ShardKeyKind, Sharded};

/// First version in which a collection can be sharded in any database.
const NO_ENABLING: (u32, u32) = (6, 0);

/// First version that does not use `numInitialChunks`: it is deprecated, and a hashed collection
/// begins with one chunk per shard.
const NO_INITIAL_CHUNKS: (u32, u32) = (8, 0);

/// Size of a query's first batch, which limits the initial number of chunks.
const BATCH: i32 = 10_000;

/// A chunk of the collection under test.
#[derive(Clone, Debug, PartialEq)]
struct Chunk {
    min: Bson,
    max: Bson,
    shard: String,
}

impl Deployment {
    /// Performs all steps through the first router.
    pub(super) fn make_cluster(
        &mut self,
        cluster: &Sharded,
        namespace: &Namespace,
        context: &mut StepContext<'_>,
    ) -> Result<(), ServerError> {
        let router = self.router();
        self.make_user(router, context)?;
        self.users_reach_everybody();
        for set in self.sets() {
            let positions = self.positions(&set);
            if self.members[positions[0]].instance.kind == InstanceKind::Data {
                let step = format!("adding the shard `{set}`");
                let command = doc! { "addShard": self.seed_list(&set), "name": &set };
                self.command(context, router, &step, "admin", command)?;
            }
        }
        let limit_ms = i64::try_from(context.limit.as_millis()).unwrap_or(i64::MAX);
        let stop = doc! { "balancerStop": 1, "maxTimeMS": limit_ms };
        self.command(context, router, "stopping the balancer", "admin", stop)?;
        self.shard_collection(cluster, namespace, context)?;
        self.split(cluster, namespace, context)?;
        if cluster.balancer == Balancer::On {
            let start = doc! { "balancerStart": 1, "maxTimeMS": limit_ms };
            self.command(context, router, "starting the balancer", "admin", start)?;
        }
        Ok(())
    }

    fn router(&self) -> usize {
        self.members
            .iter()
            .position(|member| member.instance.kind == InstanceKind::Router)
            .expect("a checked cluster has a router")
    }

    /// The user of the cluster is stored by the config servers and known to all routers.
    fn users_reach_everybody(&mut self) {
        if self.secrets.credentials.is_none() {
            return;
        }
        for member in &mut self.members {
            if matches!(member.instance.kind, InstanceKind::Router | InstanceKind::ConfigServer) {
                member.has_user = true;
            }
        }
    }

    fn version(&self) -> Option<(u32, u32)> {
        major_minor(self.members[self.router()].server.version())
    }

    fn shard_collection(
        &mut self,
        cluster: &Sharded,
        namespace: &Namespace,
        context: &mut StepContext<'_>,
    ) -> Result<(), ServerError> {
        let router = self.router();
        if self.version() < Some(NO_ENABLING) {
            let step = format!("enabling sharding for `{}`", namespace.database);
            let command = doc! { "enableSharding": &namespace.database };
            self.command(context, router, &step, "admin", command)?;
        }
        let kind = match cluster.shard_key.kind {
            ShardKeyKind::Hashed => Bson::from("hashed"),
            ShardKeyKind::Ranged => Bson::from(1),
        };
        let mut command = doc! {
            "shardCollection": namespace.to_string(),
            "key": { &cluster.shard_key.field: kind },
        };
        if let PreSplit::Chunks(chunks) = cluster.pre_split
            && self.version() < Some(NO_INITIAL_CHUNKS)
        {
            command.insert("numInitialChunks", i32::try_from(chunks).unwrap_or(i32::MAX));
        }
        let step = format!("sharding `{namespace}`");
        self.command(context, router, &step, "admin", command)?;
        Ok(())
    }

    fn split(
        &mut self,
        cluster: &Sharded,
        namespace: &Namespace,
        context: &mut StepContext<'_>,
    ) -> Result<(), ServerError> {
        let field = cluster.shard_key.field.clone();
        match &cluster.pre_split {
            PreSplit::Default => Ok(()),
            PreSplit::Chunks(wanted) => {
                let mut chunks = self.chunks(namespace, &field, context)?;
                while chunks.len() < *wanted as usize {
                    let Some((at, middle)) = widest(&chunks) else {
                        break;
                    };
                    self.split_at(namespace, &field, Bson::Int64(middle), context)?;
                    let upper = Chunk { min: Bson::Int64(middle), ..chunks[at].clone() };
                    chunks[at].max = Bson::Int64(middle);
                    chunks.insert(at + 1, upper);
                }
                Ok(())
            }
            PreSplit::At(points) => self.split_and_spread(points, cluster, namespace, context),
        }
    }

    /// Splits at the given values, and distributes the chunks over the shards in turn.
    fn split_and_spread(
        &mut self,
        points: &[String],
        cluster: &Sharded,
        namespace: &Namespace,
        context: &mut StepContext<'_>,
    ) -> Result<(), ServerError> {
        let field = &cluster.shard_key.field;
        for point in points {
            self.split_at(namespace, field, Bson::from(point.as_str()), context)?;
        }
        let router = self.router();
        for (turn, chunk) in (0_u32..).zip(self.chunks(namespace, field, context)?) {
            let shard = format!("shard-{}", turn % cluster.shards);
            if chunk.shard == shard {
                continue;
            }
            let step = format!("moving chunk {turn} of `{namespace}` to `{shard}`");
            let bounds = [doc! { field: chunk.min }, doc! { field: chunk.max }];
            let command = doc! {
                "moveChunk": namespace.to_string(),
                "bounds": bounds.to_vec(),
                "to": shard,
            };
            self.command(context, router, &step, "admin", command)?;
        }
        Ok(())
    }

    fn split_at(
        &mut self,
        namespace: &Namespace,
        field: &str,
        middle: Bson,
        context: &mut StepContext<'_>,
    ) -> Result<(), ServerError> {
        let step = format!("splitting `{namespace}` at {middle}");
        let command = doc! { "split": namespace.to_string(), "middle": { field: middle } };
        let router = self.router();
        self.command(context, router, &step, "admin", command)?;
        Ok(())
    }

    /// The chunks in ascending order. Since version 5.0 they are stored by the identifier of the
    /// collection, before that by its name.
    fn chunks(
        &mut self,
        namespace: &Namespace,
        field: &str,
        context: &mut StepContext<'_>,
    ) -> Result<Vec<Chunk>, ServerError> {
        let step = format!("listing the chunks of `{namespace}`");
        let name = namespace.to_string();
        let found = self.find(context, &step, "collections", doc! { "_id": &name })?;
        let uuid = found.first().and_then(|entry| entry.get("uuid")).cloned();
        let filter = match (self.version() < Some((5, 0)), uuid) {
            (false, Some(uuid)) => doc! { "uuid": uuid },
            _ => doc! { "ns": name },
        };
        let documents = self.find(context, &step, "chunks", filter)?;
        documents
            .iter()
            .map(|document| chunk(document, field))
            .collect::<Option<Vec<_>>>()
            .filter(|chunks| !chunks.is_empty())
            .ok_or_else(|| self.malformed(&step, "chunks"))
    }

    fn find(
        &mut self,
        context: &mut StepContext<'_>,
        step: &str,
        collection: &str,
        filter: Document,
    ) -> Result<Vec<Document>, ServerError> {
        let router = self.router();
        let command = doc! {
            "find": collection, "filter": filter, "sort": { "min": 1 }, "batchSize": BATCH,
        };
        let reply = self.command(context, router, step, "config", command)?;
        let batch = reply
            .get_document("cursor")
            .and_then(|cursor| cursor.get_array("firstBatch"))
            .map_err(|_| self.malformed(step, "cursor.firstBatch"))?;
        Ok(batch.iter().filter_map(|one| one.as_document().cloned()).collect())
    }

    fn malformed(&self, step: &str, field: &'static str) -> ServerError {
        ServerError::Step {
            name: self.members[self.router()].instance.name.clone(),
            step: step.to_owned(),
            source: CommandFailure::Malformed { field },
        }
    }
}

fn chunk(document: &Document, field: &str) -> Option<Chunk> {
    let bound = |name| document.get_document(name).ok()?.get(field).cloned();
    Some(Chunk {
        min: bound("min")?,
        max: bound("max")?,
        shard: document.get_str("shard").ok()?.to_owned(),
    })
}

/// The chunk with the most hash values, and its middle value; `None` if no chunk can be split.
fn widest(chunks: &[Chunk]) -> Option<(usize, i64)> {
    let edge = |value: &Bson| match value {
        Bson::MinKey => Some(i128::from(i64::MIN)),
        Bson::MaxKey => Some(i128::from(i64::MAX)),
        other => number(Some(other)).map(i128::from),
    };
    let spans = chunks.iter().enumerate().filter_map(|(at, chunk)| {
        let (min, max) = (edge(&chunk.min)?, edge(&chunk.max)?);
        Some((max - min, at, min))
    });
    // The first of several chunks with the same width.
    let (width, at, min) = spans.max_by_key(|&(width, at, _)| (width, std::cmp::Reverse(at)))?;
    let middle = i64::try_from(min + width / 2).ok()?;
    (width > 1).then_some((at, middle))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashed(min: Bson, max: Bson) -> Chunk {
        Chunk { min, max, shard: "shard-0".into() }
    }

    #[test]
    fn widest_chunk_is_split_in_its_middle() {
        let all = [hashed(Bson::MinKey, Bson::MaxKey)];
        assert_eq!(widest(&all), Some((0, -1)));
        let halves = [hashed(Bson::MinKey, Bson::Int64(0)), hashed(Bson::Int64(0), Bson::MaxKey)];
        assert_eq!(widest(&halves), Some((0, -(1 << 62))));
        let uneven = [
            hashed(Bson::MinKey, Bson::Int64(-(1 << 62))),
            hashed(Bson::Int64(-(1 << 62)), Bson::MaxKey),
        ];
        assert_eq!(widest(&uneven).unwrap().0, 1);
        assert_eq!(widest(&[hashed(Bson::Int64(1), Bson::Int64(2))]), None);
        assert_eq!(widest(&[]), None);
    }

    #[test]
    fn chunks_are_read_from_the_catalog() {
        let document = doc! {
            "min": { "_id": Bson::MinKey }, "max": { "_id": 5 }, "shard": "shard-1",
        };
        assert_eq!(
            chunk(&document, "_id"),
            Some(Chunk { min: Bson::MinKey, max: Bson::Int32(5), shard: "shard-1".into() })
        );
        assert_eq!(chunk(&document, "key"), None);
    }
}
