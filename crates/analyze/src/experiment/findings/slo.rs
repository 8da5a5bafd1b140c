//! What a search for an objective means.

use super::{finding, opportunity, warning};
use crate::experiment::words::{count, interval_or_none, list, percent, rate, time};
use dyno_record::estimate::Estimate;
use dyno_record::experiment::{Attempt, Boundary, Finding, ObjectiveEnd, SloAnswer, TriedRate};

/// Share of the closed-loop rate from which on there is little to gain.
const NEAR_RATIO: f64 = 0.9;

/// All rules.
pub(super) fn all(answer: &SloAnswer) -> Vec<Finding> {
    let rules = [
        generator_bound(answer),
        set_aside(answer),
        boundary(answer),
        spread(answer),
        unfinished(answer),
        headroom(answer),
    ];
    rules.into_iter().flatten().collect()
}

/// The objective in words: `p99 at most 5.00 ms`.
fn objective(answer: &SloAnswer) -> String {
    let mut limits: Vec<String> = answer
        .objectives
        .responses
        .iter()
        .map(|one| {
            let name = one.statistic.replace('_', ".");
            format!("{name} at most {}", time(one.limit_us * 1e-6))
        })
        .collect();
    let failed = answer.objectives.failed_ratio;
    if limits.is_empty() || failed > 0.0 {
        limits.push(format!("failed operations at most {}", percent(failed)));
    }
    list(&limits)
}

fn attempt(answer: &SloAnswer, attempt: &Attempt) -> String {
    let objectives = answer.objectives.responses.iter();
    let mut values: Vec<String> = objectives
        .zip(&attempt.values_us)
        .map(|(one, us)| format!("{} {}", one.statistic.replace('_', "."), time(us * 1e-6)))
        .collect();
    if attempt.failed_ratio > 0.0 {
        values.push(format!("{} failed", percent(attempt.failed_ratio)));
    }
    if attempt.dropped_ratio > 0.0 {
        let share = percent(attempt.dropped_ratio);
        values.push(format!("{share} of the arrivals never sent"));
    }
    if let Some(ended) = attempt.ended_rate_per_s {
        values.push(format!("only {} ended", rate(ended)));
    }
    if values.is_empty() {
        values.push("nothing failed".to_owned());
    }
    let verdict = if attempt.kept { "kept" } else { "missed" };
    format!(
        "{}: {} ({verdict})",
        rate(attempt.rate_per_s),
        list(&values)
    )
}

/// The client was the limit in runs that decided.
fn generator_bound(answer: &SloAnswer) -> Option<Finding> {
    let bound: Vec<String> = answer
        .attempts
        .iter()
        .filter(|attempt| attempt.generator_bound)
        .map(|one| attempt(answer, one))
        .collect();
    (!bound.is_empty()).then(|| {
        warning(
            format!(
                "the load generator was too busy in {} of {}: response times there are not those of the server alone",
                bound.len(),
                count(answer.attempts.len(), "run", "runs")
            ),
            bound,
        )
    })
}

/// The machine itself was disturbed.
fn set_aside(answer: &SloAnswer) -> Option<Finding> {
    let lost: Vec<String> = answer
        .set_aside
        .iter()
        .map(|one| {
            let stolen = percent(one.stolen_ratio.unwrap_or_default());
            format!("{}, {stolen} stolen", attempt(answer, one))
        })
        .collect();
    let all = count(answer.attempts.len() + lost.len(), "run", "runs");
    let were = if lost.len() == 1 { "was" } else { "were" };
    (!lost.is_empty()).then(|| {
        warning(
            format!(
                "{} of {all} {were} set aside and made again: the hypervisor took CPU time from this machine, which says \
                 nothing of the server",
                lost.len()
            ),
            lost,
        )
    })
}

/// The highest rate that keeps the objective.
fn boundary(answer: &SloAnswer) -> Option<Finding> {
    let objective = objective(answer);
    let Some(found) = answer.search.rate_per_s else {
        let evidence = answer.attempts.iter().map(|one| attempt(answer, one));
        let evidence: Vec<String> = evidence.collect();
        return (!evidence.is_empty()).then(|| {
            warning(
                format!("no rate was found that keeps {objective}"),
                evidence,
            )
        });
    };
    let kept = match &answer.search.boundary {
        Some(boundary) => format!(
            "most runs keep {objective} up to {}{}",
            rate(found),
            interval_of(&boundary.half_per_s)
        ),
        None => format!(
            "{} keep {objective} (no interval: no boundary was found)",
            rate(found)
        ),
    };
    let text = format!(
        "{kept}: {} of the {}{} that a closed loop reaches",
        percent(found / answer.closed_rate_per_s.value),
        rate(answer.closed_rate_per_s.value),
        interval_or_none(&answer.closed_rate_per_s, rate)
    );
    // The runs on either side of the boundary decide.
    let evidence: Vec<String> = nearest_kept(answer, found)
        .into_iter()
        .chain(nearest_missed(answer, found))
        .map(|one| attempt(answer, one))
        .collect();
    (!evidence.is_empty()).then(|| finding(text, evidence))
}

/// ` (95 % interval 9,000/s to 11,000/s)`
fn interval_of(estimate: &Estimate) -> String {
    let (low, high) = (rate(estimate.low), rate(estimate.high));
    let confidence = percent(estimate.confidence_ratio);
    format!(" ({confidence} interval {low} to {high})")
}

/// A run that was kept, at the highest rate up to `found` at which most were.
fn nearest_kept(answer: &SloAnswer, found: f64) -> Option<&Attempt> {
    let below = answer.search.tried.iter().rev();
    let mut kept = below.filter(|one| one.kept_count > one.missed_count);
    run_at(answer, kept.find(|one| one.rate_per_s <= found)?, true)
}

/// A run that was missed, at the lowest rate above `found` at which most were.
fn nearest_missed(answer: &SloAnswer, found: f64) -> Option<&Attempt> {
    let above = answer.search.tried.iter();
    let mut missed = above.filter(|one| one.missed_count > one.kept_count);
    run_at(answer, missed.find(|one| one.rate_per_s > found)?, false)
}

fn run_at<'a>(answer: &'a SloAnswer, rate: &TriedRate, kept: bool) -> Option<&'a Attempt> {
    let mut runs = answer.attempts.iter();
    runs.find(|one| one.rate_per_s == rate.rate_per_s && one.kept == kept)
}

/// Between which rates the objective is kept at one time and missed at another.
fn spread(answer: &SloAnswer) -> Option<Finding> {
    let boundary = answer.search.boundary.as_ref();
    match boundary.filter(|_| is_contradictory(&answer.search.tried)) {
        Some(boundary) => by_chance(answer, boundary),
        None => without_contradiction(answer),
    }
}

/// Whether a run missed the objective at a rate at which, or above which, another kept it.
fn is_contradictory(tried: &[TriedRate]) -> bool {
    let mut missed = tried.iter().skip_while(|one| one.missed_count == 0);
    missed.any(|one| one.kept_count > 0)
}

/// Over which rates chance decides, by the curve.
fn by_chance(answer: &SloAnswer, boundary: &Boundary) -> Option<Finding> {
    let (most, few) = (&boundary.most_per_s, &boundary.few_per_s);
    let between = answer.search.tried.iter();
    let between: Vec<String> = between
        .filter(|one| (most.value..=few.value).contains(&one.rate_per_s))
        .map(|one| {
            let made = one.kept_count + one.missed_count;
            format!("{} of {made} at {}", one.kept_count, rate(one.rate_per_s))
        })
        .collect();
    (!between.is_empty()).then(|| {
        finding(
            format!(
                "near the boundary chance decides: 95 % of the runs keep it at {}{}, and 5 % at {}{}",
                rate(most.value),
                interval_of(most),
                rate(few.value),
                interval_of(few)
            ),
            vec![format!("runs between that kept it: {}", list(&between))],
        )
    })
}

/// That no run contradicts another, and between which rates that leaves the boundary.
fn without_contradiction(answer: &SloAnswer) -> Option<Finding> {
    let low = answer.search.always_kept_up_to_per_s?;
    let high = answer.search.always_missed_from_per_s?;
    let between: Vec<String> = answer
        .attempts
        .iter()
        .filter(|one| (low..=high).contains(&one.rate_per_s))
        .map(|one| attempt(answer, one))
        .collect();
    (!between.is_empty()).then(|| {
        finding(
            format!(
                "up to {} every run kept it, and from {} on every run missed it",
                rate(low),
                rate(high)
            ),
            vec![format!(
                "runs at these rates and between: {}",
                list(&between)
            )],
        )
    })
}

/// The search ended without a boundary.
fn unfinished(answer: &SloAnswer) -> Option<Finding> {
    let text = match answer.search.end {
        ObjectiveEnd::Resolved => return None,
        ObjectiveEnd::AlwaysKept => {
            "the objective was kept at the highest rate that was tried: the boundary is above it"
        }
        ObjectiveEnd::NeverKept => {
            "the objective was missed at the lowest rate that was tried: load is not what breaks it"
        }
        ObjectiveEnd::OutOfMeasurements if answer.search.boundary.is_some() => {
            "the search ended early: the runs were spent before the interval was as narrow as `--resolution` asks for; \
             `--max-runs` allows more, and longer runs (`--duration`) may contradict each other less"
        }
        ObjectiveEnd::OutOfMeasurements => {
            "the runs were spent before the boundary was certain: `--max-runs` allows more"
        }
    };
    let rates: Vec<f64> = answer
        .search
        .tried
        .iter()
        .map(|one| one.rate_per_s)
        .collect();
    let (first, last) = (rates.first()?, rates.last()?);
    Some(warning(
        text.to_owned(),
        vec![format!(
            "{} at rates from {} to {}",
            count(answer.attempts.len(), "run", "runs"),
            rate(*first),
            rate(*last)
        )],
    ))
}

/// The objective costs much of what the server could do, and it is a time that costs it.
fn headroom(answer: &SloAnswer) -> Option<Finding> {
    let found = answer.search.rate_per_s?;
    nearest_missed(answer, found).filter(|one| one.is_too_slow(&answer.objectives))?;
    let share = found / answer.closed_rate_per_s.value;
    (share < NEAR_RATIO).then(|| {
        opportunity(
            format!(
                "the response time breaks the objective before the rate is exhausted: look at what makes single operations \
                 slow at {} of the maximum",
                percent(share)
            ),
            vec![format!(
                "the objective holds up to {}, and a closed loop reaches {}",
                rate(found),
                rate(answer.closed_rate_per_s.value)
            )],
        )
    })
}

#[cfg(test)]
mod tests;
