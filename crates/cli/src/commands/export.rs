//! `dyno export`: converts a record to a format that other programs read.

use crate::args::tools::{ExportArguments, ExportForm};
use crate::exit::Exit;
use crate::export::output;
use crate::export::table::{Column, Table};
use crate::export::{
    annotations, csv, experiment, index_build, openmetrics, parquet, rows, tail, trace, wsf_logs,
};
use crate::messages::{Messages, pretty_json};
use crate::records;
use crate::reports::{RecordKind, index_build_view, open_for_programs};
use dyno_engine::files::write_error;
use dyno_engine::{Error, Kind};
use dyno_record::Document;
use dyno_record::experiment::Experiment;
use dyno_record::io_trace::reader::TraceReader;
use dyno_record::reader::Run;
use dyno_record::recorded::{CopyError, copy_latency_log};
use dyno_record::sums;
use dyno_record::tail::TailDocument;
use dyno_report::texts;
use dyno_results::AnalysedIndexBuild;
use std::io::Write;
use std::path::Path;

/// Executes `dyno export`.
pub(crate) fn export(arguments: &ExportArguments, messages: Messages) -> Result<Exit, Error> {
    check(arguments)?;
    let folder = &records::folder(&arguments.run)?;
    let kind = RecordKind::of(folder);
    let source = Source::open(kind, folder, messages)?;
    if kind != RecordKind::Run && !matches!(arguments.to, ExportForm::Csv | ExportForm::Parquet) {
        let text = format!("`{}` holds {}, not a run", folder.display(), kind.name());
        let hint = "use `--to csv` or `--to parquet`, or export one of the runs of an experiment, below `runs`";
        return Err(Error::new(Kind::BadInput, text).with_hint(hint));
    }
    let write = |output: &mut (dyn Write + Send)| write(arguments, folder, &source, output);
    match (&arguments.file.output, &source) {
        (Some(folder), Source::Run(run)) if arguments.to == ExportForm::WsfLogs => {
            wsf_logs::write(run, folder, messages)?;
            messages.note(&format!("logs: {}", folder.display()));
        }
        (Some(path), _) => output::to_file(path, arguments.file.force, Box::new(write))?,
        (None, _) => output::to_standard_output(Box::new(write))?,
    }
    Ok(Exit::Done)
}

/// The record to export.
enum Source {
    Run(Box<Run>),
    Experiment(Box<Experiment>),
    IndexBuild(Box<AnalysedIndexBuild>),
    Tail(Box<TailDocument>),
    Trace(Box<TraceReader>),
}

impl Source {
    fn open(kind: RecordKind, folder: &Path, messages: Messages) -> Result<Source, Error> {
        let source = match kind {
            RecordKind::Run => {
                let run = open_for_programs(folder, messages)?;
                run.notes.iter().for_each(|note| messages.warning(note));
                return Ok(Source::Run(Box::new(run)));
            }
            RecordKind::Experiment => Source::Experiment(Box::new(Experiment::read(folder)?)),
            RecordKind::IndexBuild => {
                Source::IndexBuild(Box::new(AnalysedIndexBuild::open(folder)?))
            }
            RecordKind::Tail => Source::Tail(Box::new(TailDocument::read(folder)?)),
            RecordKind::Trace => Source::Trace(Box::new(TraceReader::open(folder)?)),
        };
        if let Some(changed) = sums::check(folder)?.statement() {
            messages.warning(&texts::text(&changed));
        }
        Ok(source)
    }

    fn columns(&self) -> Vec<Column> {
        match self {
            Source::Run(_) => rows::columns(),
            Source::Experiment(experiment) => experiment::columns(experiment),
            Source::IndexBuild(_) => index_build::columns(),
            Source::Tail(_) => tail::columns(),
            Source::Trace(_) => trace::columns(),
        }
    }

    fn fill(&self, folder: &Path, table: &mut dyn Table) -> Result<(), Error> {
        match self {
            Source::Run(run) => rows::fill(run, table),
            Source::Experiment(experiment) => experiment::fill(experiment, table),
            Source::IndexBuild(build) => index_build::fill(&index_build_view(build), table),
            Source::Tail(document) => tail::fill(folder, document, table),
            Source::Trace(reader) => trace::fill(reader, table),
        }
    }
}

fn check(arguments: &ExportArguments) -> Result<(), Error> {
    let bad = |text: &str, hint: &str| Err(Error::new(Kind::BadInput, text).with_hint(hint));
    if arguments.to == ExportForm::Parquet && arguments.file.output.is_none() {
        return bad(
            "cannot write Parquet to standard output: it is a binary format",
            "name a file with `--output`",
        );
    }
    if arguments.to == ExportForm::WsfLogs {
        match &arguments.file.output {
            None => {
                return bad(
                    "cannot write `wsf-logs` to standard output: they are files in folders",
                    "name a folder with `--output`",
                );
            }
            Some(_) if arguments.file.force => {
                return bad(
                    "`--force` replaces single files, but `wsf-logs` are files in folders",
                    "name an empty or new folder",
                );
            }
            Some(folder) => output::check_folder(folder)?,
        }
    }
    if arguments.to != ExportForm::Hlog && arguments.phase.is_some() {
        return bad(
            "`--phase` requires `--to hlog`",
            "remove `--phase`; other formats have the phase in a column or label",
        );
    }
    Ok(())
}

fn write(
    arguments: &ExportArguments,
    folder: &Path,
    source: &Source,
    output: &mut (dyn Write + Send),
) -> Result<(), Error> {
    let fill = |table: &mut dyn Table| source.fill(folder, table);
    match (arguments.to, source) {
        (ExportForm::Csv, _) => csv::write(&source.columns(), &fill, output),
        (ExportForm::Parquet, _) => parquet::write(&source.columns(), &fill, output),
        (ExportForm::Openmetrics, Source::Run(run)) => openmetrics::write(run, output),
        (ExportForm::Hlog, _) => {
            let phase = arguments.phase;
            let copied = copy_latency_log(folder, phase, output);
            copied.map(|_| ()).map_err(|error| match error {
                CopyError::Record(error) => error.into(),
                CopyError::Write(error) => write_error(error),
            })
        }
        (ExportForm::Annotations, Source::Run(run)) => {
            let timeline = dyno_results::run::analyse(run).and_then(|analysis| analysis.timeline);
            let changes = timeline.map(|timeline| timeline.changes).unwrap_or_default();
            let found = annotations::all(run, &changes)?;
            write!(output, "{}", pretty_json(&found)).map_err(write_error)
        }
        (ExportForm::Openmetrics | ExportForm::Annotations, _) => {
            unreachable!("only runs have this format")
        }
        (ExportForm::WsfLogs, _) => unreachable!("not a single file"),
    }
}
