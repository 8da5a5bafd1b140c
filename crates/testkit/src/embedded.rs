//! The embedded server on a free port in a temporary folder, stopped and removed on drop.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

use dyno_plan::model::{ServerKind, ServerPlan};
use dyno_servers::{DataDir, EmbeddedPlaces, RunningServer, ServerOptions, locate_embedded, start};
use tempfile::TempDir;

use crate::{Skip, project_dir};

/// A running embedded server. Use it as a [`RunningServer`].
#[derive(Debug)]
pub struct EmbeddedServer {
    /// Dropped first: the log of the server is in the folder.
    server: RunningServer,
    _folder: TempDir,
}

impl EmbeddedServer {
    /// Connection string with the address alone.
    pub fn uri(&self) -> String {
        format!("mongodb://{}/", self.server.address())
    }

    /// Where it accepts connections.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }
}

impl Deref for EmbeddedServer {
    type Target = RunningServer;

    fn deref(&self) -> &RunningServer {
        &self.server
    }
}

impl DerefMut for EmbeddedServer {
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
    locate_embedded(&EmbeddedPlaces {
        explicit: named.as_deref(),
        executable_dir: Some(&project_dir()),
        path_variable: None,
    })
    .map_err(|error| Skip::new(error.to_string(), "run `scripts/setup.sh`"))
}

/// Starts the embedded server with a cache of 64 MiB.
///
/// # Errors
/// A [`Skip`] when it is not installed.
///
/// # Panics
/// When it is installed and does not start.
pub fn embedded() -> Result<EmbeddedServer, Skip> {
    embedded_with(|_| {})
}

/// As [`embedded`], with options that `change` has altered.
///
/// # Errors
/// As for [`embedded`].
///
/// # Panics
/// As for [`embedded`].
pub fn embedded_with(change: impl FnOnce(&mut ServerOptions)) -> Result<EmbeddedServer, Skip> {
    let program = embedded_program()?;
    let folder = TempDir::new().expect("a temporary folder can be made");
    let mut options = ServerOptions::from_plan(
        &ServerPlan {
            kind: ServerKind::Embedded,
            ..ServerPlan::default()
        },
        program,
        DataDir::Temporary(folder.path().join("data")),
        folder.path().join("server.log"),
    )
    .expect("the default plan starts the embedded server");
    options.cache = Some(dyno_plan::units::Bytes(64 << 20));
    change(&mut options);
    match start(&options, &|| false) {
        Ok(server) => Ok(EmbeddedServer {
            server,
            _folder: folder,
        }),
        Err(error) => panic!("the embedded server does not start: {error:?}"),
    }
}
