//! What was watched beside the load: the verdict, what changed, the sources, and what resources did. A run that was not
//! watched has none of it but its changes, which come from its own windows.

mod changes;
mod grid;
mod lines;
mod panels;
mod resources;
mod sources;
mod specs;
mod verdict;
mod words;

use crate::page::time::TimeCharts;
use crate::page::{Section, Verdict, charts_of};
use dyno_analyze::experiment::run::RunAnalysis;
use dyno_analyze::verdict::Bench;
use dyno_record::reader::Run;

/// What a page shows of what was watched.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Watched {
    /// What held the run up; absent if nothing was watched, or nothing analysed.
    pub(crate) verdict: Option<Verdict>,
    /// What changed over the measured time; absent if nothing did.
    pub(crate) changes: Option<Section>,
    /// Charts of resources; absent if there is nothing to show.
    pub(crate) panels: Option<Section>,
    /// Tables: what resources did, and what was watched.
    pub(crate) tables: Vec<Section>,
}

impl Watched {
    /// What was watched, and the data of its charts on the points of the others.
    pub(crate) fn new(run: &Run, analysis: Option<&RunAnalysis>, charts: &mut TimeCharts) -> Self {
        let bench = Bench {
            document: &run.document,
            tables: &run.metrics,
            windows: &run.intervals,
            operations: &run.series,
        };
        let measured = bench.measured();
        let panels = panels::panels(&bench, &charts.time);
        let timeline = analysis.and_then(|analysis| analysis.timeline.as_ref());
        let changes = timeline.zip(measured);
        let changes = changes.and_then(|(timeline, measured)| changes::changes(timeline, measured));
        let verdict = analysis
            .and_then(|analysis| analysis.verdict.as_ref())
            .filter(|_| !run.metrics.is_empty())
            .map(|verdict| verdict::verdict(verdict, measured, &panels));
        let tables = [
            measured.and_then(|measured| resources::section(&bench, measured)),
            sources::section(&run.document.sources),
        ];
        let (changes, marks) = changes.unzip();
        charts.changes = marks.unwrap_or_default();
        let (texts, data): (Vec<_>, Vec<_>) = panels
            .into_iter()
            .map(|panel| (panel.text, panel.data))
            .unzip();
        charts.panels = data;
        Watched {
            verdict,
            changes,
            panels: (!texts.is_empty()).then(|| Section {
                title: "What the machine and the server did meanwhile".into(),
                lead: "On the same axis of time: cursor and zoom hold for all of these charts. Drag across one of them to \
                       zoom in, and double-click to see the whole again."
                    .to_owned(),
                charts: charts_of(texts),
                is_grid: true,
                ..Section::default()
            }),
            tables: tables.into_iter().flatten().collect(),
        }
    }
}
