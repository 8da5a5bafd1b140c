//! Sends administration commands to deployments over our own connections.

use bson::Document;
use dyno_load::connect::{Connector, Control, ControlError};
use dyno_servers::{AdminClient, CommandFailure, Target};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::time::Duration;

/// Connections to the servers of one deployment, kept for later commands.
#[derive(Debug, Default)]
pub(crate) struct ControlAdminClient {
    /// By address, and whether the connection is authenticated.
    connections: HashMap<(SocketAddr, bool), Control>,
}

impl ControlAdminClient {
    fn connection(
        &mut self,
        target: Target<'_>,
        limit: Duration,
    ) -> Result<&mut Control, CommandFailure> {
        let place = (target.address, target.credentials.is_some());
        match self.connections.entry(place) {
            Entry::Occupied(kept) => Ok(kept.into_mut()),
            Entry::Vacant(free) => {
                let control = connect(target, limit).map_err(CommandFailure::Unreachable)?;
                Ok(free.insert(control))
            }
        }
    }
}

fn connect(
    target: Target<'_>,
    limit: Duration,
) -> Result<Control, Box<dyn std::error::Error + Send + Sync>> {
    let (mut address, _) = dyno_plan::uri::parse(&target.uri())?;
    address.options.connect_timeout_ms = Some(u64::try_from(limit.as_millis())?.max(1));
    let connector = Connector::new(&address, target.credentials.cloned())?;
    Ok(connector.control()?)
}

impl AdminClient for ControlAdminClient {
    fn run(
        &mut self,
        target: Target<'_>,
        database: &str,
        command: Document,
        limit: Duration,
    ) -> Result<Document, CommandFailure> {
        let control = self.connection(target, limit)?;
        control.set_limit(Some(limit));
        match control.run(database, command) {
            Ok(reply) => Ok(reply),
            Err(ControlError::Server { code, message, .. }) => {
                Err(CommandFailure::Refused { code, message })
            }
            Err(error) => {
                // A broken connection is not reused.
                self.connections.remove(&(target.address, target.credentials.is_some()));
                Err(CommandFailure::Unreachable(Box::new(error)))
            }
        }
    }
}
