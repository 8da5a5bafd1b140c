//! Findings of a search for an objective.

use crate::values::{percent, rate, rate_of, us};
use dyno_record::experiment::{
    Attempt, Boundary, Finding, NotMeasured, ObjectiveEnd, SloAnswer, TriedRate,
};
use dyno_record::quantity::Unit;
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};

/// All rules.
pub(super) fn all(answer: &SloAnswer) -> Vec<Finding> {
    let rules = [
        generator_bound(answer),
        set_aside(answer),
        boundary(answer),
        by_chance(answer),
        unfinished(answer),
    ];
    rules.into_iter().flatten().collect()
}

/// The objective: `p99 at most 5.00 ms`.
fn objective(answer: &SloAnswer) -> Statement {
    let responses = answer.objectives.responses.iter().map(|one| {
        let limit = us(one.limit_us);
        statement!("at-most-time", statistic = &one.statistic, limit = limit)
    });
    let limits: Vec<Statement> = responses.collect();
    let failed = answer.objectives.failed_ratio;
    let is_reported = limits.is_empty() || failed > 0.0;
    statement!("objective", responses = limits, failed = is_reported.then(|| percent(failed)))
}

fn attempt(answer: &SloAnswer, attempt: &Attempt) -> Statement {
    let values =
        answer.objectives.responses.iter().zip(&attempt.values_us).map(|(one, value_us)| {
            let time = us(*value_us);
            statement!("statistic", statistic = &one.statistic, time = time)
        });
    let share = |ratio: f64| (ratio > 0.0).then(|| percent(ratio));
    statement!(
        "attempt",
        rate = rate(attempt.rate_per_s),
        responses = values.collect::<Vec<Statement>>(),
        failed = share(attempt.failed_ratio),
        dropped = share(attempt.dropped_ratio),
        ended = attempt.ended_rate_per_s.map(rate),
        kept = attempt.kept
    )
}

/// The client was the limit in runs that decided.
fn generator_bound(answer: &SloAnswer) -> Option<Finding> {
    let bound: Vec<Statement> = answer
        .attempts
        .iter()
        .filter(|attempt| attempt.generator_bound)
        .map(|one| attempt(answer, one))
        .collect();
    let (runs, all) = (bound.len(), answer.attempts.len());
    (!bound.is_empty()).then(|| {
        Finding::warning(statement!("client-too-busy-in-runs", runs = runs, all = all), bound)
    })
}

/// The machine itself was disturbed.
fn set_aside(answer: &SloAnswer) -> Option<Finding> {
    let lost = answer.set_aside.iter().filter_map(|one| {
        Some(statement!(
            "attempt-set-aside",
            attempt = attempt(answer, one),
            stolen = percent(one.stolen_ratio?)
        ))
    });
    let lost: Vec<Statement> = lost.collect();
    let (runs, all) = (lost.len(), answer.attempts.len() + lost.len());
    (!lost.is_empty())
        .then(|| Finding::warning(statement!("runs-set-aside", runs = runs, all = all), lost))
}

/// The highest rate that meets the objective.
fn boundary(answer: &SloAnswer) -> Option<Finding> {
    let Some(found) = answer.search.rate_per_s else {
        let evidence = answer.attempts.iter().map(|one| attempt(answer, one));
        let evidence: Vec<Statement> = evidence.collect();
        let said = statement!("no-rate-keeps-objective", objective = objective(answer));
        return (!evidence.is_empty()).then(|| Finding::warning(said, evidence));
    };
    let boundary = answer.search.boundary.as_ref();
    let half = boundary.map(|boundary| Number::estimate(&boundary.half_per_s, Unit::PerSecond));
    let said = statement!(
        "objective-kept-up-to",
        is_boundary_known = boundary.is_some(),
        objective = objective(answer),
        rate = Number { value: rate(found).value, ..half.unwrap_or(rate(found)) },
        share = percent(found / answer.closed_rate_per_s.value),
        closed = rate_of(&answer.closed_rate_per_s)
    );
    // The runs on both sides of the boundary decide.
    let evidence: Vec<Statement> = nearest_kept(answer, found)
        .into_iter()
        .chain(nearest_missed(answer, found))
        .map(|one| attempt(answer, one))
        .collect();
    (!evidence.is_empty()).then(|| Finding::found(said, evidence))
}

/// A run that met the objective, at the highest rate up to `found` at which most did.
fn nearest_kept(answer: &SloAnswer, found: f64) -> Option<&Attempt> {
    let mut kept = answer.search.tried.iter().rev().filter(|one| one.kept_count > one.missed_count);
    run_at(answer, kept.find(|one| one.rate_per_s <= found)?, true)
}

/// A run that missed the objective, at the lowest rate above `found` at which most did.
fn nearest_missed(answer: &SloAnswer, found: f64) -> Option<&Attempt> {
    let mut missed = answer.search.tried.iter().filter(|one| one.missed_count > one.kept_count);
    run_at(answer, missed.find(|one| one.rate_per_s > found)?, false)
}

fn run_at<'a>(answer: &'a SloAnswer, rate: &TriedRate, kept: bool) -> Option<&'a Attempt> {
    answer.attempts.iter().find(|one| one.rate_per_s == rate.rate_per_s && one.kept == kept)
}

/// Whether a run missed the objective at a rate at which, or above which, another met it.
fn is_contradictory(tried: &[TriedRate]) -> bool {
    let mut missed = tried.iter().skip_while(|one| one.missed_count == 0);
    missed.any(|one| one.kept_count > 0)
}

/// The range of rates in which chance decides, by the curve, if runs contradict each other.
fn by_chance(answer: &SloAnswer) -> Option<Finding> {
    let boundary = answer.search.boundary.as_ref();
    let boundary = boundary.filter(|_| is_contradictory(&answer.search.tried))?;
    let (most, few) = (&boundary.most_per_s, &boundary.few_per_s);
    let between = answer.search.tried.iter();
    let between: Vec<Statement> = between
        .filter(|one| (most.value..=few.value).contains(&one.rate_per_s))
        .map(|one| {
            statement!(
                "kept-at-rate",
                kept = one.kept_count,
                made = one.kept_count + one.missed_count,
                rate = rate(one.rate_per_s)
            )
        })
        .collect();
    let most_is_below = boundary.not_measured(most.value) == Some(NotMeasured::Below);
    let few_is_above = boundary.not_measured(few.value) == Some(NotMeasured::Above);
    (!between.is_empty()).then(|| {
        Finding::found(
            statement!(
                "chance-decides",
                most = Number::estimate(most, Unit::PerSecond),
                few = Number::estimate(few, Unit::PerSecond),
                most_is_below = most_is_below.then_some(true),
                few_is_above = few_is_above.then_some(true),
                is_cut = is_cut(boundary).then_some(true)
            ),
            vec![statement!("runs-between-that-kept", runs = between)],
        )
    })
}

/// Whether an end of these intervals lies beyond the tried rates.
fn is_cut(boundary: &Boundary) -> bool {
    let rates = [&boundary.most_per_s, &boundary.few_per_s];
    let mut ends = rates.iter().flat_map(|rate| [rate.low, rate.high]);
    ends.any(|end| boundary.not_measured(end).is_some())
}

/// The search ended without a boundary.
fn unfinished(answer: &SloAnswer) -> Option<Finding> {
    let code = match answer.search.end {
        ObjectiveEnd::Resolved => return None,
        ObjectiveEnd::AlwaysKept => "objective-always-kept",
        ObjectiveEnd::NeverKept => "objective-never-kept",
        ObjectiveEnd::OutOfMeasurements if answer.search.boundary.is_some() => {
            "objective-search-ended-early"
        }
        ObjectiveEnd::OutOfMeasurements => "boundary-not-certain",
    };
    let mut rates = answer.search.tried.iter().map(|one| one.rate_per_s);
    let first = rates.next()?;
    let evidence = statement!(
        "runs-at-rates",
        runs = answer.attempts.len(),
        lowest = rate(first),
        highest = rate(rates.next_back().unwrap_or(first))
    );
    Some(Finding::warning(statement!(code), vec![evidence]))
}

#[cfg(test)]
pub(super) mod tests;
