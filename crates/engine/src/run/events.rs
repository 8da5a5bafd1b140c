//! Changes of the servers and of the client, for the record.

use super::Session;
use crate::deployment::DeploymentUnderTest;
use dyno_record::model::{Event, EventRecord};

impl Session<'_> {
    /// Adds what happened since the last call: `noticed` by others, to the servers, and to the processes that were started.
    pub(super) fn keep_events(
        &mut self,
        noticed: Vec<EventRecord>,
        deployment: &mut DeploymentUnderTest,
    ) {
        let servers = deployment.servers.iter();
        let changes = servers.flat_map(|server| server.connector().take_changes());
        let changes = changes.map(|(at, event)| EventRecord {
            at_s: self.clock.seconds_at(at),
            event,
        });
        let mut all: Vec<EventRecord> = noticed.into_iter().chain(changes).collect();
        if let Some((_, ended)) = deployment.ended() {
            all.push(EventRecord {
                at_s: self.clock.now_ns() as f64 / 1e9,
                event: Event::ServerEnded {
                    server: ended.name,
                    status: ended.status.to_string(),
                },
            });
        }
        let events = &mut self.document.events;
        // A process that has ended is found each time.
        all.retain(|new| {
            let is_end = matches!(new.event, Event::ServerEnded { .. });
            !is_end || events.iter().all(|known| known.event != new.event)
        });
        events.extend(all);
        events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    }
}
