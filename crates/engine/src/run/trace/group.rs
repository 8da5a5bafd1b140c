//! Inspects a group of processes.

use std::fs;

/// Bit of `SIGINT` (2) in the masks of `/proc/PID/status`.
const INTERRUPT: u64 = 1 << 1;

/// Whether the group has a living process that `SIGINT` can reach. Background processes of a shell
/// ignore it, so waiting for them would never end.
pub(super) fn has_listeners(group: i32) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else {
        return false;
    };
    processes
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .any(|process| is_listener(&process, group).unwrap_or(false))
}

/// `None` for a process that is gone.
fn is_listener(process: &str, group: i32) -> Option<bool> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it may contain anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    let (state, _parent, its_group) = (words.next()?, words.next()?, words.next()?);
    if matches!(state, "Z" | "X") || its_group.parse() != Ok(group) {
        return Some(false);
    }
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let ignored = u64::from_str_radix(ignored.trim(), 16).ok()?;
    Some(ignored & INTERRUPT == 0)
}
