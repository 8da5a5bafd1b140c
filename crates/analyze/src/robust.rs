//! Means, medians, ranks and normal probabilities for the series methods.

use statrs::function::erf::{erfc, erfc_inv};
use std::f64::consts::SQRT_2;

/// Standard normal deviation divided by the median of absolute deviations.
pub(crate) const DEVIATION_PER_MEDIAN: f64 = 1.482_602_218_505_602;

/// The median; for an even number of values the mean of the middle two. `None` without values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    let count = values.len();
    if count == 0 {
        return None;
    }
    let (below, upper, _) = values.select_nth_unstable_by(count / 2, f64::total_cmp);
    let upper = *upper;
    match count % 2 {
        1 => Some(upper),
        _ => {
            let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            Some((lower + upper) / 2.0)
        }
    }
}

/// The mean; NaN without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Number of rising pairs minus number of falling pairs.
pub(crate) fn ordered_pairs(values: &[f64]) -> f64 {
    let later = |place: usize| values[place + 1..].iter();
    let pairs = values.iter().enumerate().flat_map(|(place, value)| {
        later(place).map(move |after| match after.total_cmp(value) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Less => -1.0,
            std::cmp::Ordering::Equal => 0.0,
        })
    });
    pairs.sum()
}

/// Ranks from 0; equal values get their mean rank.
pub(crate) fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    for group in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let middle = start as f64 + (group.len() - 1) as f64 / 2.0;
        group.iter().for_each(|place| ranks[*place] = middle);
        start += group.len();
    }
    ranks
}

/// The probability that a standard normal value exceeds `z`.
pub(crate) fn normal_tail(z: f64) -> f64 {
    erfc(z / SQRT_2) / 2.0
}

/// The value that a standard normal variable stays below with this probability, between 0 and 1.
pub(crate) fn normal_quantile(probability: f64) -> f64 {
    -SQRT_2 * erfc_inv(2.0 * probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_middle_two() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 9.0, 2.0]), Some(3.0));
        assert_eq!(median([7.0, 7.0]), Some(7.0));
        assert_eq!(median([]), None);
    }

    #[test]
    fn normal_probabilities_agree_with_the_printed_tables() {
        assert!((normal_tail(1.96) - 0.024_998).abs() < 1e-6);
        assert!((normal_quantile(0.975) - 1.959_964).abs() < 1e-6);
        assert!(normal_quantile(0.5).abs() < 1e-12);
        assert!((normal_tail(6.0) / 9.866e-10 - 1.0).abs() < 1e-3);
    }
}
