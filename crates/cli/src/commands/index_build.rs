//! `dyno index-build`: builds an index on documents that exist already, and shows how their files are read.

use crate::args::IndexBuildArguments;
use crate::exit::{Exit, Failure};
use crate::experiment::folder::ExperimentFolder;
use crate::index_build::reports::AnalysedBuilds;
use crate::index_build::{check, perform};
use crate::messages::print_data;
use crate::session::execute::Hands;
use crate::session::{output, task};
use dyno_plan::Plan;
use jiff::Timestamp;
use std::path::Path;

/// See the module.
pub(crate) fn index_build(
    arguments: &IndexBuildArguments,
    hands: Hands<'_>,
) -> Result<Exit, Failure> {
    let task = task::of_index_build(arguments, hands.surroundings)?;
    task::tell(&task, hands.messages);
    let embedded = arguments.start.embedded_server.as_deref();
    if arguments.dry_run {
        print_data(&task.plan_text())?;
    }
    // Before documents are loaded for minutes.
    check(&task, embedded, hands)?;
    check_folders(&task.plan, arguments.out.as_deref())?;
    if arguments.dry_run {
        return Ok(Exit::Done);
    }
    let name = format!("index-build-{}", task.plan.name);
    let folder = ExperimentFolder::create(arguments.out.as_deref(), &name, Timestamp::now())?;
    folder.save_plan("plan.toml", &task)?;
    let path = folder.path().to_owned();
    let failure = perform(&task, hands, embedded, folder)?;
    let analysed = AnalysedBuilds::of(&path)?;
    output::present(&path, arguments.format, hands, |format, options| {
        analysed.render(format, options)
    })?;
    failure.map_or(Ok(Exit::Done), Err)
}

/// The folder of the experiment is tidied up at the end, and data that is kept must not be in it.
fn check_folders(plan: &Plan, out: Option<&Path>) -> Result<(), Failure> {
    let Some(out) = out else { return Ok(()) };
    ExperimentFolder::check(out)?;
    let Some(data) = &plan.server.data_dir else {
        return Ok(());
    };
    let out = std::path::absolute(out).unwrap_or_else(|_| out.to_owned());
    if !Path::new(data).starts_with(&out) {
        return Ok(());
    }
    let text = format!("the data folder `{data}` is inside the folder of the experiment");
    Err(Failure::new(Exit::BadInput, text).with_hint("choose another `--out`"))
}
