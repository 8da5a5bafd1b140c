//! `experiment.json`: several runs that answer one question together, and the answer. The runs are ordinary run
//! directories beside it; everything in the answer can be computed from them again.

mod comparison;
mod costs;
mod disk;
mod figures;
mod laws;
mod models;
mod search;
mod suite;
mod sweep;
mod tune;
mod tune_across;

pub use comparison::{
    AbAnswer, AbEnd, Basis, Comparison, ComparisonVerdict, DemandRatio, DisturbedPair, Explanation,
    Statistic,
};
pub use costs::{ChangedDocuments, Cost, CostBasis, CostKind, CostRatio, Costs};
pub use disk::{DiskFigures, DiskLimit, DiskLimits, DiskWithoutLimit, LimitBasis, NoLimit};
pub use figures::{Demand, Figure, Figures, Resource, SharedCpus};
pub use laws::{Law, LawCheck, LawVerdict};
pub use models::{
    Bounds, ClosedPoint, ClosedSystem, CurvePoint, Knee, OpenEstimate, OpenQueue, QueueFit,
    QueueModel, QueuePoint, UslFit, UslPeak,
};
pub use search::{
    Attempt, Boundary, ClientsEnd, ClientsResult, Confirmation, NotMeasured, Objective,
    ObjectiveEnd, ObjectiveResult, Objectives, SloAnswer, TriedClients, TriedRate, XmaxAnswer,
};
pub use suite::{BELOW_US, PLANS, SuiteAnswer, SuiteLoad, SuiteOperation, SuiteRow, WORKLOAD};
pub use sweep::{AgainstBase, BASE, Base, BlocksAnswer, Level, Relative, SweepAnswer};
pub use tune::{
    Ablation, Knob, KnobEffect, KnobReach, LeftOutKnob, LeftOutReason, RunsSetAside, TUNE,
    TuneAnswer, TuneGoal, TuneOptions, TunePurpose, TuneTrial, keys_of,
};
pub use tune_across::{
    AcrossSettings, Dependence, OnWorkload, TUNE_ACROSS, TuneAcrossAnswer, WorkloadOptions,
    WorkloadSearch,
};

use crate::document::Document;
use crate::model::{Caveat, Environment, RunStatus};
use crate::named::named;
use crate::plan::RecordedPlan;
use crate::server::ServerMachine;
use crate::statement::Statement;
use crate::storage::PreparedStorageRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Percentiles of every run, with their names in [`Figures::response_us`].
pub const PERCENTILES: [(&str, f64); 5] = [
    ("p50", 50.0),
    ("p90", 90.0),
    ("p95", 95.0),
    ("p99", 99.0),
    ("p99_9", 99.9),
];

/// Version of the form of [`Experiment`]; raised when a reader of the old form would misread the new one.
pub const SCHEMA_VERSION: u32 = 2;
/// Name of the file in the folder of the experiment.
pub const FILE: &str = "experiment.json";

/// Key of the plan with the number of clients; a sweep over it orders its points along an axis.
pub const CLIENTS: &str = "client.clients";
/// Key of the plan with the offered rate; likewise.
pub const RATE: &str = "schedule.rate_per_s";
/// Key of the plan with the program of the server.
pub const PROGRAM: &str = "server.mongod";

named! {
    /// What is asked.
    // By the words of the command line, which are in names of folders, too.
    Verb {
        /// How rate and response time depend on a setting.
        Sweep = "sweep",
        /// The highest rate that the server sustains.
        Xmax = "xmax",
        /// The highest offered rate that keeps an objective.
        Slo = "slo",
        /// Whether one of two plans is faster.
        Ab = "ab",
        /// How fast each of several workloads is.
        Suite = "suite",
        /// Which settings make a server better.
        Tune = "tune",
    }
}

/// The document of an experiment, `experiment.json`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Experiment {
    /// Version of this form.
    pub schema_version: u32,
    /// Version of the `dyno` that wrote it.
    pub dyno_version: String,
    /// What is asked.
    pub verb: Verb,
    /// The question in words.
    pub question: String,
    /// Name of the workload.
    pub name: String,
    /// Start, RFC 3339 in UTC.
    pub started_at: String,
    /// Its end, RFC 3339 in UTC; absent before, and in records of earlier versions.
    pub ended_at: Option<String>,
    /// How it ended.
    pub status: RunStatus,
    /// Why it is partial or failed.
    pub status_reason: Option<String>,
    /// The plan that all points change, without secrets.
    pub plan: serde_json::Value,
    /// Numbers that say how the experiment is done, by the name of the option.
    pub options: BTreeMap<String, serde_json::Value>,
    /// The keys that are varied; empty where a search chooses the points.
    pub axes: Vec<Axis>,
    /// The machine of the client, without what runs found otherwise; absent before the first run, and in records of earlier versions.
    pub environment: Option<Environment>,
    /// The machines of the hosts of a fleet by their names, without what runs found otherwise; empty without a fleet, and
    /// in records of earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, Environment>,
    /// The machines of servers elsewhere by the addresses of the servers, without what runs found otherwise; empty where agents
    /// have read them, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server_machines: BTreeMap<String, ServerMachine>,
    /// All points in the order in which they are run.
    pub points: Vec<Point>,
    /// The answer; absent until there is one.
    pub answer: Option<Answer>,
    /// What follows from it, the most important first.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Reasons to doubt it.
    #[serde(default)]
    pub caveats: Vec<Caveat>,
}

impl Document for Experiment {
    const FILE: &'static str = FILE;
    const SCHEMA_VERSION: u32 = SCHEMA_VERSION;
    const FOLDER: &'static str = "the folder of an experiment";

    fn schema_version(&mut self) -> &mut u32 {
        &mut self.schema_version
    }
}

impl Experiment {
    /// The plan by its fields.
    pub fn recorded_plan(&self) -> RecordedPlan {
        RecordedPlan::new(&self.plan)
    }

    /// Whether numbers of clients and offered rates were swept one after the other, and not with each other.
    pub fn has_blocks(&self) -> bool {
        self.points.iter().any(|point| point.block.is_some())
    }

    /// The keys that are varied in a block; all of them without one.
    pub fn axes_of(&self, block: Option<Block>) -> impl Iterator<Item = &Axis> + Clone {
        let axes = self.axes.iter();
        axes.filter(move |axis| block.is_none_or(|block| block.varies(&axis.key)))
    }
}

/// The answer, by what was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Answer {
    /// See [`Verb::Sweep`].
    Sweep(Box<SweepAnswer>),
    /// The same, of numbers of clients and offered rates one after the other.
    Blocks(Box<BlocksAnswer>),
    /// See [`Verb::Xmax`].
    Xmax(Box<XmaxAnswer>),
    /// See [`Verb::Slo`].
    Slo(Box<SloAnswer>),
    /// See [`Verb::Ab`].
    Ab(Box<AbAnswer>),
    /// See [`Verb::Suite`].
    Suite(Box<SuiteAnswer>),
    /// See [`Verb::Tune`].
    Tune(Box<TuneAnswer>),
    /// The same for each of several workloads.
    TuneAcross(Box<TuneAcrossAnswer>),
}

/// A plan key and its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// Dotted key of the plan, such as `client.clients`; [`WORKLOAD`] for the workloads of a suite.
    pub key: String,
    /// The values, as they are set.
    pub values: Vec<String>,
}

/// Which of two plans.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The first, which the other is compared with.
    A,
    /// The second.
    B,
}

impl Side {
    /// How people are told of it: `A` or `B`.
    pub const fn label(self) -> &'static str {
        match self {
            Side::A => "A",
            Side::B => "B",
        }
    }
}

/// Which part of a sweep that has numbers of clients and offered rates one after the other.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Block {
    /// A closed loop over the numbers of clients.
    Closed,
    /// An open loop over the offered rates.
    Open,
}

impl Block {
    /// Both, in the order in which they are run and told.
    pub const ALL: [Block; 2] = [Block::Closed, Block::Open];

    /// Whether a key that the sweep varies is varied in this block.
    pub fn varies(self, key: &str) -> bool {
        match self {
            Block::Closed => key != RATE,
            Block::Open => key != CLIENTS,
        }
    }
}

/// One run of an experiment.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Keys of the plan that it sets.
    pub settings: BTreeMap<String, String>,
    /// Which of two plans it runs.
    pub side: Option<Side>,
    /// Which of several workloads it runs.
    pub workload: Option<String>,
    /// Which part of a sweep it belongs to; absent where there is one only.
    pub block: Option<Block>,
    /// Number among the runs with the same settings, from 0.
    pub repeat: u32,
    /// Run directory, inside that of the experiment.
    pub directory: String,
    /// What it measured; absent until it was run.
    pub figures: Option<Figures>,
    /// Why it has no figures, if it was run and measured nothing.
    pub problem: Option<String>,
    /// The key of the plan whose value the server refused to set, if that is why.
    pub refused: Option<String>,
    /// Share of the CPU time that the hypervisor took, of a run that was ended early; of others the figures have it.
    #[serde(default)]
    pub stolen_ratio: Option<f64>,
    /// The time that it had measured when it was ended early by the limits of a search: with figures as certainly worse, else
    /// because it did harm. Absent of runs that went on to their end, and in records of earlier versions.
    #[serde(default)]
    pub ended_after_s: Option<f64>,
    /// Whether it has no figures because a server that was started for it ended, or did not start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub server_ended: bool,
    /// The storage that was made for its servers; absent where the data lay on storage that was there.
    #[serde(default)]
    pub storage: Option<PreparedStorageRecord>,
}

/// What a performance engineer would say, and what supports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Whether it says what is, or what could be changed.
    pub kind: FindingKind,
    /// What it says, with its figures.
    #[serde(flatten)]
    pub statement: Statement,
    /// The measurements behind it; at least one.
    pub evidence: Vec<Statement>,
}

impl Finding {
    /// One with at least one piece of evidence.
    pub fn new(kind: FindingKind, statement: Statement, evidence: Vec<Statement>) -> Self {
        debug_assert!(!evidence.is_empty(), "nothing supports `{statement}`");
        Finding {
            kind,
            statement,
            evidence,
        }
    }

    /// What was found.
    pub fn found(statement: Statement, evidence: Vec<Statement>) -> Self {
        Finding::new(FindingKind::Finding, statement, evidence)
    }

    /// Why the answer should not be trusted.
    pub fn warning(statement: Statement, evidence: Vec<Statement>) -> Self {
        Finding::new(FindingKind::Warning, statement, evidence)
    }

    /// What could be changed.
    pub fn opportunity(statement: Statement, evidence: Vec<Statement>) -> Self {
        Finding::new(FindingKind::Opportunity, statement, evidence)
    }
}

/// Kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// What was found.
    Finding,
    /// What could be changed, and why that should help.
    Opportunity,
    /// Why the answer should not be trusted, or reaches only so far.
    Warning,
}
