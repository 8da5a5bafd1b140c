//! The agents of a fleet: who has joined, each one's last action, and who has gone.

use crate::error::FleetError;
use crate::protocol::{Registration, Step, Up};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct Entry {
    /// Host name from the plan, until the agent reports its own.
    host: String,
    registration: Option<Registration>,
    /// Last action, for messages.
    last: String,
    ready: Option<(u32, Step)>,
    /// Number of the last message.
    message: u64,
    window: Option<Instant>,
    is_measuring: bool,
    has_left: bool,
    is_gone: bool,
}

impl Entry {
    fn failed(&self, index: u32, reason: String) -> FleetError {
        let host = self.host.clone();
        FleetError::Failed { index, host, reason }
    }
}

#[derive(Debug)]
pub(super) struct Roster(Vec<Entry>);

impl Roster {
    pub(super) fn new(hosts: &[String]) -> Self {
        let entry = |host: &String| Entry {
            host: host.clone(),
            last: "never came".into(),
            ..Entry::default()
        };
        Roster(hosts.iter().map(entry).collect())
    }

    pub(super) fn is_known(&self, index: u32) -> bool {
        let entry = self.0.get(index as usize);
        entry.is_some_and(|entry| entry.registration.is_some())
    }

    pub(super) fn come(&mut self, registration: Registration) -> Result<(), FleetError> {
        let agents = self.0.len();
        let Some(entry) = self.0.get_mut(registration.index as usize) else {
            return Err(FleetError::Message {
                from: registration.host.name,
                reason: format!(
                    "agent {} does not belong to a fleet of {agents}",
                    registration.index
                ),
            });
        };
        entry.host.clone_from(&registration.host.name);
        entry.registration = Some(registration);
        entry.last = "joined".into();
        Ok(())
    }

    pub(super) fn registrations(&self) -> impl Iterator<Item = &Registration> {
        self.0.iter().filter_map(|entry| entry.registration.as_ref())
    }

    pub(super) fn name(&self, index: u32) -> String {
        match self.0.get(index as usize) {
            Some(entry) => format!("agent {index} on `{}`", entry.host),
            None => format!("agent {index}"),
        }
    }

    pub(super) fn going(&self) -> usize {
        self.0.iter().filter(|entry| !entry.is_gone).count()
    }

    /// Error of an agent that has gone: no further stage can begin without it.
    pub(super) fn first_gone(&self) -> Option<FleetError> {
        let mut entries = (0_u32..).zip(&self.0);
        let (index, entry) = entries.find(|(_, entry)| entry.is_gone)?;
        let reason = format!("it has gone; its last action: {}", entry.last);
        Some(entry.failed(index, reason))
    }

    fn describe(&self, chosen: impl Fn(&Entry) -> bool) -> Vec<String> {
        let entries = (0_u32..).zip(&self.0).filter(|(_, entry)| chosen(entry));
        entries.map(|(index, entry)| format!("{} ({})", self.name(index), entry.last)).collect()
    }

    pub(super) fn missing(&self) -> Vec<String> {
        self.describe(|entry| entry.registration.is_none())
    }

    pub(super) fn all_ready(&self, work: u32, step: Step) -> bool {
        let mut there = self.0.iter().filter(|entry| !entry.is_gone);
        there.all(|entry| entry.ready == Some((work, step)))
    }

    pub(super) fn not_ready(&self, work: u32, step: Step) -> Vec<String> {
        self.describe(|entry| !entry.is_gone && entry.ready != Some((work, step)))
    }

    /// Whether all agents that joined have left.
    pub(super) fn all_left(&self) -> bool {
        let mut there = self.0.iter().filter(|entry| entry.registration.is_some());
        there.all(|entry| entry.has_left || entry.is_gone)
    }

    pub(super) fn not_left(&self) -> Vec<String> {
        self.describe(|entry| entry.registration.is_some() && !entry.has_left)
    }

    pub(super) fn lagging(&self, longer_than: Duration) -> Vec<String> {
        self.describe(|entry| {
            let is_late = |at: Instant| at.elapsed() > longer_than;
            entry.is_measuring && !entry.is_gone && entry.window.is_some_and(is_late)
        })
    }

    /// Expects windows of all agents after a start in `lead`.
    pub(super) fn expect(&mut self, lead: Duration) {
        for entry in &mut self.0 {
            entry.window = Some(Instant::now() + lead);
            entry.is_measuring = true;
        }
    }

    /// Counts a message: `None` if it is a repetition, otherwise the error if earlier messages are missing.
    pub(super) fn number(&mut self, index: u32, message: u64) -> Option<Option<FleetError>> {
        let entry = self.0.get_mut(index as usize)?;
        if message <= entry.message {
            return None;
        }
        let count = message - entry.message - 1;
        entry.message = message;
        let error = FleetError::MessagesLost { index, host: entry.host.clone(), count };
        Some((count > 0).then_some(error))
    }

    /// Records an agent's message; returns an error if the agent will not continue.
    pub(super) fn take(&mut self, index: u32, said: &Up) -> Option<FleetError> {
        let entry = self.0.get_mut(index as usize)?;
        entry.last = match said {
            Up::Doing { what } => what.clone(),
            Up::Ready { work, step } => {
                entry.ready = Some((*work, *step));
                entry.is_measuring = false;
                format!("ready for {step}")
            }
            Up::Begun { step, .. } => {
                entry.window = Some(Instant::now());
                entry.is_measuring = true;
                format!("began {step}")
            }
            Up::Window { window, .. } => {
                entry.window = Some(Instant::now());
                format!("window {} of {}", window.index, window.phase.as_str())
            }
            Up::ServerDone { server, .. } => format!("done with server {server}"),
            Up::Done { step, .. } => {
                entry.is_measuring = false;
                match step {
                    // The servers are up, and stay up.
                    Step::Serve | Step::Join | Step::Look => step.to_string(),
                    Step::Load | Step::Run => format!("ended {step}"),
                }
            }
            Up::Failed { reason } => {
                entry.has_left = true;
                let error = entry.failed(index, reason.clone());
                return (!std::mem::replace(&mut entry.is_gone, true)).then_some(error);
            }
            Up::Bye => {
                entry.has_left = true;
                let was_measuring = std::mem::take(&mut entry.is_measuring);
                let last = &entry.last;
                let reason = format!("it left before the end; its last action: {last}");
                let error = entry.failed(index, reason);
                let is_first = !std::mem::replace(&mut entry.is_gone, true);
                return (was_measuring && is_first).then_some(error);
            }
        };
        None
    }

    /// Marks an agent as lost; returns an error the first time.
    pub(super) fn lose(&mut self, index: u32, silent: Duration) -> Option<FleetError> {
        let entry = self.0.get_mut(index as usize)?;
        if entry.has_left || std::mem::replace(&mut entry.is_gone, true) {
            return None;
        }
        Some(FleetError::Lost { index, host: entry.host.clone(), silent, last: entry.last.clone() })
    }
}
