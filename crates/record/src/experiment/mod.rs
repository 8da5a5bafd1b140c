//! `experiment.json`: several runs that answer one question, and the answer. The runs are ordinary run directories in
//! the same folder; the answer can be recomputed from them.

mod comparison;
mod costs;
mod disk;
mod figures;
mod laws;
mod limit;
mod models;
mod options;
mod search;
mod suite;
mod sweep;
mod tune;
mod tune_across;

pub use dyno_plan::knobs::{Knob, Reach, keys_of};
pub use dyno_plan::request::Keys;

pub use comparison::{
    AbAnswer, AbEnd, Basis, Comparison, ComparisonVerdict, DemandRatio, DisturbedPair, Explanation,
    Statistic,
};
pub use costs::{ChangedDocuments, Cost, CostBasis, CostKind, CostRatio, Costs};
pub use disk::{DiskFigures, DiskLimit, DiskLimits, DiskWithoutLimit, LimitBasis, NoLimit};
pub use figures::{Demand, Figure, Figures, Resource, SharedCpus};
pub use laws::{Law, LawCheck, LawVerdict};
pub use limit::{ComparedFigure, Judged, Limit, Outcome};
pub use models::{
    Bounds, ClosedPoint, ClosedSystem, CurvePoint, Knee, OpenEstimate, OpenQueue, QueueFit,
    QueueModel, QueuePoint, UslFit, UslPeak,
};
pub use options::{AbOptions, Base, Options, SloOptions};
pub use search::{
    Attempt, Boundary, ClientsEnd, ClientsResult, Confirmation, NotMeasured, Objective,
    ObjectiveEnd, ObjectiveResult, Objectives, SloAnswer, TriedClients, TriedRate, XmaxAnswer,
};
pub use suite::{SuiteAnswer, SuiteLoad, SuiteOperation, SuiteRow, WORKLOAD};
pub use sweep::{AgainstBase, BlocksAnswer, Level, Relative, SweepAnswer};
pub use tune::{
    Ablation, KnobEffect, LeftOutKnob, RunsSetAside, TuneAnswer, TuneGoal, TuneOptions,
    TunePurpose, TuneTrial,
};
pub use tune_across::{
    AcrossSettings, Dependence, OnWorkload, TuneAcrossAnswer, WorkloadOptions, WorkloadSearch,
};

use crate::document::document;
use crate::model::{Caveat, Environment, RunStatus};
use crate::plan::RecordedPlan;
use crate::server::ServerMachine;
use crate::statement::Statement;
use crate::storage::PreparedStorageRecord;
use dyno_plan::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Percentiles of every run, with their names in [`Figures::response_us`].
pub const PERCENTILES: [(&str, f64); 5] =
    [("p50", 50.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0), ("p99_9", 99.9)];

/// Format version of [`Experiment`]; raised when a reader of the old format would misread the new one.
pub const SCHEMA_VERSION: u32 = 1;
/// Name of the file in the experiment's folder.
pub const FILE: &str = "experiment.json";

/// Plan key for the number of clients; a sweep over it has an ordered axis.
pub const CLIENTS: &str = "client.clients";
/// Plan key for the offered rate; a sweep over it has an ordered axis.
pub const RATE: &str = "schedule.rate_per_s";
/// Plan key for the server's program.
pub const PROGRAM: &str = "server.mongod";

named! {
    /// Kind of an experiment.
    // The names are the command line's subcommands and also appear in folder names.
    #[derive(Default)]
    Verb {
        /// How rate and response time depend on a setting.
        #[default]
        Sweep = "sweep",
        /// The highest rate that the server sustains.
        Xmax = "xmax",
        /// The highest offered rate that keeps an objective.
        Slo = "slo",
        /// Whether one of two plans is faster.
        Ab = "ab",
        /// How fast each of several workloads is.
        Suite = "suite",
        /// Which settings improve a server.
        Tune = "tune",
    }
}

/// The document of an experiment, `experiment.json`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Experiment {
    /// Format version.
    pub schema_version: u32,
    /// Version of the `dyno` that wrote the document.
    pub dyno_version: String,
    /// Kind of the experiment.
    pub verb: Verb,
    /// Question in words.
    pub question: String,
    /// Name of the workload.
    pub name: String,
    /// Start, RFC 3339 in UTC.
    pub started_at: String,
    /// End, RFC 3339 in UTC; absent until then.
    pub ended_at: Option<String>,
    pub status: RunStatus,
    /// Why the experiment is partial or failed.
    pub status_reason: Option<String>,
    /// Base plan of all points, without secrets.
    pub plan: serde_json::Value,
    pub options: Options,
    /// Varied keys; empty if a search chooses the points.
    pub axes: Vec<Axis>,
    /// Client machine, without differing findings of single runs; absent before the first run.
    pub environment: Option<Environment>,
    /// Machines of a fleet's hosts by name, without differing findings of single runs; empty without a fleet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, Environment>,
    /// Machines of remote servers by server address, without differing findings of single runs; empty if agents have
    /// read them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server_machines: BTreeMap<String, ServerMachine>,
    /// Points in the order in which they are run.
    pub points: Vec<Point>,
    /// Answer; absent until it is known.
    pub answer: Option<Answer>,
    /// The limits of a comparison with their outcomes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Judged>,
    /// Conclusions, the most important first.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Reasons to doubt the answer.
    #[serde(default)]
    pub caveats: Vec<Caveat>,
}

document!(Experiment, FILE, SCHEMA_VERSION, "an experiment folder");

impl Experiment {
    /// The plan's fields.
    pub fn recorded_plan(&self) -> RecordedPlan {
        RecordedPlan::new(&self.plan)
    }

    /// Whether numbers of clients and offered rates are swept one after the other, not combined.
    pub fn has_blocks(&self) -> bool {
        self.points.iter().any(|point| point.block.is_some())
    }

    /// Keys that vary in a block; all keys without a block.
    pub fn axes_of(&self, block: Option<Block>) -> impl Iterator<Item = &Axis> + Clone {
        self.axes.iter().filter(move |axis| block.is_none_or(|block| block.varies(&axis.key)))
    }
}

/// Answer of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Answer {
    Sweep(Box<SweepAnswer>),
    /// A sweep over numbers of clients, then offered rates.
    Blocks(Box<BlocksAnswer>),
    Xmax(Box<XmaxAnswer>),
    Slo(Box<SloAnswer>),
    Ab(Box<AbAnswer>),
    Suite(Box<SuiteAnswer>),
    Tune(Box<TuneAnswer>),
    /// Tuning for several workloads.
    TuneAcross(Box<TuneAcrossAnswer>),
}

/// A plan key and its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// Dotted key of the plan, such as `client.clients`; [`WORKLOAD`] for the workloads of a suite.
    pub key: String,
    /// Values as in the plan.
    pub values: Vec<String>,
}

/// One of two plans.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The baseline.
    A,
    /// The candidate.
    B,
}

impl Side {
    /// Label: `A` or `B`.
    pub const fn label(self) -> &'static str {
        match self {
            Side::A => "A",
            Side::B => "B",
        }
    }
}

/// Part of a sweep over numbers of clients, then offered rates.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Block {
    /// Closed loop over the numbers of clients.
    Closed,
    /// Open loop over the offered rates.
    Open,
}

impl Block {
    /// Both blocks, in the order of running and reporting.
    pub const ALL: [Block; 2] = [Block::Closed, Block::Open];

    /// Whether a key of the sweep varies in this block.
    pub fn varies(self, key: &str) -> bool {
        match self {
            Block::Closed => key != RATE,
            Block::Open => key != CLIENTS,
        }
    }
}

/// One run of an experiment.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Keys of the plan that the run sets.
    pub settings: Keys,
    /// Which of two plans is run.
    pub side: Option<Side>,
    /// Which of several workloads is run.
    pub workload: Option<String>,
    /// Block of the sweep; absent without blocks.
    pub block: Option<Block>,
    /// Number among the runs with the same settings, from 0.
    pub repeat: u32,
    /// Run directory, relative to the experiment's folder.
    pub directory: String,
    /// Results; absent until the run is done.
    pub figures: Option<Figures>,
    /// Why a finished run has no figures.
    pub problem: Option<String>,
    /// The plan key that the server refused to set, if that caused the problem.
    pub refused: Option<String>,
    /// Share of CPU time that the hypervisor took, for a run that was ended early; other runs have it in `figures`.
    #[serde(default)]
    pub stolen_ratio: Option<f64>,
    /// Measured time of a run that a search ended early: with figures if it was certainly worse, without if it did
    /// harm. Absent for runs that were not ended early.
    #[serde(default)]
    pub ended_after_s: Option<f64>,
    /// Whether the run has no figures because a server that was started for it crashed or did not start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub server_ended: bool,
    /// Storage that was created for its servers; absent if existing storage was used.
    #[serde(default)]
    pub storage: Option<PreparedStorageRecord>,
}

/// A conclusion with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub kind: FindingKind,
    /// Conclusion with its figures.
    #[serde(flatten)]
    pub statement: Statement,
    /// Measurements that support it; at least one.
    pub evidence: Vec<Statement>,
}

impl Finding {
    /// A finding with at least one piece of evidence.
    pub fn new(kind: FindingKind, statement: Statement, evidence: Vec<Statement>) -> Self {
        debug_assert!(!evidence.is_empty(), "no evidence for `{statement}`");
        Finding { kind, statement, evidence }
    }

    /// A finding of kind [`FindingKind::Finding`].
    pub fn found(statement: Statement, evidence: Vec<Statement>) -> Self {
        Finding::new(FindingKind::Finding, statement, evidence)
    }

    /// A reason not to trust the answer.
    pub fn warning(statement: Statement, evidence: Vec<Statement>) -> Self {
        Finding::new(FindingKind::Warning, statement, evidence)
    }

    /// A possible improvement.
    pub fn opportunity(statement: Statement, evidence: Vec<Statement>) -> Self {
        Finding::new(FindingKind::Opportunity, statement, evidence)
    }
}

/// Kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A fact.
    Finding,
    /// A possible improvement, with the reason.
    Opportunity,
    /// A reason not to trust the answer, or a limit of its validity.
    Warning,
}
