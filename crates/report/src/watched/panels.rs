//! Builds the charts of watched resources from their specifications and the recorded metrics.

use super::grid::Grid;
use super::lines::{self, Instance, Of, Together};
use super::specs::{CHECKPOINTS, Line, SPECS, Shown, Spec};
use crate::page::time::{Panel, PanelCurve, PanelUnit, TimeChart, TimeSeries};
use dyno_analyze::verdict::{Bench, TimeRange};
use dyno_record::metrics::{MetricId, MetricTable};

/// A chart, and the keys to find it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BuiltPanel {
    pub(super) text: TimeChart,
    pub(super) data: Panel,
    /// The source of its metrics; absent if there are several.
    source: Option<String>,
    spec_id: &'static str,
}

impl BuiltPanel {
    /// Whether the chart shows a series that is written as `SOURCE/METRIC`.
    pub(super) fn shows(&self, series: &str) -> bool {
        let Some((source, id)) = lines::source_and_id(series) else {
            return false;
        };
        let is_source = self.source.as_deref().is_none_or(|own| own == source);
        let mut specs = SPECS.iter().filter(|spec| spec.id == self.spec_id);
        is_source && specs.any(|spec| is_about(spec, &id))
    }
}

/// Whether a chart shows a metric. A chart without an instance name matches any instance.
fn is_about(spec: &Spec, id: &MetricId) -> bool {
    let shown = spec.lines.iter().flat_map(|line| line.metrics);
    shown.chain(spec.also).any(|metric| metric.is(id))
}

/// All charts with content, on the points of `time`.
pub(super) fn panels(bench: &Bench<'_>, time: &TimeSeries) -> Vec<BuiltPanel> {
    // Without a measured time the data disk is unknown: then charts cover all recorded time.
    let measured = bench
        .measured()
        .unwrap_or(TimeRange { start_s: 0.0, end_s: time.end_s.last().copied().unwrap_or(0.0) });
    let grid = Grid::new(time);
    let machines = lines::machines(bench);
    let mut built = Vec::new();
    for spec in SPECS {
        if spec.is_of_servers() {
            built.extend(of_servers(bench, spec, grid));
            continue;
        }
        for (number, table) in machines.iter().enumerate() {
            let found = of_machine(bench, spec, table, measured, grid);
            built.extend(found.map(|panel| match machines.len() {
                1 => panel,
                _ => numbered(panel, number, &machine_name(bench, table)),
            }));
        }
    }
    built
}

/// The name of a machine.
fn machine_name(bench: &Bench<'_>, table: &MetricTable) -> String {
    let source = bench.document.sources.iter().find(|source| source.name == table.source);
    source.map_or(table.source.clone(), |source| source.subject.clone())
}

/// One of the charts of several machines.
fn numbered(mut panel: BuiltPanel, number: usize, machine: &str) -> BuiltPanel {
    panel.text.title += &format!(" on {machine}");
    if number > 0 {
        panel.text.id += &format!("-{}", number + 1);
        panel.data.id.clone_from(&panel.text.id);
    }
    panel
}

fn of_servers(bench: &Bench<'_>, spec: &'static Spec, grid: Grid<'_>) -> Option<BuiltPanel> {
    let mut curves = Curves::new(spec, grid);
    for line in spec.lines {
        let group = line.metrics.first().map_or("", |metric| metric.group());
        let instances = lines::servers(bench, group);
        curves.add(line, &instances);
    }
    curves.built("", None)
}

fn of_machine(
    bench: &Bench<'_>,
    spec: &'static Spec,
    table: &MetricTable,
    measured: TimeRange,
    grid: Grid<'_>,
) -> Option<BuiltPanel> {
    let mut curves = Curves::new(spec, grid);
    for line in spec.lines {
        curves.add(line, &lines::on_machine(bench, table, line.of, measured));
    }
    let is_of = |of: Of| spec.lines.iter().any(|line| line.of == of);
    let subject = match (is_of(Of::DataDisk), is_of(Of::Interface)) {
        (true, _) => lines::data_device(bench, table, measured)?,
        (_, true) => lines::busiest_interface(table)?.to_owned(),
        _ => String::new(),
    };
    curves.built(&subject, Some(&table.source))
}

/// Curves of a chart under construction.
struct Curves<'a> {
    spec: &'static Spec,
    grid: Grid<'a>,
    curves: Vec<PanelCurve>,
    /// Instances with a colour of their own, in order of their colours.
    coloured: Vec<String>,
}

impl<'a> Curves<'a> {
    fn new(spec: &'static Spec, grid: Grid<'a>) -> Curves<'a> {
        Curves { spec, grid, curves: Vec::new(), coloured: Vec::new() }
    }

    /// Adds the reported curves of a line: one for each instance.
    fn add(&mut self, line: &Line, instances: &[Instance<'_>]) {
        for instance in instances {
            let values = if line.metrics == CHECKPOINTS {
                instance.checkpoints(self.grid)
            } else {
                instance.curve(line.metrics, self.grid, together(self.spec.unit))
            };
            if values.iter().all(Option::is_none) {
                continue;
            }
            let label = match (line.label.contains("{}"), instance.label.is_empty()) {
                (true, _) => line.label.replace("{}", &instance.label),
                (false, true) => line.label.to_owned(),
                (false, false) => format!("{} {}", instance.label, line.label),
            };
            // Several curves of one instance share its colour if there are several instances.
            let key =
                if instance.label.is_empty() { label.clone() } else { instance.label.clone() };
            let known = self.coloured.iter().position(|one| *one == key);
            let colour = known.unwrap_or(self.coloured.len());
            if known.is_none() {
                self.coloured.push(key);
            }
            self.curves.push(PanelCurve {
                label,
                colour,
                is_dashed: known.is_some(),
                is_area: line.metrics == CHECKPOINTS,
                values,
            });
        }
    }

    /// The chart, if it shows anything.
    fn built(self, subject: &str, source: Option<&str>) -> Option<BuiltPanel> {
        let spec = self.spec;
        is_worth_showing(spec.shown, &self.curves).then(|| BuiltPanel {
            text: TimeChart {
                id: spec.id.to_owned(),
                title: spec.title.replace("{}", subject),
                caption: spec.caption.to_owned(),
                is_low: true,
                ..TimeChart::default()
            },
            data: Panel {
                id: spec.id.to_owned(),
                unit: spec.unit,
                is_stacked: spec.is_stacked,
                curves: self.curves,
            },
            source: source.map(str::to_owned),
            spec_id: spec.id,
        })
    }
}

fn together(unit: PanelUnit) -> Together {
    match unit {
        PanelUnit::Ratio | PanelUnit::Milliseconds => Together::Mean,
        _ => Together::Sum,
    }
}

fn is_worth_showing(shown: Shown, curves: &[PanelCurve]) -> bool {
    let reported =
        |curve: &PanelCurve| -> Vec<f64> { curve.values.iter().copied().flatten().collect() };
    let any = |is_worth: fn(&[f64]) -> bool| curves.iter().any(|curve| is_worth(&reported(curve)));
    match shown {
        Shown::Reported => !curves.is_empty(),
        Shown::AboveNothing => any(|values| values.iter().any(|value| *value > 0.0)),
        Shown::OneOnAverage => {
            any(|values| values.iter().sum::<f64>() >= values.len() as f64 && !values.is_empty())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn chart_names_are_unique_and_each_metric_is_in_one_chart() {
        let mut names = BTreeSet::new();
        let mut homes = BTreeSet::new();
        for spec in SPECS {
            assert!(names.insert(spec.id), "{}", spec.id);
            let shown = spec.lines.iter().flat_map(|line| line.metrics);
            let own: BTreeSet<_> = shown.chain(spec.also).collect();
            for one in own {
                assert!(homes.insert(one), "{one} in {}", spec.id);
            }
        }
    }

    #[test]
    fn idle_chart_is_omitted_when_it_says_nothing() {
        let curve = |values: &[f64]| PanelCurve {
            label: String::new(),
            colour: 0,
            is_dashed: false,
            is_area: false,
            values: values.iter().map(|value| Some(*value)).collect(),
        };
        assert!(is_worth_showing(Shown::Reported, &[curve(&[0.0])]));
        assert!(!is_worth_showing(Shown::Reported, &[]));
        assert!(!is_worth_showing(Shown::AboveNothing, &[curve(&[0.0, 0.0])]));
        assert!(is_worth_showing(Shown::AboveNothing, &[curve(&[0.0, 0.1])]));
        assert!(!is_worth_showing(Shown::OneOnAverage, &[curve(&[0.0, 1.0])]));
        assert!(is_worth_showing(Shown::OneOnAverage, &[curve(&[3.0, 1.0])]));
    }
}
