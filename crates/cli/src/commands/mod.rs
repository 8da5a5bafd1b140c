//! One file per command, which connects its arguments to the engine and returns an exit code.

pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod experiments;
pub(crate) mod export;
pub(crate) mod fleet;
pub(crate) mod history;
pub(crate) mod index_build;
pub(crate) mod install;
mod limits;
pub(crate) mod man;
mod pictures;
pub(crate) mod report;
pub(crate) mod responder;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod selfcheck;
pub(crate) mod server;
mod server_text;
pub(crate) mod status;
pub(crate) mod stop;
mod suite;
pub(crate) mod tail;
pub(crate) mod trace;
pub(crate) mod ycsb;

use crate::args::{Arguments, Command};
use crate::exit::Exit;
use crate::interrupt;
use crate::invocation::Invocation;
use crate::messages::{self, Messages};
use crate::surroundings::Surroundings;
use clap::error::ErrorKind;
use dyno_engine::{Cancel, Error};
use std::process::ExitCode;
use tracing::Level;

/// Executes the command.
pub(crate) fn dispatch(
    arguments: Arguments,
    mut surroundings: Surroundings,
    messages: Messages,
) -> Result<Exit, Error> {
    interrupt::let_large_writes_fail();
    if let Some(folder) = arguments.common.state_dir {
        surroundings.environment.state_dir = Some(folder);
    }
    let command = arguments.command;
    let cancel =
        if ends_at_first_signal(&command) { Cancel::default() } else { interrupt::install()? };
    let invocation =
        Invocation { surroundings: &surroundings, cancel: &cancel, messages, source: None };
    match execute(&command, invocation) {
        Err(failure) if install::is_wanted(&failure, &surroundings) => {
            install::install_default(invocation)?;
            execute(&command, invocation)
        }
        result => result,
    }
}

fn execute(command: &Command, invocation: Invocation<'_>) -> Result<Exit, Error> {
    match command {
        Command::Run(run) => run::run(run, invocation),
        Command::Soak(soak) => run::soak(soak, invocation),
        Command::Load(load) => run::load(load, invocation),
        Command::Ycsb(ycsb) => ycsb::ycsb(ycsb, invocation),
        Command::Selfcheck(selfcheck) => selfcheck::selfcheck(selfcheck, invocation),
        Command::Experiment(command) => experiments::execute(command, |_, verb| verb(invocation)),
        Command::Fleet(fleet) => fleet::fleet(fleet, invocation),
        Command::Agent(agent) => fleet::agent(agent, invocation),
        Command::Trace(trace) => trace::trace(trace, invocation),
        Command::IndexBuild(build) => index_build::index_build(build, invocation),
        Command::Tail(arguments) => tail::tail(arguments, invocation),
        Command::Server(arguments) => server::server(arguments, invocation),
        Command::Responder(responder) => responder::responder(responder, invocation.cancel),
        Command::Runs(runs) => runs::runs(runs, invocation),
        Command::Report(report) => report::report(report, invocation),
        Command::Export(export) => export::export(export, invocation.messages),
        Command::Compare(compare) => compare::compare(compare, invocation),
        Command::History(history) => history::history(history, invocation),
        Command::Completions(completions) => man::completions(completions),
        Command::Man(man) => man::man(man, invocation.messages),
        Command::Status(status) => status::status(status, invocation),
        Command::Stop(stop) => stop::stop(stop, invocation),
        Command::Doctor(doctor) => doctor::doctor(doctor, invocation),
    }
}

/// Whether a signal may end a command at any time, because it has nothing to save or to stop.
fn ends_at_first_signal(command: &Command) -> bool {
    use Command::{Compare, Completions, Doctor, Export, History, Man, Report, Runs, Status, Stop};
    matches!(
        command,
        Compare(_)
            | Completions(_)
            | Doctor(_)
            | Export(_)
            | History(_)
            | Man(_)
            | Report(_)
            | Runs(_)
            | Status(_)
            | Stop(_)
    )
}

/// Prints the result of a failed parse: help and version are data, everything else is an error.
pub(crate) fn parse_end(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed stream does not change the exit code.
            let _ = error.print();
            Exit::Done.into()
        }
        _ => {
            // The error quotes the arguments, which may include a misplaced connection string.
            messages::print_error(&error.render().to_string());
            Exit::BadInput.into()
        }
    }
}

/// Sends the log of libraries to standard error: warnings, or more with `--verbose`.
pub(crate) fn start_log(messages: Messages, verbose: bool) {
    let level = match (messages.quiet(), verbose) {
        (true, _) => Level::ERROR,
        (false, false) => Level::WARN,
        (false, true) => Level::DEBUG,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(|| messages::Log)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .init();
}
