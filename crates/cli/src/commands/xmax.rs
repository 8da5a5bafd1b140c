//! `dyno xmax`: the highest rate that the server sustains.

use crate::args::XmaxArguments;
use crate::exit::{Exit, Failure};
use crate::experiment::{self, xmax as verb};
use crate::session::execute::Hands;
use std::path::Path;

/// See the module.
pub(crate) fn xmax(
    arguments: &XmaxArguments,
    state_dir: Option<&Path>,
    hands: Hands<'_>,
) -> Result<Exit, Failure> {
    let (document, task) = verb::plan(arguments, hands.surroundings)?;
    experiment::begin(
        document,
        vec![(None, task)],
        &arguments.experiment,
        state_dir,
        hands,
    )
}
