//! Ends a child process together with the thread that started it, using the kernel's death signal.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};

/// Makes the kernel send `signal` to the child of `command` when the *thread* that spawns it ends,
/// for any reason. The child's own children get no signal.
///
/// Spawning fails with `ESRCH` if this process has ended before the child could request the signal.
pub fn set_death_signal(command: &mut Command, signal: Signal) -> &mut Command {
    let parent = Pid::this();
    // SAFETY: between fork and exec the closure makes two system calls and builds errors from
    // numbers; it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || {
            prctl::set_pdeathsig(signal)?;
            // The parent may have ended before the call: then the signal would never come.
            if getppid() != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;

    #[test]
    fn child_gets_the_signal_when_its_spawning_thread_ends() {
        let spawned = std::thread::spawn(|| {
            let mut command = Command::new("/bin/sleep");
            command.arg("60").stdin(Stdio::null());
            set_death_signal(&mut command, Signal::SIGINT).spawn()
        });
        let mut child = spawned.join().unwrap().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::SIGINT as i32));
    }
}
