//! `dyno stop`: asks a run that goes on to end, and waits until it has.

use crate::args::StopArguments;
use crate::commands::status;
use crate::exit::Exit;
use crate::messages::Messages;
use dyno_engine::run::live;
use dyno_engine::{Error, Kind};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::time::{Duration, Instant};

/// Distance between two looks whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// See the module.
pub(crate) fn stop(
    arguments: &StopArguments,
    state_dir: Option<&Path>,
    messages: Messages,
) -> Result<Exit, Error> {
    let states = status::find(arguments.run.as_deref(), state_dir);
    let state = match states.as_slice() {
        [] => {
            return Err(Error::new(Kind::Environment, "no run goes on")
                .with_hint("`dyno status` shows those that do; one of another person or state folder is named by its directory"));
        }
        [one] => one,
        several => {
            let names: Vec<String> = several
                .iter()
                .map(|state| format!("`{}`", state.directory.display()))
                .collect();
            let text = format!("{} runs go on: {}", several.len(), names.join(", "));
            return Err(Error::new(Kind::BadInput, text).with_hint("name the directory of one"));
        }
    };
    let place = state.directory.display();
    let process = i32::try_from(state.process)
        .ok()
        .filter(|process| *process > 1);
    let process = process.map(Pid::from_raw).ok_or_else(|| {
        Error::new(
            Kind::Environment,
            format!("`{place}` does not name its process"),
        )
    })?;
    if kill(process, None) == Err(Errno::ESRCH) {
        let text = format!("the process of `{place}` is gone");
        return Err(Error::new(Kind::Environment, text)
            .with_hint(format!("`dyno report {place}` shows what it recorded")));
    }
    if !live::is_locked_by(&state.directory, state.process) {
        let text = format!("process {process} does not measure in `{place}`");
        return Err(Error::new(Kind::Environment, text).with_hint(
            "stop the run as the user who started it, on the same host and in the same container",
        ));
    }
    match kill(process, Signal::SIGTERM) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => {
            return Err(Error::from_cause(Kind::Environment, error)
                .context(format!("cannot ask the run in `{place}` to end")));
        }
    }
    let deadline = Instant::now() + arguments.wait.0;
    while kill(process, None).is_ok() && status::find(Some(&state.directory), None).len() == 1 {
        if Instant::now() >= deadline {
            let text = format!("the run in `{place}` did not end within {}", arguments.wait);
            return Err(Error::new(Kind::Environment, text)
                .with_hint("it may wait for its server; a second `dyno stop` ends it at once"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    messages.note(&format!(
        "ended; `dyno report {place}` shows what it recorded"
    ));
    Ok(Exit::Done)
}
