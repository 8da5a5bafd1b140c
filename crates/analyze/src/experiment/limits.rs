//! Limits of a comparison, and figures that certainly differ: statements about several figures at once.
//!
//! Each figure has its own 95 % interval, so of twenty figures of equal sides one differs by chance. Claims about
//! several figures therefore use a stricter level for each: 5 % divided by the number of figures (C. E. Bonferroni),
//! which holds whatever their correlation. That all limits are kept needs no correction: it is a false claim only
//! if the limit that is exceeded seems to be kept, whatever the others show (R. L. Berger, "Multiparameter
//! Hypothesis Testing and Acceptance Sampling", *Technometrics* 24 (1982)).
//!
//! Pairs are added until the intervals are narrow, not until the outcome pleases ([`planned`]).

use crate::comparison::{WISHED_SHARE_OF_MARGIN, pairs_needed};
use crate::estimate::CONFIDENCE_RATIO;
use crate::student::two_sided;
use dyno_record::experiment::{
    AbAnswer, AbEnd, Answer, Basis, ComparedFigure, ComparisonVerdict, Experiment, Figure, Judged,
    Limit, Outcome,
};

/// A figure that certainly differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Changed {
    pub figure: ComparedFigure,
    /// B divided by A, with its 95 % interval.
    pub ratio: Figure,
}

/// A compared figure with the variation that its interval is based on.
#[derive(Clone, Copy)]
struct Row {
    figure: ComparedFigure,
    ratio: Figure,
    /// Half of the 95 % interval on the scale of logarithms; absent without an interval.
    half_width: Option<f64>,
    degrees_of_freedom: f64,
}

impl Row {
    fn new(figure: ComparedFigure, ratio: Figure, degrees_of_freedom: Option<f64>) -> Row {
        let ends = ratio.low.zip(ratio.high).filter(|_| degrees_of_freedom.is_some());
        Row {
            figure,
            ratio: Figure {
                value: ratio.value,
                low: ends.map(|(low, _)| low),
                high: ends.map(|(_, high)| high),
            },
            half_width: ends.map(|(low, high)| (high / low).ln() / 2.0),
            degrees_of_freedom: degrees_of_freedom.unwrap_or(f64::NAN),
        }
    }

    /// Ends of the interval at a confidence level.
    fn ends(&self, confidence_ratio: f64) -> Option<[f64; 2]> {
        let t = |confidence_ratio| two_sided(confidence_ratio, self.degrees_of_freedom);
        let factor = (self.half_width? * t(confidence_ratio) / t(CONFIDENCE_RATIO)).exp();
        factor.is_finite().then(|| [self.ratio.value / factor, self.ratio.value * factor])
    }

    /// Ends of the interval of the change for the worse, as a share of the value of A: negative for a gain.
    fn loss(&self, confidence_ratio: f64) -> Option<[f64; 2]> {
        let [low, high] = self.ends(confidence_ratio)?;
        Some(match self.figure.larger_is_better() {
            true => [1.0 - high, 1.0 - low],
            false => [low - 1.0, high - 1.0],
        })
    }

    /// Whether the interval is narrow enough to decide about a margin.
    fn is_precise(&self, margin_ratio: f64) -> bool {
        self.half_width.is_some_and(|half_width| half_width <= wished(margin_ratio))
    }

    /// Expected number of pairs until the interval is narrow enough.
    fn pairs_expected(&self, margin_ratio: f64, pairs: usize) -> Option<usize> {
        if self.is_precise(margin_ratio) {
            return Some(pairs);
        }
        let t = two_sided(CONFIDENCE_RATIO, self.degrees_of_freedom);
        let of_a_pair = self.half_width? / t * (pairs as f64).sqrt();
        pairs_needed(of_a_pair, wished(margin_ratio))
    }
}

fn wished(margin_ratio: f64) -> f64 {
    margin_ratio.ln_1p() * WISHED_SHARE_OF_MARGIN
}

/// Confidence of each interval if a claim about any of `count` figures may be wrong in 5 % of comparisons.
fn joint(count: usize) -> f64 {
    1.0 - (1.0 - CONFIDENCE_RATIO) / count.max(1) as f64
}

/// All compared figures.
fn rows(answer: &AbAnswer) -> Vec<Row> {
    let of_runs = answer.comparisons.iter().map(|row| {
        let ratio =
            Figure { value: row.ratio.value, low: Some(row.ratio.low), high: Some(row.ratio.high) };
        // One run of each side does not show how much runs vary.
        let degrees = row.degrees_of_freedom.filter(|_| row.basis == Basis::BetweenRuns);
        Row::new(ComparedFigure::Statistic(row.statistic), ratio, degrees)
    });
    let costs = answer
        .costs
        .iter()
        .map(|cost| Row::new(ComparedFigure::Cost(cost.kind), cost.ratio, cost.degrees_of_freedom));
    of_runs.chain(costs).collect()
}

fn is_comparable(answer: &AbAnswer) -> bool {
    answer.comparisons.iter().all(|row| row.verdict != ComparisonVerdict::NotComparable)
}

/// Whether each side has several runs. With the spread of earlier runs for a single one, 7 of 40 comparisons of equal
/// sides named another figure.
fn is_repeated(answer: &AbAnswer) -> bool {
    answer.comparisons.iter().all(|row| row.pairs > 1)
}

/// The limits with their outcomes.
pub fn judge(answer: Option<&AbAnswer>, limits: &[Limit]) -> Vec<Judged> {
    let answer = answer.filter(|answer| is_comparable(answer));
    let rows = answer.map(rows).unwrap_or_default();
    let judged = |limit: &Limit| {
        let row = rows.iter().find(|row| row.figure == limit.figure);
        let (margin, joint) = (limit.margin_ratio, joint(limits.len()));
        let is_exceeded = |row: &Row| row.loss(joint).is_some_and(|[least, _]| least > margin);
        let is_kept =
            |row: &Row| row.loss(CONFIDENCE_RATIO).is_some_and(|[_, most]| most <= margin);
        let outcome = match row {
            Some(row) if is_exceeded(row) => Outcome::Exceeded,
            Some(row) if is_kept(row) => Outcome::Kept,
            _ => Outcome::Undecided,
        };
        Judged { limit: *limit, ratio: row.map(|row| row.ratio), outcome }
    };
    limits.iter().map(judged).collect()
}

/// The limits of an experiment with their outcomes.
pub fn of_experiment(experiment: &Experiment) -> Vec<Judged> {
    let answer = match &experiment.answer {
        Some(Answer::Ab(answer)) => Some(answer.as_ref()),
        _ => None,
    };
    let options = experiment.options.ab.as_ref();
    judge(answer, options.map_or(&[], |options| &options.limits))
}

/// Figures other than the deciding one that certainly differ by more than the margin, with 5 % of comparisons of
/// equal sides naming any.
pub fn others(answer: &AbAnswer) -> Vec<Changed> {
    let Some(margin_ratio) = answer.comparisons.first().map(|row| row.margin_ratio) else {
        return Vec::new();
    };
    if !is_comparable(answer) || !is_repeated(answer) {
        return Vec::new();
    }
    let deciding = ComparedFigure::Statistic(answer.deciding);
    let mut rows = rows(answer);
    rows.retain(|row| row.figure != deciding && row.half_width.is_some());
    let joint = joint(rows.len());
    let differs = |row: &&Row| {
        row.ends(joint).is_some_and(|[low, high]| {
            let is_relevant = low < 1.0 / (1.0 + margin_ratio) || high > 1.0 + margin_ratio;
            is_relevant && (low > 1.0 || high < 1.0)
        })
    };
    let changed = |row: &Row| Changed { figure: row.figure, ratio: row.ratio };
    rows.iter().filter(differs).map(changed).collect()
}

/// The answer with the number of pairs that the limits need instead of the deciding figure: the interval of each
/// is a third of its margin to each side.
pub fn planned(mut answer: AbAnswer, limits: &[Limit]) -> AbAnswer {
    let Some(pairs) =
        answer.comparisons.first().map(|row| row.pairs).filter(|_| !limits.is_empty())
    else {
        return answer;
    };
    let rows = rows(&answer);
    let row = |limit: &Limit| rows.iter().find(|row| row.figure == limit.figure);
    let needed = |limit: &Limit| row(limit)?.pairs_expected(limit.margin_ratio, pairs);
    let needed: Option<Vec<usize>> = limits.iter().map(needed).collect();
    let most = needed.and_then(|needed| needed.into_iter().max());
    answer.pairs_needed = most.and_then(|most| u32::try_from(most).ok());
    let is_precise =
        |limit: &Limit| row(limit).is_some_and(|row| row.is_precise(limit.margin_ratio));
    answer.end = if limits.iter().all(is_precise) { AbEnd::Precise } else { AbEnd::Spent };
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Spread;
    use dyno_record::estimate::Estimate;
    use dyno_record::experiment::{Comparison, CostKind, CostRatio, Statistic};
    use dyno_testkit::simulate::normal;

    const P99: Statistic = Statistic::Percentile { percent: 99.0 };

    /// Nine pairs with this ratio and half-width.
    fn row(statistic: Statistic, value: f64, half_width: f64) -> Comparison {
        Comparison {
            statistic,
            ratio: Estimate {
                value,
                low: value / half_width.exp(),
                high: value * half_width.exp(),
                confidence_ratio: CONFIDENCE_RATIO,
            },
            verdict: ComparisonVerdict::NotEnoughData,
            margin_ratio: 0.05,
            basis: Basis::BetweenRuns,
            pairs: 9,
            pair_deviation_ratio: 0.1,
            degrees_of_freedom: Some(8.0),
            order_effect_ratio: None,
        }
    }

    fn answer(comparisons: Vec<Comparison>, costs: Vec<CostRatio>) -> AbAnswer {
        AbAnswer {
            comparisons,
            deciding: Statistic::Rate,
            pairs_needed: None,
            end: AbEnd::Spent,
            set_aside: Vec::new(),
            demands: Vec::new(),
            costs,
            explanation: None,
        }
    }

    fn limit(text: &str, margin_ratio: f64) -> Limit {
        Limit { figure: text.parse().unwrap(), margin_ratio }
    }

    fn outcome(statistic: Statistic, value: f64, half_width: f64, limit: Limit) -> Outcome {
        let answer = answer(vec![row(statistic, value, half_width)], Vec::new());
        judge(Some(&answer), &[limit])[0].outcome
    }

    #[test]
    fn limit_is_exceeded_or_kept_only_by_the_whole_interval() {
        let p99 = |value, half_width| outcome(P99, value, half_width, limit("p99", 0.1));
        assert_eq!(p99(1.2, 0.05), Outcome::Exceeded);
        assert_eq!(p99(1.2, 0.12), Outcome::Undecided);
        assert_eq!(p99(1.0, 0.12), Outcome::Undecided);
        assert_eq!(p99(1.0, 0.05), Outcome::Kept);
        // B may be certainly worse, but by less than the margin.
        assert_eq!(p99(1.05, 0.02), Outcome::Kept);
        assert_eq!(p99(0.5, 0.5), Outcome::Kept);
        // A rate is worse if it is lower: −11 % exceeds 10 %, −9.5 % does not.
        let rate = |value| outcome(Statistic::Rate, value, 0.002, limit("rate", 0.1));
        assert_eq!(rate(0.89), Outcome::Exceeded);
        assert_eq!(rate(0.905), Outcome::Kept);
        assert_eq!(rate(1.5), Outcome::Kept);
    }

    #[test]
    fn unknown_figures_and_single_runs_are_undecided() {
        assert_eq!(judge(None, &[limit("p99", 0.1)])[0].outcome, Outcome::Undecided);
        let missing = outcome(P99, 1.0, 0.01, limit("server-cpu", 0.1));
        assert_eq!(missing, Outcome::Undecided);
        let single = Comparison { basis: Basis::WithinRun, ..row(P99, 2.0, 0.01) };
        let single = answer(vec![single], Vec::new());
        assert_eq!(judge(Some(&single), &[limit("p99", 0.1)])[0].outcome, Outcome::Undecided);
        let verdict = ComparisonVerdict::NotComparable;
        let other = answer(vec![Comparison { verdict, ..row(P99, 2.0, 0.01) }], Vec::new());
        assert_eq!(judge(Some(&other), &[limit("p99", 0.1)])[0].outcome, Outcome::Undecided);
        assert_eq!(others(&other), []);
    }

    #[test]
    fn more_limits_demand_stronger_evidence_of_a_loss() {
        // The interval reaches from 1.11 to 1.30.
        let rows = vec![row(P99, 1.2, 0.08), row(Statistic::Rate, 1.0, 0.01)];
        let answer = answer(rows, Vec::new());
        let one = [limit("p99", 0.1)];
        assert_eq!(judge(Some(&answer), &one)[0].outcome, Outcome::Exceeded);
        let two = [limit("p99", 0.1), limit("rate", 0.1)];
        let two: Vec<Outcome> = judge(Some(&answer), &two).iter().map(|it| it.outcome).collect();
        assert_eq!(two, [Outcome::Undecided, Outcome::Kept]);
    }

    /// A cost of eight pairs of equal sides.
    fn cost(kind: CostKind, seed: u64) -> CostRatio {
        let logs: Vec<f64> = normal(seed, 8).into_iter().map(|it| 0.2 * it).collect();
        let value = crate::robust::mean(&logs).exp();
        let spread = Spread::of(&logs).unwrap().of_mean(logs.len());
        let interval = spread.interval(value).unwrap();
        CostRatio {
            kind,
            currency: None,
            baseline: 1.0,
            candidate: value,
            ratio: Figure { value, low: Some(interval.low), high: Some(interval.high) },
            degrees_of_freedom: Some(spread.degrees_of_freedom),
        }
    }

    #[test]
    fn equal_sides_seldom_differ_in_any_of_many_figures() {
        let of_equal_sides = |seed: u64| {
            let kinds = CostKind::ALL.into_iter().zip(0..);
            let costs = kinds.map(|(kind, place)| cost(kind, seed * 1000 + place));
            answer(vec![row(Statistic::Rate, 1.0, 0.01)], costs.collect())
        };
        let claims = (1..=200).filter(|seed| !others(&of_equal_sides(*seed)).is_empty()).count();
        // 5 % of 200 are 10; without the correction 120 would name one.
        assert!(claims <= 20, "{claims} of 200");
        let limits: Vec<Limit> = ComparedFigure::all()
            .skip(6)
            .map(|figure| Limit { figure, margin_ratio: 0.001 })
            .collect();
        let exceeded = |seed: &u64| {
            let judged = judge(Some(&of_equal_sides(*seed)), &limits);
            judged.iter().any(|one| one.outcome == Outcome::Exceeded)
        };
        let exceeded = (1..=200).filter(exceeded).count();
        assert!(exceeded <= 15, "{exceeded} of 200");
    }

    #[test]
    fn a_cost_that_certainly_differs_is_named() {
        let mut files = cost(CostKind::SpaceAmplification, 1);
        files.ratio = Figure { value: 0.72, low: Some(0.719), high: Some(0.721) };
        let answer = answer(vec![row(Statistic::Rate, 1.0, 0.01)], vec![files]);
        let found = others(&answer);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].figure.to_string(), "space-amplification");
    }

    #[test]
    fn pairs_are_planned_for_the_limit_that_needs_the_most() {
        let rows = vec![row(Statistic::Rate, 1.0, 0.01), row(P99, 1.0, 0.1)];
        let planned = |limits: &[Limit]| planned(answer(rows.clone(), Vec::new()), limits);
        let rate = planned(&[limit("rate", 0.1)]);
        assert_eq!((rate.end, rate.pairs_needed), (AbEnd::Precise, Some(9)));
        let both = planned(&[limit("rate", 0.1), limit("p99", 0.1)]);
        // The half-width must fall from 0.1 to 0.032: ten times as many pairs, and less for Student's t.
        assert_eq!(both.end, AbEnd::Spent);
        assert!((60..90).contains(&both.pairs_needed.unwrap()), "{both:?}");
        assert_eq!(planned(&[limit("server-cpu", 0.1)]).pairs_needed, None);
    }
}
