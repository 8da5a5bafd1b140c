//! Reports: the files next to a record, and the text on standard output.

use crate::args::ExtentArguments;
use crate::invocation::Invocation;
use crate::messages::{Messages, print_data};
use crate::surroundings::Surroundings;
use dyno_analyze::experiment::run::RunAnalysis;
use dyno_engine::files::write_file;
use dyno_engine::{Error, Kind, Observer};
use dyno_record::experiment::{Experiment, Verb};
use dyno_record::io_trace;
use dyno_record::model::CaveatKind;
use dyno_record::reader::Run;
use dyno_report::index_build::IndexBuildView;
use dyno_report::io_trace::TraceView;
use dyno_report::tail::{CellMessages, TailView};
use dyno_report::{
    Extent, Format, PageFormat, RenderOptions, ReportError, experiment, render, render_traced,
    texts,
};
use dyno_results::{AnalysedIndexBuild, AnalysedMessages, AnalysedRun, AnalysedTrace};
use std::path::Path;

/// Name of the HTML page in the folder of a record.
pub(crate) const HTML: &str = "report.html";
/// Name of the Markdown report in the folder of a record.
const MARKDOWN: &str = "report.md";
/// Operation of the load phase with several documents per command.
const BATCH: &str = "insert_batch";

/// Writes the reports of runs and experiments once their records are complete.
pub(crate) struct ReportFiles {
    /// For warnings about missing reports.
    pub(crate) messages: Messages,
}

impl Observer for ReportFiles {
    fn run_saved(&mut self, run: &AnalysedRun) -> Result<(), Error> {
        let directory = &run.run.directory;
        let view = run.trace.as_ref().map(trace_view);
        for (name, format) in [(HTML, Format::Html), (MARKDOWN, Format::Markdown)] {
            let analysis = run.analysis.as_ref();
            let options = RenderOptions::default();
            let text = render_traced(&run.run, analysis, view.as_ref(), format, &options);
            write_file(&directory.join(name), &text.map_err(unrenderable)?)?;
        }
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
    invocation: Invocation<'_>,
    render: impl Fn(PageFormat, &RenderOptions) -> Result<String, ReportError>,
) -> Result<(), Error> {
    write_both(folder, &render)?;
    let options = terminal_options(invocation.surroundings, extent_of(folder, extent));
    print_data(&render(format, &options).map_err(refused)?)?;
    if format != PageFormat::Human || extent.full {
        let note = format!("the experiment is in `{}`", folder.display());
        invocation.messages.note(&note);
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

/// Renders a run for standard output or a file.
pub(crate) fn run_text(
    results: &AnalysedRun,
    format: Format,
    options: &RenderOptions,
) -> Result<String, Error> {
    let analysis: Option<&RunAnalysis> = results.analysis.as_ref();
    // The key figures do not include a trace.
    let trace = results.trace.as_ref().filter(|_| format != Format::Kpi);
    match format {
        Format::Ycsb => ycsb_text(&results.run, options).map_err(refused),
        format => {
            let view = trace.map(trace_view);
            render_traced(&results.run, analysis, view.as_ref(), format, options).map_err(refused)
        }
    }
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
        Format::Csv if verb != Verb::Suite => Err(refused(ReportError::NoTable)),
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

/// Renders a run in YCSB's format.
pub(crate) fn ycsb_text(run: &Run, options: &RenderOptions) -> Result<String, ReportError> {
    render(&with_inserts(run.clone()), None, Format::Ycsb, options)
}

/// Converts batches to YCSB's inserts: one insert per document, each with the latency of its batch.
fn with_inserts(mut run: Run) -> Run {
    let rename = |name: &mut String| {
        if name == BATCH {
            *name = "insert".into();
        }
    };
    for phase in &mut run.document.phases {
        if let Some(record) = phase.operations.remove(BATCH) {
            phase.operations.insert("insert".into(), record);
        }
    }
    run.series.iter_mut().for_each(|point| rename(&mut point.operation));
    run.distributions.iter_mut().for_each(|entry| rename(&mut entry.operation));
    run
}

/// Converts a trace for the reports.
pub(crate) fn trace_view(trace: &AnalysedTrace) -> TraceView<'_> {
    TraceView {
        document: &trace.document,
        patterns: &trace.patterns,
        slices: &trace.slices,
        activity: &trace.activity,
    }
}

/// Renders a trace.
pub(crate) fn trace_text(
    trace: &AnalysedTrace,
    format: PageFormat,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    dyno_report::io_trace::render(&trace_view(trace), format, options)
}

/// Writes the reports of a trace into its folder.
pub(crate) fn write_trace(trace: &AnalysedTrace, folder: &Path) -> Result<(), Error> {
    write_both(folder, |format, options| trace_text(trace, format, options))
}

/// Renders an index build.
pub(crate) fn index_build_text(
    build: &AnalysedIndexBuild,
    format: PageFormat,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    dyno_report::index_build::render(&index_build_view(build), format, options)
}

/// Converts an index build for the reports.
pub(crate) fn index_build_view(build: &AnalysedIndexBuild) -> IndexBuildView<'_> {
    let traces = build.traces.iter();
    IndexBuildView {
        document: &build.document,
        traces: traces.map(|(name, trace)| (name.clone(), trace_view(trace))).collect(),
    }
}

/// Renders messages of `dyno tail`.
pub(crate) fn messages_text(
    messages: &AnalysedMessages,
    format: PageFormat,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    let cells = cells(messages);
    dyno_report::tail::render(&tail_view(messages, &cells), format, options)
}

/// Converts the messages of all cells for the reports.
pub(crate) fn cells(messages: &AnalysedMessages) -> Vec<CellMessages> {
    let cells = messages.cells.iter().map(|cell| CellMessages {
        cell: cell.cell.clone(),
        latencies_ns: cell.latencies_ns.clone(),
    });
    cells.collect()
}

/// Converts messages and their cells for the reports.
pub(crate) fn tail_view<'a>(
    messages: &'a AnalysedMessages,
    cells: &'a [CellMessages],
) -> TailView<'a> {
    TailView { document: &messages.document, messages: cells }
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
