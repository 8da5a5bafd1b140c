//! `dyno agent --serve`: starts the servers of the plan on this host, keeps them while the run lasts, and takes them away,
//! also when nobody is there any more to ask for it. With `--watch` somebody else starts them: it reads the host alone.

use super::agent::is_alone;
use super::watch::HostWatch;
use crate::args::{AgentArguments, Watched};
use crate::exit::{Exit, Failure};
use crate::session::execute::Hands;
use crate::session::lab::Lab;
use crate::session::place::Place;
use crate::session::server::{ServerPlaces, data_folder};
use dyno_fleet::FleetError;
use dyno_fleet::agent::Agent;
use dyno_fleet::protocol::{Stage, Work};
use dyno_observe::doctor::network;
use dyno_observe::health::Reading;
use dyno_observe::watch::HostSubject;
use dyno_plan::Plan;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often it is looked whether servers and controller are there.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Longest time until a server of somebody else listens.
const LISTENING_WITHIN: Duration = Duration::from_secs(10);

/// What was started.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Served {
    /// Connection string, without credentials; empty where somebody else has started them.
    pub(super) uri: String,
}

/// See the module.
pub(super) fn serve(
    agent: Agent,
    arguments: &AgentArguments,
    hands: Hands<'_>,
) -> Result<(), Failure> {
    let mut host = ServerHost {
        agent,
        arguments,
        hands,
        lab: None,
        watch: None,
    };
    let result = host.serve();
    let stopped = host.stop();
    let result = result.and(stopped);
    match &result {
        Ok(()) => host.agent.leave(),
        Err(failure) if is_alone(failure) => drop(host.agent),
        Err(failure) => host.agent.fail(&super::reason(failure)),
    }
    result
}

struct ServerHost<'a> {
    agent: Agent,
    arguments: &'a AgentArguments,
    hands: Hands<'a>,
    lab: Option<Lab>,
    watch: Option<HostWatch>,
}

impl ServerHost<'_> {
    fn serve(&mut self) -> Result<(), Failure> {
        loop {
            match self.agent.next_work(LOOK_EVERY) {
                Ok(Some((work, _))) => {
                    self.stop()?;
                    self.start(&work)?;
                }
                Ok(None) => return Ok(()),
                Err(FleetError::NoWord { .. }) => self.look()?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn start(&mut self, work: &Work) -> Result<(), Failure> {
        let plan = dyno_plan::file::parse(&work.plan, "the plan of the controller")
            .map_err(|error| Failure::of(Exit::Internal, error))?;
        let (uri, subject) = match self.arguments.watch.as_slice() {
            [] => self.start_servers(work, plan.clone())?,
            watched => (String::new(), subject(watched)),
        };
        self.watch = HostWatch::start(&plan, subject, self.agent.readings());
        let summary = serde_json::to_value(Served { uri }).expect("texts are plain data");
        self.agent.done(work.number, Stage::Serve, summary)?;
        Ok(())
    }

    /// Connection string of the servers, and what there is to read of them.
    fn start_servers(
        &mut self,
        work: &Work,
        mut plan: Plan,
    ) -> Result<(String, HostSubject), Failure> {
        self.agent.doing("starting servers")?;
        plan.server.listen = work.servers.get(self.arguments.index as usize).cloned();
        let places = ServerPlaces {
            surroundings: self.hands.surroundings,
            embedded: self.arguments.embedded_server.as_deref(),
            folder: &self.arguments.folder,
        };
        let place = Place::of_plan(&plan)?;
        let lab = Lab::open(&plan, None, &places, place.as_ref(), self.hands)?;
        let uri = lab.uris().into_iter().next().unwrap_or_default();
        let subject = HostSubject {
            of_server: true,
            processes: lab.named_processes(),
            data_folders: data_folder(&plan, &places).into_iter().collect(),
            ..HostSubject::default()
        };
        self.lab = Some(lab);
        Ok((uri, subject))
    }

    /// A server that has ended by itself ends the run.
    fn look(&mut self) -> Result<(), Failure> {
        let Some((_, ended)) = self.lab.as_mut().and_then(Lab::ended) else {
            return Ok(());
        };
        let mut failure = Failure::new(
            Exit::Environment,
            format!(
                "the server `{}` ended by itself ({})",
                ended.name, ended.status
            ),
        );
        failure.log_tail = ended.log_tail;
        Err(failure)
    }

    /// The servers first: what reads the host may wait for Redis.
    fn stop(&mut self) -> Result<(), Failure> {
        let stopped = self.stop_servers();
        self.watch = None;
        stopped
    }

    fn stop_servers(&mut self) -> Result<(), Failure> {
        let Some(lab) = self.lab.take() else {
            return Ok(());
        };
        let (stopped, caveats) = lab.stop();
        for caveat in caveats {
            self.hands.messages.warning(&caveat.message);
        }
        stopped
    }
}

/// Servers of somebody else, who may start them again.
fn subject(watched: &[Watched]) -> HostSubject {
    let mut subject = HostSubject {
        of_server: true,
        data_folders: watched.iter().map(|server| server.folder.clone()).collect(),
        ..HostSubject::default()
    };
    for (number, server) in watched.iter().enumerate() {
        let name = format!("server-{number}");
        match listener(server.port) {
            Ok(process) => subject.processes.push((name.clone(), process)),
            Err(health) => subject.unknown_process = Some(health),
        }
        subject.ports.push((name, server.port));
    }
    subject
}

/// The process that listens on a port. It may be about to start.
fn listener(port: u16) -> Reading<u32> {
    let until = Instant::now() + LISTENING_WITHIN;
    loop {
        match network::listener_pid(Path::new("/"), port) {
            Err(_) if Instant::now() < until => std::thread::sleep(LOOK_EVERY),
            found => return found,
        }
    }
}
