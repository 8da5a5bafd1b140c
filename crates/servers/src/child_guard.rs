//! A child process that cannot outlive this process: its start, signals and end.
//!
//! The kernel sends the death signal when the *thread* that started the child ends, not the
//! process. So each child gets its own thread, which starts it and then waits.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::death_signal::set_death_signal;
use crate::placement::PreparedPlacement;

/// Interval of checking a process: short compared to a start (100 ms), and no noticeable load.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A running child process and the thread that started it.
#[derive(Debug)]
pub(crate) struct ChildGuard {
    child: Child,
    /// Dropped to let the thread end. Must be dropped last, because the thread's end sends the
    /// death signal.
    release: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Why a child process could not be started.
#[derive(Debug)]
pub(crate) enum SpawnFailure {
    /// The kernel refused its CPUs or its memory policy; the program was not run.
    Placement(io::Error),
    /// The program could not be run.
    Program(io::Error),
}

/// Outcome of stopping a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    pub status: ExitStatus,
    /// Whether it had ended before it was asked to, and so was missing for a part of the run.
    pub ended_early: bool,
    /// Whether it did not end within the limit and was killed.
    pub killed: bool,
}

impl ChildGuard {
    /// Starts `command` in its own process group, so that Ctrl-C on the terminal reaches only us;
    /// the child gets `death_signal` when we end in any way.
    ///
    /// With a placement, the thread that starts the child applies it to itself and the child
    /// inherits it: all of its threads and memory are placed from the first instruction on. A
    /// placement refused by the kernel is distinguished from a program that does not run.
    pub(crate) fn spawn(
        mut command: Command,
        death_signal: Signal,
        placement: Option<PreparedPlacement>,
    ) -> Result<ChildGuard, SpawnFailure> {
        command.process_group(0);
        set_death_signal(&mut command, death_signal);
        let (started, start) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let thread = thread::Builder::new()
            .name("child-guard".to_owned())
            .spawn(move || {
                let child = spawn_placed(command, placement);
                if started.send(child).is_ok() {
                    // Nothing is ever sent: this returns when the other end is dropped.
                    let _ = released.recv();
                }
            })
            .map_err(SpawnFailure::Program)?;
        let child = start.recv().map_err(|_| {
            SpawnFailure::Program(io::Error::other("the thread that starts servers has panicked"))
        })??;
        Ok(ChildGuard { child, release: Some(release), thread: Some(thread) })
    }

    /// Process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Exit status when the process has ended.
    pub(crate) fn exit_status(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Asks the process to end, kills it after `limit`, and returns after it has ended. A second
    /// call returns the status again.
    pub(crate) fn stop(&mut self, limit: Duration) -> io::Result<Stopped> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(Stopped { status, ended_early: true, killed: false });
        }
        // The child is not reaped yet, so the number cannot belong to another process.
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM)?;
        let asked = Instant::now();
        while asked.elapsed() < limit {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Stopped { status, ended_early: false, killed: false });
            }
            thread::sleep(POLL_INTERVAL);
        }
        self.child.kill()?;
        Ok(Stopped { status: self.child.wait()?, ended_early: false, killed: true })
    }
}

fn spawn_placed(
    mut command: Command,
    placement: Option<PreparedPlacement>,
) -> Result<Child, SpawnFailure> {
    if let Some(placement) = placement {
        placement.apply_to_current_thread().map_err(SpawnFailure::Placement)?;
    }
    command.spawn().map_err(SpawnFailure::Program)
}

impl Drop for ChildGuard {
    /// Kills a process that was not stopped: an owner that returns early leaves nothing behind.
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            // Both calls fail only if the process is gone.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        drop(self.release.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{CpuSet, InstancePlacement, MemoryPolicy};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    fn spawn(command: Command, death_signal: Signal) -> Result<ChildGuard, SpawnFailure> {
        ChildGuard::spawn(command, death_signal, None)
    }

    fn is_alive(process: u32) -> bool {
        kill(Pid::from_raw(process.cast_signed()), None).is_ok()
    }

    #[test]
    fn child_outlives_the_thread_that_asked_for_it() {
        let mut guard = thread::spawn(|| spawn(shell("exec sleep 60"), Signal::SIGKILL))
            .join()
            .unwrap()
            .unwrap();
        assert_eq!(guard.exit_status().unwrap(), None);
        let ended = guard.stop(Duration::from_secs(60)).unwrap();
        assert_eq!(ended.status.signal(), Some(libc::SIGTERM));
        assert!(!ended.killed && !ended.ended_early);
    }

    #[test]
    fn child_gets_the_death_signal_when_its_thread_ends() {
        // The starting thread ends while the child lives, as happens to all threads when we are
        // killed.
        let mut guard = spawn(shell("exec sleep 60"), Signal::SIGTERM).unwrap();
        drop(guard.release.take());
        guard.thread.take().unwrap().join().unwrap();
        let status = guard.child.wait().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGTERM));
    }

    #[test]
    fn child_that_ignores_the_request_is_killed() {
        let folder = tempfile::TempDir::new().unwrap();
        let mark = folder.path().join("ready");
        let script = format!("trap '' TERM; : >'{}'; while :; do sleep 1; done", mark.display());
        let mut guard = spawn(shell(&script), Signal::SIGKILL).unwrap();
        while !mark.exists() {
            thread::sleep(POLL_INTERVAL);
        }
        let ended = guard.stop(Duration::from_millis(50)).unwrap();
        assert!(ended.killed);
        assert_eq!(ended.status.signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn child_that_exited_by_itself_is_recognized() {
        let mut guard = spawn(shell("exit 3"), Signal::SIGKILL).unwrap();
        while guard.exit_status().unwrap().is_none() {
            thread::sleep(POLL_INTERVAL);
        }
        let ended = guard.stop(Duration::ZERO).unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert!(ended.ended_early && !ended.killed);
    }

    #[test]
    fn dropped_guard_leaves_no_process() {
        let guard = spawn(shell("trap '' TERM; exec sleep 60"), Signal::SIGKILL).unwrap();
        let process = guard.id();
        assert!(is_alive(process));
        drop(guard);
        assert!(!is_alive(process));
    }

    #[test]
    fn child_has_its_own_process_group() {
        let guard = spawn(shell("exec sleep 60"), Signal::SIGKILL).unwrap();
        let child = Pid::from_raw(guard.id().cast_signed());
        assert_eq!(nix::unistd::getpgid(Some(child)).unwrap(), child);
    }

    #[test]
    fn missing_program_is_an_error_and_not_a_hang() {
        match spawn(Command::new("/nowhere/server"), Signal::SIGKILL) {
            Err(SpawnFailure::Program(error)) => assert_eq!(error.kind(), io::ErrorKind::NotFound),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn refused_placement_is_not_blamed_on_the_program() {
        let nowhere =
            InstancePlacement { cpus: Some(CpuSet::default()), memory: MemoryPolicy::Default };
        let placement = Some(PreparedPlacement::new(&nowhere));
        match ChildGuard::spawn(shell("exec sleep 60"), Signal::SIGKILL, placement) {
            Err(SpawnFailure::Placement(error)) => {
                assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
            }
            other => panic!("{other:?}"),
        }
    }
}
