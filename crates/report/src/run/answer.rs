//! The sentence that answers the question of a run: its rate, its 99th percentile, and what limits them.

use super::headline::why_no_interval;
use super::result::{by_count, failed};
use crate::experiment::figure::interval_of;
use crate::facts;
use crate::page::sentence;
use crate::texts::{short, text};
use crate::watched::is_likely;
use dyno_analyze::caveats::RATE_SHORTFALL_RATIO;
use dyno_analyze::experiment::run::{Bottleneck, RunAnalysis};
use dyno_record::experiment::Figure;
use dyno_record::model::{CaveatKind, PhaseKind, PhaseRecord, RunDocument};
use dyno_record::quantity::Quantity;
use dyno_record::statement;

/// The sentence; `analysis` is of the measure phase.
pub(super) fn answer(
    document: &RunDocument,
    phase: &PhaseRecord,
    analysis: Option<&RunAnalysis>,
) -> String {
    if phase.operations.values().all(|operation| operation.count == 0) {
        return "No operation succeeded.".to_owned();
    }
    if phase.name == PhaseKind::Load {
        let documents: u64 = phase.operations.values().map(|one| one.documents).sum();
        let rate = Quantity::per_second(documents as f64 / phase.duration_s);
        return format!("{} inserted, {rate}.", Quantity::counted(documents, "document"));
    }
    let is_missed = document.caveats.iter().any(|one| one.kind == CaveatKind::RateNotAchieved);
    let offered = phase.offered_rate_per_s.unwrap_or(0.0);
    // A short run may be below by chance, which its figure must not hide.
    let least = (1.0 - RATE_SHORTFALL_RATIO) * offered;
    let is_as_offered = !is_missed && phase.achieved_rate_per_s >= least;
    let parts = [
        Some(rate(document, phase, analysis, is_as_offered)),
        p99(document, phase, analysis),
        lost(phase),
        analysis.and_then(|analysis| {
            limit(document, analysis, !is_missed && phase.offered_rate_per_s.is_some())
        }),
    ];
    sentence(&parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// ` (2.40 to 3.70 ms)`; `None` without an interval.
pub(crate) fn in_brackets(figure: &Figure, quantity: fn(f64) -> Quantity) -> Option<String> {
    let ends = interval_of(figure, quantity)?;
    Some(format!(" ({})", ends.replace(" – ", " to ").replace('–', " to ")))
}

fn rate(
    document: &RunDocument,
    phase: &PhaseRecord,
    analysis: Option<&RunAnalysis>,
    is_as_offered: bool,
) -> String {
    let bare = Figure::bare(phase.achieved_rate_per_s);
    let figure = analysis.map_or(bare, |analysis| analysis.figures.rate_per_s);
    let range = in_brackets(&figure, Quantity::per_second).unwrap_or_default();
    let rate = Quantity::per_second(figure.value);
    match phase.offered_rate_per_s.filter(|offered| *offered > 0.0) {
        Some(_) if is_as_offered => format!("{rate} as offered"),
        Some(offered) => format!("{rate}{range} of {} offered", Quantity::per_second(offered)),
        None => match document.clients() {
            Some(1) => format!("{rate}{range} with one client"),
            Some(clients) => format!("{rate}{range} with {} clients", Quantity::count(clients)),
            None => format!("{rate}{range}"),
        },
    }
}

/// The 99th percentile of the most frequent operation, as in the headline.
fn p99(
    document: &RunDocument,
    phase: &PhaseRecord,
    analysis: Option<&RunAnalysis>,
) -> Option<String> {
    let operations = by_count(document, phase);
    let (name, operation) = operations.first()?;
    let found =
        analysis.and_then(|analysis| analysis.operations.get(*name)?.response_us.get("p99"));
    let figure = found.copied().unwrap_or(Figure::bare(operation.response_time_us.p99));
    let range = in_brackets(&figure, Quantity::microseconds).or_else(|| {
        let why = why_no_interval(analysis?, Some(name), "p99");
        Some(format!(" (no interval: {why})"))
    });
    let of = if operations.len() > 1 {
        format!("{} p99", facts::operation_label(name))
    } else {
        "p99".to_owned()
    };
    (operation.count > 0).then(|| {
        format!("{of} {}{}", Quantity::microseconds(figure.value), range.unwrap_or_default())
    })
}

/// Operations that neither the rate nor the percentile contains.
fn lost(phase: &PhaseRecord) -> Option<String> {
    let (count, share) = failed(phase);
    let failed = (count > 0).then(|| format!("{} failed", Quantity::ratio(share)));
    let dropped = phase.arrivals.filter(|arrivals| arrivals.dropped > 0);
    let dropped = dropped.map(|arrivals| {
        let share = arrivals.dropped as f64 / arrivals.due.max(1) as f64;
        format!("{} never sent", Quantity::ratio(share))
    });
    let lost: Vec<String> = failed.into_iter().chain(dropped).collect();
    (!lost.is_empty()).then(|| lost.join(", "))
}

/// The bound of a run's rate with the digits of its finding.
pub(super) fn bound(of: &Bottleneck) -> Quantity {
    Quantity::per_second(of.bound_per_s).brief()
}

/// The likely cause of the verdict, or the resource that would saturate first; `None` if the load was too small to show it. At
/// a rate that was kept, a cause affects only response times.
fn limit(document: &RunDocument, analysis: &RunAnalysis, is_rate_kept: bool) -> Option<String> {
    let longest = analysis.outages.iter().map(|outage| outage.length_s()).reduce(f64::max);
    if let Some(length_s) = longest {
        let length = Quantity::seconds(length_s).to_string();
        return Some(format!("no operation succeeded for {}", short(&length)));
    }
    let is_watched = !document.sources.is_empty();
    let verdict = analysis.verdict.as_ref().filter(|_| is_watched);
    let cause = verdict.and_then(|verdict| verdict.causes.first());
    if let Some(cause) = cause.filter(|cause| is_likely(cause.confidence)) {
        let subject = text(&cause.cause.subject());
        return Some(match is_rate_kept {
            true => format!("slowed by {subject}"),
            false => format!("limited by {subject}"),
        });
    }
    let Some(found) = &analysis.bottleneck else {
        return Some("its limit is unknown, because the server was not watched".to_owned());
    };
    found.is_shown().then(|| {
        let resource = text(&statement!("resource", name = &found.demand.name));
        format!("{resource} is the nearest limit, about {}", bound(found))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::result::result_phase;
    use crate::testdata;
    use dyno_record::model::Caveat;
    use dyno_record::statement::Statement;

    fn said(document: &RunDocument, analysis: Option<&RunAnalysis>) -> String {
        answer(document, result_phase(document).expect("a phase"), analysis)
    }

    #[test]
    fn answer_has_rate_percentile_and_limit() {
        let (run, analysis) = testdata::watched_run();
        let text = said(&run.document, Some(&analysis));
        let parts: Vec<&str> = text.trim_end_matches('.').split("; ").collect();
        let [rate, p99, limit] = parts.as_slice() else { panic!("{text}") };
        let figure = &analysis.figures.rate_per_s;
        assert!(rate.starts_with(&Quantity::per_second(figure.value).to_string()), "{text}");
        let p99_us = analysis.operations["read"].response_us["p99"].value;
        let value = Quantity::microseconds(p99_us).to_string();
        assert!(p99.starts_with(&format!("read p99 {value}")), "{text}");
        assert!(!limit.is_empty(), "{text}");
    }

    #[test]
    fn answer_has_no_limit_when_the_load_was_small() {
        let (run, mut analysis) = testdata::watched_run();
        analysis.verdict = None;
        analysis.bottleneck.as_mut().expect("the server is watched").reached_ratio = 0.4;
        let text = said(&run.document, Some(&analysis));
        assert!(!text.contains("limit"), "{text}");
    }

    #[test]
    fn answer_states_a_missed_rate_and_lost_operations() {
        let mut document = testdata::open_run().document;
        document.caveats.clear();
        let below = said(&document, None);
        assert!(below.contains(" of 1,000/s offered; "), "{below}");
        for phase in &mut document.phases {
            phase.achieved_rate_per_s = phase.offered_rate_per_s.unwrap_or(0.0);
        }
        let kept = said(&document, None);
        assert!(kept.contains(" as offered; "), "{kept}");
        assert!(kept.contains(" failed"), "{kept}");
        let missed = Statement::recorded("missed");
        document.caveats = vec![Caveat::of_run(CaveatKind::RateNotAchieved, missed)];
        let missed = said(&document, None);
        assert!(missed.contains(" of 1,000/s offered; "), "{missed}");
        for phase in &mut document.phases {
            phase.operations.values_mut().for_each(|operation| operation.count = 0);
        }
        assert_eq!(said(&document, None), "No operation succeeded.");
    }
}
