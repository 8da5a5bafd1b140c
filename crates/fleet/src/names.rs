//! Names in Redis: all keys of a run are under one prefix.

use crate::error::FleetError;
use std::fmt;

/// Name of a run in Redis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunName(String);

impl RunName {
    /// The name, if it is one: 1 to 64 letters, digits, `.`, `_` or `-`.
    ///
    /// # Errors
    /// [`FleetError::RunName`] for anything else: it would be a pattern, or another prefix.
    pub fn new(name: &str) -> Result<Self, FleetError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if (1..=64).contains(&name.len()) && name.chars().all(allowed) {
            return Ok(RunName(name.into()));
        }
        Err(FleetError::RunName { name: name.into() })
    }

    /// The name under which those who start or watch the servers of a run meet.
    ///
    /// # Errors
    /// [`FleetError::RunName`] as in [`RunName::new`].
    pub fn for_servers(run: &str) -> Result<Self, FleetError> {
        RunName::new(&format!("{run}.servers"))
    }

    /// Text, for keys that expire with the lease of the controller: who it is.
    pub fn controller(&self) -> String {
        self.key("controller")
    }

    /// Hash: who the agents are, by number.
    pub fn agents(&self) -> String {
        self.key("agents")
    }

    /// Sorted set: when each agent was last heard of, in microseconds of the clock of Redis.
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

    /// Hash: the shares of the agents in one piece of work.
    pub fn shares(&self) -> String {
        self.key("shares")
    }

    /// Stream: what agents read of their hosts.
    pub fn readings(&self) -> String {
        self.key("readings")
    }

    /// All keys that a run can have.
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
    fn a_name_cannot_leave_its_prefix() {
        let run = RunName::new("2026-a.b_c").expect("it is one");
        assert!(
            run.all()
                .iter()
                .all(|key| key.starts_with("dyno:2026-a.b_c:"))
        );
        for wrong in ["", "a:b", "a*", "a b", &"x".repeat(65)] {
            assert!(RunName::new(wrong).is_err(), "{wrong}");
        }
    }
}
