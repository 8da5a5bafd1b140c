//! Opens and analyses run directories.

use crate::ResultsError;
use crate::trace::{AnalysedTrace, TraceOptions};
use dyno_analyze::caveats::caveats;
use dyno_analyze::experiment::outages::outages;
use dyno_analyze::experiment::run::{RunAnalysis, analyze};
use dyno_analyze::timeline::timeline;
use dyno_analyze::verdict::{Bench, judge};
use dyno_analyze::windows::IntervalTotals;
use dyno_record::io_trace;
use dyno_record::model::{Caveat, CaveatKind, PhaseKind, RunDocument};
use dyno_record::reader::Run;
use dyno_record::sums;
use std::path::Path;

/// A recorded run and its analysis.
pub struct AnalysedRun {
    /// The run with its caveats.
    pub run: Run,
    /// `None` if the run measured nothing.
    pub analysis: Option<RunAnalysis>,
    /// Trace of file I/O, if the run has a readable one.
    pub trace: Option<AnalysedTrace>,
}

impl AnalysedRun {
    /// Opens and analyses a run directory. A run that was killed recorded no caveats, so this finds
    /// them.
    ///
    /// # Errors
    /// [`ResultsError::Record`] if the directory cannot be read or holds no run.
    pub fn open(directory: &Path) -> Result<Self, ResultsError> {
        let run = open(directory)?;
        // The run's checksums, checked above, include the trace.
        let trace = trace_of(&run.directory);
        Ok(AnalysedRun::with_trace(run, trace))
    }

    /// Analyses a run with known caveats and an analysed trace.
    pub fn with_trace(run: Run, trace: Option<AnalysedTrace>) -> Self {
        AnalysedRun { analysis: analyse(&run), run, trace }
    }
}

/// Reads a run's trace of file I/O. An unreadable trace must not hide the run's results.
fn trace_of(directory: &Path) -> Option<AnalysedTrace> {
    let folder = directory.join(io_trace::FOLDER);
    if !folder.join(io_trace::DOCUMENT).is_file() {
        return None;
    }
    AnalysedTrace::of_checked(&folder, &TraceOptions::default())
        .inspect_err(|error| tracing::warn!("cannot read the trace of the run: {error}"))
        .ok()
}

/// Opens a run directory. A run that was killed recorded no caveats, so this finds them. Adds a
/// caveat if the record was changed after it finished.
///
/// # Errors
/// [`ResultsError::Record`] if the directory cannot be read or holds no run.
pub fn open(directory: &Path) -> Result<Run, ResultsError> {
    let mut run = Run::open(directory)?;
    if run.rebuilt {
        // The figures do not show these: notes of the reader, and facts known when the run began.
        let kept =
            [CaveatKind::ProbeUnavailable, CaveatKind::DocumentCount, CaveatKind::CheckViolated];
        let known = run
            .document
            .caveats
            .iter()
            .filter(|caveat| kept.contains(&caveat.kind))
            .cloned()
            .collect();
        find_caveats(&mut run, known);
    }
    let changed = sums::check(directory)?.statement();
    let changed = changed.map(|said| Caveat::of_run(CaveatKind::RecordChanged, said));
    run.document.caveats.extend(changed);
    Ok(run)
}

/// Finds a run's caveats again. `known` are caveats that its figures do not show.
pub fn find_caveats(run: &mut Run, known: Vec<Caveat>) {
    let mut found = caveats(&run.document, &IntervalTotals::of_run(run));
    for caveat in known {
        let is_found = found
            .iter()
            .any(|other| other.kind == caveat.kind && other.statement == caveat.statement);
        if !is_found {
            found.push(caveat);
        }
    }
    run.document.caveats = found;
}

/// Analyses a run opened by [`open`]; `None` if it measured nothing.
pub fn analyse(run: &Run) -> Option<RunAnalysis> {
    let mut phases = run.document.phases.iter();
    if !phases.any(|phase| phase.name == PhaseKind::Measure) {
        return None;
    }
    let analysis = analyze(&run.document, &run.responses, seed(&run.document)).ok()?;
    let bench = bench(run);
    let timeline = timeline(&bench, &run.sub_second, seed(&run.document));
    let verdict = (!run.metrics.is_empty()).then(|| judge(&bench, &timeline.transitions()));
    let outages = outages(&run.document, &IntervalTotals::of_run(run), &run.sub_second);
    Some(analysis.concluded(&run.document, timeline, verdict, outages))
}

/// Share of CPU time that the hypervisor took while a run measured; `None` if no machine reported
/// it.
pub fn stolen_ratio(run: &Run) -> Option<f64> {
    bench(run).stolen_ratio()
}

fn bench(run: &Run) -> Bench<'_> {
    Bench {
        document: &run.document,
        tables: &run.metrics,
        windows: &run.intervals,
        operations: &run.series,
    }
}

/// Seed for resampling: the plan's seed, so that a run always gives the same figures.
fn seed(document: &RunDocument) -> u64 {
    document.recorded_plan().seed().unwrap_or(0)
}
