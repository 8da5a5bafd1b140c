//! From the numbers of `serverStatus` to metrics, by the table of them.

use super::fields::Fields;
use super::table::{AREAS, Measure, Paths, ROWS, Row};
use crate::health::Health;
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::metrics::MetricId;

/// The state from one reading to the next.
pub(crate) struct Status {
    entries: Vec<Entry>,
    rates: Rates,
    /// When the server was asked last, and for how long it had been up.
    up: Option<(f64, f64)>,
    /// Whether what the server lacks was reported since it started.
    has_reported_missing: bool,
    /// Where the numbers are from, for what is missing.
    place: &'static str,
}

/// A line of the table for this server.
struct Entry {
    row: &'static Row,
    id: MetricId,
    /// Under which the totals of the row are remembered, in the order of its paths.
    totals: Vec<MetricId>,
}

impl Status {
    /// For a server of this name; `place` is where its numbers are from, such as "`serverStatus`".
    pub(crate) fn new(instance: &str, place: &'static str) -> Status {
        let entry = |row: &'static Row| Entry {
            row,
            id: row.metric.of(instance),
            totals: row.measure.paths().map(total).collect(),
        };
        Status {
            entries: ROWS.iter().map(entry).collect(),
            rates: Rates::default(),
            up: None,
            has_reported_missing: false,
            place,
        }
    }

    /// Takes a reading, and says whether the server was started again since the last one: then all its totals
    /// are first ones.
    pub(crate) fn take(&mut self, at_s: f64, fields: &dyn Fields, reported: &mut Reported) -> bool {
        let uptime_s = fields
            .number("uptimeMillis")
            .map(|uptime_ms| uptime_ms / 1000.0)
            .or_else(|| fields.number("uptime"));
        let now = uptime_s.map(|uptime_s| (at_s, uptime_s));
        let is_restarted =
            matches!((now, self.up), (Some(now), Some(before)) if is_younger(now, before));
        self.up = now;
        if is_restarted {
            self.rates = Rates::default();
            self.has_reported_missing = false;
        }
        self.rates.begin(at_s);
        let mut absent = Vec::new();
        for entry in &self.entries {
            let is_there = |paths| first_number(fields, paths).is_some();
            if entry.row.measure.paths().all(is_there) {
                let value = entry.value(fields, &mut self.rates);
                reported.put_if_known(entry.id.clone(), value);
            } else {
                absent.push(entry.row);
            }
        }
        if !self.has_reported_missing {
            self.has_reported_missing = true;
            self.miss(&absent, reported);
        }
        is_restarted
    }

    /// Tells what the server lacks, once for each area.
    fn miss(&self, absent: &[&'static Row], reported: &mut Reported) {
        for (area, section) in AREAS {
            let is_of_area = |row: &&&'static Row| row.metric.group() == *area;
            let lacks: Vec<String> = absent
                .iter()
                .filter(is_of_area)
                .map(|row| format!("`{}`", row.metric.name()))
                .collect();
            let rows = ROWS
                .iter()
                .filter(|row| row.metric.group() == *area)
                .count();
            let place = self.place;
            let reason = match lacks.len() {
                0 => continue,
                count if count == rows => format!("`{section}` is not in {place}"),
                _ => format!("not in {place}: the fields for {}", lacks.join(", ")),
            };
            reported.miss(area, Health::Unsupported { reason });
        }
    }
}

impl Entry {
    /// The value, of a row whose numbers are all there; `None` if it needs an earlier reading or has no meaning, as a mean
    /// of nothing.
    fn value(&self, fields: &dyn Fields, rates: &mut Rates) -> Option<f64> {
        let number = |paths| first_number(fields, paths);
        let mut growth = |place: usize, paths| {
            rates.growth(self.totals.get(place)?, first_number(fields, paths)?)
        };
        match self.row.measure {
            Measure::Gauge(paths, factor) => Some(number(paths)? * factor),
            Measure::Flag(paths) => Some(f64::from(u8::from(number(paths)? != 0.0))),
            Measure::Rate(paths, factor) => {
                let growth = growth(0, paths);
                Some(growth? / rates.duration_s()? * factor)
            }
            Measure::Share(part, whole) => quotient(number(part)?, number(whole)?),
            Measure::Mean(sum, count, factor) => {
                let (sum, count) = (growth(0, sum), growth(1, count));
                Some(quotient(sum?, count?)? * factor)
            }
            Measure::Hits(misses, requests) => {
                let (misses, requests) = (growth(0, misses), growth(1, requests));
                // Pages read ahead were not requested yet, so that there may be more misses than requests.
                Some((1.0 - quotient(misses?, requests?)?).max(0.0))
            }
        }
    }
}

/// Share of the time between two readings that the clock of a server must show at least: clocks are set at times.
const UPTIME_SHARE: f64 = 0.9;
/// Times that uptimes may be apart from the clock of the readings: they are reported in whole seconds by some, and an answer
/// takes its time.
const UPTIME_SLACK_S: f64 = 2.0;

/// Whether a server has been up for less long than it must have been, had it not been started again since the reading
/// before: less than then, or by clearly less than the time between them. Both are a time and the uptime at it.
fn is_younger((now_s, up_s): (f64, f64), (before_s, was_up_s): (f64, f64)) -> bool {
    up_s < was_up_s || up_s - was_up_s < (now_s - before_s) * UPTIME_SHARE - UPTIME_SLACK_S
}

/// Under which a total is remembered: all rows that need it share it.
fn total(paths: Paths) -> MetricId {
    MetricId::of("total", paths.first().copied().unwrap_or_default())
}

fn first_number(fields: &dyn Fields, paths: Paths) -> Option<f64> {
    paths.iter().find_map(|path| fields.number(path))
}

fn quotient(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}
