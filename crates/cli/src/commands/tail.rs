//! `dyno tail`: sends messages through a capped collection with each driver in turn, and explains their latency.

use crate::annotator::annotate;
use crate::args::tail::TailArguments;
use crate::exit::Exit;
use crate::export::annotations;
use crate::invocation::Invocation;
use crate::messages::print_data;
use crate::reports::{self, Report};
use crate::task;
use dyno_engine::observer::Shared;
use dyno_engine::task::announce;
use dyno_engine::{Error, RunOptions};
use dyno_results::AnalysedMessages;
use dyno_tail::experiment::{TailOptions, check, perform};

/// Executes `dyno tail`.
pub(crate) fn tail(arguments: &TailArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let task = task::of_tail(arguments, invocation.surroundings)?;
    let mut messages = invocation.messages;
    announce(&task, &Shared::new(&mut messages));
    let options = TailOptions {
        common: RunOptions {
            environment: invocation.environment().clone(),
            embedded_server: arguments.server.start.embedded_server.clone(),
            out: arguments.out.clone(),
            ..RunOptions::default()
        },
        drivers: arguments.sending.drivers.clone(),
        uri: arguments.server.uri.clone(),
    };
    if arguments.dry_run {
        print_data(&task.plan_text())?;
        check(&task, &options, &mut messages, invocation.cancel)?;
        return Ok(Exit::Done);
    }
    let finished = perform(&task, &options, &mut messages, invocation.cancel)?;
    let folder = &finished.folder;
    let analysed = AnalysedMessages::open(folder)?;
    let annotation = annotations::of_messages(&analysed.document);
    annotate(&analysed.document.plan, annotation.as_slice(), invocation);
    let shown = (arguments.page.format, &arguments.page.extent);
    reports::present(folder, shown, &Report::Tail(analysed), invocation)?;
    finished.fault.map_or(Ok(Exit::Done), Err)
}
