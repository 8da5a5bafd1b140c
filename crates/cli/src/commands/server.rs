//! `dyno server`: long-lived servers and placements.

use crate::args::servers::{
    ServerArguments, ServerCommand, ServerListArguments, ServerPlanArguments, ServerStartArguments,
    ServerStatusArguments,
};
use crate::commands::install;
use crate::commands::server_text::{self as text, Answer, Shown};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::messages::{DataFormat, print_data};
use crate::supervisor;
use crate::task;
use dyno_engine::deployment::placement::HostPlacement;
use dyno_engine::detached::state::{self, State};
use dyno_engine::detached::{DetachedDeployment, Status, Stopped};
use dyno_engine::run::preflight;
use dyno_engine::{Error, Kind, OrFault, deployment};
use dyno_plan::Plan;
use dyno_plan::model::ServerKind;
use dyno_plan::strangers;
use dyno_servers::{InstanceKind, ServerProgram, placement, planned_caches};
use std::fmt::Write as _;
use std::path::Path;

/// Width of a picture in a file.
const FILE_COLUMNS: usize = 80;

/// Executes `dyno server`.
pub(crate) fn server(
    arguments: &ServerArguments,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let state_dir = invocation.environment().state_dir.as_deref();
    let folder = || {
        state_dir.ok_or_else(|| {
            Error::new(Kind::BadInput, "the state folder is not set")
                .with_hint("pass `--state-dir`, or set `HOME`")
        })
    };
    match &arguments.command {
        ServerCommand::Plan(arguments) => show(arguments, invocation),
        ServerCommand::Start(arguments) => start(arguments, folder()?, invocation),
        ServerCommand::Stop(arguments) => {
            stop(&DetachedDeployment::of(folder()?, &arguments.name)?, invocation)
        }
        ServerCommand::Status(arguments) => status(arguments, folder()?),
        ServerCommand::List(arguments) if arguments.installed => {
            install::list(arguments.format, invocation.surroundings)
        }
        ServerCommand::List(arguments) => list(arguments, folder()?),
        ServerCommand::Install(arguments) => install::install(arguments, invocation),
        ServerCommand::Supervise(arguments) => supervisor::supervise(
            &arguments.folder,
            arguments.embedded_server.as_deref(),
            invocation,
        ),
    }
}

/// Starts long-lived servers.
fn start(
    arguments: &ServerStartArguments,
    state_dir: &Path,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let plan =
        task::of_server(arguments.workload.as_deref(), &arguments.start, invocation.surroundings)?;
    if !plan.server.runtime_parameters.is_empty() {
        let text = "`server.runtime_parameters` apply only during a run";
        return Err(Error::new(Kind::BadInput, text)
            .with_hint("use `server.parameters`, which are set at the start of a server"));
    }
    if !plan.server.host_settings.is_empty() {
        let text = "`server.host_settings` apply only during a run";
        return Err(Error::new(Kind::BadInput, text)
            .with_hint("use `dyno doctor --apply` for lasting settings"));
    }
    let state_dir = std::path::absolute(state_dir)
        .or_fault(Kind::Environment, || "cannot use the state folder")?;
    let place = DetachedDeployment::of(&state_dir, &arguments.name)?;
    if let Some(warning) = strangers::warning(&plan.server) {
        invocation.messages.warning(&warning);
    }
    let lock = place.create()?;
    let embedded = arguments.start.embedded_server.as_deref();
    let started = supervisor::spawn(&place.folder, lock, &plan, embedded, invocation);
    match started {
        Ok(Exit::Done) => {}
        failed => {
            // The supervisor has removed everything except its own files.
            let _ = place.remove();
            return failed;
        }
    }
    let Some(Status::Up(state) | Status::Degraded(state, _)) = place.look()? else {
        return Err(Error::new(
            Kind::Environment,
            format!("the deployment `{}` ended immediately", place.name),
        ));
    };
    let name = &place.name;
    print_status(name, &state, arguments.format)?;
    invocation.messages.note(&format!(
        "to load it: DYNO_URI=\"$(dyno server status {name} --uri)\" dyno run a\nto stop it: dyno server stop {name}"
    ));
    Ok(Exit::Done)
}

fn stop(place: &DetachedDeployment, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let stopped = place.stop(&|| invocation.cancel.requested())?;
    let name = &place.name;
    invocation.messages.note(&match stopped {
        Stopped::Now => format!("`{name}` is stopped"),
        Stopped::Before => format!("`{name}` had ended before; removed its files"),
    });
    Ok(Exit::Done)
}

fn status(arguments: &ServerStatusArguments, state_dir: &Path) -> Result<Exit, Error> {
    let place = DetachedDeployment::of(state_dir, &arguments.name)?;
    let name = &place.name;
    let state = match place.look()?.ok_or_else(|| place.unknown())? {
        Status::Up(state) | Status::Degraded(state, _) => state,
        Status::Starting => {
            let text = format!("the deployment `{name}` is still starting");
            return Err(Error::new(Kind::CheckFailed, text));
        }
        Status::Unreadable(problem) => {
            let text = format!("cannot read the deployment `{name}`: {problem}");
            return Err(Error::new(Kind::Environment, text)
                .with_hint(format!("stop it with `dyno server stop {name}`")));
        }
        Status::Gone => {
            let text = format!("the deployment `{name}` has ended");
            return Err(Error::new(Kind::CheckFailed, text)
                .with_hint(format!("remove its files with `dyno server stop {name}`")));
        }
    };
    if arguments.uri {
        print_data(&state::secret_uris(&place.folder)?)?;
        return Ok(Exit::Done);
    }
    print_status(name, &state, arguments.format)
}

/// Asks all servers, and prints their deployment.
fn print_status(name: &str, state: &State, format: DataFormat) -> Result<Exit, Error> {
    let answers = state.members.iter().map(Answer::of).collect();
    let shown = Shown { name, state, answers };
    format.print(&shown, text::status)?;
    Ok(Exit::of_check(shown.answers.iter().all(Answer::is_good)))
}

fn list(arguments: &ServerListArguments, state_dir: &Path) -> Result<Exit, Error> {
    let mut all = Vec::new();
    for place in DetachedDeployment::all(state_dir)? {
        // A deployment may be stopped at this moment.
        if let Some(standing) = place.look()? {
            all.push((place, standing));
        }
    }
    let listed: Vec<_> = all.iter().map(text::listed).collect();
    arguments.format.print(listed.as_slice(), text::list)?;
    Ok(Exit::Done)
}

/// Shows the planned placement of servers and clients, and the cache of each server.
fn show(arguments: &ServerPlanArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let plan =
        task::of_server(arguments.workload.as_deref(), &arguments.start, invocation.surroundings)?;
    let Some(place) = HostPlacement::from_plan(&plan)? else {
        return Err(Error::new(Kind::Internal, "the plan does not have a placement"));
    };
    let columns = invocation.surroundings.columns.unwrap_or(FILE_COLUMNS);
    let mut text = placement::draw(&place.machine, &place.placement, columns);
    text.push_str(&caches(&plan, &place)?);
    print_data(&text)?;
    let embedded = arguments.start.embedded_server.as_deref();
    deployment::check(&plan, &preflight::paths(embedded, invocation.environment()), Some(&place))?;
    Ok(Exit::Done)
}

/// Formats the cache of each server, by the same rule as a start.
fn caches(plan: &Plan, place: &HostPlacement) -> Result<String, Error> {
    let program = match plan.server.kind {
        ServerKind::Mongod => ServerProgram::Mongod,
        ServerKind::Auto | ServerKind::Embedded | ServerKind::Uri => ServerProgram::Embedded,
    };
    let topology = deployment::topology_of(plan)?;
    let memory = place.memory();
    let caches = planned_caches(&topology, program, plan.server.cache_bytes(), memory.as_deref())?;
    let mut text = String::new();
    for (instance, cache) in caches {
        let name = &instance.name;
        let _ = match (instance.kind, cache) {
            (InstanceKind::Router, _) => Ok(()),
            (_, Some(cache)) => writeln!(text, "cache of `{name}`: {} MiB", cache.0 >> 20),
            (_, None) => {
                writeln!(text, "cache of `{name}`: the default of {}", program.executable())
            }
        };
    }
    Ok(text)
}
