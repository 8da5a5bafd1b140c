//! The knee of a system: the load where more load starts to cost more response time than it adds rate.
//!
//! Defined as the load with the highest *power*, the achieved rate divided by the response time: L. Kleinrock,
//! "Power and Deterministic Rules of Thumb for Probabilistic Problems in Computer Communications", *ICC*
//! (1979). There the line from the origin touches the curve of response time over rate; below it a rise of the
//! rate by 1 % costs less than 1 % of response time, above it more. It needs no threshold, and is independent
//! of the units and of the measured range beyond it, unlike methods that look for the sharpest bend of a drawn
//! curve (such as V. Satopää et al., "Finding a 'Kneedle' in a Haystack", *ICDCSW* (2011)). On one exponential
//! server the knee is at a utilization of one half; with more servers it is higher.
//!
//! Between the measured loads it is located by a parabola through the logarithms of the three highest powers.
//! Its range covers the measured loads with a power that cannot be distinguished from the highest. Both kinds
//! of curves are treated alike: offered rates with their response times, and clients with their rate and
//! response time.

use crate::estimate::combined;
use dyno_record::estimate::Quantity;
use dyno_record::experiment::Knee;

/// Fewest different loads for a knee.
pub const MIN_LOADS: usize = 4;

/// A measured point of a curve. Several points may have the same load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadPoint {
    /// The varied value: offered operations per second, or a number of clients.
    pub load: f64,
    /// Achieved operations per second.
    pub rate_per_s: Quantity,
    /// Response time in seconds: its mean, or a percentile.
    pub response_s: Quantity,
}

/// A load with the logarithms of its measurements.
#[derive(Clone, Copy, Debug)]
struct Level {
    load: f64,
    log_rate: f64,
    log_response: f64,
    /// Half-width of the confidence interval of the logarithm of the power.
    uncertainty: f64,
}

impl Level {
    fn log_power(&self) -> f64 {
        self.log_rate - self.log_response
    }
}

/// Finds the knee of a measured curve; the points may come in any order.
pub fn knee(points: &[LoadPoint]) -> Knee {
    let levels = levels(points);
    if levels.len() < MIN_LOADS {
        return Knee::TooFewLoads;
    }
    let highest = |best: usize, i: usize| {
        if levels[i].log_power() > levels[best].log_power() { i } else { best }
    };
    let best = (1..levels.len()).fold(0, highest);
    if best == 0 {
        return Knee::BelowMeasured { lowest_load: levels[0].load };
    }
    if best + 1 == levels.len() {
        return Knee::AboveMeasured { highest_load: levels[best].load };
    }
    found(&levels, best)
}

fn found(levels: &[Level], best: usize) -> Knee {
    let around = [&levels[best - 1], &levels[best], &levels[best + 1]];
    let position = parabola_peak(around);
    let load = position.exp();
    let between = |of: fn(&Level) -> f64| interpolated(around, position, of).exp();
    let is_lower = |level: &&Level| {
        let difference = levels[best].log_power() - level.log_power();
        difference > combined(&[level.uncertainty, levels[best].uncertainty])
    };
    let below = levels[..best].iter().rev().find(is_lower);
    Knee::Found {
        load,
        low: below.unwrap_or(&levels[0]).load,
        high: levels[best + 1..].iter().find(is_lower).unwrap_or(&levels[levels.len() - 1]).load,
        rate_per_s: between(|level| level.log_rate),
        response_s: between(|level| level.log_response),
    }
}

/// Combines points of the same load by the geometric mean.
fn levels(points: &[LoadPoint]) -> Vec<Level> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    let mut usable: Vec<&LoadPoint> = points
        .iter()
        .filter(|p| {
            positive(p.load) && positive(p.rate_per_s.value) && positive(p.response_s.value)
        })
        .collect();
    usable.sort_by(|a, b| a.load.total_cmp(&b.load));
    let level = |group: &[&LoadPoint]| {
        let n = group.len() as f64;
        let mean = |of: fn(&LoadPoint) -> f64| group.iter().map(|p| of(p)).sum::<f64>() / n;
        let own = |p: &&LoadPoint| {
            combined(&[p.rate_per_s.uncertainty_ratio, p.response_s.uncertainty_ratio])
        };
        Level {
            load: group[0].load,
            log_rate: mean(|p| p.rate_per_s.value.ln()),
            log_response: mean(|p| p.response_s.value.ln()),
            uncertainty: combined(&group.iter().map(own).collect::<Vec<_>>()) / n,
        }
    };
    usable.chunk_by(|a, b| a.load == b.load).map(level).collect()
}

/// Logarithm of the load at the maximum of the parabola through the powers of three loads. The middle power is
/// the highest, so the maximum lies between the outer loads.
fn parabola_peak([left, middle, right]: [&Level; 3]) -> f64 {
    let x = middle.load.ln();
    let (to_left, to_right) = (left.load.ln() - x, right.load.ln() - x);
    let (fall_left, fall_right) =
        (left.log_power() - middle.log_power(), right.log_power() - middle.log_power());
    let numerator = to_right * to_right * fall_left - to_left * to_left * fall_right;
    let denominator = to_right * fall_left - to_left * fall_right;
    if denominator == 0.0 {
        // Three equal powers.
        x
    } else {
        x + numerator / denominator / 2.0
    }
}

/// A value between three loads, on straight lines over the logarithm of the load.
fn interpolated([left, middle, right]: [&Level; 3], position: f64, of: fn(&Level) -> f64) -> f64 {
    let (a, b) = if position < middle.load.ln() { (left, middle) } else { (middle, right) };
    let share = (position - a.load.ln()) / (b.load.ln() - a.load.ln());
    of(a) + (of(b) - of(a)) * share
}

#[cfg(test)]
mod tests;
