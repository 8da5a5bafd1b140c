//! Which gains would have been seen.

use super::{CONFIDENCE_RATIO, SEARCH_PAIRS, TuneProgress};
use crate::comparison::degrees_of_freedom;
use crate::search::tuning::space::Setting;
use crate::search::tuning::{TuningResult, TuningStep};
use crate::student::two_sided;

/// Standard normal deviate that is exceeded in one of five cases: a gain must be larger than the half-width of the interval by that
/// many standard errors to be shown in four of five.
const POWER: f64 = 0.8416;

/// A candidate that was measured beside the defaults.
#[derive(Clone, Debug)]
pub(super) struct Confirmed {
    pub(super) setting: Setting,
    /// All of its pairs.
    pub(super) pairs: usize,
    pub(super) degrees_of_freedom: f64,
    /// Confidence with which it had to show a gain.
    pub(super) confidence_ratio: f64,
}

/// The smallest gain, as a share, that this many pairs show in four of five cases.
pub fn visible_ratio(noise_ratio: f64, pairs: u32) -> f64 {
    let error = noise_ratio * std::f64::consts::SQRT_2 / f64::from(pairs).sqrt();
    visible_beyond(error, degrees_of_freedom(pairs as usize), CONFIDENCE_RATIO)
}

/// The same by the standard error of a logarithm, where a gain is shown with this confidence.
pub(super) fn visible_beyond(error: f64, degrees_of_freedom: f64, confidence_ratio: f64) -> f64 {
    (error * (two_sided(confidence_ratio, degrees_of_freedom) + POWER)).exp_m1()
}

impl TuneProgress {
    /// If nothing was found, the largest gain that is not ruled out of any setting, as one confirmation speaks for one setting.
    /// Else the smallest one that the last confirmation shows in four of five cases, or the comparisons of the search before it.
    pub(super) fn visible_ratio(&self) -> f64 {
        let error = |pairs: f64| (self.noise.pair_variance() / pairs).sqrt();
        let confirmed = self.confirmed.as_ref().map(|last| {
            // The noise of all pairs so far is known better than that of these alone.
            let error = error(last.pairs as f64);
            visible_beyond(error, last.degrees_of_freedom, last.confidence_ratio)
        });
        let step = self.search.step();
        let is_nothing = matches!(step, TuningStep::Done(TuningResult::Nothing { .. }));
        let possible = self.search.possible_gain().filter(|_| is_nothing);
        // Gains below the margin are not looked for.
        let possible = possible.map(|gain| gain.exp_m1().max(self.options.margin_ratio));
        possible.or(confirmed).unwrap_or_else(|| {
            let error = error(SEARCH_PAIRS as f64);
            visible_beyond(error, self.noise.degrees_of_freedom, CONFIDENCE_RATIO)
        })
    }
}
