//! Gains that would have been seen.

use super::{CONFIDENCE_RATIO, SEARCH_PAIRS, TuneProgress};
use crate::comparison::degrees_of_freedom;
use crate::search::tuning::{TuningResult, TuningStep};
use crate::student::two_sided;

/// Standard normal deviate that is exceeded in one of five cases: to be shown in four of five, a gain must
/// exceed the half-width of the interval by this many standard errors.
const POWER: f64 = 0.8416;

/// The smallest gain, as a share, that this many pairs show in four of five cases.
pub fn visible_ratio(noise_ratio: f64, pairs: u32) -> f64 {
    let error = noise_ratio * std::f64::consts::SQRT_2 / f64::from(pairs).sqrt();
    visible_beyond(error, degrees_of_freedom(pairs as usize))
}

/// The smallest visible gain for a logarithm's standard error.
pub(super) fn visible_beyond(error: f64, degrees_of_freedom: f64) -> f64 {
    (error * (two_sided(CONFIDENCE_RATIO, degrees_of_freedom) + POWER)).exp_m1()
}

impl TuneProgress {
    /// Without a result, the largest gain that is not ruled out for any setting, as one confirmation covers
    /// only one setting. Otherwise the smallest gain that a confirmation with all its pairs shows in four of
    /// five cases, or a comparison of the search if nothing could be confirmed.
    pub(super) fn visible_ratio(&self) -> f64 {
        let step = self.search.step();
        let is_nothing = matches!(step, TuningStep::Done(TuningResult::Nothing { .. }));
        match self.search.possible_gain() {
            // Gains below the margin are not searched.
            Some(gain) if is_nothing => gain.exp_m1().max(self.options.margin_ratio),
            None if is_nothing => {
                let error = (self.noise.pair_variance() / SEARCH_PAIRS as f64).sqrt();
                visible_beyond(error, self.noise.degrees_of_freedom)
            }
            _ => visible_ratio(self.noise_ratio(), self.max_pairs as u32),
        }
    }
}
