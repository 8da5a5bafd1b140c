//! Ctrl-C and SIGTERM: the first one ends the work orderly, the second one ends the program at once.

use crate::exit::{Exit, Failure};
use dyno_load::connect::Patience;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Knows whether a signal asked the program to end.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt {
    requested: Arc<AtomicBool>,
}

impl Interrupt {
    /// Installs the handlers.
    pub(crate) fn install() -> Result<Self, Failure> {
        let requested = Arc::new(AtomicBool::new(false));
        for signal in SIGNALS {
            // Order matters: the first signal must find the flag unset, so that it only sets it.
            flag::register_conditional_shutdown(
                signal,
                Exit::Interrupted as i32,
                Arc::clone(&requested),
            )
            .and_then(|_| flag::register(signal, Arc::clone(&requested)))
            .map_err(|error| {
                Failure::of(Exit::Environment, error).context("cannot handle signals")
            })?;
        }
        Ok(Interrupt { requested })
    }

    /// Whether a signal has come.
    pub(crate) fn requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Waits until a signal has come.
    pub(crate) fn patience(&self) -> Patience {
        let requested = Arc::clone(&self.requested);
        Patience::new(move || requested.load(Ordering::Relaxed))
    }

    /// An error if a signal has come.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.requested() {
            return Err(Failure::new(Exit::Interrupted, "interrupted"));
        }
        Ok(())
    }

    /// A flag of its own that a signal sets too. The engine sets it as well when it ends by itself,
    /// which must not look like a signal.
    pub(crate) fn stop_flag(&self) -> Result<StopFlag, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        let mut ids = Vec::new();
        for signal in SIGNALS {
            ids.push(
                signal_hook::flag::register(signal, Arc::clone(&flag)).map_err(|error| {
                    Failure::of(Exit::Environment, error).context("cannot handle signals")
                })?,
            );
        }
        if self.requested() {
            flag.store(true, Ordering::Relaxed);
        }
        Ok(StopFlag { flag, ids })
    }
}

/// A flag that a signal sets, as long as this lives.
#[derive(Debug)]
pub(crate) struct StopFlag {
    flag: Arc<AtomicBool>,
    ids: Vec<SigId>,
}

impl StopFlag {
    /// The flag.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }
}

impl Drop for StopFlag {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            low_level::unregister(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_that_is_no_signal_does_not_look_like_one() {
        let interrupt = Interrupt {
            requested: Arc::new(AtomicBool::new(false)),
        };
        let stop = interrupt.stop_flag().expect("handlers can be added");
        stop.flag().store(true, Ordering::Relaxed);
        assert!(!interrupt.requested());
        assert!(interrupt.check().is_ok());
    }

    #[test]
    fn a_signal_that_came_earlier_sets_later_flags() {
        let interrupt = Interrupt {
            requested: Arc::new(AtomicBool::new(true)),
        };
        let stop = interrupt.stop_flag().expect("handlers can be added");
        assert!(stop.flag().load(Ordering::Relaxed));
        assert_eq!(
            interrupt.check().expect_err("a signal came").exit,
            Exit::Interrupted
        );
    }
}
