//! What becomes of a recorded run: its caveats, the report files, and the text on standard output.

use crate::exit::{Exit, Failure};
use crate::io_trace::reports::{Analysed, Asked};
use crate::messages::print_data;
use crate::session::analysis;
use crate::session::execute::Hands;
use crate::surroundings::Surroundings;
use dyno_analyze::caveats::{IntervalTotals, caveats};
use dyno_analyze::experiment::run::RunAnalysis;
use dyno_record::io_trace;
use dyno_record::model::{Caveat, CaveatKind};
use dyno_record::reader::Run;
use dyno_report::experiment::ExperimentFormat;
use dyno_report::{Format, RenderOptions, render, render_traced};
use std::path::{Path, PathBuf};

/// Name of the page in the run directory.
pub(crate) const HTML: &str = "report.html";
/// Name of the Markdown report in the run directory.
pub(crate) const MARKDOWN: &str = "report.md";
/// Operation of the load phase with several documents per command.
const BATCH: &str = "insert_batch";

/// Finds the reasons to doubt a run anew; `known` are those that its figures do not show.
pub(crate) fn find_caveats(run: &mut Run, known: Vec<Caveat>) {
    let mut found = caveats(&run.document, &IntervalTotals::of_run(run));
    for caveat in known {
        if !found
            .iter()
            .any(|other| other.kind == caveat.kind && other.message == caveat.message)
        {
            found.push(caveat);
        }
    }
    run.document.caveats = found;
}

/// Opens a run directory. A run that was killed has no caveats of its own, so they are found now.
pub(crate) fn open(directory: &Path) -> Result<Run, Failure> {
    let mut run = Run::open(directory)?;
    if run.rebuilt {
        // What the figures do not show: notes of the reader, and what was known when it began.
        let kept = [CaveatKind::ProbeUnavailable, CaveatKind::DocumentCount];
        let known = run
            .document
            .caveats
            .iter()
            .filter(|caveat| kept.contains(&caveat.kind))
            .cloned()
            .collect();
        find_caveats(&mut run, known);
    }
    Ok(run)
}

/// Renders a run with its analysis for standard output or a file.
pub(crate) fn text(
    run: &Run,
    analysis: Option<&RunAnalysis>,
    format: Format,
    options: &RenderOptions,
) -> Result<String, Failure> {
    if format == Format::Ycsb {
        return Ok(render(&with_inserts(run.clone()), None, format, options)?);
    }
    // What scripts read has none of it.
    let trace = match format {
        Format::Kpi => None,
        _ => trace_of(&run.directory),
    };
    let view = trace.as_ref().map(Analysed::view);
    Ok(render_traced(
        run,
        analysis,
        view.as_ref(),
        format,
        options,
    )?)
}

/// The trace of file I/O of a run, if it has one. One that cannot be read hides no result.
fn trace_of(directory: &Path) -> Option<Analysed> {
    let folder = directory.join(io_trace::FOLDER);
    if !folder.join(io_trace::DOCUMENT).is_file() {
        return None;
    }
    Analysed::of(&folder, &Asked::default())
        .inspect_err(|failure| {
            tracing::warn!("the trace of the run cannot be read: {:#}", failure.error);
        })
        .ok()
}

/// YCSB knows inserts only: a batch is its documents, with the latency of the batch.
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
    run.series
        .iter_mut()
        .for_each(|point| rename(&mut point.operation));
    run.distributions
        .iter_mut()
        .for_each(|entry| rename(&mut entry.operation));
    run
}

/// Analyses a run and writes the reports into its directory.
pub(crate) fn write_reports(run: &Run) -> Result<Option<RunAnalysis>, Failure> {
    let analysis = analysis::of(run)?;
    let trace = trace_of(&run.directory);
    let view = trace.as_ref().map(Analysed::view);
    for (name, format) in [(HTML, Format::Html), (MARKDOWN, Format::Markdown)] {
        let options = RenderOptions::default();
        let text = render_traced(run, analysis.as_ref(), view.as_ref(), format, &options)?;
        write_file(&run.directory.join(name), &text)?;
    }
    Ok(analysis)
}

/// Writes the reports of an experiment that is no run into its folder.
pub(crate) fn write_both(
    folder: &Path,
    render: impl Fn(ExperimentFormat, &RenderOptions) -> Result<String, Failure>,
) -> Result<(), Failure> {
    for (name, format) in [
        (HTML, ExperimentFormat::Html),
        (MARKDOWN, ExperimentFormat::Markdown),
    ] {
        let text = render(format, &RenderOptions::default())?;
        write_file(&folder.join(name), &text)?;
    }
    Ok(())
}

/// The end of a command: the reports in the folder, one of them on standard output, and where they are.
pub(crate) fn present(
    folder: &Path,
    format: ExperimentFormat,
    hands: Hands<'_>,
    render: impl Fn(ExperimentFormat, &RenderOptions) -> Result<String, Failure>,
) -> Result<(), Failure> {
    write_both(folder, &render)?;
    print_data(&render(format, &terminal_options(hands.surroundings))?)?;
    let note = format!("the experiment is in `{}`", folder.display());
    hands.messages.note(&note);
    Ok(())
}

/// Writes a file, whole or not at all. A device or a pipe is written to, and a link stays one.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let is_special = std::fs::metadata(&target).is_ok_and(|metadata| !metadata.is_file());
    let written = if is_special {
        std::fs::write(&target, text)
    } else {
        replace_file(&target, text)
    };
    written.map_err(|error| {
        Failure::of(Exit::Environment, error)
            .context(format!("cannot write `{}`", path.display()))
            .with_hint("check the path, its permissions and the free space")
    })
}

fn replace_file(path: &Path, text: &str) -> std::io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.new", std::process::id()));
    let temporary = PathBuf::from(temporary);
    std::fs::write(&temporary, text)
        .and_then(|()| std::fs::rename(&temporary, path))
        .inspect_err(|_| {
            let _ = std::fs::remove_file(&temporary);
        })
}

/// Options for text that goes to standard output.
pub(crate) fn terminal_options(surroundings: &Surroundings) -> RenderOptions {
    RenderOptions {
        width: surroundings
            .columns
            .unwrap_or(RenderOptions::default().width),
        colours: surroundings.columns.is_some() && !surroundings.no_color,
        ..RenderOptions::default()
    }
}
