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
    /// Dropped first, because the folder has the server's log.
    server: RunningServer,
    _folder: TempDir,
}

impl TestServer {
    /// Connection string with only the address.
    pub fn uri(&self) -> String {
        format!("mongodb://{}/", self.server.address())
    }

    /// Its address.
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
            // Many tests run in parallel.
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
            Ok(server) => TestServer { server, _folder: folder },
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

/// Path of the embedded server: `DYNO_EMBEDDED_SERVER`, or the project's cache.
///
/// # Errors
/// A [`Skip`] if it does not exist.
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
/// A [`Skip`] if it is not installed.
///
/// # Panics
/// If it is installed and does not start.
pub fn embedded() -> Result<TestServer, Skip> {
    embedded_with(|_| {})
}

/// Like [`embedded`], with options changed by `change`.
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

/// Path of the real `mongod` for tests from `DYNO_TEST_MONGOD`. A `mongod` on `PATH` is not used, because tests should
/// state their version.
///
/// # Errors
/// A [`Skip`] if it does not exist.
pub fn mongod_program() -> Result<PathBuf, Skip> {
    named(
        "DYNO_TEST_MONGOD",
        "no `mongod`",
        "run `make test`, or `dyno server install` and set DYNO_TEST_MONGOD to its path",
    )
}

/// Path of the real `mongos` from `DYNO_TEST_MONGOS`.
///
/// # Errors
/// A [`Skip`] if it does not exist. It is always allowed.
pub fn mongos_program() -> Result<PathBuf, Skip> {
    named("DYNO_TEST_MONGOS", "no `mongos`", "set DYNO_TEST_MONGOS to its path")
}

/// Path of Percona Server's `mongod` from `DYNO_TEST_PERCONA`.
///
/// # Errors
/// A [`Skip`] if it does not exist. It is always allowed.
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
/// A [`Skip`] if it does not exist.
///
/// # Panics
/// If it exists and does not start.
pub fn mongod() -> Result<TestServer, Skip> {
    mongod_with(|_| {})
}

/// Like [`mongod`], with options changed by `change`.
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

/// The program named by a variable. A missing file is an error of the caller, not a reason to skip.
fn named(variable: &str, missing: &str, remedy: &'static str) -> Result<PathBuf, Skip> {
    let path = std::env::var_os(variable).filter(|path| !path.is_empty());
    let path = path.ok_or_else(|| Skip::new(missing, remedy))?;
    let path = std::path::absolute(&path).expect("a path that is not empty");
    assert!(path.is_file(), "{variable} is `{}`, which does not exist", path.display());
    Ok(path)
}
