//! SIGINT, SIGTERM and SIGHUP: the first signal cancels the work, the second one ends the program at once.

use crate::exit::Exit;
use dyno_engine::{Cancel, Error, Kind};
use nix::sys::signal::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Makes writes beyond the file size limit fail instead of ending the program. Started servers keep the default action of the
/// signal.
pub(crate) fn let_large_writes_fail() {
    // If this fails, the default action stays.
    let _ = flag::register(Signal::SIGXFSZ as i32, Arc::default());
}

const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Installs the handlers and returns their cancellation token.
pub(crate) fn install() -> Result<Cancel, Error> {
    let cannot = |error: std::io::Error| {
        Error::from_cause(Kind::Environment, error).context("cannot handle signals")
    };
    let requested = Arc::new(AtomicBool::new(false));
    for signal in SIGNALS {
        // Order matters: the first signal must find the flag unset, so that it only sets it.
        flag::register_conditional_shutdown(
            signal,
            Exit::Interrupted as i32,
            Arc::clone(&requested),
        )
        .and_then(|_| flag::register(signal, Arc::clone(&requested)))
        .map_err(cannot)?;
    }
    let cancel = Cancel::with_flag(requested);
    let mut signals = Signals::new(SIGNALS).map_err(cannot)?;
    let of_signals = cancel.clone();
    // A signal handler may only set a flag; this thread cancels running phases.
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for _ in signals.forever() {
                of_signals.cancel();
            }
        })
        .map_err(cannot)?;
    Ok(cancel)
}
