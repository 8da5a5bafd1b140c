//! Changes of the servers and of the client that figures over time can be explained by.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change of the servers or of the client while a phase ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventRecord {
    /// When it was noticed, from the start of the run.
    pub at_s: f64,
    /// The change.
    #[serde(flatten)]
    pub event: Event,
}

/// Changes of the servers and of the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// The client found another primary.
    PrimaryChanged {
        /// Address of the primary before.
        from: String,
        /// Address of the primary since.
        to: String,
    },
    /// The client could not connect.
    Unreachable {
        /// Why.
        reason: String,
        /// Whether the server's machine answered that nothing listens there.
        refused: bool,
    },
    /// A process that was started for the run ended.
    ServerEnded {
        /// Name of the process.
        server: String,
        /// How it ended.
        status: String,
    },
    /// No thread of the client ran: it was stopped, or its machine was.
    ClientStopped {
        /// How long.
        length_s: f64,
    },
}
