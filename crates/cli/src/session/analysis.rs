//! What a recorded run means, found from its folder.

use crate::exit::Failure;
use dyno_analyze::course::course;
use dyno_analyze::experiment::run::{MOST_WINDOWS, RunAnalysis, analyze};
use dyno_analyze::verdict::{Bench, judge};
use dyno_record::model::{PhaseKind, RunDocument};
use dyno_record::reader::Run;
use dyno_record::responses::by_operation;

/// Analyses a run, whose caveats are known by now. `None` if it has measured nothing.
pub(crate) fn of(run: &Run) -> Result<Option<RunAnalysis>, Failure> {
    let mut phases = run.document.phases.iter();
    if !phases.any(|phase| phase.name == PhaseKind::Measure) {
        return Ok(None);
    }
    let responses = by_operation(&run.directory, PhaseKind::Measure, MOST_WINDOWS)?;
    let analysis = analyze(&run.document, &responses, seed(&run.document)).ok();
    Ok(analysis.map(|analysis| {
        let bench = bench(run);
        let course = course(&bench, &run.fine, seed(&run.document));
        let verdict = (!run.metrics.is_empty()).then(|| judge(&bench, &course.transitions()));
        RunAnalysis {
            verdict,
            course: Some(course),
            ..analysis
        }
    }))
}

/// Share of the CPU time that the hypervisor took while a run measured; `None` where no machine told.
pub(crate) fn stolen_ratio(run: &Run) -> Option<f64> {
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

/// Seed of the resampling: that of the plan, so that the same run always gives the same figures.
fn seed(document: &RunDocument) -> u64 {
    let seed = document.plan.pointer("/client/seed");
    seed.and_then(|seed| seed.as_u64()).unwrap_or(0)
}
