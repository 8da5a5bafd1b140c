//! `dyno soak`: an unattended run of hours.

use crate::args::SoakArguments;
use crate::commands::run;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::task;
use dyno_engine::Error;
use dyno_engine::deployment::storage::check_least_free;
use dyno_engine::run::guard::Guard;

/// Executes `dyno soak`.
pub(crate) fn soak(arguments: &SoakArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let task = task::of_soak(arguments, invocation.surroundings)?;
    check_least_free(&task.plan, arguments.least_free)?;
    let guard = Guard::new(arguments.least_free);
    run::perform(&task, &arguments.run, Some(guard), invocation)
}
