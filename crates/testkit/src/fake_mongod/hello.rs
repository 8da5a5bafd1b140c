//! The self-description of a fake `mongod`. Source: MongoDB manual, `hello`, and the drivers' handshake specification.

use bson::{Bson, DateTime, Document, doc};

use super::node::{Node, Session};
use super::shapes::{MOST_WRITES, Refusal};

/// Longest name of an application in bytes.
const APPLICATION_BYTES: usize = 128;

/// Newest wire version of a server. Source: `wire_version.h` of MongoDB, by release.
fn wire_version(version: (u32, u32)) -> i32 {
    let minor = i32::try_from(version.1).unwrap_or(0);
    match version {
        (..=4, _) => 9,
        (5, _) => 13 + minor,
        (6, _) => 17 + minor,
        (7, _) => 21 + minor,
        _ => 25 + minor,
    }
}

/// Validates the client metadata: sent once per connection, and complete.
fn check_client(command: &Document, session: &mut Session) -> Result<(), Refusal> {
    let Ok(client) = command.get_document("client") else {
        return Ok(());
    };
    if std::mem::replace(&mut session.introduced, true) {
        let message = "The client metadata document may only be sent in the first hello";
        return Err((186, message.to_owned()));
    }
    for (part, fields) in [("driver", &["name", "version"][..]), ("os", &["type"])] {
        let part_of = client.get_document(part).ok();
        for field in fields {
            if part_of.is_none_or(|part| part.get_str(field).is_err()) {
                let message =
                    format!("Missing required field '{part}.{field}' in the client metadata");
                return Err((183, message));
            }
        }
    }
    let application = client.get_document("application");
    let name = application.and_then(|application| application.get_str("name"));
    match name {
        Ok(name) if name.len() > APPLICATION_BYTES => {
            Err((183, "The name of the application is too long".to_owned()))
        }
        _ => Ok(()),
    }
}

impl Node {
    /// Answer to `hello` and its older names.
    pub(super) fn hello(
        &self,
        name: &str,
        command: &Document,
        session: &mut Session,
    ) -> Result<Document, Refusal> {
        check_client(command, session)?;
        let writable = match name {
            "hello" => "isWritablePrimary",
            _ => "ismaster",
        };
        let mut reply = doc! { writable: self.is_writable() };
        if command.get_bool("helloOk").unwrap_or(false) {
            reply.insert("helloOk", true);
        }
        if self.router {
            reply.insert("msg", "isdbgrid");
        } else if self.arguments.has("replSet") {
            self.describe_set(&mut reply);
        }
        reply.extend(doc! {
            "maxBsonObjectSize": 16 << 20,
            "maxMessageSizeBytes": 48_000_000,
            "maxWriteBatchSize": i32::try_from(MOST_WRITES).unwrap_or(i32::MAX),
            "localTime": DateTime::now(),
            "logicalSessionTimeoutMinutes": 30,
            "connectionId": session.number,
            "minWireVersion": 0,
            "maxWireVersion": wire_version(self.version),
            "readOnly": false,
        });
        if let Ok(user) = command.get_str("saslSupportedMechs")
            && self.has_user(user)
        {
            reply.insert(
                "saslSupportedMechs",
                ["SCRAM-SHA-1", "SCRAM-SHA-256"].map(Bson::from).to_vec(),
            );
        }
        Ok(reply)
    }

    fn describe_set(&self, reply: &mut Document) {
        let members = self.members();
        let state = self.own_state();
        reply.insert("secondary", state == 2);
        if members.is_empty() {
            reply.insert("isreplicaset", true);
            reply.insert("info", "Does not have a valid replica set config");
            return;
        }
        let hosts = |arbiters: bool| -> Vec<Bson> {
            let wanted = members.iter().filter(|member| member.arbiter == arbiters);
            wanted.map(|member| Bson::from(&*member.host)).collect()
        };
        reply.insert("hosts", hosts(false));
        if members.iter().any(|member| member.arbiter) {
            reply.insert("arbiters", hosts(true));
        }
        reply.insert("setName", self.arguments.get("replSet"));
        reply.insert("setVersion", 1);
        // A secondary assumes that the leading member has also been elected.
        let own = self.own_address().to_string();
        let known = self.leader().filter(|leader| match state {
            1 => true,
            2 | 7 => *leader != own,
            _ => false,
        });
        if let Some(leader) = known {
            reply.insert("primary", leader);
        }
        if state == 7 {
            reply.insert("arbiterOnly", true);
        }
        reply.insert("me", own);
    }
}
