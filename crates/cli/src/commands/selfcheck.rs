//! `dyno selfcheck`: measures the load generator itself and keeps the result.

use crate::args::SelfcheckArguments;
use crate::exit::{Exit, Failure};
use crate::messages::print_data;
use crate::selfcheck::{measure::measure, state, text};
use crate::session::execute::Hands;
use dyno_report::Format;
use std::path::Path;

/// See the module.
pub(crate) fn selfcheck(
    arguments: &SelfcheckArguments,
    state_dir: Option<&Path>,
    hands: Hands<'_>,
) -> Result<Exit, Failure> {
    if arguments.duration.0.is_zero() {
        return Err(Failure::new(Exit::BadInput, "`--duration` must be above 0"));
    }
    let result = measure(arguments.duration.0, arguments.clients, hands)?;
    print_data(&match arguments.format {
        Format::Json => text::json(&result),
        _ => text::human(&result),
    })?;
    if arguments.no_save {
        return Ok(Exit::Done);
    }
    let folder = state_dir.ok_or_else(|| {
        Failure::new(
            Exit::Environment,
            "there is no folder to keep the result in: `HOME` is not set",
        )
        .with_hint("name one with `--state-dir`, or pass `--no-save`")
    })?;
    let path = state::write(folder, &result)?;
    hands.messages.note(&format!("kept in {}", path.display()));
    Ok(Exit::Done)
}
