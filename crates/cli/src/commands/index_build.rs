//! `dyno index-build`: traces an index build on existing documents.

use crate::annotator::annotate;
use crate::args::IndexBuildArguments;
use crate::exit::Exit;
use crate::export::annotations;
use crate::invocation::Invocation;
use crate::messages::print_data;
use crate::reports;
use crate::task;
use dyno_engine::Error;
use dyno_engine::observer::Shared;
use dyno_engine::standalone::StandaloneOptions;
use dyno_engine::task::announce;
use dyno_index_build::{check, run};
use dyno_results::AnalysedIndexBuild;

/// Executes `dyno index-build`.
pub(crate) fn index_build(
    arguments: &IndexBuildArguments,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let task = task::of_index_build(arguments, invocation.surroundings)?;
    let mut messages = invocation.messages;
    announce(&task, &Shared::new(&mut messages));
    let options = StandaloneOptions {
        environment: invocation.environment().clone(),
        embedded_server: arguments.start.embedded_server.clone(),
        out: arguments.out.clone(),
    };
    if arguments.dry_run {
        print_data(&task.plan_text())?;
        check(&task, &options, &mut messages, invocation.cancel)?;
        return Ok(Exit::Done);
    }
    let finished = run(&task, &options, &mut messages, invocation.cancel)?;
    let analysed = AnalysedIndexBuild::open(&finished.folder)?;
    let annotations = annotations::of_builds(&analysed.document);
    annotate(&analysed.document.plan, &annotations, invocation);
    let shown = (arguments.page.format, &arguments.page.extent);
    reports::present(&finished.folder, shown, invocation, |format, options| {
        reports::index_build_text(&analysed, format, options)
    })?;
    finished.fault.map_or(Ok(Exit::Done), Err)
}
