//! Non-linear least squares with lower bounds on the parameters, for curves with few parameters.
//!
//! Levenberg's and Marquardt's method: D. W. Marquardt, "An Algorithm for Least-Squares Estimation of Nonlinear
//! Parameters", *SIAM Journal* 11 (1963). A parameter on its bound that is pushed outwards stays there for the
//! step; other steps are cut off at the bounds.
//!
//! Intervals of the parameters come from drawn data: points on the fitted curve with errors of a randomly drawn
//! variance (residual squares over χ²), each refitted. For a linear model this gives Student's interval, so
//! that few points give wide intervals (A. Gelman et al., *Bayesian Data Analysis* (2013), section 14.2).
//! Assumption: independent normal errors around the right curve.

use crate::estimate::{CONFIDENCE_RATIO, estimate};
use crate::resampling::{Resampling, middle};
use dyno_record::estimate::{Estimate, Quantity};
use rand::Rng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

/// Steps after which the search gives up; the curves here need about ten.
const MOST_STEPS: usize = 200;

/// Relative decrease of the sum of squares below which the search has converged.
const CONVERGED_RATIO: f64 = 1e-13;

/// The parameters with the remaining sum of squared residuals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Solution<const P: usize> {
    pub(crate) parameters: [f64; P],
    pub(crate) squares: f64,
}

/// Finds the parameters with the smallest sum of squared residuals, from `start`, none of them below its bound.
/// `residual` returns the weighted residual of the point with this number and its derivatives by the
/// parameters. `None` if the residuals at `start` are not finite.
pub(crate) fn minimize<const P: usize>(
    points: usize,
    residual: impl Fn(&[f64; P], usize) -> (f64, [f64; P]),
    start: [f64; P],
    lower: [f64; P],
) -> Option<Solution<P>> {
    let mut best = Solution { parameters: start, squares: squares(points, &residual, &start) };
    let mut damping = 1e-3;
    for _ in 0..MOST_STEPS {
        if !best.squares.is_finite() {
            return None;
        }
        let normal = Normal::of(points, &residual, &best.parameters);
        let Some(parameters) = normal.step(&best.parameters, &lower, damping) else {
            break;
        };
        let squares = squares(points, &residual, &parameters);
        // NaN compares false, so that it counts as worse.
        if squares <= best.squares {
            let gain = best.squares - squares;
            best = Solution { parameters, squares };
            if gain <= CONVERGED_RATIO * squares {
                break;
            }
            damping = (damping / 5.0).max(1e-12);
        } else {
            damping *= 4.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    Some(best)
}

/// A fitted curve as the source of drawn data. All values are on the fitted scale.
pub(crate) struct Fitted {
    /// The curve at each point.
    pub(crate) values: Vec<f64>,
    /// Deviation of each point in the unit of the residuals, see [`deviations`].
    pub(crate) deviations: Vec<f64>,
    /// Sum of squared residuals.
    pub(crate) squares: f64,
    /// Number of points minus number of parameters; at least 1.
    pub(crate) degrees_of_freedom: f64,
}

impl Fitted {
    /// Parameters refitted to drawn data, without draws that could not be fitted.
    pub(crate) fn draws<const P: usize>(
        &self,
        resampling: Resampling,
        mut rng: impl Rng,
        refit: impl Fn(&[f64]) -> Option<Solution<P>>,
    ) -> Vec<[f64; P]> {
        let chi_squared = ChiSquared::new(self.degrees_of_freedom)
            .expect("a fit with at least one degree of freedom");
        let mut draw = |_| {
            let deviation = (self.squares / chi_squared.sample(&mut rng)).sqrt();
            let point = |(value, own): (&f64, &f64)| {
                let error: f64 = StandardNormal.sample(&mut rng);
                value + deviation * own * error
            };
            let drawn: Vec<f64> = self.values.iter().zip(&self.deviations).map(point).collect();
            refit(&drawn).map(|solution| solution.parameters)
        };
        (0..resampling.draws).filter_map(&mut draw).collect()
    }

    /// Root mean square distance of the measured points from the curve, corrected for the parameters.
    pub(crate) fn residual_ratio(&self, measured: &[f64]) -> f64 {
        let distances = self.values.iter().zip(measured).map(|(value, own)| (value - own).powi(2));
        (distances.sum::<f64>() / self.degrees_of_freedom).sqrt()
    }
}

/// A number that follows from the parameters, with its interval over drawn data; `None` without draws.
pub(crate) fn interval<const P: usize>(
    best: &Solution<P>,
    draws: &[[f64; P]],
    of: impl Fn(&[f64; P]) -> f64,
) -> Option<Estimate> {
    let value = of(&best.parameters);
    let mut drawn: Vec<f64> = draws.iter().map(of).collect();
    let (low, high) = middle(&mut drawn, CONFIDENCE_RATIO)?;
    Some(estimate(value, low.min(value), high.max(value)))
}

/// Smallest uncertainty of a point as a share of the median of all: a lucky estimate from a short series must
/// not dominate the fit.
const LEAST_SHARE_OF_MEDIAN: f64 = 0.25;

/// Relative deviations of points against each other; all 1 unless every point has its own.
pub(crate) fn deviations(points: impl Iterator<Item = Quantity>) -> Vec<f64> {
    let own: Vec<f64> = points.map(|point| point.uncertainty_ratio).collect();
    if !own.iter().all(|u| u.is_finite() && *u > 0.0) {
        return vec![1.0; own.len()];
    }
    let mut sorted = own.clone();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    let limited = |u: &f64| (u / median).max(LEAST_SHARE_OF_MEDIAN);
    own.iter().map(limited).collect()
}

fn squares<const P: usize>(
    points: usize,
    residual: &impl Fn(&[f64; P], usize) -> (f64, [f64; P]),
    parameters: &[f64; P],
) -> f64 {
    (0..points).map(|point| residual(parameters, point).0.powi(2)).sum()
}

/// The normal equations `JᵀJ step = −Jᵀr`.
struct Normal<const P: usize> {
    matrix: [[f64; P]; P],
    gradient: [f64; P],
}

impl<const P: usize> Normal<P> {
    fn of(
        points: usize,
        residual: &impl Fn(&[f64; P], usize) -> (f64, [f64; P]),
        parameters: &[f64; P],
    ) -> Self {
        let mut normal = Normal { matrix: [[0.0; P]; P], gradient: [0.0; P] };
        for point in 0..points {
            let (value, slopes) = residual(parameters, point);
            for row in 0..P {
                normal.gradient[row] += slopes[row] * value;
                for column in 0..P {
                    normal.matrix[row][column] += slopes[row] * slopes[column];
                }
            }
        }
        normal
    }

    /// The parameters after one damped step; `None` if the equations have no solution.
    fn step(&self, parameters: &[f64; P], lower: &[f64; P], damping: f64) -> Option<[f64; P]> {
        let held: [bool; P] =
            std::array::from_fn(|i| parameters[i] <= lower[i] && self.gradient[i] > 0.0);
        let mut matrix = self.matrix;
        let mut right = self.gradient.map(|slope| -slope);
        for i in 0..P {
            if held[i] || matrix[i][i] == 0.0 {
                matrix[i] = [0.0; P];
                (0..P).for_each(|row| matrix[row][i] = 0.0);
                matrix[i][i] = 1.0;
                right[i] = 0.0;
            } else {
                matrix[i][i] *= 1.0 + damping;
            }
        }
        let step = solve(matrix, right)?;
        Some(std::array::from_fn(|i| (parameters[i] + step[i]).max(lower[i])))
    }
}

/// Solves linear equations by elimination with row exchange; `None` if they are singular.
pub(crate) fn solve<const P: usize>(
    mut matrix: [[f64; P]; P],
    mut right: [f64; P],
) -> Option<[f64; P]> {
    for column in 0..P {
        let pivot = (column..P)
            .max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        let divisor = matrix[column][column];
        if divisor == 0.0 || !divisor.is_finite() {
            return None;
        }
        let pivot_row = matrix[column];
        for row in column + 1..P {
            let factor = matrix[row][column] / divisor;
            for (value, above) in matrix[row].iter_mut().zip(pivot_row) {
                *value -= factor * above;
            }
            right[row] -= factor * right[column];
        }
    }
    for row in (0..P).rev() {
        let known: f64 = (row + 1..P).map(|i| matrix[row][i] * right[i]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_equations_are_solved_with_row_exchange() {
        let solution = solve([[0.0, 2.0], [4.0, 1.0]], [6.0, 11.0]).unwrap();
        assert_eq!(solution, [2.0, 3.0]);
        assert_eq!(solve([[1.0, 2.0], [2.0, 4.0]], [1.0, 2.0]), None);
    }

    /// Decay `a exp(−b x)` through exact points.
    fn decay(a: f64, b: f64, lower: [f64; 2]) -> Solution<2> {
        let observed: Vec<f64> = (0..10).map(|x| a * (-b * f64::from(x)).exp()).collect();
        let residual = |p: &[f64; 2], i: usize| {
            let x = i as f64;
            let shape = (-p[1] * x).exp();
            (p[0] * shape - observed[i], [shape, -p[0] * x * shape])
        };
        minimize(observed.len(), residual, [1.0, 1.0], lower).unwrap()
    }

    #[test]
    fn a_curve_through_exact_points_is_found() {
        let found = decay(5.0, 0.3, [0.0, 0.0]);
        assert!((found.parameters[0] - 5.0).abs() < 1e-6, "{found:?}");
        assert!((found.parameters[1] - 0.3).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_parameter_stops_at_its_bound() {
        let found = decay(5.0, -0.1, [0.0, 0.0]);
        assert_eq!(found.parameters[1], 0.0);
        let mean = (0..10).map(|x| 5.0 * (0.1 * f64::from(x)).exp()).sum::<f64>() / 10.0;
        assert!((found.parameters[0] - mean).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_start_without_a_value_is_refused() {
        let residual = |_: &[f64; 1], _: usize| (f64::NAN, [0.0]);
        assert!(minimize(1, residual, [1.0], [0.0]).is_none());
    }
}
