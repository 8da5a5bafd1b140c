//! What can go wrong in a fleet. Every variant names the host, where there is one, and the last thing it did.

use crate::protocol::Step;
use dyno_engine::{Error, Kind};
use dyno_plan::uri::redact;
use dyno_record::quantity::Quantity;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A fleet, or one agent of it, cannot go on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FleetError {
    /// No address of Redis was given.
    #[error("no address of Redis is given")]
    NoEndpoint,
    /// The file with the address or with certificates cannot be read.
    #[error("cannot read `{}`", path.display())]
    EndpointFile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// The address is none. It may hold a password, so it is not shown.
    #[error("the address of Redis is not valid: {reason}")]
    EndpointText {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Redis cannot be reached, or refuses.
    #[error("cannot use Redis at `{endpoint}`: {reason}")]
    Redis {
        /// Address without user and password.
        endpoint: String,
        /// What the connection or the server says.
        reason: String,
    },
    /// A run has no such name.
    #[error("`{name}` is not a valid name of a run: use 1 to 64 letters, digits, `.`, `_` or `-`")]
    RunName {
        /// What was given.
        name: String,
    },
    /// Another controller has the run.
    #[error("the run `{run}` already has a controller")]
    RunTaken {
        /// The run.
        run: String,
    },
    /// Another agent has the number.
    #[error("agent {index} of the run `{run}` is already there, on the host `{host}`")]
    IndexTaken {
        /// The run.
        run: String,
        /// Number of the agent.
        index: u32,
        /// Where the other one is.
        host: String,
    },
    /// Two programs of different versions.
    #[error("`{host}` has version {found}, and the controller has {expected}")]
    Version {
        /// Host of the agent.
        host: String,
        /// Version of the agent, with that of its messages.
        found: String,
        /// Version of the controller.
        expected: String,
    },
    /// A host has no room for its records.
    #[error(
        "`{host}` has {} of free disk, and {} are needed",
        Quantity::bytes(*free_bytes), Quantity::bytes(*needed_bytes)
    )]
    Disk {
        /// The host.
        host: String,
        /// What is free.
        free_bytes: u64,
        /// What must be.
        needed_bytes: u64,
    },
    /// Not everybody was there in time.
    #[error("{} not {step} within {within:?}: {}", plural(waiting), waiting.join(", "))]
    Late {
        /// What was waited for, as a participle, such as `ready to load`.
        step: String,
        /// How long.
        within: Duration,
        /// Each missing agent, with its host and the last thing it did.
        waiting: Vec<String>,
    },
    /// An agent has been silent for longer than its lease.
    #[error(
        "agent {index} on `{host}` has been silent for {silent:?}; the last thing it did: {last}"
    )]
    Lost {
        /// Number of the agent.
        index: u32,
        /// Its host.
        host: String,
        /// How long.
        silent: Duration,
        /// What it was doing.
        last: String,
    },
    /// An agent ended with an error of its own.
    #[error("agent {index} on `{host}` failed: {reason}")]
    Failed {
        /// Number of the agent.
        index: u32,
        /// Its host.
        host: String,
        /// What it says.
        reason: String,
    },
    /// Messages of an agent never came.
    #[error(
        "{count} messages of agent {index} on `{host}` are missing: Redis dropped them before they were read"
    )]
    MessagesLost {
        /// Number of the agent.
        index: u32,
        /// Its host.
        host: String,
        /// How many.
        count: u64,
    },
    /// The controller ended the run.
    #[error("the controller ended the run: {reason}")]
    Aborted {
        /// Why.
        reason: String,
    },
    /// The controller has gone without a word.
    #[error("the controller has been silent for {silent:?}; the last thing this agent did: {last}")]
    ControllerGone {
        /// How long.
        silent: Duration,
        /// What the agent was doing.
        last: String,
    },
    /// Its own host asked this agent to end.
    #[error("interrupted by a signal")]
    Interrupted,
    /// Redis has gone.
    #[error("Redis did not answer for {silent:?}: {reason}; the last thing done: {last}")]
    RedisGone {
        /// How long.
        silent: Duration,
        /// What the connection says.
        reason: String,
        /// What was going on.
        last: String,
    },
    /// A message that this version does not understand.
    #[error("cannot understand a message from `{from}`: {reason}")]
    Message {
        /// Who sent it.
        from: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The controller said nothing in time.
    #[error("the controller did not {step} within {within:?}")]
    NoWord {
        /// What was waited for.
        step: String,
        /// How long.
        within: Duration,
    },
    /// The word to start came too late to be followed.
    #[error(
        "the start of {step} was {late:?} ago when the word came: clocks or Redis are too slow for `fleet.start_lead`"
    )]
    StartPassed {
        /// What was to start.
        step: Step,
        /// How late.
        late: Duration,
    },
}

impl FleetError {
    /// What to do about it, where that is not in the message.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            FleetError::NoEndpoint => Some(
                "put it into the environment variable `DYNO_REDIS`, or into a file that `DYNO_REDIS_FILE` names",
            ),
            FleetError::EndpointText { .. } => {
                Some("such as `redis://:password@host:6379`, or `rediss://` with TLS")
            }
            FleetError::Redis { .. } => Some("check address, password and certificate of Redis"),
            FleetError::RunTaken { .. } => Some("give the run another name, or wait for its lease"),
            FleetError::Version { .. } => Some("place the same `dyno` on all hosts"),
            FleetError::Disk { .. } => Some(
                "free some space there, load less, or name another folder with `--host-folder`",
            ),
            FleetError::StartPassed { .. } => Some("raise `fleet.start_lead`"),
            FleetError::MessagesLost { .. } => {
                Some("the controller or Redis was too slow; give them a CPU of their own")
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

/// Error, causes, hint and the last line of a server's log on one line, without credentials.
pub(crate) fn reason_with_log(error: &Error) -> String {
    let mut text = error.reason();
    if let Some(hint) = &error.hint {
        text.push_str(&format!("; {}", redact(hint)));
    }
    if let Some(last) = error.log_tail.last() {
        text.push_str(&format!("; the last line of its log: {}", redact(last)));
    }
    text
}

/// A histogram whose values are outside of the bounds that all have: a bug.
pub(crate) fn out_of_bounds(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::from_cause(Kind::Internal, error)
}

/// Whether nobody is there any more to clean up behind an agent that ends with this error.
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
