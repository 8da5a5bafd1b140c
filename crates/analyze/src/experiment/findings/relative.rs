//! Findings of a sweep about its levels relative to their base.

use super::difference::{evidence, explained, only_in_demands};
use super::view::View;
use crate::experiment::ab::name;
use crate::experiment::relative::decision;
use crate::values::rate_of;
use dyno_record::experiment::{AgainstBase, Basis, Comparison, ComparisonVerdict, Finding};
use dyno_record::quantity::Unit;
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};

/// Most levels with a finding; the table has the others.
const MOST_TOLD: usize = 8;

/// A finding for each level.
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
        let rates = [own, base].map(|level| {
            let rate = rate_of(&level.rate_per_s);
            statement!("rate-at", at = view.with_settings(level), rate = rate)
        });
        return Finding::warning(
            statement!("level-not-compared", at = at, than = than),
            rates.into_iter().chain(evidence(&row.demands)).collect(),
        );
    };
    let explanation = row.explanation.as_ref();
    let ratio = Number::estimate(&decision.ratio, Unit::Plain);
    let code = match explanation {
        Some(_) => "level-differs",
        None => "level-indistinct",
    };
    let said = statement!(
        code,
        at = at,
        than = than,
        statistic = name(decision.statistic),
        ratio = ratio,
        explanation = explanation.and_then(|one| explained("", one, &row.demands)),
        is_of_one_run = is_of_one_run(decision).then_some(true),
        demands = match explanation {
            Some(_) => None,
            None => only_in_demands("", &row.demands),
        }
    );
    let mut support = vec![statement!(
        "times-that-of-base",
        statistic = name(decision.statistic),
        ratio = ratio,
        basis = basis(decision)
    )];
    support.extend(evidence(&row.demands));
    match decision.verdict {
        ComparisonVerdict::NotEnoughData => Finding::warning(said, support),
        _ if is_of_one_run(decision) => Finding::warning(said, support),
        _ => Finding::found(said, support),
    }
}

/// Whether each side is one run, so that the interval does not include the variation from run to run.
pub(super) fn is_of_one_run(decision: &Comparison) -> bool {
    decision.basis == Basis::WithinRun
}

/// Basis of the interval of a decision.
pub(super) fn basis(decision: &Comparison) -> Statement {
    match decision.basis {
        Basis::BetweenRuns => statement!("from-pairs", pairs = decision.pairs),
        Basis::WithinRun => statement!("from-windows-of-one-run"),
    }
}
