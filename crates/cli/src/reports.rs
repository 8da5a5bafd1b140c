//! Reports: the files next to a record, and the text on standard output.

use crate::args::run::ExtentArguments;
use crate::invocation::Invocation;
use crate::messages::{Messages, print_data};
use crate::surroundings::Surroundings;
use dyno_engine::files::write_file;
use dyno_engine::{Error, Kind, Observer};
use dyno_record::Document;
use dyno_record::experiment::{Experiment, Verb};
use dyno_record::index_build::IndexBuildDocument;
use dyno_record::io_trace;
use dyno_record::io_trace::document::TraceDocument;
use dyno_record::model::{CaveatKind, RunDocument};
use dyno_record::reader::Run;
use dyno_record::tail::TailDocument;
use dyno_report::index_build::IndexBuildView;
use dyno_report::io_trace::TraceView;
use dyno_report::page::Page;
use dyno_report::tail::TailView;
use dyno_report::{
    Extent, Format, PageFormat, RenderOptions, ReportError, experiment, index_build, render_traced,
    tail, texts,
};
use dyno_results::{AnalysedIndexBuild, AnalysedMessages, AnalysedRun, AnalysedTrace};
use serde::Serialize;
use std::path::Path;

/// Name of the HTML page in the folder of a record.
pub(crate) const HTML: &str = "report.html";
/// Name of the Markdown report in the folder of a record.
const MARKDOWN: &str = "report.md";

/// Folders in which runs and experiments are kept, unless `--out` names another.
pub(crate) const HOMES: [&str; 2] = ["runs", "experiments"];

/// Writes the reports of runs and experiments once their records are complete.
pub(crate) struct ReportFiles {
    /// For warnings about missing reports.
    pub(crate) messages: Messages,
}

impl Observer for ReportFiles {
    fn run_saved(&mut self, run: &AnalysedRun) -> Result<(), Error> {
        let directory = &run.run.directory;
        write_both(directory, |format, options| run_text(run, format.into(), options))?;
        if let Some(trace) = &run.trace {
            let folder = directory.join(io_trace::FOLDER);
            let written = write_both(&folder, |format, options| trace_text(trace, format, options));
            // Only a warning: the record of the trace is complete, and the run has its own reports.
            if let Err(error) = written {
                let text = format!("cannot write the reports of the trace: {error}");
                self.messages.warning(&text);
            }
        }
        Ok(())
    }

    fn experiment_saved(&mut self, document: &Experiment, folder: &Path) -> Result<(), Error> {
        write_both(folder, |format, options| experiment::render(document, format, options))
    }
}

/// Error for a complete record that cannot be rendered, which is a bug.
fn unrenderable(error: ReportError) -> Error {
    Error::from_cause(Kind::Internal, error)
}

/// Error for a requested report that the record cannot provide.
pub(crate) fn refused(error: ReportError) -> Error {
    match error {
        ReportError::Json { .. } | ReportError::Template { .. } => unrenderable(error),
        _ => Error::from_cause(Kind::BadInput, error),
    }
}

/// Writes the reports of a record other than a run into its folder.
fn write_both(
    folder: &Path,
    render: impl Fn(PageFormat, &RenderOptions) -> Result<String, ReportError>,
) -> Result<(), Error> {
    for (name, format) in [(HTML, PageFormat::Html), (MARKDOWN, PageFormat::Markdown)] {
        let text = render(format, &RenderOptions::default()).map_err(unrenderable)?;
        write_file(&folder.join(name), &text)?;
    }
    Ok(())
}

/// Writes the reports to the folder, and prints one of them and the folder.
pub(crate) fn present(
    folder: &Path,
    (format, extent): (PageFormat, &ExtentArguments),
    report: &Report,
    invocation: Invocation<'_>,
) -> Result<(), Error> {
    report.write(folder)?;
    let options = terminal_options(invocation.surroundings, extent_of(folder, extent));
    print_data(&report.render(format, &options).map_err(refused)?)?;
    if format != PageFormat::Human || extent.full {
        invocation.messages.note(&format!("results: {}", folder.display()));
    }
    Ok(())
}

/// Opens a run for a format without caveats, and warns if its record was changed.
pub(crate) fn open_for_programs(folder: &Path, messages: Messages) -> Result<Run, Error> {
    let run = dyno_results::run::open(folder)?;
    let caveats = run.document.caveats.iter();
    for caveat in caveats.filter(|caveat| caveat.kind == CaveatKind::RecordChanged) {
        messages.warning(&texts::text(&caveat.statement));
    }
    Ok(run)
}

/// Renders a run. YCSB's output and the key figures do not include its analysis and its trace.
pub(crate) fn run_text(
    results: &AnalysedRun,
    format: Format,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    let trace = results.trace.as_ref().map(trace_view);
    render_traced(&results.run, results.analysis.as_ref(), trace.as_ref(), format, options)
}

/// Refuses a format that exists only for suites.
pub(crate) fn check_run_format(format: Format) -> Result<(), Error> {
    if format != Format::Csv {
        return Ok(());
    }
    let hint = "run several workloads with `dyno run`, or export the windows of a run with `dyno export RUN --to csv`";
    Err(refused(ReportError::NoTable).with_hint(hint))
}

/// Refuses a format that does not exist for experiments.
pub(crate) fn check_experiment_format(verb: Verb, format: Format) -> Result<(), Error> {
    match format {
        Format::Ycsb | Format::Kpi => {
            let text = "the formats `ycsb` and `kpi` need a single run, not an experiment";
            let hint = "pass one of its runs, below `runs`, to `dyno report`";
            Err(Error::new(Kind::BadInput, text).with_hint(hint))
        }
        Format::Csv if verb != Verb::Suite => {
            let hint = "write the figures of the runs with `dyno export EXPERIMENT --to csv`";
            Err(refused(ReportError::NoTable).with_hint(hint))
        }
        _ => Ok(()),
    }
}

/// Renders an experiment for standard output or a file.
pub(crate) fn experiment_text(
    document: &Experiment,
    format: Format,
    options: &RenderOptions,
) -> Result<String, Error> {
    check_experiment_format(document.verb, format)?;
    let text = match PageFormat::from_format(format) {
        Some(format) => experiment::render(document, format, options),
        None => experiment::csv(document),
    };
    text.map_err(refused)
}

/// Converts a trace for the reports.
fn trace_view(trace: &AnalysedTrace) -> TraceView<'_> {
    TraceView {
        document: &trace.document,
        patterns: &trace.patterns,
        slices: &trace.slices,
        activity: &trace.activity,
    }
}

/// Renders a trace.
fn trace_text(
    trace: &AnalysedTrace,
    format: PageFormat,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    dyno_report::io_trace::render(&trace_view(trace), format, options)
}

/// Converts an index build for the reports.
pub(crate) fn index_build_view(build: &AnalysedIndexBuild) -> IndexBuildView<'_> {
    let traces = build.traces.iter();
    IndexBuildView {
        document: &build.document,
        traces: traces.map(|(name, trace)| (name.clone(), trace_view(trace))).collect(),
    }
}

fn tail_view(messages: &AnalysedMessages) -> TailView<'_> {
    TailView { document: &messages.document, messages: &messages.cells }
}

/// The kind of the record in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordKind {
    Run,
    Experiment,
    IndexBuild,
    Tail,
    Trace,
}

impl RecordKind {
    /// All kinds; of several documents in a folder, the first one counts.
    pub(crate) const ALL: [RecordKind; 5] = [
        RecordKind::Experiment,
        RecordKind::IndexBuild,
        RecordKind::Tail,
        RecordKind::Trace,
        RecordKind::Run,
    ];

    /// A folder without a known document counts as a run, whose reader explains what is missing.
    pub(crate) fn of(folder: &Path) -> Self {
        let is_in = |kind: &RecordKind| folder.join(kind.document()).symlink_metadata().is_ok();
        Self::ALL.into_iter().find(is_in).unwrap_or(RecordKind::Run)
    }

    /// Name of the document.
    pub(crate) fn document(self) -> &'static str {
        match self {
            RecordKind::Run => RunDocument::FILE,
            RecordKind::Experiment => Experiment::FILE,
            RecordKind::IndexBuild => IndexBuildDocument::FILE,
            RecordKind::Tail => TailDocument::FILE,
            RecordKind::Trace => TraceDocument::FILE,
        }
    }

    /// With its article.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RecordKind::Run => "a run",
            RecordKind::Experiment => "an experiment",
            RecordKind::IndexBuild => "an index build",
            RecordKind::Tail => "messages of `dyno tail`",
            RecordKind::Trace => "a trace of file I/O",
        }
    }
}

/// An analysed record, whatever its kind.
pub(crate) enum Report {
    Run(Box<AnalysedRun>),
    Experiment(Box<Experiment>),
    IndexBuild(AnalysedIndexBuild),
    Tail(AnalysedMessages),
    Trace(AnalysedTrace),
}

impl Report {
    /// Renders the page or the document of the record.
    pub(crate) fn render(
        &self,
        format: PageFormat,
        options: &RenderOptions,
    ) -> Result<String, ReportError> {
        match self {
            Report::Run(run) => run_text(run, format.into(), options),
            Report::Experiment(document) => experiment::render(document, format, options),
            Report::IndexBuild(build) => {
                index_build::render(&index_build_view(build), format, options)
            }
            Report::Tail(messages) => tail::render(&tail_view(messages), format, options),
            Report::Trace(trace) => trace_text(trace, format, options),
        }
    }

    /// Writes the reports of the record into its folder.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        write_both(folder, |format, options| self.render(format, options))
    }

    /// The page of the record.
    pub(crate) fn page(&self) -> Page {
        match self {
            Report::Run(run) => {
                let trace = run.trace.as_ref().map(trace_view);
                dyno_report::run::page(&run.run, run.analysis.as_ref(), trace.as_ref())
            }
            Report::Experiment(document) => experiment::page(document),
            Report::IndexBuild(build) => index_build::page(&index_build_view(build)),
            Report::Tail(messages) => tail::page(&tail_view(messages)),
            Report::Trace(trace) => dyno_report::io_trace::page(&trace_view(trace)),
        }
    }
}

/// Length of the report of a folder, with a pointer to the whole report.
pub(crate) fn extent_of(folder: &Path, extent: &ExtentArguments) -> Extent {
    if extent.full {
        return Extent::Full;
    }
    let mut rest = format!("The whole report: `dyno report {} --full`", folder.display());
    let page = folder.join(HTML);
    if page.is_file() {
        rest += &format!(", or {}", page.display());
    }
    if !HOMES.iter().any(|home| folder.starts_with(home)) {
        rest += &format!("; `dyno runs {}` lists it", folder.display());
    }
    Extent::Brief { rest }
}

/// Render options for standard output.
pub(crate) fn terminal_options(surroundings: &Surroundings, extent: Extent) -> RenderOptions {
    RenderOptions {
        extent,
        width: surroundings.columns.unwrap_or(RenderOptions::default().width),
        colours: surroundings.columns.is_some() && !surroundings.no_color,
        ..RenderOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_line_says_how_to_list_a_folder_elsewhere() {
        let says = |folder: &str| {
            let extent = extent_of(Path::new(folder), &ExtentArguments::default());
            matches!(extent, Extent::Brief { rest } if rest.contains("`dyno runs "))
        };
        assert!(says("first") && says("/data/results/first"));
        assert!(!says("runs/first") && !says("experiments/first"));
    }
}
