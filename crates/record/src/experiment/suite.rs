//! Answer of a suite: several workloads in one table, with the settings side by side.

use super::figures::Figure;
use super::sweep::{Level, Relative};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Axis key for the workloads, which is not a key of the plan.
pub const WORKLOAD: &str = "workload";

/// Answer of a suite.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteAnswer {
    /// Load phases, one row for each setting; empty if nothing was loaded.
    pub loads: Vec<SuiteLoad>,
    /// Each workload with each setting, in the order of the axes.
    pub rows: Vec<SuiteRow>,
    /// Time limit in microseconds for [`SuiteOperation::below_ratio`]; absent if none was given.
    pub below_us: Option<f64>,
    /// Rows relative to the same workload with the base; absent unless one setting has several values.
    pub relative: Option<Relative>,
}

/// A workload with a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteRow {
    /// All operations together.
    pub level: Level,
    /// Kinds of operations by name. A read-modify-write is listed together with its parts.
    pub operations: BTreeMap<String, SuiteOperation>,
}

/// One kind of operation over all runs of a row.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteOperation {
    /// Successful operations.
    pub count: u64,
    /// Failed operations; no figure includes their times.
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

/// Load phases with a setting: the first of each round, which fills a new server or a dropped collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SuiteLoad {
    pub settings: BTreeMap<String, String>,
    /// Indices of their runs in [`super::Experiment::points`].
    pub runs: Vec<u32>,
    /// Mean number of documents per insert command.
    pub documents_per_command: f64,
    /// Documents per second.
    pub documents_per_s: Figure,
    /// Insert commands.
    pub commands: SuiteOperation,
}
