//! `dyno completions`: prints shell completions.

use crate::args::{Arguments, CompletionArguments};
use crate::exit::Exit;
use crate::messages::print_data;
use clap::CommandFactory;
use dyno_engine::Error;

/// Executes `dyno completions`.
pub(crate) fn completions(arguments: &CompletionArguments) -> Result<Exit, Error> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "dyno", &mut text);
    print_data(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}
