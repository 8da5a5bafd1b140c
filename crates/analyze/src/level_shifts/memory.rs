//! The autocorrelation of windows, estimated so that level changes do not count as memory.
//!
//! Model: independent noise, a first-order autoregression, or both; `share` is the autoregression's share of
//! the variance. Half the mean square of the differences over a distance `h` is then `variance · (1 − share ·
//! correlationʰ)`. A step affects only the `h` pairs across it. Pairs across the clearest splits are left out
//! if these splits explain more than an autoregression does, and so is the largest fifth of the other
//! differences, at every distance. The model whose ratios to distance 1 are closest to the observed ones is
//! chosen, with a penalty for additional noise (H. Akaike, *IEEE Transactions on Automatic Control* 19 (1974)).
//! The ratios are first raised by about their standard error: too little memory raises false alarms, too much
//! only costs power. Idea of differences at two distances: S. Chakar, E. Lebarbier, C. Lévy-Leduc and S. Robin,
//! "A robust approach for estimating change-points in the mean of an AR(1) process", *Bernoulli* 23 (2017).

use super::scan::clearest_split;
use super::scores::scores;

/// Share of the differences that count, the smaller ones.
const COUNTED_RATIO: f64 = 0.8;

/// Distances that are compared with distance 1, if the series is long enough.
const DISTANCES: [usize; 10] = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48];

/// Windows per window of distance.
const WINDOWS_PER_DISTANCE: usize = 15;

/// Ratios are raised by this over the root of the number of windows, and by this over their number: a short
/// series hides the slow part of its memory.
const SAFETY: f64 = 1.5;
const SHORT_SAFETY: f64 = 8.0;

/// Variance of the logarithm of a ratio, times the number of windows.
const RATIO_VARIANCE: f64 = 2.0;

/// Windows per split with excluded pairs, and the most such splits.
const WINDOWS_PER_SPLIT: usize = 60;
const MOST_SPLITS: usize = 16;

/// Cost of a split, in parameters: two for its position and its level, and three because it is the clearest of
/// many.
const PARAMETERS_PER_SPLIT: f64 = 5.0;

/// The memory of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Memory {
    /// Correlation of neighbours in the autoregressive part, from 0 to below 1.
    pub(super) correlation: f64,
    /// Share of the variance in the autoregressive part, from 0 to 1.
    pub(super) share: f64,
}

impl Memory {
    /// Estimates the memory of values with a few level changes, with levels of at least `least` windows.
    pub(super) fn of(values: &[f64], least: usize) -> Memory {
        let observed = observed_ratios(values, &levels(values, least));
        let precision = values.len() as f64 / RATIO_VARIANCE;
        let cost = |model: &Memory| precision * model.error(&observed) + model.price();
        let longest = observed.last().map_or(1, |(distance, _)| *distance) as f64;
        let models = models().filter(|model| model.price() == 0.0 || model.reach() <= longest);
        let best = models.min_by(|a, b| cost(a).total_cmp(&cost(b)));
        best.unwrap_or(Memory::none())
    }

    fn none() -> Memory {
        Memory { correlation: 0.0, share: 0.0 }
    }

    /// Number of consecutive windows that are worth one independent window, for a mean over many.
    pub(super) fn time(self) -> f64 {
        1.0 + 2.0 * self.share * self.correlation / (1.0 - self.correlation)
    }

    /// Windows after which the autoregressive part is mostly decorrelated; noise hides this at shorter
    /// distances.
    fn reach(self) -> f64 {
        1.0 / (1.0 - self.correlation)
    }

    /// Penalty for additional noise. A pure autoregression costs nothing, as the raised ratios favour it.
    fn price(self) -> f64 {
        if self.share > 0.0 && self.share < 1.0 { 2.0 } else { 0.0 }
    }

    /// Sum of squared differences of the logarithms of the ratios.
    fn error(self, observed: &[(usize, f64)]) -> f64 {
        let at = |distance: usize| 1.0 - self.share * self.correlation.powi(distance as i32);
        let squares =
            observed.iter().map(|(distance, ratio)| (ratio / (at(*distance) / at(1))).ln().powi(2));
        squares.sum()
    }
}

/// The candidate models.
fn models() -> impl Iterator<Item = Memory> {
    let shares = [0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0];
    let correlations = (1..50).map(|step| f64::from(step) * 0.02);
    std::iter::once(Memory::none()).chain(
        correlations.flat_map(move |correlation| shares.map(|share| Memory { correlation, share })),
    )
}

/// The level number of each value: as many of the clearest splits as explain more than the memory of the series
/// would, by G. Schwarz' criterion with a cost for the choice of each split.
fn levels(values: &[f64], least: usize) -> Vec<usize> {
    let scores = scores(values);
    let most = (values.len() / WINDOWS_PER_SPLIT).clamp(1, MOST_SPLITS);
    let mut parts = vec![Part::of(values, 0, values.len(), least)];
    let mut best = numbers(&parts, values.len());
    let mut least_cost = innovation_cost(&scores, &best);
    for splits in 1..=most {
        let widest = (0..parts.len()).max_by(|a, b| parts[*a].size().total_cmp(&parts[*b].size()));
        let Some((number, place)) =
            widest.and_then(|number| Some((number, parts[number].place?.0)))
        else {
            break;
        };
        let Part { start, end, .. } = parts[number];
        parts[number] = Part::of(values, start, place, least);
        parts.push(Part::of(values, place, end, least));
        let numbers = numbers(&parts, values.len());
        let price = (splits as f64 * PARAMETERS_PER_SPLIT) * (values.len() as f64).ln();
        let cost = innovation_cost(&scores, &numbers) + price;
        if cost < least_cost {
            (least_cost, best) = (cost, numbers);
        }
    }
    best
}

/// A part of the series with its clearest split and the split's size.
struct Part {
    start: usize,
    end: usize,
    place: Option<(usize, f64)>,
}

impl Part {
    fn of(values: &[f64], start: usize, end: usize, least: usize) -> Part {
        let split = clearest_split(&scores(&values[start..end]), least);
        Part { start, end, place: split.map(|split| (start + split.position, split.size)) }
    }

    fn size(&self) -> f64 {
        self.place.map_or(0.0, |(_, size)| size)
    }
}

/// The part number of each value.
fn numbers(parts: &[Part], count: usize) -> Vec<usize> {
    let mut numbers = vec![0; count];
    for (number, part) in parts.iter().enumerate() {
        numbers[part.start..part.end].fill(number);
    }
    numbers
}

/// `n ln s²` with the variance `s²` that a first-order autoregression around the level means does not explain.
fn innovation_cost(scores: &[f64], levels: &[usize]) -> f64 {
    let count = levels.iter().max().map_or(0, |most| most + 1);
    let (mut sums, mut sizes) = (vec![0.0; count], vec![0.0; count]);
    for (score, level) in scores.iter().zip(levels) {
        sums[*level] += score;
        sizes[*level] += 1.0;
    }
    let rest = scores.iter().zip(levels);
    let rest: Vec<f64> = rest.map(|(score, level)| score - sums[*level] / sizes[*level]).collect();
    let product = |lag: usize| -> f64 { rest.iter().zip(&rest[lag..]).map(|(a, b)| a * b).sum() };
    let (square, neighbours) = (product(0), product(1));
    let correlation = (neighbours / square).clamp(0.0, 1.0);
    let unexplained = square - correlation * neighbours;
    let windows = scores.len() as f64;
    // Scores without residual noise count as having this much noise.
    windows * (unexplained.max(1e-3) / windows).ln()
}

/// Distances with their mean squared differences relative to distance 1, each slightly raised.
fn observed_ratios(values: &[f64], levels: &[usize]) -> Vec<(usize, f64)> {
    let neighbours = trimmed_square(values, levels, 1);
    if neighbours == 0.0 {
        return Vec::new();
    }
    let windows = values.len() as f64;
    let raised = 1.0 + SAFETY / windows.sqrt() + SHORT_SAFETY / windows;
    DISTANCES
        .into_iter()
        .filter(|distance| *distance == 2 || distance * WINDOWS_PER_DISTANCE <= values.len())
        .map(|distance| (distance, trimmed_square(values, levels, distance) / neighbours * raised))
        .filter(|(_, ratio)| *ratio > 0.0)
        .collect()
}

/// Mean square of the smaller differences over this distance within a level.
fn trimmed_square(values: &[f64], levels: &[usize], distance: usize) -> f64 {
    let mut squares: Vec<f64> = (distance..values.len())
        .filter(|place| levels[*place] == levels[place - distance])
        .map(|place| (values[place] - values[place - distance]).powi(2))
        .collect();
    let counted = (squares.len() as f64 * COUNTED_RATIO) as usize;
    if counted == 0 {
        return 0.0;
    }
    let (below, _, _) = squares.select_nth_unstable_by(counted, f64::total_cmp);
    below.iter().sum::<f64>() / counted as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_testkit::simulate::{autoregressive, normal};

    fn mean_time(series: impl Fn(u64) -> Vec<f64>) -> f64 {
        (0..60).map(|seed| Memory::of(&series(seed), 10).time()).sum::<f64>() / 60.0
    }

    #[test]
    fn memory_of_an_autoregression_is_at_most_overestimated() {
        // (1 + φ) / (1 − φ)
        for (correlation, least, most) in [(0.0, 1.0, 1.6), (0.5, 3.0, 5.0), (0.8, 8.5, 15.0)] {
            let time = mean_time(|seed| autoregressive(seed, 600, correlation));
            assert!((least..most).contains(&time), "{correlation}: {time}");
        }
    }

    #[test]
    fn noise_on_top_does_not_hide_a_long_memory() {
        // Half of the variance at φ = 0.95: 1 + 0.95 / 0.05 = 20.
        let time = mean_time(|seed| {
            let slow = autoregressive(seed, 1_200, 0.95);
            let noise = normal(seed + 1_000, 1_200);
            slow.iter().zip(noise).map(|(a, b)| a + b).collect()
        });
        assert!((12.0..45.0).contains(&time), "{time}");
    }

    #[test]
    fn steps_hardly_count_as_memory() {
        let time = mean_time(|seed| {
            normal(seed, 240)
                .into_iter()
                .enumerate()
                .map(|(place, e)| e + 30.0 * (place / 120) as f64)
                .collect()
        });
        assert!(time < 4.0, "{time}");
    }

    #[test]
    fn series_without_variation_has_no_memory() {
        assert_eq!(Memory::of(&[3.0; 50], 10), Memory::none());
        assert_eq!(Memory::none().time(), 1.0);
    }
}
