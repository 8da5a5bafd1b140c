//! The cost of tracing: the same work alternately with and without a trace.

use crate::robust::mean;
use crate::uncertainty::mean::of_repetitions;
use dyno_record::index_build::TracingPair;

/// Relative increase of the duration under trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracingCost {
    /// As a share of the duration without a trace: 0.01 is one percent longer. Below 0 if the traced runs
    /// happened to be shorter.
    pub ratio: f64,
    /// Both ends of the 95 % interval; `None` with one pair.
    pub interval: Option<(f64, f64)>,
    /// Number of pairs, at least 1.
    pub pairs: usize,
}

/// Why pairs do not show the cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// There is only one pair.
    OnePair,
    /// The interval includes 0: the builds vary more than tracing costs.
    Noise,
    /// The traced runs took less time, which tracing cannot cause.
    Shorter,
}

impl TracingCost {
    /// Why the ratio is not the cost; `None` if it is.
    pub fn caveat(&self) -> Option<Doubt> {
        match self.interval {
            None => Some(Doubt::OnePair),
            Some((low, _)) if low > 0.0 => None,
            Some((_, high)) if high < 0.0 => Some(Doubt::Shorter),
            Some(_) => Some(Doubt::Noise),
        }
    }
}

/// The cost over pairs of all lengths: e to the mean logarithm of their ratios, with Student's interval of this
/// mean. `None` without a pair of durations.
pub fn tracing_cost<'a>(pairs: impl IntoIterator<Item = &'a TracingPair>) -> Option<TracingCost> {
    let logarithms: Vec<f64> = pairs
        .into_iter()
        .map(|pair| (pair.traced_s / pair.untraced_s).ln())
        .filter(|logarithm| logarithm.is_finite())
        .collect();
    let interval = of_repetitions(&logarithms);
    (!logarithms.is_empty()).then(|| TracingCost {
        ratio: mean(&logarithms).exp_m1(),
        interval: interval.map(|found| (found.low.exp_m1(), found.high.exp_m1())),
        pairs: logarithms.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(pairs: &[(f64, f64)]) -> Option<TracingCost> {
        let pairs: Vec<TracingPair> = pairs
            .iter()
            .map(|&(traced_s, untraced_s)| TracingPair { traced_s, untraced_s, traced_first: true })
            .collect();
        tracing_cost(&pairs)
    }

    #[test]
    fn the_interval_is_students_over_the_logarithms_of_the_ratios() {
        let found = cost(&[(2.0, 1.0), (11.0, 5.0), (1.8, 1.0)]).expect("a cost");
        // t with two degrees of freedom is 4.303; the logarithms of 2, 2.2 and 1.8 deviate by 0.1005.
        assert!((found.ratio - 0.9933).abs() < 1e-3, "{found:?}");
        let factor = (4.303 * 0.1005 / 3.0_f64.sqrt()).exp();
        let (low, high) = found.interval.expect("three pairs");
        assert!((low - (1.9933 / factor - 1.0)).abs() < 2e-3, "{found:?}");
        assert!((high - (1.9933 * factor - 1.0)).abs() < 2e-3, "{found:?}");
        assert_eq!(found.pairs, 3);
    }

    #[test]
    fn cost_is_known_if_it_is_larger_than_the_noise() {
        let caveat = |pairs: &[(f64, f64)]| cost(pairs).and_then(|cost| cost.caveat());
        assert_eq!(caveat(&[(2.0, 1.0), (11.0, 5.0), (1.8, 1.0)]), None);
        assert_eq!(caveat(&[(2.0, 1.0)]), Some(Doubt::OnePair));
        assert_eq!(caveat(&[(2.0, 1.0), (0.6, 1.0)]), Some(Doubt::Noise));
        let shorter = [(0.5, 1.0), (0.51, 1.0), (0.49, 1.0)];
        assert_eq!(caveat(&shorter), Some(Doubt::Shorter));
    }

    #[test]
    fn one_pair_has_no_interval_and_zero_durations_are_dropped() {
        let one = cost(&[(1.01, 1.0), (0.0, 1.0), (1.0, 0.0)]).expect("one pair");
        assert!((one.ratio - 0.01).abs() < 1e-12 && one.interval.is_none(), "{one:?}");
        assert_eq!(one.pairs, 1);
        assert_eq!(cost(&[]), None);
    }
}
