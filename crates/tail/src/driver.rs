//! Finds the available drivers: folders with an executable `run`, and `wire` inside this program. They report their capabilities.

use crate::error::{TailError, with_hint};
use dyno_engine::{Cancel, Error, Kind};
use dyno_fleet::program::{self, Call};
use dyno_plan::uri::redact;
use dyno_record::tail::{DriverVersion, SkippedDriver};
use dyno_servers::set_death_signal;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Version of the contract between drivers and this program.
pub const CONTRACT: u64 = 1;
/// Longest time for `run version`: a Java runtime on a busy machine takes several seconds.
const VERSION_LIMIT: Duration = Duration::from_secs(30);
/// The driver inside this program.
pub const WIRE: &str = "wire";
/// First argument with which this program is that driver.
pub const BUILT_IN: &str = "driver-wire";
/// Exit code of a driver whose toolchain or build is missing.
const MISSING: i32 = 3;

/// A driver that can run.
#[derive(Clone, Debug, PartialEq)]
pub struct Driver {
    /// Name of the driver's folder, or [`WIRE`].
    pub name: String,
    /// The executable.
    pub run: PathBuf,
    /// The executable is this program, which needs the argument [`BUILT_IN`].
    pub is_built_in: bool,
    /// The driver's answer to `run version`.
    pub version: DriverVersion,
}

impl Driver {
    /// A command that runs the driver; the role follows.
    pub fn command(&self) -> Command {
        command(&self.run, self.is_built_in)
    }
}

fn command(run: &Path, is_built_in: bool) -> Command {
    let mut command = Command::new(run);
    command.args(is_built_in.then_some(BUILT_IN));
    command
}

/// Drivers found in a folder and in this program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// By name.
    pub drivers: BTreeMap<String, Driver>,
    /// In order of their names.
    pub skipped: Vec<SkippedDriver>,
    /// Names of drivers that were not asked.
    pub others: Vec<String>,
}

impl Found {
    /// The driver with this name for a role (`produce`, `consume`).
    ///
    /// # Errors
    /// [`TailError::Driver`] with the reason why it was skipped, its missing role, or the available drivers.
    pub fn named(&self, name: &str, role: &str) -> Result<&Driver, TailError> {
        let cannot = |reason| TailError::Driver { driver: name.to_owned(), reason };
        if let Some(driver) = self.drivers.get(name) {
            return if driver.version.roles.iter().any(|known| known == role) {
                Ok(driver)
            } else {
                Err(cannot(format!("it does not support `{role}`")))
            };
        }
        let skipped = self.skipped.iter().find(|skipped| skipped.name == name);
        Err(cannot(match skipped {
            Some(skipped) => skipped.reason.clone(),
            None => {
                let mut names: Vec<&str> = self.drivers.keys().map(String::as_str).collect();
                names.extend(self.others.iter().map(String::as_str));
                names.sort_unstable();
                let names = names.join(", ");
                if name.contains('@') {
                    format!(
                        "this version is not built; build it with `make drivers DRIVERS={name}`, or use one of {names}"
                    )
                } else {
                    format!("there is no driver of this name; use one of {names}")
                }
            }
        }))
    }
}

/// Asks the wanted drivers for their version; only those, because some need a second to answer. They are `NAME/run` in `folder`, and
/// [`WIRE`] inside the program `own`, which precedes a folder of this name. Drivers that cannot run are listed as skipped.
///
/// # Errors
/// [`TailError::File`] if the folder cannot be read, [`TailError::Interrupted`].
pub fn find(
    folder: Option<&Path>,
    own: Option<&Path>,
    wanted: impl Fn(&str) -> bool,
    cancel: &Cancel,
) -> Result<Found, TailError> {
    let mut programs = BTreeMap::new();
    if let Some(folder) = folder {
        for entry in std::fs::read_dir(folder).map_err(TailError::file(folder))? {
            let entry = entry.map_err(TailError::file(folder))?;
            let run = entry.path().join("run");
            if run.is_file() {
                programs.insert(entry.file_name().to_string_lossy().into_owned(), run);
            }
        }
    }
    if let Some(own) = own {
        programs.insert(WIRE.to_owned(), own.to_owned());
    }
    let mut found = Found::default();
    for (name, run) in programs {
        if !wanted(&name) {
            found.others.push(name);
            continue;
        }
        let is_built_in = name == WIRE && own.is_some();
        let version = match ask(command(&run, is_built_in), cancel) {
            Ok(answer) => understand(&answer),
            Err(error) if error.kind == Kind::Interrupted => return Err(TailError::Interrupted),
            Err(error) => Err(with_hint(&error)),
        };
        match version.and_then(|version| of_version(&name, version)) {
            Ok(version) => {
                let driver = Driver { name: name.clone(), run, is_built_in, version };
                found.drivers.insert(name, driver);
            }
            Err(reason) => found.skipped.push(SkippedDriver { name, reason }),
        }
    }
    Ok(found)
}

/// Checks the version against the folder name: `node@6.8` may be 6.8.2.
fn of_version(name: &str, version: DriverVersion) -> Result<DriverVersion, String> {
    let Some((_, wanted)) = name.split_once('@') else {
        return Ok(version);
    };
    let is = version.driver_version.strip_prefix(wanted);
    if is.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
        return Ok(version);
    }
    Err(format!(
        "it has version {} of {} instead of {wanted}",
        version.driver_version, version.driver
    ))
}

fn ask(mut command: Command, cancel: &Cancel) -> Result<Output, Error> {
    command.arg("version");
    set_death_signal(&mut command, Signal::SIGKILL);
    let call = Call {
        name: "run version",
        within: VERSION_LIMIT,
        input: b"",
        to: Stdio::piped(),
        cancel: Some(cancel),
        hint: "see `drivers/README.md`",
    };
    program::output(command, call)
}

/// Parses the output of `run version`; returns why it is not valid.
pub(crate) fn understand(answer: &Output) -> Result<DriverVersion, String> {
    let errors = redact(&String::from_utf8_lossy(&answer.stderr));
    let last = errors.lines().rfind(|line| !line.trim().is_empty());
    match answer.status.code() {
        Some(0) => {}
        Some(MISSING) => return Err(last.unwrap_or("the toolchain is missing").to_owned()),
        code => {
            let code = code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
            return Err(format!(
                "`run version` ended with {code}: {}",
                last.unwrap_or("nothing on standard error")
            ));
        }
    }
    let version: DriverVersion = serde_json::from_slice(&answer.stdout)
        .map_err(|error| format!("cannot understand the output of `run version`: {error}"))?;
    match version.contract {
        CONTRACT => Ok(version),
        other => Err(format!("it uses contract {other}, but contract {CONTRACT} is needed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::time::Instant;

    const LINE: &str = r#"{"contract":1,"language":"sh","driver":"none","driver_version":"1","runtime":"sh",
        "runtime_version":"2","roles":["produce"],"in_flight":["one"],"modes":[],"pool":false,"more":1}"#;

    fn answer(code: i32, output: &str, errors: &str) -> Output {
        Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: output.into(),
            stderr: errors.into(),
        }
    }

    #[test]
    fn version_is_read_and_unknown_fields_are_ignored() {
        let version = understand(&answer(0, LINE, "a warning\n")).unwrap();
        assert_eq!(version.roles, ["produce"]);
        assert_eq!(version.unbounded, None);
    }

    #[test]
    fn reason_is_given_when_a_driver_cannot_run() {
        let reason = |answer| understand(&answer).unwrap_err();
        let said = "go is not installed";
        assert_eq!(reason(answer(3, "", &format!("{said}\n"))), said);
        assert!(reason(answer(3, "", "")).contains("toolchain"));
        assert!(reason(answer(1, "", "trace\nboom\n")).contains("code 1: boom"));
        assert!(reason(answer(0, "hello", "")).contains("output of `run version`"));
        let later = LINE.replace("\"contract\":1", "\"contract\":2");
        assert!(reason(answer(0, &later, "")).contains("contract 2"));
        let killed = Output { status: ExitStatus::from_raw(9), ..answer(0, "", "") };
        assert!(reason(killed).contains("a signal"));
    }

    #[test]
    fn driver_must_have_the_version_in_its_folder_name() {
        let said = |driver_version: &str| {
            let mut version = understand(&answer(0, LINE, "")).unwrap();
            version.driver_version = driver_version.into();
            version
        };
        for (name, version) in [
            ("node", "7.9.0"),
            ("node@6.8", "6.8.2"),
            ("node@6.8.2", "6.8.2"),
            ("node@6", "6.20.0"),
        ] {
            assert_eq!(of_version(name, said(version)), Ok(said(version)), "{name}");
        }
        for (name, version) in [("node@6.8", "7.9.0"), ("node@6.8", "6.80.0")] {
            let refused = of_version(name, said(version)).unwrap_err();
            assert!(refused.contains(&format!("{version} of none")), "{refused}");
        }
        let none = Found::default().named("node@6.8", "produce").unwrap_err();
        assert!(none.to_string().contains("`make drivers DRIVERS=node@6.8`"), "{none}");
    }

    #[test]
    fn folders_with_an_executable_are_drivers() {
        let folder = tempfile::tempdir().unwrap();
        let scripts = [
            ("good", format!("#!/bin/sh\necho '{}'\n", LINE.replace('\n', ""))),
            ("absent", "#!/bin/sh\necho no toolchain >&2\nexit 3\n".to_owned()),
        ];
        for (name, script) in scripts {
            let run = folder.path().join(name).join("run");
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(&run, script).unwrap();
            std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::fs::create_dir(folder.path().join("conformance")).unwrap();
        let found = find(Some(folder.path()), None, |_| true, &Cancel::new()).unwrap();
        assert_eq!(found.drivers.keys().collect::<Vec<_>>(), ["good"]);
        let skipped =
            SkippedDriver { name: "absent".to_owned(), reason: "no toolchain".to_owned() };
        assert_eq!(found.skipped, [skipped]);
        assert!(found.named("good", "produce").is_ok());
        let reason = |found: &Found, name: &str, role| match found.named(name, role) {
            Err(TailError::Driver { driver, reason }) if driver == name => reason,
            other => panic!("{name}: {other:?}"),
        };
        assert!(reason(&found, "good", "consume").contains("`consume`"));
        assert_eq!(reason(&found, "absent", "produce"), "no toolchain");
        assert!(reason(&found, "other", "produce").ends_with(" good"));
        let one = find(Some(folder.path()), None, |name| name == "absent", &Cancel::new()).unwrap();
        assert_eq!((one.drivers.len(), one.skipped.len()), (0, 1));
        // Drivers that were not asked are named as well.
        assert!(reason(&one, "other", "produce").ends_with(" good"));
        assert!(
            find(Some(&folder.path().join("nowhere")), None, |_| true, &Cancel::new()).is_err()
        );
    }

    fn only_driver(script: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("one/run");
        std::fs::create_dir(folder.path().join("one")).unwrap();
        std::fs::write(&run, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    #[test]
    fn driver_that_cannot_be_started_gets_a_hint() {
        let folder = only_driver("");
        let run = folder.path().join("one/run");
        std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o644)).unwrap();
        let found = find(Some(folder.path()), None, |_| true, &Cancel::new()).unwrap();
        let reason = &found.skipped[0].reason;
        assert!(reason.starts_with("cannot start `run version`: "), "{reason}");
        assert!(reason.ends_with("; see `drivers/README.md`"), "{reason}");
    }

    #[test]
    fn interrupt_ends_the_question_for_a_version() {
        let folder = only_driver("sleep 60");
        let cancel = Cancel::new();
        cancel.cancel();
        let began = Instant::now();
        let found = find(Some(folder.path()), None, |_| true, &cancel);
        assert!(matches!(found, Err(TailError::Interrupted)), "{found:?}");
        assert!(began.elapsed() < VERSION_LIMIT / 2);
    }
}
