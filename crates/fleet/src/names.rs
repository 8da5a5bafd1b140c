//! Names in Redis. All keys of a run share a prefix.

use crate::error::FleetError;
use std::fmt;

/// Name of a run in Redis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunName(String);

impl RunName {
    /// Checks the name: 1 to 64 letters, digits, `.`, `_` or `-`.
    ///
    /// # Errors
    /// [`FleetError::RunName`] for any other text, which could be a pattern or change the prefix.
    pub fn new(name: &str) -> Result<Self, FleetError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if (1..=64).contains(&name.len()) && name.chars().all(allowed) {
            return Ok(RunName(name.into()));
        }
        Err(FleetError::RunName { name: name.into() })
    }

    /// Run name for the agents that start or watch the servers of a run.
    ///
    /// # Errors
    /// [`FleetError::RunName`] as in [`RunName::new`].
    pub fn for_servers(run: &str) -> Result<Self, FleetError> {
        RunName::new(&format!("{run}.servers"))
    }

    /// String that identifies the controller; expires with its lease.
    pub fn controller(&self) -> String {
        self.key("controller")
    }

    /// Hash: registrations of the agents, by number.
    pub fn agents(&self) -> String {
        self.key("agents")
    }

    /// Sorted set: last lease renewal of each agent, in microseconds of the clock of Redis.
    pub fn beats(&self) -> String {
        self.key("beats")
    }

    /// Stream from the agents to the controller.
    pub fn up(&self) -> String {
        self.key("up")
    }

    /// Stream from the controller to the agents.
    pub fn down(&self) -> String {
        self.key("down")
    }

    /// Hash: the agents' shares of one work.
    pub fn shares(&self) -> String {
        self.key("shares")
    }

    /// Stream: the agents' host readings.
    pub fn readings(&self) -> String {
        self.key("readings")
    }

    /// All keys of a run.
    pub fn all(&self) -> [String; 7] {
        [
            self.controller(),
            self.agents(),
            self.beats(),
            self.up(),
            self.down(),
            self.shares(),
            self.readings(),
        ]
    }

    fn key(&self, last: &str) -> String {
        format!("dyno:{}:{last}", self.0)
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_cannot_escape_its_prefix() {
        let run = RunName::new("2026-a.b_c").expect("valid");
        assert!(run.all().iter().all(|key| key.starts_with("dyno:2026-a.b_c:")));
        for wrong in ["", "a:b", "a*", "a b", &"x".repeat(65)] {
            assert!(RunName::new(wrong).is_err(), "{wrong}");
        }
    }
}
