//! Sends administrative commands to fake servers.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bson::{Document, doc};
use dyno_servers::{AdminClient, CommandFailure, Target};

use super::wire;

/// Sends commands to fake servers, in plain text whatever the target requests. It keeps its connections.
#[derive(Debug, Default)]
pub struct FakeAdminClient {
    /// Key: the address, and whether the connection is authenticated.
    connections: HashMap<(SocketAddr, bool), TcpStream>,
    /// Number of targets with certificates, which the fake `mongod` does not support.
    pub encrypted_targets: u32,
}

impl FakeAdminClient {
    fn exchange(
        &mut self,
        target: Target<'_>,
        command: &Document,
        limit: Duration,
    ) -> io::Result<Document> {
        let key = (target.address, target.credentials.is_some());
        let stream = match self.connections.entry(key) {
            Entry::Occupied(kept) => kept.into_mut(),
            Entry::Vacant(free) => free.insert(connect(target, limit)?),
        };
        let reply = wire::exchange(stream, command);
        if reply.is_err() {
            self.connections.remove(&key);
        }
        reply
    }
}

fn connect(target: Target<'_>, limit: Duration) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&target.address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    if let Some(credentials) = target.credentials {
        let login = doc! {
            "fakeMongodAuthenticate": &credentials.username,
            "pwd": credentials.password(),
            "$db": "admin",
        };
        if let Some(failure) = CommandFailure::from_reply(&wire::exchange(&mut stream, &login)?) {
            return Err(io::Error::other(failure));
        }
    }
    Ok(stream)
}

impl AdminClient for FakeAdminClient {
    fn run(
        &mut self,
        target: Target<'_>,
        database: &str,
        mut command: Document,
        limit: Duration,
    ) -> Result<Document, CommandFailure> {
        self.encrypted_targets += u32::from(target.tls.is_some());
        command.insert("$db", database);
        let reply = self
            .exchange(target, &command, limit)
            .map_err(|error| CommandFailure::Unreachable(error.into()))?;
        match CommandFailure::from_reply(&reply) {
            None => Ok(reply),
            Some(failure) => Err(failure),
        }
    }
}
