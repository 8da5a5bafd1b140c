//! Zipf's law over any number of ranks, by rejection-inversion.
//!
//! W. Hörmann, G. Derflinger: "Rejection-inversion to generate variates from monotone discrete distributions", ACM TOMACS 6(3),
//! 1996. It needs no table, and one logarithm and one exponential for most draws; `rand_distr` takes three powers.

use super::stream::Draws;
use rand::RngExt;

/// Largest distance at which a power series replaces a quotient that would be 0 / 0. Its next term is below 2^-60.
const SERIES: f64 = 1e-8;

/// Least distance of the exponent from 1 at which the plain logarithm is exact enough: x then has a relative error below 2^-42.
/// It takes half the time of `ln_1p`.
const FAR_FROM_ONE: f64 = 1e-3;

/// Rank r, from 0, has a probability proportional to (r + 1)^-exponent.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    curve: Curve,
    /// Integral of the density up to 1.5, less the whole probability of the first rank.
    first: f64,
    /// Ranks nearer than this to their real number are accepted without a second integral.
    near: f64,
    prepared: Range,
}

/// What depends on the number of ranks.
#[derive(Clone, Copy, Debug)]
struct Range {
    last_rank: u64,
    /// Integral of the density up to the end of the last rank.
    integral: f64,
}

impl Zipf {
    /// Prepared for ranks up to `last_rank`; other ranges cost one power more per draw. `None` if the exponent is not a
    /// finite number above 0.
    pub(super) fn new(exponent: f64, last_rank: u64) -> Option<Self> {
        if !(exponent > 0.0 && exponent.is_finite()) {
            return None;
        }
        let curve = Curve::new(exponent);
        Some(Zipf {
            first: curve.integral(1.5) - 1.0,
            near: 2.0 - curve.inverse_integral(curve.integral(2.5) - curve.density(2.0)),
            prepared: Range::new(&curve, last_rank),
            curve,
        })
    }

    /// Draws a rank up to `last_rank`. Above 2^53, ranks are rounded to the numbers that `f64` has.
    #[inline]
    pub(super) fn rank(&self, last_rank: u64, draws: &mut Draws) -> u64 {
        let curve = &self.curve;
        let range = if last_rank == self.prepared.last_rank {
            self.prepared
        } else {
            Range::new(curve, last_rank)
        };
        loop {
            let u = range.integral + draws.random::<f64>() * (self.first - range.integral);
            // All of the first rank's area is accepted.
            if u < self.first + 1.0 {
                return 0;
            }
            let x = curve.inverse_integral(u);
            // Rounded by conversion: `round` is a function call on most targets.
            let rank = ((x + 0.5) as u64).saturating_sub(1).min(last_rank);
            let k = rank as f64 + 1.0;
            if k - x <= self.near || u >= curve.integral(k + 0.5) - curve.density(k) {
                return rank;
            }
        }
    }
}

impl Range {
    fn new(curve: &Curve, last_rank: u64) -> Self {
        Range { last_rank, integral: curve.integral(last_rank as f64 + 1.5) }
    }
}

/// The density x^-exponent over the real numbers from 1 on.
#[derive(Clone, Debug)]
struct Curve {
    exponent: f64,
    /// 1 - exponent.
    slope: f64,
    /// 1 / slope; absent near 0.
    inverse_slope: Option<f64>,
}

impl Curve {
    fn new(exponent: f64) -> Self {
        let slope = 1.0 - exponent;
        let inverse_slope = (slope.abs() > FAR_FROM_ONE).then(|| slope.recip());
        Curve { exponent, slope, inverse_slope }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// Integral from 1 to `x`: (x^slope - 1) / slope, and ln x for a slope of 0.
    #[inline]
    fn integral(&self, x: f64) -> f64 {
        let logarithm = x.ln();
        let power = self.slope * logarithm;
        let ratio = if power.abs() > SERIES { power.exp_m1() / power } else { 1.0 + power / 2.0 };
        ratio * logarithm
    }

    /// The `x` up to which the integral is `area`: (1 + slope * area)^(1 / slope).
    #[inline]
    fn inverse_integral(&self, area: f64) -> f64 {
        // Rounding may exceed the whole area, which has no logarithm.
        let power = (self.slope * area).max(-1.0);
        if let Some(inverse_slope) = self.inverse_slope {
            return ((1.0 + power).ln() * inverse_slope).exp();
        }
        let ratio = if power.abs() > SERIES { power.ln_1p() / power } else { 1.0 - power / 2.0 };
        (ratio * area).exp()
    }
}
