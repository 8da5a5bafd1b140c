//! One server on a free port in a temporary folder, stopped and removed on drop: the embedded server or a real `mongod`.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

use dyno_plan::model::{ServerKind, ServerPlan};
use dyno_plan::units::CacheSize;
use dyno_servers::{DataDir, EmbeddedSearch, RunningServer, ServerOptions, locate_embedded, start};
use tempfile::TempDir;

use crate::{Skip, project_dir};

/// A running server. Use it as a [`RunningServer`].
#[derive(Debug)]
pub struct TestServer {
    /// Dropped first: the log of the server is in the folder.
    server: RunningServer,
    _folder: TempDir,
}

impl TestServer {
    /// Connection string with the address alone.
    pub fn uri(&self) -> String {
        format!("mongodb://{}/", self.server.address())
    }

    /// Where it accepts connections.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    fn start(
        kind: ServerKind,
        program: PathBuf,
        change: impl FnOnce(&mut ServerOptions),
    ) -> TestServer {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let plan = ServerPlan {
            kind,
            // Many tests run at once.
            cache: Some(CacheSize::Smallest),
            ..ServerPlan::default()
        };
        let mut options = ServerOptions::from_plan(
            &plan,
            program,
            DataDir::Temporary(folder.path().join("data")),
            folder.path().join("server.log"),
        )
        .expect("a plan with a kind of server starts one");
        change(&mut options);
        match start(&options, &|| false) {
            Ok(server) => TestServer {
                server,
                _folder: folder,
            },
            Err(error) => panic!("the server does not start: {error:?}"),
        }
    }
}

impl Deref for TestServer {
    type Target = RunningServer;

    fn deref(&self) -> &RunningServer {
        &self.server
    }
}

impl DerefMut for TestServer {
    fn deref_mut(&mut self) -> &mut RunningServer {
        &mut self.server
    }
}

/// Path of the embedded server: `DYNO_EMBEDDED_SERVER`, else the cache of the project.
///
/// # Errors
/// A [`Skip`] when it is not there.
pub fn embedded_program() -> Result<PathBuf, Skip> {
    let named = std::env::var_os("DYNO_EMBEDDED_SERVER").map(PathBuf::from);
    locate_embedded(&EmbeddedSearch {
        explicit: named.as_deref(),
        executable_dir: Some(&project_dir()),
        path_variable: None,
    })
    .map_err(|error| Skip::new(error.to_string(), "run `scripts/setup.sh embedded`"))
}

/// Starts the embedded server with a cache of 64 MiB.
///
/// # Errors
/// A [`Skip`] when it is not installed.
///
/// # Panics
/// When it is installed and does not start.
pub fn embedded() -> Result<TestServer, Skip> {
    embedded_with(|_| {})
}

/// As [`embedded`], with options that `change` has altered.
///
/// # Errors
/// As for [`embedded`].
///
/// # Panics
/// As for [`embedded`].
pub fn embedded_with(change: impl FnOnce(&mut ServerOptions)) -> Result<TestServer, Skip> {
    let program = embedded_program()?;
    Ok(TestServer::start(ServerKind::Embedded, program, change))
}

/// Path of the real `mongod` for tests, which `DYNO_TEST_MONGOD` names. One that merely happens to be on `PATH` is not
/// taken: tests say on which version they ran.
///
/// # Errors
/// A [`Skip`] when it is not there.
pub fn mongod_program() -> Result<PathBuf, Skip> {
    named(
        "DYNO_TEST_MONGOD",
        "no `mongod`",
        "run `make test`, or `dyno server install` and set DYNO_TEST_MONGOD to its path",
    )
}

/// Path of the real `mongos`, which `DYNO_TEST_MONGOS` names.
///
/// # Errors
/// A [`Skip`] when it is not there. It is always allowed.
pub fn mongos_program() -> Result<PathBuf, Skip> {
    named(
        "DYNO_TEST_MONGOS",
        "no `mongos`",
        "set DYNO_TEST_MONGOS to its path",
    )
}

/// Path of the `mongod` of Percona Server, which `DYNO_TEST_PERCONA` names.
///
/// # Errors
/// A [`Skip`] when it is not there. It is always allowed.
pub fn percona_program() -> Result<PathBuf, Skip> {
    named(
        "DYNO_TEST_PERCONA",
        "no Percona Server",
        "set DYNO_TEST_PERCONA to the path of its `mongod`",
    )
}

/// Starts a real `mongod` with a cache of 256 MiB.
///
/// # Errors
/// A [`Skip`] when there is none.
///
/// # Panics
/// When there is one and it does not start.
pub fn mongod() -> Result<TestServer, Skip> {
    mongod_with(|_| {})
}

/// As [`mongod`], with options that `change` has altered.
///
/// # Errors
/// As for [`mongod`].
///
/// # Panics
/// As for [`mongod`].
pub fn mongod_with(change: impl FnOnce(&mut ServerOptions)) -> Result<TestServer, Skip> {
    let program = mongod_program()?;
    Ok(TestServer::start(ServerKind::Mongod, program, change))
}

/// The program that a variable names. One that is named and is not there is an error of the caller, not a reason to skip.
fn named(variable: &str, missing: &str, remedy: &'static str) -> Result<PathBuf, Skip> {
    let path = std::env::var_os(variable).filter(|path| !path.is_empty());
    let path = path.ok_or_else(|| Skip::new(missing, remedy))?;
    let path = std::path::absolute(&path).expect("a path that is not empty");
    assert!(
        path.is_file(),
        "{variable} is `{}`, where no file is",
        path.display()
    );
    Ok(path)
}
