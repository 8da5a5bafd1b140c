//! The verdict in words: each cause with its time, confidence, evidence with charts, and advice.

use super::panels::BuiltPanel;
use super::words::when;
use crate::page::{Evidence, Finding, Sureness, Verdict, sentence};
use crate::texts::{list, text};
use dyno_analyze::verdict as analysis;
use dyno_analyze::verdict::{Cause, CauseFinding, TimeRange};
use dyno_record::quantity::Quantity;
use dyno_record::statement::Statement;

/// Confidence thresholds for "very likely" and "likely".
const VERY_LIKELY: f64 = 0.85;
const LIKELY: f64 = 0.7;
/// Largest number of times that are listed individually.
const MOST_TIMES: usize = 4;
/// Tolerance for sums of binary fractions.
const ROUNDING: f64 = 1e-9;

/// The verdict for a page. Evidence links to a resource panel or a load chart.
pub(super) fn verdict(
    verdict: &analysis::Verdict,
    measured: Option<TimeRange>,
    panels: &[BuiltPanel],
) -> Verdict {
    let cause = |found: &CauseFinding| {
        // The headline already states the first cause.
        let text = if found.statement == verdict.headline {
            String::new()
        } else {
            text(&found.statement)
        };
        let evidence = found.evidence.iter();
        Finding {
            sureness: Some(Sureness {
                words: sureness(found.confidence),
                confidence: Quantity::ratio(found.confidence),
                when: when_of(found, measured),
            }),
            evidence: evidence.map(|one| evidence_of(one, panels)).collect(),
            advice: found.advice.iter().map(said).collect(),
            ..Finding::new("finding", &text)
        }
    };
    Verdict {
        headline: said(&verdict.headline),
        causes: verdict.causes.iter().map(cause).collect(),
        not_watched: not_watched(&verdict.not_watched),
    }
}

fn said(statement: &Statement) -> String {
    sentence(&text(statement))
}

/// The times of a cause.
fn when_of(finding: &CauseFinding, measured: Option<TimeRange>) -> String {
    if finding.spans.is_empty() {
        return when(finding.start_s, finding.end_s, measured);
    }
    let times: Vec<String> = finding
        .spans
        .iter()
        .map(|span| when(span.start_s, span.end_s, measured))
        .filter(|time| !time.is_empty())
        .collect();
    match times.as_slice() {
        [first @ .., last] if times.len() > MOST_TIMES => {
            let first = list(&first[..1]);
            format!("{first}, {} times more, and {last}", times.len() - 2)
        }
        times => list(times),
    }
}

/// Whether a cause is at least likely.
pub(crate) fn is_likely(confidence: f64) -> bool {
    confidence + ROUNDING >= LIKELY
}

fn sureness(confidence: f64) -> &'static str {
    match confidence {
        sure if sure + ROUNDING >= VERY_LIKELY => "very likely",
        sure if is_likely(sure) => "likely",
        _ => "possible",
    }
}

fn evidence_of(evidence: &analysis::Evidence, panels: &[BuiltPanel]) -> Evidence {
    let shows = |series: &String| panels.iter().find(|panel| panel.shows(series));
    let chart = match evidence.series.iter().find_map(shows) {
        Some(panel) => Some(panel.data.id.as_str()),
        None => chart_of_load(&evidence.measure),
    };
    Evidence {
        text: said(&evidence.statement),
        chart: chart.map(str::to_owned),
        start_s: evidence.start_s,
        end_s: evidence.end_s,
    }
}

/// The load chart that shows a client measure.
fn chart_of_load(measure: &str) -> Option<&'static str> {
    match measure {
        "operations_per_s" | "writes_per_s" | "in_flight_ratio" => Some("rate"),
        "start_delay_ms" | "write_service_ms" | "write_over_read_ratio" | "round_trip_ratio" => {
            Some("latency")
        }
        _ => None,
    }
}

fn not_watched(causes: &[Cause]) -> String {
    let words: Vec<String> = causes.iter().map(|cause| text(&cause.subject())).collect();
    if words.is_empty() { String::new() } else { format!("Not checked: {}.", list(&words)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_has_a_word() {
        let cases = [
            (0.98, "very likely"),
            // The rules add up to slightly less than 0.85.
            (0.95 - 0.05 - 0.05, "very likely"),
            (0.8, "likely"),
            (0.7, "likely"),
            (0.69, "possible"),
        ];
        for (confidence, words) in cases {
            assert_eq!(sureness(confidence), words, "{confidence}");
        }
    }

    #[test]
    fn repeated_cause_is_shown_with_each_time() {
        let span = |start_s: f64, end_s: f64| TimeRange { start_s, end_s };
        let mut finding = CauseFinding {
            cause: Cause::ServerCpu,
            statement: Statement::new("cause.server-cpu"),
            start_s: 0.0,
            end_s: 60.0,
            spans: vec![span(0.0, 10.0), span(50.0, 60.0)],
            confidence: 0.8,
            evidence: Vec::new(),
            advice: Vec::new(),
        };
        let measured = Some(span(0.0, 60.0));
        let when = |start_s: f64, end_s: f64| when(start_s, end_s, measured);
        let both = format!("{} and {}", when(0.0, 10.0), when(50.0, 60.0));
        assert_eq!(when_of(&finding, measured), both);
        assert_eq!(when_of(&finding, None), "");
        let many =
            (0..6).map(|number| span(f64::from(number) * 10.0, f64::from(number) * 10.0 + 5.0));
        finding.spans = many.collect();
        let text = when_of(&finding, measured);
        assert!(text.contains(", 4 times"), "{text}");
        assert!(text.starts_with(&when(0.0, 5.0)) && text.ends_with(&when(50.0, 55.0)));
        finding.spans.clear();
        assert_eq!(when_of(&finding, measured), when(0.0, 60.0));
    }

    #[test]
    fn causes_that_were_not_watched_are_named() {
        assert_eq!(not_watched(&[]), "");
        let causes = [Cause::Network, Cause::Tickets];
        let [network, tickets] = causes.map(|cause| text(&cause.subject()));
        let said = not_watched(&causes);
        assert!(said.ends_with(&format!("{network} and {tickets}.")), "{said}");
    }
}
