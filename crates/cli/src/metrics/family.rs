//! A family of metrics in the sense of OpenMetrics: one name with its meaning, and points that differ by their labels.

use crate::metrics::buckets::Buckets;

/// Kind of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

/// Labels with their values, in the order in which they are written.
pub(crate) type Labels = Vec<(String, String)>;

/// The value of a point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Of a counter that counts.
    Count(u64),
    /// Of a gauge, or of a counter that measures.
    Number(f64),
    /// Latencies.
    Buckets(Box<Buckets>),
    /// Of an info: its labels say everything.
    Info,
}

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Family {
    /// Name with its unit, and without the suffix of its kind (`_total`, `_info`, `_bucket`).
    pub(crate) name: String,
    /// One sentence without an end.
    pub(crate) help: String,
    /// The unit, if the name ends in one: a base unit such as `seconds`.
    pub(crate) unit: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) points: Vec<(Labels, Value)>,
}

impl Family {
    /// A family without points yet.
    pub(crate) fn new(kind: Kind, name: &str, help: &str) -> Family {
        Family {
            name: name.to_owned(),
            help: help.to_owned(),
            unit: unit_of(name).map(str::to_owned),
            kind,
            points: Vec::new(),
        }
    }

    /// Adds a point.
    pub(crate) fn put(&mut self, labels: &[(&str, &str)], value: Value) {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.points.push((labels.iter().map(own).collect(), value));
    }

    /// The same with one more point.
    pub(crate) fn with(mut self, labels: &[(&str, &str)], value: Value) -> Family {
        self.put(labels, value);
        self
    }
}

/// The unit at the end of a name, as OpenMetrics wants it told. A rate has none: `_per_second` is not a unit of its own.
pub(crate) fn unit_of(name: &str) -> Option<&str> {
    const UNITS: [&str; 5] = ["seconds", "bytes", "ratio", "hertz", "celsius"];
    let (_, last) = name.rsplit_once('_')?;
    let is_rate = name.ends_with("_per_second");
    UNITS
        .into_iter()
        .find(|unit| *unit == last)
        .filter(|_| !is_rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_a_name_is_its_end() {
        for (name, unit) in [
            ("dyno_response_time_seconds", Some("seconds")),
            ("dyno_memory_free_bytes", Some("bytes")),
            ("dyno_disk_read_per_second", None),
            ("dyno_disk_read_bytes_per_second", None),
            ("dyno_operations", None),
            ("seconds", None),
        ] {
            assert_eq!(unit_of(name), unit, "{name}");
        }
    }
}
