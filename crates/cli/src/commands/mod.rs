//! One file per command, each from its arguments to an exit code: wiring only.

pub(crate) mod ab;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod fleet;
pub(crate) mod history;
pub(crate) mod index_build;
pub(crate) mod install;
pub(crate) mod load;
pub(crate) mod man;
pub(crate) mod report;
pub(crate) mod responder;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod selfcheck;
pub(crate) mod server;
pub(crate) mod slo;
pub(crate) mod soak;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod sweep;
pub(crate) mod tail;
pub(crate) mod trace;
pub(crate) mod xmax;
pub(crate) mod ycsb;

use crate::args::{Arguments, Command};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::messages::Messages;
use crate::session::execute::Hands;
use crate::surroundings::Surroundings;
use clap::error::ErrorKind;
use std::process::ExitCode;
use tracing::Level;

/// Does the command that was typed.
pub(crate) fn dispatch(
    arguments: Arguments,
    surroundings: &Surroundings,
    messages: Messages,
) -> Result<Exit, Failure> {
    let state_dir = arguments
        .common
        .state_dir
        .or_else(|| surroundings.state_dir.clone());
    let state_dir = state_dir.as_deref();
    match arguments.command {
        Command::Report(report) => report::report(&report, surroundings),
        Command::Export(export) => export::export(&export, messages),
        Command::Compare(compare) => compare::compare(&compare, messages),
        Command::History(history) => history::history(&history, messages),
        Command::Completions(completions) => completions::completions(&completions),
        Command::Man(man) => man::man(&man, messages),
        Command::Status(status) => status::status(&status, state_dir),
        Command::Stop(stop) => stop::stop(&stop, state_dir, messages),
        Command::Doctor(doctor) => doctor::doctor(&doctor, state_dir, surroundings, messages),
        measuring => {
            let interrupt = Interrupt::install()?;
            let hands = Hands {
                surroundings,
                interrupt: &interrupt,
                messages,
                metrics: None,
                fleet: None,
            };
            match measuring {
                Command::Run(run) => run::run(&run, state_dir, hands),
                Command::Soak(soak) => soak::soak(&soak, state_dir, hands),
                Command::Load(load) => load::load(&load, state_dir, hands),
                Command::Ycsb(ycsb) => ycsb::ycsb(&ycsb, state_dir, hands),
                Command::Selfcheck(selfcheck) => selfcheck::selfcheck(&selfcheck, state_dir, hands),
                Command::Sweep(sweep) => sweep::sweep(&sweep, state_dir, hands),
                Command::Xmax(xmax) => xmax::xmax(&xmax, state_dir, hands),
                Command::Slo(slo) => slo::slo(&slo, state_dir, hands),
                Command::Ab(ab) => ab::ab(&ab, state_dir, hands),
                Command::Resume(resume) => resume::resume(&resume, state_dir, hands),
                Command::Fleet(fleet) => fleet::fleet(&fleet, state_dir, hands),
                Command::Agent(agent) => crate::fleet::agent(&agent, hands),
                Command::Trace(trace) => trace::trace(&trace, hands),
                Command::IndexBuild(build) => index_build::index_build(&build, hands),
                Command::Tail(arguments) => tail::tail(&arguments, hands),
                Command::Server(arguments) => server::server(&arguments, state_dir, hands),
                Command::Responder(responder) => responder::responder(&responder, &interrupt),
                Command::Report(_)
                | Command::Export(_)
                | Command::Compare(_)
                | Command::History(_)
                | Command::Completions(_)
                | Command::Man(_)
                | Command::Status(_)
                | Command::Stop(_)
                | Command::Doctor(_) => {
                    unreachable!("they are done above")
                }
            }
        }
    }
}

/// The end of a command line that is no command: help and version are data, the rest is an error.
pub(crate) fn parse_end(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed stream is no reason for another exit code.
            let _ = error.print();
            Exit::Done.into()
        }
        _ => {
            // It quotes what was typed, which may be a connection string in the wrong place.
            eprint!("{}", dyno_plan::uri::redact(&error.render().to_string()));
            Exit::BadInput.into()
        }
    }
}

/// What libraries log goes to standard error: warnings, or more if it is wanted.
pub(crate) fn start_log(messages: Messages, verbose: bool) {
    let level = match (messages.quiet(), verbose) {
        (true, _) => Level::ERROR,
        (false, false) => Level::WARN,
        (false, true) => Level::DEBUG,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(messages.colour())
        .with_target(false)
        .without_time()
        .init();
}
