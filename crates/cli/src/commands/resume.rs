//! `dyno resume`: an experiment that was interrupted goes on where it stopped.

use crate::args::ResumeArguments;
use crate::exit::{Exit, Failure};
use crate::experiment;
use crate::session::execute::Hands;
use std::path::Path;

/// See the module.
pub(crate) fn resume(
    arguments: &ResumeArguments,
    state_dir: Option<&Path>,
    hands: Hands<'_>,
) -> Result<Exit, Failure> {
    experiment::resume(arguments, state_dir, hands)
}
