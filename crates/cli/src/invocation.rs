//! What a command has at hand.

use crate::messages::Messages;
use crate::surroundings::Surroundings;
use dyno_engine::Cancel;
use dyno_engine::environment::Environment;
use dyno_engine::load_source::LoadSource;

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
}
