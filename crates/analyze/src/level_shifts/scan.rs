//! The largest difference between the two sides of any position, over intervals of all lengths.
//!
//! Intervals: seeded binary segmentation with a decay of 1/√2 (S. Kovács et al. 2023): neighbouring intervals
//! of one length overlap by half, and the next length is √2 times as long. In long intervals only some
//! positions are tried, enough to find a change within a sixty-fourth of the interval; its exact position is
//! determined later. O(n) positions in total, as short intervals have few positions and long intervals are few.

use std::f64::consts::SQRT_2;

/// Most positions that are tried in one interval.
const MOST_PLACES: usize = 64;

/// The clearest split of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    /// Number of values before the split.
    pub(super) position: usize,
    /// Difference of the means of both sides in units of its standard error, assuming independent scores.
    pub(super) size: f64,
}

/// Finds the clearest split into sides of at least `least` scores. `None` if there are too few or all are equal.
pub(super) fn clearest_split(scores: &[f64], least: usize) -> Option<Split> {
    let deviation = neighbour_deviation(scores);
    if scores.len() < 2 * least || deviation == 0.0 {
        return None;
    }
    let mut sums = Vec::with_capacity(scores.len() + 1);
    sums.push(0.0);
    let mut sum = 0.0;
    for score in scores {
        sum += score;
        sums.push(sum);
    }
    let mut best = Split { position: least, size: 0.0 };
    for (start, end) in intervals(scores.len(), 2 * least) {
        let split = clearest_in(&sums[start..=end], least);
        if split.size > best.size {
            best = Split { position: start + split.position, ..split };
        }
    }
    best.size /= deviation;
    Some(best)
}

/// Root of half the mean square of the differences of neighbours: the standard deviation of independent scores,
/// robust against a few steps.
fn neighbour_deviation(scores: &[f64]) -> f64 {
    let squares: f64 = scores.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    (squares / 2.0 / scores.len().saturating_sub(1).max(1) as f64).sqrt()
}

/// Starts and ends of the intervals, from the whole series down to intervals of `shortest` values.
fn intervals(count: usize, shortest: usize) -> Vec<(usize, usize)> {
    let mut intervals = Vec::new();
    let mut length = count as f64;
    while length >= shortest as f64 {
        let whole = length.ceil() as usize;
        let spare = count - whole;
        let gaps = (2.0 * spare as f64 / length).ceil() as usize;
        for number in 0..=gaps {
            let start = match gaps {
                0 => 0,
                _ => spare * number / gaps,
            };
            intervals.push((start, start + whole));
        }
        length /= SQRT_2;
    }
    intervals
}

/// The clearest split of the interval with these running sums, not yet in units of the deviation.
fn clearest_in(sums: &[f64], least: usize) -> Split {
    let count = sums.len() - 1;
    let first = sums[0];
    let total = sums[count] - first;
    let stride = (count / MOST_PLACES).max(1);
    let mut best = Split { position: least, size: 0.0 };
    for position in (least..=count - least).step_by(stride) {
        let (left, right) = (position as f64, (count - position) as f64);
        let excess = sums[position] - first - total * left / count as f64;
        let size = excess.abs() * (count as f64 / (left * right)).sqrt();
        if size > best.size {
            best = Split { position, size };
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_has_the_size_of_its_definition() {
        // Means 0 and 1 of six each; one of the 11 differences of neighbours is 1.
        let scores: Vec<f64> = (0..12).map(|place| f64::from(place / 6)).collect();
        let found = clearest_split(&scores, 5).unwrap();
        assert_eq!(found.position, 6);
        let error = (2.0_f64 / 6.0).sqrt() * (0.5_f64 / 11.0).sqrt();
        assert!((found.size - 1.0 / error).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_short_loss_in_a_long_series_is_a_clear_split() {
        let mut scores: Vec<f64> = (0..7_200).map(|place| f64::from(place % 2) - 0.5).collect();
        scores[5_000..5_012].iter_mut().for_each(|score| *score += 2.0);
        let found = clearest_split(&scores, 10).unwrap();
        assert!(found.position.abs_diff(5_000).min(found.position.abs_diff(5_012)) <= 3);
        assert!(found.size > 5.0, "{found:?}");
    }

    #[test]
    fn intervals_cover_the_series_at_every_length() {
        for count in [20, 61, 7_200] {
            let intervals = intervals(count, 20);
            assert_eq!(intervals[0], (0, count));
            assert!(intervals.iter().all(|(start, end)| end - start >= 20 && *end <= count));
            for same in intervals.chunk_by(|a, b| a.1 - a.0 == b.1 - b.0) {
                let overlap = |pair: &[(usize, usize)]| 2 * pair[1].0 <= pair[0].0 + pair[0].1 + 1;
                assert!(same.windows(2).all(overlap), "{same:?}");
                assert_eq!((same[0].0, same[same.len() - 1].1), (0, count));
            }
        }
    }

    #[test]
    fn short_and_constant_series_have_no_split() {
        assert_eq!(clearest_split(&[0.0; 40], 10), None);
        assert_eq!(clearest_split(&[1.0, -1.0].repeat(9), 10), None);
    }
}
