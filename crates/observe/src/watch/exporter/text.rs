//! Reads the text of an exporter in Prometheus format (version 0.0.4) or OpenMetrics format
//! (1.0.0). The formats differ in the names of counters and in the text after a value.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>

use std::borrow::Cow;
use std::collections::HashMap;

/// A number that an exporter reports.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample<'a> {
    pub(crate) name: &'a str,
    /// Label names and values, in the order of the text.
    pub(crate) labels: Vec<(&'a str, Cow<'a, str>)>,
    /// May be infinite or not a number.
    pub(crate) value: f64,
    /// Time of the sample, in seconds since 1970; most exporters leave this to the reader.
    pub(crate) taken_s: Option<f64>,
}

impl Sample<'_> {
    /// The value of a label.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        let found = self.labels.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_ref())
    }
}

/// Kind of a sample's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricKind {
    /// A total that only grows.
    Counter,
    /// A value on its own.
    Gauge,
    /// A part of a distribution, or not a measurement.
    Other,
}

/// All samples that an exporter reports at one time.
#[derive(Debug, Default)]
pub(crate) struct Scrape<'a> {
    /// In the order of the text.
    pub(crate) samples: Vec<Sample<'a>>,
    /// The first line that could not be read, and the number of such lines.
    pub(crate) bad: Option<(&'a str, usize)>,
    /// The newest time among samples that were omitted as too old, and their number.
    pub(crate) old: Option<(f64, usize)>,
    kinds: HashMap<&'a str, &'a str>,
    places: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Scrape<'a> {
    /// Reads a text with samples of any age.
    #[cfg(test)]
    pub(crate) fn parse(text: &'a str) -> Scrape<'a> {
        Scrape::parse_since(text, f64::NEG_INFINITY)
    }

    /// Reads a text. Lines that cannot be read, and samples taken before `oldest_s`, are counted
    /// and omitted.
    pub(crate) fn parse_since(text: &'a str, oldest_s: f64) -> Scrape<'a> {
        let mut scrape = Scrape::default();
        for line in text.lines() {
            let line = line.trim();
            if let Some(comment) = line.strip_prefix('#') {
                scrape.note(comment);
            } else if !line.is_empty() {
                match sample(line) {
                    Some(sample) => match sample.taken_s.filter(|taken_s| *taken_s < oldest_s) {
                        None => scrape.add(sample),
                        Some(taken_s) => {
                            let (newest_s, count) = scrape.old.unwrap_or((taken_s, 0));
                            scrape.old = Some((newest_s.max(taken_s), count + 1));
                        }
                    },
                    None => {
                        scrape.bad = Some(match scrape.bad {
                            Some((first, count)) => (first, count + 1),
                            None => (line, 1),
                        })
                    }
                }
            }
        }
        scrape
    }

    /// The samples of a metric.
    pub(crate) fn named(&self, name: &str) -> impl Iterator<Item = &Sample<'a>> {
        self.places.get(name).into_iter().flatten().filter_map(|place| self.samples.get(*place))
    }

    /// The number of a metric that has only one sample.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.named(name).next().map(|sample| sample.value)
    }

    /// The newest time among the samples.
    pub(crate) fn newest_s(&self) -> Option<f64> {
        let times = self.samples.iter().filter_map(|sample| sample.taken_s);
        times.reduce(f64::max)
    }

    /// The kind of a number, by its declared type or else by its name.
    pub(crate) fn kind(&self, name: &str) -> MetricKind {
        if let Some(kind) = self.kinds.get(name) {
            return match *kind {
                "counter" => MetricKind::Counter,
                "gauge" | "stateset" => MetricKind::Gauge,
                "histogram" | "gaugehistogram" | "summary" | "info" => MetricKind::Other,
                _ => by_ending(name),
            };
        }
        let endings = ["_total", "_sum", "_count", "_bucket", "_created", "_info"];
        for ending in endings {
            let family = name.strip_suffix(ending);
            let Some(kind) = family.and_then(|family| self.kinds.get(family)) else {
                continue;
            };
            return match (ending, *kind) {
                ("_total", "counter") | ("_sum" | "_count", "histogram" | "summary") => {
                    MetricKind::Counter
                }
                _ => MetricKind::Other,
            };
        }
        by_ending(name)
    }

    fn add(&mut self, sample: Sample<'a>) {
        let place = self.samples.len();
        self.places.entry(sample.name).or_default().push(place);
        self.samples.push(sample);
    }

    fn note(&mut self, comment: &'a str) {
        let mut words = comment.split_whitespace();
        if words.next() == Some("TYPE")
            && let (Some(name), Some(kind)) = (words.next(), words.next())
        {
            self.kinds.insert(name, kind);
        }
    }
}

/// The kind of a number of unknown type: most exporters follow Prometheus' rule for name endings.
fn by_ending(name: &str) -> MetricKind {
    if name.ends_with("_total") { MetricKind::Counter } else { MetricKind::Gauge }
}

/// Larger times are in milliseconds, as in Prometheus format, and others in seconds, as in
/// OpenMetrics: as seconds, this would be the year 5138.
const MOST_SECONDS: f64 = 1e11;

/// Parses a line such as `http_requests_total{code="200"} 1027 1395066363000`. Ignores an exemplar
/// after the value.
fn sample(line: &str) -> Option<Sample<'_>> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
    let end = line.find(|c| !is_of_name(c))?;
    let (name, rest) = line.split_at(end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let rest = rest.trim_start();
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    let mut words = rest.split_whitespace();
    let value = words.next()?.parse().ok()?;
    let follows = words.next();
    let taken_s = match follows.filter(|word| !word.starts_with('#')) {
        None => None,
        Some(word) => match word.parse::<f64>().ok()? {
            milliseconds if milliseconds > MOST_SECONDS => Some(milliseconds / 1e3),
            seconds => Some(seconds),
        },
    };
    Some(Sample { name, labels, value, taken_s })
}

type Labels<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// Labels up to the closing brace, and the rest of the line.
fn labels(mut rest: &str) -> Option<(Labels<'_>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = rest.split_once('=')?;
        let (value, after) = quoted(after.trim_start().strip_prefix('"')?)?;
        labels.push((name.trim_end(), value));
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(after) => after,
            None if after.starts_with('}') => after,
            None => return None,
        };
    }
}

/// A text up to its closing quote, and the rest.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = text.find(['"', '\\'])?;
    if text[end..].starts_with('"') {
        return Some((Cow::Borrowed(&text[..end]), &text[end + 1..]));
    }
    let mut value = text[..end].to_owned();
    let mut characters = text[end..].char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return Some((Cow::Owned(value), &text[end + place + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                escaped @ ('"' | '\\') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            character => value.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Sample<'_> {
        let scrape = Scrape::parse(line);
        assert_eq!(scrape.bad, None);
        assert_eq!(scrape.samples.len(), 1);
        scrape.samples[0].clone()
    }

    #[test]
    fn line_has_a_name_labels_and_a_value() {
        let sample = one(r#"disk_io{device="sda", mode = "a,b}" ,} 1.5e3 1395066363000"#);
        assert_eq!(sample.name, "disk_io");
        assert_eq!(sample.label("device"), Some("sda"));
        assert_eq!(sample.label("mode"), Some("a,b}"));
        assert_eq!(sample.label("other"), None);
        assert_eq!(sample.value, 1500.0);
        assert_eq!(one("up 1").value, 1.0);
        assert_eq!(one("a:b_c{} -2").name, "a:b_c");
    }

    #[test]
    fn escapes_are_undone_and_other_characters_stay() {
        let sample = one(r#"a{b="C:\\dir \"x\"\n\q é"} 1"#);
        assert_eq!(sample.label("b"), Some("C:\\dir \"x\"\n\\q é"));
    }

    #[test]
    fn special_values_such_as_nan_are_read() {
        assert!(one("a NaN").value.is_nan());
        assert_eq!(one("a +Inf").value, f64::INFINITY);
        assert_eq!(one("a -Inf").value, f64::NEG_INFINITY);
    }

    #[test]
    fn times_are_read_in_the_units_of_both_formats() {
        assert_eq!(one("a 1").taken_s, None);
        assert_eq!(one("a 1 1395066363500").taken_s, Some(1_395_066_363.5));
        assert_eq!(one("a 1 1395066363.5").taken_s, Some(1_395_066_363.5));
        assert_eq!(one("a 1 # {trace=\"x\"} 0.7 1520879607.789").taken_s, None);
    }

    #[test]
    fn samples_before_the_oldest_time_are_counted() {
        let scrape = Scrape::parse_since("a 1 50\nb 2 70\nc 3 100\nd 4\n", 100.0);
        let names: Vec<&str> = scrape.samples.iter().map(|sample| sample.name).collect();
        assert_eq!(names, ["c", "d"]);
        assert_eq!((scrape.old, scrape.newest_s()), (Some((70.0, 2)), Some(100.0)));
    }

    #[test]
    fn exemplar_is_not_part_of_the_value() {
        let sample = one(r#"a_bucket{le="1"} 17 # {trace="x"} 0.7 1520879607.789"#);
        assert_eq!(sample.value, 17.0);
    }

    #[test]
    fn invalid_lines_are_counted() {
        let text = "a 1\n<html>\nb{c=\"d} 2\ne{f=\"g\" h=\"i\"} 3\n9x 4\nj k\nl 1 x\nm\n{n=\"o\"} 1\nz 2\n";
        let scrape = Scrape::parse(text);
        let names: Vec<&str> = scrape.samples.iter().map(|sample| sample.name).collect();
        assert_eq!(names, ["a", "z"]);
        assert_eq!(scrape.bad, Some(("<html>", 8)));
    }

    #[test]
    fn types_classify_numbers_in_both_formats() {
        let text = "# HELP a of TYPE b\n# TYPE a_total counter\n# TYPE b counter\n# TYPE c gauge\n\
                    # TYPE d histogram\n# TYPE e summary\n# TYPE f untyped\n# TYPE f_total unknown\n\
                    # TYPE g info\n# TYPE h stateset\n# TYPE i_count gauge\n# EOF\n";
        let scrape = Scrape::parse(text);
        let of = |kind| move |name: &&str| scrape.kind(name) == kind;
        let names = [
            "a_total",
            "b",
            "b_total",
            "b_created",
            "c",
            "d_bucket",
            "d_sum",
            "d_count",
            "e",
            "e_sum",
            "f",
            "f_total",
            "g_info",
            "h",
            "i_count",
            "x",
            "x_total",
        ];
        let counters: Vec<&str> = names.into_iter().filter(of(MetricKind::Counter)).collect();
        assert_eq!(
            counters,
            ["a_total", "b", "b_total", "d_sum", "d_count", "e_sum", "f_total", "x_total"]
        );
        let scrape = Scrape::parse(text);
        let gauges = names.into_iter().filter(|name| scrape.kind(name) == MetricKind::Gauge);
        assert_eq!(gauges.collect::<Vec<_>>(), ["c", "f", "h", "i_count", "x"]);
    }
}
