//! The load generator measured against a responder that answers at once: what the client itself
//! costs and how exact its timing is on this machine. The result is kept, so that later runs can be
//! told apart from the client's own limit.

mod child;
pub mod measure;
pub mod state;

use serde::{Deserialize, Serialize};

/// Version of the kept file. Raised when an old one would be misread.
pub const SCHEMA_VERSION: u32 = 1;

/// Result of a selfcheck: the content of `selfcheck.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Selfcheck {
    pub schema_version: u32,
    pub dyno_version: String,
    /// RFC 3339 in UTC.
    pub measured_at: String,
    pub machine: Machine,
    /// Operations per second that one worker thread on one core can do. What a run's rate is compared with.
    pub max_rate_per_core_per_s: f64,
    /// As fast as possible, on one core.
    pub closed_loop: ClosedLoop,
    /// At given rates.
    pub constant_rates: Vec<ConstantRate>,
}

impl Selfcheck {
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
    pub hostname: Option<String>,
    pub cpu_model: Option<String>,
    pub cpus: Option<u64>,
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
    pub connections: u32,
    pub duration_s: f64,
    pub rate_per_s: f64,
    pub cpu_us_per_operation: f64,
    pub cpu_user_us_per_operation: f64,
    pub cpu_system_us_per_operation: f64,
    /// Share of the time in which the one core was busy with the client. Below 1 the responder or
    /// other processes were the limit.
    pub core_busy_ratio: f64,
    pub max_rss_bytes: u64,
}

/// Measurement at one offered rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstantRate {
    pub offered_rate_per_s: f64,
    pub achieved_rate_per_s: f64,
    pub achieved_ratio: f64,
    pub dropped_arrivals: u64,
    pub start_delay_us: StartDelay,
}

/// Time from intended start to send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartDelay {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}
