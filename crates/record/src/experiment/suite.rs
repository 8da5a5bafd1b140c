//! The answer of a suite: several workloads in one table, with each setting beside the others.

use super::figures::Figure;
use super::sweep::{Level, Relative};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Key of the axis of the workloads. It is no key of a plan.
pub const WORKLOAD: &str = "workload";

/// Name of the option of an experiment with several workloads that holds the plan of each by its name, without secrets.
pub const PLANS: &str = "plans";

/// Name of the option of an experiment that holds [`SuiteAnswer::below_us`].
pub const BELOW_US: &str = "below_us";

/// The answer of a suite.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteAnswer {
    /// The load phases, one row for each setting; empty if nothing was loaded.
    pub loads: Vec<SuiteLoad>,
    /// Each workload with each setting, in the order of the axes.
    pub rows: Vec<SuiteRow>,
    /// The time of which is told what share of the operations took less, in microseconds; absent if none was named.
    pub below_us: Option<f64>,
    /// The rows relative to those with the base and the same workload; absent unless one setting has several values.
    pub relative: Option<Relative>,
}

/// A workload with a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteRow {
    /// All operations together.
    pub level: Level,
    /// Each kind of operation by its name. Of a read-modify-write the parts are there besides the whole.
    pub operations: BTreeMap<String, SuiteOperation>,
}

/// One kind of operation over all runs of a row.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteOperation {
    /// Operations that succeeded.
    pub count: u64,
    /// Operations that failed; their times are in none of the figures.
    pub errors: u64,
    /// Mean response time.
    pub response_mean_us: Figure,
    /// Percentiles of the response time, by their names in [`super::PERCENTILES`].
    pub response_us: BTreeMap<String, Figure>,
    /// Longest response time of the whole phase, in microseconds.
    pub max_us: f64,
    /// Share of the successful operations that took less than [`SuiteAnswer::below_us`], 0 to 1.
    pub below_ratio: Option<Figure>,
}

/// The load phases with a setting: the first one of each round, which fills a server that has just been started, or a
/// collection that has just been dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteLoad {
    /// The settings.
    pub settings: BTreeMap<String, String>,
    /// Places of the runs that they belong to in [`super::Experiment::points`].
    pub runs: Vec<u32>,
    /// Documents per insert command, as a mean.
    pub documents_per_command: f64,
    /// Documents per second.
    pub documents_per_s: Figure,
    /// The insert commands.
    pub commands: SuiteOperation,
}
