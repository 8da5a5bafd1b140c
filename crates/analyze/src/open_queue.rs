//! The queue with Poisson arrivals, exponential service and `m` servers (M/M/m, for one server M/M/1), with a
//! constant delay in front of it: the expected response of a server that is only limited by being busy.
//!
//! A. K. Erlang, "Solution of some Problems in the Theory of Probabilities of Significance in Automatic
//! Telephone Exchanges" (1917); L. Kleinrock, *Queueing Systems*, volume 1 (1975), section 3.5. Real servers
//! are often near it in the mean and never in every percentile: less variable service waits less. [`applies`]
//! checks how closely the curve passes the points.

use crate::least_squares::{Fitted, Solution, deviations, interval, minimize};
use crate::resampling::Resampling;
use dyno_record::estimate::Quantity;
use dyno_record::experiment::{OpenQueue, QueueFit};

/// Fewest points for a fit of two parameters with one degree of freedom left.
pub const MIN_POINTS: usize = 3;

/// Largest root mean square distance of the points from a curve that describes them.
pub const MOST_RESIDUAL_RATIO: f64 = 0.1;

/// Random number stream of this method, see [`Resampling::rng`].
const STREAM: u64 = 5;

/// Share of operations that find all servers busy, by Erlang's C formula; 1 from the capacity on.
pub fn waiting_ratio(queue: &OpenQueue, rate_per_s: f64) -> f64 {
    let offered = rate_per_s * queue.service_s;
    let utilization = offered / f64::from(queue.servers);
    if utilization >= 1.0 {
        return 1.0;
    }
    // Erlang's B formula, from one server to the next.
    let blocked = (1..=queue.servers)
        .fold(1.0, |blocked, servers| offered * blocked / (f64::from(servers) + offered * blocked));
    blocked / (1.0 - utilization * (1.0 - blocked))
}

/// Mean response time in seconds; infinite from the capacity on.
pub fn mean_response_s(queue: &OpenQueue, rate_per_s: f64) -> f64 {
    let spare_per_s = queue.capacity_per_s() - rate_per_s;
    if spare_per_s <= 0.0 {
        return f64::INFINITY;
    }
    queue.delay_s + queue.service_s + waiting_ratio(queue, rate_per_s) / spare_per_s
}

/// A measured point of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResponsePoint {
    /// Achieved operations per second.
    pub rate_per_s: f64,
    /// Mean response time in seconds. The uncertainties weight the points against each other and
    /// are used only if all points have one.
    pub mean_response_s: Quantity,
}

/// Whether the curve describes the points: they lie within [`MOST_RESIDUAL_RATIO`] of it.
pub fn applies(fit: &QueueFit) -> bool {
    fit.residual_ratio <= MOST_RESIDUAL_RATIO
}

/// Whether a rate is outside the measured range, so that the curve is extrapolated.
pub fn is_extrapolated(fit: &QueueFit, rate_per_s: f64) -> bool {
    !(fit.measured_rate_min_per_s..=fit.measured_rate_max_per_s).contains(&rate_per_s)
}

/// Fits service time and delay of a queue with this many servers to means over rates, by least squares on
/// logarithms. `None` with fewer than [`MIN_POINTS`] usable points, or if nothing fits.
pub fn fit(points: &[ResponsePoint], servers: u32, resampling: Resampling) -> Option<QueueFit> {
    let usable = |value: f64| value.is_finite() && value > 0.0;
    let all_usable =
        points.iter().all(|point| usable(point.rate_per_s) && usable(point.mean_response_s.value));
    if points.len() < MIN_POINTS || !all_usable || servers == 0 {
        return None;
    }
    let data = Data::of(points, servers);
    let best = data.fit(&data.logarithms)?;
    let degrees_of_freedom = (points.len() - 2) as f64;
    let fitted = data.fitted(&best, degrees_of_freedom);
    let draws = fitted.draws(resampling, resampling.rng(STREAM), |drawn| data.fit(drawn));
    let estimate = |of: &dyn Fn(&[f64; 2]) -> f64| interval(&best, &draws, of);
    let rates = || points.iter().map(|point| point.rate_per_s);
    Some(QueueFit {
        queue: data.queue(&best.parameters),
        service_s: estimate(&|p| p[0])?,
        delay_s: estimate(&|p| p[1])?,
        capacity_per_s: estimate(&|p| f64::from(servers) / p[0])?,
        residual_ratio: fitted.residual_ratio(&data.logarithms),
        measured_rate_min_per_s: rates().fold(f64::INFINITY, f64::min),
        measured_rate_max_per_s: rates().fold(0.0, f64::max),
    })
}

/// Points in the form for the fit. Parameters are the service time and the delay.
struct Data {
    servers: u32,
    rates: Vec<f64>,
    logarithms: Vec<f64>,
    deviations: Vec<f64>,
}

impl Data {
    fn of(points: &[ResponsePoint], servers: u32) -> Data {
        Data {
            servers,
            rates: points.iter().map(|p| p.rate_per_s).collect(),
            logarithms: points.iter().map(|p| p.mean_response_s.value.ln()).collect(),
            deviations: deviations(points.iter().map(|p| p.mean_response_s)),
        }
    }

    fn queue(&self, parameters: &[f64; 2]) -> OpenQueue {
        OpenQueue { servers: self.servers, service_s: parameters[0], delay_s: parameters[1] }
    }

    /// Fits from several starts, as the curve has no value where the largest rate exceeds the capacity.
    fn fit(&self, logarithms: &[f64]) -> Option<Solution<2>> {
        let largest = self.rates.iter().copied().fold(0.0, f64::max);
        let shortest = logarithms.iter().copied().fold(f64::INFINITY, f64::min).exp();
        let solution = |utilization: &f64| {
            let saturating = utilization * f64::from(self.servers) / largest;
            let service_s = saturating.min(shortest);
            let start = [service_s, (shortest - service_s).max(0.0)];
            let residual = |p: &[f64; 2], i: usize| self.residual(p, i, logarithms[i]);
            minimize(self.rates.len(), residual, start, [shortest * 1e-6, 0.0])
        };
        let starts = [0.02, 0.2, 0.5, 0.8, 0.95];
        starts.iter().filter_map(solution).min_by(|a, b| a.squares.total_cmp(&b.squares))
    }

    fn residual(&self, parameters: &[f64; 2], point: usize, logarithm: f64) -> (f64, [f64; 2]) {
        let (rate, deviation) = (self.rates[point], self.deviations[point]);
        let log_response = |service_s: f64| {
            let queue = self.queue(&[service_s, parameters[1]]);
            mean_response_s(&queue, rate).ln()
        };
        let value = log_response(parameters[0]);
        // One-sided towards the shorter service, which always has a value.
        let step = parameters[0] * 1e-6;
        let by_service = (value - log_response(parameters[0] - step)) / step;
        let by_delay = 1.0 / value.exp();
        ((value - logarithm) / deviation, [by_service / deviation, by_delay / deviation])
    }

    fn fitted(&self, best: &Solution<2>, degrees_of_freedom: f64) -> Fitted {
        let queue = self.queue(&best.parameters);
        let values = self.rates.iter().map(|rate| mean_response_s(&queue, *rate).ln());
        Fitted {
            values: values.collect(),
            deviations: self.deviations.clone(),
            squares: best.squares,
            degrees_of_freedom,
        }
    }
}

#[cfg(test)]
mod tests;
