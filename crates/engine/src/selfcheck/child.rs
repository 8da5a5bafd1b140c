//! The responder as a child process of this program, so that its work does not count as the
//! client's. It ends when its standard input is closed, which the kernel does however this program
//! ends.

use crate::error::{Error, Kind, OrFault};
use dyno_plan::uri::{self, Target};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Start of the line with its address.
const LISTENING: &str = "listening on ";

/// A running responder.
#[derive(Debug)]
pub(super) struct ResponderProcess {
    child: Child,
    /// Closing it ends the responder.
    input: Option<ChildStdin>,
    /// Where it listens.
    pub(super) target: Target,
}

impl ResponderProcess {
    /// Starts a responder that answers everything at once.
    pub(super) fn start(executable: &Path) -> Result<Self, Error> {
        let mut child = Command::new(executable)
            .arg("responder")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A Ctrl-C on the terminal must reach only this program, which ends the responder in
            // order.
            .process_group(0)
            .spawn()
            .or_fault(Kind::Environment, || format!("cannot run `{}`", executable.display()))?;
        let input = child.stdin.take();
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut line);
        }
        let address = line
            .trim_end()
            .strip_prefix(LISTENING)
            .map(|address| format!("mongodb://{address}/?directConnection=true"));
        let parsed = address.and_then(|address| uri::parse(&address).ok());
        let mut process = match parsed {
            Some((target, _)) => ResponderProcess { child, input, target },
            None => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::new(
                    Kind::Internal,
                    format!("cannot read the address of the responder from `{}`", line.trim_end()),
                ));
            }
        };
        match process.child.try_wait() {
            Ok(None) => Ok(process),
            _ => Err(Error::new(Kind::Internal, "the responder ended at once")),
        }
    }
}

impl Drop for ResponderProcess {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
