//! Findings of a search for an objective.

use crate::search::objective::boundary::{has_curve, has_interval};
use crate::values::{percent, rate, rate_of, us};
use dyno_record::estimate::Estimate;
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
    let boundary = answer.search.boundary.as_ref();
    let is_below = boundary.is_some_and(|one| is_at(one, &one.most_per_s, NotMeasured::Below));
    if boundary.is_none() && answer.search.end == ObjectiveEnd::Interrupted {
        return bracket(answer);
    }
    let Some(found) = answer.search.rate_per_s.filter(|_| !is_below) else {
        return no_rate(answer);
    };
    let half = boundary.map(|one| known(one, &one.half_per_s));
    let most_is_above = boundary.map(|one| is_at(one, &one.most_per_s, NotMeasured::Above));
    let rate_is_above = boundary.map(|one| is_at(one, &one.half_per_s, NotMeasured::Above));
    let said = statement!(
        "objective-kept-up-to",
        objective = objective(answer),
        most = boundary.map(|one| known(one, &one.most_per_s)),
        most_is_above = most_is_above.filter(|is_above| *is_above),
        rate = Number { value: rate(found).value, ..half.unwrap_or(rate(found)) },
        rate_is_above = rate_is_above.filter(|is_above| *is_above),
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

/// The highest rate that met the objective and the lowest that missed it, before an interruption.
fn bracket(answer: &SloAnswer) -> Option<Finding> {
    let kept = answer.search.always_kept_up_to_per_s;
    let missed = answer.search.always_missed_from_per_s;
    let is_nearest = |one: &&Attempt| [kept, missed].contains(&Some(one.rate_per_s));
    let evidence = answer.attempts.iter().filter(is_nearest).map(|one| attempt(answer, one));
    let evidence: Vec<Statement> = evidence.collect();
    let (kept, missed) = (kept.map(rate), missed.map(rate));
    let objective = objective(answer);
    (!evidence.is_empty()).then(|| {
        let said =
            statement!("objective-bracket", objective = objective, kept = kept, missed = missed);
        Finding::found(said, evidence)
    })
}

/// No run met the objective, or 95 % of the runs meet it only at or below the lowest rate tried.
fn no_rate(answer: &SloAnswer) -> Option<Finding> {
    let boundary = answer.search.boundary.as_ref();
    let boundary = boundary.filter(|one| is_at(one, &one.most_per_s, NotMeasured::Below));
    let most = boundary.map(|one| &one.most_per_s);
    let wide = boundary.filter(|one| has_interval(one, &one.most_per_s));
    let half = boundary.filter(|one| has_curve(one)).map(|one| known(one, &one.half_per_s));
    let said = statement!(
        "no-rate-keeps-objective",
        objective = objective(answer),
        lowest = most.map(|most| rate(most.value)),
        up_to = wide.map(|one| rate(one.most_per_s.high)),
        half = half
    );
    let is_lowest = |one: &&Attempt| most.is_none_or(|most| one.rate_per_s <= most.value);
    let evidence = answer.attempts.iter().filter(is_lowest).map(|one| attempt(answer, one));
    let evidence: Vec<Statement> = evidence.collect();
    (!evidence.is_empty()).then(|| Finding::warning(said, evidence))
}

/// Whether a rate of the boundary was clipped on this side.
fn is_at(boundary: &Boundary, estimate: &Estimate, side: NotMeasured) -> bool {
    boundary.not_measured(estimate.value) == Some(side)
}

/// A rate of the boundary. Its interval is open if its upper end was clipped, and absent if clipping left nothing of it.
fn known(boundary: &Boundary, estimate: &Estimate) -> Number {
    if !has_interval(boundary, estimate) {
        return rate(estimate.value);
    }
    let number = Number::estimate(estimate, Unit::PerSecond);
    let is_open = boundary.not_measured(estimate.high) == Some(NotMeasured::Above);
    Number { high: number.high.filter(|_| !is_open), ..number }
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

/// The rates at which chance decided, if runs contradict each other.
fn by_chance(answer: &SloAnswer) -> Option<Finding> {
    let boundary = answer.search.boundary.as_ref();
    let boundary = boundary.filter(|_| is_contradictory(&answer.search.tried))?;
    let range = boundary.most_per_s.value..=boundary.few_per_s.value;
    let between = answer.search.tried.iter().filter(|one| range.contains(&one.rate_per_s));
    let between: Vec<Statement> = between
        .map(|one| {
            statement!(
                "kept-at-rate",
                kept = one.kept_count,
                made = one.kept_count + one.missed_count,
                rate = rate(one.rate_per_s)
            )
        })
        .collect();
    (!between.is_empty()).then(|| {
        let kept = statement!("runs-between-that-kept", runs = between);
        Finding::found(statement!("chance-decides"), vec![kept])
    })
}

/// The search ended without a boundary.
fn unfinished(answer: &SloAnswer) -> Option<Finding> {
    let code = match answer.search.end {
        // An experiment that is not complete has a finding of its own.
        ObjectiveEnd::Resolved | ObjectiveEnd::Interrupted => return None,
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
