//! Whether a server is on this machine.

use dyno_observe::doctor::network::{self, Relay};
use dyno_plan::task::Remote;
use dyno_plan::uri::Host;
use std::path::Path;

/// Whether the server is on this machine, as far as its address tells, and who has its port open here. `hostname` is the
/// name of this machine.
pub fn is_local(remote: &Remote, hostname: Option<&str>) -> bool {
    remote.is_local(hostname, is_tunnel)
}

/// Whether a port of this machine is the near end of a way to another one.
pub fn is_tunnel(port: u16) -> bool {
    network::holder(Path::new("/"), port).is_ok_and(|holder| holder.relay == Some(Relay::Tunnel))
}

/// The process that listens at an address of this machine.
///
/// # Errors
/// Why it cannot be determined, as a sentence.
pub fn process_at(host: &Host) -> Result<u32, String> {
    let Host::Tcp { port, .. } = host else {
        return Err("cannot determine which process owns a Unix-domain socket".to_owned());
    };
    network::listener_pid(Path::new("/"), *port).map_err(|health| {
        health
            .reason()
            .unwrap_or("it cannot be looked at")
            .to_owned()
    })
}
