//! `dyno server`: what concerns the servers and not the load.

use crate::args::{ServerArguments, ServerCommand, ServerPlanArguments};
use crate::exit::{Exit, Failure};
use crate::messages::print_data;
use crate::session::place;
use crate::surroundings::Surroundings;
use dyno_servers::placement::{self, Machine, PlacementRequest};
use std::fmt::Write as _;
use std::path::Path;

/// Width of a picture that goes into a file.
const FILE_COLUMNS: usize = 80;

/// See the module.
pub(crate) fn server(
    arguments: &ServerArguments,
    surroundings: &Surroundings,
) -> Result<Exit, Failure> {
    match &arguments.command {
        ServerCommand::Plan(arguments) => show(arguments, surroundings),
    }
}

/// Shows where servers and clients would be put.
fn show(arguments: &ServerPlanArguments, surroundings: &Surroundings) -> Result<Exit, Failure> {
    let request =
        PlacementRequest::parse(&arguments.placement, arguments.pairs).map_err(place::failure)?;
    let machine = Machine::read(Path::new("/")).map_err(place::failure)?;
    let placement = placement::plan(&machine, &request).map_err(place::failure)?;
    let columns = surroundings.columns.unwrap_or(FILE_COLUMNS);
    let mut text = placement::draw(&machine, &placement, columns);
    match placement.cache_bytes(&machine) {
        Ok(caches) => {
            for (number, bytes) in caches.iter().enumerate() {
                let _ = writeln!(
                    text,
                    "cache of instance {number} unless given: {} MiB",
                    bytes >> 20
                );
            }
        }
        Err(error) => {
            let _ = writeln!(text, "note: {error}");
        }
    }
    print_data(&text)?;
    Ok(Exit::Done)
}
