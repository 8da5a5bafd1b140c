//! Runs external programs such as Ansible, `kubectl` and `ssh`. Each has a deadline, and a signal ends it.

use dyno_engine::Cancel;
use dyno_engine::{Error, Kind, OrFault};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Interval of the checks whether the program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Time to clean up after a signal.
const END_WITHIN: Duration = Duration::from_secs(5);
/// Longest time until the outputs of a program that has ended are closed.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);
/// Largest number of bytes to read from each output.
const MOST_BYTES: u64 = 64 << 20;

/// How to run a program.
#[derive(Debug)]
pub struct Call<'a> {
    /// Name in messages.
    pub name: &'a str,
    /// Deadline.
    pub within: Duration,
    /// Standard input.
    pub input: &'a [u8],
    /// Standard output; returned if it is piped.
    pub to: Stdio,
    /// Signal that may end the program; `None` during cleanup.
    pub cancel: Option<&'a Cancel>,
    /// How to install the program if it is missing.
    pub hint: &'a str,
}

/// Runs a program to its end.
///
/// # Errors
/// It cannot be started, does not end in time, or is interrupted.
pub fn output(mut command: Command, call: Call<'_>) -> Result<Output, Error> {
    command
        // Ctrl-C goes to this program, which then ends the other one and cleans up.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(call.to)
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .or_fault(Kind::Environment, || format!("cannot start `{}`", call.name))
        .with_hint(call.hint)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends without reading reports its own error.
        let _ = stdin.write_all(call.input);
    }
    let (stdout, stderr) = (Reader::of(child.stdout.take()), Reader::of(child.stderr.take()));
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
    // Its children may hold the outputs open.
    let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
    Ok(Output { status, stdout: stdout.bytes(), stderr: stderr.bytes() })
}

/// Bytes read from a stream so far.
struct Reader {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Reader {
    fn of(stream: Option<impl Read + Send + 'static>) -> Reader {
        let bytes = Arc::<Mutex<Vec<u8>>>::default();
        let kept = Arc::clone(&bytes);
        let thread = thread::spawn(move || {
            let mut piece = [0; 1 << 14];
            let Some(mut stream) = stream.map(|stream| stream.take(MOST_BYTES)) else { return };
            loop {
                let length = match stream.read(&mut piece) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    // Keep what was read before an error.
                    Ok(0) | Err(_) => return,
                    Ok(length) => length,
                };
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&piece[..length]);
            }
        });
        Reader { bytes, thread }
    }

    /// Does not wait for a process that has left its group and holds the stream open.
    fn bytes(self) -> Vec<u8> {
        let until = Instant::now() + CLOSED_WITHIN;
        while !self.thread.is_finished() && Instant::now() < until {
            thread::sleep(LOOK_EVERY);
        }
        std::mem::take(&mut self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Ends a program with its process group.
pub(crate) fn end(child: &mut Child) {
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
        let input = input.as_bytes();
        let (to, cancel) = (Stdio::piped(), None);
        output(command, Call { name: "sh", within, input, to, cancel, hint: "" })
    }

    #[test]
    fn program_gets_its_input_and_its_output_is_read() {
        let found = shell("cat; echo no >&2; exit 3", END_WITHIN, "text").expect("it ends");
        assert_eq!(found.stdout, b"text");
        assert_eq!(found.stderr, b"no\n");
        assert_eq!(found.status.code(), Some(3));
    }

    #[test]
    fn output_is_read_although_a_child_keeps_it_open() {
        for keeps in ["sleep 60 &", "setsid sleep 20 &"] {
            let began = Instant::now();
            let found = shell(&format!("{keeps} echo text"), END_WITHIN, "").expect("it ends");
            assert_eq!(found.stdout, b"text\n", "{keeps}");
            assert!(began.elapsed() < Duration::from_secs(15), "{keeps}");
        }
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
