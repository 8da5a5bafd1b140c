//! `dyno ab`: whether one of two plans is faster.

use crate::args::AbArguments;
use crate::exit::{Exit, Failure};
use crate::experiment::{self, ab as verb};
use crate::session::execute::Hands;
use std::path::Path;

/// See the module.
pub(crate) fn ab(
    arguments: &AbArguments,
    state_dir: Option<&Path>,
    hands: Hands<'_>,
) -> Result<Exit, Failure> {
    let (document, tasks) = verb::plan(arguments, hands.surroundings)?;
    experiment::begin(document, tasks, &arguments.experiment, state_dir, hands)
}
