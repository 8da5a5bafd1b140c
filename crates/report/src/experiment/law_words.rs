//! Texts for the checks of the laws, for a sweep and a single run.

use super::figure::seconds;
use crate::facts::operation_label;
use crate::page::table::{Cell, Table, Tone};
use dyno_record::experiment::{Law, LawCheck, LawVerdict};
use dyno_record::quantity::Quantity;

/// Note for checks of offered rates.
pub(crate) const NO_CLOSED_LOOP: &str = "The response time law R = N/X − Z applies to clients that wait for their answers, not to offered \
     rates: use `--schedule throttled` to check it at each rate.";

/// Note on how to read the checks.
pub(crate) const TOLERANCES: &str = "A check with an uncertainty above a third means nothing, whatever its result. Differences below the \
     tolerance of a law (2 %, or 5 % of CPU time) never break it; bounds can be broken from one side only.";

/// The name of a law with its formula.
pub(crate) fn name(law: Law) -> &'static str {
    match law {
        Law::Utilization => "utilization, U = X·D",
        Law::Little => "Little, N = X·R",
        Law::ResponseTime => "response time, R = N/X − Z",
        Law::ForcedFlow => "forced flow",
        Law::RateBound => "bound of the rate",
        Law::ResponseBound => "bound of the response time",
    }
}

/// A difference with its sign; rounding errors become zero.
pub(crate) fn difference(ratio: f64) -> String {
    match ratio {
        ratio if ratio.abs() < 5e-6 => "0 %".to_owned(),
        ratio => Quantity::ratio(ratio).signed().to_string(),
    }
}

/// The uncertainty of a difference.
pub(crate) fn uncertainty(check: &LawCheck) -> String {
    if check.uncertainty_ratio > 0.0 {
        format!("± {}", Quantity::ratio(check.uncertainty_ratio))
    } else {
        "counted".to_owned()
    }
}

/// Checks with both sides of the law, and the level of a sweep.
pub(crate) fn table(label: &str, checks: &[(String, &LawCheck)]) -> Option<Table> {
    let verdict = |check: &LawCheck| match check.verdict {
        LawVerdict::Holds => ("holds", Tone::Plain),
        LawVerdict::Broken => ("broken", Tone::Alarm),
        LawVerdict::TooUncertain => ("inconclusive", Tone::Doubt),
    };
    Table::of(checks)
        .text("law", |(_, check)| Cell::new(name(check.law), Tone::Strong))
        .text("of", |(_, check)| operation_label(check.subject.as_deref().unwrap_or_default()))
        .text("at", |(level, _)| level)
        .number("measured", 160, |(_, check)| unit(check.law)(check.measured))
        .number("by the law", 150, |(_, check)| unit(check.law)(check.predicted))
        .number("difference", 200, |(_, check)| {
            Cell::new(difference(check.difference_ratio), verdict(check).1)
        })
        .number("uncertainty", 140, |(_, check)| uncertainty(check))
        .text("verdict", |(_, check)| Cell::new(verdict(check).0, verdict(check).1))
        .known(label)
}

/// The unit of both sides of a law.
fn unit(law: Law) -> fn(f64) -> Quantity {
    match law {
        Law::Utilization | Law::Little => Quantity::plain,
        Law::ResponseTime | Law::ResponseBound => seconds,
        Law::ForcedFlow | Law::RateBound => Quantity::per_second,
    }
}
