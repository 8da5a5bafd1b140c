//! `dyno stop`: asks a run in progress to end, and waits for its end.

use crate::args::standing::StopArguments;
use crate::commands::status;
use crate::exit::Exit;
use crate::invocation::Invocation;
use dyno_engine::run::live;
use dyno_engine::{Error, Kind};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::{Duration, Instant};

/// Interval between checks for the end of the run.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Executes `dyno stop`.
pub(crate) fn stop(arguments: &StopArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let state_dir = invocation.environment().state_dir.as_deref();
    let states = status::find(arguments.run.as_deref(), state_dir)?;
    let state = match states.as_slice() {
        [] => {
            return Err(Error::new(Kind::Environment, "no run in progress")
                .with_hint("pass the run directory if the run belongs to another user or state folder; `dyno status` lists your runs"));
        }
        [one] => one,
        several => {
            let names: Vec<String> =
                several.iter().map(|state| format!("`{}`", state.directory.display())).collect();
            let text = format!("{} runs are in progress: {}", several.len(), names.join(", "));
            return Err(Error::new(Kind::BadInput, text).with_hint("pass one run directory"));
        }
    };
    let place = state.directory.display();
    let process = i32::try_from(state.process).ok().filter(|process| *process > 1);
    let process = process.map(Pid::from_raw).ok_or_else(|| {
        Error::new(Kind::Environment, format!("the run in `{place}` did not record its process"))
    })?;
    if !live::is_locked_by(&state.directory, state.process) {
        let text = format!("process {process} is not a run in `{place}`");
        return Err(Error::new(Kind::Environment, text).with_hint(
            "stop the run as the user who started it, on the same host and in the same container",
        ));
    }
    match kill(process, Signal::SIGTERM) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => {
            return Err(Error::from_cause(Kind::Environment, error)
                .context(format!("cannot stop the run in `{place}`")));
        }
    }
    let deadline = Instant::now() + arguments.wait.0;
    while kill(process, None).is_ok() && live::read(&state.directory).is_some() {
        if Instant::now() >= deadline {
            let text = format!("the run in `{place}` did not end within {}", arguments.wait);
            return Err(Error::new(Kind::Environment, text).with_hint(
                "run `dyno stop` again to end it at once; it may be waiting for its server",
            ));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    invocation.messages.note(&format!("ended; show the record with `dyno report {place}`"));
    Ok(Exit::Done)
}
