//! A fleet whose agents have come, and its servers.

use super::hosts::Hosts;
use super::plan_text;
use super::serve::Served;
use crate::exit::{Exit, Failure};
use crate::session::execute::Hands;
use crate::session::task::Remote;
use dyno_fleet::FleetError;
use dyno_fleet::controller::{Controller, Event};
use dyno_fleet::endpoint::Endpoint;
use dyno_fleet::names::RunName;
use dyno_fleet::protocol::{Registration, Stage, Work};
use dyno_fleet::shares::Share;
use dyno_plan::Plan;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest time of a look whether all have come.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Longest time to start servers, as of a local one with its recovery.
const SERVE_WITHIN: Duration = Duration::from_secs(180);

/// A fleet whose agents have come.
pub(super) struct Open {
    pub(super) run: String,
    pub(super) hosts: Hosts,
    /// All hosts with a program of this run.
    pub(super) names: Vec<String>,
    /// Folder of playbooks and secrets.
    pub(super) _folder: PrivateFolder,
    pub(super) clients: Option<Controller>,
    pub(super) agents: Vec<Registration>,
    pub(super) servers: Option<Controller>,
    pub(super) server_hosts: Vec<Registration>,
    /// Addresses that servers listen on.
    pub(super) addresses: Vec<String>,
    /// Connection strings of the servers now.
    pub(super) uris: Vec<String>,
    /// Where all meet, and under which names.
    pub(super) endpoint: Endpoint,
    pub(super) keys: [RunName; 2],
}

impl Open {
    /// Waits until all have come.
    pub(super) fn gather(&mut self, within: Duration, hands: Hands<'_>) -> Result<(), Failure> {
        let until = Instant::now() + within;
        let gather = |controller: &mut Controller| loop {
            hands.interrupt.check()?;
            match controller.gather(LOOK_EVERY) {
                Ok(all) => return Ok::<_, Failure>(all),
                Err(FleetError::Late { step, waiting, .. }) if Instant::now() >= until => {
                    return Err(FleetError::Late {
                        step,
                        within,
                        waiting,
                    }
                    .into());
                }
                Err(FleetError::Late { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        };
        if let Some(servers) = &mut self.servers {
            self.server_hosts = gather(servers)?;
        }
        if let Some(clients) = &mut self.clients {
            self.agents = gather(clients)?;
        }
        Ok(())
    }

    /// Starts servers as the plan says, on all their hosts, in place of those that run there.
    pub(super) fn serve(&mut self, plan: &Plan, hands: Hands<'_>) -> Result<Vec<Remote>, Failure> {
        let Some(controller) = &mut self.servers else {
            return Ok(Vec::new());
        };
        let count = self.addresses.len() as u32;
        let shares: Vec<Share> = (0..count)
            .map(|index| Share {
                index,
                agents: count,
                links: Vec::new(),
            })
            .collect();
        let work = Work {
            plan: plan_text(plan),
            servers: self.addresses.clone(),
            stages: vec![Stage::Serve],
            ..Work::default()
        };
        controller.give(work, &shares)?;
        let until = Instant::now() + SERVE_WITHIN;
        let mut uris = vec![None; count as usize];
        while uris.iter().any(Option::is_none) {
            hands.interrupt.check()?;
            if Instant::now() >= until {
                let waiting = (0..count).filter(|index| uris[*index as usize].is_none());
                return Err(FleetError::Late {
                    step: "serving".into(),
                    within: SERVE_WITHIN,
                    waiting: waiting.map(|index| controller.name(index)).collect(),
                }
                .into());
            }
            match controller.next(LOOK_EVERY)? {
                Some(Event::Gone { error, .. }) => {
                    return Err(Failure::from(error).context("cannot start the servers"));
                }
                Some(Event::Done { agent, summary, .. }) => {
                    let served: Served = serde_json::from_value(summary)
                        .map_err(|error| Failure::of(Exit::Internal, error))?;
                    uris[agent as usize] = Some(served.uri);
                }
                _ => {}
            }
        }
        uris.into_iter()
            .flatten()
            .map(|uri| Remote::parse(&uri))
            .collect()
    }

    /// A server host that has gone, or failed. It is looked for during `within`.
    pub(super) fn server_fault(&mut self, within: Duration) -> Result<Option<Failure>, Failure> {
        let Some(controller) = &mut self.servers else {
            return Ok(None);
        };
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match controller.next(left.max(Duration::from_millis(1)))? {
                Some(Event::Gone { error, .. }) => {
                    return Ok(Some(Failure::from(error).context("a server host is lost")));
                }
                None if Instant::now() >= until => return Ok(None),
                _ => {}
            }
        }
    }
}

/// A folder that goes away with this value, and that nobody else can read.
pub(super) struct PrivateFolder(pub(super) PathBuf);

impl PrivateFolder {
    pub(super) fn create() -> Result<Self, Failure> {
        use std::os::unix::fs::DirBuilderExt;
        let name = format!(
            "dyno-fleet-{}-{:x}",
            std::process::id(),
            jiff::Timestamp::now().as_nanosecond()
        );
        let path = std::env::temp_dir().join(name);
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| {
            Failure::of(Exit::Environment, error)
                .context(format!("cannot make `{}`", path.display()))
        })?;
        Ok(PrivateFolder(path))
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
