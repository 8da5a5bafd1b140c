//! A series of runs of the same plan, such as nightly runs: its level changes, and whether the present level is
//! worse than the best one before it. A small change after a large loss does not hide the loss: a level that
//! has not fully recovered is compared with the lost level.

use crate::change_point::{ChangePoint, ChangePointSettings, change_points};
use dyno_record::experiment::{Cost, CostKind, Figure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One run of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryRun {
    /// Directory, relative to the series directory.
    pub directory: String,
    /// Start, RFC 3339 in UTC.
    pub started_at: String,
    /// Values by the name of the statistic, in the order of [`STATISTICS`].
    pub values: Vec<f64>,
    /// Costs per operation, if counted; displayed but not judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<Cost>,
    /// Whether the check `other_load` fails because others used too much of the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other_load: bool,
    /// Currency of the price, if the plan names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}

impl HistoryRun {
    /// The cost of one kind.
    pub fn cost(&self, kind: CostKind) -> Option<Figure> {
        let found = self.costs.iter().find(|cost| cost.kind == kind);
        found.map(|cost| cost.value)
    }
}

/// The tracked statistics: name, unit, and whether more is better.
pub const STATISTICS: [(&str, &str, bool); 4] = [
    ("rate", "operations per second", true),
    ("mean response", "µs", false),
    ("p95 response", "µs", false),
    ("p99 response", "µs", false),
];

/// The changes of one statistic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryStatistic {
    /// Name, from [`STATISTICS`].
    pub name: String,
    pub unit: String,
    /// Whether more is better.
    pub larger_is_better: bool,
    /// Changes of level in the order of time.
    pub changes: Vec<ChangePoint>,
    /// The loss, if the present level is worse than the best one before it by more than the margin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<HistoryLoss>,
    /// Whether there is a loss.
    pub regression: bool,
}

/// A level that was reached once and is no longer reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryLoss {
    /// The best level before the present one, in the unit of the statistic; the latest if equal.
    pub best_mean: f64,
    /// Position of the first run after that level, from 0.
    pub position: usize,
    /// The present level.
    pub present_mean: f64,
    /// The present level divided by the best one, minus 1.
    pub change_ratio: f64,
}

/// A series with its changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    pub name: String,
    /// The runs in the order of time.
    pub runs: Vec<HistoryRun>,
    /// Runs that were left out, with the reason.
    pub left_out: Vec<String>,
    pub statistics: Vec<HistoryStatistic>,
    /// Probability of a false alarm in a series without a change, for each statistic.
    pub significance_ratio: f64,
    /// Fewest runs in which a change can be distinguished from chance.
    #[serde(default)]
    pub fewest_runs: usize,
    /// Largest irrelevant change, as a share.
    pub margin_ratio: f64,
    /// Position of the run from which levels are judged, from 0; absent if all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<usize>,
}

impl History {
    /// The history with the levels since a run as the only reference: earlier losses were accepted. A level
    /// that extends beyond that run counts.
    pub fn judged_since(mut self, position: usize) -> History {
        self.since = Some(position);
        for one in &mut self.statistics {
            let mut judged = one.changes.clone();
            judged.retain(|change| change.position > position);
            one.loss = loss(&judged, one.larger_is_better, self.margin_ratio);
            one.regression = one.loss.is_some();
        }
        self
    }

    /// Whether there are too few runs to find any change.
    pub fn is_too_short(&self) -> bool {
        self.runs.len() < self.fewest_runs
    }

    /// Whether a statistic got worse without recovering.
    pub fn has_regression(&self) -> bool {
        self.statistics.iter().any(|one| one.regression)
    }
}

/// Finds changes in a series of runs in time order.
pub fn analyze(
    name: &str,
    runs: Vec<HistoryRun>,
    left_out: Vec<String>,
    margin_ratio: f64,
    settings: ChangePointSettings,
) -> History {
    let statistics = STATISTICS
        .iter()
        .enumerate()
        .map(|(place, (name, unit, larger_is_better))| {
            let series: Vec<f64> = runs.iter().map(|run| run.values[place]).collect();
            let changes = change_points(&series, settings);
            let loss = loss(&changes, *larger_is_better, margin_ratio);
            HistoryStatistic {
                name: (*name).to_owned(),
                unit: (*unit).to_owned(),
                larger_is_better: *larger_is_better,
                regression: loss.is_some(),
                loss,
                changes,
            }
        })
        .collect();
    History {
        name: name.to_owned(),
        runs,
        left_out,
        statistics,
        significance_ratio: settings.significance_ratio,
        fewest_runs: settings.fewest_results(),
        margin_ratio,
        since: None,
    }
}

/// Compares the present level with the best one before it. Each change has the levels on both sides.
fn loss(changes: &[ChangePoint], larger_is_better: bool, margin_ratio: f64) -> Option<HistoryLoss> {
    let present_mean = changes.last()?.after_mean;
    // The latest if equal, so that the loss is reported where it happened.
    let best = changes.iter().reduce(|best, change| {
        let is_as_good = if larger_is_better {
            change.before_mean >= best.before_mean
        } else {
            change.before_mean <= best.before_mean
        };
        if is_as_good { change } else { best }
    })?;
    let change_ratio = present_mean / best.before_mean - 1.0;
    let is_worse =
        if larger_is_better { change_ratio < -margin_ratio } else { change_ratio > margin_ratio };
    is_worse.then_some(HistoryLoss {
        best_mean: best.before_mean,
        position: best.position,
        present_mean,
        change_ratio,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(place: usize, rate: f64) -> HistoryRun {
        // Noise without repetitions.
        let noise = 1.0 + 0.01 * ((place * 7919) % 13) as f64 / 13.0;
        let us = 1e6 / rate;
        HistoryRun {
            directory: place.to_string(),
            started_at: format!("2026-01-{:02}T00:00:00Z", place + 1),
            values: vec![rate * noise, us * noise, 2.0 * us * noise, 3.0 * us * noise],
            costs: Vec::new(),
            other_load: false,
            currency: None,
        }
    }

    fn history(rates: &[f64]) -> History {
        let runs = rates.iter().enumerate().map(|(at, rate)| run(at, *rate)).collect();
        analyze("a", runs, Vec::new(), 0.05, ChangePointSettings::seeded(1))
    }

    #[test]
    fn lasting_loss_is_a_regression_and_recovered_one_is_not() {
        let steady = vec![1000.0; 12];
        assert!(!history(&steady).has_regression());
        let mut worse = steady.clone();
        worse.extend([800.0; 8]);
        let found = history(&worse);
        assert!(found.has_regression());
        assert_eq!(found.statistics[0].changes[0].position, 12);
        let mut recovered = worse.clone();
        recovered.extend([1000.0; 10]);
        assert!(!history(&recovered).has_regression());
        let mut better = steady;
        better.extend([1300.0; 8]);
        assert!(!history(&better).has_regression());
    }

    #[test]
    fn series_that_could_show_no_change_is_too_short() {
        assert!(history(&[1000.0, 1000.0, 1000.0, 500.0, 500.0]).is_too_short());
        assert!(!history(&[1000.0; 12]).is_too_short());
    }

    fn levels(parts: &[(f64, usize)]) -> Vec<f64> {
        parts.iter().flat_map(|(rate, count)| vec![*rate; *count]).collect()
    }

    #[test]
    fn accepted_loss_is_shown_but_not_judged() {
        let found = history(&levels(&[(1000.0, 14), (800.0, 14)]));
        assert!(found.has_regression());
        let accepted = found.clone().judged_since(16);
        assert!(!accepted.has_regression());
        assert_eq!(accepted.statistics[0].changes.len(), 1);
        // A later loss from the accepted level counts as usual.
        assert!(found.judged_since(10).has_regression());
        let again = history(&levels(&[(1000.0, 14), (800.0, 14), (600.0, 14)])).judged_since(16);
        let loss = again.statistics[0].loss.unwrap();
        assert_eq!(loss.position, 28);
        assert!((loss.change_ratio + 0.25).abs() < 0.01, "{loss:?}");
    }

    #[test]
    fn small_change_after_a_loss_does_not_hide_it() {
        for later in [830.0, 776.0] {
            let found = history(&levels(&[(1000.0, 14), (800.0, 14), (later, 14)]));
            for one in &found.statistics {
                assert_eq!(one.changes.len(), 2, "{one:?}");
                let loss = one.loss.unwrap();
                assert_eq!(loss.position, 14, "{one:?}");
                assert!(one.regression);
            }
            let ratio = found.statistics[0].loss.unwrap().change_ratio;
            assert!((ratio - (later / 1000.0 - 1.0)).abs() < 0.01, "{ratio}");
        }
        // Small losses add up.
        let steps = levels(&[(1000.0, 14), (965.0, 14), (930.0, 14)]);
        assert!(history(&steps).has_regression());
        // A loss from a temporarily better level is also a loss.
        let gained = levels(&[(1000.0, 14), (1300.0, 14), (1100.0, 14)]);
        assert!(history(&gained).has_regression());
        let recovered = levels(&[(1000.0, 14), (800.0, 14), (980.0, 14)]);
        assert!(!history(&recovered).has_regression());
    }
}
