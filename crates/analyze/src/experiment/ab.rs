//! Results of a comparison of two plans.

use super::comparable::{Difference, differences};
use super::demands;
use super::relative::explanation;
use crate::comparison::{Pair, compare, compare_sides, is_precise, pairs_expected};
use crate::costs;
use crate::resampling::Resampling;
use crate::uncertainty::runs::Runs;
use crate::uncertainty::series::{IntervalSample, MIN_BEYOND_PERCENTILE, Series};
use crate::values::exact;
use dyno_record::experiment::{
    AbAnswer, AbEnd, Basis, Comparison, ComparisonVerdict, DisturbedPair, Experiment, Figures,
    Side, Statistic,
};
use dyno_record::model::RunDocument;
use dyno_record::plan::ScheduleKind;
use dyno_record::statement;
use dyno_record::statement::Statement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The 99th percentile of the response time.
pub(super) const P99: Statistic = Statistic::Percentile { percent: 99.0 };

/// The deciding figure of all operations: the 99th percentile at an offered rate, otherwise the rate.
pub fn deciding(is_open: bool) -> Statistic {
    if is_open { P99 } else { Statistic::Rate }
}

/// The compared figures, the deciding one first.
pub(super) fn statistics(deciding: Statistic) -> impl Iterator<Item = Statistic> {
    let percentile = |percent| Statistic::Percentile { percent };
    let all = [Statistic::MeanTime, percentile(50.0), percentile(95.0), P99, Statistic::Rate];
    std::iter::once(deciding).chain(all.into_iter().filter(move |one| *one != deciding))
}

/// Divisor for the most pairs that are set aside among the pairs that may be run: if the hypervisor always
/// takes CPU time, this is the machine to be measured.
const SET_ASIDE_PART: usize = 2;

/// Most pairs, or runs, that may be set aside.
pub(super) fn most_set_aside(most: usize) -> usize {
    most / SET_ASIDE_PART
}

/// Whether the hypervisor took more CPU time than accepted; `false` without a limit.
pub(super) fn is_disturbed(stolen_ratio: f64, max_steal_ratio: Option<f64>) -> bool {
    stolen_ratio > max_steal_ratio.unwrap_or(f64::INFINITY)
}

/// The pairs of an experiment that do not count: the hypervisor took more CPU time than accepted during one of
/// their runs. At most half of the allowed pairs, the first ones; none without a limit.
pub fn disturbed(experiment: &Experiment) -> Vec<DisturbedPair> {
    let options = &experiment.options;
    let most = options.ab.as_ref().map_or(0, |ab| ab.max_pairs as usize);
    let stolen = |place: usize| {
        let figures = experiment.points.get(place)?.figures.as_ref()?;
        figures.stolen_ratio
    };
    let of_pair = |pair: usize| {
        let runs = [stolen(2 * pair), stolen(2 * pair + 1)];
        let stolen_ratio = runs.into_iter().flatten().reduce(f64::max)?;
        let pair = u32::try_from(pair).ok()?;
        Some(DisturbedPair { pair, stolen_ratio })
    };
    (0..experiment.points.len() / 2)
        .filter_map(of_pair)
        .filter(|one| is_disturbed(one.stolen_ratio, options.max_steal))
        .take(most_set_aside(most))
        .collect()
}

/// The runs of each pair, A first, without pairs set aside. Runs 2k and 2k + 1 are pair k.
fn places(experiment: &Experiment, set_aside: &[DisturbedPair]) -> Vec<[usize; 2]> {
    let side = |place: usize| experiment.points.get(place)?.side;
    let counts = |pair: &usize| !set_aside.iter().any(|one| one.pair as usize == *pair);
    let of_pair = |pair: usize| {
        let [first, second] = [2 * pair, 2 * pair + 1];
        match (side(first)?, side(second)?) {
            (Side::A, Side::B) => Some([first, second]),
            (Side::B, Side::A) => Some([second, first]),
            _ => None,
        }
    };
    (0..experiment.points.len() / 2).filter(counts).filter_map(of_pair).collect()
}

/// The windows of these pairs of runs, if both were measured.
pub(super) fn measured_pairs(
    places: &[[usize; 2]],
    windows: &BTreeMap<usize, Vec<IntervalSample>>,
) -> Vec<Pair> {
    let pair = |[baseline, candidate]: &[usize; 2]| {
        Some(Pair {
            baseline: Series::new(windows.get(baseline)?),
            candidate: Series::new(windows.get(candidate)?),
            baseline_first: baseline < candidate,
        })
    };
    places.iter().filter_map(pair).collect()
}

/// The figures of these pairs of runs, if both were measured.
pub(super) fn figures_of<'a>(
    experiment: &'a Experiment,
    places: &[[usize; 2]],
) -> Vec<[&'a Figures; 2]> {
    let of = |place: usize| experiment.points.get(place)?.figures.as_ref();
    places.iter().filter_map(|[a, b]| Some([of(*a)?, of(*b)?])).collect()
}

/// The completed pairs of an experiment, without those set aside.
pub fn pairs(
    experiment: &Experiment,
    windows: &BTreeMap<usize, Vec<IntervalSample>>,
    set_aside: &[DisturbedPair],
) -> Vec<Pair> {
    measured_pairs(&places(experiment, set_aside), windows)
}

/// The figures of these pairs, A first.
pub(super) fn figures_of_pairs<'a>(
    experiment: &'a Experiment,
    set_aside: &[DisturbedPair],
) -> Vec<[&'a Figures; 2]> {
    figures_of(experiment, &places(experiment, set_aside))
}

/// Reported server versions of A and B.
pub fn servers(experiment: &Experiment) -> [Option<String>; 2] {
    [Side::A, Side::B].map(|side| {
        let own = experiment.points.iter();
        let own = own.filter(|point| point.side == Some(side));
        servers_of(own.filter_map(|point| point.figures.as_ref()))
    })
}

/// The server of runs that should have the same one, or all of them if they differ.
pub(super) fn servers_of<'a>(runs: impl Iterator<Item = &'a Figures>) -> Option<String> {
    let mut all: Vec<&str> = Vec::new();
    for server in runs.filter_map(|run| run.server.as_deref()) {
        if !all.contains(&server) {
            all.push(server);
        }
    }
    (!all.is_empty()).then(|| all.join(" and "))
}

/// `A` and `B`, with their servers if they differ: `B (mongod 6.0.27)`.
pub fn labels(experiment: &Experiment) -> [String; 2] {
    let both = servers(experiment);
    let differ = both[0] != both[1];
    let label = |name: &str, server: &Option<String>| match server.as_ref().filter(|_| differ) {
        Some(server) => format!("{name} ({server})"),
        None => name.to_owned(),
    };
    [label("A", &both[0]), label("B", &both[1])]
}

/// Existing runs, one or several per side, with their differences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunComparison {
    /// Directory of A, the baseline.
    pub a: String,
    /// Directory of B.
    pub b: String,
    /// Number of runs of A and of B.
    pub runs: [usize; 2],
    /// Differences other than the result.
    pub differences: Vec<Difference>,
    /// Whether no difference forbids the comparison.
    pub comparable: bool,
    /// The comparison; absent if the runs are too short.
    pub answer: Option<AbAnswer>,
}

impl RunComparison {
    /// Compares the runs of two sides, at least one each, by the windows of their measure phases. With
    /// `of_operation` the windows contain a single kind of operation. `allowed` names differences that do not
    /// forbid the comparison.
    pub fn new(
        names: [String; 2],
        documents: [&[RunDocument]; 2],
        windows: [&[Vec<IntervalSample>]; 2],
        of_operation: bool,
        margin_ratio: f64,
        allowed: &[String],
        resampling: Resampling,
    ) -> RunComparison {
        let mut differences = differences_of_sides(documents);
        for one in &mut differences {
            one.forbids &= !allowed.contains(&one.what);
        }
        let sides = windows.map(Runs::new);
        let sides = [&sides[0], &sides[1]];
        let is_open =
            documents.iter().copied().flatten().any(|document| {
                document.recorded_plan().schedule_kind() != Some(ScheduleKind::Closed)
            });
        // The plan sets the share of one of several operations in the rate.
        let deciding = if of_operation { Statistic::MeanTime } else { deciding(is_open) };
        let [a, b] = names;
        let compared = |statistic| compare_sides(sides, statistic, margin_ratio, resampling);
        let mut answer = answer(deciding, compared);
        let comparable = differences.iter().all(|difference| !difference.forbids);
        if let Some(answer) = &mut answer {
            answer.costs = costs::ratios_of_runs(documents);
            if !comparable {
                answer
                    .comparisons
                    .iter_mut()
                    .for_each(|row| row.verdict = ComparisonVerdict::NotComparable);
            }
        }
        RunComparison { a, b, runs: sides.map(Runs::len), comparable, differences, answer }
    }

    /// Whether each side has one run, so that the variation of runs is unknown.
    pub fn is_of_single_runs(&self) -> bool {
        self.runs.iter().all(|runs| *runs < 2)
    }

    /// Whether B is slower than A in the deciding statistic by more than this share: its interval excludes 1,
    /// and the ratio itself exceeds the share.
    pub fn is_slower_by(&self, share: f64) -> bool {
        let first = self.answer.as_ref().and_then(AbAnswer::decision);
        first.is_some_and(|first| {
            let ratio = if first.statistic.larger_is_better() {
                1.0 / first.ratio.value
            } else {
                first.ratio.value
            };
            first.verdict == ComparisonVerdict::Slower && ratio > 1.0 + share
        })
    }
}

/// Differences between A and B, and differences within a side, named `A: NAME`. No run represents the others of
/// its side.
fn differences_of_sides([a, b]: [&[RunDocument]; 2]) -> Vec<Difference> {
    let (Some(first_a), Some(first_b)) = (a.first(), b.first()) else {
        return Vec::new();
    };
    let within = |name: &'static str, first: &RunDocument, rest: &[RunDocument]| {
        let found = rest.iter().flat_map(|one| differences(first, one));
        let renamed =
            found.map(move |one| Difference { what: format!("{name}: {}", one.what), ..one });
        renamed.collect::<Vec<_>>()
    };
    let across_b = b.iter().flat_map(|one| differences(first_a, one));
    let across_a = a.iter().skip(1).flat_map(|one| differences(one, first_b));
    let mut all: Vec<Difference> = across_b.chain(across_a).collect();
    all.extend(within("A", first_a, &a[1..]));
    all.extend(within("B", first_b, &b[1..]));
    let mut known = BTreeSet::new();
    all.retain(|one| known.insert(one.what.clone()));
    all.sort_by_key(|one| !one.forbids);
    all
}

/// Compares the pairs; `None` without comparable pairs. `margin_ratio` is the largest irrelevant
/// difference.
pub fn analyze(
    pairs: &[Pair],
    deciding: Statistic,
    margin_ratio: f64,
    resampling: Resampling,
) -> Option<AbAnswer> {
    answer(deciding, |statistic| compare(pairs, statistic, margin_ratio, resampling))
}

/// The answer by a comparison method.
fn answer(
    deciding: Statistic,
    compared: impl Fn(Statistic) -> Option<Comparison>,
) -> Option<AbAnswer> {
    let mut comparisons: Vec<Comparison> = statistics(deciding).filter_map(compared).collect();
    // One run per side does not show the variation of runs.
    let of_one_run = comparisons.iter_mut().filter(|row| row.basis == Basis::WithinRun);
    of_one_run.for_each(|row| row.verdict = ComparisonVerdict::NotEnoughData);
    if comparisons.is_empty() {
        return None;
    }
    let mut answer = AbAnswer {
        comparisons,
        deciding,
        pairs_needed: None,
        end: AbEnd::Spent,
        set_aside: Vec::new(),
        demands: Vec::new(),
        costs: Vec::new(),
        explanation: None,
    };
    if let Some(decision) = answer.decision() {
        let needed = pairs_expected(decision);
        let is_precise = is_precise(decision);
        answer.pairs_needed = needed.and_then(|pairs| u32::try_from(pairs).ok());
        if is_precise {
            answer.end = AbEnd::Precise;
        }
    }
    Some(answer)
}

/// Name of a figure.
pub(super) fn name(statistic: Statistic) -> Statement {
    match statistic {
        Statistic::Rate => statement!("rate"),
        Statistic::MeanTime => statement!("mean-response-time"),
        Statistic::Percentile { percent } => {
            statement!("percentile-of-response-time", percent = exact(percent))
        }
    }
}

/// Why a comparison is undecided; `None` if it is decided.
pub fn undecided(answer: &AbAnswer) -> Option<Statement> {
    let operations = match answer.deciding {
        Statistic::Percentile { percent } => {
            Some(exact((MIN_BEYOND_PERCENTILE / (1.0 - percent / 100.0)).round()))
        }
        Statistic::Rate | Statistic::MeanTime => None,
    };
    let deciding = name(answer.deciding);
    answer.decision().is_none().then(|| {
        statement!("deciding-has-no-interval", statistic = deciding, operations = operations)
    })
}

/// An answer with the demands of the counted pairs, and with the one that explains the difference.
pub fn explained(mut answer: AbAnswer, experiment: &Experiment) -> AbAnswer {
    let pairs = figures_of_pairs(experiment, &answer.set_aside);
    answer.demands = demands::ratios(&pairs);
    let costs = pairs.iter().map(|[a, b]| Some([a.costs.as_ref()?, b.costs.as_ref()?]));
    answer.costs = costs::ratios(&costs.collect::<Option<Vec<_>>>().unwrap_or_default());
    let mean_us = |side: usize| {
        let logs = pairs.iter().map(|pair| pair[side].response_mean_us.value.ln());
        (logs.sum::<f64>() / pairs.len() as f64).exp()
    };
    let clients = pairs.iter().flatten().map(|run| run.clients).max();
    let decision = answer.decision().zip(clients);
    answer.explanation = decision.and_then(|(decision, clients)| {
        explanation(decision, &answer.demands, clients, [mean_us(0), mean_us(1)])
    });
    answer
}

/// Side of run `number`: AB, BA, BA, AB and so on, so that first- and second-order drifts affect both sides
/// equally.
pub fn side(number: usize) -> Side {
    let pair_is_swapped = matches!((number / 2) % 4, 1 | 2);
    if number.is_multiple_of(2) ^ pair_is_swapped { Side::A } else { Side::B }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::uncertainty::histogram::SparseHistogram;

    fn run(windows: usize, per_window: u64) -> Series {
        let sample = |place: usize| IntervalSample {
            duration_s: 1.0,
            operations: per_window + place as u64 % 3,
            times: SparseHistogram::from_counts([
                (900, per_window / 2),
                (1100 + place as u64 % 5, per_window / 2),
            ]),
        };
        Series::new(&(0..windows).map(sample).collect::<Vec<_>>())
    }

    #[test]
    fn deciding_figure_without_an_interval_gives_no_verdict() {
        let pair = |per_window| Pair {
            baseline: run(30, per_window),
            candidate: run(30, per_window),
            baseline_first: true,
        };
        let p99 =
            |per_window| analyze(&[pair(per_window)], P99, 0.05, Resampling::seeded(1)).unwrap();
        let few = p99(20);
        assert!(!few.comparisons.is_empty());
        assert_eq!((few.decision(), few.end), (None, AbEnd::Spent));
        let why = statement!(
            "deciding-has-no-interval",
            statistic = name(few.deciding),
            operations = exact(1_000.0)
        );
        assert_eq!(undecided(&few), Some(why));
        assert!(p99(2000).decision().is_some());
        assert_eq!(undecided(&p99(2000)), None);
    }

    #[test]
    fn single_operation_is_decided_by_its_time_and_not_the_rate() {
        let pair = Pair { baseline: run(30, 2000), candidate: run(30, 2000), baseline_first: true };
        let found = analyze(&[pair], Statistic::MeanTime, 0.05, Resampling::seeded(1)).unwrap();
        assert_eq!(found.decision().unwrap().statistic, Statistic::MeanTime);
    }

    #[test]
    fn both_sides_come_first_equally_often() {
        let order: Vec<Side> = (0..8).map(side).collect();
        use Side::{A, B};
        assert_eq!(order, [A, B, B, A, B, A, A, B]);
    }
}
