//! Ends a program that was started for a trace.

use crate::error::{Error, Kind, OrFault};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Time to end after the request.
const END_LIMIT: Duration = Duration::from_secs(30);
/// Interval between checks while it ends.
const LOOK: Duration = Duration::from_millis(20);

/// A running program. Dropping this ends it.
#[derive(Debug)]
pub struct Program(pub Child);

impl Program {
    /// Its status, once it has ended.
    pub fn status(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.0.try_wait().or_fault(Kind::Environment, || "cannot wait for the program")
    }

    /// Asks the program to end, as Ctrl-C does, and kills it after a limit; calls `meanwhile` while
    /// waiting.
    pub fn end(&mut self, mut meanwhile: impl FnMut()) -> Result<ExitStatus, Error> {
        let asked = Instant::now();
        let _ = kill(self.number(), Signal::SIGINT);
        while asked.elapsed() < END_LIMIT {
            if let Some(status) = self.status()? {
                return Ok(status);
            }
            meanwhile();
            std::thread::sleep(LOOK);
        }
        let _ = self.0.kill();
        self.0.wait().or_fault(Kind::Environment, || "cannot wait for the program")
    }

    fn number(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.0.id()).expect("process numbers are positive `i32`"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // After an error it may still run without a waiting parent.
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.end(|| ());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn program_is_asked_to_end_and_its_status_is_reported() {
        let child = Command::new("sleep").arg("600").spawn();
        let mut program = Program(child.expect("there is a `sleep`"));
        assert_eq!(program.status().expect("it is ours"), None);
        assert!(!program.end(|| ()).expect("it ends").success());
    }

    #[test]
    fn program_does_not_outlive_its_guard() {
        let child = Command::new("sleep").arg("600").spawn();
        let program = Program(child.expect("there is a `sleep`"));
        let number = program.number();
        drop(program);
        assert!(kill(number, None).is_err());
    }
}
