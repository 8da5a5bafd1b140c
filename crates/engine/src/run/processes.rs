//! Which processes of this machine are the servers. All that reads their use asks here, so that one part of a record cannot
//! have what another one misses.

use crate::deployment::DeploymentUnderTest;
use crate::deployment::server::ServerUnderTest;
use dyno_observe::consumption::Known;
use dyno_observe::doctor::network;
use dyno_observe::health::Reading;
use std::path::Path;

/// The processes of the servers with data, those that this program did not start by their port, or why they are not known.
pub(super) fn of_servers(deployment: &DeploymentUnderTest) -> Known<Vec<u32>> {
    if !deployment.servers.iter().all(ServerUnderTest::is_local) {
        return Err("the servers run on another machine".to_owned());
    }
    let started = deployment.processes();
    if !started.is_empty() {
        return Ok(started);
    }
    let is_router =
        |server: &ServerUnderTest| server.control().is_ok_and(|own| own.hello().is_mongos);
    if deployment.servers.iter().any(is_router) {
        return Err("the servers behind a router are not known".to_owned());
    }
    let (_, process) = listener(deployment)
        .ok_or_else(|| "the processes of servers that ran already are not known".to_owned())?;
    let process = process.map_err(|health| health.reason().unwrap_or_default().to_owned());
    Ok(vec![process?])
}

/// The port and the process of the one server that ran already on this machine; `None` where it is another deployment, of which
/// this would be a part.
pub(super) fn listener(deployment: &DeploymentUnderTest) -> Option<(u16, Reading<u32>)> {
    let [only] = deployment.servers.as_slice() else {
        return None;
    };
    let is_whole = || only.hosts().is_ok_and(|hosts| hosts.len() == 1);
    let is_meant = only.is_local() && !deployment.is_started() && is_whole();
    let port = only.port().filter(|_| is_meant)?;
    Some((port, network::listener_pid(Path::new("/"), port)))
}
