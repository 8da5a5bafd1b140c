//! What can be watched.

use crate::health::{Health, Reading};
use dyno_record::metrics::MetricId;
use dyno_record::model::SourceKind;

/// What a source is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Name, and that of its file; unique among the sources of a run.
    pub name: String,
    /// Kind of source.
    pub kind: SourceKind,
    /// What it is about: a host name, or an address without credentials.
    pub subject: String,
    /// Whether it is about a machine that a server under test runs on, or such a server.
    pub of_server: bool,
}

/// Something that is read about once a second.
pub trait Source: Send {
    /// What it is.
    fn description(&self) -> Description;

    /// Reads it. `at_s` is the time now from the start of the run; it increases. What is counted from the
    /// start of the machine or server becomes a difference per second, so that the first reading lacks it. Must end within a
    /// few seconds, whatever the source does.
    ///
    /// # Errors
    /// Nothing could be read, and why.
    fn read(&mut self, at_s: f64) -> Reading<Reported>;
}

/// What a source reported at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    /// The values.
    pub values: Vec<(MetricId, f64)>,
    /// Parts that are not among them, and why. What does not exist here is no fault.
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

    /// Adds a value that is not known yet, such as the first one of a rate, once it is.
    pub(crate) fn put_if_known(&mut self, id: MetricId, value: Option<f64>) {
        self.values.extend(value.map(|value| (id, value)));
    }

    /// Tells that a part is missing; of several reasons for one part the first stays.
    pub(crate) fn miss(&mut self, part: &'static str, health: Health) {
        if !self.missing.iter().any(|(known, _)| *known == part) {
            self.missing.push((part, health));
        }
    }
}
