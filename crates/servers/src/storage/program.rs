//! Runs system programs that create file systems and measure them.

use super::StorageError;
use crate::set_death_signal;
use nix::sys::signal::Signal;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Interval of checking a running program.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Whether the caller gives up.
pub(super) type Interrupted<'a> = &'a dyn Fn() -> bool;

/// Search path for programs. System programs are often not on a user's path.
fn path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin");
    path
}

/// Whether a program exists.
pub(super) fn is_there(program: &str) -> bool {
    std::env::split_paths(&path()).any(|folder| folder.join(program).is_file())
}

/// Runs a program to its end, and returns its output. It dies with this process, and ends when the
/// caller gives up; signals of the terminal do not reach it.
pub(super) fn run(
    program: &str,
    arguments: &[&str],
    interrupted: Interrupted<'_>,
) -> Result<String, StorageError> {
    run_in(Path::new("/"), program, arguments, interrupted)
}

/// Like [`run`] in a working directory, so that the program gets a plain file name instead of a
/// path that its options would split.
pub(super) fn run_in(
    folder: &Path,
    program: &str,
    arguments: &[&str],
    interrupted: Interrupted<'_>,
) -> Result<String, StorageError> {
    let failed = |source| StorageError::step(format!("run `{program}`"))(source);
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .env("PATH", path())
        .env("LC_ALL", "C")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = set_death_signal(&mut command, Signal::SIGKILL).spawn().map_err(failed)?;
    // None of these programs prints more than a pipe holds.
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if interrupted() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(StorageError::Interrupted);
        }
        sleep(LOOK_INTERVAL);
    };
    let mut printed = [String::new(), String::new()];
    let pipes: [Option<Box<dyn Read>>; 2] = [
        child.stdout.take().map(|pipe| Box::new(pipe) as _),
        child.stderr.take().map(|pipe| Box::new(pipe) as _),
    ];
    for (text, pipe) in printed.iter_mut().zip(pipes) {
        if let Some(mut pipe) = pipe {
            pipe.read_to_string(text).map_err(failed)?;
        }
    }
    let [output, errors] = printed;
    if status.success() {
        return Ok(output.trim().to_owned());
    }
    let reason = match errors.trim() {
        "" => status.to_string(),
        text => text.replace('\n', "; "),
    };
    Err(failed(io::Error::other(reason)))
}
