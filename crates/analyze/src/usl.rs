//! The universal scalability law: how the rate grows with the clients, and where it falls again.
//!
//! `X(N) = λ N / (1 + σ (N − 1) + κ N (N − 1))` with the rate `λ` of a lone client, the contention
//! `σ ≥ 0` and the cost of coherency `κ ≥ 0`: N. J. Gunther, *Guerrilla Capacity Planning* (2007),
//! chapters 4 to 6. Without `κ` the rate tends to `λ / σ`; with it, it peaks at `N = √((1 − σ) / κ)`.
//!
//! The fit is least squares on logarithms, as rates err in proportion to themselves, each point weighted by its
//! own uncertainty if it has one, with intervals from drawn data (`least_squares.rs`). Assumptions: independent
//! errors, and that the law is the right curve; `residual_ratio` shows where it is not.

use crate::estimate;
use crate::least_squares::{Fitted, Solution, deviations, interval, minimize};
use crate::resampling::Resampling;
use dyno_record::estimate::{Estimate, Quantity};
use dyno_record::experiment::{OpenEstimate, UslFit, UslPeak};
use dyno_record::statement;
use dyno_record::statement::Statement;

/// Fewest points for a fit of three parameters with one degree of freedom left.
pub const MIN_POINTS: usize = 4;

/// Fewest different numbers of clients.
pub const MIN_LEVELS: usize = 3;

/// Random number stream of this method, see [`Resampling::rng`].
const STREAM: u64 = 1;

/// A measured rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UslPoint {
    /// Number of clients, at least 1.
    pub clients: u32,
    /// Operations per second. The uncertainties weight the points against each other and are used only if all
    /// points have one.
    pub rate_per_s: Quantity,
}

/// Reason for a failed fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UslError {
    /// Three parameters need more points.
    #[error(
        "the scalability law needs {MIN_POINTS} points at {MIN_LEVELS} numbers of clients, and there are {points} at {levels}"
    )]
    TooFewPoints {
        points: usize,
        /// Number of different client counts among them.
        levels: usize,
    },
    /// A point has a rate or a number of clients that is not positive.
    #[error("a rate at {clients} clients is not a positive number")]
    NotPositive { clients: u32 },
    /// The search for the parameters failed.
    #[error("no parameters of the scalability law fit the points")]
    NoSolution,
}

impl UslError {
    /// The recorded form.
    pub fn statement(self) -> Statement {
        match self {
            UslError::TooFewPoints { points, levels } => statement!(
                "usl-too-few-points",
                least_points = MIN_POINTS,
                least_levels = MIN_LEVELS,
                points = points,
                levels = levels
            ),
            UslError::NotPositive { clients } => statement!("usl-not-positive", clients = clients),
            UslError::NoSolution => statement!("usl-no-solution"),
        }
    }
}

/// The rate of the fitted curve at this number of clients, per second.
pub fn rate_at(fit: &UslFit, clients: f64) -> f64 {
    curve(&[fit.lambda_per_s.value, fit.sigma_ratio.value, fit.kappa_ratio.value], clients)
}

/// Fits the law to points; several may have the same number of clients.
pub fn fit(points: &[UslPoint], resampling: Resampling) -> Result<UslFit, UslError> {
    check(points)?;
    let data = Data::of(points);
    let best = data.fit(&data.logarithms).ok_or(UslError::NoSolution)?;
    let degrees_of_freedom = (points.len() - 3) as f64;
    let fitted = data.fitted(&best, degrees_of_freedom);
    let draws = fitted.draws(resampling, resampling.rng(STREAM), |drawn| data.fit(drawn));
    let estimate = |of: fn(&[f64; 3]) -> f64| {
        let value = of(&best.parameters);
        interval(&best, &draws, of).unwrap_or_else(|| estimate::estimate(value, value, value))
    };
    let measured = || points.iter().map(|point| point.clients);
    let measured_clients_max = measured().max().unwrap_or_default();
    Ok(UslFit {
        lambda_per_s: estimate(|p| p[0]),
        sigma_ratio: estimate(|p| p[1]),
        kappa_ratio: estimate(|p| p[2]),
        peak: peak(estimate, measured_clients_max),
        residual_ratio: fitted.residual_ratio(&data.logarithms),
        measured_clients_min: measured().min().unwrap_or_default(),
        measured_clients_max,
    })
}

fn check(points: &[UslPoint]) -> Result<(), UslError> {
    let usable =
        |p: &&UslPoint| p.clients > 0 && p.rate_per_s.value.is_finite() && p.rate_per_s.value > 0.0;
    if let Some(bad) = points.iter().find(|point| !usable(point)) {
        return Err(UslError::NotPositive { clients: bad.clients });
    }
    let mut levels: Vec<u32> = points.iter().map(|point| point.clients).collect();
    levels.sort_unstable();
    levels.dedup();
    if points.len() < MIN_POINTS || levels.len() < MIN_LEVELS {
        Err(UslError::TooFewPoints { points: points.len(), levels: levels.len() })
    } else {
        Ok(())
    }
}

fn divisor(parameters: &[f64; 3], clients: f64) -> f64 {
    1.0 + parameters[1] * (clients - 1.0) + parameters[2] * clients * (clients - 1.0)
}

fn curve(parameters: &[f64; 3], clients: f64) -> f64 {
    parameters[0] * clients / divisor(parameters, clients)
}

/// Number of clients with the highest rate; infinite if the rate never falls.
fn peak_clients(parameters: &[f64; 3]) -> f64 {
    let [_, sigma, kappa] = *parameters;
    ((1.0 - sigma).max(0.0) / kappa).sqrt().max(1.0)
}

/// The highest rate, or the limit of the rate if it never falls.
fn peak_rate(parameters: &[f64; 3]) -> f64 {
    let clients = peak_clients(parameters);
    if clients.is_finite() { curve(parameters, clients) } else { parameters[0] / parameters[1] }
}

fn peak(
    estimate: impl Fn(fn(&[f64; 3]) -> f64) -> Estimate,
    measured_clients_max: u32,
) -> Option<UslPeak> {
    let open = |of: fn(&[f64; 3]) -> f64| {
        let Estimate { value, low, high, .. } = estimate(of);
        OpenEstimate { value, low, high: high.is_finite().then_some(high) }
    };
    let clients = open(peak_clients);
    clients.value.is_finite().then(|| UslPeak {
        clients,
        rate_per_s: open(peak_rate),
        extrapolated: clients.value > f64::from(measured_clients_max),
    })
}

/// Points in the form that the fit works on.
struct Data {
    clients: Vec<f64>,
    logarithms: Vec<f64>,
    /// Relative uncertainty of each point, in a common unit.
    deviations: Vec<f64>,
}

impl Data {
    fn of(points: &[UslPoint]) -> Data {
        Data {
            clients: points.iter().map(|p| f64::from(p.clients)).collect(),
            logarithms: points.iter().map(|p| p.rate_per_s.value.ln()).collect(),
            deviations: deviations(points.iter().map(|p| p.rate_per_s)),
        }
    }

    fn fit(&self, logarithms: &[f64]) -> Option<Solution<3>> {
        let residual = |p: &[f64; 3], i: usize| {
            let n = self.clients[i];
            let divisor = divisor(p, n);
            let distance = (p[0] * n / divisor).ln() - logarithms[i];
            let slopes = [1.0 / p[0], -(n - 1.0) / divisor, -n * (n - 1.0) / divisor];
            let deviation = self.deviations[i];
            (distance / deviation, slopes.map(|slope| slope / deviation))
        };
        let start = self.start(logarithms)?;
        let lower = [start[0] * 1e-6, 0.0, 0.0];
        minimize(self.clients.len(), residual, start, lower)
    }

    /// The law is linear in `N / X = a + b (N − 1) + c N (N − 1)` with λ = 1 / a, σ = b / a and κ = c / a; the
    /// linear fit is biased, but a good starting point.
    fn start(&self, logarithms: &[f64]) -> Option<[f64; 3]> {
        let residual = |p: &[f64; 3], i: usize| {
            let n = self.clients[i];
            let rate_per_client = logarithms[i].exp() / n;
            let terms = [1.0, n - 1.0, n * (n - 1.0)].map(|term| term * rate_per_client);
            let sum: f64 = p.iter().zip(terms).map(|(p, term)| p * term).sum();
            let deviation = self.deviations[i];
            ((sum - 1.0) / deviation, terms.map(|term| term / deviation))
        };
        let cycles = self.clients.iter().zip(logarithms).map(|(n, log)| n / log.exp());
        let shortest = cycles.fold(f64::INFINITY, f64::min);
        let lower = [shortest * 1e-3, 0.0, 0.0];
        let line = minimize(self.clients.len(), residual, [shortest, 0.0, 0.0], lower)?;
        let [a, b, c] = line.parameters;
        Some([1.0 / a, b / a, c / a])
    }

    fn fitted(&self, best: &Solution<3>, degrees_of_freedom: f64) -> Fitted {
        Fitted {
            values: self.clients.iter().map(|n| curve(&best.parameters, *n).ln()).collect(),
            deviations: self.deviations.clone(),
            squares: best.squares,
            degrees_of_freedom,
        }
    }
}

#[cfg(test)]
mod tests;
