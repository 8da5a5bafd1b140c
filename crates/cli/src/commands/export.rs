//! `dyno export`: a recorded run in a form that other programs read.

use crate::args::{ExportArguments, ExportForm};
use crate::commands::report::folder_of;
use crate::exit::Exit;
use crate::export::output;
use crate::export::{annotations, csv, openmetrics, parquet};
use crate::messages::{Messages, pretty_json};
use crate::reports::open_for_programs;
use dyno_engine::files::write_error;
use dyno_engine::{Error, Kind};
use dyno_record::Document;
use dyno_record::experiment::Experiment;
use dyno_record::reader::Run;
use dyno_record::recorded::{CopyError, copy_latency_log};
use std::io::Write;
use std::path::Path;

/// See the module.
pub(crate) fn export(arguments: &ExportArguments, messages: Messages) -> Result<Exit, Error> {
    check(arguments)?;
    let folder = folder_of(&arguments.run);
    if Experiment::is_in(folder) {
        let text = format!("`{}` holds an experiment, not a run", folder.display());
        let hint = "give the folder of one of its runs, below `runs`";
        return Err(Error::new(Kind::BadInput, text).with_hint(hint));
    }
    let run = open_for_programs(folder, messages)?;
    for note in &run.notes {
        messages.warning(note);
    }
    let write = |output: &mut (dyn Write + Send)| write(arguments, folder, &run, output);
    match &arguments.file.output {
        Some(path) => output::to_file(path, arguments.file.force, Box::new(write))?,
        None => output::to_standard_output(Box::new(write))?,
    }
    Ok(Exit::Done)
}

fn check(arguments: &ExportArguments) -> Result<(), Error> {
    let bad = |text: &str, hint: &str| Err(Error::new(Kind::BadInput, text).with_hint(hint));
    if arguments.to == ExportForm::Parquet && arguments.file.output.is_none() {
        return bad(
            "a Parquet file is binary, and standard output takes text",
            "name a file with `--output`",
        );
    }
    if arguments.to != ExportForm::Hlog && arguments.phase.is_some() {
        return bad(
            "`--phase` is for `--to hlog`",
            "the other forms have the phase in a column or label",
        );
    }
    Ok(())
}

fn write(
    arguments: &ExportArguments,
    folder: &Path,
    run: &Run,
    output: &mut (dyn Write + Send),
) -> Result<(), Error> {
    match arguments.to {
        ExportForm::Csv => csv::write(run, output),
        ExportForm::Parquet => parquet::write(run, output),
        ExportForm::Openmetrics => openmetrics::write(run, output),
        ExportForm::Hlog => {
            let phase = arguments.phase;
            let copied = copy_latency_log(folder, phase, output);
            copied.map(|_| ()).map_err(|error| match error {
                CopyError::Record(error) => error.into(),
                CopyError::Write(error) => write_error(error),
            })
        }
        ExportForm::Annotations => {
            let course = dyno_results::run::analyse(run)?.and_then(|analysis| analysis.course);
            let changes = course.map(|course| course.changes).unwrap_or_default();
            let found = annotations::all(run, &changes)?;
            write!(output, "{}", pretty_json(&found)).map_err(write_error)
        }
    }
}
