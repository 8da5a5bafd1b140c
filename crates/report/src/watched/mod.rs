//! What was watched beside the load, for all renderers: the verdict, what changed, the sources, and what resources
//! did. A run that was not watched has none of it but its changes, which come from its own windows.

mod changes;
mod chart;
mod grid;
mod lines;
pub(crate) mod markdown;
mod panels;
mod resources;
mod sources;
mod specs;
pub(crate) mod terminal;
mod verdict;

pub use changes::{ChangeEntry, ChangesModel};
pub use chart::{Charted, Panel, PanelCurve, PanelText, PanelUnit};
pub use sources::MissingParts;
pub use verdict::{CauseModel, EvidenceModel, VerdictModel};

use crate::experiment::model::Section;
use crate::series::TimeSeries;
use dyno_analyze::experiment::run::RunAnalysis;
use dyno_analyze::verdict::{Bench, Stretch};
use dyno_record::quantity::Quantity;
use dyno_record::reader::Run;
use serde::Serialize;

/// Ends of two times that are no further apart than this are the same: windows are seldom shorter.
const SAME_S: f64 = 1.0;

/// What a report shows of what was watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WatchedModel {
    /// What held the run up; absent if nothing was watched, or nothing analysed.
    pub verdict: Option<VerdictModel>,
    /// What changed over the measured time; absent if nothing did.
    pub changes: Option<ChangesModel>,
    /// Charts of resources, in their order; the data is in the charts.
    pub panels: Vec<PanelText>,
    /// Tables: what resources did, and what was watched.
    pub sections: Vec<Section>,
    /// Parts of sources that are missing, with the reasons.
    pub missing: Vec<MissingParts>,
}

impl WatchedModel {
    /// Makes the model, and the data of its charts on the points of `time`.
    pub(crate) fn new(
        run: &Run,
        analysis: Option<&RunAnalysis>,
        time: &TimeSeries,
    ) -> (WatchedModel, Charted) {
        let bench = Bench {
            document: &run.document,
            tables: &run.metrics,
            windows: &run.intervals,
            operations: &run.series,
        };
        let panels = panels::panels(&bench, time);
        let course = analysis.and_then(|analysis| analysis.course.as_ref());
        let changes = course.and_then(|course| changes::changes(course, bench.measured()));
        let verdict = analysis
            .and_then(|analysis| analysis.verdict.as_ref())
            .filter(|_| !run.metrics.is_empty())
            .map(|verdict| verdict::verdict(verdict, bench.measured(), &panels));
        let sections = [
            bench
                .measured()
                .and_then(|measured| resources::section(&bench, measured)),
            sources::section(&run.document.sources),
        ];
        let marks = changes.as_ref().map(ChangesModel::marks);
        let model = WatchedModel {
            verdict,
            changes,
            panels: panels.iter().map(|panel| panel.text.clone()).collect(),
            sections: sections.into_iter().flatten().collect(),
            missing: sources::missing(&run.document.sources),
        };
        let charted = Charted {
            panels: panels.into_iter().map(|panel| panel.data).collect(),
            changes: marks.unwrap_or_default(),
        };
        (model, charted)
    }
}

/// A part of the measured time in words, which count from its start: `from 30.9 s on`.
fn when(start_s: f64, end_s: f64, measured: Option<Stretch>) -> String {
    let Some(measured) = measured else {
        return String::new();
    };
    let time = |at_s: f64| Quantity::seconds((at_s - measured.start_s).max(0.0));
    let from_start = start_s <= measured.start_s + SAME_S;
    let to_end = end_s >= measured.end_s - SAME_S;
    match (from_start, to_end) {
        (true, true) => "all the measured time".to_owned(),
        (true, false) => format!("in the first {} of the measured time", time(end_s)),
        (false, true) => format!("from {} of the measured time to its end", time(start_s)),
        (false, false) => format!(
            "from {} to {} of the measured time",
            time(start_s),
            time(end_s)
        ),
    }
}

/// `a`, `a and b`, `a, b and c`.
fn list(words: &[impl AsRef<str>]) -> String {
    match words {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_from_the_start_of_the_measured_time() {
        let measured = Some(Stretch {
            start_s: 6.0,
            end_s: 66.0,
        });
        let cases = [
            ((6.0, 66.0), "all the measured time"),
            ((6.4, 36.0), "in the first 30.0 s of the measured time"),
            ((36.0, 65.2), "from 30.0 s of the measured time to its end"),
            ((16.0, 26.0), "from 10.0 s to 20.0 s of the measured time"),
        ];
        for ((start_s, end_s), expected) in cases {
            assert_eq!(when(start_s, end_s, measured), expected);
        }
    }

    #[test]
    fn lists_end_with_and() {
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
        assert_eq!(list(&["a"]), "a");
        assert_eq!(list(&[""; 0]), "");
    }
}
