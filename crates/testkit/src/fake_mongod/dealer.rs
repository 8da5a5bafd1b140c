//! A router in front of real shards. It distributes documents by a hash of `_id`, which differs from the real one, and
//! sends other commands to all shards. It does not support chunks, versions and transactions.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bson::{Bson, Document, doc};

use super::shapes::{Refusal, unreachable, whole};
use super::wire;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Dealer {
    /// Members of each shard.
    shards: Vec<Vec<SocketAddr>>,
    cursors: BTreeMap<i64, Cursor>,
    last_cursor: i64,
}

/// A query whose documents come from one shard after the other.
#[derive(Debug)]
struct Cursor {
    find: Document,
    /// The next shard.
    shard: usize,
    /// Cursor ID on this shard; 0 before its first query.
    id: i64,
}

impl Dealer {
    /// Adds a shard by its members.
    pub(super) fn add(&mut self, hosts: &str) {
        let members = hosts.split(',').filter_map(|host| host.parse().ok());
        self.shards.push(members.collect());
    }

    /// Whether there are real shards.
    pub(super) fn is_used(&self) -> bool {
        !self.shards.is_empty()
    }

    /// Answers a command on documents or indexes.
    pub(super) fn deal(&mut self, name: &str, command: &Document) -> Result<Document, Refusal> {
        match name {
            "insert" => self.write(command, "documents"),
            "update" => self.write(command, "updates"),
            "delete" => self.write(command, "deletes"),
            "count" => Ok(sum(&self.all(command)?, &["n"])),
            "find" if !command.contains_key("sort") => {
                self.next(Cursor { find: command.clone(), shard: 0, id: 0 })
            }
            "getMore" => {
                let id = command.get("getMore").and_then(whole).unwrap_or_default();
                let cursor = self.cursors.remove(&id);
                self.next(cursor.ok_or_else(|| (43, format!("cursor id {id} not found")))?)
            }
            "killCursors" => {
                self.cursors.clear();
                Ok(doc! {})
            }
            "listCollections" | "listIndexes" => self.ask(0, command.clone()),
            "create" | "createIndexes" | "drop" | "dropIndexes" | "listDatabases" => {
                Ok(self.all(command)?.swap_remove(0))
            }
            _ => Err((238, format!("the router of the fake mongod deals no '{name}'"))),
        }
    }

    fn all(&self, command: &Document) -> Result<Vec<Document>, Refusal> {
        let shards = 0..self.shards.len();
        self.each(shards.map(|shard| (shard, command.clone())).collect())
    }

    fn ask(&self, shard: usize, command: Document) -> Result<Document, Refusal> {
        Ok(self.each(vec![(shard, command)])?.swap_remove(0))
    }

    /// Sends commands to shards, which execute them in parallel.
    fn each(&self, commands: Vec<(usize, Document)>) -> Result<Vec<Document>, Refusal> {
        let mut asked = Vec::new();
        for (shard, command) in commands {
            let address = primary(&self.shards[shard])?;
            let sent = wire::connect(address).and_then(|mut stream| {
                // Building an index may take long.
                stream.set_read_timeout(None)?;
                wire::write(&mut stream, &command, 0)?;
                Ok(stream)
            });
            asked.push((address, sent.map_err(|error| unreachable(address, &error))?));
        }
        let answers = asked.into_iter().map(|(address, mut stream)| {
            let answer = wire::read(&mut stream).map_err(|error| unreachable(address, &error))?;
            judged(answer.body)
        });
        // Wait for all answers, even if one is an error.
        let answers: Vec<Result<Document, Refusal>> = answers.collect();
        answers.into_iter().collect()
    }

    /// Sends each shard its part of the writes in a command.
    fn write(&self, command: &Document, list: &str) -> Result<Document, Refusal> {
        let mut parts: Vec<Vec<Bson>> = vec![Vec::new(); self.shards.len()];
        for write in command.get_array(list).into_iter().flatten() {
            let document = write.as_document();
            let keyed = match list {
                "documents" => document,
                _ => document.and_then(|one| one.get_document("q").ok()),
            };
            let id = keyed.and_then(|one| whole(one.get("_id")?));
            let id = id.ok_or_else(|| (238, format!("the router deals whole numbers: {write}")))?;
            parts[shard_of(id, self.shards.len())].push(write.clone());
        }
        let commands = parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty());
        let commands = commands.map(|(shard, part)| {
            let mut own = command.clone();
            own.insert(list, part);
            (shard, own)
        });
        let answers = self.each(commands.collect())?;
        let mut reply = sum(&answers, &["n", "nModified"]);
        let errors = answers.iter().filter_map(|one| one.get_array("writeErrors").ok());
        let errors: Vec<Bson> = errors.flatten().cloned().collect();
        if !errors.is_empty() {
            reply.insert("writeErrors", errors);
        }
        Ok(reply)
    }

    /// The next documents of a query.
    fn next(&mut self, cursor: Cursor) -> Result<Document, Refusal> {
        let Cursor { find, shard, id } = cursor;
        let database = find.get_str("$db").unwrap_or_default();
        let collection = find.get_str("find").unwrap_or_default();
        let namespace = format!("{database}.{collection}");
        let (command, list) = match id {
            0 => (find.clone(), "firstBatch"),
            _ => {
                let size = find.get("batchSize").cloned().unwrap_or(Bson::Int32(101));
                let more = doc! {
                    "getMore": id, "collection": collection, "batchSize": size, "$db": database,
                };
                (more, "nextBatch")
            }
        };
        let is_first = shard == 0 && id == 0;
        let answer = self.ask(shard, command)?;
        let found = answer.get_document("cursor").cloned().unwrap_or_default();
        let batch = found.get_array(list).cloned().unwrap_or_default();
        let left = match found.get_i64("id").unwrap_or_default() {
            0 if shard + 1 == self.shards.len() => None,
            0 => Some((shard + 1, 0)),
            id => Some((shard, id)),
        };
        let own = left.map_or(0, |(shard, id)| {
            self.last_cursor += 1;
            self.cursors.insert(self.last_cursor, Cursor { find, shard, id });
            self.last_cursor
        });
        let list = if is_first { "firstBatch" } else { "nextBatch" };
        Ok(doc! { "cursor": { list: batch, "id": own, "ns": namespace } })
    }
}

/// The primary of a shard with these members.
pub(super) fn primary(members: &[SocketAddr]) -> Result<SocketAddr, Refusal> {
    let leads = |address: &&SocketAddr| {
        let state = wire::state(**address);
        state.is_ok_and(|state| state.get_i32("state").is_ok_and(|state| state == 1))
    };
    let primary = members.iter().find(leads).copied();
    primary.ok_or_else(|| (133, format!("no primary among {members:?}")))
}

/// Converts an answer to a result.
pub(super) fn judged(answer: Document) -> Result<Document, Refusal> {
    if answer.get("ok").and_then(whole) == Some(1) {
        return Ok(answer);
    }
    let code = answer.get_i32("code").unwrap_or_default();
    let message = answer.get_str("errmsg").unwrap_or_default();
    Err((code, message.to_owned()))
}

/// Sums numbers of several answers; missing numbers count as 0.
fn sum(answers: &[Document], names: &[&str]) -> Document {
    let mut sums = Document::new();
    for name in names {
        let numbers = answers.iter().filter_map(|one| whole(one.get(name)?));
        if let Some(sum) = numbers.reduce(|sum, one| sum + one) {
            sums.insert(*name, sum);
        }
    }
    sums
}

/// Multiplies by the golden ratio: neighbouring values of `_id` are far apart, and all shards get about as many.
fn shard_of(id: i64, shards: usize) -> usize {
    let hash = (id as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((u128::from(hash) * shards as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shard_gets_about_as_many_documents() {
        for shards in 1..=4 {
            let mut counts = vec![0_usize; shards];
            for id in 0..4_000 {
                counts[shard_of(id, shards)] += 1;
            }
            let mean = 4_000 / shards;
            let is_fair = |count: &usize| count.abs_diff(mean) * 20 < mean;
            assert!(counts.iter().all(is_fair), "{counts:?}");
        }
    }

    #[test]
    fn answers_of_shards_are_added_up() {
        let answers = [doc! { "n": 2 }, doc! { "n": 3_i64, "nModified": 1 }];
        let both = doc! { "n": 5_i64, "nModified": 1_i64 };
        assert_eq!(sum(&answers, &["n", "nModified"]), both);
        assert!(judged(doc! { "ok": 1.0, "n": 1 }).is_ok());
        let refused = judged(doc! { "ok": 0.0, "code": 26, "errmsg": "none" });
        assert_eq!(refused, Err((26, "none".to_owned())));
    }
}
