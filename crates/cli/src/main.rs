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
mod records;
mod reports;
mod supervisor;
mod surroundings;
mod task;
mod ycsb;

use messages::Messages;
use std::process::ExitCode;
use surroundings::Surroundings;

fn main() -> ExitCode {
    // `dyno tail` starts this program as its driver `wire`.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|first| first == dyno_tail::driver::BUILT_IN) {
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        dyno_driver_wire::main(&words);
    }
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
