//! What resolution asks about this machine, and above all which server a plan starts: decided once, so that a plan that is
//! carried out names it.

use crate::exit::{Exit, Failure};
use crate::session::locality;
use crate::surroundings::{ServerHome, Surroundings};
use dyno_plan::Plan;
use dyno_plan::host::{FoundServer, Host, HostError, WantedServer};
use dyno_plan::model::ServerKind;
use dyno_plan::task::chooses_server;
use dyno_servers::{
    Chosen, EmbeddedPlaces, InstalledServers, Mongod, MongodPlaces, ServerError, ServerProgram,
    choose, locate_embedded, locate_mongod, program_version,
};
use std::io;
use std::path::{Path, PathBuf};

impl Host for Surroundings {
    fn cores(&self) -> u32 {
        self.cores
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
        match (self.home, wanted.kind) {
            (ServerHome::Here, _) => Ok(find(wanted, self)?),
            (ServerHome::Hosts, ServerKind::Auto) => Ok(FoundServer::unseen(ServerKind::Embedded)),
            (ServerHome::Pods, ServerKind::Auto) => Ok(FoundServer::unseen(ServerKind::Mongod)),
            (ServerHome::Hosts | ServerHome::Pods, kind) => Ok(FoundServer::unseen(kind)),
        }
    }
}

/// Finds a server on this machine, and asks it for its version.
fn find(
    wanted: &WantedServer<'_>,
    surroundings: &Surroundings,
) -> Result<FoundServer, ServerError> {
    let named = surroundings.embedded_server.as_deref();
    let embedded = embedded_places(wanted.embedded.or(named), surroundings);
    let chosen = match wanted.kind {
        ServerKind::Embedded => match locate_embedded(&embedded) {
            Ok(program) => Chosen::Embedded(program),
            // A plan can be shown where it is not built; its start says what is missing, and so does a dry run.
            Err(_) => return Ok(FoundServer::unseen(ServerKind::Embedded)),
        },
        ServerKind::Mongod | ServerKind::Uri => with_installed(surroundings, |installed| {
            locate_mongod(wanted.mongod, &mongod_places(surroundings, installed))
        })
        .map(Chosen::Mongod)?,
        ServerKind::Auto => with_installed(surroundings, |installed| {
            choose(&mongod_places(surroundings, installed), &embedded)
        })?,
    };
    let (kind, program, path, mongod) = match chosen {
        Chosen::Mongod(found) => (
            ServerKind::Mongod,
            ServerProgram::Mongod,
            found.program,
            Some(found.name),
        ),
        Chosen::Embedded(path) => (ServerKind::Embedded, ServerProgram::Embedded, path, None),
    };
    let version = program_version(program, &path)?.version;
    let description = format!("`{}` {version}, {}", program.executable(), path.display());
    Ok(FoundServer {
        kind,
        mongod,
        description: Some(description),
    })
}

/// Finds the `mongod` that a key of the plan names, or the one that is used if none is named.
pub(crate) fn mongod(text: Option<&str>, surroundings: &Surroundings) -> Result<Mongod, Failure> {
    let found = with_installed(surroundings, |installed| {
        locate_mongod(text, &mongod_places(surroundings, installed))
    });
    found.map_err(Failure::from)
}

/// The program of a plan whose kind of server is known.
pub(crate) fn program(
    plan: &Plan,
    embedded: Option<&Path>,
    surroundings: &Surroundings,
) -> Result<PathBuf, Failure> {
    Ok(match plan.server.kind {
        ServerKind::Mongod => mongod(plan.server.mongod.as_deref(), surroundings)?.program,
        ServerKind::Auto | ServerKind::Embedded | ServerKind::Uri => {
            locate_embedded(&embedded_places(embedded, surroundings))?
        }
    })
}

/// Where the embedded server is looked for.
pub(crate) fn embedded_places<'a>(
    explicit: Option<&'a Path>,
    surroundings: &'a Surroundings,
) -> EmbeddedPlaces<'a> {
    EmbeddedPlaces {
        explicit,
        executable_dir: surroundings.executable.as_deref().and_then(Path::parent),
        path_variable: surroundings.path.as_deref(),
    }
}

fn mongod_places<'a>(
    surroundings: &'a Surroundings,
    installed: &'a InstalledServers,
) -> MongodPlaces<'a> {
    MongodPlaces {
        named: surroundings.mongod.as_deref(),
        path_variable: surroundings.path.as_deref(),
        installed: Some(installed),
    }
}

fn with_installed<T>(
    surroundings: &Surroundings,
    find: impl FnOnce(&InstalledServers) -> Result<T, ServerError>,
) -> Result<T, ServerError> {
    find(&InstalledServers::of(surroundings.data_dir.as_deref()))
}

/// The value of a swept key by which the plan of all runs is settled; `None` where the key does not decide which server is
/// started. A `mongod` goes first: its program is then known for the runs that start one.
pub(crate) fn representative<'a>(key: &str, values: &'a [String]) -> Option<&'a String> {
    let is_mongod = |value: &&String| value.as_str() == "mongod";
    values
        .iter()
        .find(|value| key == "server.kind" && is_mongod(value))
        .or_else(|| values.first())
        .filter(|_| chooses_server(key))
}

/// Looks for the servers that the values of a swept key name.
///
/// # Errors
/// One of them is not here, or a value leaves open which server is meant.
pub(crate) fn check_values(
    key: &str,
    values: &[String],
    embedded: Option<&Path>,
    surroundings: &Surroundings,
) -> Result<(), Failure> {
    if key == "server.kind" && values.iter().any(|value| value == "auto") {
        let text = "`server.kind=auto` leaves open which server is swept";
        return Err(Failure::new(Exit::BadInput, text).with_hint("name `mongod` or `embedded`"));
    }
    if !chooses_server(key) || surroundings.home != ServerHome::Here {
        return Ok(());
    }
    for value in values {
        match (key, value.as_str()) {
            // The plan of all runs names it.
            ("server.kind", "mongod") => {}
            ("server.kind", "embedded") => {
                locate_embedded(&embedded_places(embedded, surroundings))?;
            }
            ("server.kind", _) => {}
            (_, program) => drop(mongod(Some(program), surroundings)?),
        }
    }
    Ok(())
}
