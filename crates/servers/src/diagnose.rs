//! Determines from the output and the exit status of a server why it did not start. Pure functions,
//! and one function that finds the holder of a lock.

use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use nix::fcntl::{FcntlArg, fcntl};

use crate::ServerProgram;

/// Reasons with an error of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Another process listens on the port.
    PortInUse,
    /// Another process has the data folder open.
    DataDirInUse,
    /// Anything else; the output is the best explanation.
    Other,
}

/// Why a server that printed `log` ended. Checks the data folder first: a server that cannot lock
/// it may mention `in use` for both reasons.
pub(crate) fn cause(log: &str) -> Cause {
    const FOLDER: [&str; 3] =
        ["already being managed by another process", "Unable to lock the lock file", "DBPathInUse"];
    if FOLDER.iter().any(|text| log.contains(text)) {
        Cause::DataDirInUse
    } else if log.contains("Address already in use") {
        Cause::PortInUse
    } else {
        Cause::Other
    }
}

/// The port that the server announces, once it listens.
pub(crate) fn announced_port(kind: ServerProgram, log: &str) -> Option<u16> {
    // An incomplete line may still be growing, and with it the number.
    let complete = &log[..log.rfind('\n')?];
    complete.lines().find_map(|line| match kind {
        ServerProgram::Embedded => {
            line.strip_prefix("secantusd-rs listening on ")?.rsplit_once(':')?.1.trim().parse().ok()
        }
        ServerProgram::Mongod | ServerProgram::Mongos => {
            // The identifier of the message is the same in all versions since 4.4.
            let attributes =
                line.contains("\"id\":23016,").then(|| line.split_once("\"port\":"))??.1;
            let digits = attributes.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse().ok()
        }
    })
}

/// Process that holds the lock of the storage engine in `data_dir`.
pub(crate) fn lock_holder(data_dir: &Path) -> Option<u32> {
    let file = File::open(data_dir.join("WiredTiger.lock")).ok()?;
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    fcntl(&file, FcntlArg::F_GETLK(&mut lock)).ok()?;
    let held = lock.l_type != libc::F_UNLCK as libc::c_short;
    held.then_some(lock.l_pid).and_then(|pid| u32::try_from(pid).ok()).filter(|&pid| pid > 0)
}

/// Advice for a program that the operating system refused to run.
pub(crate) fn spawn_hint(error: &io::Error) -> Option<String> {
    let hint = match error.raw_os_error()? {
        libc::ENOEXEC => "the program is not built for this machine; check its architecture",
        libc::EACCES => "check its permissions, and whether its file system is mounted `noexec`",
        libc::ENOENT => "the program or the interpreter it names does not exist",
        libc::ENOMEM | libc::EAGAIN => "the machine or its limits allow no more processes",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Advice for a server that ended by itself.
pub(crate) fn exit_hint(status: ExitStatus, log_tail: &[String]) -> Option<String> {
    let mentions = |text: &str| log_tail.iter().any(|line| line.contains(text));
    let hint = if status.signal() == Some(libc::SIGILL) {
        "the CPU lacks an instruction; `mongod` 5.0 and later need AVX"
    } else if status.signal() == Some(libc::SIGKILL) {
        "the server was killed, possibly for lack of memory; try a smaller `--cache`"
    } else if mentions("No space left on device") {
        "the disk is full; free some space, or choose another `--data-dir`"
    } else if mentions("error while loading shared libraries") {
        "install the missing library, or use a build for this distribution"
    } else if mentions("Permission denied") || mentions("Operation not permitted") {
        "check who owns the data folder"
    } else {
        return None;
    };
    Some(hint.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_is_read_from_the_line_that_reports_readiness() {
        let embedded = "[INFO  secantusd_rs] loaded config from x:1\n\
                        secantusd-rs listening on 127.0.0.1:41989\n";
        assert_eq!(announced_port(ServerProgram::Embedded, embedded), Some(41989));
        let mongod = concat!(
            r#"{"t":{"$date":"x"},"s":"I","c":"CONTROL","id":4615611,"msg":"MongoDB starting","attr":{"pid":1,"port":5}}"#,
            "\n",
            r#"{"t":{"$date":"x"},"s":"I",  "c":"NETWORK",  "id":23016,   "ctx":"listener","msg":"Waiting for connections","attr":{"port":37001,"ssl":"off"}}"#,
            "\n"
        );
        assert_eq!(announced_port(ServerProgram::Mongod, mongod), Some(37001));
    }

    #[test]
    fn incomplete_line_gives_no_port() {
        let half = "secantusd-rs listening on 127.0.0.1:41";
        assert_eq!(announced_port(ServerProgram::Embedded, half), None);
        assert_eq!(announced_port(ServerProgram::Embedded, ""), None);
        let starting = "{\"id\":4615611,\"attr\":{\"port\":5}}\n";
        assert_eq!(announced_port(ServerProgram::Mongod, starting), None);
    }

    #[test]
    fn causes_are_distinguished_for_both_servers() {
        for (log, expected) in [
            ("failed to bind 127.0.0.1:1: Address already in use (os error 98)", Cause::PortInUse),
            (r#""error":"SocketException: Address already in use""#, Cause::PortInUse),
            (
                "WiredTiger database is already being managed by another process: Device or resource busy",
                Cause::DataDirInUse,
            ),
            (
                r#""DBPathInUse: Unable to lock the lock file: /d/mongod.lock. Another mongod instance is already running""#,
                Cause::DataDirInUse,
            ),
            ("Invalid value for key 'cache_size'", Cause::Other),
        ] {
            assert_eq!(cause(log), expected, "{log}");
        }
    }

    #[test]
    fn hints_follow_the_signal_and_the_output() {
        let hint = |status, line: &str| {
            exit_hint(ExitStatus::from_raw(status), &[line.to_owned()]).unwrap_or_default()
        };
        assert!(hint(libc::SIGILL, "").contains("AVX"));
        assert!(hint(libc::SIGKILL, "").contains("memory"));
        assert!(hint(1 << 8, "write: No space left on device").contains("--data-dir"));
        assert!(
            hint(127 << 8, "error while loading shared libraries: libcrypto.so.1.1")
                .contains("library")
        );
        assert_eq!(hint(1 << 8, "something else"), "");
        let architecture = spawn_hint(&io::Error::from_raw_os_error(libc::ENOEXEC));
        assert!(architecture.unwrap().contains("architecture"));
    }
}
