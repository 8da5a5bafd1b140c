//! Document commands: permissions, and how a router forwards them.

use std::net::SocketAddr;
use std::sync::PoisonError;

use bson::{Bson, Document, doc};

use super::concerns::Fulfilment;
use super::dealer::{judged, primary};
use super::node::Node;
use super::shapes::{Refusal, unreachable};
use super::store::{COMMANDS, WRITES};
use super::{lines, note, wire};

/// A write of an existing document, which a client may try.
const DUPLICATE_KEY: i32 = 11_000;

impl Node {
    /// Whether this is a document command; a router also has a catalog.
    pub(super) fn is_data(&self, name: &str, command: &Document) -> bool {
        let in_catalog = self.router && command.get_str("$db").is_ok_and(|name| name == "config");
        COMMANDS.split(' ').any(|known| known == name) && !in_catalog
    }

    /// Counts a client's command with its concern.
    pub(super) fn count(&self, name: &str, command: &Document) {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.count(name, command);
    }

    /// Answers a document command.
    pub(super) fn data(&mut self, name: &str, command: &Document) -> Result<Document, Refusal> {
        if self.router {
            return match self.dealer.is_used() {
                true => self.dealer.deal(name, command),
                false => self.forward(command),
            };
        }
        let is_write = WRITES.contains(&name);
        if !self.is_writable() {
            return Err(match is_write {
                true => (10_107, "not primary".to_owned()),
                false if command.contains_key("$readPreference") => {
                    (238, "the fake `mongod` does not replicate".to_owned())
                }
                false => (13_435, "not primary and secondaryOk=false".to_owned()),
            });
        }
        let fulfilment = self.fulfilment();
        fulfilment.permit(command)?;
        let mut reply = self.store.run(name, command)?;
        self.note_write_errors(name, &reply);
        if is_write && let Some((code, message)) = fulfilment.failure(command) {
            let error = doc! { "code": code, "errmsg": message };
            reply.insert("writeConcernError", error);
        }
        Ok(reply)
    }

    /// Failed writes do not refuse the command, but they are violations.
    fn note_write_errors(&self, name: &str, reply: &Document) {
        let errors = reply.get_array("writeErrors").map(Vec::as_slice);
        for error in errors.unwrap_or_default().iter().filter_map(Bson::as_document) {
            if error.get_i32("code").is_ok_and(|code| code != DUPLICATE_KEY) {
                note(&self.folder, "violations", &format!("{} {name}: {error}", self.name));
            }
        }
    }

    /// Conditions for write concerns.
    pub(super) fn fulfilment(&self) -> Fulfilment {
        let members = self.members();
        Fulfilment {
            in_set: self.arguments.has("replSet"),
            holders: members.iter().filter(|member| !member.arbiter).count(),
        }
    }

    /// File with the hosts of the shards, one line each in the order in which they were added.
    pub(super) fn shards_file(&self) -> String {
        let config = self.arguments.get("configdb").unwrap_or_default();
        let set = config.split('/').next().unwrap_or_default();
        format!("shards-{set}")
    }

    /// Creates the sharded collection.
    pub(super) fn create_sharded(&mut self, namespace: &str) -> Result<(), Refusal> {
        let (database, collection) = namespace.split_once('.').unwrap_or_default();
        let command = doc! { "create": collection, "$db": database };
        self.data("create", &command).map(drop)
    }

    /// Forwards a command to the primary of the first shard, which has all documents.
    fn forward(&mut self, command: &Document) -> Result<Document, Refusal> {
        let wrapped = doc! { "fakeMongodForward": command.clone(), "$db": "admin" };
        // A restarted shard has closed the cached connection.
        let kept = self.shard.take().and_then(|mut stream| {
            let reply = wire::exchange(&mut stream, &wrapped).ok()?;
            Some((stream, reply))
        });
        let (stream, reply) = match kept {
            Some(kept) => kept,
            None => {
                let address = self.first_primary()?;
                let asked = wire::connect(address).and_then(|mut stream| {
                    let reply = wire::exchange(&mut stream, &wrapped)?;
                    Ok((stream, reply))
                });
                asked.map_err(|error| unreachable(address, &error))?
            }
        };
        self.shard = Some(stream);
        judged(reply)
    }

    fn first_primary(&self) -> Result<SocketAddr, Refusal> {
        let shards = lines(&self.folder, &self.shards_file());
        let none = || (70, "there is no shard".to_owned());
        let hosts = shards.first().ok_or_else(none)?;

        let members: Vec<SocketAddr> =
            hosts.split(',').filter_map(|host| host.parse().ok()).collect();
        primary(&members)
    }

    /// Answers a forwarded command.
    pub(super) fn forwarded(&mut self, command: &Document) -> Result<Document, Refusal> {
        let empty = Document::new();
        let inner = command.get_document("fakeMongodForward").unwrap_or(&empty);
        let name = inner.keys().next().cloned().unwrap_or_default();
        self.data(&name, inner)
    }
}
