//! The answer of a sweep.

use super::Block;
use super::comparison::{Comparison, DemandRatio, Explanation};
use super::costs::Cost;
use super::disk::{DiskFigures, DiskLimits};
use super::figures::{Demand, Figure, SharedCpus};
use super::laws::LawCheck;
use super::models::{Bounds, ClosedPoint, ClosedSystem, CurvePoint, Knee, QueueModel, UslFit};
use crate::statement::Statement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the option of an experiment that holds its [`Base`].
pub const BASE: &str = "base";

/// All runs with the same settings together.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// The settings.
    pub settings: BTreeMap<String, String>,
    /// The workload, where there are several.
    pub workload: Option<String>,
    /// Places of the runs in [`super::Experiment::points`].
    pub runs: Vec<u32>,
    /// Concurrent clients.
    pub clients: u32,
    /// Rate that was asked for; absent with a closed loop.
    pub offered_rate_per_s: Option<f64>,
    /// Operations per second.
    pub rate_per_s: Figure,
    /// Mean response time.
    pub response_mean_us: Figure,
    /// Mean time that clients waited between an answer and the send of their next operation, over the runs; absent unless the
    /// schedule makes them wait.
    pub think_mean_us: Option<f64>,
    /// Percentiles of the response time, by name, over the merged histograms.
    pub response_us: BTreeMap<String, Figure>,
    /// Share of the operations that failed.
    pub failed_ratio: f64,
    /// Share of the arrivals that were never sent.
    pub dropped_ratio: f64,
    /// What an operation needed of each resource, as a mean over the runs, with the error of that: between the runs, or
    /// inside of the run where there is one. An error of 1 or more is not known.
    pub demands: Vec<Demand>,
    /// What an operation cost, as a mean over the runs, with the interval of that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<Cost>,
    /// How busy each resource was, 0 to 1, by its name.
    pub busy_ratio: BTreeMap<String, f64>,
    /// The devices with the data, one by one; empty where they were not told apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskFigures>,
    /// Checks of the laws: those of the runs, and those that follow from the sweep.
    pub laws: Vec<LawCheck>,
    /// Operations that succeeded in all runs.
    #[serde(default)]
    pub succeeded: u64,
    /// Whether server and client waited for the same CPUs.
    #[serde(default)]
    pub shares_cpus: bool,
    /// The CPUs of both together, where they compete and it is known which these are.
    pub shared_cpus: Option<SharedCpus>,
    /// The server by its program and version; absent where it did not tell.
    pub server: Option<String>,
    /// Whether a run says that the client was the limit.
    pub generator_bound: bool,
    /// Whether a run had no steady state.
    pub unsteady: bool,
}

/// The answer of a sweep.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepAnswer {
    /// Which part of the sweep it is about; absent where there is one only.
    pub block: Option<Block>,
    /// The levels, in ascending order along the axis.
    pub levels: Vec<Level>,
    /// The key that orders them, [`super::CLIENTS`] or [`super::RATE`]; absent where something else is swept.
    pub axis: Option<String>,
    /// Number of the level with the highest rate.
    pub best: u32,
    /// The bench as a closed queueing system, from the demands at the best level.
    pub system: Option<ClosedSystem>,
    /// What the devices with the data allow at the best level; absent where no disk was watched.
    pub disk: Option<DiskLimits>,
    /// The resource that saturates first, of those whose limit is known.
    pub bottleneck: Option<Demand>,
    /// The rate at which that resource has no time left. Without an interval the runs do not tell the error of the demand.
    pub bound_per_s: Option<Figure>,
    /// N*: number of clients where the asymptotes meet. The interval has the errors of the lone client's response time, or of
    /// its rate where it thinks, and of the largest demand; without one of them there is none.
    pub saturation_clients: Option<Figure>,
    /// Bounds at each number of clients from 1 to the largest, thinned out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Bounds>,
    /// The network that the demands make, exactly, over the number of clients: what waiting for the measured
    /// resources alone explains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<ClosedPoint>,
    /// The queue (M/M/1 or M/M/m) that fits the response times, where rates were swept and at least three kept.
    pub queue: Option<QueueModel>,
    /// The scalability law, where clients were swept.
    pub usl: Option<UslFit>,
    /// Why there is no fit.
    pub usl_problem: Option<Statement>,
    /// The fitted curve over the measured range.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usl_curve: Vec<CurvePoint>,
    /// The load where more of it begins to cost more response time than it brings rate; absent where the swept key
    /// is no load.
    pub knee: Option<Knee>,
    /// The levels relative to those with the base; absent without one.
    pub relative: Option<Relative>,
}

/// The answer of such a sweep.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlocksAnswer {
    /// The closed loop over the numbers of clients; absent until a point of it was run.
    pub closed: Option<SweepAnswer>,
    /// The open loop over the offered rates; absent until a point of it was run.
    pub open: Option<SweepAnswer>,
    /// X_max: the highest rate of the closed loop; absent if the client was the limit there, as it is then not a
    /// property of the server, and where another key is swept besides.
    pub x_max_per_s: Option<Figure>,
    /// Whether more clients did not raise the rate, and no higher rate that was offered was kept; where not, X_max is at
    /// least that.
    pub is_x_max_reached: bool,
}

/// The value that the others are compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Base {
    /// The key of the plan.
    pub key: String,
    /// One of its values.
    pub value: String,
}

/// The levels of a sweep relative to a base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Relative {
    /// What they are compared with.
    pub base: Base,
    /// Those that have a base, in the order of the levels, without the bases themselves.
    pub levels: Vec<AgainstBase>,
}

/// A level and its base.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgainstBase {
    /// Number of the level.
    pub level: u32,
    /// Number of the level that has the base and the same other settings.
    pub base: u32,
    /// Comparisons of the level with its base, of the figures that have an interval; the one that decides comes first, if it
    /// has one.
    pub comparisons: Vec<Comparison>,
    /// What an operation needed of each resource, relative to the base.
    pub demands: Vec<DemandRatio>,
    /// What explains the difference; absent where there is none for certain.
    pub explanation: Option<Explanation>,
}
