//! `dyno load`: the load phase of a workload alone.

use crate::args::LoadArguments;
use crate::commands::run::end;
use crate::exit::{Exit, Failure};
use crate::messages::print_data;
use crate::metrics::{Endpoint, Metrics};
use crate::progress::Progress;
use crate::session::collection::Wishes;
use crate::session::execute::{Conduct, Extent, Hands, execute};
use crate::session::{preflight, task};
use dyno_load::backend::RetryRule;
use std::io::IsTerminal;
use std::path::Path;

/// See the module.
pub(crate) fn load(
    arguments: &LoadArguments,
    state_dir: Option<&Path>,
    hands: Hands<'_>,
) -> Result<Exit, Failure> {
    let task = task::of_load(
        &arguments.target,
        &arguments.client,
        &arguments.data,
        hands.surroundings,
    )?;
    let endpoint = Endpoint::resolve(&arguments.metrics, hands.surroundings)?;
    let conduct = Conduct {
        extent: Extent::Load,
        wishes: Wishes::default(),
        fresh: arguments.data.fresh,
        retry: RetryRule::default(),
        abort_load: true,
        out: arguments.output.out.as_deref(),
        embedded_server: arguments.target.start.embedded_server.as_deref(),
        selfcheck: None,
        state_dir,
        guard: None,
    };
    if arguments.output.dry_run {
        task::tell(&task, hands.messages);
        print_data(&task.plan_text())?;
        preflight::of_run(&task, &conduct, hands)?;
        return Ok(Exit::Done);
    }
    let metrics = Metrics::serve(endpoint, hands.messages)?;
    let hands = hands.telling(metrics.as_ref());
    let mut progress = Progress::new(hands.messages, std::io::stderr().is_terminal());
    let outcome = execute(&task, &conduct, &mut progress, hands);
    drop(progress);
    match outcome? {
        Some(finished) => end(
            finished,
            arguments.output.format,
            task.plan.client.tolerated_error_ratio,
            hands,
        ),
        None => Ok(Exit::Done),
    }
}
