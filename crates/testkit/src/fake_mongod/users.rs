//! Users of the fake `mongod`, and their permissions before and after the first one exists.

use bson::{Document, doc};

use super::node::{Node, Session};
use super::shapes::Refusal;
use super::{lines, note};

/// Commands that are allowed without authentication.
const OPEN: [&str; 9] = [
    "buildInfo",
    "fakeMongodAuthenticate",
    "fakeMongodForward",
    "fakeMongodJoin",
    "fakeMongodState",
    "hello",
    "isMaster",
    "ismaster",
    "ping",
];

/// Commands that a connection from the same host may send to a server without users. Source: MongoDB manual, "Localhost
/// Exception", and the privileges that the server grants for it.
const EXCEPTION: [&str; 4] = ["addShard", "createUser", "replSetGetStatus", "replSetInitiate"];

/// Additional commands on an arbiter, which never has users.
const ARBITER_EXCEPTION: [&str; 3] = ["getCmdLineOpts", "getParameter", "serverStatus"];

impl Node {
    /// Whether this client may send this command now.
    pub(super) fn permit(&self, name: &str, session: &Session) -> Result<(), Refusal> {
        let open = OPEN.contains(&name) || !self.arguments.needs_user() || session.authenticated;
        let excepted = || {
            self.users().is_empty()
                && (EXCEPTION.contains(&name)
                    || (self.is_arbiter() && ARBITER_EXCEPTION.contains(&name)))
        };
        if open || excepted() {
            Ok(())
        } else {
            Err((13, format!("Command {name} requires authentication")))
        }
    }

    /// File of the users, which belong to the set; users of a cluster belong to its config servers.
    fn users_file(&self) -> String {
        let owner = match (self.router, self.arguments.get("replSet")) {
            (true, _) => self.arguments.get("configdb").and_then(|text| text.split('/').next()),
            (false, set) => set,
        };
        format!("users-{}", owner.unwrap_or(&self.name))
    }

    /// `NAME PASSWORD` of every user. An arbiter has none.
    fn users(&self) -> Vec<String> {
        if self.is_arbiter() { Vec::new() } else { lines(&self.folder, &self.users_file()) }
    }

    /// Whether the user `database.name` exists.
    pub(super) fn has_user(&self, user: &str) -> bool {
        let name = user.strip_prefix("admin.").unwrap_or_default();
        let users = self.users();
        let mut names = users.iter().filter_map(|line| line.split(' ').next());
        names.any(|found| found == name)
    }

    pub(super) fn create_user(&mut self, command: &Document) -> Result<Document, Refusal> {
        if !self.router && !self.is_writable() {
            return Err((10107, "not primary".to_owned()));
        }
        if command.get_str("$db").is_ok_and(|database| database != "admin") {
            return Err((2, "the first user belongs to 'admin'".to_owned()));
        }
        for mechanism in command.get_array("mechanisms").into_iter().flatten() {
            if !matches!(mechanism.as_str(), Some("SCRAM-SHA-1" | "SCRAM-SHA-256")) {
                return Err((2, format!("unknown auth mechanism {mechanism}")));
            }
        }
        if let Some(failure) = self.fulfilment().failure(command) {
            return Err(failure);
        }
        let (user, password) = (command.get_str("createUser"), command.get_str("pwd"));
        let line = format!("{} {}", user.unwrap_or_default(), password.unwrap_or_default());
        note(&self.folder, &self.users_file(), &line);
        Ok(doc! {})
    }

    pub(super) fn authenticate(
        &self,
        command: &Document,
        session: &mut Session,
    ) -> Result<Document, Refusal> {
        let user = command.get_str("fakeMongodAuthenticate").unwrap_or_default();
        let line = format!("{user} {}", command.get_str("pwd").unwrap_or_default());
        if self.users().contains(&line) {
            session.authenticated = true;
            Ok(doc! {})
        } else {
            Err((18, "Authentication failed.".to_owned()))
        }
    }
}
