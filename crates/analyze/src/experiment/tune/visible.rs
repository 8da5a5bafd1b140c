//! Gains that would have been seen.

use super::{CONFIDENCE_RATIO, SEARCH_PAIRS, TuneProgress};
use crate::comparison::degrees_of_freedom;
use crate::search::tuning::space::Setting;
use crate::search::tuning::{TuningResult, TuningStep};
use crate::student::two_sided;

/// Standard normal deviate that is exceeded in one of five cases: to be shown in four of five, a gain must
/// exceed the half-width of the interval by this many standard errors.
const POWER: f64 = 0.8416;

/// A candidate that was compared with the defaults.
#[derive(Clone, Debug)]
pub(super) struct Confirmed {
    pub(super) setting: Setting,
    /// Number of its pairs.
    pub(super) pairs: usize,
    pub(super) degrees_of_freedom: f64,
    /// Required confidence of a gain.
    pub(super) confidence_ratio: f64,
}

/// The smallest gain, as a share, that this many pairs show in four of five cases.
pub fn visible_ratio(noise_ratio: f64, pairs: u32) -> f64 {
    let error = noise_ratio * std::f64::consts::SQRT_2 / f64::from(pairs).sqrt();
    visible_beyond(error, degrees_of_freedom(pairs as usize), CONFIDENCE_RATIO)
}

/// The smallest visible gain for a logarithm's standard error and this required confidence.
pub(super) fn visible_beyond(error: f64, degrees_of_freedom: f64, confidence_ratio: f64) -> f64 {
    (error * (two_sided(confidence_ratio, degrees_of_freedom) + POWER)).exp_m1()
}

impl TuneProgress {
    /// Without a result, the largest gain that is not ruled out for any setting, as one confirmation covers
    /// only one setting. Otherwise the smallest gain that the last confirmation, or before it the search
    /// comparisons, show in four of five cases.
    pub(super) fn visible_ratio(&self) -> f64 {
        let error = |pairs: f64| (self.noise.pair_variance() / pairs).sqrt();
        let confirmed = self.confirmed.as_ref().map(|last| {
            // The noise is better known from all pairs so far than from these alone.
            let error = error(last.pairs as f64);
            visible_beyond(error, last.degrees_of_freedom, last.confidence_ratio)
        });
        let step = self.search.step();
        let is_nothing = matches!(step, TuningStep::Done(TuningResult::Nothing { .. }));
        let possible = self.search.possible_gain().filter(|_| is_nothing);
        // Gains below the margin are not searched.
        let possible = possible.map(|gain| gain.exp_m1().max(self.options.margin_ratio));
        possible.or(confirmed).unwrap_or_else(|| {
            let error = error(SEARCH_PAIRS as f64);
            visible_beyond(error, self.noise.degrees_of_freedom, CONFIDENCE_RATIO)
        })
    }
}
