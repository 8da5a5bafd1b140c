//! An OpenMetrics metric family: a name with its help text, and points that differ by their labels.

use crate::metrics::buckets::Buckets;

/// Type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

impl Kind {
    /// The name of the type in OpenMetrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Info => "info",
        }
    }
}

/// Labels with their values, in output order.
pub(crate) type Labels = Vec<(String, String)>;

/// The value of a point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Of a counter of events.
    Count(u64),
    /// Of a gauge, or of a counter of a measured quantity.
    Number(f64),
    Buckets(Box<Buckets>),
    /// Of an info, which has only labels.
    Info,
}

impl Value {
    /// 1 or 0.
    pub(crate) fn of_flag(is_set: bool) -> Value {
        Value::Number(f64::from(u8::from(is_set)))
    }

    pub(crate) fn of_buckets(buckets: &Buckets) -> Value {
        Value::Buckets(Box::new(buckets.clone()))
    }
}

/// A metric family.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Family {
    /// Name with its unit, without the suffix of its type (`_total`, `_info`, `_bucket`).
    pub(crate) name: String,
    /// One sentence without a final period.
    pub(crate) help: String,
    /// Base unit at the end of the name, such as `seconds`.
    pub(crate) unit: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) points: Vec<(Labels, Value)>,
}

impl Family {
    /// A family without points.
    pub(crate) fn new(kind: Kind, name: &str, help: &str) -> Family {
        Family {
            name: name.to_owned(),
            help: help.to_owned(),
            unit: unit_of(name).map(str::to_owned),
            kind,
            points: Vec::new(),
        }
    }

    /// A family with points.
    pub(crate) fn with_points<'a, const N: usize>(
        kind: Kind,
        name: &str,
        help: &str,
        points: impl IntoIterator<Item = ([(&'a str, &'a str); N], Value)>,
    ) -> Family {
        let mut family = Family::new(kind, name, help);
        points.into_iter().for_each(|(labels, value)| family.put(&labels, value));
        family
    }

    /// Adds a point.
    pub(crate) fn put(&mut self, labels: &[(&str, &str)], value: Value) {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.points.push((labels.iter().map(own).collect(), value));
    }
}

/// The unit at the end of a name, for OpenMetrics. A rate does not have one: `_per_second` is not a unit.
pub(crate) fn unit_of(name: &str) -> Option<&str> {
    const UNITS: [&str; 5] = ["seconds", "bytes", "ratio", "hertz", "celsius"];
    let (_, last) = name.rsplit_once('_')?;
    let is_rate = name.ends_with("_per_second");
    UNITS.into_iter().find(|unit| *unit == last).filter(|_| !is_rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_is_the_end_of_the_name() {
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
