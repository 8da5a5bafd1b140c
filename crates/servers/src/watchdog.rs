//! A shell that waits for our death and then cleans up: after `SIGKILL` nothing else of ours can
//! remove a temporary folder, or end a server that ignores its death signal.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

const SCRIPT: &str = include_str!("watchdog.sh");
const STORAGE_SCRIPT: &str = include_str!("storage/watchdog.sh");

/// The waiting shell, which cleans up after our death. The end of its standard input signals that.
#[derive(Debug)]
pub struct Watchdog {
    shell: Child,
    input: Option<ChildStdin>,
}

impl Watchdog {
    /// Starts a shell that removes storage after our death; [`send_path`](Watchdog::send_path)
    /// names its parts.
    pub(crate) fn of_storage() -> io::Result<Watchdog> {
        Watchdog::of_script(STORAGE_SCRIPT, &[])
    }

    /// Starts the shell. `temporary` is an absolute path that is removed after our death, when the
    /// server has ended, and then `empty_parent` unless it has other content; the server has
    /// `limit` to end by itself.
    pub(crate) fn start(
        temporary: Option<&Path>,
        empty_parent: Option<&Path>,
        limit: Duration,
    ) -> io::Result<Watchdog> {
        let nothing = Path::new("").as_os_str();
        let path = |path: Option<&Path>| path.map_or(nothing, Path::as_os_str).to_owned();
        let limit = limit.as_secs().max(1).to_string();
        let arguments = [path(temporary), limit.into(), path(empty_parent)];
        Watchdog::of_script(SCRIPT, &arguments)
    }

    /// Starts the shell for an absolute path that is removed after our death, even by `SIGKILL`.
    /// Drop it after the folder has been removed.
    ///
    /// # Errors
    /// No shell can be started.
    pub fn of_folder(folder: &Path) -> io::Result<Watchdog> {
        Watchdog::start(Some(folder), None, Duration::ZERO)
    }

    /// Starts the shell for a process group, which is asked to end with `SIGINT` after our death,
    /// even by `SIGKILL`; a death signal does this only for the first process. The rest of the group
    /// is killed when its first process has ended, or after `limit` (whole seconds, at least one).
    /// Drop it after the group has ended.
    ///
    /// # Errors
    /// No shell can be started.
    pub fn of_group(limit: Duration) -> io::Result<Watchdog> {
        Watchdog::start(None, None, limit)
    }

    /// Names the group by its first process.
    ///
    /// # Errors
    /// The watchdog has ended.
    pub fn watch_group(&self, leader: u32) -> io::Result<()> {
        self.send(&format!("group {leader}\n"))
    }

    fn of_script(script: &str, arguments: &[OsString]) -> io::Result<Watchdog> {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", script, "dyno-watchdog"])
            .args(arguments)
            // Terminal signals must not reach the shell, and it must not keep a file system busy.
            .process_group(0)
            .current_dir("/")
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let input = shell.stdin.take();
        Ok(Watchdog { shell, input })
    }

    /// Sends the process that must have ended before the folder is removed.
    pub(crate) fn watch(&mut self, server: u32) -> io::Result<()> {
        self.send(&format!("server {server}\n"))
    }

    /// Sends a path with its keyword. The path may contain any byte, even a line break.
    pub(crate) fn send_path(&self, word: &'static str, path: &Path) -> io::Result<()> {
        self.send(&format!("{word} {}\n", encoded(path.as_os_str())))
    }

    fn send(&self, line: &str) -> io::Result<()> {
        let Some(mut input) = self.input.as_ref() else {
            return Ok(());
        };
        input.write_all(line.as_bytes())
    }
}

/// Encodes a text as one word without blanks and line breaks, which `printf %b` decodes byte by
/// byte.
fn encoded(text: &OsStr) -> String {
    let mut word = String::new();
    for byte in text.as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => word.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => word.push(char::from(*byte)),
            byte => word.push_str(&format!("\\0{byte:03o}")),
        }
    }
    word
}

impl Drop for Watchdog {
    /// Ends the shell; its owner has cleaned up.
    fn drop(&mut self) {
        if self.send("done\n").is_err() {
            // Later it could remove a folder that has a new owner.
            let _ = self.shell.kill();
        }
        drop(self.input.take());
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use tempfile::TempDir;

    /// Simulates our death for the shell: its input ends without `done`.
    fn die(mut watchdog: Watchdog) {
        drop(watchdog.input.take());
        watchdog.shell.wait().unwrap();
    }

    fn filled(folder: &TempDir) -> std::path::PathBuf {
        let path = folder.path().join("it's a \"data\" $folder");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("WiredTiger.wt"), "x").unwrap();
        path
    }

    #[test]
    fn folder_is_removed_after_our_death() {
        let folder = TempDir::new().unwrap();
        let path = filled(&folder);
        die(Watchdog::start(Some(&path), None, Duration::from_secs(60)).unwrap());
        assert!(!path.exists());
        assert!(folder.path().exists());
    }

    #[test]
    fn parent_folder_is_removed_with_the_last_folder_in_it() {
        let folder = TempDir::new().unwrap();
        let above = folder.path().join("above");
        let inner: Vec<_> = ["a", "b"].map(|name| above.join(name)).into();
        let watchdogs: Vec<_> = inner
            .iter()
            .map(|path| {
                fs::create_dir_all(path).unwrap();
                Watchdog::start(Some(path), Some(&above), Duration::from_secs(60)).unwrap()
            })
            .collect();
        for (watchdog, left) in watchdogs.into_iter().zip([true, false]) {
            die(watchdog);
            assert_eq!(above.exists(), left);
        }
    }

    #[test]
    fn folder_stays_when_we_cleaned_up_ourselves() {
        let folder = TempDir::new().unwrap();
        let path = filled(&folder);
        drop(Watchdog::start(Some(&path), None, Duration::from_secs(60)).unwrap());
        assert!(path.exists());
    }

    #[test]
    fn hanging_server_is_killed_before_its_folder_is_removed() {
        let folder = TempDir::new().unwrap();
        let path = filled(&folder);
        let mut server = Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let mut watchdog = Watchdog::start(Some(&path), None, Duration::from_secs(1)).unwrap();
        watchdog.watch(server.id()).unwrap();
        die(watchdog);
        assert!(!path.exists());
        let status = server.wait().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn ended_server_is_not_waited_for() {
        let folder = TempDir::new().unwrap();
        let path = filled(&folder);
        let mut server = Command::new("/bin/true").spawn().unwrap();
        let process = server.id();
        server.wait().unwrap();
        let mut watchdog = Watchdog::start(Some(&path), None, Duration::from_secs(3600)).unwrap();
        watchdog.watch(process).unwrap();
        die(watchdog);
        assert!(!path.exists());
    }

    #[test]
    fn process_groups_that_ignore_an_interrupt_are_killed() {
        // A shell may have started these tests in the background, so that they ignore interrupts.
        let mut leader = Command::new("env")
            .args(["--default-signal=INT", "/bin/sh", "-c"])
            .arg("sleep 600 & echo $!; wait")
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = leader.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let watchdog = Watchdog::of_group(Duration::from_secs(60)).unwrap();
        watchdog.watch_group(leader.id()).unwrap();
        let waiting = std::thread::spawn(move || leader.wait().unwrap());
        die(watchdog);
        assert_eq!(waiting.join().unwrap().signal(), Some(libc::SIGINT));
        let stat = format!("/proc/{}/stat", line.trim());
        let is_alive = || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        let begin = std::time::Instant::now();
        while is_alive() {
            assert!(begin.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn storage_paths_with_any_byte_stay_one_message() {
        let folder = TempDir::new().unwrap();
        let devices = ["named", "other"].map(|name| folder.path().join(name));
        for device in &devices {
            let file = fs::File::create(device).unwrap();
            file.set_len(1 << 20).unwrap();
            let made = Command::new("/sbin/mkfs.ext4").args(["-q", "-F"]).arg(device).status();
            if !made.is_ok_and(|status| status.success()) {
                return;
            }
        }
        let [named, other] = devices;
        let kept = fs::read(&other).unwrap();
        let mounted = folder.path().join(format!("x\nwipe {}\ny", other.display()));
        let group = folder.path().join(OsStr::from_bytes(b"a  *\\n\t'\xff\n"));
        fs::create_dir(&group).unwrap();
        fs::create_dir_all(&mounted).unwrap();
        let watchdog = Watchdog::of_storage().unwrap();
        watchdog.send_path("mount", &mounted).unwrap();
        watchdog.send_path("wipe", &named).unwrap();
        watchdog.send_path("group", &group).unwrap();
        die(watchdog);
        assert!(fs::read(&other).unwrap() == kept, "it was wiped");
        assert!(fs::read(&named).unwrap() != kept, "it was not wiped");
        assert!(!group.exists() && !mounted.exists());
    }

    #[test]
    fn nothing_is_removed_without_a_folder() {
        die(Watchdog::start(None, None, Duration::from_secs(60)).unwrap());
        assert!(Path::new("/bin/sh").exists());
    }
}
