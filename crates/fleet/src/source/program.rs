//! Programs of others, such as Ansible and `kubectl`: none is waited for without an end, and a signal ends it.

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

/// How often it is looked whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Time to clean up after a signal.
const END_WITHIN: Duration = Duration::from_secs(5);

/// How a program is called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    /// What it is called in messages.
    pub(super) name: &'a str,
    /// Longest time.
    pub(super) within: Duration,
    /// What it reads.
    pub(super) input: &'a str,
    /// Who may ask to end it; nobody where it cleans up.
    pub(super) cancel: Option<&'a Cancel>,
    /// Where it may be missing, and how to get it.
    pub(super) hint: &'a str,
}

/// Runs a program to its end.
pub(super) fn output(mut command: Command, call: Call<'_>) -> Result<Output, Error> {
    command
        // Ctrl-C is for this program, which then ends the other one and cleans up.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .or_fault(Kind::Environment, || {
            format!("cannot start `{}`", call.name)
        })
        .with_hint(call.hint)?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that ends without reading tells why by itself.
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
            let text = format!(
                "`{}` did not end within {} s",
                call.name,
                call.within.as_secs()
            );
            return Err(Error::new(Kind::Environment, text));
        }
        thread::sleep(LOOK_EVERY);
    };
    // What it left in the background may hold its outputs open.
    let rest = |bytes: Receiver<Vec<u8>>| bytes.recv_timeout(END_WITHIN).unwrap_or_default();
    Ok(Output {
        status,
        stdout: rest(stdout),
        stderr: rest(stderr),
    })
}

fn read(stream: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, bytes) = channel();
    thread::spawn(move || {
        let mut all = Vec::new();
        if let Some(mut stream) = stream {
            // What came until an error is all that there is.
            let _ = stream.read_to_end(&mut all);
        }
        let _ = sender.send(all);
    });
    bytes
}

/// Ends a program with all that it started: it is a group of its own.
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
        let call = Call {
            name: "sh",
            within,
            input,
            cancel: None,
            hint: "",
        };
        output(command, call)
    }

    #[test]
    fn a_program_gets_its_input_and_is_heard() {
        let found = shell("cat; echo no >&2; exit 3", END_WITHIN, "text").expect("it ends");
        assert_eq!(found.stdout, b"text");
        assert_eq!(found.stderr, b"no\n");
        assert_eq!(found.status.code(), Some(3));
    }

    #[test]
    fn program_that_does_not_end_is_killed_with_its_children() {
        let began = Instant::now();
        let ended = shell("sleep 120 & wait", Duration::from_millis(100), "");
        let error = ended.expect_err("it is too long");
        assert_eq!(error.kind, Kind::Environment);
        assert!(error.to_string().contains("`sh`"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}
