//! Models that were fitted to the points of a sweep: bounds, the closed network, the scalability law, the knee and the open
//! queue. How they are fitted, and what follows from them, is in `dyno-analyze`.

use super::figures::Demand;
use crate::estimate::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A closed system: clients that think, and resources that they share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClosedSystem {
    /// What an operation needs of each resource.
    pub demands: Vec<Demand>,
    /// Part of the response time that no resource accounts for and that does not grow with the load,
    /// such as the network: the response time of a lone client less all demands. In seconds.
    pub delay_s: f64,
    /// Time between an answer and the intended start of the client's next operation, in seconds: that of a lone client, or of
    /// the best level where there is none.
    pub think_time_s: f64,
}

impl ClosedSystem {
    /// Response time of a lone client, in seconds: all demands and the delay.
    pub fn lone_response_s(&self) -> f64 {
        self.delay_s
            + self
                .demands
                .iter()
                .map(|demand| demand.demand_s)
                .sum::<f64>()
    }
}

/// Bounds at one number of clients. Response times include the delay, not the thinking.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bounds {
    /// Number of clients.
    pub clients: u32,
    /// Asymptotic bound: no rate is below.
    pub rate_low_per_s: f64,
    /// Asymptotic bound: no rate is above.
    pub rate_high_per_s: f64,
    /// Asymptotic bound: no mean response time is below.
    pub response_low_s: f64,
    /// Asymptotic bound: no mean response time is above.
    pub response_high_s: f64,
    /// Balanced job bound from below; at least `rate_low_per_s`.
    pub balanced_rate_low_per_s: f64,
    /// Balanced job bound from above; at most `rate_high_per_s`.
    pub balanced_rate_high_per_s: f64,
    /// Balanced job bound from below; at least `response_low_s`.
    pub balanced_response_low_s: f64,
    /// Balanced job bound from above; at most `response_high_s`.
    pub balanced_response_high_s: f64,
}

/// One point of the curves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClosedPoint {
    /// Number of clients.
    pub clients: u32,
    /// Operations per second.
    pub rate_per_s: f64,
    /// Mean response time in seconds, with the delay and without the thinking.
    pub response_s: f64,
}

/// The knee, or why there is none. Loads are in the unit of the points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Knee {
    /// The load with the highest power.
    Found {
        /// The load, placed between the measured ones.
        load: f64,
        /// Highest measured load below which the power certainly is lower, or the lowest measured.
        low: f64,
        /// Lowest measured load above which the power certainly is lower, or the highest measured.
        high: f64,
        /// Achieved rate there, operations per second.
        rate_per_s: f64,
        /// Response time there, in seconds.
        response_s: f64,
    },
    /// The power still grows at the highest load: the knee is above it.
    AboveMeasured {
        /// The highest load that was measured.
        highest_load: f64,
    },
    /// The power falls from the lowest load on: the knee is at it or below.
    BelowMeasured {
        /// The lowest load that was measured.
        lowest_load: f64,
    },
    /// Too few loads with a rate and a response time.
    TooFewLoads,
}

/// A value whose interval may have no upper end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenEstimate {
    /// The value.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end; absent if the data do not bound it.
    pub high: Option<f64>,
}

/// The highest point of the fitted curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UslPeak {
    /// Number of clients there.
    pub clients: OpenEstimate,
    /// Operations per second there.
    pub rate_per_s: OpenEstimate,
    /// The peak lies beyond the largest number of clients that was measured: a guess, not a finding.
    pub extrapolated: bool,
}

/// The fitted law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UslFit {
    /// λ: rate of a lone client, operations per second.
    pub lambda_per_s: Estimate,
    /// σ: share of the work that cannot be done side by side.
    pub sigma_ratio: Estimate,
    /// κ: cost of keeping each pair of clients consistent, as a share of the work.
    pub kappa_ratio: Estimate,
    /// The peak; absent if the fitted curve has none (κ = 0).
    pub peak: Option<UslPeak>,
    /// Root mean square of the relative distances of the points from the curve, corrected for the
    /// three parameters. Well above the noise of the points, the law does not describe the system.
    pub residual_ratio: f64,
    /// Smallest number of clients that was measured.
    pub measured_clients_min: u32,
    /// Largest number of clients that was measured.
    pub measured_clients_max: u32,
}

/// A point of a fitted curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Number of clients.
    pub clients: f64,
    /// Operations per second.
    pub rate_per_s: f64,
}

/// A queue with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenQueue {
    /// Servers that work side by side, at least 1.
    pub servers: u32,
    /// Mean time of one service, in seconds.
    pub service_s: f64,
    /// Time that is added to every response and does not depend on the load, in seconds.
    pub delay_s: f64,
}

impl OpenQueue {
    /// The rate that is never reached, operations per second.
    pub fn capacity_per_s(&self) -> f64 {
        f64::from(self.servers) / self.service_s
    }
}

/// The queue that passes the points most closely.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueFit {
    /// Its parameters.
    pub queue: OpenQueue,
    /// Mean time of one service, in seconds.
    pub service_s: Estimate,
    /// Delay that does not depend on the load, in seconds.
    pub delay_s: Estimate,
    /// The rate that is never reached, operations per second.
    pub capacity_per_s: Estimate,
    /// Root mean square of the relative distances of the points from the curve, corrected for the
    /// two parameters.
    pub residual_ratio: f64,
    /// Smallest rate that was measured, operations per second.
    pub measured_rate_min_per_s: f64,
    /// Largest rate that was measured, operations per second.
    pub measured_rate_max_per_s: f64,
}

/// A point of the curve of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueuePoint {
    /// Operations per second.
    pub rate_per_s: f64,
    /// Mean response time in seconds.
    pub response_s: f64,
}

/// The queue that fits the points of a sweep over rates.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueModel {
    /// The fit.
    pub fit: QueueFit,
    /// Whether the queue describes the points; if not, the curve is shown to be looked at, and nothing follows from it.
    pub applies: bool,
    /// A measured rate that is above the capacity of the queue and its interval; the queue does not apply then.
    pub contradicted_by_per_s: Option<f64>,
    /// The curve over the rates that were measured and kept; not beyond them.
    pub curve: Vec<QueuePoint>,
}
