//! Estimates all settings from comparisons: a Gaussian process over the logarithm of the objective (Rasmussen,
//! Williams, *Gaussian Processes for Machine Learning*, 2006, chapters 2 and 5).
//!
//! An observation is the difference between two settings that were measured side by side, so it contains no
//! drift of the machine, with the error of its pairs. Differences are linear in the surface: their covariances
//! follow from the settings' covariances, and neither a mean nor a baseline must be known.
//!
//! The covariance of two settings is Matérn's with ν = 5/2, with a separate length for each knob: the
//! longer the length, the less the knob matters. Lengths, the height of the surface and the variation of
//! comparisons beyond their own errors are drawn from their posterior by slice sampling (Neal, *Annals of
//! Statistics* 31, 2003): with a dozen observations no single choice is right, and uncertainty must be kept.

use super::cholesky::{Cholesky, dot};
use super::space::{Setting, squared_distance};
use crate::robust::normal_tail;
use dyno_record::experiment::Knob;
use rand::{Rng, RngExt};

/// Number of random draws of the model.
const DRAWS: usize = 5;
/// Sweeps of slice sampling over all model parameters between two draws.
const SWEEPS: usize = 2;
/// Expected height of the surface, as a logarithm of the objective: gains of a fifth are common.
const HEIGHT: Expected = Expected(0.2, 0.8);
/// Expected lengths; 1 is the whole range of a knob. Most knobs matter little.
const LENGTH: Expected = Expected(1.5, 1.2);
/// Expected standard deviation of comparisons beyond their own errors.
const EXCESS: Expected = Expected(0.01, 1.0);
/// Widest step of a slice, as a logarithm.
const SLICE: f64 = 1.0;

/// A lognormal prior: its median and the standard deviation of the logarithm.
struct Expected(f64, f64);

impl Expected {
    fn log_density(&self, log: f64) -> f64 {
        let z = (log - self.0.ln()) / self.1;
        -0.5 * z * z
    }
}

/// A comparison of two settings: the logarithm of `one`'s objective minus the logarithm of `other`'s.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The setting that was tried.
    pub one: Setting,
    /// The reference setting.
    pub other: Setting,
    /// Logarithm of the ratio of their objectives; above 0 if `one` is better.
    pub log_ratio: f64,
    /// Standard error of the logarithm.
    pub error: f64,
}

/// A normal distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normal {
    pub mean: f64,
    pub deviation: f64,
}

/// Logarithms of height and excess, then of each knob's length.
type Logs = Vec<f64>;

/// The estimated surface.
#[derive(Clone, Debug)]
pub struct Surface {
    knobs: Vec<Knob>,
    /// Compared settings, each once.
    settings: Vec<Setting>,
    /// For each comparison the positions of its settings, the logarithm of the ratio, and its error.
    differences: Vec<(usize, usize, f64, f64)>,
    draws: Vec<Draw>,
    /// Start of the next draws.
    logs: Logs,
}

/// One model of the posterior, prepared for predictions.
#[derive(Clone, Debug)]
struct Draw {
    variance: f64,
    /// Inverse squares of the lengths.
    weights: Vec<f64>,
    factor: Cholesky,
    /// L⁻¹·y.
    whitened: Vec<f64>,
}

impl Surface {
    /// A surface without comparisons.
    pub fn new(knobs: &[Knob]) -> Surface {
        let mut logs = vec![HEIGHT.0.ln(), EXCESS.0.ln()];
        logs.extend(knobs.iter().map(|_| LENGTH.0.ln()));
        Surface {
            knobs: knobs.to_vec(),
            settings: Vec::new(),
            differences: Vec::new(),
            draws: Vec::new(),
            logs,
        }
    }

    /// Adds a comparison.
    pub fn learn(&mut self, difference: &Difference, random: &mut impl Rng) {
        let one = self.place(&difference.one);
        let other = self.place(&difference.other);
        if one == other {
            return;
        }
        let found = (one, other, difference.log_ratio, difference.error);
        self.differences.push(found);
        let squares = self.squares();
        let mut logs = self.logs.clone();
        let mut density = self.log_density(&logs, &squares);
        self.draws.clear();
        while self.draws.len() < DRAWS {
            for _ in 0..SWEEPS {
                for place in 0..logs.len() {
                    density = self.slice(&mut logs, place, density, &squares, random);
                }
            }
            let draw = self.draw(&logs, &squares);
            self.draws.extend(draw);
        }
        self.logs = logs;
    }

    /// Improvement of `one` over `other`, as a logarithm of the ratio: mean and standard deviation of a mixture
    /// over the draws.
    pub fn gain(&self, one: &Setting, other: &Setting) -> Normal {
        let each: Vec<Normal> =
            self.draws.iter().map(|draw| self.gain_of(draw, one, other)).collect();
        mixture(&each)
    }

    /// The expected improvement of `one` on `other` (Jones, Schonlau, Welch, *Journal of Global Optimization* 13, 1998), as
    /// a logarithm of the ratio, averaged over the draws (Snoek, Larochelle, Adams, NIPS 2012).
    pub fn expected_improvement(&self, one: &Setting, other: &Setting) -> f64 {
        let each = self.draws.iter().map(|draw| {
            let gain = self.gain_of(draw, one, other);
            improvement(gain)
        });
        each.sum::<f64>() / self.draws.len().max(1) as f64
    }

    /// Settings that were compared.
    pub fn tried(&self) -> &[Setting] {
        &self.settings
    }

    fn place(&mut self, setting: &Setting) -> usize {
        let known = self.settings.iter().position(|other| other == setting);
        known.unwrap_or_else(|| {
            self.settings.push(setting.clone());
            self.settings.len() - 1
        })
    }

    /// For each pair of settings, the squared distances of their values, by knob.
    fn squares(&self) -> Vec<f64> {
        let mut squares = Vec::new();
        for one in &self.settings {
            for other in &self.settings {
                squares.extend(self.distances(one, other));
            }
        }
        squares
    }

    fn distances<'a>(
        &'a self,
        one: &'a Setting,
        other: &'a Setting,
    ) -> impl Iterator<Item = f64> + 'a {
        let values = one.iter().zip(other);
        self.knobs
            .iter()
            .zip(values)
            .map(|(knob, (one, other))| squared_distance(knob, *one, *other))
    }

    /// The factor of the comparisons' covariances, and L⁻¹·y.
    fn draw(&self, logs: &Logs, squares: &[f64]) -> Option<Draw> {
        let (variance, excess) = ((2.0 * logs[0]).exp(), (2.0 * logs[1]).exp());
        let weights: Vec<f64> = logs[2..].iter().map(|log| (-2.0 * log).exp()).collect();
        let shares: Vec<f64> = squares
            .chunks_exact(weights.len().max(1))
            .map(|squares| matern(dot(squares, &weights)))
            .collect();
        let count = self.settings.len();
        let share = |one: usize, other: usize| shares[one * count + other];
        let size = self.differences.len();
        let mut covariances = vec![0.0; size * size];
        for (row, (a, b, _, error)) in self.differences.iter().enumerate() {
            for (column, (c, d, ..)) in self.differences[..=row].iter().enumerate() {
                let shared = share(*a, *c) - share(*a, *d) - share(*b, *c) + share(*b, *d);
                covariances[row * size + column] = variance * shared;
            }
            covariances[row * size + row] += error * error + excess;
        }
        let factor = Cholesky::of(covariances, size)?;
        let ratios = self.differences.iter().map(|(.., ratio, _)| *ratio);
        let whitened = factor.forward(ratios.collect());
        Some(Draw { variance, weights, factor, whitened })
    }

    /// Log density of the model parameters, up to a constant.
    fn log_density(&self, logs: &Logs, squares: &[f64]) -> f64 {
        let Some(draw) = self.draw(logs, squares) else {
            return f64::NEG_INFINITY;
        };
        let lengths: f64 = logs[2..].iter().map(|log| LENGTH.log_density(*log)).sum();
        HEIGHT.log_density(logs[0]) + EXCESS.log_density(logs[1]) + lengths
            - 0.5 * dot(&draw.whitened, &draw.whitened)
            - draw.factor.half_log_determinant()
    }

    /// Redraws the parameter at this position, given the others; returns the density there.
    fn slice(
        &self,
        logs: &mut Logs,
        place: usize,
        density: f64,
        squares: &[f64],
        random: &mut impl Rng,
    ) -> f64 {
        let level = density + random.random::<f64>().ln();
        let start = logs[place];
        let mut low = start - SLICE * random.random::<f64>();
        let mut high = low + SLICE;
        // The interval shrinks towards the start, where the density is above the level.
        loop {
            logs[place] = low + (high - low) * random.random::<f64>();
            let found = self.log_density(logs, squares);
            if found >= level || (high - low) < 1e-9 {
                return found;
            }
            if logs[place] < start {
                low = logs[place];
            } else {
                high = logs[place];
            }
        }
    }

    fn gain_of(&self, draw: &Draw, one: &Setting, other: &Setting) -> Normal {
        let share = |a: &Setting, b: &Setting| {
            let mut distances = self.distances(a, b).zip(&draw.weights);
            matern(distances.by_ref().map(|(square, weight)| square * weight).sum())
        };
        let to_settings: Vec<f64> = self
            .settings
            .iter()
            .map(|setting| share(one, setting) - share(other, setting))
            .collect();
        let covariances = self.differences.iter();
        let covariances =
            covariances.map(|(a, b, ..)| draw.variance * (to_settings[*a] - to_settings[*b]));
        let whitened = draw.factor.forward(covariances.collect());
        let before = 2.0 * draw.variance * (1.0 - share(one, other));
        Normal {
            mean: dot(&whitened, &draw.whitened),
            deviation: (before - dot(&whitened, &whitened)).max(0.0).sqrt(),
        }
    }
}

/// Matérn's covariance with ν = 5/2 as a share of the variance, by the square of the distance over the length.
fn matern(square: f64) -> f64 {
    let distance = (5.0 * square).sqrt();
    (1.0 + distance + 5.0 / 3.0 * square) * (-distance).exp()
}

fn mixture(each: &[Normal]) -> Normal {
    let count = each.len().max(1) as f64;
    let mean = each.iter().map(|one| one.mean).sum::<f64>() / count;
    let squares = each.iter().map(|one| one.deviation.powi(2) + one.mean.powi(2));
    Normal { mean, deviation: (squares.sum::<f64>() / count - mean * mean).max(0.0).sqrt() }
}

/// The mean gain if only gains count.
fn improvement(gain: Normal) -> f64 {
    if gain.deviation <= 0.0 {
        return gain.mean.max(0.0);
    }
    let z = gain.mean / gain.deviation;
    let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    gain.mean * (1.0 - normal_tail(z)) + gain.deviation * density
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-6
    }

    #[test]
    fn covariance_falls_with_distance_by_materns_formula() {
        // (1 + √5·d + 5/3·d²)·e^(−√5·d), by the square of d.
        for (square, expected) in
            [(0.0, 1.0), (0.25, 0.828_649), (1.0, 0.523_994), (4.0, 0.138_660)]
        {
            let found = matern(square);
            assert!(is_near(found, expected), "{square}: {found}");
        }
    }

    #[test]
    fn expected_improvement_is_the_mean_of_the_positive_part() {
        let of = |mean, deviation| improvement(Normal { mean, deviation });
        // φ(0), Φ(1) + φ(1), the same less 1, and twice the first one.
        for (mean, deviation, expected) in [
            (0.0, 1.0, 0.398_942),
            (1.0, 1.0, 1.083_315),
            (-1.0, 1.0, 0.083_315),
            (0.0, 2.0, 0.797_885),
            (0.3, 0.0, 0.3),
            (-0.3, 0.0, 0.0),
        ] {
            let found = of(mean, deviation);
            assert!(is_near(found, expected), "{mean} ± {deviation}: {found}");
        }
    }
}
