//! Interface of the sources that can be watched.

use crate::health::{Health, Reading};
use crate::watch::rates::Rates;
use dyno_record::metrics::MetricId;
use dyno_record::model::SourceKind;

/// Identity of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Name of the source and its file; unique among the sources of a run.
    pub name: String,
    pub kind: SourceKind,
    /// A host name, or an address without credentials.
    pub subject: String,
    /// Whether it reports a machine of a server under test, or such a server.
    pub of_server: bool,
}

/// A source that is read about once a second.
pub trait Source: Send {
    /// Identity of the source.
    fn description(&self) -> Description;

    /// Reads the source. `at_s` is the time from the start of the run; it increases. Totals since
    /// the start of the machine or server become differences per second, so the first reading lacks
    /// them. Must end within a few seconds, whatever the source does.
    ///
    /// # Errors
    /// Why nothing could be read.
    fn read(&mut self, at_s: f64) -> Reading<Reported>;
}

/// Values that a source reported at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    pub values: Vec<(MetricId, f64)>,
    /// Parts that are missing from the values, and why. A feature that does not exist here is not a
    /// fault.
    pub missing: Vec<(&'static str, Health)>,
}

impl Reported {
    /// Adds a value, or reports that it is missing.
    pub(crate) fn note(&mut self, part: &'static str, id: MetricId, reading: Reading<f64>) {
        match reading {
            Ok(value) => self.values.push((id, value)),
            Err(health) => self.miss(part, health),
        }
    }

    /// Adds a value.
    pub(crate) fn put(&mut self, id: MetricId, value: f64) {
        self.values.push((id, value));
    }

    /// Adds a value if it is known; a rate has no first value.
    pub(crate) fn put_if_known(&mut self, id: MetricId, value: Option<f64>) {
        self.values.extend(value.map(|value| (id, value)));
    }

    /// Adds the growth of a total per second, times a factor, if it is known.
    pub(crate) fn put_rate(
        &mut self,
        rates: &mut Rates,
        id: MetricId,
        total: Option<u64>,
        factor: f64,
    ) {
        let per_s = total.and_then(|total| rates.per_s(&id, total as f64));
        self.put_if_known(id, per_s.map(|per_s| per_s * factor));
    }

    /// Reports a part as missing; the first reason for a part stays.
    pub(crate) fn miss(&mut self, part: &'static str, health: Health) {
        if !self.missing.iter().any(|(known, _)| *known == part) {
            self.missing.push((part, health));
        }
    }
}
