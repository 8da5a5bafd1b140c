//! What a sweep says of its levels relative to their base.

use super::difference::{change, evidence, explained, only_in_demands, signed};
use super::view::View;
use super::{finding, warning};
use crate::experiment::ab::name;
use crate::experiment::relative::decision;
use crate::experiment::words::{count, number};
use dyno_record::experiment::{AgainstBase, Basis, Comparison, ComparisonVerdict, Finding};

/// Most levels that get a sentence; the others stand in the table.
const MOST_TOLD: usize = 8;

/// A sentence for each level.
pub(super) fn all(view: &View<'_>) -> Vec<Finding> {
    let relative = view.answer.relative.iter();
    let rows = relative.flat_map(|relative| &relative.levels);
    rows.take(MOST_TOLD).map(|row| level(view, row)).collect()
}

fn level(view: &View<'_>, row: &AgainstBase) -> Finding {
    let levels = view.levels();
    let (own, base) = (&levels[row.level as usize], &levels[row.base as usize]);
    let (at, than) = (view.with_settings(own), view.with_settings(base));
    let Some(decision) = decision(row, own.offered_rate_per_s.is_some()) else {
        return warning(
            format!(
                "{at} nothing can be told relative to {than}: the runs are too short for an interval"
            ),
            demands_or(row, "no demand can be compared either"),
        );
    };
    let what = name(decision.statistic);
    let range = format!(
        "{} to {}",
        signed(decision.ratio.low),
        signed(decision.ratio.high)
    );
    let text = match (&row.explanation, decision.verdict) {
        (Some(explanation), _) => format!(
            "{at} {what} is {} than {than} ({range}): {}",
            change(decision.ratio.value),
            explained("it", explanation, &row.demands)
        ),
        (None, _) => {
            let demands = only_in_demands("it", &row.demands);
            let demands = demands.map_or(String::new(), |needs| format!("; but {needs}"));
            format!("{at} {what} cannot be told from that {than} ({range}){demands}")
        }
    };
    let mut support = vec![sentence(decision)];
    support.extend(evidence(&row.demands));
    match decision.verdict {
        ComparisonVerdict::NotEnoughData => warning(text, support),
        _ => finding(text, support),
    }
}

fn demands_or(row: &AgainstBase, otherwise: &str) -> Vec<String> {
    let demands = evidence(&row.demands);
    match demands.is_empty() {
        true => vec![otherwise.to_owned()],
        false => demands,
    }
}

fn sentence(decision: &Comparison) -> String {
    let basis = match decision.basis {
        Basis::BetweenRuns => format!("from {}", count(decision.pairs, "pair", "pairs")),
        Basis::WithinRun => {
            "from the windows of one run each, so that what differs from run to run is not in it"
                .to_owned()
        }
    };
    format!(
        "{} is {} times that of the base (95 % interval {} to {}), {basis}",
        name(decision.statistic),
        number(decision.ratio.value),
        number(decision.ratio.low),
        number(decision.ratio.high)
    )
}
