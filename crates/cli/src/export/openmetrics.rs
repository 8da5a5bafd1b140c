//! Exports a run as OpenMetrics text with timestamps, for `promtool tsdb create-blocks-from openmetrics`.
//! The names are the same as in the live metrics.

use crate::export::rows::started;
use crate::metrics::families::of_totals;
use crate::metrics::family::{self, Family, Labels, Value};
use crate::metrics::observed::{exposed, help};
use crate::metrics::text::{END, put_head, put_point};
use crate::metrics::totals::Totals;
use crate::metrics::window;
use dyno_engine::Error;
use dyno_engine::files::write_error;
use dyno_engine::observer::RunFacts;
use dyno_record::metrics::MetricTable;
use dyno_record::model::{PhaseKind, RunDocument};
use dyno_record::reader::Run;
use dyno_record::recorded::RecordedWindows;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;

/// Writes the text.
pub(crate) fn write(run: &Run, output: &mut dyn Write) -> Result<(), Error> {
    let started_s = started(&run.document)?.as_microsecond() as f64 / 1e6;
    for series in load(run, started_s)?.families {
        let mut text = String::new();
        put_head(&mut text, &series.family);
        for (labels, points) in &series.points {
            for (at_s, value) in points {
                put_point(&mut text, &series.family, labels, value, Some(*at_s));
            }
        }
        output.write_all(text.as_bytes()).map_err(write_error)?;
    }
    for (family, columns) in observed(&run.metrics) {
        let mut text = String::new();
        put_head(&mut text, &family);
        for column in columns {
            column.put(&mut text, &family, started_s);
        }
        output.write_all(text.as_bytes()).map_err(write_error)?;
    }
    output.write_all(END.as_bytes()).map_err(write_error)
}

/// Families with their points over time, because OpenMetrics requires the points of a series in one block.
#[derive(Default)]
struct Timed {
    families: Vec<Series>,
    places: HashMap<String, usize>,
}

struct Series {
    /// Name and help text, without points.
    family: Family,
    points: BTreeMap<Labels, Vec<(f64, Value)>>,
}

impl Timed {
    fn add(&mut self, families: Vec<Family>, at_s: f64) {
        // The text has milliseconds.
        let at_s = (at_s * 1e3).round() / 1e3;
        for mut family in families {
            let points = std::mem::take(&mut family.points);
            let next = self.families.len();
            let place = *self.places.entry(family.name.clone()).or_insert(next);
            if place == next {
                self.families.push(Series { family, points: BTreeMap::new() });
            }
            let series = &mut self.families[place];
            for (labels, value) in points {
                let known = series.points.entry(labels).or_default();
                match known.last_mut() {
                    Some(last) if last.0 >= at_s => last.1 = value,
                    _ => known.push((at_s, value)),
                }
            }
        }
    }
}

/// Figures of the load at the end of each recording window.
fn load(run: &Run, started_s: f64) -> Result<Timed, Error> {
    let mut totals = Totals::default();
    totals.begin(facts(run, started_s));
    totals.status = Some(run.document.status);
    let mut timed = Timed::default();
    let mut windows = RecordedWindows::open(&run.directory)?;
    let mut end_s = None;
    while let Some(window) = windows.next_window()? {
        totals.add(&window);
        let at_s = started_s + window::end_s(&window);
        timed.add(of_totals(&totals), at_s);
        end_s = Some(at_s);
    }
    if let Some(end_s) = end_s {
        totals.end_phase();
        timed.add(of_totals(&totals), end_s + 1e-3);
    }
    Ok(timed)
}

fn facts(run: &Run, started_s: f64) -> RunFacts {
    let document = &run.document;
    let directory = std::path::absolute(&run.directory).unwrap_or_else(|_| run.directory.clone());
    let directory = directory.file_name().unwrap_or_default().to_string_lossy();
    RunFacts {
        name: document.name.clone(),
        version: document.dyno_version.clone(),
        server: document.server.kind.clone(),
        directory: directory.into_owned(),
        started_s,
        offered_rate_per_s: offered_rate_per_s(document),
    }
}

fn offered_rate_per_s(document: &RunDocument) -> Option<f64> {
    let measured = document.phases.iter().find(|phase| phase.name == PhaseKind::Measure);
    measured?.offered_rate_per_s
}

/// A metric of a source.
struct Column<'a> {
    labels: Labels,
    factor: f64,
    at_s: &'a [f64],
    values: &'a [f64],
}

impl Column<'_> {
    fn put(&self, text: &mut String, family: &Family, started_s: f64) {
        for (at_s, value) in self.at_s.iter().zip(self.values) {
            if value.is_finite() {
                let value = Value::Number(value * self.factor);
                put_point(text, family, &self.labels, &value, Some(started_s + at_s));
            }
        }
    }
}

/// Metrics of the sources by family.
fn observed(tables: &[MetricTable]) -> Vec<(Family, Vec<Column<'_>>)> {
    let mut families: BTreeMap<String, (Family, Vec<Column<'_>>)> = BTreeMap::new();
    for table in tables {
        for (id, values) in &table.columns {
            let exposed = exposed(&table.source, id);
            let (_, columns) = families.entry(exposed.name).or_insert_with_key(|name| {
                (Family::new(family::Kind::Gauge, name, &help(id)), Vec::new())
            });
            if columns.iter().all(|column| column.labels != exposed.labels) {
                columns.push(Column {
                    labels: exposed.labels,
                    factor: exposed.factor,
                    at_s: &table.at_s,
                    values,
                });
            }
        }
    }
    families.into_values().collect()
}
