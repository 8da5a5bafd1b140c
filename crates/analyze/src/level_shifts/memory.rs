//! How windows resemble their neighbours, estimated so that changes of level do not count as memory.
//!
//! Model: an autoregression of first order, which has a share of the variance, and independent noise. Half the mean square of
//! the differences over a distance `h` is `variance · (1 − share · correlationʰ)`. A step touches only the `h` pairs
//! that lie across it; to be deaf to those, the largest fifth of the differences is left out at every distance, and distances end
//! where a step would touch more than a twelfth of the pairs. The model whose ratios to distance 1 are closest to the
//! observed ones is taken, after these were raised by their standard error: too little memory raises false alarms, too
//! much only costs power. Idea of differences at two distances: S. Chakar, E. Lebarbier, C. Lévy-Leduc and
//! S. Robin, "A robust approach for estimating change-points in the mean of an AR(1) process", *Bernoulli* 23 (2017).

/// Share of the differences that counts, the smaller ones.
const COUNTED_RATIO: f64 = 0.8;

/// Distances that are compared with distance 1, as far as the series is long enough.
const DISTANCES: [usize; 10] = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48];

/// Windows per window of distance.
const WINDOWS_PER_DISTANCE: usize = 12;

/// Ratios are raised by this over the root of the number of windows: about a standard error.
const SAFETY: f64 = 1.5;

/// The memory of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Memory {
    /// Correlation of neighbours in the part that has memory, from 0 to below 1.
    pub(super) correlation: f64,
    /// Share of the variance that this part has, from 0 to 1.
    pub(super) share: f64,
}

impl Memory {
    /// Estimates the memory of values that may change their level a few times.
    pub(super) fn of(values: &[f64]) -> Memory {
        let observed = observed_ratios(values);
        let mut best = (f64::INFINITY, Memory::none());
        for model in models() {
            let error = model.error(&observed);
            if error < best.0 {
                best = (error, model);
            }
        }
        best.1
    }

    fn none() -> Memory {
        Memory {
            correlation: 0.0,
            share: 0.0,
        }
    }

    /// How many windows in a row are worth one independent window, for a mean over many.
    pub(super) fn time(self) -> f64 {
        1.0 + 2.0 * self.share * self.correlation / (1.0 - self.correlation)
    }

    /// Sum of squared differences of the logarithms of the ratios.
    fn error(self, observed: &[(usize, f64)]) -> f64 {
        let at = |distance: usize| 1.0 - self.share * self.correlation.powi(distance as i32);
        let squares = observed
            .iter()
            .map(|(distance, ratio)| (ratio / (at(*distance) / at(1))).ln().powi(2));
        squares.sum()
    }
}

/// The models that are tried.
fn models() -> impl Iterator<Item = Memory> {
    let shares = [0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0];
    let correlations = (1..50).map(|step| f64::from(step) * 0.02);
    std::iter::once(Memory::none()).chain(
        correlations
            .flat_map(move |correlation| shares.map(|share| Memory { correlation, share })),
    )
}

/// Distances with the mean square of their differences relative to that of distance 1, each a little raised.
fn observed_ratios(values: &[f64]) -> Vec<(usize, f64)> {
    let neighbours = trimmed_square(values, 1);
    if neighbours == 0.0 {
        return Vec::new();
    }
    let raised = 1.0 + SAFETY / (values.len() as f64).sqrt();
    DISTANCES
        .into_iter()
        .filter(|distance| *distance == 2 || distance * WINDOWS_PER_DISTANCE <= values.len())
        .map(|distance| (distance, trimmed_square(values, distance) / neighbours * raised))
        .filter(|(_, ratio)| *ratio > 0.0)
        .collect()
}

/// Mean square of the smaller differences over this distance.
fn trimmed_square(values: &[f64], distance: usize) -> f64 {
    let mut squares: Vec<f64> = values
        .iter()
        .zip(values.iter().skip(distance))
        .map(|(a, b)| (b - a).powi(2))
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
        (0..60).map(|seed| Memory::of(&series(seed)).time()).sum::<f64>() / 60.0
    }

    #[test]
    fn the_memory_of_an_autoregression_is_found_or_a_little_more() {
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
    fn steps_are_hardly_taken_for_memory() {
        let time = mean_time(|seed| {
            let noise = normal(seed, 240).into_iter().enumerate();
            noise.map(|(place, e)| e + 30.0 * (place / 120) as f64).collect()
        });
        assert!(time < 4.0, "{time}");
    }

    #[test]
    fn a_series_without_variation_has_no_memory() {
        assert_eq!(Memory::of(&[3.0; 50]), Memory::none());
        assert_eq!(Memory::none().time(), 1.0);
    }
}
