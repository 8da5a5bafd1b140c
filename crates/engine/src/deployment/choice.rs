//! Chooses the server that a plan starts. This happens once, when the plan is resolved, so that the
//! resolved plan names the server.

use crate::deployment::locality;
use crate::environment::{Environment, ServerHome};
use crate::error::{Error, refuse};
use dyno_plan::Plan;
use dyno_plan::host::{FoundServer, Host, HostError, WantedServer};
use dyno_plan::model::ServerKind;
use dyno_plan::task::chooses_server;
use dyno_servers::{
    EmbeddedSearch, InstalledServers, Mongod, MongodSearch, ServerChoice, ServerError,
    ServerProgram, choose, locate_embedded, locate_mongod, program_version,
};
use std::io;
use std::path::{Path, PathBuf};

/// Resolves plans for this machine and its servers.
impl Host for Environment {
    fn cores(&self) -> u32 {
        self.cores.max(1)
    }

    fn hostname(&self) -> Option<&str> {
        self.hostname.as_deref()
    }

    fn folder(&self) -> io::Result<PathBuf> {
        std::env::current_dir()
    }

    fn is_tunnel(&self, port: u16) -> bool {
        locality::is_tunnel(port)
    }

    fn server(&self, wanted: &WantedServer<'_>) -> Result<FoundServer, HostError> {
        Ok(find(wanted, self)?)
    }
}

/// Finds the wanted server where servers are started. Asks a program on this machine for its
/// version, and accepts others unseen.
///
/// # Errors
/// No server can be started, or the named one is missing or cannot be run.
pub fn find(
    wanted: &WantedServer<'_>,
    environment: &Environment,
) -> Result<FoundServer, ServerError> {
    match (environment.home, wanted.kind) {
        (ServerHome::Here, _) => find_here(wanted, environment),
        (ServerHome::Hosts, ServerKind::Auto) => Ok(FoundServer::unseen(ServerKind::Embedded)),
        (ServerHome::Pods, ServerKind::Auto) => Ok(FoundServer::unseen(ServerKind::Mongod)),
        (ServerHome::Hosts | ServerHome::Pods, kind) => Ok(FoundServer::unseen(kind)),
    }
}

fn find_here(
    wanted: &WantedServer<'_>,
    environment: &Environment,
) -> Result<FoundServer, ServerError> {
    let embedded = embedded_places(wanted.embedded, environment);
    let installed = InstalledServers::new(environment.data_dir.as_deref());
    let mongods = mongod_places(environment, &installed);
    let chosen = match wanted.kind {
        ServerKind::Embedded => match locate_embedded(&embedded) {
            Ok(program) => ServerChoice::Embedded(program),
            // A plan can be shown without a built server; its start and a dry run report what is
            // missing.
            Err(_) => return Ok(FoundServer::unseen(ServerKind::Embedded)),
        },
        ServerKind::Mongod | ServerKind::Uri => {
            ServerChoice::Mongod(locate_mongod(wanted.mongod, &mongods)?)
        }
        ServerKind::Auto => choose(&mongods, &embedded)?,
    };
    let (kind, program, path, mongod) = match chosen {
        ServerChoice::Mongod(found) => {
            (ServerKind::Mongod, ServerProgram::Mongod, found.program, Some(found.name))
        }
        ServerChoice::Embedded(path) => (ServerKind::Embedded, ServerProgram::Embedded, path, None),
    };
    let version = program_version(program, &path)?.version;
    let description = format!("`{}` {version}, {}", program.executable(), path.display());
    Ok(FoundServer { kind, mongod, description: Some(description) })
}

/// Finds the `mongod` that a key of the plan names, or the default one.
pub fn mongod(text: Option<&str>, environment: &Environment) -> Result<Mongod, Error> {
    let installed = InstalledServers::new(environment.data_dir.as_deref());
    Ok(locate_mongod(text, &mongod_places(environment, &installed))?)
}

/// Program of a plan with a known kind of server.
pub fn program(
    plan: &Plan,
    embedded: Option<&Path>,
    environment: &Environment,
) -> Result<PathBuf, Error> {
    Ok(match plan.server.kind {
        ServerKind::Mongod => mongod(plan.server.mongod.as_deref(), environment)?.program,
        ServerKind::Auto | ServerKind::Embedded | ServerKind::Uri => {
            locate_embedded(&embedded_places(embedded, environment))?
        }
    })
}

/// Paths to search for the embedded server.
pub fn embedded_places<'a>(
    explicit: Option<&'a Path>,
    environment: &'a Environment,
) -> EmbeddedSearch<'a> {
    EmbeddedSearch {
        explicit: explicit.or(environment.embedded_server.as_deref()),
        executable_dir: environment.executable.as_deref().and_then(Path::parent),
        path_variable: environment.path.as_deref(),
    }
}

fn mongod_places<'a>(
    environment: &'a Environment,
    installed: &'a InstalledServers,
) -> MongodSearch<'a> {
    MongodSearch {
        named: environment.mongod.as_deref(),
        path_variable: environment.path.as_deref(),
        installed: Some(installed),
    }
}

/// The value of a swept key that resolves the common plan; `None` if the key does not choose a
/// server. Prefers `mongod`, because the runs that start it then know its program.
pub fn representative<'a>(key: &str, values: &'a [String]) -> Option<&'a String> {
    let is_mongod = |value: &&String| value.as_str() == "mongod";
    values
        .iter()
        .find(|value| key == "server.kind" && is_mongod(value))
        .or_else(|| values.first())
        .filter(|_| chooses_server(key))
}

/// Checks that the servers named by the values of a swept key exist.
///
/// # Errors
/// A server is missing, or a value leaves the server open.
pub fn check_values(
    key: &str,
    values: &[String],
    embedded: Option<&Path>,
    environment: &Environment,
) -> Result<(), Error> {
    if key == "server.kind" && values.iter().any(|value| value == "auto") {
        let text = "`server.kind=auto` leaves open which server is swept";
        return refuse(text, "name `mongod` or `embedded`");
    }
    if !chooses_server(key) || environment.home != ServerHome::Here {
        return Ok(());
    }
    for value in values {
        match (key, value.as_str()) {
            // The common plan names it.
            ("server.kind", "mongod") => {}
            ("server.kind", "embedded") => {
                locate_embedded(&embedded_places(embedded, environment))?;
            }
            ("server.kind", _) => {}
            (_, program) => drop(mongod(Some(program), environment)?),
        }
    }
    Ok(())
}
