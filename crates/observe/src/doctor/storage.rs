//! Checks of the storage that holds the data.

use super::facts::Facts;
use super::finding::{Finding, by_hand, judged, shell_word, write_action};
use crate::health::{Health, Reading};
use dyno_record::model::StorageRecord;
use dyno_record::quantity::Quantity;
use dyno_record::verdict::{Action, Change, Level};

/// Production Notes: readahead between 8 and 32 sectors of 512 bytes.
const MIN_READAHEAD_BYTES: u64 = 8 * 512;
const MAX_READAHEAD_BYTES: u64 = 32 * 512;

pub(super) fn readahead(facts: &Facts) -> Finding {
    let why = "documents are read at random offsets; read-ahead takes time and evicts useful pages from the cache";
    let reading = facts.storage.as_ref().map_err(Clone::clone).and_then(|storage| {
        storage.readahead_bytes.ok_or_else(|| match &facts.queue {
            Err(health) => health.clone(),
            Ok(_) => Health::unsupported("the device does not report it"),
        })
    });
    judged(&reading, "8 to 32 sectors (4 KiB to 16 KiB)", why, |size| {
        let level = match *size {
            0..MIN_READAHEAD_BYTES => Level::Warn,
            MIN_READAHEAD_BYTES..=MAX_READAHEAD_BYTES => Level::Pass,
            _ => Level::Fail,
        };
        (
            level,
            format!("{} sectors ({})", size / 512, Quantity::bytes(*size)),
            readahead_change(facts),
        )
    })
}

fn readahead_change(facts: &Facts) -> Option<Change> {
    let queue = facts.queue.as_ref().ok()?;
    let device = facts.storage.as_ref().ok()?.device.as_deref()?;
    let file = queue.join("read_ahead_kb");
    Some(Change {
        command: format!("sudo blockdev --setra 32 {}", shell_word(device)),
        actions: vec![write_action(file.to_str()?, "16")],
    })
}

/// Production Notes: XFS is strongly recommended for WiredTiger, ext4 has known stalls at
/// checkpoints, other file systems are not supported.
pub(super) fn filesystem(facts: &Facts) -> Finding {
    let why = "WiredTiger's checkpoints stall on ext4; MongoDB is not tested on other file \
        systems, and some of them are not on a disk";
    let in_memory = facts
        .subject
        .server
        .as_ref()
        .and_then(|server| server.storage_engine.as_deref())
        .is_some_and(|engine| engine.eq_ignore_ascii_case("inMemory"));
    judged(&named(facts, |storage| storage.filesystem.clone()), "`xfs`", why, |kind| {
        let level = match kind.as_str() {
            _ if in_memory => Level::Pass,
            "xfs" => Level::Pass,
            "ext4" => Level::Warn,
            _ => Level::Fail,
        };
        let note = if in_memory { ", irrelevant for an in-memory engine" } else { "" };
        let change = by_hand(
            "put the data on a volume made with `mkfs.xfs`, and pass a folder there as \
                    `--data-dir`",
        );
        let mut found = format!("`{kind}`{note}");
        if let Ok(mount_point) = &facts.mount_point {
            found += &format!(", mounted at `{}`", mount_point.display());
        }
        (level, found, Some(change))
    })
}

/// Operations Checklist: `noatime` for the data.
pub(super) fn access_times(facts: &Facts) -> Finding {
    let why = "without it, reading a file writes its access time, at every access, or at least \
        once a day with `relatime`";
    judged(&named(facts, |storage| storage.mount_options.clone()), "`noatime`", why, |options| {
        let has = |name: &str| options.split(',').any(|option| option == name);
        if has("ro") {
            let found = "mounted read-only".to_owned();
            return (Level::Fail, found, Some(by_hand("mount it with `rw`")));
        }
        let (level, found) = if has("noatime") {
            (Level::Pass, "`noatime`")
        } else if has("relatime") {
            (Level::Warn, "`relatime`")
        } else {
            (Level::Warn, "access times are written")
        };
        (level, found.to_owned(), remount(facts))
    })
}

fn remount(facts: &Facts) -> Option<Change> {
    let mount_point = facts.mount_point.as_ref().ok()?.clone();
    let target = shell_word(mount_point.to_str()?);
    Some(Change {
        command: format!("sudo mount -o remount,noatime {target}"),
        actions: vec![Action::Remount { mount_point, value: "noatime".to_owned() }],
    })
}

/// Free space below which a run of any size is in danger, and below which space is scarce.
const FREE_FAIL_BYTES: u64 = 1 << 30;
const FREE_WARN_BYTES: u64 = 5 << 30;

/// The advice is our own. The data needs its own size, and as much again for its journal, indexes,
/// the old blocks that live until the next checkpoint, and the record of the run.
pub(super) fn free_disk(facts: &Facts) -> Finding {
    let why = "a full disk stops the server, and a nearly full one slows down the device and the file system";
    let planned = facts.subject.planned_data_bytes.unwrap_or(0);
    let (fail, warn) = if planned == 0 {
        (FREE_FAIL_BYTES, FREE_WARN_BYTES)
    } else {
        (planned.saturating_add(planned / 4), planned.saturating_mul(2))
    };
    let advised = format!("at least {}", Quantity::bytes(warn));
    judged(&named(facts, |storage| storage.free_bytes), &advised, why, |free| {
        let level = match *free {
            free if free < fail => Level::Fail,
            free if free < warn => Level::Warn,
            _ => Level::Pass,
        };
        let change = by_hand("free some space, or choose another `--data-dir`");
        (level, format!("{} free", Quantity::bytes(*free)), Some(change))
    })
}

/// A part of the storage's record, or the reason why it is missing.
fn named<T>(facts: &Facts, part: impl FnOnce(&StorageRecord) -> Option<T>) -> Reading<T> {
    let storage = facts.storage.as_ref().map_err(Clone::clone)?;
    part(storage).ok_or_else(|| Health::unsupported("the file system does not report it"))
}
