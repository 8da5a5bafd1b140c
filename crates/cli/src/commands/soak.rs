//! `dyno soak`: a run that lasts for hours and can be left alone.

use crate::args::SoakArguments;
use crate::commands::run;
use crate::exit::{Exit, Failure};
use crate::invocation::Invocation;
use crate::session::task;
use dyno_engine::run::guard::Guard;

/// See the module.
pub(crate) fn soak(arguments: &SoakArguments, invocation: Invocation<'_>) -> Result<Exit, Failure> {
    let task = task::of_soak(arguments, invocation.surroundings)?;
    let guard = Guard::new(arguments.least_free);
    run::perform(&task, &arguments.run, Some(guard), invocation)
}
