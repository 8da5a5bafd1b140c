//! `dyno index-build`: traces an index build on existing documents.

use crate::annotator::annotate;
use crate::args::trace::IndexBuildArguments;
use crate::exit::Exit;
use crate::export::annotations;
use crate::invocation::Invocation;
use crate::messages::print_data;
use crate::reports::{self, Report};
use crate::task;
use dyno_engine::observer::Shared;
use dyno_engine::task::announce;
use dyno_engine::{Error, RunOptions};
use dyno_index_build::{check, run};
use dyno_plan::index_build::Layout;
use dyno_plan::task::Task;
use dyno_record::document::variant_name;
use dyno_record::quantity::Quantity;
use dyno_results::AnalysedIndexBuild;
use std::fmt::Write as _;

/// Executes `dyno index-build`.
pub(crate) fn index_build(
    arguments: &IndexBuildArguments,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let task = task::of_index_build(arguments, invocation.surroundings)?;
    let mut messages = invocation.messages;
    announce(&task, &Shared::new(&mut messages));
    let options = RunOptions {
        environment: invocation.environment().clone(),
        embedded_server: arguments.server.start.embedded_server.clone(),
        out: arguments.out.clone(),
        ..RunOptions::default()
    };
    if arguments.dry_run {
        let is_full = arguments.page.extent.full;
        print_data(&if is_full { task.plan_text() } else { steps(&task) })?;
        check(&task, &options, &mut messages, invocation.cancel)?;
        return Ok(Exit::Done);
    }
    let finished = run(&task, &options, &mut messages, invocation.cancel)?;
    let analysed = AnalysedIndexBuild::open(&finished.folder)?;
    let annotations = annotations::of_builds(&analysed.document);
    annotate(&analysed.document.plan, &annotations, invocation);
    let shown = (arguments.page.format, &arguments.page.extent);
    reports::present(&finished.folder, shown, &Report::IndexBuild(analysed), invocation)?;
    finished.fault.map_or(Ok(Exit::Done), Err)
}

/// The server and the steps, one per line.
fn steps(task: &Task) -> String {
    let data = &task.plan.data;
    let build = task.plan.index_build.clone().unwrap_or_default();
    let documents = match build.layout {
        Layout::Existing => format!("use the documents of `{}.{}`", data.database, data.collection),
        layout => format!(
            "load {} in the layout `{}`",
            Quantity::counted(data.records, "document"),
            variant_name(&layout)
        ),
    };
    let traced = match build.untraced_builds() {
        0 => "under trace".to_owned(),
        1 => "under trace and without".to_owned(),
        pairs => format!("{pairs} times under trace and without"),
    };
    let caches = variant_name(&build.start);
    let index = format!("build the index on `{}` {traced}, with {caches} caches", build.keys);
    let mut steps = vec![documents, index.clone()];
    if let Some(remedy) = build.remedy {
        let place = build.remedy_on.map_or_else(String::new, |server| format!(" on `{server}`"));
        steps.push(format!("reorder the documents{place} with `{}`", remedy.as_str()));
        steps.push(index);
    }
    let mut text = task.server.as_ref().map_or_else(String::new, |one| format!("server: {one}\n"));
    if !build.topologies.is_empty() {
        let _ = writeln!(text, "on each of: {}", build.topologies.join("; "));
    }
    for (number, step) in (1..).zip(steps) {
        let _ = writeln!(text, "{number}. {step}");
    }
    text + "`--full` prints the plan.\n"
}
