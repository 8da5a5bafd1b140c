//! Answer of a sweep.

use super::Block;
use super::comparison::{Comparison, DemandRatio, Explanation};
use super::costs::Cost;
use super::disk::{DiskFigures, DiskLimits};
use super::figures::{Demand, Figure, SharedCpus};
use super::laws::LawCheck;
use super::models::{Bounds, ClosedPoint, ClosedSystem, CurvePoint, Knee, QueueModel, UslFit};
use super::options::Base;
use crate::statement::Statement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All runs with the same settings.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    pub settings: BTreeMap<String, String>,
    /// Workload, if there are several.
    pub workload: Option<String>,
    /// Indices of the runs in [`super::Experiment::points`].
    pub runs: Vec<u32>,
    /// Concurrent clients.
    pub clients: u32,
    /// Offered rate; absent with a closed loop.
    pub offered_rate_per_s: Option<f64>,
    /// Operations per second.
    pub rate_per_s: Figure,
    /// Mean response time.
    pub response_mean_us: Figure,
    /// Mean time over the runs between an answer and the same client's next send; absent unless the schedule makes
    /// clients wait.
    pub think_mean_us: Option<f64>,
    /// Percentiles of the response time, by name, over the merged histograms.
    pub response_us: BTreeMap<String, Figure>,
    /// Share of operations that failed.
    pub failed_ratio: f64,
    /// Share of arrivals that were never sent.
    pub dropped_ratio: f64,
    /// Service demand at each resource: the mean over the runs. Its error is the variation between the runs, or within
    /// a single run. An error of 1 or more means unknown.
    pub demands: Vec<Demand>,
    /// Cost of an operation: the mean over the runs, with its interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<Cost>,
    /// Utilization of each resource, 0 to 1, by its name.
    pub busy_ratio: BTreeMap<String, f64>,
    /// Each data device; empty if they were not distinguished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskFigures>,
    /// Checks of the laws, from the runs and from the sweep.
    pub laws: Vec<LawCheck>,
    /// Successful operations of all runs.
    #[serde(default)]
    pub succeeded: u64,
    /// Whether server and client competed for the same CPUs.
    #[serde(default)]
    pub shares_cpus: bool,
    /// CPUs of server and client, if they compete and the CPUs are known.
    pub shared_cpus: Option<SharedCpus>,
    /// Program and version of the server; absent if it did not report them.
    pub server: Option<String>,
    /// Whether the client was the limit in at least one run.
    pub generator_bound: bool,
    /// Whether at least one run did not reach a steady state.
    pub unsteady: bool,
}

/// Answer of a sweep.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepAnswer {
    /// Block of the sweep; absent without blocks.
    pub block: Option<Block>,
    /// Levels in ascending order along the axis.
    pub levels: Vec<Level>,
    /// The ordered key, [`super::CLIENTS`] or [`super::RATE`]; absent if another key is swept.
    pub axis: Option<String>,
    /// Index of the level with the highest rate.
    pub best: u32,
    /// Closed queueing system with the demands at the best level.
    pub system: Option<ClosedSystem>,
    /// Limits by the data devices at the best level; absent if no disk was observed.
    pub disk: Option<DiskLimits>,
    /// The resource that saturates first, among those with known limits.
    pub bottleneck: Option<Demand>,
    /// Rate at which the bottleneck is always busy. Without an interval, the error of its demand is unknown.
    pub bound_per_s: Option<Figure>,
    /// N*: number of clients at which the asymptotes meet. Its interval combines the errors of the lone client's
    /// response time (or its rate, with think time) and of the largest demand; absent if one of them is unknown.
    pub saturation_clients: Option<Figure>,
    /// Bounds at each number of clients from 1 to the largest, downsampled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Bounds>,
    /// Exact solution of the closed queueing network with the measured demands, over the number of clients: the
    /// response time that waiting for these resources alone explains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<ClosedPoint>,
    /// Queueing model (M/M/1 or M/M/m) that fits the response times, if at least three offered rates were swept and
    /// kept.
    pub queue: Option<QueueModel>,
    /// Universal scalability law, if clients were swept.
    pub usl: Option<UslFit>,
    /// Why there is no fit.
    pub usl_problem: Option<Statement>,
    /// The fitted curve over the measured range.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usl_curve: Vec<CurvePoint>,
    /// The load at which more load begins to cost more response time than it adds rate; absent if the swept key is not
    /// a load.
    pub knee: Option<Knee>,
    /// Levels relative to the base; absent without a base.
    pub relative: Option<Relative>,
}

/// Answer of a sweep over numbers of clients, then offered rates.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlocksAnswer {
    /// Closed loop over the numbers of clients; absent until one of its points was run.
    pub closed: Option<SweepAnswer>,
    /// Open loop over the offered rates; absent until one of its points was run.
    pub open: Option<SweepAnswer>,
    /// X_max: the highest rate of the closed loop; absent if the client was the limit, because the rate is then not a
    /// property of the server, and if another key is swept as well.
    pub x_max_per_s: Option<Figure>,
    /// Whether neither more clients nor a higher offered rate raised the rate; if false, X_max is a lower bound.
    pub is_x_max_reached: bool,
}

/// Levels of a sweep relative to a base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Relative {
    pub base: Base,
    /// Levels that have a base, in the order of the levels, without the bases themselves.
    pub levels: Vec<AgainstBase>,
}

/// A level and its base.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgainstBase {
    /// Index of the level.
    pub level: u32,
    /// Index of the level that has the base and the same other settings.
    pub base: u32,
    /// Comparisons of the level with its base, of the figures with an interval; the deciding one comes first, if it
    /// exists.
    pub comparisons: Vec<Comparison>,
    /// Service demands relative to the base.
    pub demands: Vec<DemandRatio>,
    /// Explanation of the difference; absent if the difference is not certain.
    pub explanation: Option<Explanation>,
}
