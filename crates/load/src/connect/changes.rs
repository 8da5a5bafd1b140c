//! Changes of the servers that a connector notices: a new primary, and failed connection attempts.

use super::discover::{Topology, TopologyKind};
use super::error::ConnectError;
use dyno_record::model::Event;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Limits memory if a deployment changes all the time.
const MOST_CHANGES: usize = 1_000;

/// See the module.
#[derive(Default)]
pub(super) struct Changes {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    primary: Option<String>,
    /// Whether the last attempt to connect failed: further failures do not count as changes.
    is_unreachable: bool,
    changes: Vec<(Instant, Event)>,
}

impl Changes {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records discovered servers.
    pub(super) fn found(&self, topology: &Topology) {
        let (TopologyKind::ReplicaSet { .. }, [primary]) =
            (&topology.kind, topology.endpoints.as_slice())
        else {
            return;
        };
        let to = primary.host().to_string();
        let mut state = self.lock();
        let before = state.primary.replace(to.clone());
        if let Some(from) = before.filter(|from| *from != to) {
            state.push(Event::PrimaryChanged { from, to });
        }
    }

    /// Records an attempt to make a connection for operations.
    pub(super) fn tried(&self, error: Option<&ConnectError>) {
        if matches!(error, Some(ConnectError::Interrupted)) {
            return;
        }
        let mut state = self.lock();
        let was_unreachable = std::mem::replace(&mut state.is_unreachable, error.is_some());
        if let Some(error) = error.filter(|_| !was_unreachable) {
            let event = Event::Unreachable {
                reason: error.to_string(),
                refused: matches!(error, ConnectError::Refused { .. }),
            };
            state.push(event);
        }
    }

    /// Changes since the last call.
    pub(super) fn take(&self) -> Vec<(Instant, Event)> {
        std::mem::take(&mut self.lock().changes)
    }
}

impl State {
    fn push(&mut self, event: Event) {
        if self.changes.len() < MOST_CHANGES {
            self.changes.push((Instant::now(), event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::Endpoint;
    use dyno_plan::uri::Host;

    fn set(port: u16) -> Topology {
        let host = Host::Tcp { host: "127.0.0.1".to_owned(), port };
        Topology {
            kind: TopologyKind::ReplicaSet { name: "rs0".to_owned() },
            endpoints: vec![Endpoint::resolve(&host).expect("it is an address")],
        }
    }

    #[test]
    fn only_a_different_primary_is_a_change() {
        let changes = Changes::default();
        changes.found(&set(1));
        changes.found(&set(1));
        assert_eq!(changes.take(), []);
        changes.found(&set(2));
        let found: Vec<Event> = changes.take().into_iter().map(|(_, event)| event).collect();
        let expected =
            Event::PrimaryChanged { from: "127.0.0.1:1".to_owned(), to: "127.0.0.1:2".to_owned() };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn failed_attempts_in_a_row_are_one_change() {
        let changes = Changes::default();
        let error = ConnectError::NoPrimary { members: Vec::new() };
        for error in [Some(&error), Some(&error), None, Some(&error)] {
            changes.tried(error);
        }
        assert_eq!(changes.take().len(), 2);
    }
}
