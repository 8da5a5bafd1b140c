//! Gets the version of a server program, so that a wrong file is noticed before it is started.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::child_guard::POLL_INTERVAL;
use crate::installed::{command_for, is_name};
use crate::{ServerError, ServerProgram};

/// Version of the embedded server that this program supports and the set-up script builds.
pub const EMBEDDED_VERSION: &str = "0.5.3-beta.196";

/// First `mongod` version with a JSON log, which is needed to detect readiness.
const OLDEST_MONGOD: (u32, u32) = (4, 4);

/// A program that takes longer to print its version is not one of ours.
const VERSION_LIMIT: Duration = Duration::from_secs(20);

/// Who built a `mongod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edition {
    /// MongoDB's Community Server, or another program that reports no edition.
    Community,
    /// MongoDB's Enterprise Server.
    Enterprise,
    /// Percona Server for MongoDB.
    Percona,
}

/// Output of a program about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Version without prefix, such as `7.0.14`.
    pub version: String,
    /// Edition, which identifies the builder.
    pub edition: Edition,
    /// Revision of its source, if it reports one.
    pub git_version: Option<String>,
}

impl Program {
    /// Whether it has the in-memory storage engine.
    pub(crate) fn has_memory_engine(&self) -> bool {
        self.edition != Edition::Community
    }
}

/// Runs `program --version` and parses its output.
///
/// # Errors
/// [`ServerError::Spawn`] if it cannot be run, [`ServerError::UnknownVersion`] if it is another
/// program, [`ServerError::OldVersion`] if it is not supported because it is too old.
pub fn program_version(kind: ServerProgram, program: &Path) -> Result<Program, ServerError> {
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
    let build = build_info(&output);
    Ok(Program { version, edition: edition(&build), git_version: build.git_version })
}

/// The document after `Build Info:`. Percona Server adds lists of features, and its commands report
/// a version of their own.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BuildInfo {
    git_version: Option<String>,
    modules: Vec<String>,
    percona_features: Option<Vec<String>>,
    pro_features: Option<Vec<String>>,
    psmdb_version: Option<String>,
}

/// Empty for a program that prints none.
fn build_info(output: &str) -> BuildInfo {
    let document = output.split_once("Build Info:").map(|(_, rest)| rest);
    document.and_then(|text| serde_json::from_str(text.trim()).ok()).unwrap_or_default()
}

fn edition(build: &BuildInfo) -> Edition {
    let is_percona = build.percona_features.is_some()
        || build.pro_features.is_some()
        || build.psmdb_version.is_some();
    if is_percona {
        Edition::Percona
    } else if build.modules.iter().any(|module| module == "enterprise") {
        Edition::Enterprise
    } else {
        Edition::Community
    }
}

/// Standard output of `program --version`, or standard error if there was no other output: that is
/// where the dynamic loader reports a missing library.
fn version_output(program: &Path) -> Result<String, ServerError> {
    let spawn_error = |source| ServerError::Spawn { program: program.to_owned(), source };
    let mut child = command_for(program)
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

/// Reads once. A version text fits in the pipe's buffer, so reading after the exit loses nothing,
/// and a grandchild that keeps the pipe open must not block us.
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
    // It becomes the name of a folder.
    let is_version = major_minor(version).is_some() && is_name(version);
    is_version.then(|| version.to_owned())
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
    fn versions_are_read_from_server_output() {
        let mongod = "db version v7.0.14\nBuild Info: {\n    \"version\": \"7.0.14\"\n}\n";
        assert_eq!(parse_version(ServerProgram::Mongod, mongod).as_deref(), Some("7.0.14"));
        let embedded = "secantusd-rs 0.5.3-beta.196\nsource: crates.io\n";
        assert_eq!(
            parse_version(ServerProgram::Embedded, embedded).as_deref(),
            Some(EMBEDDED_VERSION)
        );
        assert_eq!(parse_version(ServerProgram::Mongod, embedded), None);
        assert_eq!(parse_version(ServerProgram::Mongod, "db version vx"), None);
        assert_eq!(parse_version(ServerProgram::Mongod, ""), None);
        for version in ["8.0.4/../../../evil", "8.0.4-x y", "8.0.4\u{1b}[8m", "8.0 .4"] {
            let output = format!("db version v{version}");
            assert_eq!(parse_version(ServerProgram::Mongod, &output), None);
        }
    }

    /// The text of 6.0.5 is original; the others contain the fields in their sources, without a
    /// revision.
    const COMMUNITY: &str = r#"db version v6.0.5
Build Info: {
    "version": "6.0.5",
    "gitVersion": "c9a99c120371d4d4c52cbb15dac34a36ce8d3b1d",
    "openSSLVersion": "OpenSSL 3.0.17 1 Jul 2025",
    "modules": [],
    "allocator": "tcmalloc",
    "environment": {
        "distmod": "ubuntu2204",
        "distarch": "x86_64",
        "target_arch": "x86_64"
    }
}
"#;
    const ENTERPRISE: &str = r#"db version v7.0.14
Build Info: {
    "version": "7.0.14",
    "gitVersion": "0000000000000000000000000000000000000000",
    "openSSLVersion": "OpenSSL 3.0.2 15 Mar 2022",
    "modules": [
        "enterprise"
    ],
    "allocator": "tcmalloc",
    "environment": {
        "distmod": "ubuntu2204",
        "distarch": "x86_64",
        "target_arch": "x86_64"
    }
}
"#;
    const PERCONA: &str = r#"db version v8.0.4-1
Build Info: {
    "version": "8.0.4-1",
    "gitVersion": "0000000000000000000000000000000000000000",
    "openSSLVersion": "OpenSSL 3.0.2 15 Mar 2022",
    "modules": [],
    "proFeatures": [],
    "perconaFeatures": [
        "MemoryEngine",
        "HotBackup",
        "TDE",
        "FIPSMode",
        "ngram"
    ],
    "allocator": "tcmalloc-google",
    "environment": {
        "distarch": "x86_64",
        "target_arch": "x86_64"
    }
}
"#;
    const PERCONA_6: &str = r#"db version v6.0.11-8
Build Info: {
    "version": "6.0.11-8",
    "gitVersion": "0000000000000000000000000000000000000000",
    "openSSLVersion": "OpenSSL 1.1.1f  31 Mar 2020",
    "modules": [],
    "proFeatures": [],
    "allocator": "tcmalloc",
    "environment": {
        "distarch": "x86_64",
        "target_arch": "x86_64"
    }
}
"#;

    #[test]
    fn edition_is_read_from_server_output() {
        for (output, version, expected) in [
            (COMMUNITY, "6.0.5", Edition::Community),
            (ENTERPRISE, "7.0.14", Edition::Enterprise),
            (PERCONA, "8.0.4-1", Edition::Percona),
            (PERCONA_6, "6.0.11-8", Edition::Percona),
            ("db version v7.0.14\n", "7.0.14", Edition::Community),
        ] {
            assert_eq!(edition(&build_info(output)), expected, "{output}");
            let read = parse_version(ServerProgram::Mongod, output);
            assert_eq!(read.as_deref(), Some(version));
        }
        let git_version = build_info(COMMUNITY).git_version;
        assert_eq!(git_version.as_deref(), Some("c9a99c120371d4d4c52cbb15dac34a36ce8d3b1d"));
    }

    #[test]
    fn versions_of_routers_and_servers_are_distinguished() {
        let router = parse_version(ServerProgram::Mongos, "mongos version v8.0.4\n");
        assert_eq!(router.as_deref(), Some("8.0.4"));
        assert_eq!(parse_version(ServerProgram::Mongod, "mongos version v8.0.4"), None);
    }

    #[test]
    fn versions_compare_by_number_and_not_by_text() {
        assert!(major_minor("10.0.1") > major_minor("4.4.29"));
        assert!(major_minor("4.2.25") < Some(OLDEST_MONGOD));
    }

    #[test]
    fn another_program_is_refused_by_its_output() {
        let program = PathBuf::from("/bin/ls");
        let error = program_version(ServerProgram::Mongod, &program).unwrap_err();
        let ServerError::UnknownVersion { output, .. } = error else {
            panic!("unexpected {error:?}");
        };
        assert!(output.starts_with("ls "), "{output}");
    }

    #[test]
    fn setup_script_installs_the_expected_version() {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/setup.sh");
        let script = std::fs::read_to_string(script).unwrap();
        assert!(script.contains(&format!("EMBEDDED_VERSION={EMBEDDED_VERSION}\n")));
    }
}
