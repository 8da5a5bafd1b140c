//! Results of a search for an objective: the highest offered rate that meets it, with its interval.

use super::queueing::is_sustained;
use crate::uncertainty::series::{IntervalSample, Series};
use dyno_record::experiment::{Attempt, Figure, Figures, Objective, Objectives, Statistic};

/// Microseconds in a nanosecond.
const US_PER_NS: f64 = 1e-3;

/// Whether a limit refers to a percentile that the figures do not include.
pub fn need_more(responses: &[Objective], figures: &Figures) -> bool {
    responses.iter().any(|one| one.value_us(figures).is_none())
}

/// Adds missing percentiles that limits refer to. `samples` are the windows of the stationary part of the same
/// run, whose histograms are merged.
pub fn complete(responses: &[Objective], figures: &mut Figures, samples: &[IntervalSample]) {
    let series = Series::new(samples);
    for one in responses {
        let missing = one.value_us(figures).is_none();
        let Some(percent) = one.percent().filter(|_| missing) else {
            continue;
        };
        if let Some(ns) = series.value(Statistic::Percentile { percent }) {
            let figure = Figure::bare(ns * US_PER_NS);
            figures.response_us.insert(one.statistic.clone(), figure);
        }
    }
}

/// Whether a run meets all objectives. Unsent arrivals waited longer than any limit; and if fewer operations
/// ended than were offered, a queue grew, which is short only because the run was.
pub fn are_kept(objectives: &Objectives, figures: &Figures) -> bool {
    let response =
        |one: &Objective| one.value_us(figures).is_some_and(|value| value <= one.limit_us);
    objectives.responses.iter().all(response)
        && figures.failed_ratio <= objectives.failed_ratio
        && figures.dropped_ratio == 0.0
        && missing_rate(figures).is_none()
}

/// The rate of ended operations, including failed ones, if it is below the offered rate.
fn missing_rate(figures: &Figures) -> Option<f64> {
    let offered = figures.offered_rate_per_s?;
    let ended = figures.rate_per_s.value / (1.0 - figures.failed_ratio);
    (!is_sustained(ended, offered, figures.succeeded)).then_some(ended)
}

/// Judges one measurement.
pub fn attempt(rate_per_s: f64, objectives: &Objectives, figures: &Figures) -> Attempt {
    Attempt {
        rate_per_s,
        values_us: objectives.responses.iter().filter_map(|one| one.value_us(figures)).collect(),
        failed_ratio: figures.failed_ratio,
        dropped_ratio: figures.dropped_ratio,
        ended_rate_per_s: missing_rate(figures),
        kept: are_kept(objectives, figures),
        generator_bound: figures.is_generator_bound(),
        stolen_ratio: figures.stolen_ratio,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uncertainty::histogram::SparseHistogram;
    use std::collections::BTreeMap;

    /// A window with operations of these times, in nanoseconds.
    fn window(times_ns: impl Iterator<Item = u64>) -> IntervalSample {
        let times: Vec<(u64, u64)> = times_ns.map(|time| (time, 1)).collect();
        IntervalSample {
            duration_s: 1.0,
            operations: times.len() as u64,
            times: SparseHistogram::from_counts(times),
        }
    }

    fn figures() -> Figures {
        Figures {
            costs: None,
            clients: 1,
            threads: 1,
            offered_rate_per_s: Some(100.0),
            rate_per_s: Figure::bare(100.0),
            response_mean_us: Figure::bare(50.0),
            response_us: BTreeMap::from([("p99".to_owned(), Figure::bare(99.5))]),
            service_mean_us: 50.0,
            think_mean_us: None,
            mean_in_flight: 1.0,
            succeeded: 100,
            failed_ratio: 0.0,
            dropped_ratio: 0.0,
            duration_s: 2.0,
            warm_up_s: 0.0,
            shares_cpus: false,
            shared_cpus: None,
            stolen_ratio: None,
            server: None,
            server_address: None,
            steady: None,
            resources: Vec::new(),
            disks: Vec::new(),
            demands: Vec::new(),
            laws: Vec::new(),
            caveats: Vec::new(),
        }
    }

    #[test]
    fn any_percentile_comes_from_the_merged_windows() {
        let objectives = Objectives {
            responses: vec![
                Objective::of_percentile(75.0, 100.0),
                Objective::of_percentile(99.0, 100.0),
                Objective::of_percentile(99.95, 100.0),
            ],
            failed_ratio: 0.0,
        };
        let mut figures = figures();
        assert!(need_more(&objectives.responses, &figures));
        // Times of 1 to 100 µs, the shorter half in one window: no mean of two percentiles is 75.
        let windows =
            [window((1..=50).map(|us| us * 1000)), window((51..=100).map(|us| us * 1000))];
        complete(&objectives.responses, &mut figures, &windows);
        let value = |name: &str| figures.percentile(name).unwrap().value;
        assert!((value("p75") - 75.0).abs() < 1.5, "{}", value("p75"));
        assert!((value("p99_95") - 100.0).abs() < 1.5);
        // Known percentiles are kept.
        assert_eq!(value("p99"), 99.5);
        assert!(!need_more(&objectives.responses, &figures));
        assert_eq!(attempt(100.0, &objectives, &figures).values_us.len(), 3);
        assert!(are_kept(&objectives, &figures));
    }

    #[test]
    fn failures_alone_can_be_the_objective() {
        let objectives = Objectives { responses: Vec::new(), failed_ratio: 0.01 };
        let failing = |failed_ratio| Figures { failed_ratio, ..figures() };
        assert!(are_kept(&objectives, &failing(0.01)));
        assert!(!are_kept(&objectives, &failing(0.02)));
    }

    #[test]
    fn unsustained_offered_rate_does_not_keep_the_objective() {
        let objectives = Objectives { responses: Vec::new(), failed_ratio: 0.2 };
        let run = |rate, failed_ratio| Figures {
            rate_per_s: Figure::bare(rate),
            succeeded: 100_000,
            failed_ratio,
            ..figures()
        };
        assert!(are_kept(&objectives, &run(99.5, 0.0)));
        let slow = attempt(100.0, &objectives, &run(90.0, 0.0));
        assert_eq!((slow.kept, slow.ended_rate_per_s), (false, Some(90.0)));
        // Failed operations have also ended.
        assert!(are_kept(&objectives, &run(90.0, 0.1)));
        // With few random arrivals this shortfall may be chance.
        let few = Figures { succeeded: 90, ..run(90.0, 0.0) };
        assert!(are_kept(&objectives, &few));
    }
}
