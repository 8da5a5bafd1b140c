//! `dyno server`: servers that stay after the command that started them, and placements.

use crate::args::{
    ServerArguments, ServerCommand, ServerListArguments, ServerPlanArguments, ServerStartArguments,
    ServerStatusArguments,
};
use crate::commands::install;
use crate::exit::{Exit, Failure};
use crate::messages::print_data;
use crate::session::execute::Hands;
use crate::session::place::Place as Placement;
use crate::session::{lab, preflight, task};
use crate::standing::text::{self, Answer};
use crate::standing::{Place, Standing, Stopped, state, supervisor};
use dyno_plan::Plan;
use dyno_plan::model::ServerKind;
use dyno_report::Format;
use dyno_servers::{Duty, ServerProgram, placement, planned_caches};
use std::fmt::Write as _;
use std::path::Path;

/// Width of a picture that goes into a file.
const FILE_COLUMNS: usize = 80;

/// See the module.
pub(crate) fn server(
    arguments: &ServerArguments,
    state_dir: Option<&Path>,
    hands: Hands<'_>,
) -> Result<Exit, Failure> {
    let folder = || {
        state_dir.ok_or_else(|| {
            Failure::new(Exit::BadInput, "there is no folder for what is kept")
                .with_hint("give `--state-dir`, or set `HOME`")
        })
    };
    match &arguments.command {
        ServerCommand::Plan(arguments) => show(arguments, hands),
        ServerCommand::Start(arguments) => start(arguments, folder()?, hands),
        ServerCommand::Stop(arguments) => stop(&Place::of(folder()?, &arguments.name)?, hands),
        ServerCommand::Status(arguments) => status(arguments, folder()?),
        ServerCommand::List(arguments) if arguments.installed => {
            install::list(arguments.format, hands.surroundings)
        }
        ServerCommand::List(arguments) => list(arguments, folder()?),
        ServerCommand::Install(arguments) => install::install(arguments, hands),
        ServerCommand::Supervise(arguments) => supervisor::supervise(
            &arguments.folder,
            arguments.embedded_server.as_deref(),
            hands,
        ),
    }
}

/// Starts servers that stay.
fn start(
    arguments: &ServerStartArguments,
    state_dir: &Path,
    hands: Hands<'_>,
) -> Result<Exit, Failure> {
    let plan = task::of_server(
        arguments.workload.as_deref(),
        &arguments.start,
        hands.surroundings,
    )?;
    let state_dir = std::path::absolute(state_dir).map_err(|error| {
        Failure::of(Exit::Environment, error).context("cannot use the state folder")
    })?;
    let place = Place::of(&state_dir, &arguments.name)?;
    let lock = place.create()?;
    let embedded = arguments.start.embedded_server.as_deref();
    let started = supervisor::spawn(&place.folder, lock, &plan, embedded, hands);
    match started {
        Ok(Exit::Done) => {}
        failed => {
            // The supervisor has removed everything but its own files.
            let _ = place.remove();
            return failed;
        }
    }
    let Some(Standing::Up(state) | Standing::Degraded(state, _)) = place.look()? else {
        return Err(Failure::new(
            Exit::Environment,
            format!("the deployment `{}` ended at once", place.name),
        ));
    };
    let answers: Vec<Answer> = state.members.iter().map(Answer::of).collect();
    print_data(&match arguments.format {
        Format::Json => text::status_json(&place.name, &state, answers),
        _ => text::status(&place.name, &state, &answers),
    })?;
    let name = &place.name;
    hands.messages.note(&format!(
        "load it with `DYNO_URI=\"$(dyno server status {name} --uri)\" dyno run a`, stop it with `dyno server stop {name}`"
    ));
    Ok(Exit::Done)
}

fn stop(place: &Place, hands: Hands<'_>) -> Result<Exit, Failure> {
    let stopped = place.stop(&|| hands.interrupt.requested())?;
    let name = &place.name;
    hands.messages.note(&match stopped {
        Stopped::Now => format!("`{name}` is stopped"),
        Stopped::Before => format!("`{name}` had ended before; what was left of it is removed"),
    });
    Ok(Exit::Done)
}

fn status(arguments: &ServerStatusArguments, state_dir: &Path) -> Result<Exit, Failure> {
    let place = Place::of(state_dir, &arguments.name)?;
    let name = &place.name;
    let state = match place.look()?.ok_or_else(|| place.unknown())? {
        Standing::Up(state) | Standing::Degraded(state, _) => state,
        Standing::Starting => {
            let text = format!("the deployment `{name}` is being started");
            return Err(Failure::new(Exit::CheckFailed, text));
        }
        Standing::Unreadable(problem) => {
            let text = format!("the deployment `{name}` cannot be read: {problem}");
            return Err(Failure::new(Exit::Environment, text)
                .with_hint(format!("`dyno server stop {name}` ends it")));
        }
        Standing::Gone => {
            let text = format!("the deployment `{name}` has ended");
            return Err(Failure::new(Exit::CheckFailed, text).with_hint(format!(
                "`dyno server stop {name}` removes what is left of it"
            )));
        }
    };
    if arguments.uri {
        print_data(&state::secret_uris(&place.folder)?)?;
        return Ok(Exit::Done);
    }
    let answers: Vec<Answer> = state.members.iter().map(Answer::of).collect();
    let all_answer = answers.iter().all(Answer::is_good);
    print_data(&match arguments.format {
        Format::Json => text::status_json(name, &state, answers),
        _ => text::status(name, &state, &answers),
    })?;
    Ok(match all_answer {
        true => Exit::Done,
        false => Exit::CheckFailed,
    })
}

fn list(arguments: &ServerListArguments, state_dir: &Path) -> Result<Exit, Failure> {
    let mut all = Vec::new();
    for place in Place::all(state_dir)? {
        // It may be stopped at this moment.
        if let Some(standing) = place.look()? {
            all.push((place, standing));
        }
    }
    print_data(&match arguments.format {
        Format::Json => text::list_json(&all),
        _ => text::list(&all),
    })?;
    Ok(Exit::Done)
}

/// Shows where servers and clients would be put, and the cache of each server.
fn show(arguments: &ServerPlanArguments, hands: Hands<'_>) -> Result<Exit, Failure> {
    let plan = task::of_server(
        arguments.workload.as_deref(),
        &arguments.start,
        hands.surroundings,
    )?;
    let Some(place) = Placement::of_plan(&plan)? else {
        return Err(Failure::new(Exit::Internal, "there is nothing to place"));
    };
    let columns = hands.surroundings.columns.unwrap_or(FILE_COLUMNS);
    let mut text = placement::draw(&place.machine, &place.placement, columns);
    text.push_str(&caches(&plan, &place)?);
    print_data(&text)?;
    let embedded = arguments.start.embedded_server.as_deref();
    lab::check(&plan, &preflight::places(embedded, hands), Some(&place))?;
    Ok(Exit::Done)
}

/// The cache of each server, by the rule that a start goes by.
fn caches(plan: &Plan, place: &Placement) -> Result<String, Failure> {
    let program = match plan.server.kind {
        ServerKind::Mongod => ServerProgram::Mongod,
        ServerKind::Auto | ServerKind::Embedded | ServerKind::Uri => ServerProgram::Embedded,
    };
    let topology = lab::topology_of(plan)?;
    let memory = place.memory();
    let caches = planned_caches(
        &topology,
        program,
        plan.server.cache_bytes(),
        memory.as_deref(),
    )?;
    let mut text = String::new();
    for (instance, cache) in caches {
        let name = &instance.name;
        let _ = match (instance.duty, cache) {
            (Duty::Router, _) => Ok(()),
            (_, Some(cache)) => writeln!(text, "cache of `{name}`: {} MiB", cache.0 >> 20),
            (_, None) => writeln!(
                text,
                "cache of `{name}`: the default of {}",
                program.executable()
            ),
        };
    }
    Ok(text)
}
