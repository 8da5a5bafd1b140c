//! `dyno soak`: a run that lasts for hours and can be left alone.

use crate::args::SoakArguments;
use crate::commands::run;
use crate::exit::{Exit, Failure};
use crate::session::execute::Hands;
use crate::session::guard::Guard;
use crate::session::task;
use std::path::Path;

/// See the module.
pub(crate) fn soak(
    arguments: &SoakArguments,
    state_dir: Option<&Path>,
    hands: Hands<'_>,
) -> Result<Exit, Failure> {
    let task = task::of_soak(arguments, hands.surroundings)?;
    let guard = Guard::new(arguments.least_free);
    run::perform(&task, &arguments.run, Some(guard), state_dir, hands)
}
