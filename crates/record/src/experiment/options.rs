//! Options of an experiment.

use super::limit::Limit;
use super::search::Objectives;
use super::tune::TuneOptions;
use super::tune_across::WorkloadOptions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Options of an experiment. Each kind of experiment has some of them.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Options {
    /// Whether each run drops the collection first.
    pub fresh: bool,
    /// Whether no run loads documents.
    pub no_load: bool,
    /// Whether runs may drop documents that neither this program nor YCSB has written.
    pub drop_foreign: bool,
    /// Whether a fleet makes the runs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fleet: bool,
    /// Worker threads of each plan, by the plan's file.
    pub threads: BTreeMap<String, Value>,
    /// Plans of several workloads by name, without secrets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub plans: BTreeMap<String, Value>,
    /// Time spent so far, if the experiment has a limit.
    pub time_spent_s: Option<f64>,
    /// Runs do not count if the hypervisor took more than this share of the CPU time; if absent, all runs count.
    pub max_steal: Option<f64>,
    /// Runs of each point, or of the best number of clients.
    pub repeat: Option<u32>,
    /// Whether the points of a sweep are in random order.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub random_order: bool,
    /// The value that the others are compared with.
    pub base: Option<Base>,
    /// Time limit in microseconds for the share of faster operations.
    pub below_us: Option<f64>,
    /// Largest number of clients that a search for the highest rate tries.
    pub max_clients: Option<u32>,
    pub slo: Option<SloOptions>,
    pub ab: Option<AbOptions>,
    pub tune: Option<TuneOptions>,
    /// Options of each search, if several workloads are tuned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tune_across: Vec<WorkloadOptions>,
}

/// The value that others are compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Base {
    /// Key of the plan.
    pub key: String,
    /// One of the key's values.
    pub value: String,
}

/// Options of a search for the highest rate with an objective.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SloOptions {
    pub objectives: Objectives,
    /// Schedule of the offered rates.
    pub schedule: String,
    /// The plan's limit for the start delay; absent for the default.
    pub max_start_delay: Option<String>,
    /// Relative distance between neighbouring rates.
    pub resolution: f64,
    /// Most runs.
    pub max_runs: u32,
    /// No further run begins after this time.
    pub time_limit_s: Option<f64>,
}

/// Options of a comparison of two plans.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbOptions {
    /// Name of B's plan.
    pub plan_b: String,
    /// Plan of B, without secrets.
    pub plan_of_b: Value,
    /// Settings of A alone, without secrets.
    pub set_a: Vec<String>,
    /// Settings of B alone, without secrets.
    pub set_b: Vec<String>,
    /// Smallest difference of interest, as a share.
    pub margin: f64,
    /// Fewest pairs of runs.
    pub min_pairs: u32,
    /// Most pairs of runs.
    pub max_pairs: u32,
    /// No further pair begins after this time.
    pub time_limit_s: Option<f64>,
    /// How much worse B may be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// File for the outcomes of the limits, as JUnit XML.
    pub junit: Option<String>,
}
