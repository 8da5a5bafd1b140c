//! Texts for the figures of an index build.

use crate::texts::text;
use dyno_record::index_build::BuildRecord;
use dyno_record::quantity::{Quantity, Unit};
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};

/// Durations within this share count as equal: a single build of each is not more precise.
const SAME_RATIO: f64 = 0.05;

/// The change of a duration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Change {
    Faster(f64),
    Slower(f64),
    Same,
    /// Builds of the same kind vary as much.
    Unclear,
}

impl Change {
    /// Compares two builds. Each may have been repeated to measure the cost of tracing: one is faster only if all its
    /// repetitions are. `None` without durations.
    pub(super) fn between(before: &BuildRecord, after: &BuildRecord) -> Option<Change> {
        let range = |build: &BuildRecord| {
            let others = build.tracing.iter().flat_map(|pair| [pair.traced_s, pair.untraced_s]);
            let one = (build.duration_s, build.duration_s);
            others.fold(one, |(low, high), s| (f64::min(low, s), f64::max(high, s)))
        };
        let (before_range, after_range) = (range(before), range(after));
        let overlap = before_range.0 <= after_range.1 && after_range.0 <= before_range.1;
        let change = Change::of(before.duration_s, after.duration_s)?;
        Some(match change {
            Change::Same => change,
            _ if overlap => Change::Unclear,
            _ => change,
        })
    }

    /// Compares two durations; `None` if one is not a duration.
    pub(super) fn of(before_s: f64, after_s: f64) -> Option<Change> {
        let is_duration = |seconds: f64| seconds.is_finite() && seconds > 0.0;
        if !(is_duration(before_s) && is_duration(after_s)) {
            return None;
        }
        Some(match before_s / after_s {
            ratio if ratio >= 1.0 + SAME_RATIO => Change::Faster(ratio),
            ratio if ratio <= 1.0 / (1.0 + SAME_RATIO) => Change::Slower(1.0 / ratio),
            _ => Change::Same,
        })
    }

    /// The change with its ratio.
    pub(super) fn statement(self) -> Statement {
        let times = |ratio| Number::new(ratio, Unit::Times);
        match self {
            Change::Faster(ratio) => statement!("build-faster", times = times(ratio)),
            Change::Slower(ratio) => statement!("build-slower", times = times(ratio)),
            Change::Same => statement!("build-took-as-long"),
            Change::Unclear => statement!("build-change-unclear"),
        }
    }

    /// `6.1 × faster`, or the same `than on` a base, with a note that two builds do not show the variation.
    pub(super) fn words(self, base: Option<&str>) -> String {
        let change = text(&self.statement());
        match (self, base) {
            (Change::Same, None) => change,
            (Change::Same, Some(base)) => format!("as long as {base}"),
            (Change::Unclear, _) => change,
            (_, None) => format!("{change}, each built once"),
            (_, Some(base)) => format!("{change} than {base}, each built once"),
        }
    }
}

/// A duration, with three digits below a minute.
pub(super) fn took(seconds: f64) -> Quantity {
    if seconds < 60.0 { Quantity::microseconds(seconds * 1e6) } else { Quantity::seconds(seconds) }
}

/// The start of a content hash, enough to distinguish two hashes.
pub(super) fn short_hash(hash: &str) -> String {
    const SHOWN: usize = 12;
    match hash.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &hash[..end]),
        None => hash.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn change_is_shown_with_significant_digits() {
        let words = |before, after| Change::of(before, after).map(|change| change.words(None));
        for (before, after, start) in [
            (74.2, 12.1, "6.1 × faster"),
            (1234.0, 1.0, "1,234 × faster"),
            (1.07, 1.0, "1.07 × faster"),
            (1.0, 2.0, "2.0 × slower"),
        ] {
            let words = words(before, after).unwrap();
            assert!(words.starts_with(start), "{words}");
        }
        assert_eq!(Change::of(1.02, 1.0), Some(Change::Same));
        assert_eq!(Change::of(1.0, 1.02), Some(Change::Same));
        let slower = Change::Slower(3.5).words(Some("standalone"));
        assert!(slower.starts_with("3.5 × slower") && slower.contains("standalone"));
        assert_eq!(words(0.0, 1.0), None);
        assert_eq!(words(1.0, f64::NAN), None);
    }

    #[test]
    fn change_is_unclear_when_builds_vary_more_than_they_differ() {
        let build = |traced_s: f64, untraced_s: f64| -> BuildRecord {
            let pair =
                json!({"traced_s": traced_s, "untraced_s": untraced_s, "traced_first": true});
            let build = json!({
                "name": "a", "started_at": "2026-08-22T10:15:00Z", "duration_s": traced_s,
                "server_restarted": true, "page_cache_dropped": true, "server": {}, "tracing": [pair],
            });
            serde_json::from_value(build).expect("it is a build")
        };
        let change = |before: &BuildRecord, after| Change::between(before, &after);
        let before = build(0.497, 0.0687);
        assert_eq!(change(&before, build(0.146, 0.110)), Some(Change::Unclear));
        let before = build(74.2, 70.0);
        let faster = change(&before, build(12.1, 11.0));
        assert!(matches!(faster, Some(Change::Faster(_))), "{faster:?}");
    }

    #[test]
    fn durations_keep_their_digits() {
        assert_eq!(took(0.25).to_string(), "250 ms");
        assert_eq!(took(12.13).to_string(), "12.1 s");
        assert_eq!(took(150.0).to_string(), "2 min 30 s");
    }

    #[test]
    fn a_hash_is_cut_between_characters() {
        assert_eq!(short_hash("0123456789abcdef"), "0123456789ab…");
        assert_eq!(short_hash("ab"), "ab");
        assert_eq!(short_hash("äöüäöüäöüäöüä"), "äöüäöüäöüäöü…");
    }
}
