//! Identifies the process that owns something.

use crate::error::{Error, Kind};
use dyno_observe::process::start_ticks;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A process, distinguished from a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    process: i32,
    start_ticks: u64,
}

impl Owner {
    /// This process; `None` if `/proc` does not report it.
    pub fn current() -> Option<Self> {
        Owner::of(i32::try_from(std::process::id()).ok()?)
    }

    pub(crate) fn of(process: i32) -> Option<Self> {
        let start_ticks = start_ticks(u32::try_from(process).ok()?)?;
        Some(Owner { process, start_ticks })
    }

    /// Reads the output of [`Display`](fmt::Display).
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (process, start_ticks) = text.trim().split_once(' ')?;
        Some(Owner { process: process.parse().ok()?, start_ticks: start_ticks.parse().ok()? })
    }

    /// Whether the process runs. A zombie does not.
    pub(crate) fn lives(self) -> bool {
        Owner::of(self.process) == Some(self)
    }

    /// Process number.
    pub fn process(self) -> i32 {
        self.process
    }

    /// Asks the process to end. Does nothing if it has ended, even if another process has its
    /// number.
    pub fn terminate(self) -> Result<(), Error> {
        if !self.lives() {
            return Ok(());
        }
        match kill(Pid::from_raw(self.process), Signal::SIGTERM) {
            Ok(()) | Err(nix::errno::Errno::ESRCH) => Ok(()),
            Err(error) => Err(Error::from_cause(Kind::Environment, error)
                .context(format!("cannot end process {}", self.process))),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.process, self.start_ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn process_with_the_number_of_a_dead_one_is_left_alone() {
        let mut command = Command::new("sleep");
        let mut child = command.arg("600").stdout(Stdio::null()).spawn().expect("it is installed");
        let process = i32::try_from(child.id()).expect("it is small");
        let real = Owner::of(process).expect("it runs");
        let before = Owner { start_ticks: real.start_ticks - 1, ..real };
        before.terminate().expect("there is nothing to do");
        assert_eq!(Owner::of(process), Some(real));
        assert!(child.try_wait().expect("it is ours").is_none());
        real.terminate().expect("it is ours");
        let status = child.wait().expect("it is ours");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
    }

    #[test]
    fn zombie_process_has_ended() {
        let mut child = Command::new("sleep").arg("600").spawn().expect("installed");
        let owner = Owner::of(i32::try_from(child.id()).expect("small")).expect("it runs");
        assert!(owner.lives());
        child.kill().expect("it is ours");
        while owner.lives() {
            std::thread::yield_now();
        }
        child.wait().expect("it is ours");
    }
}
