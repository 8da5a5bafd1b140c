//! Asks a server program for its version, so that a wrong file is noticed before it is started.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::keeper::POLL_INTERVAL;
use crate::{ServerError, ServerProgram};

/// Version of the embedded server that this program is made for and that the set-up script builds.
pub const EMBEDDED_VERSION: &str = "0.5.3-beta.196";

/// Oldest `mongod` whose log is the JSON that readiness is read from.
const OLDEST_MONGOD: (u32, u32) = (4, 4);

/// A program that takes longer to print its version is not one of ours.
const VERSION_LIMIT: Duration = Duration::from_secs(20);

/// What a program says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Version without prefix, such as `7.0.14`.
    pub(crate) version: String,
    /// Whether it has the in-memory storage engine.
    pub(crate) has_memory_engine: bool,
}

/// Runs `program --version`.
pub(crate) fn program_version(kind: ServerProgram, program: &Path) -> Result<Program, ServerError> {
    let output = version_output(program)?;
    let version = parse_version(kind, &output).ok_or_else(|| ServerError::UnknownVersion {
        program: program.to_owned(),
        expected: kind.executable(),
        output: output.lines().next().unwrap_or_default().to_owned(),
    })?;
    if kind != ServerProgram::Embedded && major_minor(&version) < Some(OLDEST_MONGOD) {
        return Err(ServerError::OldVersion {
            program: program.to_owned(),
            version,
            oldest: "4.4",
        });
    }
    Ok(Program {
        version,
        has_memory_engine: has_memory_engine(&output),
    })
}

/// Enterprise says so in its list of modules, Percona Server by a version of its own.
fn has_memory_engine(output: &str) -> bool {
    output.contains("\"enterprise\"")
        || output.contains("modules: enterprise")
        || output.contains("\"psmdbVersion\"")
}

/// Standard output of `program --version`, or standard error when it printed nothing else: that is
/// where the dynamic loader says which library is missing.
fn version_output(program: &Path) -> Result<String, ServerError> {
    let spawn_error = |source| ServerError::Spawn {
        program: program.to_owned(),
        source,
    };
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(spawn_error)?;
    let started = Instant::now();
    while child.try_wait().map_err(spawn_error)?.is_none() {
        if started.elapsed() > VERSION_LIMIT {
            child.kill().map_err(spawn_error)?;
            child.wait().map_err(spawn_error)?;
            break;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    let mut output = read_start(child.stdout.take());
    if output.trim().is_empty() {
        output = read_start(child.stderr.take());
    }
    Ok(output)
}

/// A version text fits in the pipe's buffer, so that reading after the exit loses nothing. A
/// grandchild that keeps the pipe open must not block us, hence one read.
fn read_start(pipe: Option<impl Read>) -> String {
    let mut buffer = [0; 4096];
    let length = pipe.map_or(0, |mut pipe| pipe.read(&mut buffer).unwrap_or(0));
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

fn parse_version(kind: ServerProgram, output: &str) -> Option<String> {
    let first = output.lines().next()?.trim();
    let version = match kind {
        ServerProgram::Embedded => first.strip_prefix("secantusd-rs ")?,
        ServerProgram::Mongod => first.strip_prefix("db version v")?,
        ServerProgram::Mongos => first.strip_prefix("mongos version v")?,
    };
    major_minor(version).map(|_| version.to_owned())
}

/// The first two numbers of a version.
pub(crate) fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn versions_are_read_from_what_the_servers_print() {
        let mongod = "db version v7.0.14\nBuild Info: {\n    \"version\": \"7.0.14\"\n}\n";
        assert_eq!(
            parse_version(ServerProgram::Mongod, mongod).as_deref(),
            Some("7.0.14")
        );
        let embedded = "secantusd-rs 0.5.3-beta.196\nsource: crates.io\n";
        assert_eq!(
            parse_version(ServerProgram::Embedded, embedded).as_deref(),
            Some(EMBEDDED_VERSION)
        );
        assert_eq!(parse_version(ServerProgram::Mongod, embedded), None);
        assert_eq!(parse_version(ServerProgram::Mongod, "db version vx"), None);
        assert_eq!(parse_version(ServerProgram::Mongod, ""), None);
    }

    #[test]
    fn the_edition_is_read_from_the_modules() {
        for (output, expected) in [
            ("    \"modules\": [\n        \"enterprise\"\n    ],", true),
            ("    \"modules\": [],\n", false),
            ("    \"psmdbVersion\": \"7.0.14-8\",", true),
            ("modules: none", false),
        ] {
            assert_eq!(has_memory_engine(output), expected, "{output}");
        }
        let router = parse_version(ServerProgram::Mongos, "mongos version v8.0.4\n");
        assert_eq!(router.as_deref(), Some("8.0.4"));
        assert_eq!(
            parse_version(ServerProgram::Mongod, "mongos version v8.0.4"),
            None
        );
    }

    #[test]
    fn versions_compare_by_number_and_not_by_text() {
        assert!(major_minor("10.0.1") > major_minor("4.4.29"));
        assert!(major_minor("4.2.25") < Some(OLDEST_MONGOD));
    }

    #[test]
    fn another_program_is_refused_by_what_it_prints() {
        let program = PathBuf::from("/bin/ls");
        let error = program_version(ServerProgram::Mongod, &program).unwrap_err();
        let ServerError::UnknownVersion { output, .. } = error else {
            panic!("unexpected {error:?}");
        };
        assert!(output.starts_with("ls "), "{output}");
    }

    #[test]
    fn the_setup_script_installs_the_version_that_is_expected_here() {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/setup.sh");
        let script = std::fs::read_to_string(script).unwrap();
        assert!(script.contains(&format!("EMBEDDED_VERSION={EMBEDDED_VERSION}\n")));
    }
}
