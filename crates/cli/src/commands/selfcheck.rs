//! `dyno selfcheck`: measures the load generator itself and stores the result.

use crate::args::SelfcheckArguments;
use crate::commands::selfcheck_text;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::messages::print_data;
use dyno_engine::selfcheck::{measure::measure, state};
use dyno_engine::{Error, Kind};
use dyno_report::Format;

/// Executes `dyno selfcheck`.
pub(crate) fn selfcheck(
    arguments: &SelfcheckArguments,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    if arguments.duration.0.is_zero() {
        return Err(Error::new(Kind::BadInput, "`--duration` must be above 0"));
    }
    let mut messages = invocation.messages;
    let result = measure(
        arguments.duration.0,
        arguments.clients,
        invocation.environment(),
        &mut messages,
        invocation.cancel,
    )?;
    print_data(&match arguments.format {
        Format::Json => result.to_json(),
        _ => selfcheck_text::human(&result),
    })?;
    if let Some(caveat) = result.caveat() {
        messages.warning(&format!(
            "the check `other_load` fails: {}; runs will not be compared with this result",
            caveat.found
        ));
    }
    if arguments.no_save {
        return Ok(Exit::Done);
    }
    let state_dir = invocation.environment().state_dir.as_deref();
    let folder = state_dir.ok_or_else(|| {
        Error::new(Kind::Environment, "cannot store the result: `HOME` is not set")
            .with_hint("name a folder with `--state-dir`, or pass `--no-save`")
    })?;
    match state::write(folder, &result)? {
        Some(path) => messages.note(&format!("stored in {}", path.display())),
        None => messages.note("not stored; the previous result is kept"),
    }
    Ok(Exit::Done)
}
