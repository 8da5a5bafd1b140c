//! `dyno agent --serve`: starts the servers of the plan on this host, keeps them while the run lasts, and takes them away,
//! also when nobody is there any more to ask for it.

use super::agent::is_alone;
use crate::args::AgentArguments;
use crate::exit::{Exit, Failure};
use crate::session::execute::Hands;
use crate::session::lab::Lab;
use crate::session::place::Place;
use crate::session::server::ServerPlaces;
use dyno_fleet::FleetError;
use dyno_fleet::agent::Agent;
use dyno_fleet::protocol::{Stage, Work};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often it is looked whether servers and controller are there.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What was started.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Served {
    /// Connection string, without credentials.
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
        self.agent.doing("starting servers")?;
        let mut plan = dyno_plan::file::parse(&work.plan, "the plan of the controller")
            .map_err(|error| Failure::of(Exit::Internal, error))?;
        plan.server.listen = work.servers.get(self.arguments.index as usize).cloned();
        let places = ServerPlaces {
            surroundings: self.hands.surroundings,
            embedded: self.arguments.embedded_server.as_deref(),
            folder: &self.arguments.folder,
        };
        let place = Place::of_plan(&plan)?;
        let lab = Lab::open(&plan, None, &places, place.as_ref(), self.hands)?;
        let uri = lab.uris().into_iter().next().unwrap_or_default();
        self.lab = Some(lab);
        let summary = serde_json::to_value(Served { uri }).expect("texts are plain data");
        self.agent.done(work.number, Stage::Serve, summary)?;
        Ok(())
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

    fn stop(&mut self) -> Result<(), Failure> {
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
