//! One file per command, which connects its arguments to the engine and returns an exit code.

pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod doctor;
mod doctor_text;
pub(crate) mod experiments;
pub(crate) mod export;
pub(crate) mod fleet;
pub(crate) mod history;
pub(crate) mod index_build;
pub(crate) mod install;
pub(crate) mod load;
pub(crate) mod man;
mod pictures;
pub(crate) mod report;
pub(crate) mod responder;
pub(crate) mod run;
pub(crate) mod selfcheck;
mod selfcheck_text;
pub(crate) mod server;
mod server_text;
pub(crate) mod soak;
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
use dyno_engine::{Error, Kind};
use jiff::Timestamp;
use std::process::ExitCode;
use std::time::SystemTime;
use tracing::Level;

/// Executes the command.
pub(crate) fn dispatch(
    arguments: Arguments,
    mut surroundings: Surroundings,
    messages: Messages,
) -> Result<Exit, Error> {
    interrupt::let_large_writes_fail();
    check_clock(SystemTime::now())?;
    if let Some(folder) = arguments.common.state_dir {
        surroundings.environment.state_dir = Some(folder);
    }
    let surroundings = &surroundings;
    let state_dir = surroundings.environment.state_dir.as_deref();
    let measuring = match arguments.command {
        Command::Report(report) => return report::report(&report, surroundings, messages),
        Command::Export(export) => return export::export(&export, messages),
        Command::Compare(compare) => return compare::compare(&compare, surroundings, messages),
        Command::History(history) => return history::history(&history, surroundings, messages),
        Command::Completions(completions) => return completions::completions(&completions),
        Command::Man(man) => return man::man(&man, messages),
        Command::Status(status) => return status::status(&status, state_dir),
        Command::Stop(stop) => return stop::stop(&stop, state_dir, messages),
        Command::Doctor(doctor) => return doctor::doctor(&doctor, surroundings, messages),
        measuring => measuring,
    };
    let cancel = interrupt::install()?;
    let invocation = Invocation { surroundings, cancel: &cancel, messages, source: None };
    match measuring {
        Command::Run(run) => run::run(&run, invocation),
        Command::Soak(soak) => soak::soak(&soak, invocation),
        Command::Load(load) => load::load(&load, invocation),
        Command::Ycsb(ycsb) => ycsb::ycsb(&ycsb, invocation),
        Command::Selfcheck(selfcheck) => selfcheck::selfcheck(&selfcheck, invocation),
        Command::Sweep(sweep) => experiments::sweep(&sweep, invocation),
        Command::Xmax(xmax) => experiments::xmax(&xmax, invocation),
        Command::Slo(slo) => experiments::slo(&slo, invocation),
        Command::Ab(ab) => experiments::ab(&ab, invocation),
        Command::Tune(tune) => experiments::tune(&tune, invocation),
        Command::Resume(resume) => experiments::resume(&resume, invocation),
        Command::Fleet(fleet) => fleet::fleet(&fleet, invocation),
        Command::Agent(agent) => fleet::agent(&agent, invocation),
        Command::Trace(trace) => trace::trace(&trace, invocation),
        Command::IndexBuild(build) => index_build::index_build(&build, invocation),
        Command::Tail(arguments) => tail::tail(&arguments, invocation),
        Command::Server(arguments) => server::server(&arguments, invocation),
        Command::Responder(responder) => responder::responder(&responder, &cancel),
        Command::Report(_)
        | Command::Export(_)
        | Command::Compare(_)
        | Command::History(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Status(_)
        | Command::Stop(_)
        | Command::Doctor(_) => unreachable!("handled above"),
    }
}

/// Refuses a clock with times that cannot be formatted.
fn check_clock(now: SystemTime) -> Result<(), Error> {
    match Timestamp::try_from(now) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::from_cause(Kind::Environment, error)
            .context("cannot use the clock of this machine")
            .with_hint("set the clock of this machine")),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn clock_beyond_the_year_9999_is_refused() {
        assert!(check_clock(SystemTime::UNIX_EPOCH).is_ok());
        let late = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_800);
        assert_eq!(check_clock(late).unwrap_err().kind, Kind::Environment);
    }
}
