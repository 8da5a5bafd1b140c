//! `dyno tail`: sends messages through a capped collection by one driver after the other, and explains how long each took.

use crate::args::TailArguments;
use crate::exit::{Exit, Failure};
use crate::experiment::folder::ExperimentFolder;
use crate::messages::print_data;
use crate::session::execute::Hands;
use crate::session::{output, task};
use crate::tail::reports::AnalysedTail;
use crate::tail::{check, perform};
use jiff::Timestamp;

/// See the module.
pub(crate) fn tail(arguments: &TailArguments, hands: Hands<'_>) -> Result<Exit, Failure> {
    let task = task::of_tail(arguments, hands.surroundings)?;
    task::tell(&task, hands.messages);
    if arguments.dry_run {
        print_data(&task.plan_text())?;
        let out = arguments.out.as_deref();
        out.map_or(Ok(()), ExperimentFolder::check)?;
        check(&task, arguments, hands)?;
        return Ok(Exit::Done);
    }
    let folder = ExperimentFolder::create(
        arguments.out.as_deref(),
        &match task.plan.name.as_str() {
            name if name.starts_with("tail") => name.to_owned(),
            name => format!("tail-{name}"),
        },
        Timestamp::now(),
    )?;
    folder.save_plan("plan.toml", &task)?;
    let path = folder.path().to_owned();
    let failure = perform(&task, arguments, hands, folder)?;
    let analysed = AnalysedTail::of(&path)?;
    output::present(&path, arguments.format, hands, |format, options| {
        analysed.render(format, options)
    })?;
    failure.map_or(Ok(Exit::Done), Err)
}
