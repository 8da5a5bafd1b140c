//! A private network for a test, with addresses other than loopback that no other process reaches.

use crate::Skip;
use nix::sched::{CloneFlags, unshare};
use std::process::Command;

/// Moves the calling thread, and everything it starts afterwards, into a private network with these IPv4 addresses. The
/// network disappears with the last of them.
///
/// # Errors
/// A [`Skip`] without root.
///
/// # Panics
/// The network cannot be made; `ip` is missing.
pub fn own_network(addresses: &[&str]) -> Result<(), Skip> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Skip::new("no root", "run as root"));
    }
    unshare(CloneFlags::CLONE_NEWNET).expect("root may have a network");
    ip(&["link", "set", "lo", "up"]);
    for address in addresses {
        add_address(address);
    }
    Ok(())
}

/// Adds an address to the calling thread's network.
///
/// # Panics
/// As for [`own_network`].
pub fn add_address(address: &str) {
    ip(&["address", "add", &format!("{address}/32"), "dev", "lo"]);
}

fn ip(words: &[&str]) {
    let done = Command::new("ip").args(words).status();
    assert!(done.is_ok_and(|status| status.success()), "ip {words:?}");
}
