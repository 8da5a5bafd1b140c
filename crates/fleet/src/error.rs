//! Errors of a fleet. Each variant names the host, if there is one, and the host's last action.

use crate::protocol::Step;
use dyno_engine::{Error, Kind};
use dyno_plan::uri::redact;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Error that ends a fleet or one of its agents.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FleetError {
    /// No Redis address was given.
    #[error("no Redis address")]
    NoEndpoint,
    /// The file with the address or the certificates cannot be read.
    #[error("cannot read `{}`", path.display())]
    EndpointFile {
        path: PathBuf,
        #[source]
        source: Arc<std::io::Error>,
    },
    /// The address is not valid. It may hold a password, so it is not shown.
    #[error("invalid Redis address: {reason}")]
    EndpointText { reason: &'static str },
    /// Redis cannot be reached, or refuses the connection.
    #[error("cannot use Redis at `{endpoint}`: {reason}")]
    Redis {
        /// Address without user and password.
        endpoint: String,
        /// Error of the connection or of the server.
        reason: String,
    },
    /// The run name is not valid.
    #[error("`{name}` is not a valid run name: use 1 to 64 letters, digits, `.`, `_` or `-`")]
    RunName { name: String },
    /// Another controller holds the run.
    #[error("the run `{run}` already has a controller")]
    RunTaken { run: String },
    /// Another agent holds the number.
    #[error("the run `{run}` already has agent {index}, on the host `{host}`")]
    IndexTaken {
        run: String,
        index: u32,
        /// Host of the other agent.
        host: String,
    },
    /// Agent and controller have different versions.
    #[error("`{host}` has version {found}, and the controller has {expected}")]
    Version {
        /// Host of the agent.
        host: String,
        /// Version of the agent and of its messages.
        found: String,
        /// Version of the controller.
        expected: String,
    },
    /// Some agents were late.
    #[error("{} not {step} within {within:?}: {}", plural(waiting), waiting.join(", "))]
    Late {
        /// Awaited state, as a participle, such as `ready to load`.
        step: String,
        within: Duration,
        /// Each missing agent, with its host and its last action.
        waiting: Vec<String>,
    },
    /// An agent has been silent for longer than its lease.
    #[error("agent {index} on `{host}` has been silent for {silent:?}; its last action: {last}")]
    Lost {
        index: u32,
        host: String,
        silent: Duration,
        /// Last action of the agent.
        last: String,
    },
    /// An agent ended with an error.
    #[error("agent {index} on `{host}` failed: {reason}")]
    Failed {
        index: u32,
        host: String,
        /// The agent's error.
        reason: String,
    },
    /// Messages of an agent were lost.
    #[error(
        "{count} messages of agent {index} on `{host}` are missing: Redis dropped them before they were read"
    )]
    MessagesLost { index: u32, host: String, count: u64 },
    /// The controller ended the run.
    #[error("the controller ended the run: {reason}")]
    Aborted { reason: String },
    /// The controller has gone without a message.
    #[error("the controller has been silent for {silent:?}; last action of this agent: {last}")]
    ControllerGone {
        silent: Duration,
        /// Last action of the agent.
        last: String,
    },
    /// A signal asked this agent to end.
    #[error("interrupted by a signal")]
    Interrupted,
    /// Redis has gone.
    #[error("Redis did not answer for {silent:?}: {reason}; last action: {last}")]
    RedisGone {
        silent: Duration,
        /// Error of the connection.
        reason: String,
        /// Last action of this host.
        last: String,
    },
    /// This version does not understand a message.
    #[error("cannot understand a message from `{from}`: {reason}")]
    Message {
        /// The sender.
        from: String,
        reason: String,
    },
    /// The controller did not send a message in time.
    #[error("the controller did not {step} within {within:?}")]
    NoWord {
        /// Awaited action of the controller.
        step: String,
        within: Duration,
    },
    /// The start message arrived after the instant.
    #[error(
        "the start message for {step} arrived {late:?} late: `fleet.start_lead` is too short for the clocks or Redis"
    )]
    StartPassed {
        /// The stage.
        step: Step,
        late: Duration,
    },
}

impl FleetError {
    /// Advice that the message does not include.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            FleetError::NoEndpoint => Some(
                "set the environment variable `DYNO_REDIS`, or put the address into the file that `DYNO_REDIS_FILE` names",
            ),
            FleetError::EndpointText { .. } => {
                Some("use `redis://:password@host:6379`, or `rediss://` with TLS")
            }
            FleetError::Redis { .. } => {
                Some("check the address, password and certificate of Redis")
            }
            FleetError::RunTaken { .. } => {
                Some("give the run another name, or wait until its lease expires")
            }
            FleetError::Version { .. } => Some("install the same `dyno` on all hosts"),
            FleetError::StartPassed { .. } => Some("raise `fleet.start_lead`"),
            FleetError::MessagesLost { .. } => {
                Some("the controller or Redis was too slow; give each a CPU of its own")
            }
            _ => None,
        }
    }
}

impl From<FleetError> for Error {
    fn from(error: FleetError) -> Self {
        let kind = match &error {
            FleetError::NoEndpoint
            | FleetError::EndpointText { .. }
            | FleetError::RunName { .. } => Kind::BadInput,
            FleetError::Interrupted => Kind::Interrupted,
            _ => Kind::Environment,
        };
        let hint = error.hint();
        Error::from_cause(kind, error).with_optional_hint(hint)
    }
}

/// Error, causes, hint and the last log line of a server, on one line and without credentials.
pub(crate) fn reason_with_log(error: &Error) -> String {
    let mut text = error.reason();
    if let Some(hint) = &error.hint {
        text.push_str(&format!("; {}", redact(hint)));
    }
    if let Some(last) = error.log_tail.last() {
        text.push_str(&format!("; last line of its log: {}", redact(last)));
    }
    text
}

/// Internal error: a histogram with values outside the common bounds.
pub(crate) fn out_of_bounds(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::from_cause(Kind::Internal, error)
}

/// Whether an agent that ends with this error must clean up itself, because no controller will.
pub(crate) fn leaves_agent_alone(error: &Error) -> bool {
    matches!(
        error.cause.downcast_ref::<FleetError>(),
        Some(
            FleetError::ControllerGone { .. }
                | FleetError::RedisGone { .. }
                | FleetError::NoWord { .. }
                | FleetError::Redis { .. }
        )
    )
}

fn plural(waiting: &[String]) -> &'static str {
    match waiting.len() {
        1 => "one agent is",
        _ => "some agents are",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_agent_is_named() {
        let error = FleetError::Late {
            step: "ready to load".into(),
            within: Duration::from_secs(2),
            waiting: vec!["agent 1 on `c1` (joined)".into()],
        };
        let text = error.to_string();
        for part in ["ready to load", "2s", "agent 1 on `c1` (joined)"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
