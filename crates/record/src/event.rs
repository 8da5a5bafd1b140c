//! Events of servers and client that can explain figures over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An event of the servers or of the client during a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventRecord {
    /// When it was noticed, from the start of the run.
    pub at_s: f64,
    #[serde(flatten)]
    pub event: Event,
}

/// Kind of event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// The client found another primary.
    PrimaryChanged {
        /// Address of the previous primary.
        from: String,
        /// Address of the new primary.
        to: String,
    },
    /// The client could not connect.
    Unreachable {
        reason: String,
        /// Whether the server's machine refused the connection.
        refused: bool,
    },
    /// A process that was started for the run ended.
    ServerEnded {
        /// Name of the process.
        server: String,
        /// Exit status.
        status: String,
    },
    /// All threads of the client were stopped, or its machine was.
    ClientStopped { length_s: f64 },
}
