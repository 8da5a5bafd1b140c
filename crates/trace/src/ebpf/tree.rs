//! Processes and their current descendants, from `/proc`.

use std::collections::HashMap;

/// The existing processes among `roots`, and all their descendants.
pub(super) fn with_descendants(roots: &[u32]) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for process in processes() {
        if let Some(parent) = parent_of(process) {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut found: Vec<u32> = roots.to_vec();
    let mut next = 0;
    while next < found.len() {
        for &child in children.get(&found[next]).into_iter().flatten() {
            if !found.contains(&child) {
                found.push(child);
            }
        }
        next += 1;
    }
    found
}

/// Whether the process exists.
pub(super) fn exists(process: u32) -> bool {
    std::path::Path::new(&format!("/proc/{process}/stat")).exists()
}

fn processes() -> Vec<u32> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn parent_of(process: u32) -> Option<u32> {
    parent_in(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Parent in the text of `/proc/PID/stat`, where the program name may contain anything.
fn parent_in(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_after_any_name() {
        assert_eq!(parent_in("7 (a) b (c) S 42 7 7 0"), Some(42));
        assert_eq!(parent_in("nonsense"), None);
    }

    #[test]
    fn this_process_descends_from_its_parent() {
        let parent = std::os::unix::process::parent_id();
        let own = std::process::id();
        assert!(with_descendants(&[parent]).contains(&own));
        assert!(!with_descendants(&[own]).contains(&parent));
        assert!(exists(own));
        assert!(!exists(u32::MAX));
    }
}
