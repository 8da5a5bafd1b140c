//! `dyno report`: renders a recorded run, experiment, index build, message test or trace again.

use crate::args::ReportArguments;
use crate::commands::pictures;
use crate::exit::Exit;
use crate::export::output;
use crate::messages::{Messages, print_data};
use crate::reports::{self, refused};
use crate::surroundings::Surroundings;
use dyno_analyze::experiment::findings::findings;
use dyno_engine::files::write_error;
use dyno_engine::{Error, Kind};
use dyno_record::Document;
use dyno_record::experiment::{Experiment, Verb};
use dyno_record::index_build::IndexBuildDocument;
use dyno_record::io_trace;
use dyno_record::io_trace::document::TraceDocument;
use dyno_record::model::RunDocument;
use dyno_record::sums;
use dyno_record::tail::TailDocument;
use dyno_report::page::Page;
use dyno_report::{Format, PageFormat, RenderOptions, texts};
use dyno_results::trace::TracePart;
use dyno_results::{
    AnalysedIndexBuild, AnalysedMessages, AnalysedRun, AnalysedTrace, TraceOptions,
};
use std::io::Write;
use std::path::Path;

/// Executes `dyno report`.
pub(crate) fn report(
    arguments: &ReportArguments,
    surroundings: &Surroundings,
    messages: Messages,
) -> Result<Exit, Error> {
    let folder = folder_of(&arguments.run);
    let options = match &arguments.file.output {
        Some(_) => RenderOptions::default(),
        None => {
            let extent = reports::extent_of(folder, &arguments.extent);
            reports::terminal_options(surroundings, extent)
        }
    };
    let part = TracePart::from(&arguments.part);
    let is_about_trace = arguments.gap.is_some() || !part.is_all();
    let is_trace = TraceDocument::is_in(folder);
    let is_other = Experiment::is_in(folder)
        || IndexBuildDocument::is_in(folder)
        || TailDocument::is_in(folder);
    if is_about_trace && (is_other || !is_trace) {
        let text = "`--gap`, `--window` and `--slices` apply only to traces of file I/O";
        let hint = format!(
            "the trace of a run is in its folder `{}`, the traces of an index build are in `before` and `after`",
            io_trace::FOLDER
        );
        return Err(Error::new(Kind::BadInput, text).with_hint(hint));
    }
    if let Some(out) = &arguments.pictures {
        output::check_folder(out)?;
    }
    let text = if Experiment::is_in(folder) {
        of_experiment(folder, arguments, &options)?
    } else if arguments.below.is_some() {
        return Err(below_is_of_suites());
    } else if IndexBuildDocument::is_in(folder) {
        of_index_build(folder, arguments.format, &options)?
    } else if TailDocument::is_in(folder) {
        match arguments.format {
            Format::Csv => table_of_tail(folder, messages)?,
            format => of_tail(folder, format, &options)?,
        }
    } else if is_trace {
        of_trace(folder, arguments, &options)?
    } else {
        of_run(folder, arguments.format, &options, messages)?
    };
    match &arguments.file.output {
        Some(path) => {
            let write = |file: &mut (dyn Write + Send)| {
                file.write_all(text.as_bytes()).map_err(write_error)
            };
            output::to_file(path, arguments.file.force, Box::new(write))?;
        }
        None => print_data(&text)?,
    }
    if let Some(out) = &arguments.pictures {
        let written = pictures::write(&page(folder, arguments)?, out)?;
        messages.note(&format!("{written} charts are in `{}`", out.display()));
    }
    Ok(Exit::Done)
}

/// The folder of a record. The path may also name the document in it, because shells complete to the document.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let names = [
        RunDocument::FILE,
        Experiment::FILE,
        IndexBuildDocument::FILE,
        TailDocument::FILE,
        TraceDocument::FILE,
    ];
    let is_document = names.iter().any(|name| path.ends_with(name));
    match path.parent() {
        Some(parent) if is_document && path.is_file() => {
            if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            }
        }
        _ => path,
    }
}

fn of_run(
    folder: &Path,
    format: Format,
    options: &RenderOptions,
    messages: Messages,
) -> Result<String, Error> {
    reports::check_run_format(format)?;
    match format {
        // Unlike the output of `dyno ycsb`, this one is for people.
        Format::Ycsb => {
            let run = reports::open_for_programs(folder, messages)?;
            Ok(dyno_report::incomplete(&run.document)
                + &reports::ycsb_text(&run, options).map_err(refused)?)
        }
        // The key figures do not need an analysis.
        Format::Kpi => {
            let run = reports::open_for_programs(folder, messages)?;
            dyno_report::render(&run, None, format, options).map_err(refused)
        }
        _ => reports::run_text(&AnalysedRun::open(folder)?, format, options),
    }
}

/// Builds the page of the record in a folder.
fn page(folder: &Path, arguments: &ReportArguments) -> Result<Page, Error> {
    Ok(if Experiment::is_in(folder) {
        dyno_report::experiment::page(&experiment(folder, arguments)?)
    } else if IndexBuildDocument::is_in(folder) {
        let build = AnalysedIndexBuild::open(folder)?;
        dyno_report::index_build::page(&reports::index_build_view(&build))
    } else if TailDocument::is_in(folder) {
        let messages = AnalysedMessages::open(folder)?;
        let cells = reports::cells(&messages);
        dyno_report::tail::page(&reports::tail_view(&messages, &cells))
    } else if TraceDocument::is_in(folder) {
        let trace = AnalysedTrace::open(folder, &trace_options(arguments))?;
        dyno_report::io_trace::page(&reports::trace_view(&trace))
    } else {
        let run = AnalysedRun::open(folder)?;
        let trace = run.trace.as_ref().map(reports::trace_view);
        dyno_report::run::page(&run.run, run.analysis.as_ref(), trace.as_ref())
    })
}

fn of_experiment(
    folder: &Path,
    arguments: &ReportArguments,
    options: &RenderOptions,
) -> Result<String, Error> {
    let document = experiment(folder, arguments)?;
    reports::experiment_text(&document, arguments.format, options)
}

/// Opens the experiment in a folder, with the requested answer.
fn experiment(folder: &Path, arguments: &ReportArguments) -> Result<Experiment, Error> {
    let mut document = dyno_results::experiment::open(folder)?;
    if let Some(below) = arguments.below {
        if document.verb != Verb::Suite {
            return Err(below_is_of_suites());
        }
        let below_us = below.0.as_secs_f64() * 1e6;
        document.options.below_us = Some(below_us);
        document.answer = dyno_results::suite::answer(&document, folder)?;
        document.findings = findings(&document);
    }
    Ok(document)
}

fn below_is_of_suites() -> Error {
    let text = "`--below` applies only to suites";
    Error::new(Kind::BadInput, text)
}

/// Converts the format to a page format, which all kinds of records support.
fn page_format(format: Format, record: &str) -> Result<PageFormat, Error> {
    PageFormat::from_format(format).ok_or_else(|| {
        let text = format!("this format requires a run, but the folder holds {record}");
        Error::new(Kind::BadInput, text)
    })
}

fn of_index_build(folder: &Path, format: Format, options: &RenderOptions) -> Result<String, Error> {
    let format = page_format(format, "an index build")?;
    let build = AnalysedIndexBuild::open(folder)?;
    reports::index_build_text(&build, format, options).map_err(refused)
}

fn of_tail(folder: &Path, format: Format, options: &RenderOptions) -> Result<String, Error> {
    let format = page_format(format, "messages of `dyno tail`")?;
    let messages = AnalysedMessages::open(folder)?;
    reports::messages_text(&messages, format, options).map_err(refused)
}

fn trace_options(arguments: &ReportArguments) -> TraceOptions {
    TraceOptions {
        gap_bytes: arguments.gap.map(|gap| gap.0),
        part: TracePart::from(&arguments.part),
        ..TraceOptions::default()
    }
}

/// Formats the combinations of drivers and settings as CSV.
fn table_of_tail(folder: &Path, messages: Messages) -> Result<String, Error> {
    let document = TailDocument::read(folder)?;
    if let Some(changed) = sums::check(folder)?.statement() {
        messages.warning(&texts::text(&changed));
    }
    Ok(dyno_report::tail::csv(&document))
}

fn of_trace(
    folder: &Path,
    arguments: &ReportArguments,
    options: &RenderOptions,
) -> Result<String, Error> {
    let format = page_format(arguments.format, "a trace of file I/O")?;
    let trace = AnalysedTrace::open(folder, &trace_options(arguments))?;
    reports::trace_text(&trace, format, options).map_err(refused)
}
