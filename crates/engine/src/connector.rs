//! Connections to single servers of a deployment.

use crate::error::Error;
use dyno_load::connect::{self, Connector};
use dyno_plan::uri::{Credentials, Host, Target};

/// Longest time to connect to a watched server.
const WATCHED_CONNECT_MS: u64 = 2_000;

/// Connector with a short timeout to one server of a deployment, whatever its role.
pub(crate) fn connector_to(
    deployment: &Target,
    credentials: Option<Credentials>,
    host: Host,
) -> Result<Connector, Error> {
    let unusable = |error: connect::ConnectError| {
        Error::from(error).context("cannot use the connection string")
    };
    // The name service may know the database of the user.
    let (mut target, credentials) =
        connect::with_known_hosts(deployment.clone(), credentials, None).map_err(unusable)?;
    target.hosts = vec![host];
    target.options.replica_set = None;
    target.options.direct_connection = Some(true);
    target.options.connect_timeout_ms = Some(WATCHED_CONNECT_MS);
    target.options.server_selection_timeout_ms = Some(WATCHED_CONNECT_MS);
    Connector::new(&target, credentials).map_err(unusable)
}
