//! The boundary of an objective: the curve of the share of runs that meet it over the offered rate.

use dyno_record::estimate::Estimate;
use dyno_record::experiment::Boundary;

/// Share of runs that meet, or miss, an objective for a reason independent of the rate, such as a machine that
/// was busy with something else. Without it a single such run far from the boundary would determine the width;
/// see Wichmann and Hill, "The psychometric function: I", Perception & Psychophysics 63 (2001), on lapses.
pub const LAPSE_RATIO: f64 = 0.01;

/// Share of the runs that counts as most of them.
pub const MOST_RATIO: f64 = 0.95;

/// Smallest width of a clipped interval, as a share of its lower end: clipping left nothing of a narrower one.
const LEAST_WIDTH_RATIO: f64 = 0.01;

/// Whether clipping left an interval of a rate of the boundary.
pub fn has_interval(boundary: &Boundary, rate: &Estimate) -> bool {
    boundary.not_measured(rate.value).is_none() || rate.high > rate.low * (1.0 + LEAST_WIDTH_RATIO)
}

/// Whether the curve is known: its middle was not clipped.
pub fn has_curve(boundary: &Boundary) -> bool {
    boundary.not_measured(boundary.half_per_s.value).is_none()
}

/// The share of runs at this rate that meet the objective, by the curve with the middle values.
pub fn kept_at(boundary: &Boundary, rate_per_s: f64) -> f64 {
    let distance = (rate_per_s / boundary.half_per_s.value).ln();
    kept_ratio(distance / boundary.spread_ratio.value)
}

/// The share of runs that meet the objective this many spreads above the boundary.
pub(super) fn kept_ratio(spreads: f64) -> f64 {
    LAPSE_RATIO + (1.0 - 2.0 * LAPSE_RATIO) / (1.0 + spreads.exp())
}

/// Distance in spreads from the boundary down to the rate that [`MOST_RATIO`] of the runs keep.
pub(super) fn most_spreads() -> f64 {
    let core = (MOST_RATIO - LAPSE_RATIO) / (1.0 - 2.0 * LAPSE_RATIO);
    (core / (1.0 - core)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(value: f64) -> Estimate {
        Estimate { value, low: value, high: value, confidence_ratio: 0.95 }
    }

    #[test]
    fn the_curve_goes_through_its_rates() {
        let below = (-0.1 * most_spreads()).exp();
        let boundary = Boundary {
            half_per_s: exact(1000.0),
            most_per_s: exact(1000.0 * below),
            few_per_s: exact(1000.0 / below),
            spread_ratio: exact(0.1),
            measured_per_s: None,
        };
        for (rate, share) in [
            (1e-9, 1.0 - LAPSE_RATIO),
            (boundary.most_per_s.value, MOST_RATIO),
            (1000.0, 0.5),
            (boundary.few_per_s.value, 1.0 - MOST_RATIO),
            (1e9, LAPSE_RATIO),
        ] {
            let found = kept_at(&boundary, rate);
            assert!((found - share).abs() < 1e-9, "{rate}: {found}");
        }
    }
}
