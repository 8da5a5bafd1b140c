//! Measures the load generator against a responder that answers at once: the client's own cost and
//! the precision of its timing on this machine. The result is kept, so that later runs can be
//! compared with the client's own limit.

mod child;
pub mod measure;
pub mod state;

use dyno_record::verdict::{Level, Verdict};
use serde::{Deserialize, Serialize};

/// Version of the kept file. Raised if an old one would be misread.
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
    /// The measured machine.
    pub machine: Machine,
    /// Highest rate of one worker thread on one core, in operations per second. Reference for the
    /// rates of runs.
    pub max_rate_per_core_per_s: f64,
    /// As fast as possible, on one core.
    pub closed_loop: ClosedLoop,
    /// At given rates.
    pub constant_rates: Vec<ConstantRate>,
    /// The check for other load, before, during or after the measurement, whichever is worst.
    /// Absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_load: Option<Verdict>,
}

impl Selfcheck {
    /// The check for other load, if that makes the figures unreliable.
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

/// Properties that distinguish machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
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
    /// Measured time.
    pub duration_s: f64,
    /// Operations per second.
    pub rate_per_s: f64,
    /// CPU time of the client for each operation.
    pub cpu_us_per_operation: f64,
    /// The part of it in this program.
    pub cpu_user_us_per_operation: f64,
    /// The part of it in the kernel.
    pub cpu_system_us_per_operation: f64,
    /// Share of the time in which the single core was busy with the client. Below 1 the responder
    /// or other processes were the limit.
    pub core_busy_ratio: f64,
    /// Peak memory of the client.
    pub max_rss_bytes: u64,
}

/// Measurement at one offered rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstantRate {
    pub offered_rate_per_s: f64,
    pub achieved_rate_per_s: f64,
    /// Achieved rate divided by offered rate.
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
