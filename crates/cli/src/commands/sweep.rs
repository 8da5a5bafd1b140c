//! `dyno sweep`: several loads or settings, and what they say together.

use crate::args::SweepArguments;
use crate::exit::{Exit, Failure};
use crate::experiment::{self, sweep as verb};
use crate::session::execute::Hands;
use std::path::Path;

/// See the module.
pub(crate) fn sweep(
    arguments: &SweepArguments,
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
