//! What held a run up: rules over what was watched, each with its evidence.
//!
//! A rule names a cause and the conditions that must hold together over a part of the measured time; other
//! conditions make it surer. Rules are data (`rules.rs`), and the figures that they speak of are defined once
//! ([`measures::Measure`]). What was not watched decides nothing: a rule that lacks a figure stays silent.

mod bench;
mod by_servers;
mod checkpoints;
mod cpu_time;
mod judge;
mod measures;
mod rules;
#[cfg(test)]
mod tests;

pub use bench::{Bench, TimeRange};
pub(crate) use bench::{cpus, mean_us, of_others};
pub use checkpoints::united;
pub use judge::{codes, judge};
pub use measures::Measure;

use dyno_record::statement::Statement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What held the run up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// What stands at the top of a report.
    pub headline: Statement,
    /// Causes that were found, the one that explains most first.
    pub causes: Vec<CauseFinding>,
    /// What was asked and not watched, so that it could neither be found nor ruled out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_watched: Vec<Cause>,
}

impl Verdict {
    /// Whether the run was long enough, and watched, so that the absence of a cause says something as well.
    pub fn is_reached(&self) -> bool {
        !["too-short-for-verdict", "nothing-watched"].contains(&self.headline.code.as_str())
    }
}

/// Reasons that hold a run up.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The load generator had no more CPU time.
    Client,
    /// A limit of the kernel on the CPU time of the server.
    CpuThrottled,
    /// The hypervisor gave CPU time to others.
    CpuStolen,
    /// Another process took CPU time that the server waited for.
    NoisyNeighbour,
    /// A disk that was fast at first and got slow under the same load.
    BurstCredits,
    /// The number of operations per second of the disk.
    DiskOperations,
    /// The bytes per second of the disk.
    DiskBandwidth,
    /// Writes wait until the disk has them for good.
    SlowSync,
    /// The cache of the server does not hold what is asked for.
    CacheTooSmall,
    /// Checkpoints of the server.
    Checkpoint,
    /// Operations queue in the server for tickets or locks.
    Tickets,
    /// The machine of the server swaps.
    Swapping,
    /// Memory is short, and processes wait for it.
    MemoryPressure,
    /// The bandwidth of the network.
    Network,
    /// The way to the server and back takes most of the time.
    RoundTrip,
    /// Connections are opened all the time.
    ConnectionStorm,
    /// One CPU is busy with interrupts, or one thread of the server all the time, while others have room.
    OneCore,
    /// All CPU time that the server may use.
    ServerCpu,
    /// All CPU time of a machine that client and server share.
    SharedCpu,
    /// Nothing is exhausted: more clients would get more.
    TooFewClients,
}

/// A cause that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CauseFinding {
    /// The cause.
    pub cause: Cause,
    /// What happened.
    #[serde(flatten)]
    pub statement: Statement,
    /// Start of the time in which it held, from the start of the run.
    pub start_s: f64,
    /// End of it.
    pub end_s: f64,
    /// The parts of that time in which it held, in order, if it did not hold in all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<TimeRange>,
    /// How sure it is: above 0, up to 1. A statement about the rule and its evidence, not a probability.
    pub confidence: f64,
    /// What supports it.
    pub evidence: Vec<Evidence>,
    /// What to try.
    pub advice: Vec<Statement>,
}

/// A figure that supports a cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// What it says, with the figure.
    #[serde(flatten)]
    pub statement: Statement,
    /// Name of the measure.
    pub measure: String,
    /// Its value.
    pub value: f64,
    /// Series that it was read from, as `SOURCE/METRIC`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<String>,
    /// Start of the time that it is about, from the start of the run.
    pub start_s: f64,
    /// End of it.
    pub end_s: f64,
}
