//! `dyno load`: runs only the load phase of a workload.

use crate::args::LoadArguments;
use crate::commands::run;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::metrics::Endpoint;
use crate::reports::check_run_format;
use crate::task;
use dyno_engine::run::options::Extent;
use dyno_engine::{Error, RunOptions};

/// Executes `dyno load`.
pub(crate) fn load(arguments: &LoadArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let task = task::of_load(arguments, invocation.surroundings)?;
    let endpoint = Endpoint::resolve(&arguments.metrics, invocation.surroundings)?;
    check_run_format(arguments.output.format)?;
    let options = RunOptions {
        environment: invocation.environment().clone(),
        extent: Extent::Load,
        fresh: arguments.data.fresh,
        drop_foreign: arguments.data.drop_foreign,
        abort_load: true,
        out: arguments.output.out.clone(),
        embedded_server: arguments.target.start.embedded_server.clone(),
        source: invocation.source,
        ..RunOptions::default()
    };
    if arguments.output.dry_run {
        return run::dry_run(&task, &options, invocation);
    }
    match run::observe(&task, &options, endpoint, invocation)? {
        Some(finished) => run::end(
            finished,
            &arguments.output,
            task.plan.client.tolerated_error_ratio,
            invocation,
        ),
        None => Ok(Exit::Done),
    }
}
