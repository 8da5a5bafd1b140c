//! What a command has at hand.

use crate::messages::Messages;
use crate::surroundings::Surroundings;
use dyno_engine::Cancel;
use dyno_engine::environment::Environment;
use dyno_engine::load_source::LoadSource;
use dyno_engine::observer::Shared;
use dyno_engine::selfcheck;

/// The process that a command runs in, and the person who started it.
#[derive(Clone, Copy)]
pub(crate) struct Invocation<'a> {
    pub(crate) surroundings: &'a Surroundings,
    /// Requested by a signal.
    pub(crate) cancel: &'a Cancel,
    pub(crate) messages: Messages,
    /// Hosts that the load comes from, if not this one.
    pub(crate) source: Option<&'a dyn LoadSource>,
}

impl<'a> Invocation<'a> {
    /// What the engine needs to know of this machine.
    pub(crate) fn environment(&self) -> &'a Environment {
        &self.surroundings.environment
    }

    /// What is known of this machine as a load generator; says why that is nothing, so only runs should ask.
    pub(crate) fn selfcheck(self) -> Option<serde_json::Value> {
        let mut messages = self.messages;
        selfcheck::state::for_run(self.environment(), &Shared::new(&mut messages))
    }
}
