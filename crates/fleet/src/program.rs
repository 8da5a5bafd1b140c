//! Runs external programs such as Ansible and `kubectl`. Each has a deadline, and a signal ends it.

use dyno_engine::Cancel;
use dyno_engine::{Error, Kind, OrFault};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Interval of the checks whether the program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Time to clean up after a signal.
const END_WITHIN: Duration = Duration::from_secs(5);

/// How to run a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    /// Name in messages.
    pub(super) name: &'a str,
    /// Deadline.
    pub(super) within: Duration,
    /// Standard input.
    pub(super) input: &'a str,
    /// Signal that may end the program; `None` during cleanup.
    pub(super) cancel: Option<&'a Cancel>,
    /// How to install the program if it is missing.
    pub(super) hint: &'a str,
}

/// Runs a program to its end.
pub(super) fn output(mut command: Command, call: Call<'_>) -> Result<Output, Error> {
    command
        // Ctrl-C goes to this program, which then ends the other one and cleans up.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .or_fault(Kind::Environment, || format!("cannot start `{}`", call.name))
        .with_hint(call.hint)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends without reading reports its own error.
        let _ = stdin.write_all(call.input.as_bytes());
    }
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    let until = Instant::now() + call.within;
    let status = loop {
        let ended = child.try_wait();
        let ended = ended.map_err(|error| Error::from_cause(Kind::Environment, error))?;
        if let Some(status) = ended {
            break status;
        }
        if call.cancel.is_some_and(Cancel::requested) {
            end(&mut child);
            return Err(Error::new(Kind::Interrupted, "interrupted"));
        }
        if Instant::now() >= until {
            end(&mut child);
            let text = format!("`{}` did not end within {} s", call.name, call.within.as_secs());
            return Err(Error::new(Kind::Environment, text));
        }
        thread::sleep(LOOK_EVERY);
    };
    // Background processes may keep the outputs open.
    let rest = |bytes: Receiver<Vec<u8>>| bytes.recv_timeout(END_WITHIN).unwrap_or_default();
    Ok(Output { status, stdout: rest(stdout), stderr: rest(stderr) })
}

fn read(stream: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, bytes) = channel();
    thread::spawn(move || {
        let mut all = Vec::new();
        if let Some(mut stream) = stream {
            // Keep what was read before an error.
            let _ = stream.read_to_end(&mut all);
        }
        let _ = sender.send(all);
    });
    bytes
}

/// Ends a program with its process group.
pub(super) fn end(child: &mut Child) {
    let group = Pid::from_raw(child.id() as i32);
    let _ = killpg(group, Signal::SIGINT);
    let until = Instant::now() + END_WITHIN;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
        thread::sleep(LOOK_EVERY);
    }
    let _ = killpg(group, Signal::SIGKILL);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, within: Duration, input: &str) -> Result<Output, Error> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let call = Call { name: "sh", within, input, cancel: None, hint: "" };
        output(command, call)
    }

    #[test]
    fn program_gets_its_input_and_its_output_is_read() {
        let found = shell("cat; echo no >&2; exit 3", END_WITHIN, "text").expect("it ends");
        assert_eq!(found.stdout, b"text");
        assert_eq!(found.stderr, b"no\n");
        assert_eq!(found.status.code(), Some(3));
    }

    #[test]
    fn program_that_does_not_end_is_killed_with_its_children() {
        let began = Instant::now();
        let ended = shell("sleep 120 & wait", Duration::from_millis(100), "");
        let error = ended.expect_err("it exceeds the limit");
        assert_eq!(error.kind, Kind::Environment);
        assert!(error.to_string().contains("`sh`"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}
