//! One process of the fake `mongod`: users, replica set, and its self-description.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bson::{Bson, Document, doc};

use super::arguments::Arguments;
use super::cluster::Cluster;
use super::concerns::Tally;
use super::dealer::Dealer;
use super::membership::{SetMember, check_configuration, described, members};
use super::shapes::{self, Refusal};
use super::store::Store;
use super::{lines, note, wire};

/// Number of status queries until a starting member is a secondary, and then the primary.
const QUESTIONS_TO_SECONDARY: u32 = 2;
const QUESTIONS_TO_PRIMARY: u32 = 4;

/// Frequent commands that are not recorded as events.
const UNNOTED: [&str; 6] = ["hello", "isMaster", "ismaster", "ping", "profile", "replSetGetStatus"];

/// File with the set's configuration in the data folder.
const CONFIGURATION: &str = "double-configuration";

/// Error codes that a correct client may cause.
const EXPECTED: [i32; 6] = [26, 48, 76, 94, 8000, 10107];

/// A process.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) router: bool,
    pub(super) version: (u32, u32),
    pub(super) version_text: String,
    pub(super) folder: PathBuf,
    pub(super) arguments: Arguments,
    pub(super) configuration: Option<Document>,
    pub(super) questions: u32,
    pub(super) cluster: Cluster,
    pub(super) store: Store,
    /// Counts of the data commands, written when the process ends.
    pub(super) tally: Arc<Mutex<Tally>>,
    /// For a router: connection to the shard with the documents.
    pub(super) shard: Option<TcpStream>,
    /// For a router in front of real shards.
    pub(super) dealer: Dealer,
}

/// State of one connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: i32,
    pub(super) authenticated: bool,
    /// Whether the client has sent its metadata.
    pub(super) introduced: bool,
}

impl Session {
    /// Session of the connection with this number.
    pub(super) fn new(number: i32) -> Session {
        Session { number, authenticated: false, introduced: false }
    }
}

impl Node {
    /// Reply to a command, even if it fails.
    pub(super) fn reply(&mut self, command: &Document, session: &mut Session) -> Document {
        match self.answer(command, session) {
            Ok(mut reply) => {
                reply.insert("ok", 1.0);
                reply
            }
            Err((code, message)) => {
                let name = command.keys().next().map_or("", String::as_str);
                if !EXPECTED.contains(&code) {
                    let line = format!("{} {name}: {code} {message}", self.name);
                    note(&self.folder, "violations", &line);
                }
                let name = dyno_wire::code::name_or_location(code);
                doc! { "ok": 0.0, "code": code, "codeName": name, "errmsg": message }
            }
        }
    }

    fn answer(&mut self, command: &Document, session: &mut Session) -> Result<Document, Refusal> {
        shapes::check(command)?;
        let name = command.keys().next().cloned().unwrap_or_default();
        let is_data = self.is_data(&name, command);
        if is_data {
            self.count(&name, command);
        } else if !name.starts_with("fakeMongod") && !UNNOTED.contains(&name.as_str()) {
            note(&self.folder, "events", &format!("{} {name}", self.name));
        }
        if self.misbehaves(&format!("die {} {name}", self.name)) {
            // The reply never comes, as in a crash.
            super::server::end("double: told to die", 1);
        }
        if self.misbehaves(&format!("refuse {name}")) {
            return Err((8000, format!("configured to refuse '{name}'")));
        }
        self.permit(&name, session)?;
        if is_data {
            return self.data(&name, command);
        }
        match name.as_str() {
            "ping" | "endSessions" | "fsync" => Ok(doc! {}),
            "buildInfo" => Ok(doc! { "version": &self.version_text }),
            "hello" | "isMaster" | "ismaster" => self.hello(&name, command, session),
            "createUser" => self.create_user(command),
            "fakeMongodAuthenticate" => self.authenticate(command, session),
            "getCmdLineOpts" => Ok(self.command_line()),
            "getParameter" => Ok(self.parameters()),
            "serverStatus" => Ok(self.status()),
            "getLog" => Ok(doc! { "totalLinesWritten": 0, "log": [] }),
            _ if self.router => self.route(&name, command),
            "fakeMongodForward" => self.forwarded(command),
            "fakeMongodState" => Ok(self.state()),
            "fakeMongodJoin" => {
                self.join(command.get_document("fakeMongodJoin").ok());
                Ok(doc! {})
            }
            "replSetInitiate" => self.initiate(command),
            "replSetGetStatus" => self.set_status(),
            "replSetGetConfig" => Ok(doc! { "config": self.in_set()?.clone() }),
            "profile" => Ok(doc! { "was": 0, "slowms": 100, "sampleRate": 1.0 }),
            // Only routers have further commands.
            _ => Err((59, format!("no such command: '{name}'"))),
        }
    }

    pub(super) fn misbehaves(&self, rule: &str) -> bool {
        lines(&self.folder, "misbehave").iter().any(|line| line == rule)
    }

    /// Parameters of a misbehaviour rule.
    pub(super) fn misbehaviour(&self, rule: &str) -> Option<String> {
        let all = lines(&self.folder, "misbehave");
        let mut values = all.iter().filter_map(|line| line.strip_prefix(rule));
        values.next().map(|value| value.trim().to_owned())
    }

    pub(super) fn is_arbiter(&self) -> bool {
        let own = self.own_address().to_string();
        self.members().iter().any(|member| member.host == own && member.arbiter)
    }

    fn port(&self) -> u16 {
        let port = self.arguments.get("port").and_then(|text| text.parse().ok());
        port.unwrap_or_default()
    }

    pub(super) fn own_address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port()).into()
    }

    fn in_set(&self) -> Result<&Document, Refusal> {
        if !self.arguments.has("replSet") {
            return Err((76, "not running with --replSet".to_owned()));
        }
        let none = || (94, "no replset config has been received".to_owned());
        self.configuration.as_ref().ok_or_else(none)
    }

    pub(super) fn members(&self) -> Vec<SetMember> {
        self.configuration.as_ref().map(members).unwrap_or_default()
    }

    fn initiate(&mut self, command: &Document) -> Result<Document, Refusal> {
        if self.in_set().is_ok() {
            return Err((23, "already initialized".to_owned()));
        }
        let Some(set) = self.arguments.get("replSet") else {
            return Err((76, "This node was not started with replication enabled.".to_owned()));
        };
        let empty = Document::new();
        let configuration = command.get_document("replSetInitiate").unwrap_or(&empty);
        let config_servers = self.arguments.has("configsvr");
        check_configuration(configuration, set, config_servers, &self.own_address().to_string())
            .map_err(|message| (93, message))?;
        let join = doc! { "fakeMongodJoin": configuration.clone(), "$db": "admin" };
        for member in members(configuration) {
            let address: SocketAddr = member
                .host
                .parse()
                .map_err(|_| (93, format!("`{}` is no address", member.host)))?;
            if address != self.own_address() && wire::ask(address, &join).is_err() {
                return Err((74, format!("replSetInitiate quorum check failed: {address}")));
            }
        }
        self.join(Some(configuration));
        Ok(doc! {})
    }

    /// Joins a set, and remains a member after a restart on the same data.
    fn join(&mut self, configuration: Option<&Document>) {
        self.configuration = configuration.cloned();
        let bytes = configuration.and_then(|one| one.to_vec().ok());
        if let (Some(data), Some(bytes)) = (self.arguments.get("dbpath"), bytes) {
            // Ignore errors: a test that restarts the member notices if it forgot its set.
            let _ = fs::write(Path::new(data).join(CONFIGURATION), bytes);
        }
    }

    /// The leading member: the first with the highest priority.
    pub(super) fn leader(&self) -> Option<String> {
        let members = self.members();
        let highest = members.iter().map(|member| member.priority).fold(0.0, f64::max);
        let first = members.iter().find(|member| member.priority == highest);
        first.map(|member| member.host.clone())
    }

    fn leads(&self) -> bool {
        self.leader() == Some(self.own_address().to_string())
    }

    pub(super) fn is_writable(&self) -> bool {
        if self.arguments.has("replSet") { self.own_state() == 1 } else { true }
    }

    pub(super) fn own_state(&self) -> i32 {
        let set = self.arguments.get("replSet").unwrap_or_default();
        let members = self.members();
        if members.is_empty() {
            return 0;
        }
        if self.questions < QUESTIONS_TO_SECONDARY
            || self.misbehaves(&format!("stuck {}", self.name))
        {
            return 5;
        }
        if self.is_arbiter() {
            return 7;
        }
        let may_lead = self.leads() && !self.misbehaves(&format!("never-primary {set}"));
        if may_lead && self.questions >= QUESTIONS_TO_PRIMARY { 1 } else { 2 }
    }

    fn state(&mut self) -> Document {
        self.questions += 1;
        doc! {
            "state": self.own_state(),
            "set": self.arguments.get("replSet"),
            "shard": self.arguments.has("shardsvr"),
            "config": self.arguments.has("configsvr"),
        }
    }

    /// This member's own knowledge; [`ask_members`] adds the others.
    fn set_status(&mut self) -> Result<Document, Refusal> {
        self.in_set()?;
        self.questions += 1;
        let own = self.own_address().to_string();
        let members: Vec<Document> = self
            .members()
            .iter()
            .map(|member| {
                if member.host == own {
                    described(&member.host, self.own_state(), "")
                } else {
                    doc! { "name": &member.host }
                }
            })
            .collect();
        Ok(doc! { "set": self.arguments.get("replSet"), "members": members })
    }

    fn command_line(&self) -> Document {
        let text = |name: &str| self.arguments.get(name).map(Bson::from);
        let mut storage = doc! {};
        if let Some(name) = text("wiredTigerCollectionBlockCompressor") {
            storage.insert("collectionConfig", doc! { "blockCompressor": name });
        }
        let mut parsed = doc! { "net": { "port": i32::from(self.port()) }, "storage": { "wiredTiger": storage } };
        if let Some(set) = text("replSet") {
            parsed.insert("replication", doc! { "replSet": set });
        }
        if let Some(path) = text("keyFile") {
            parsed.insert("security", doc! { "keyFile": path });
        }
        doc! { "argv": [], "parsed": parsed }
    }

    fn parameters(&self) -> Document {
        self.arguments
            .parameters
            .iter()
            .map(|(name, value)| (name.clone(), Bson::from(value.as_str())))
            .collect()
    }

    fn status(&self) -> Document {
        let mut status = doc! { "version": &self.version_text };
        if !self.router {
            let engine = self.arguments.get("storageEngine");
            let size = match engine {
                Some("inMemory") => self.arguments.get("inMemorySizeGB"),
                _ => self.arguments.get("wiredTigerCacheSizeGB"),
            };
            let size = size.and_then(|text| text.parse().ok());
            let reported = self.misbehaviour(&format!("cache {} ", self.name));
            let reported = reported.and_then(|text| text.parse().ok());
            let bytes = reported.unwrap_or(size.unwrap_or(1.0) * f64::from(1 << 30));
            let engine = engine.unwrap_or("wiredTiger");
            status.insert("storageEngine", doc! { "name": engine });
            let cache = doc! { "maximum bytes configured": bytes };
            status.insert("wiredTiger", doc! { "cache": cache });
        }
        status
    }
}

/// Completes the reply to `replSetGetStatus` with the states that the other members report.
///
/// The node must not be locked: two members that are queried at the same time query each other, and neither could
/// answer.
pub(super) fn ask_members(status: &mut Document) {
    let Ok(members) = status.get_array_mut("members") else {
        return;
    };
    for member in members.iter_mut() {
        let Some(unknown) = member.as_document().filter(|known| !known.contains_key("state"))
        else {
            continue;
        };
        let host = unknown.get_str("name").unwrap_or_default().to_owned();

        let state = match host.parse().map(wire::state) {
            Ok(Ok(reply)) => described(&host, reply.get_i32("state").unwrap_or(6), ""),
            Ok(Err(error)) => described(&host, 8, &error.to_string()),
            Err(_) => described(&host, 8, "no address"),
        };
        *member = Bson::Document(state);
    }
}

/// The set of a data folder.
pub(super) fn stored_configuration(data: &Path) -> Option<Document> {
    let bytes = fs::read(data.join(CONFIGURATION)).ok()?;
    Document::from_reader(bytes.as_slice()).ok()
}

/// Writes the files that identify a data folder of `mongod`.
pub(super) fn mark_data_folder(path: &Path) {
    for name in ["WiredTiger", "_mdb_catalog.wt"] {
        // A missing folder causes an error later.
        let _ = fs::write(path.join(name), "double");
    }
}
