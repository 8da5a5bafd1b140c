//! The load generator measured against a responder that answers at once: what the client itself
//! costs and how exact its timing is on this machine. The result is kept, so that later runs can be
//! told apart from the client's own limit.

mod child;
pub mod measure;
pub mod state;

use dyno_record::verdict::{Level, Verdict};
use serde::{Deserialize, Serialize};

/// Version of the kept file. Raised when an old one would be misread.
pub const SCHEMA_VERSION: u32 = 1;

/// Result of a selfcheck: the content of `selfcheck.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Selfcheck {
    /// Version of the kept file.
    pub schema_version: u32,
    /// Version of the program that measured.
    pub dyno_version: String,
    /// RFC 3339 in UTC.
    pub measured_at: String,
    /// The machine that it is about.
    pub machine: Machine,
    /// Operations per second that one worker thread on one core can do. What a run's rate is compared with.
    pub max_rate_per_core_per_s: f64,
    /// As fast as possible, on one core.
    pub closed_loop: ClosedLoop,
    /// At given rates.
    pub constant_rates: Vec<ConstantRate>,
    /// The check of others' work, before or after the measurement, whichever is worse. Absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_load: Option<Verdict>,
}

impl Selfcheck {
    /// What others did, if it was so much that the figures say little of this machine.
    pub fn caveat(&self) -> Option<&Verdict> {
        let is_doubtful = |verdict: &&Verdict| verdict.level == Level::Fail;
        self.other_load.as_ref().filter(is_doubtful)
    }

    /// The content of the kept file, with a line end.
    pub fn to_json(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).expect("numbers and texts can be written");
        text.push('\n');
        text
    }
}

/// What tells machines apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name.
    pub hostname: Option<String>,
    /// Model of the processor, as the kernel names it.
    pub cpu_model: Option<String>,
    /// CPUs that are online.
    pub cpus: Option<u64>,
    /// Release of the kernel.
    pub kernel: Option<String>,
}

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        let environment = dyno_observe::environment::capture(None);
        Machine {
            hostname: environment.hostname,
            cpu_model: environment.cpu_model,
            cpus: environment.cpus,
            kernel: environment.kernel,
        }
    }
}

/// Measurement of the highest rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClosedLoop {
    /// Connections of the client.
    pub connections: u32,
    /// How long it measured.
    pub duration_s: f64,
    /// Operations per second.
    pub rate_per_s: f64,
    /// CPU time of the client for each operation.
    pub cpu_us_per_operation: f64,
    /// The part of it in this program.
    pub cpu_user_us_per_operation: f64,
    /// The part of it in the kernel.
    pub cpu_system_us_per_operation: f64,
    /// Share of the time in which the one core was busy with the client. Below 1 the responder or
    /// other processes were the limit.
    pub core_busy_ratio: f64,
    /// Most memory of the client at once.
    pub max_rss_bytes: u64,
}

/// Measurement at one offered rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstantRate {
    /// Operations per second that were offered.
    pub offered_rate_per_s: f64,
    /// Operations per second that were done.
    pub achieved_rate_per_s: f64,
    /// The second as a share of the first.
    pub achieved_ratio: f64,
    /// Operations that could not be started in time.
    pub dropped_arrivals: u64,
    /// From intended start to send.
    pub start_delay_us: StartDelay,
}

/// Time from intended start to send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartDelay {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Longest.
    pub max: f64,
}
