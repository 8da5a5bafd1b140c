//! Text formats of metrics: OpenMetrics, also with timestamps for later import, and the older Prometheus format for clients
//! without it.

use crate::metrics::buckets::bounds_s;
use crate::metrics::family::{Family, Kind, Labels, Value};

/// Media type of the output of [`plain`].
pub(crate) const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Media type of the output of [`open_metrics`].
pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Last line of OpenMetrics text.
pub(crate) const END: &str = "# EOF\n";

/// Writes families in the older Prometheus format.
pub(crate) fn plain(families: &[Family]) -> String {
    let mut text = String::new();
    for family in families {
        let name = format!("{}{}", family.name, suffix(family.kind));
        let kind = match family.kind {
            // The older format does not have this type.
            Kind::Info => "gauge",
            kind => kind.as_str(),
        };
        let help = escaped(&family.help, false);
        text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        put_points(&mut text, family);
    }
    text
}

/// Writes families in OpenMetrics.
pub(crate) fn open_metrics(families: &[Family]) -> String {
    let mut text = String::new();
    for family in families {
        put_head(&mut text, family);
        put_points(&mut text, family);
    }
    text + END
}

/// Writes the header lines of a family in OpenMetrics.
pub(crate) fn put_head(text: &mut String, family: &Family) {
    let (name, kind) = (&family.name, family.kind.as_str());
    let help = escaped(&family.help, true);
    text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    if let Some(unit) = &family.unit {
        text.push_str(&format!("# UNIT {name} {unit}\n"));
    }
}

fn put_points(text: &mut String, family: &Family) {
    for (labels, value) in &family.points {
        put_point(text, family, labels, value, None);
    }
}

/// Suffix of the names of samples.
fn suffix(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Histogram => "",
    }
}

/// Writes a point of a family, with an optional timestamp in seconds since 1970.
pub(crate) fn put_point(
    text: &mut String,
    family: &Family,
    labels: &Labels,
    value: &Value,
    at_s: Option<f64>,
) {
    let name = &family.name;
    let mut line = |suffix: &str, more: Option<&str>, value: &dyn std::fmt::Display| {
        text.push_str(&format!("{name}{suffix}"));
        put_labels(text, labels, more);
        match at_s {
            Some(at_s) => text.push_str(&format!(" {value} {at_s:.3}\n")),
            None => text.push_str(&format!(" {value}\n")),
        }
    };
    let suffix = suffix(family.kind);
    match value {
        Value::Info => line(suffix, None, &1),
        Value::Count(count) => line(suffix, None, count),
        Value::Number(number) => line(suffix, None, number),
        Value::Buckets(buckets) => {
            line("_sum", None, &buckets.sum_s());
            line("_count", None, &buckets.count());
            let mut below = 0;
            let bounds = bounds_s().into_iter().chain([f64::INFINITY]);
            for (bound, count) in bounds.zip(buckets.counts()) {
                below += count;
                line("_bucket", Some(&bound_text(bound)), &below);
            }
        }
    }
}

/// Formats a bound in the canonical form of OpenMetrics, with a decimal point.
fn bound_text(bound: f64) -> String {
    if bound.is_infinite() { "+Inf".to_owned() } else { format!("{bound:?}") }
}

fn put_labels(text: &mut String, labels: &Labels, bound: Option<&str>) {
    if labels.is_empty() && bound.is_none() {
        return;
    }
    let own = labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let all = own.chain(bound.map(|bound| ("le", bound)));
    for (place, (name, value)) in all.enumerate() {
        let mark = if place == 0 { '{' } else { ',' };
        let value = escaped(value, true);
        text.push_str(&format!("{mark}{name}=\"{value}\""));
    }
    text.push('}');
}

/// Escapes backslashes and newlines, and optionally quotes.
fn escaped(text: &str, quotes: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quotes { text.replace('"', "\\\"") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::buckets::Buckets;
    use crate::metrics::encode::by_the_library;
    use dyno_record::interval::latency_histogram;

    fn families() -> Vec<Family> {
        let mut buckets = Buckets::default();
        let mut values = latency_histogram();
        values.record_n(70_000, 3).expect("the value is in range");
        buckets.add(&values, 210_000);
        let one = |kind, name, help, labels: &[(&str, &str)], value| {
            let mut family = Family::new(kind, name, help);
            family.put(labels, value);
            family
        };
        let cpu = [("mode", "user"), ("x", "")];
        let latencies = Value::of_buckets(&buckets);
        vec![
            one(Kind::Info, "dyno_run", "The run", &[("name", "a \"b\"\\c")], Value::Info),
            one(Kind::Gauge, "dyno_in_flight", "In flight", &[], Value::Number(1.5)),
            one(Kind::Counter, "dyno_cpu_seconds", "CPU time", &cpu, Value::Number(0.25)),
            one(Kind::Counter, "dyno_operations", "Operations", &[], Value::Count(7)),
            one(Kind::Histogram, "dyno_time_seconds", "Time", &[("operation", "read")], latencies),
        ]
    }

    /// Samples with sorted labels and numeric values, which the two writers format differently.
    fn samples(text: &str) -> Vec<(String, Vec<String>, f64)> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| {
                let (series, value) = line.rsplit_once(' ').expect("a sample has a value");
                let (name, labels) = series.split_once('{').unwrap_or((series, ""));
                let labels = labels.trim_end_matches('}').split(',');
                let mut labels: Vec<String> = labels
                    .map(|label| label.replace("5e-5", "0.00005"))
                    .filter(|label| !label.is_empty())
                    .collect();
                labels.sort();
                let value = value.parse().expect("the value is a number");
                (name.to_owned(), labels, value)
            })
            .collect()
    }

    #[test]
    fn open_metrics_matches_the_client_library() {
        let (own, theirs) = (open_metrics(&families()), by_the_library(families()));
        let comments = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| line.starts_with('#'));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(comments(&own), comments(&theirs));
        assert_eq!(samples(&own), samples(&theirs));
    }

    #[test]
    fn older_format_names_families_with_their_suffixes() {
        let text = plain(&families());
        for line in [
            "# TYPE dyno_run_info gauge",
            "dyno_run_info{name=\"a \\\"b\\\"\\\\c\"} 1",
            "# TYPE dyno_operations_total counter",
            "dyno_operations_total 7",
            "dyno_cpu_seconds_total{mode=\"user\",x=\"\"} 0.25",
            "dyno_time_seconds_bucket{operation=\"read\",le=\"5e-5\"} 0",
            "dyno_time_seconds_bucket{operation=\"read\",le=\"0.0001\"} 3",
            "dyno_time_seconds_bucket{operation=\"read\",le=\"60.0\"} 3",
            "dyno_time_seconds_bucket{operation=\"read\",le=\"+Inf\"} 3",
            "dyno_time_seconds_count{operation=\"read\"} 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("EOF") && !text.contains("UNIT"));
    }

    #[test]
    fn timestamp_follows_the_value() {
        let mut text = String::new();
        let family = &families()[1];
        put_point(&mut text, family, &Vec::new(), &Value::Number(2.0), Some(1_700_000_000.5));
        assert_eq!(text, "dyno_in_flight 2 1700000000.500\n");
    }
}
