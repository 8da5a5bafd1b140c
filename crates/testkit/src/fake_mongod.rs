//! A fake `mongod` and `mongos` for tests of deployments without MongoDB.
//!
//! It is started as a child process under either name, prints the lines that indicate readiness, supports OP_MSG, and
//! implements the commands for creating replica sets and clusters as a small state machine. Every argument and command
//! is checked against MongoDB's manual; invalid ones are answered by an error and recorded in a file. The server that
//! accepts writes keeps documents in memory; nothing is replicated, and all documents of a cluster are on its first
//! shard. In front of shards that are real servers, the router distributes the documents over them. It encrypts
//! nothing, and accepts passwords in plain text: it verifies that the right commands are sent in the right order, but
//! nothing about the real server.
//!
//! The process is the test program itself, in a test that only calls [`serve`]:
//!
//! ```no_run
//! #[test]
//! #[ignore = "a helper process, started by other tests"]
//! fn helper_that_is_a_server() {
//!     dyno_testkit::fake_mongod::serve();
//! }
//! ```

use crate::wire;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

mod admin_client;
mod arguments;
mod cluster;
mod concerns;
mod data;
mod dealer;
mod hello;
mod membership;
mod node;
mod server;
mod shapes;
mod store;
mod users;

pub use admin_client::FakeAdminClient;
pub use server::serve;

/// Environment of the child: its name, its arguments one per line, its version and the shared folder.
const PROGRAM: &str = "DYNO_DOUBLE_PROGRAM";
const ARGUMENTS: &str = "DYNO_DOUBLE_ARGUMENTS";
const VERSION: &str = "DYNO_DOUBLE_VERSION";
const FOLDER: &str = "DYNO_DOUBLE_FOLDER";

/// Programs named `mongod` and `mongos`, and their notes.
#[derive(Debug)]
pub struct FakeMongod {
    folder: PathBuf,
}

impl FakeMongod {
    /// Writes both programs to `folder`. They report `version`, with a dash for Percona Server, and run the test
    /// `helper` of the current test program.
    ///
    /// # Panics
    /// If a file cannot be written.
    pub fn install(folder: &Path, version: &str, helper: &str) -> FakeMongod {
        let fake_mongod = FakeMongod { folder: folder.to_owned() };
        fs::create_dir_all(folder).expect("the folder of the fake `mongod` can be made");
        let test = std::env::current_exe().expect("the test program has a path");
        for (path, banner) in
            [(fake_mongod.mongod(), "db version"), (fake_mongod.mongos(), "mongos version")]
        {
            let script = script(&path, folder, version, banner, &test, helper);
            fs::write(&path, script).expect("the fake `mongod` can be written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
                .expect("the fake `mongod` can be made executable");
        }
        fake_mongod
    }

    /// Path of the `mongod`.
    pub fn mongod(&self) -> PathBuf {
        self.folder.join("mongod")
    }

    /// Path of the `mongos`.
    pub fn mongos(&self) -> PathBuf {
        self.folder.join("mongos")
    }

    /// Adds a misbehaviour to all processes, from their next command on: `never-primary SET`, `stuck MEMBER`, `die
    /// MEMBER COMMAND`, `refuse COMMAND`, and `cache MEMBER BYTES` for a member that reports another cache size than it
    /// was started with.
    ///
    /// # Panics
    /// If the rule cannot be written.
    pub fn misbehave(&self, rule: &str) {
        note(&self.folder, "misbehave", rule);
    }

    /// Invalid arguments and commands; empty if there were none.
    pub fn violations(&self) -> Vec<String> {
        lines(&self.folder, "violations")
    }

    /// Events in order: `NAME started`, `NAME COMMAND` for every command except document commands and status queries,
    /// and `NAME stopped` for a process that was asked to end.
    pub fn events(&self) -> Vec<String> {
        lines(&self.folder, "events")
    }

    /// Document commands of clients to processes that have since been asked to end.
    ///
    /// # Panics
    /// If the notes are invalid.
    pub fn operations(&self) -> Vec<Operations> {
        let noted = lines(&self.folder, "operations");
        noted.iter().map(|line| Operations::read(line)).collect()
    }
}

/// Commands of one kind with the same concern, sent to one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operations {
    pub member: String,
    pub command: String,
    pub count: u64,
    /// Their write or read concern, such as `{ "w": "majority" }`; `None` without one.
    pub concern: Option<String>,
}

impl Operations {
    fn read(line: &str) -> Operations {
        let mut parts = line.splitn(4, ' ').map(str::to_owned);
        let mut part = || parts.next().expect("a note has four parts");
        Operations {
            member: part(),
            command: part(),
            count: part().parse().expect("the third part is a number"),
            concern: Some(part()).filter(|concern| concern != "none"),
        }
    }
}

fn script(
    program: &Path,
    folder: &Path,
    version: &str,
    banner: &str,
    test: &Path,
    helper: &str,
) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    // Like Percona Server, whose versions have their own number after a dash.
    let build = match version.contains('-') {
        true => "echo 'Build Info: { \"proFeatures\": [] }'; ",
        false => "",
    };
    format!(
        "#!/bin/sh\n\
         [ \"$1\" = --version ] && {{ echo '{banner} v{version}'; {build}exit 0; }}\n\
         {ARGUMENTS}=$(printf '%s\\n' \"$@\")\n\
         {PROGRAM}={name} {VERSION}={version} {FOLDER}='{}'\n\
         export {ARGUMENTS} {PROGRAM} {VERSION} {FOLDER}\n\
         exec '{}' --exact {helper} --ignored --nocapture\n",
        folder.display(),
        test.display(),
    )
}

/// Appends one line; several processes may do so at once.
fn note(folder: &Path, file: &str, line: &str) {
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join(file))
        .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
        .expect("the notes of the fake `mongod` can be written");
}

fn lines(folder: &Path, file: &str) -> Vec<String> {
    let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
