//! The supervisor process of a long-lived deployment: started by `dyno server start`, ended by
//! `dyno server stop`. Its servers end with it, like the servers of a run.

use crate::exit::Exit;
use crate::invocation::Invocation;
use dyno_engine::deployment;
use dyno_engine::deployment::placement::HostPlacement;
use dyno_engine::deployment::server::ServerPaths;
use dyno_engine::deployment::storage::StorageUnderTest;
use dyno_engine::detached::state::State;
use dyno_engine::detached::{FAILURE, PROBLEM, lock, unusable};
use dyno_engine::files::write_file;
use dyno_engine::{Cancel, Error, Kind, OrFault};
use dyno_plan::Plan;
use dyno_servers::{Deployment, Stopped as MemberStopped};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, dup2_stderr, dup2_stdout, setsid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

const PLAN: &str = "plan.toml";
const LOG: &str = "supervisor.log";

/// Line that the supervisor prints when its servers are ready.
const READY: &str = "ready";

/// Interval between checks for Ctrl-C while the servers start.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Interval between checks that the supervisor's folder still exists.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Starts a supervisor in the folder, which must be locked by `lock`, and waits until its servers are
/// ready. The supervisor prints its own errors; its exit code is returned.
pub(crate) fn spawn(
    folder: &Path,
    lock: File,
    plan: &Plan,
    embedded: Option<&Path>,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let path = folder.join(PLAN);
    std::fs::write(&path, dyno_plan::file::to_toml(plan))
        .map_err(|error| unusable(&path, error))?;
    let executable = invocation.environment().executable.as_deref();
    let executable =
        executable.ok_or_else(|| Error::new(Kind::Internal, "the path of `dyno` is unknown"))?;
    let mut command = Command::new(executable);
    if invocation.messages.quiet() {
        command.arg("--quiet");
    }
    command.args(["server", "supervise"]).arg(folder);
    if let Some(embedded) = embedded {
        command.arg("--embedded-server").arg(embedded);
    }
    // The supervisor inherits the lock with the open file.
    let mut child = command
        .stdin(Stdio::from(lock))
        .stdout(Stdio::piped())
        .spawn()
        .or_fault(Kind::Environment, || "cannot start the supervisor")?;
    if wait_until_ready(&mut child, invocation.cancel)? {
        return Ok(Exit::Done);
    }
    let status = child.wait().or_fault(Kind::Environment, || "cannot wait for the supervisor")?;
    Ok(Exit::from_code(status.code()))
}

/// Waits until the supervisor is ready or ends, and passes an interrupt on to it.
fn wait_until_ready(child: &mut Child, interrupt: &Cancel) -> Result<bool, Error> {
    let output = child.stdout.take().expect("standard output is piped");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(output).read_line(&mut line);
        // Fails only if the receiver is gone.
        let _ = sender.send(line.trim_end() == READY);
    });
    let mut passed_on = false;
    loop {
        match receiver.recv_timeout(LOOK_INTERVAL) {
            Ok(ready) => return Ok(ready),
            Err(RecvTimeoutError::Disconnected) => return Ok(false),
            Err(RecvTimeoutError::Timeout) if interrupt.requested() && !passed_on => {
                passed_on = true;
                if let Ok(process) = i32::try_from(child.id()) {
                    // The process may have ended.
                    let _ = kill(Pid::from_raw(process), Signal::SIGTERM);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Starts the servers of the plan in `folder` and keeps them until a signal arrives.
pub(crate) fn supervise(
    folder: &Path,
    embedded: Option<&Path>,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    // The command that started this process receives the terminal's signals and passes them on.
    let _ = setsid();
    lock::own(folder)?;
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .or_fault(Kind::Environment, || "cannot handle signals")?;
    let orphaned = notice_end_of_parent()?;
    let interrupted = || invocation.cancel.requested() || orphaned.load(Ordering::Relaxed);
    let path = folder.join(PLAN);
    let text = std::fs::read_to_string(&path).map_err(|error| unusable(&path, error))?;
    let plan = dyno_plan::file::parse(&text, &path.to_string_lossy())
        .map_err(|error| Error::from_cause(Kind::Internal, error))?;
    let paths = ServerPaths { environment: invocation.environment(), embedded, folder };
    let placement = HostPlacement::from_plan(&plan)?;
    let storage = StorageUnderTest::prepare(&plan.server, &paths, &|_| (), &interrupted);
    let started = storage.and_then(|mut storage| {
        let (deployment, settings) =
            deployment::start(&plan, &paths, placement.as_ref(), None, &interrupted)?;
        if let Some(storage) = &mut storage {
            storage.limit(&deployment::data_processes(deployment.members()))?;
        }
        Ok((storage, deployment, settings))
    });
    if started.is_err() && orphaned.load(Ordering::Relaxed) {
        remove(folder);
    }
    let (storage, mut deployment, settings) = started?;
    let state = State::of(&plan, &deployment, &settings, placement.as_ref());
    state.write(folder, &plan, &deployment)?;
    if !announce(folder)? {
        let stopped = stop(deployment, storage);
        remove(folder);
        return stopped.map(|_| Exit::Interrupted);
    }
    if !invocation.cancel.requested() {
        watch(folder, signals, &mut deployment);
    }
    match stop(deployment, storage) {
        Ok(stopped) => {
            let problems: String = stopped.iter().filter_map(ended_badly).collect();
            if !problems.is_empty() {
                write_problem(folder, PROBLEM, &problems);
            }
            Ok(Exit::Done)
        }
        Err(failure) => {
            write_problem(folder, FAILURE, &failure.reason());
            Err(failure)
        }
    }
}

/// Stops the servers and removes their prepared storage.
fn stop(
    deployment: Deployment,
    storage: Option<StorageUnderTest>,
) -> Result<Vec<(String, MemberStopped)>, Error> {
    let stopped = deployment.stop().map_err(Error::from);
    let removed = storage.map_or(Ok(()), StorageUnderTest::remove);
    stopped.and_then(|stopped| removed.map(|()| stopped))
}

/// Removes the folder of servers that were never announced. The lock is still held.
fn remove(folder: &Path) {
    if let Err(error) = std::fs::remove_dir_all(folder) {
        tracing::warn!(%error, folder = %folder.display(), "cannot remove the folder");
    }
}

/// Waits for a signal, or until the folder is gone, because `dyno server stop` then cannot find the servers.
/// Records the first server that ends by itself.
fn watch(folder: &Path, mut signals: Signals, deployment: &mut Deployment) {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            // Fails only if the receiver is gone.
            let _ = sender.send(());
        }
    });
    let mut is_noted = false;
    // Standard input is the lock.
    while receiver.recv_timeout(WATCH_INTERVAL) == Err(RecvTimeoutError::Timeout)
        && lock::is_file_of(std::io::stdin(), folder)
    {
        if !is_noted && let Ok(Some(ended)) = deployment.ended() {
            is_noted = true;
            let sentence = ended_by_itself(&ended.name, ended.status);
            write_problem(folder, PROBLEM, &sentence);
        }
    }
}

fn ended_by_itself(name: &str, status: ExitStatus) -> String {
    format!("server `{name}` ended by itself ({status})\n")
}

/// Describes a server that ended early or had to be killed.
fn ended_badly((name, stopped): &(String, MemberStopped)) -> Option<String> {
    if stopped.ended_early {
        return Some(ended_by_itself(name, stopped.status));
    }
    stopped.killed.then(|| format!("server `{name}` did not stop in time and was killed\n"))
}

/// Writes a problem to a file in the folder. A failure is only logged, so that the servers still stop.
fn write_problem(folder: &Path, name: &str, text: &str) {
    if let Err(error) = write_file(&folder.join(name), text) {
        tracing::warn!(error = %error, "cannot write the problem: {text}");
    }
}

/// Returns a flag that is set when the waiting command ends, because servers that are not yet ready
/// are then useless. A command that ended earlier has closed the pipe.
fn notice_end_of_parent() -> Result<Arc<AtomicBool>, Error> {
    let orphaned = Arc::new(AtomicBool::new(false));
    // The kernel sends the signal for each thread of the parent, which must not count as a second Ctrl-C.
    signal_hook::flag::register(SIGUSR1, Arc::clone(&orphaned))
        .and_then(|_| set_pdeathsig(Signal::SIGUSR1).map_err(Into::into))
        .or_fault(Kind::Environment, || "cannot handle signals")?;
    Ok(orphaned)
}

/// Reports that the servers are ready, and redirects output from the terminal to the log. `false` if
/// the waiting command is gone.
fn announce(folder: &Path) -> Result<bool, Error> {
    // A failure is harmless from here on.
    let _ = set_pdeathsig(None);
    let mut output = std::io::stdout().lock();
    let said = writeln!(output, "{READY}").and_then(|()| output.flush());
    let path = folder.join(LOG);
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(|error| unusable(&path, error))?;
    dup2_stdout(&log).and_then(|()| dup2_stderr(&log)).map_err(|error| unusable(&path, error))?;
    Ok(said.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn problem_names_server_that_ended_early_or_was_killed() {
        let named = |ended_early, killed| {
            let stopped = MemberStopped { status: ExitStatus::from_raw(9), ended_early, killed };
            ended_badly(&("pair-1".into(), stopped))
        };
        assert_eq!(named(false, false), None);
        let early = named(true, false).expect("an early end is a problem");
        assert!(early.contains("`pair-1`") && early.contains("signal: 9"), "{early}");
        let killed = named(false, true).expect("a kill is a problem");
        assert!(killed.contains("`pair-1`"), "{killed}");
        assert_ne!(early, killed);
    }
}
