//! Models fitted to the points of a sweep: bounds, the closed network, the scalability law, the knee and the open
//! queue. `dyno-analyze` fits them and draws conclusions.

use super::figures::Demand;
use crate::estimate::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A closed system: clients with think time, and the resources that they share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClosedSystem {
    /// Service demand of each resource.
    pub demands: Vec<Demand>,
    /// Part of the response time, in seconds, that belongs to no resource and does not grow with the load, such as
    /// network delay: the response time of a lone client minus all demands.
    pub delay_s: f64,
    /// Time in seconds between an answer and the intended start of the client's next operation: a lone client's, or the
    /// best level's if no level has a lone client.
    pub think_time_s: f64,
}

impl ClosedSystem {
    /// Response time of a lone client, in seconds: all demands plus the delay.
    pub fn lone_response_s(&self) -> f64 {
        self.delay_s + self.demands.iter().map(|demand| demand.demand_s).sum::<f64>()
    }
}

/// Bounds for a number of clients. Response times include the delay, but not the think time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bounds {
    pub clients: u32,
    /// Asymptotic lower bound.
    pub rate_low_per_s: f64,
    /// Asymptotic upper bound.
    pub rate_high_per_s: f64,
    /// Asymptotic lower bound of the mean response time.
    pub response_low_s: f64,
    /// Asymptotic upper bound of the mean response time.
    pub response_high_s: f64,
}

/// A point of the closed network's curves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClosedPoint {
    pub clients: u32,
    /// Operations per second.
    pub rate_per_s: f64,
    /// Mean response time in seconds, including the delay but not the think time.
    pub response_s: f64,
}

/// The knee, or why there is none. Loads are in the unit of the points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Knee {
    /// The load with the highest power.
    Found {
        /// Load, interpolated between the measured ones.
        load: f64,
        /// Highest measured load below the knee with certainly lower power, or the lowest measured load.
        low: f64,
        /// Lowest measured load above the knee with certainly lower power, or the highest measured load.
        high: f64,
        /// Achieved rate at the knee, operations per second.
        rate_per_s: f64,
        /// Response time at the knee, in seconds.
        response_s: f64,
    },
    /// The power still grows at the highest load: the knee is higher.
    AboveMeasured { highest_load: f64 },
    /// The power falls from the lowest load on: the knee is at or below it.
    BelowMeasured { lowest_load: f64 },
    /// Too few loads with a rate and a response time.
    TooFewLoads,
}

/// A value with an interval that may be unbounded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenEstimate {
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end; absent if the data do not bound it.
    pub high: Option<f64>,
}

/// The maximum of the fitted curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UslPeak {
    /// Number of clients at the maximum.
    pub clients: OpenEstimate,
    /// Operations per second at the maximum.
    pub rate_per_s: OpenEstimate,
    /// Whether the peak is beyond the largest measured number of clients: a guess, not a finding.
    pub extrapolated: bool,
}

/// The fitted scalability law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UslFit {
    /// λ: rate of a lone client, operations per second.
    pub lambda_per_s: Estimate,
    /// σ: share of the work that cannot run in parallel.
    pub sigma_ratio: Estimate,
    /// κ: cost of keeping each pair of clients consistent, as a share of the work.
    pub kappa_ratio: Estimate,
    /// The peak; absent if the fitted curve has none (κ = 0).
    pub peak: Option<UslPeak>,
    /// Root mean square of the relative distances of the points from the curve, corrected for the three parameters. If
    /// it is well above the noise of the points, the law does not describe the system.
    pub residual_ratio: f64,
    /// Smallest measured number of clients.
    pub measured_clients_min: u32,
    /// Largest measured number of clients.
    pub measured_clients_max: u32,
}

/// A point of a fitted curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    pub clients: f64,
    /// Operations per second.
    pub rate_per_s: f64,
}

/// Parameters of an open queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenQueue {
    /// Number of parallel servers, at least 1.
    pub servers: u32,
    /// Mean service time in seconds.
    pub service_s: f64,
    /// Constant addition to every response time, in seconds.
    pub delay_s: f64,
}

impl OpenQueue {
    /// Capacity in operations per second, which is never reached.
    pub fn capacity_per_s(&self) -> f64 {
        f64::from(self.servers) / self.service_s
    }
}

/// The best-fitting queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueFit {
    pub queue: OpenQueue,
    /// Mean service time in seconds.
    pub service_s: Estimate,
    /// Constant delay in seconds.
    pub delay_s: Estimate,
    /// Capacity in operations per second, which is never reached.
    pub capacity_per_s: Estimate,
    /// Root mean square of the relative distances of the points from the curve, corrected for the two parameters.
    pub residual_ratio: f64,
    /// Smallest measured rate, operations per second.
    pub measured_rate_min_per_s: f64,
    /// Largest measured rate, operations per second.
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
    pub fit: QueueFit,
    /// Whether the queue describes the points; if not, the curve is only shown, and no conclusion is drawn.
    pub applies: bool,
    /// A measured rate above the queue's capacity and its interval, in which case the queue does not apply.
    pub contradicted_by_per_s: Option<f64>,
    /// The curve over the measured and kept rates; not beyond them.
    pub curve: Vec<QueuePoint>,
}
