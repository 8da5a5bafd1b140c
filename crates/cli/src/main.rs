//! `dyno`: a load generator and analysis tool for MongoDB.

mod annotator;
mod args;
mod commands;
mod exit;
mod export;
mod interrupt;
mod invocation;
mod messages;
mod metrics;
mod progress;
mod reports;
mod supervisor;
mod surroundings;
mod task;
mod ycsb;

use messages::Messages;
use std::process::ExitCode;
use surroundings::Surroundings;

fn main() -> ExitCode {
    let arguments = match args::Arguments::read() {
        Ok(arguments) => arguments,
        Err(error) => return commands::parse_end(&error),
    };
    let surroundings = Surroundings::read();
    surroundings::forget_secrets();
    let messages = Messages::new(surroundings.no_color, arguments.common.quiet);
    commands::start_log(messages, arguments.common.verbose);
    match commands::dispatch(arguments, surroundings, messages) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            messages.failure(&failure);
            exit::Exit::from(failure.kind).into()
        }
    }
}
