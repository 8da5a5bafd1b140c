//! Finds out whether a server is on this machine, and where its data is.

use super::server::{ServerPaths, data_folder};
use dyno_observe::doctor::network::{self, Relay};
use dyno_plan::Plan;
use dyno_plan::task::Remote;
use dyno_plan::uri::Host;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A server's name for its data folder.
pub(crate) const DATA_FOLDER_SETTING: &str = "storage.dbPath";

/// Data folders of servers that a plan starts on this machine, on existing storage.
pub fn planned_folders(plan: &Plan, paths: &ServerPaths<'_>) -> Vec<PathBuf> {
    let several = &plan.server.data_dirs;
    if several.is_empty() || plan.server.data_dir.is_some() {
        data_folder(plan, paths).into_iter().collect()
    } else {
        several.iter().map(PathBuf::from).collect()
    }
}

/// Data folders from the settings of servers on this machine. Skips folders inside containers,
/// which do not exist here.
pub fn named_folders<'a>(
    settings: impl Iterator<Item = &'a BTreeMap<String, String>>,
) -> Vec<PathBuf> {
    let named = settings.filter_map(|settings| settings.get(DATA_FOLDER_SETTING));
    named.map(PathBuf::from).filter(|path| path.is_dir()).collect()
}

/// Whether the server is on this machine, judged by its address and the process that listens on its
/// port. `hostname` is the name of this machine.
pub fn is_local(remote: &Remote, hostname: Option<&str>) -> bool {
    remote.is_local(hostname, is_tunnel)
}

/// Whether a local port is the entrance of a tunnel to another machine.
pub fn is_tunnel(port: u16) -> bool {
    network::holder(Path::new("/"), port).is_ok_and(|holder| holder.relay == Some(Relay::Tunnel))
}

/// Process that listens at an address of this machine.
///
/// # Errors
/// The reason why it cannot be determined, as a sentence.
pub fn process_at(host: &Host) -> Result<u32, String> {
    let Host::Tcp { port, .. } = host else {
        return Err("cannot determine which process owns a Unix-domain socket".to_owned());
    };
    network::listener_pid(Path::new("/"), *port).map_err(|health| health.reason().to_owned())
}
