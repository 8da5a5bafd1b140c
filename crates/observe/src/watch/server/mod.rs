//! Watches a server under test over a connection: mongod, mongos, the embedded server, and others
//! that speak the protocol. Reads `serverStatus`, the CPUs of its machine, the state of its replica
//! set, and its log of slow operations.

mod ask;
mod collection;
pub(crate) mod fields;
mod processors;
mod replication;
mod slow;
pub(crate) mod status;
pub(crate) mod table;
#[cfg(test)]
mod tests;

pub use ask::{Ask, AskError};
pub use collection::collection_statistics;

use crate::health::{Health, Reading};
use crate::watch::source::{Description, Reported, Source};
use ask::{failure, is_forbidden};
use bson::{Document, doc};
use dyno_record::model::SourceKind;
use processors::Processors;
use replication::Replication;
use slow::SlowOperations;
use status::Status;

/// The server that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSubject {
    /// Its name within the run, which is also the name of the source and of the instance in all
    /// metrics: `server`, `pair-0`, `member-1`, `router-0`.
    pub name: String,
    /// Listening address without credentials.
    pub address: String,
    /// Database of the collection under load.
    pub database: String,
    /// Slow operations on this collection are counted separately.
    pub collection: String,
}

/// A source that reads a server's metrics by commands.
pub fn server(subject: ServerSubject, ask: Box<dyn Ask>) -> impl Source {
    Server {
        status: Status::new(&subject.name, "`serverStatus`"),
        processors: Processors::default(),
        replication: Replication::default(),
        slow: SlowOperations::new(&subject.name, &subject.database, &subject.collection),
        command: sections_of_use(),
        subject,
        ask,
    }
}

struct Server {
    subject: ServerSubject,
    ask: Box<dyn Ask>,
    status: Status,
    processors: Processors,
    replication: Replication,
    slow: SlowOperations,
    /// The command for its status.
    command: Document,
}

/// Sections that are in the answer unless they are switched off, and that are not used. A version
/// ignores sections that it does not know.
const SECTIONS_OF_NO_USE: &str = "\
    batchedDeletes catalogStats collectionCatalog defaultRWConcern electionMetrics indexBuilds \
    indexBulkBuilder indexStats internalTransactions locks logicalSessionRecordCache \
    opReadConcernCounters oplogTruncation planCache readConcernCounters repl scramCache \
    security sharding shardingStatistics tcmalloc transportSecurity";

fn sections_of_use() -> Document {
    let mut command = doc! { "serverStatus": 1 };
    for section in SECTIONS_OF_NO_USE.split(' ') {
        command.insert(section, 0);
    }
    // The largest section: a few numbers for every command. Older versions read this document as
    // "yes".
    command.insert("metrics", doc! { "commands": false });
    command
}

impl Server {
    fn ask_status(&mut self) -> Result<Document, AskError> {
        let answer = self.ask.ask("admin", self.command.clone());
        let is_plain = self.command.len() == 1;
        match answer {
            Err(AskError::Refused { code, message }) if !is_plain => {
                let refused = AskError::Refused { code, message };
                if is_forbidden(&refused) {
                    return Err(refused);
                }
                // The server may object to the switches.
                self.command = doc! { "serverStatus": 1 };
                self.ask.ask("admin", self.command.clone())
            }
            answer => answer,
        }
    }

    /// Reads the parts that are not in the status.
    fn read_more(&mut self, at_s: f64, reported: &mut Reported) -> Result<(), AskError> {
        self.replication.read(self.ask.as_mut(), reported)?;
        self.slow.read(at_s, self.ask.as_mut(), reported)
    }
}

impl Source for Server {
    fn description(&self) -> Description {
        Description {
            name: self.subject.name.clone(),
            kind: SourceKind::Server,
            subject: self.subject.address.clone(),
            of_server: true,
        }
    }

    fn read(&mut self, at_s: f64) -> Reading<Reported> {
        let mut reported = Reported::default();
        let refused = match self.ask_status() {
            Ok(status) => {
                if self.status.take(at_s, &status, &mut reported) {
                    let subject = &self.subject;
                    self.processors = Processors::default();
                    self.replication = Replication::default();
                    self.slow =
                        SlowOperations::new(&subject.name, &subject.database, &subject.collection);
                }
                let (name, ask) = (&self.subject.name, self.ask.as_mut());
                let outcome = self.processors.read(&status, name, ask, &mut reported);
                if let Err(lost) = outcome {
                    reported.miss("connection", failure("hostInfo", &lost));
                }
                None
            }
            Err(error @ AskError::Lost { .. }) => return Err(failure("serverStatus", &error)),
            Err(error) => Some(failure("serverStatus", &error)),
        };
        if let Some(health) = &refused {
            reported.miss("serverStatus", health.clone());
        }
        if let Err(lost) = self.read_more(at_s, &mut reported) {
            reported.miss("connection", failure("replSetGetStatus", &lost));
        }
        match refused {
            Some(health) if reported.values.is_empty() => Err(health),
            _ if reported.values.is_empty() => Err(Health::Degraded {
                reason: "the answer to `serverStatus` has no known field".to_owned(),
            }),
            _ => Ok(reported),
        }
    }
}
