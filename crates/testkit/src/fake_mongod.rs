//! A double of `mongod` and `mongos` for tests of deployments where MongoDB is not installed.
//!
//! It is started as a child process under either name, prints the lines that readiness is read
//! from, speaks OP_MSG, and answers the commands that make replica sets and clusters as a small
//! state machine. Every argument and every command is checked against what MongoDB's manual
//! documents; what is wrong is answered by an error and noted in a file. Documents are kept in
//! memory by the server that takes writes; nothing is replicated, and all documents of a cluster
//! are on its first shard. In front of shards that are real servers, the router deals the documents
//! over them. It encrypts nothing, and takes a password in clear: it shows that the
//! right things are sent in the right order, and nothing about the real server.
//!
//! The process is the test program itself, in a test that does nothing but [`serve`]:
//!
//! ```no_run
//! #[test]
//! #[ignore = "a helper process, started by other tests"]
//! fn helper_that_is_a_server() {
//!     dyno_testkit::double::serve();
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

/// Environment of the child: its name, its arguments by line, its version and the common folder.
const PROGRAM: &str = "DYNO_DOUBLE_PROGRAM";
const ARGUMENTS: &str = "DYNO_DOUBLE_ARGUMENTS";
const VERSION: &str = "DYNO_DOUBLE_VERSION";
const FOLDER: &str = "DYNO_DOUBLE_FOLDER";

/// Programs named `mongod` and `mongos`, and what they noted.
#[derive(Debug)]
pub struct FakeMongod {
    folder: PathBuf,
}

impl FakeMongod {
    /// Writes both programs to `folder`. They claim `version`, which one of Percona Server has a
    /// dash in, and run the test `helper` of the current test program.
    ///
    /// # Panics
    /// When a file cannot be written.
    pub fn install(folder: &Path, version: &str, helper: &str) -> FakeMongod {
        let fake_mongod = FakeMongod {
            folder: folder.to_owned(),
        };
        fs::create_dir_all(folder).expect("the folder of the fake `mongod` can be made");
        let test = std::env::current_exe().expect("the test program has a path");
        for (path, banner) in [
            (fake_mongod.mongod(), "db version"),
            (fake_mongod.mongos(), "mongos version"),
        ] {
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

    /// Adds a misbehaviour, known to all processes from their next command on:
    /// `never-primary SET`, `stuck MEMBER`, `die MEMBER COMMAND`, `refuse COMMAND`, and
    /// `cache MEMBER BYTES` for a member that tells a size of its cache that is not what it was
    /// started with.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn misbehave(&self, rule: &str) {
        note(&self.folder, "misbehave", rule);
    }

    /// What was wrong with arguments and commands, empty if nothing was.
    pub fn violations(&self) -> Vec<String> {
        lines(&self.folder, "violations")
    }

    /// `NAME started`, `NAME COMMAND` for every command but those on documents and questions for a
    /// state, and `NAME stopped` for a process that was asked to end, in this order.
    pub fn events(&self) -> Vec<String> {
        lines(&self.folder, "events")
    }

    /// The commands on documents that clients sent to processes which have been asked to end since.
    ///
    /// # Panics
    /// When the notes are not those of the fake `mongod`.
    pub fn operations(&self) -> Vec<Operations> {
        let noted = lines(&self.folder, "operations");
        noted.iter().map(|line| Operations::read(line)).collect()
    }
}

/// Commands of one kind that a process was sent with the same concern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operations {
    /// Name of the process.
    pub member: String,
    /// Name of the command.
    pub command: String,
    /// How many there were.
    pub count: u64,
    /// Their write or read concern, such as `{ "w": "majority" }`; `None` if they had none.
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
    // As Percona Server says it, whose versions have a number of their own behind a dash.
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
