//! `dyno run`: from a workload to a saved run and its report.

use crate::args::RunArguments;
use crate::exit::{Exit, Failure};
use crate::messages::print_data;
use crate::metrics::{Endpoint, Metrics};
use crate::progress::Progress;
use crate::selfcheck;
use crate::session::collection::Wishes;
use crate::session::execute::{Conduct, Extent, Finished, Hands, execute};
use crate::session::guard::Guard;
use crate::session::{output, preflight, task};
use dyno_load::backend::RetryRule;
use dyno_plan::task::Task;
use dyno_report::Format;
use std::io::IsTerminal;
use std::path::Path;

/// See the module.
pub(crate) fn run(
    arguments: &RunArguments,
    state_dir: Option<&Path>,
    hands: Hands<'_>,
) -> Result<Exit, Failure> {
    let task = task::of_run(arguments, hands.surroundings)?;
    perform(&task, arguments, None, state_dir, hands)
}

/// Does what was typed after `dyno run`, or `dyno soak`.
pub(crate) fn perform(
    task: &Task,
    arguments: &RunArguments,
    guard: Option<Guard>,
    state_dir: Option<&Path>,
    hands: Hands<'_>,
) -> Result<Exit, Failure> {
    let endpoint = Endpoint::resolve(&arguments.metrics, hands.surroundings)?;
    let conduct = Conduct {
        extent: Extent::Whole,
        wishes: Wishes {
            no_load: arguments.no_load,
        },
        fresh: arguments.data.fresh,
        retry: RetryRule::default(),
        abort_load: true,
        out: arguments.output.out.as_deref(),
        embedded_server: arguments.target.start.embedded_server.as_deref(),
        selfcheck: state_dir.and_then(|folder| selfcheck::state::read(folder, hands)),
        state_dir,
        guard,
    };
    if arguments.output.dry_run {
        task::tell(task, hands.messages);
        print_data(&task.plan_text())?;
        preflight::of_run(task, &conduct, hands)?;
        return Ok(Exit::Done);
    }
    let metrics = Metrics::serve(endpoint, hands.messages)?;
    let hands = hands.telling(metrics.as_ref());
    let mut progress = Progress::new(hands.messages, std::io::stderr().is_terminal());
    let outcome = execute(task, &conduct, &mut progress, hands);
    drop(progress);
    let finished =
        outcome?.ok_or_else(|| Failure::new(Exit::Internal, "the run recorded nothing"))?;
    end(
        finished,
        arguments.output.format,
        task.plan.client.tolerated_error_ratio,
        hands,
    )
}

/// Prints the result and judges it.
pub(crate) fn end(
    finished: Finished,
    format: Format,
    tolerated_error_ratio: f64,
    hands: Hands<'_>,
) -> Result<Exit, Failure> {
    let place = finished.directory.display();
    if let Some(fault) = finished.fault {
        hands.messages.note(&format!(
            "what was recorded is in `{place}`, `dyno report {place}` shows it"
        ));
        return Err(fault);
    }
    print_data(&output::text(
        &finished.run,
        finished.analysis.as_ref(),
        format,
        &output::terminal_options(hands.surroundings),
    )?)?;
    hands.messages.note(&format!(
        "report: {}",
        finished.directory.join(output::HTML).display()
    ));
    if finished.interrupted {
        hands
            .messages
            .warning(&format!("interrupted; the partial run is in `{place}`"));
        return Ok(Exit::Interrupted);
    }
    let ratio = finished.totals.failed_ratio();
    if ratio > tolerated_error_ratio {
        let totals = finished.totals;
        hands.messages.warning(&format!(
            "{} of {} operations failed, a share of {ratio:.6}; tolerated are {tolerated_error_ratio}",
            totals.failed,
            totals.failed + totals.succeeded
        ));
        return Ok(Exit::CheckFailed);
    }
    Ok(Exit::Done)
}
