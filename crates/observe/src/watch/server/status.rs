//! Converts the numbers of `serverStatus` to metrics, by the rows of the table.

use super::fields::Fields;
use super::table::{AREAS, Measure, Paths, ROWS, Row};
use crate::health::Health;
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::metrics::MetricId;

/// State kept between readings.
pub(crate) struct Status {
    entries: Vec<Entry>,
    rates: Rates,
    /// Time of the last reading, and the server's uptime then.
    up: Option<(f64, f64)>,
    /// Whether missing fields were reported since the server started.
    has_reported_missing: bool,
    /// Where the numbers come from, for messages about missing fields.
    place: &'static str,
}

/// A row of the table for this server.
struct Entry {
    row: &'static Row,
    id: MetricId,
    /// Keys of the row's totals, in the order of its paths.
    totals: Vec<MetricId>,
}

impl Status {
    /// For a server of this name; `place` is the origin of its numbers, such as "`serverStatus`".
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

    /// Takes a reading and returns whether the server was restarted since the last one: then all
    /// its totals are first ones.
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

    /// Reports the missing fields, once for each area.
    fn miss(&self, absent: &[&'static Row], reported: &mut Reported) {
        for (area, section) in AREAS {
            let is_of_area = |row: &&&'static Row| row.metric.group() == *area;
            let lacks: Vec<String> = absent
                .iter()
                .filter(is_of_area)
                .map(|row| format!("`{}`", row.metric.name()))
                .collect();
            let rows = ROWS.iter().filter(|row| row.metric.group() == *area).count();
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
    /// The value of a row if all its numbers are present; `None` if it needs an earlier reading or
    /// is undefined, such as a mean of nothing.
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
                // Pages read ahead were not requested yet, so there may be more misses than
                // requests.
                Some((1.0 - quotient(misses?, requests?)?).max(0.0))
            }
        }
    }
}

/// Smallest share of the elapsed time by which the uptime must grow: clocks are adjusted at times.
const UPTIME_SHARE: f64 = 0.9;
/// Allowed difference between uptimes and the clock of the readings: some servers report whole
/// seconds, and an answer takes time.
const UPTIME_SLACK_S: f64 = 2.0;

/// Whether the uptime shows a restart since the previous reading: it decreased, or grew clearly
/// less than the elapsed time. Both arguments are a time and the uptime at that time.
fn is_younger((now_s, up_s): (f64, f64), (before_s, was_up_s): (f64, f64)) -> bool {
    up_s < was_up_s || up_s - was_up_s < (now_s - before_s) * UPTIME_SHARE - UPTIME_SLACK_S
}

/// Key of a total, shared by all rows that need it.
fn total(paths: Paths) -> MetricId {
    MetricId::of("total", paths.first().copied().unwrap_or_default())
}

fn first_number(fields: &dyn Fields, paths: Paths) -> Option<f64> {
    paths.iter().find_map(|path| fields.number(path))
}

fn quotient(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}
