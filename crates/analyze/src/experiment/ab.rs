//! Results of a comparison of two plans.

use super::caveats::of_runs;
use super::comparable::{Difference, differences, distinction, plan_differences};
use super::demands;
use super::limits::{judge, planned};
use super::relative::explanation;
use crate::comparison::{Pair, compare, compare_sides, is_precise, pairs_expected};
use crate::costs;
use crate::grouping::distinct;
use crate::resampling::Resampling;
use crate::robust::mean;
use crate::uncertainty::runs::Runs;
use crate::uncertainty::series::{IntervalSample, MIN_BEYOND_PERCENTILE, Series};
use crate::values::exact;
use dyno_record::experiment::{
    AbAnswer, AbEnd, Basis, ComparedFigure, Comparison, ComparisonVerdict, DisturbedPair,
    Experiment, Figures, Judged, Limit, Side, Statistic,
};
use dyno_record::model::{Caveat, RunDocument};
use dyno_record::plan::ScheduleKind;
use dyno_record::statement;
use dyno_record::statement::Statement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The 99th percentile of the response time.
pub(super) const P99: Statistic = Statistic::Percentile { percent: 99.0 };

/// Most pairs, or runs of each side, that are worth making: this many pairs of runs of a minute take more than a day.
pub const MOST_REASONABLE_PAIRS: u32 = 1000;

/// The deciding figure of all operations: the 99th percentile at an offered rate, otherwise the rate.
pub fn deciding(is_open: bool) -> Statistic {
    if is_open { P99 } else { Statistic::Rate }
}

/// The compared figures, the deciding one first, with those that only a limit needs.
pub(super) fn statistics(deciding: Statistic, limits: &[Limit]) -> Vec<Statistic> {
    let percentile = |percent| Statistic::Percentile { percent };
    let mut all = vec![deciding];
    let usual = [Statistic::MeanTime, percentile(50.0), percentile(95.0), P99, Statistic::Rate];
    let of_limits = limits.iter().filter_map(|limit| match limit.figure {
        ComparedFigure::Statistic(statistic) => Some(statistic),
        ComparedFigure::Cost(_) => None,
    });
    for one in usual.into_iter().chain(of_limits) {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
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
    let all = distinct(runs.filter_map(|run| run.server.as_deref()));
    (!all.is_empty()).then(|| all.join(" and "))
}

/// `A` and `B`, with what distinguishes them if it is short: their servers, or the only setting that differs:
/// `B (mongod 6.0.27)`, `B (zstd)`.
pub fn labels(experiment: &Experiment) -> [String; 2] {
    let both = servers(experiment);
    let named = match experiment.options.ab.as_ref() {
        _ if both[0] != both[1] => both,
        Some(options) => distinction(&plan_differences(&experiment.plan, &options.plan_of_b)),
        None => [None, None],
    };
    labelled(named)
}

fn labelled([a, b]: [Option<String>; 2]) -> [String; 2] {
    [("A", a), ("B", b)].map(|(letter, named)| match named {
        Some(named) => format!("{letter} ({named})"),
        None => letter.to_owned(),
    })
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
    /// Number of earlier runs of the plan of A and of B that show the variation of a single run.
    #[serde(default)]
    pub earlier_runs: [usize; 2],
    /// Differences other than the result.
    pub differences: Vec<Difference>,
    /// Whether no difference forbids the comparison.
    pub comparable: bool,
    /// The comparison; absent if the runs are too short.
    pub answer: Option<AbAnswer>,
    /// Compared values of A and of B.
    #[serde(default)]
    pub values: Vec<SideValues>,
    /// How much worse B may be, and whether it is.
    #[serde(default)]
    pub limits: Vec<Judged>,
    /// Caveats of all runs, each once.
    #[serde(default)]
    pub caveats: Vec<Caveat>,
}

/// A statistic of both sides, over all runs of each: operations per second, or microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideValues {
    pub statistic: Statistic,
    pub a: f64,
    pub b: f64,
}

/// The runs of one side of a comparison.
#[derive(Clone, Debug, Default)]
pub struct SideRuns {
    /// Path that was given for the side.
    pub name: String,
    /// Names of the runs.
    pub names: Vec<String>,
    pub documents: Vec<RunDocument>,
    /// Windows of each run's measure phase.
    pub windows: Vec<Vec<IntervalSample>>,
    /// Windows of other runs of the same plan and server. They show how much a single run varies.
    pub earlier: Vec<Vec<IntervalSample>>,
}

impl RunComparison {
    /// Compares the runs of two sides, at least one each, by the windows of their measure phases. With
    /// `of_operation` the windows contain a single kind of operation. `allowed` names differences that do not
    /// forbid the comparison.
    pub fn new(
        sides: &[SideRuns; 2],
        of_operation: bool,
        margin_ratio: f64,
        limits: &[Limit],
        allowed: &[String],
        resampling: Resampling,
    ) -> RunComparison {
        let documents = [0, 1].map(|side: usize| sides[side].documents.as_slice());
        let mut differences = differences_of_sides(documents);
        for one in &mut differences {
            one.forbids &= !allowed.contains(&one.what);
        }
        let [a, b] = [0, 1].map(|side: usize| Runs::new(&sides[side].windows));
        let earlier = [0, 1].map(|side: usize| Runs::new(&sides[side].earlier));
        let is_open =
            documents.iter().copied().flatten().any(|document| {
                document.recorded_plan().schedule_kind() != Some(ScheduleKind::Closed)
            });
        // The plan sets the share of one of several operations in the rate.
        let deciding = if of_operation { Statistic::MeanTime } else { deciding(is_open) };
        let compared = |statistic| {
            let earlier = [&earlier[0], &earlier[1]];
            compare_sides([&a, &b], earlier, statistic, margin_ratio, resampling)
        };
        let statistics = statistics(deciding, limits);
        let answer = answer(deciding, &statistics, compared)
            .map(|answer| AbAnswer { costs: costs::ratios_of_runs(documents), ..answer });
        let mut answer = answer.map(|answer| planned(answer, limits));
        let comparable = differences.iter().all(|difference| !difference.forbids);
        let rows = answer.iter_mut().flat_map(|answer| &mut answer.comparisons);
        rows.filter(|_| !comparable).for_each(|row| row.verdict = ComparisonVerdict::NotComparable);
        let values = statistics.into_iter().filter_map(|statistic| {
            let unit = if statistic == Statistic::Rate { 1.0 } else { 1e-3 };
            let [a, b] = [a.value(statistic)?, b.value(statistic)?].map(|value| value * unit);
            Some(SideValues { statistic, a, b })
        });
        let caveats = sides.iter().flat_map(|side| side.names.iter().zip(&side.documents));
        let caveats = caveats.map(|(name, document)| (name.clone(), document.caveats.clone()));
        RunComparison {
            a: sides[0].name.clone(),
            b: sides[1].name.clone(),
            runs: [a.len(), b.len()],
            earlier_runs: earlier.each_ref().map(Runs::len),
            comparable,
            differences,
            limits: judge(answer.as_ref(), limits),
            answer,
            values: values.collect(),
            caveats: of_runs(&caveats.collect::<Vec<_>>()),
        }
    }

    /// `A` and `B`, with the only setting that differs: `B (zstd)`.
    pub fn labels(&self) -> [String; 2] {
        labelled(distinction(&self.differences))
    }

    /// Whether nothing shows how much the runs vary.
    pub fn is_of_single_runs(&self) -> bool {
        self.runs.iter().chain(&self.earlier_runs).all(|runs| *runs < 2)
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
    limits: &[Limit],
    resampling: Resampling,
) -> Option<AbAnswer> {
    let statistics = statistics(deciding, limits);
    answer(deciding, &statistics, |statistic| compare(pairs, statistic, margin_ratio, resampling))
}

/// The answer by a comparison method.
fn answer(
    deciding: Statistic,
    statistics: &[Statistic],
    compared: impl Fn(Statistic) -> Option<Comparison>,
) -> Option<AbAnswer> {
    let mut comparisons: Vec<Comparison> =
        statistics.iter().copied().filter_map(compared).collect();
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
        mean(&logs.collect::<Vec<_>>()).exp()
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
    use serde_json::{Value, json};

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
        let p99 = |per_window| {
            analyze(&[pair(per_window)], P99, 0.05, &[], Resampling::seeded(1)).unwrap()
        };
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
        let found =
            analyze(&[pair], Statistic::MeanTime, 0.05, &[], Resampling::seeded(1)).unwrap();
        assert_eq!(found.decision().unwrap().statistic, Statistic::MeanTime);
    }

    #[test]
    fn statistic_of_a_limit_is_compared_once() {
        let limit = |name: &str| Limit { figure: name.parse().unwrap(), margin_ratio: 0.1 };
        let usual = statistics(Statistic::Rate, &[limit("p99"), limit("server-cpu")]);
        assert_eq!(usual, statistics(Statistic::Rate, &[]));
        let more = statistics(Statistic::Rate, &[limit("p99.9")]);
        assert_eq!(more[..usual.len()], usual);
        assert_eq!(more[usual.len()..], [Statistic::Percentile { percent: 99.9 }]);
    }

    #[test]
    fn sides_are_named_by_the_only_setting_that_differs() {
        let plan = |compressor: Option<&str>, clients: u32, durable: bool| {
            json!({
                "name": format!("{clients}"),
                "server": {"block_compressor": compressor, "durable_writes": durable},
                "client": {"clients": clients},
            })
        };
        let named = |a: &Value, b: &Value| labelled(distinction(&plan_differences(a, b)));
        let base = plan(Some("snappy"), 8, false);
        for (other, expected) in [
            (plan(Some("zstd"), 8, false), ["A (snappy)", "B (zstd)"]),
            (plan(None, 8, false), ["A (snappy)", "B (block_compressor default)"]),
            (plan(Some("snappy"), 16, false), ["A (clients 8)", "B (clients 16)"]),
            (
                plan(Some("snappy"), 8, true),
                ["A (durable_writes false)", "B (durable_writes true)"],
            ),
            (plan(Some("zstd"), 16, false), ["A", "B"]),
            (plan(Some(&"z".repeat(30)), 8, false), ["A", "B"]),
            (base.clone(), ["A", "B"]),
        ] {
            assert_eq!(named(&base, &other), expected);
        }
        let caveat = |what: &str| Difference {
            what: what.to_owned(),
            a: "yes (A)".to_owned(),
            b: "no (B)".to_owned(),
            forbids: true,
        };
        let of_runs = [caveat("caveat partial"), caveat("other caveats"), caveat("status")];
        assert_eq!(distinction(&of_runs), [None, None]);
    }

    #[test]
    fn both_sides_come_first_equally_often() {
        let order: Vec<Side> = (0..8).map(side).collect();
        use Side::{A, B};
        assert_eq!(order, [A, B, B, A, B, A, A, B]);
    }
}
