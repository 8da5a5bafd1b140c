//! Another host that runs producers or consumers. It is reached by this host's `ssh` with the user's configuration. Nothing is
//! installed there; the folder of drivers must exist.
//!
//! One session stays open throughout. It creates a folder for the stamps, reports the time for comparing clocks, and samples
//! processes. When it ends for any reason, it kills remaining processes and removes the folder, so that a host that loses its
//! controller is left clean.

use crate::driver::{self, Driver};
use crate::error::{TailError, with_hint};
use crate::resources::{Stats, Units, families};
use dyno_fleet::clock::{Offset, OffsetEstimator, RoundTrip, realtime_ns};
use dyno_fleet::program::{self, Call};
use dyno_observe::elsewhere;
use dyno_record::model::Environment;
use dyno_record::tail::{DriverVersion, HostClock, Sample};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Variable with a program to run instead of `ssh`, with the same arguments.
pub const SSH_VARIABLE: &str = "DYNO_SSH";
const SSH_HINT: &str = "install an SSH client";
/// A connection that is silent for three keep-alive intervals is closed.
const OPTIONS: [&str; 8] = [
    "-oBatchMode=yes",
    "-oConnectTimeout=15",
    "-oServerAliveInterval=5",
    "-oServerAliveCountMax=3",
    "-oControlPath=none",
    "-oForwardX11=no",
    "-oForwardAgent=no",
    "-T",
];
/// Longest time for an answer of the session, or for examining the machine.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Longest time for a separate command: a Java runtime that prints its version, or fetching many stamps.
const COMMAND_LIMIT: Duration = Duration::from_secs(120);
/// Round trips before the start, and after the end.
const ROUND_TRIPS: usize = 30;
/// Interval of messages that keep an idle session alive.
const KEEP_EVERY: Duration = Duration::from_secs(30);
/// Slowest accepted transfer of stamps, in bytes per second.
const SLOWEST: u64 = 100_000;

/// The session's script. `$EPOCHREALTIME` needs bash 5. A session without input for two minutes has lost its controller.
const SESSION: &str = r#"
export LC_ALL=C
umask 077
[ -n "$EPOCHREALTIME" ] || { echo "bash 5 is needed" >&2; exit 1; }
mkdir "$FOLDER" && cd "$FOLDER" || exit 1
clean() {
    for file in *.pid; do
        [ -f "$file" ] && read -r id < "$file" && kill -KILL -- "-$id" "$id" 2>/dev/null
    done
    cd / && rm -rf "$FOLDER"
}
trap clean EXIT
trap 'exit 1' HUP INT TERM
echo "ready $(getconf CLK_TCK) $(getconf PAGESIZE)"
while IFS= read -r -t 120 line; do
    case $line in
        time) echo "$EPOCHREALTIME" ;;
        look\ *) cat /proc/[0-9]*/stat 2>/dev/null; stat -c "size %s %n" ./*.stamps 2>/dev/null; echo "${line#look }" ;;
        pid\ *) cat "${line#pid }.pid" ;;
    esac
done
"#;

/// A host with its session; cleaned up on drop.
#[derive(Debug)]
pub struct Host {
    name: String,
    /// Folder of the drivers on the host.
    drivers: PathBuf,
    /// Folder of the stamps on the host, removed at the end.
    folder: String,
    session: Child,
    input: Option<Arc<Mutex<ChildStdin>>>,
    lines: Receiver<String>,
    units: Units,
    clock: OffsetEstimator,
    /// Offsets with their instants on this host, from before the start to after the end.
    offsets: Vec<(i64, Offset)>,
    /// Versions of the drivers on the host.
    versions: BTreeMap<String, DriverVersion>,
    /// Bytes of all stamps at the last sample.
    stamped: u64,
}

/// Converts instants of another host's clock to this host's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Correction {
    /// Offsets with their instants on this host, in order; at least one.
    offsets: Vec<(i64, Offset)>,
}

impl Correction {
    /// Converts an instant to this host's clock, interpolating between offsets. Equal instants stay equal.
    pub fn to_here_ns(&self, there_ns: i64) -> i64 {
        // Compare on the other host's clock, so that the position does not depend on the unknown offset.
        let next = self.offsets.partition_point(|(here_ns, offset)| {
            here_ns.saturating_add(offset.offset_ns) <= there_ns
        });
        let (before, after) = (next.saturating_sub(1), next.min(self.offsets.len() - 1));
        let ((from_ns, from), (to_ns, to)) = (self.offsets[before], self.offsets[after]);
        let here_ns = from.to_local_ns(there_ns);
        let whole = (to_ns - from_ns).max(1) as f64;
        let share = ((here_ns - from_ns) as f64 / whole).clamp(0.0, 1.0);
        let change = (to.offset_ns - from.offset_ns) as f64;
        here_ns - (share * change).round() as i64
    }

    /// Record of the correction.
    pub fn record(&self, host: &str, role: &str) -> HostClock {
        let all = || self.offsets.iter().map(|(_, offset)| offset);
        HostClock {
            host: host.to_owned(),
            role: role.to_owned(),
            offset_start_ns: all().next().map_or(0, |offset| offset.offset_ns),
            offset_end_ns: all().next_back().map_or(0, |offset| offset.offset_ns),
            uncertainty_ns: all().map(|offset| offset.uncertainty_ns).max().unwrap_or(0),
            round_trip_ns: all().map(|offset| offset.round_trip_ns).min().unwrap_or(0),
            consistent: all().all(|offset| offset.consistent),
        }
    }
}

impl Host {
    /// Opens a session on the host `name` (an argument of `ssh`) with the drivers in this folder.
    ///
    /// # Errors
    /// [`TailError::Host`].
    pub fn open(name: &str, drivers: &Path) -> Result<Host, TailError> {
        if name.is_empty() || name.starts_with('-') {
            return Err(fault(name, "the host name is not valid".to_owned()));
        }
        let folder = format!("/tmp/dyno-tail-{}-{}", std::process::id(), realtime_ns());
        let script = format!("FOLDER={folder}\n{SESSION}");
        let mut command = ssh(name, &["bash".as_ref(), "-c".as_ref(), script.as_ref()])?;
        let mut session = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C goes to this program, which then ends remote processes in order.
            .process_group(0)
            .spawn()
            .map_err(|error| fault(name, format!("cannot run `ssh`: {error}; {SSH_HINT}")))?;
        let (sender, lines) = channel();
        let output = session.stdout.take();
        std::thread::spawn(move || {
            // After a drop of the host, nothing receives.
            output.into_iter().flat_map(crate::lines::lines).all(|line| sender.send(line).is_ok())
        });
        let mut host = Host {
            name: name.to_owned(),
            drivers: drivers.to_owned(),
            folder,
            input: session.stdin.take().map(|input| Arc::new(Mutex::new(input))),
            session,
            lines,
            units: Units::read(),
            clock: OffsetEstimator::default(),
            offsets: Vec::new(),
            versions: BTreeMap::new(),
            stamped: 0,
        };
        let hello = host.line()?;
        let mut words = hello.split(' ');
        let units = match (words.next(), words.next(), words.next()) {
            (Some("ready"), Some(ticks), Some(page)) => ticks.parse().ok().zip(page.parse().ok()),
            _ => None,
        };
        let (ticks_per_s, page_bytes) = units.ok_or_else(|| {
            host.fault(format!("unexpected first line of the session: `{hello}`"))
        })?;
        host.units = Units { ticks_per_s, page_bytes };
        host.keep_alive();
        Ok(host)
    }

    /// Sends a message periodically, so that a long fetch does not look like a lost controller.
    fn keep_alive(&self) {
        let Some(input) = self.input.as_ref().map(Arc::downgrade) else {
            return;
        };
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(KEEP_EVERY);
                let Some(input) = input.upgrade() else { return };
                let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
                if writeln!(input, "ping").and_then(|()| input.flush()).is_err() {
                    return;
                }
            }
        });
    }

    /// Its name, as passed to `ssh`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Description of its machine.
    ///
    /// # Errors
    /// [`TailError::Host`].
    pub(crate) fn environment(&self) -> Result<Environment, TailError> {
        let words = ["sh".as_ref(), "-c".as_ref(), elsewhere::SCRIPT.as_ref()];
        let output = self.command(&words, &[], Stdio::piped(), ANSWER_LIMIT)?;
        self.good(&output, "cannot examine the machine")?;
        elsewhere::environment(&String::from_utf8_lossy(&output.stdout))
            .map_err(|error| self.fault(format!("cannot examine the machine: {error}")))
    }

    /// The driver on that host, which may have another version.
    ///
    /// # Errors
    /// [`TailError::Driver`] if it cannot run there, [`TailError::Host`].
    pub fn driver(&mut self, name: &str, role: &str) -> Result<Driver, TailError> {
        let run = self.drivers.join(name).join("run");
        let cannot = |reason: String| TailError::Driver {
            driver: name.to_owned(),
            reason: format!("on `{}`: {reason}", self.name),
        };
        let version = match self.versions.get(name) {
            Some(version) => version.clone(),
            None => {
                let words = [run.as_os_str(), "version".as_ref()];
                let output = self.command(&words, &[], Stdio::piped(), COMMAND_LIMIT)?;
                driver::understand(&output).map_err(cannot)?
            }
        };
        if !version.roles.iter().any(|known| known == role) {
            return Err(cannot(format!("it does not support `{role}`")));
        }
        self.versions.insert(name.to_owned(), version.clone());
        Ok(Driver { name: name.to_owned(), run, is_built_in: false, version })
    }

    /// A command that runs `run role options…` on the host. It reads the connection string from the first line of its input, not
    /// from an argument. Files are in the host's folder.
    pub(crate) fn process(
        &self,
        title: &str,
        run: &Path,
        role: &str,
        options: &[OsString],
    ) -> Result<Command, TailError> {
        let mut words = vec![run.as_os_str(), role.as_ref()];
        words.extend(options.iter().map(OsString::as_os_str));
        let script = format!(
            "IFS= read -r DYNO_URI; export DYNO_URI; cd {folder} || exit 1; echo $$ > {title}.pid; \
             {program}; code=$?; rm -f {title}.pid; exit $code",
            folder = self.folder,
            program = quoted(&words)?,
        );
        ssh(&self.name, &["sh".as_ref(), "-c".as_ref(), script.as_ref()])
    }

    /// Copies a file into the host's folder.
    ///
    /// # Errors
    /// [`TailError::Host`], [`TailError::File`].
    pub(crate) fn put(&self, from: &Path, name: &str) -> Result<(), TailError> {
        let bytes = std::fs::read(from).map_err(TailError::file(from))?;
        let to = format!("cat > {}/{name}", self.folder);
        let words = ["sh".as_ref(), "-c".as_ref(), to.as_ref()];
        let output = self.command(&words, &bytes, Stdio::null(), COMMAND_LIMIT)?;
        self.good(&output, "cannot copy a file to the host")
    }

    /// Fetches a file from the host's folder.
    ///
    /// # Errors
    /// [`TailError::Host`], [`TailError::File`].
    pub(crate) fn fetch(&self, name: &str, to: &Path) -> Result<(), TailError> {
        let from = format!("{}/{name}", self.folder);
        let file = File::create_new(to).map_err(TailError::file(to))?;
        let words = ["cat".as_ref(), from.as_ref()];
        let limit = COMMAND_LIMIT + Duration::from_secs(self.stamped / SLOWEST);
        let output = self.command(&words, &[], file.into(), limit)?;
        self.good(&output, "cannot fetch the stamps")
    }

    /// Process ID of a running process.
    ///
    /// # Errors
    /// [`TailError::Host`].
    pub(crate) fn process_id(&mut self, title: &str) -> Result<u32, TailError> {
        self.say(&format!("pid {title}"))?;
        let line = self.line()?;
        line.trim()
            .parse()
            .map_err(|_| self.fault(format!("`{title}` has the invalid process ID `{line}`")))
    }

    /// Compares the clocks before the start by several round trips.
    ///
    /// # Errors
    /// [`TailError::Host`].
    pub(crate) fn compare_clocks(&mut self) -> Result<Offset, TailError> {
        for _ in 0..ROUND_TRIPS {
            self.round_trip()?;
        }
        self.keep_offset()
    }

    /// Compares the clocks after the end; returns the correction of this host's stamps.
    ///
    /// # Errors
    /// [`TailError::Host`].
    pub(crate) fn correction(&mut self) -> Result<Correction, TailError> {
        self.compare_clocks()?;
        Ok(Correction { offsets: self.offsets.clone() })
    }

    fn keep_offset(&mut self) -> Result<Offset, TailError> {
        let offset = self.clock.estimate();
        let offset = offset.ok_or_else(|| self.fault("cannot read the clock".to_owned()))?;
        self.offsets.push((realtime_ns(), offset));
        Ok(offset)
    }

    fn round_trip(&mut self) -> Result<(), TailError> {
        let sent_ns = realtime_ns();
        self.say("time")?;
        let line = self.line()?;
        let received_ns = realtime_ns();
        let remote_ns = nanoseconds(&line)
            .ok_or_else(|| self.fault(format!("invalid clock value `{line}`")))?;
        self.clock.add(RoundTrip { sent_ns, remote_ns, received_ns });
        Ok(())
    }

    /// Samples the processes with their descendants, and the stamps.
    ///
    /// # Errors
    /// [`TailError::Host`].
    pub(crate) fn sample(&mut self, ids: &[u32], at_s: f64) -> Result<Vec<Sample>, TailError> {
        self.round_trip()?;
        self.keep_offset()?;
        // A different end marker each time, because a process name could look like one.
        let end = format!(".{}", realtime_ns());
        self.say(&format!("look {end}"))?;
        let (mut stats, mut stamped) = (Stats::default(), 0);
        loop {
            let line = self.line()?;
            if line == end {
                break;
            }
            match line.strip_prefix("size ") {
                Some(size) => {
                    stamped +=
                        size.split(' ').next().and_then(|size| size.parse().ok()).unwrap_or(0);
                }
                None => stats.add(&line),
            }
        }
        self.stamped = stamped;
        Ok(families(&stats, ids, at_s, self.units))
    }

    /// Bytes of all stamps at the last sample.
    pub(crate) fn stamped(&self) -> u64 {
        self.stamped
    }

    /// Path of a file on the host.
    pub(crate) fn path(&self, name: &str) -> OsString {
        format!("{}/{name}", self.folder).into()
    }

    fn say(&mut self, line: &str) -> Result<(), TailError> {
        let said = match &self.input {
            Some(input) => {
                let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
                writeln!(input, "{line}").and_then(|()| input.flush())
            }
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        said.map_err(|error| self.ended(&error.to_string()))
    }

    fn line(&mut self) -> Result<String, TailError> {
        match self.lines.recv_timeout(ANSWER_LIMIT) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => {
                let limit_s = ANSWER_LIMIT.as_secs();
                Err(self.fault(format!("no answer within {limit_s} s")))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.ended("it closed the connection")),
        }
    }

    /// Error of an ended session, with the message of `ssh`.
    fn ended(&mut self, what: &str) -> TailError {
        // Close its input, so that it ends.
        self.input = None;
        let said = self.session.stderr.take().map(last_line).unwrap_or_default();
        let said = if said.is_empty() { what.to_owned() } else { said };
        self.fault(said)
    }

    fn fault(&self, reason: String) -> TailError {
        fault(&self.name, reason)
    }

    fn good(&self, output: &Output, what: &str) -> Result<(), TailError> {
        if output.status.success() {
            Ok(())
        } else {
            Err(self.fault(format!("{what}: {}", last_line(output.stderr.as_slice()))))
        }
    }

    /// Runs a command on the host to its end.
    fn command(
        &self,
        words: &[&OsStr],
        input: &[u8],
        to: Stdio,
        limit: Duration,
    ) -> Result<Output, TailError> {
        let call = Call { name: "ssh", within: limit, input, to, cancel: None, hint: SSH_HINT };
        program::output(ssh(&self.name, words)?, call)
            .map_err(|error| self.fault(with_hint(&error)))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // At the end of its input, the session cleans up and ends.
        self.input = None;
        let deadline = Instant::now() + ANSWER_LIMIT;
        while matches!(self.session.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                // The host cannot be reached, and cleans up by itself.
                let _ = self.session.kill();
                let _ = self.session.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn fault(host: &str, reason: String) -> TailError {
    TailError::Host { host: host.to_owned(), reason }
}

/// A call of `ssh` that runs `words` instead of the user's shell.
fn ssh(host: &str, words: &[&OsStr]) -> Result<Command, TailError> {
    let program = std::env::var_os(SSH_VARIABLE).unwrap_or_else(|| "ssh".into());
    let mut command = Command::new(program);
    let line = format!("exec {}", quoted(words)?);
    command.args(OPTIONS).arg(host).arg("--").arg(line);
    Ok(command)
}

/// Quotes the words for a shell.
fn quoted(words: &[&OsStr]) -> Result<String, TailError> {
    let words: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
    words.and_then(|words| shlex::try_join(words).ok()).ok_or_else(|| {
        TailError::Settings(
            "paths and options of other hosts must be valid UTF-8 without NUL".to_owned(),
        )
    })
}

/// Parses nanoseconds from `1700000000.123456`.
fn nanoseconds(text: &str) -> Option<i64> {
    let (seconds, micros) = text.trim().split_once('.')?;
    if micros.len() != 6 {
        return None;
    }
    let seconds: i64 = seconds.parse().ok()?;
    let micros: i64 = micros.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(micros * 1000)
}

fn last_line(stream: impl io::Read) -> String {
    crate::lines::lines(stream).filter(|line| !line.trim().is_empty()).last().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(offset_ns: i64) -> Offset {
        Offset { offset_ns, uncertainty_ns: 5, round_trip_ns: 10, samples: 1, consistent: true }
    }

    #[test]
    fn stamps_are_corrected_by_an_interpolated_offset() {
        let clock = Correction {
            offsets: vec![(1_000, offset(500)), (2_000, offset(700)), (3_000, offset(700))],
        };
        assert_eq!(clock.to_here_ns(1_500), 1_000);
        assert_eq!(clock.to_here_ns(2_100), 1_600 - 120);
        assert_eq!(clock.to_here_ns(3_200), 2_500);
        // The offset is constant before the start and after the end.
        assert_eq!(clock.to_here_ns(500), 0);
        assert_eq!(clock.to_here_ns(10_700), 10_000);
        let mut set = clock.clone();
        set.offsets[1].1.consistent = false;
        assert!(!set.record("db1", "consume").consistent);
        let record = clock.record("db1", "consume");
        assert_eq!((record.offset_start_ns, record.offset_end_ns), (500, 700));
        assert_eq!((record.uncertainty_ns, record.consistent), (5, true));
    }

    #[test]
    fn session_time_is_parsed_in_the_format_of_bash() {
        assert_eq!(nanoseconds("1700000000.000123"), Some(1_700_000_000_000_123_000));
        assert_eq!(nanoseconds("1700000000,000123"), None);
        assert_eq!(nanoseconds("1700000000.12"), None);
        assert_eq!(nanoseconds(""), None);
    }

    #[test]
    fn words_reach_the_program_unchanged() {
        let words = ["sh", "-c", "echo \"a  b\" $x 'c'", ""].map(OsStr::new);
        let line = quoted(&words).unwrap();
        assert_eq!(shlex::split(&line).unwrap(), ["sh", "-c", "echo \"a  b\" $x 'c'", ""]);
    }
}
