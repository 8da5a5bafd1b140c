//! Records changes of the servers and of the client.

use super::Session;
use crate::deployment::DeploymentUnderTest;
use dyno_record::model::{Event, EventRecord};

impl Session<'_> {
    /// Adds events since the last call: those in `noticed`, and those of the servers and the
    /// started processes.
    pub(super) fn keep_events(
        &mut self,
        noticed: Vec<EventRecord>,
        deployment: &mut DeploymentUnderTest,
    ) {
        let changes =
            deployment.servers.iter().flat_map(|server| server.connector().take_changes());
        let changes =
            changes.map(|(at, event)| EventRecord { at_s: self.clock.seconds_at(at), event });
        let mut all: Vec<EventRecord> = noticed.into_iter().chain(changes).collect();
        if let Some((_, ended)) = deployment.ended() {
            all.push(EventRecord {
                at_s: self.clock.now_ns() as f64 / 1e9,
                event: Event::ServerEnded { server: ended.name, status: ended.status.to_string() },
            });
        }
        let events = &mut self.document.events;
        // An ended process is found each time.
        all.retain(|new| {
            let is_end = matches!(new.event, Event::ServerEnded { .. });
            !is_end || events.iter().all(|known| known.event != new.event)
        });
        events.extend(all);
        events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    }
}
