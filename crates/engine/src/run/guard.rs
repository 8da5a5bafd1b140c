//! Makes long runs safe without supervision: ends a run before a disk is full, and syncs its record
//! to the disk once a minute.

use crate::error::{Error, Kind};
use dyno_plan::units::Bytes;
use dyno_record::quantity::Quantity;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Interval between disk checks. A check costs microseconds, and no server fills much space in that
/// time.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Interval between syncs of the record: the most that a power loss may cost.
pub(crate) const SYNC_EVERY: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Clone, Debug)]
pub struct Guard {
    least_free: Bytes,
}

/// An active guard.
#[derive(Debug)]
pub(crate) struct GuardCheck {
    least_free: Bytes,
    folders: Vec<PathBuf>,
    looked: Option<Instant>,
    synced: Instant,
}

impl Guard {
    /// Ends a run if less than this is free on one of its disks.
    pub fn new(least_free: Bytes) -> Self {
        Guard { least_free }
    }

    /// Starts to guard the disks of these folders.
    pub(crate) fn watch(&self, folders: Vec<PathBuf>) -> GuardCheck {
        GuardCheck { least_free: self.least_free, folders, looked: None, synced: Instant::now() }
    }
}

impl GuardCheck {
    /// Why the run must end now, if so.
    pub(crate) fn fault(&mut self) -> Option<Error> {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK_EVERY) {
            return None;
        }
        self.looked = Some(Instant::now());
        self.folders.iter().find_map(|folder| {
            let free = dyno_observe::environment::free_bytes(folder)?;
            (free < self.least_free.0).then(|| {
                let folder = folder.display();
                let text = format!(
                    "the disk of `{folder}` is nearly full: {} are free, less than {}",
                    Quantity::bytes(free),
                    self.least_free
                );
                Error::new(Kind::Environment, text)
                    .with_hint("free some space, use another disk with `--out` and `--data-dir` or a larger `server.storage`, or change the limit with `--least-free`")
            })
        })
    }

    /// Whether the record is due to be synced.
    pub(crate) fn sync_is_due(&mut self) -> bool {
        let is_due = self.synced.elapsed() >= SYNC_EVERY;
        if is_due {
            self.synced = Instant::now();
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ends_below_its_free_space_limit() {
        let folders = vec![std::env::temp_dir()];
        let fault = |least_free| Guard::new(Bytes(least_free)).watch(folders.clone()).fault();
        assert!(fault(1).is_none());
        let failure = fault(u64::MAX).expect("no disk is that large");
        assert_eq!(failure.kind, Kind::Environment);
        assert!(failure.cause.to_string().contains("are free"), "{}", failure.cause);
    }

    #[test]
    fn disks_are_not_checked_in_every_window() {
        let mut check = Guard::new(Bytes(u64::MAX)).watch(vec![std::env::temp_dir()]);
        assert!(check.fault().is_some());
        assert!(check.fault().is_none());
    }

    #[test]
    fn missing_folder_is_checked_by_its_parent() {
        let folder = std::env::temp_dir().join("not-there/at-all");
        assert!(Guard::new(Bytes(u64::MAX)).watch(vec![folder]).fault().is_some());
    }
}
