//! Shared context of a command.

use crate::messages::Messages;
use crate::surroundings::Surroundings;
use dyno_engine::Cancel;
use dyno_engine::environment::Environment;
use dyno_engine::load_source::LoadSource;
use dyno_engine::observer::Shared;
use dyno_engine::selfcheck;

/// The environment, cancellation and messages of a command.
#[derive(Clone, Copy)]
pub(crate) struct Invocation<'a> {
    pub(crate) surroundings: &'a Surroundings,
    /// Requested by a signal.
    pub(crate) cancel: &'a Cancel,
    pub(crate) messages: Messages,
    /// Hosts that generate the load, if other than this host.
    pub(crate) source: Option<&'a dyn LoadSource>,
}

impl<'a> Invocation<'a> {
    /// The environment for the engine.
    pub(crate) fn environment(&self) -> &'a Environment {
        &self.surroundings.environment
    }

    /// The stored selfcheck of this machine. Prints a notice if it cannot be used, so only runs should call this.
    pub(crate) fn selfcheck(self) -> Option<serde_json::Value> {
        let mut messages = self.messages;
        let folder = self.environment().state_dir.as_deref()?;
        selfcheck::state::read(folder, &Shared::new(&mut messages))
    }
}
