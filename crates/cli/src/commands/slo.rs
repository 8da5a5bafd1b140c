//! `dyno slo`: the highest offered rate that keeps an objective.

use crate::args::SloArguments;
use crate::exit::{Exit, Failure};
use crate::experiment::{self, slo as verb};
use crate::session::execute::Hands;
use std::path::Path;

/// See the module.
pub(crate) fn slo(
    arguments: &SloArguments,
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
