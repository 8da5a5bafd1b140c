//! What makes a run of hours safe to leave alone: it ends before a disk is full, and what it recorded is brought to
//! the disk once a minute.

use crate::error::{Error, Kind};
use dyno_plan::units::Bytes;
use dyno_record::quantity::Quantity;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time between two looks at the disks. A look costs microseconds, and no server fills much in that time.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Time between two times of bringing the record to the disk: what a loss of power may cost.
pub(crate) const SYNC_EVERY: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Clone, Debug)]
pub struct Guard {
    least_free: Bytes,
}

/// A guard at work.
#[derive(Debug)]
pub(crate) struct GuardCheck {
    least_free: Bytes,
    folders: Vec<PathBuf>,
    looked: Option<Instant>,
    synced: Instant,
}

impl Guard {
    /// Ends a run when less than this is free on one of its disks.
    pub fn new(least_free: Bytes) -> Self {
        Guard { least_free }
    }

    /// Begins to guard the disks of these folders.
    pub(crate) fn watch(&self, folders: Vec<PathBuf>) -> GuardCheck {
        GuardCheck {
            least_free: self.least_free,
            folders,
            looked: None,
            synced: Instant::now(),
        }
    }
}

impl GuardCheck {
    /// Why the run must end now, if it must.
    pub(crate) fn fault(&mut self) -> Option<Error> {
        if self
            .looked
            .is_some_and(|looked| looked.elapsed() < LOOK_EVERY)
        {
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
                    .with_hint("free some space, or use another disk with `--out` and `--data-dir`, or a larger `server.storage`; `--least-free` sets the limit")
            })
        })
    }

    /// Whether it is time to bring the record to the disk.
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
    fn a_run_ends_when_less_is_free_than_it_wants() {
        let folders = vec![std::env::temp_dir()];
        let fault = |least_free| Guard::new(Bytes(least_free)).watch(folders.clone()).fault();
        assert!(fault(1).is_none());
        let failure = fault(u64::MAX).expect("no disk is that large");
        assert_eq!(failure.kind, Kind::Environment);
        assert!(
            failure.cause.to_string().contains("are free"),
            "{}",
            failure.cause
        );
    }

    #[test]
    fn the_disks_are_not_asked_for_each_window() {
        let mut check = Guard::new(Bytes(u64::MAX)).watch(vec![std::env::temp_dir()]);
        assert!(check.fault().is_some());
        assert!(check.fault().is_none());
    }

    #[test]
    fn a_folder_that_does_not_exist_yet_stands_for_the_one_above() {
        let folder = std::env::temp_dir().join("not-there/at-all");
        assert!(
            Guard::new(Bytes(u64::MAX))
                .watch(vec![folder])
                .fault()
                .is_some()
        );
    }
}
