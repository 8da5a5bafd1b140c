//! A network of a test's own, with addresses that are not those of loopback and that nobody else reaches.

use crate::Skip;
use nix::sched::{CloneFlags, unshare};
use std::process::Command;

/// Puts the calling thread, and what it starts from now on, into a network of its own with these addresses (IPv4). It goes
/// away with the last of them.
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

/// Gives the network of the calling thread one more address.
///
/// # Panics
/// As [`own_network`].
pub fn add_address(address: &str) {
    ip(&["address", "add", &format!("{address}/32"), "dev", "lo"]);
}

fn ip(words: &[&str]) {
    let done = Command::new("ip").args(words).status();
    assert!(done.is_ok_and(|status| status.success()), "ip {words:?}");
}
