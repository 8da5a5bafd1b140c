//! What a search for an objective says: the highest offered rate that keeps it, with its interval.

use super::figures::{Figure, Figures};
use super::queueing::is_sustained;
use crate::search::objective::ObjectiveResult;
use crate::uncertainty::series::{IntervalSample, Series, Statistic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Microseconds in a nanosecond.
const US_PER_NS: f64 = 1e-3;

/// What must hold in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Objective {
    /// Name of a percentile of the response time, such as `p99` or `p99_9`, or `mean`.
    pub statistic: String,
    /// Largest value.
    pub limit_us: f64,
}

impl Objective {
    /// A limit of the percentile at which `percent` of the operations are as fast; above 0 and below 100.
    pub fn of_percentile(percent: f64, limit_us: f64) -> Objective {
        Objective {
            statistic: format!("p{percent}").replace('.', "_"),
            limit_us,
        }
    }

    /// The percentage that its name says; `None` of the mean.
    fn percent(&self) -> Option<f64> {
        let number = self.statistic.strip_prefix('p')?;
        number.replace('_', ".").parse().ok()
    }

    /// The value that the objective is about; `None` if the run has none.
    pub fn value_us(&self, figures: &Figures) -> Option<f64> {
        match self.statistic.as_str() {
            "mean" => Some(figures.response_mean_us.value),
            name => figures.percentile(name).map(|figure| figure.value),
        }
    }
}

/// All that must hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Objectives {
    /// Limits of response times; empty where only failures count.
    pub responses: Vec<Objective>,
    /// Largest share of operations that may fail.
    pub failed_ratio: f64,
}

impl Objectives {
    /// Whether a limit is about a percentile that figures do not have by themselves.
    pub fn need_more(&self, figures: &Figures) -> bool {
        let mut responses = self.responses.iter();
        responses.any(|one| one.value_us(figures).is_none())
    }

    /// Adds the percentiles that the limits are about and that are missing. `samples` are the windows of the stationary
    /// part of the same run, whose histograms are merged.
    pub fn complete(&self, figures: &mut Figures, samples: &[IntervalSample]) {
        let series = Series::new(samples);
        for one in &self.responses {
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

    /// Whether a run keeps all of them. Arrivals that were never sent waited longer than any limit; and where fewer
    /// operations ended than were offered, a queue grew, which is only short because the run was.
    pub fn are_kept(&self, figures: &Figures) -> bool {
        let response = |one: &Objective| {
            one.value_us(figures)
                .is_some_and(|value| value <= one.limit_us)
        };
        self.responses.iter().all(response)
            && figures.failed_ratio <= self.failed_ratio
            && figures.dropped_ratio == 0.0
            && missing_rate(figures).is_none()
    }
}

/// The rate of ended operations, failed ones included, if it is less than the offered one.
fn missing_rate(figures: &Figures) -> Option<f64> {
    let offered = figures.offered_rate_per_s?;
    let ended = figures.rate_per_s.value / (1.0 - figures.failed_ratio);
    (!is_sustained(ended, offered, figures.succeeded)).then_some(ended)
}

/// One measurement of the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Offered rate.
    pub rate_per_s: f64,
    /// Values of the objectives, in their order; empty if no operation succeeded.
    pub values_us: Vec<f64>,
    /// Share of the operations that failed.
    pub failed_ratio: f64,
    /// Share of the arrivals that were never sent.
    #[serde(default)]
    pub dropped_ratio: f64,
    /// Rate at which operations ended, if that is less than the offered rate: a queue grew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_rate_per_s: Option<f64>,
    /// Whether all objectives were kept, and the offered rate with them.
    pub kept: bool,
    /// The client was too busy, so that its response times are not the server's alone.
    pub generator_bound: bool,
    /// Share of the CPU time that the hypervisor took; absent where no machine told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_ratio: Option<f64>,
}

impl Attempt {
    /// A run in which no operation succeeded: it has no response times and misses every objective.
    pub fn without_success(rate_per_s: f64) -> Attempt {
        Attempt {
            rate_per_s,
            values_us: Vec::new(),
            failed_ratio: 1.0,
            dropped_ratio: 0.0,
            ended_rate_per_s: None,
            kept: false,
            generator_bound: false,
            stolen_ratio: None,
        }
    }

    /// Whether a response time was beyond its limit.
    pub fn is_too_slow(&self, objectives: &Objectives) -> bool {
        let limits = objectives.responses.iter().map(|one| one.limit_us);
        let mut both = self.values_us.iter().zip(limits);
        both.any(|(value, limit)| *value > limit)
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SloAnswer {
    /// What had to be kept.
    pub objectives: Objectives,
    /// Rate of a closed loop with the same clients, which the search began from, with the interval of that run.
    pub closed_rate_per_s: Figure,
    /// The boundary, and how often each rate was tried.
    pub search: ObjectiveResult,
    /// The measurements that count, in their order.
    pub attempts: Vec<Attempt>,
    /// Measurements that do not count: the hypervisor took so much of the CPU time that they were
    /// made again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<Attempt>,
}

/// Judges one measurement.
pub fn attempt(rate_per_s: f64, objectives: &Objectives, figures: &Figures) -> Attempt {
    Attempt {
        rate_per_s,
        values_us: objectives
            .responses
            .iter()
            .filter_map(|one| one.value_us(figures))
            .collect(),
        failed_ratio: figures.failed_ratio,
        dropped_ratio: figures.dropped_ratio,
        ended_rate_per_s: missing_rate(figures),
        kept: objectives.are_kept(figures),
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
            clients: 1,
            threads: 1,
            offered_rate_per_s: Some(100.0),
            rate_per_s: Figure::bare(100.0),
            response_mean_us: Figure::bare(50.0),
            response_us: BTreeMap::from([("p99".to_owned(), Figure::bare(99.5))]),
            service_mean_us: 50.0,
            mean_in_flight: 1.0,
            succeeded: 100,
            failed_ratio: 0.0,
            dropped_ratio: 0.0,
            duration_s: 2.0,
            warm_up_s: 0.0,
            shares_cpus: false,
            stolen_ratio: None,
            server: None,
            steady: None,
            resources: Vec::new(),
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
        assert!(objectives.need_more(&figures));
        // Times of 1 to 100 µs, the shorter half in one window: no mean of two percentiles gives 75.
        let windows = [
            window((1..=50).map(|us| us * 1000)),
            window((51..=100).map(|us| us * 1000)),
        ];
        objectives.complete(&mut figures, &windows);
        let value = |name: &str| figures.percentile(name).unwrap().value;
        assert!((value("p75") - 75.0).abs() < 1.5, "{}", value("p75"));
        assert!((value("p99_95") - 100.0).abs() < 1.5);
        // What is known stays.
        assert_eq!(value("p99"), 99.5);
        assert!(!objectives.need_more(&figures));
        assert_eq!(attempt(100.0, &objectives, &figures).values_us.len(), 3);
        assert!(objectives.are_kept(&figures));
    }

    #[test]
    fn failures_alone_can_be_the_objective() {
        let objectives = Objectives {
            responses: Vec::new(),
            failed_ratio: 0.01,
        };
        let failing = |failed_ratio| Figures {
            failed_ratio,
            ..figures()
        };
        assert!(objectives.are_kept(&failing(0.01)));
        assert!(!objectives.are_kept(&failing(0.02)));
    }

    #[test]
    fn an_offered_rate_that_is_not_sustained_keeps_no_objective() {
        let objectives = Objectives {
            responses: Vec::new(),
            failed_ratio: 0.2,
        };
        let run = |rate, failed_ratio| Figures {
            rate_per_s: Figure::bare(rate),
            succeeded: 100_000,
            failed_ratio,
            ..figures()
        };
        assert!(objectives.are_kept(&run(99.5, 0.0)));
        let slow = attempt(100.0, &objectives, &run(90.0, 0.0));
        assert_eq!((slow.kept, slow.ended_rate_per_s), (false, Some(90.0)));
        // What fails has ended, too.
        assert!(objectives.are_kept(&run(90.0, 0.1)));
        // Few random arrivals may be that many fewer by chance.
        let few = Figures {
            succeeded: 90,
            ..run(90.0, 0.0)
        };
        assert!(objectives.are_kept(&few));
    }
}
