//! A sweep relative to one of its values: how much faster or slower each level is than its base, and which
//! service demand explains the difference.
//!
//! A level and its base differ only in the swept key. Runs of the same round are a pair, as in a comparison of
//! two plans ([`crate::comparison`]): they are close in time, and a drift of the machine affects both.

use super::ab::{deciding, figures_of, measured_pairs, statistics};
use super::demands;
use super::machines::is_of_kind;
use crate::comparison::compare;
use crate::resampling::Resampling;
use crate::uncertainty::series::IntervalSample;
use dyno_record::experiment::{
    AgainstBase, Comparison, ComparisonVerdict, DemandRatio, Experiment, Explanation, Level,
    Relative,
};
use dyno_record::model::ResourceKind;
use std::collections::BTreeMap;

/// Any difference is relevant: a sweep makes no decision based on it.
const NO_MARGIN: f64 = 0.0;

/// Smallest share of a difference that a demand must cover to explain it, if all clients wait for it in turn.
const LEAST_EXPLAINED_RATIO: f64 = 0.5;

/// The deciding comparison: the rate in a closed loop, the 99th percentile at an offered rate.
pub fn decision(level: &AgainstBase, is_open: bool) -> Option<&Comparison> {
    let first = level.comparisons.first()?;
    (first.statistic == deciding(is_open)).then_some(first)
}

/// Compares the levels with their base; `None` if the experiment does not have a base, or no level matches it.
pub(super) fn relative(
    experiment: &Experiment,
    levels: &[Level],
    windows: &BTreeMap<usize, Vec<IntervalSample>>,
    resampling: Resampling,
) -> Option<Relative> {
    let base = experiment.options.base.clone()?;
    let base_of = |level: &Level| {
        let own = level.settings.get(&base.key)?;
        let mut settings = level.settings.clone();
        settings.insert(base.key.clone(), base.value.clone());
        let mut levels = levels.iter();
        (*own != base.value)
            .then(|| {
                levels.position(|other| {
                    other.settings == settings && other.workload == level.workload
                })
            })
            .flatten()
    };
    let against = |(place, level): (usize, &Level)| {
        let base = base_of(level)?;
        let pairs = pairs(experiment, &levels[base], level);
        let measured = measured_pairs(&pairs, windows);
        let mut row = AgainstBase {
            level: u32::try_from(place).ok()?,
            base: u32::try_from(base).ok()?,
            comparisons: statistics(deciding(level.offered_rate_per_s.is_some()), &[])
                .into_iter()
                .filter_map(|statistic| compare(&measured, statistic, NO_MARGIN, resampling))
                .collect(),
            demands: demands::ratios(&figures_of(experiment, &pairs)),
            explanation: None,
        };
        let decision = decision(&row, level.offered_rate_per_s.is_some());
        row.explanation = decision.and_then(|decision| {
            let times = [&levels[base], level].map(|level| level.response_mean_us.value);
            explanation(decision, &row.demands, level.clients, times)
        });
        Some(row)
    };
    let rows: Vec<AgainstBase> = levels.iter().enumerate().filter_map(against).collect();
    (!rows.is_empty()).then_some(Relative { base, levels: rows })
}

/// The runs of the base and of another level in the same rounds.
fn pairs(experiment: &Experiment, base: &Level, level: &Level) -> Vec<[usize; 2]> {
    let places =
        |level: &Level| -> Vec<usize> { level.runs.iter().map(|place| *place as usize).collect() };
    let round = |place: &usize| experiment.points.get(*place).map(|point| point.repeat);
    let others = places(level);
    let pair = |place: usize| {
        let other = others.iter().find(|other| round(other) == round(&place))?;
        Some([place, *other])
    };
    places(base).into_iter().filter_map(pair).collect()
}

/// The demand that explains a difference: it changed certainly, in the direction of the difference, and by
/// enough. If `clients` wait for a resource in turn, each loses at most that multiple of the change. Of several
/// demands the largest change counts. `times_us` are the mean response times of the baseline and the candidate.
pub(super) fn explanation(
    decision: &Comparison,
    demands: &[DemandRatio],
    clients: u32,
    times_us: [f64; 2],
) -> Option<Explanation> {
    let is_slower = match decision.verdict {
        ComparisonVerdict::Slower => true,
        ComparisonVerdict::Faster => false,
        ComparisonVerdict::NoDifferenceLargerThan { .. }
        | ComparisonVerdict::NotEnoughData
        | ComparisonVerdict::NotComparable => return None,
    };
    let difference_s = (times_us[1] - times_us[0]).abs() * 1e-6;
    let could_win_s = |demand: &DemandRatio| f64::from(clients) * demand.change_per_server_s();
    let explains = |demand: &&DemandRatio| {
        demand.is_certain()
            && (demand.ratio.value > 1.0) == is_slower
            && could_win_s(demand) >= LEAST_EXPLAINED_RATIO * difference_s
    };
    let largest = demands.iter().filter(explains).max_by(|one, other| {
        let (one, other) = (one.change_per_server_s(), other.change_per_server_s());
        one.total_cmp(&other)
    });
    let is_server = |demand: &DemandRatio| {
        [ResourceKind::ServerCpu, ResourceKind::ServerHostCpu]
            .iter()
            .any(|kind| is_of_kind(&demand.name, *kind))
    };
    Some(match largest {
        Some(demand) => Explanation::Demand { name: demand.name.clone() },
        None if demands.iter().any(is_server) => Explanation::NoDemand,
        None => Explanation::NotWatched,
    })
}
