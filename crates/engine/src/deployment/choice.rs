//! Which server a plan starts: decided once, when a plan is resolved, so that a plan that is carried out names it.

use crate::environment::{Environment, ServerHome};
use crate::error::{Error, Kind};
use dyno_plan::Plan;
use dyno_plan::model::ServerKind;
use dyno_plan::resolve::size_by_cache;
use dyno_servers::{
    EmbeddedSearch, InstalledServers, Mongod, MongodSearch, ServerChoice, ServerError,
    ServerProgram, choose, locate_embedded, locate_mongod, program_version,
};
use std::path::{Path, PathBuf};

/// Puts into a plan which server it starts, and says it with its version; `None` where it starts none here.
///
/// # Errors
/// There is no server that could be started, or the one that is named is not there or cannot be run.
pub fn settle(
    plan: &mut Plan,
    embedded: Option<&Path>,
    environment: &Environment,
) -> Result<Option<String>, Error> {
    let server = settle_kind(plan, embedded, environment)?;
    // The smallest cache is known now.
    size_by_cache(plan);
    Ok(server)
}

fn settle_kind(
    plan: &mut Plan,
    embedded: Option<&Path>,
    environment: &Environment,
) -> Result<Option<String>, Error> {
    let server = &mut plan.server;
    match environment.home {
        ServerHome::Here => {}
        ServerHome::Hosts | ServerHome::Pods => {
            if server.kind == ServerKind::Auto {
                server.kind = match environment.home {
                    ServerHome::Pods => ServerKind::Mongod,
                    ServerHome::Here | ServerHome::Hosts => ServerKind::Embedded,
                };
            }
            return Ok(None);
        }
    }
    let chosen = match server.kind {
        ServerKind::Uri => return Ok(None),
        // A plan can be shown where it is not built; its start says what is missing, and so does a dry run.
        ServerKind::Embedded => match locate_embedded(&embedded_places(embedded, environment)) {
            Ok(program) => ServerChoice::Embedded(program),
            Err(_) => return Ok(None),
        },
        ServerKind::Mongod => ServerChoice::Mongod(mongod(server.mongod.as_deref(), environment)?),
        ServerKind::Auto => with_installed(environment, |installed| {
            choose(
                &mongod_places(environment, installed),
                &embedded_places(embedded, environment),
            )
        })?,
    };
    let (kind, path) = match &chosen {
        ServerChoice::Mongod(found) => {
            server.kind = ServerKind::Mongod;
            server.mongod = Some(found.name.clone());
            (ServerProgram::Mongod, &found.program)
        }
        ServerChoice::Embedded(program) => {
            server.kind = ServerKind::Embedded;
            (ServerProgram::Embedded, program)
        }
    };
    let says = program_version(kind, path)?;
    Ok(Some(format!(
        "`{}` {}, {}",
        kind.executable(),
        says.version,
        path.display()
    )))
}

/// Finds the `mongod` that a key of the plan names, or the one that is used if none is named.
pub fn mongod(text: Option<&str>, environment: &Environment) -> Result<Mongod, Error> {
    let found = with_installed(environment, |installed| {
        locate_mongod(text, &mongod_places(environment, installed))
    });
    found.map_err(Error::from)
}

/// The program of a plan whose kind of server is known.
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

/// Where the embedded server is looked for.
pub fn embedded_places<'a>(
    explicit: Option<&'a Path>,
    environment: &'a Environment,
) -> EmbeddedSearch<'a> {
    EmbeddedSearch {
        explicit,
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

fn with_installed<T>(
    environment: &Environment,
    find: impl FnOnce(&InstalledServers) -> Result<T, ServerError>,
) -> Result<T, ServerError> {
    find(&InstalledServers::new(environment.data_dir.as_deref()))
}

/// Whether a key of the plan decides which server is started.
pub fn decides(key: &str) -> bool {
    matches!(key, "server.kind" | "server.mongod")
}

/// The value of a swept key by which the plan of all runs is settled; `None` where the key does not decide which server is
/// started. A `mongod` goes first: its program is then known for the runs that start one.
pub fn representative<'a>(key: &str, values: &'a [String]) -> Option<&'a String> {
    let is_mongod = |value: &&String| value.as_str() == "mongod";
    values
        .iter()
        .find(|value| key == "server.kind" && is_mongod(value))
        .or_else(|| values.first())
        .filter(|_| decides(key))
}

/// Looks for the servers that the values of a swept key name.
///
/// # Errors
/// One of them is not here, or a value leaves open which server is meant.
pub fn check_values(
    key: &str,
    values: &[String],
    embedded: Option<&Path>,
    environment: &Environment,
) -> Result<(), Error> {
    if key == "server.kind" && values.iter().any(|value| value == "auto") {
        let text = "`server.kind=auto` leaves open which server is swept";
        return Err(Error::new(Kind::BadInput, text).with_hint("name `mongod` or `embedded`"));
    }
    if !decides(key) || environment.home != ServerHome::Here {
        return Ok(());
    }
    for value in values {
        match (key, value.as_str()) {
            // The plan of all runs names it.
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

/// Takes back the program that was found for all runs where one of them starts another kind of server. `named` are the
/// settings of that run.
pub fn reconsider<'a>(plan: &mut Plan, mut named: impl Iterator<Item = &'a str>) {
    let server = &mut plan.server;
    if server.kind != ServerKind::Mongod && !named.any(|key| key == "server.mongod") {
        server.mongod = None;
    }
}
