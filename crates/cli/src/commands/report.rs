//! `dyno report`: renders a recorded run, experiment, index build, message test or trace again.

use crate::args::tools::ReportArguments;
use crate::commands::pictures;
use crate::exit::Exit;
use crate::export::output;
use crate::invocation::Invocation;
use crate::messages::{Messages, print_data};
use crate::records;
use crate::reports::{self, RecordKind, Report, refused};
use dyno_analyze::experiment::findings::findings;
use dyno_engine::files::write_error;
use dyno_engine::{Error, Kind};
use dyno_record::Document;
use dyno_record::experiment::{Experiment, Verb};
use dyno_record::io_trace;
use dyno_record::quantity::Quantity;
use dyno_record::sums;
use dyno_record::tail::TailDocument;
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
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let Invocation { surroundings, messages, .. } = invocation;
    let folder = &records::folder(&arguments.run)?;
    let options = match &arguments.file.output {
        Some(_) => RenderOptions::default(),
        None => {
            let extent = reports::extent_of(folder, &arguments.extent);
            reports::terminal_options(surroundings, extent)
        }
    };
    let kind = RecordKind::of(folder);
    let is_about_trace = arguments.gap.is_some() || !TracePart::from(&arguments.part).is_all();
    if is_about_trace && kind != RecordKind::Trace {
        let text = "`--gap`, `--window` and `--slices` apply only to traces of file I/O";
        let hint = format!(
            "the trace of a run is in its folder `{}`, the traces of an index build are in `before` and `after`",
            io_trace::FOLDER
        );
        return Err(Error::new(Kind::BadInput, text).with_hint(hint));
    }
    if arguments.below.is_some() && kind != RecordKind::Experiment {
        return Err(below_is_of_suites());
    }
    if let Some(out) = &arguments.pictures {
        output::check_folder(out)?;
    }
    let text = match (kind, arguments.format) {
        (RecordKind::Run, format) => of_run(folder, format, &options, messages)?,
        (RecordKind::Experiment, format) => {
            reports::experiment_text(&experiment(folder, arguments)?, format, &options)?
        }
        (RecordKind::Tail, Format::Csv) => table_of_tail(folder, messages)?,
        (_, format) => {
            let format = PageFormat::from_format(format).ok_or_else(|| {
                let name = kind.name();
                let text = format!("this format requires a run, but the folder holds {name}");
                Error::new(Kind::BadInput, text)
            })?;
            open(kind, folder, arguments)?.render(format, &options).map_err(refused)?
        }
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
        let written = pictures::write(&open(kind, folder, arguments)?.page(), out)?;
        messages.note(&format!(
            "{} in `{}`",
            Quantity::counted(written as u64, "chart"),
            out.display()
        ));
    }
    Ok(Exit::Done)
}

fn of_run(
    folder: &Path,
    format: Format,
    options: &RenderOptions,
    messages: Messages,
) -> Result<String, Error> {
    reports::check_run_format(format)?;
    if !matches!(format, Format::Ycsb | Format::Kpi) {
        return reports::run_text(&AnalysedRun::open(folder)?, format, options).map_err(refused);
    }
    let run = reports::open_for_programs(folder, messages)?;
    let text = dyno_report::render(&run, None, format, options).map_err(refused)?;
    // Unlike the output of `dyno ycsb`, this one is for people.
    let is_for_people = format == Format::Ycsb;
    Ok(if is_for_people { dyno_report::incomplete(&run.document) + &text } else { text })
}

/// Opens and analyses the record in a folder.
fn open(kind: RecordKind, folder: &Path, arguments: &ReportArguments) -> Result<Report, Error> {
    Ok(match kind {
        RecordKind::Run => Report::Run(Box::new(AnalysedRun::open(folder)?)),
        RecordKind::Experiment => Report::Experiment(Box::new(experiment(folder, arguments)?)),
        RecordKind::IndexBuild => Report::IndexBuild(AnalysedIndexBuild::open(folder)?),
        RecordKind::Tail => Report::Tail(AnalysedMessages::open(folder)?),
        RecordKind::Trace => {
            let options = TraceOptions {
                gap_bytes: arguments.gap.map(|gap| gap.0),
                part: TracePart::from(&arguments.part),
                ..TraceOptions::default()
            };
            Report::Trace(AnalysedTrace::open(folder, &options)?)
        }
    })
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

/// Formats the combinations of drivers and settings as CSV.
fn table_of_tail(folder: &Path, messages: Messages) -> Result<String, Error> {
    let document = TailDocument::read(folder)?;
    if let Some(changed) = sums::check(folder)?.statement() {
        messages.warning(&texts::text(&changed));
    }
    Ok(dyno_report::tail::csv(&document))
}
