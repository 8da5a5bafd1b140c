//! The watched resources: the verdict, changes, sources and resource use. A run without watching has only its changes,
//! which come from its own windows.

mod changes;
mod grid;
mod lines;
mod panels;
mod resources;
mod sources;
mod specs;
mod verdict;
mod words;

pub(crate) use verdict::is_likely;

use crate::page::time::TimeCharts;
use crate::page::{Section, Verdict, charts_of};
use dyno_analyze::experiment::run::RunAnalysis;
use dyno_analyze::verdict::Bench;
use dyno_record::reader::Run;

/// The parts of a page about watched resources.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Watched {
    /// The cause that limited the run; absent if nothing was watched or analysed.
    pub(crate) verdict: Option<Verdict>,
    /// Changes over the measured time; absent if nothing changed.
    pub(crate) changes: Option<Section>,
    /// Charts of resources: those that the verdict cites, and the others folded.
    pub(crate) panels: Vec<Section>,
    /// Tables of resource use and of sources.
    pub(crate) tables: Vec<Section>,
}

impl Watched {
    /// Makes the parts, and adds the data of the charts on the points of the other charts.
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
        let (texts, data): (Vec<_>, Vec<_>) =
            panels.into_iter().map(|panel| (panel.text, panel.data)).unzip();
        charts.panels = data;
        let (cited, others): (Vec<_>, Vec<_>) = texts
            .into_iter()
            .partition(|chart| verdict.as_ref().is_some_and(|verdict| verdict.cites(&chart.id)));
        Watched {
            verdict,
            changes,
            panels: [
                ("Resources that the verdict cites", cited, false),
                ("Machine and server during the run", others, true),
            ]
            .into_iter()
            .filter(|(_, texts, _)| !texts.is_empty())
            .map(|(title, texts, is_folded)| Section {
                title: title.into(),
                lead: "Charts over time share one axis, cursor and zoom. Drag across one of them to zoom in, and \
                       double-click to reset."
                    .to_owned(),
                charts: charts_of(texts),
                is_grid: true,
                is_folded,
                ..Section::default()
            })
            .collect(),
            tables: tables.into_iter().flatten().collect(),
        }
    }
}
