//! The load generator measured against a responder that answers at once: what the client itself
//! costs and how exact its timing is on this machine. The result is kept, so that later runs can be
//! told apart from the client's own limit.

mod child;
pub(crate) mod measure;
pub(crate) mod state;
pub(crate) mod text;

use serde::{Deserialize, Serialize};

/// Version of the kept file. Raised when an old one would be misread.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// Result of a selfcheck: the content of `selfcheck.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Selfcheck {
    pub(crate) schema_version: u32,
    pub(crate) dyno_version: String,
    /// RFC 3339 in UTC.
    pub(crate) measured_at: String,
    pub(crate) machine: Machine,
    /// Operations per second that one worker thread on one core can do. What a run's rate is compared with.
    pub(crate) max_rate_per_core_per_s: f64,
    /// As fast as possible, on one core.
    pub(crate) closed_loop: ClosedLoop,
    /// At given rates.
    pub(crate) constant_rates: Vec<ConstantRate>,
}

/// What tells machines apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) hostname: Option<String>,
    pub(crate) cpu_model: Option<String>,
    pub(crate) cpus: Option<u64>,
    pub(crate) kernel: Option<String>,
}

impl Machine {
    /// This machine.
    pub(crate) fn this() -> Self {
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
pub(crate) struct ClosedLoop {
    pub(crate) connections: u32,
    pub(crate) duration_s: f64,
    pub(crate) rate_per_s: f64,
    pub(crate) cpu_us_per_operation: f64,
    pub(crate) cpu_user_us_per_operation: f64,
    pub(crate) cpu_system_us_per_operation: f64,
    /// Share of the time in which the one core was busy with the client. Below 1 the responder or
    /// other processes were the limit.
    pub(crate) core_busy_ratio: f64,
    pub(crate) max_rss_bytes: u64,
}

/// Measurement at one offered rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ConstantRate {
    pub(crate) offered_rate_per_s: f64,
    pub(crate) achieved_rate_per_s: f64,
    pub(crate) achieved_ratio: f64,
    pub(crate) dropped_arrivals: u64,
    pub(crate) start_delay_us: StartDelay,
}

/// Time from intended start to send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StartDelay {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}
