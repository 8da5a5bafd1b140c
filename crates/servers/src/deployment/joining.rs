//! A replica set over several hosts: each host starts its member and waits for the others. Only the
//! hosts themselves connect to a server before it has its user.

use std::time::Duration;

use bson::{Document, doc};
use dyno_plan::topology::Topology;

use super::assemble::StepContext;
use super::layout::{election_settings, instances};
use super::planning::planned_member;
use super::replica_set::{PlannedMember, configuration};
use super::{Deployment, DeploymentOptions, launch, secured};
use crate::{AdminClient, CommandFailure, ServerError};

/// Error codes that mean that another host has already created the user, which also closes the
/// localhost exception.
const USER_EXISTS: i32 = 51003;
const UNAUTHORIZED: i32 = 13;

impl Deployment {
    /// Starts member `number` of a replica set whose other members are on other hosts, in the order
    /// of [`instances`]. It is unusable before [`join`](Deployment::join). If the options ask for
    /// users or certificates, they should contain [`secrets`](DeploymentOptions::secrets), because
    /// all members need the same ones.
    ///
    /// # Errors
    /// [`ServerError`]; only the log file is left behind.
    pub fn start_member(
        topology: &Topology,
        options: &DeploymentOptions,
        number: usize,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Deployment, ServerError> {
        topology.check()?;
        let (instance, mut server) = planned_member(topology, options, number)?;
        let mut deployment = Deployment::new(topology, options, true)?;
        secured(&mut server, &deployment.secrets, options);
        let running = launch(&instance, &server, false, interrupted)?;
        deployment.add(instance, server, running);
        Ok(deployment)
    }

    /// Joins the member started by [`start_member`](Deployment::start_member) with the members of
    /// the other hosts, which do the same concurrently. Each step has `limit`. `hosts` are the
    /// addresses of all members for clients, in the order of [`instances`]. Returns when the set
    /// has its primary and the user is known here.
    ///
    /// # Errors
    /// [`ServerError::Step`] and [`ServerError::Deadline`] with the missing state.
    pub fn join(
        &mut self,
        hosts: &[String],
        limit: Duration,
        admin: &mut dyn AdminClient,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), ServerError> {
        let names: Vec<String> =
            instances(&self.topology).into_iter().map(|instance| instance.name).collect();
        let all: Vec<PlannedMember<'_>> = (0..)
            .zip(names.iter().zip(hosts))
            .map(|(index, (name, host))| PlannedMember {
                name,
                host: host.clone(),
                election: election_settings(&self.topology, index),
            })
            .collect();
        let own = self.members[0].instance.clone();
        let set = own.set.clone().unwrap_or_default();
        let leaders = leaders(&all);
        let mut context = StepContext { admin, interrupted, limit };
        let data = all.iter().filter(|one| !one.election.arbiter);
        self.set_hosts = data.map(|one| one.host.clone()).collect();
        if all
            .iter()
            .find(|one| leaders.contains(&one.host))
            .is_some_and(|one| one.name == own.name)
        {
            let step = format!("initiating the replica set `{set}`");
            let command = doc! { "replSetInitiate": configuration(&set, &all, false) };
            self.command(&mut context, 0, &step, "admin", command)?;
        }
        let step = format!("waiting for a primary and for `{}` of `{set}`", own.name);
        self.wait(&mut context, &step, |deployment, context| {
            match deployment.ask(context, 0, doc! { "hello": 1 }) {
                Err(failure) => Err(deployment.describe_failure(0, &failure)),
                Ok(hello) => {
                    let role = is_primary(&hello, &leaders).map(drop);
                    role.map_err(|reason| deployment.describe(0, &reason))
                }
            }
        })?;
        if self.secrets.credentials.is_some() && own.kind == super::InstanceKind::Data {
            self.share_user(&leaders, &mut context)?;
        }
        Ok(())
    }

    /// Creates the user if this member is the primary, and waits until the user can log in here.
    fn share_user(
        &mut self,
        leaders: &[String],
        context: &mut StepContext<'_>,
    ) -> Result<(), ServerError> {
        let data = i32::try_from(self.set_hosts.len()).unwrap_or(1);
        let step = "waiting for the user of the replica set";
        self.wait(context, step, |deployment, context| {
            deployment.members[0].has_user = false;
            let reply = deployment.ask(context, 0, doc! { "hello": 1 });
            if reply.is_ok_and(|hello| is_primary(&hello, leaders) == Ok(true)) {
                deployment.members[0].is_primary = true;
                let command = deployment.user_command(data, context.limit);
                let made = deployment.ask(context, 0, command);
                if let Some(failure) = made.err().filter(|failure| !is_made(failure)) {
                    return Err(deployment.describe_failure(0, &failure));
                }
            }
            deployment.members[0].has_user = true;
            let reply = deployment.ask(context, 0, doc! { "ping": 1 });
            reply.map(drop).map_err(|failure| deployment.describe_failure(0, &failure))
        })
    }
}

/// The members that may stay the primary: any other one would be replaced in mid-run.
fn leaders(all: &[PlannedMember<'_>]) -> Vec<String> {
    let highest = all.iter().map(|one| one.election.priority).max();
    let leading =
        all.iter().filter(|one| !one.election.arbiter && Some(one.election.priority) == highest);
    leading.map(|one| one.host.clone()).collect()
}

/// Whether a member that has its final role is the primary, or else the missing state.
fn is_primary(hello: &Document, leaders: &[String]) -> Result<bool, String> {
    let says = |name: &str| hello.get_bool(name).unwrap_or(false);
    let is_primary = says("isWritablePrimary");
    if !is_primary && !says("secondary") && !says("arbiterOnly") {
        let info = hello.get_str("info").unwrap_or("it is not a member yet");
        return Err(format!("waits: {info}"));
    }
    match hello.get_str("primary") {
        Ok(primary) if leaders.iter().any(|leader| leader == primary) => Ok(is_primary),
        Ok(primary) => {
            Err(format!("follows `{primary}`, which does not have the highest priority"))
        }
        Err(_) => Err("does not know a primary".to_owned()),
    }
}

/// Whether the user exists already.
fn is_made(failure: &CommandFailure) -> bool {
    matches!(failure.code(), Some(USER_EXISTS | UNAUTHORIZED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_is_ready_when_it_follows_a_permanent_primary() {
        let topology: Topology = "replica-set=2+1,priorities=2/1".parse().unwrap();
        let hosts = ["a:1", "b:2", "c:3"];
        let all: Vec<PlannedMember<'_>> = (0..)
            .zip(hosts)
            .map(|(index, host)| PlannedMember {
                name: host,
                host: host.to_owned(),
                election: election_settings(&topology, index),
            })
            .collect();
        let leaders = leaders(&all);
        assert_eq!(leaders, ["a:1"]);
        let of = |hello: Document| is_primary(&hello, &leaders);
        assert_eq!(of(doc! { "isWritablePrimary": true, "primary": "a:1" }), Ok(true));
        assert_eq!(of(doc! { "secondary": true, "primary": "a:1" }), Ok(false));
        assert_eq!(of(doc! { "arbiterOnly": true, "primary": "a:1" }), Ok(false));
        for (hello, reason) in [
            (doc! { "info": "no configuration" }, "no configuration"),
            (doc! { "secondary": true }, "not know a primary"),
            (doc! { "isWritablePrimary": true, "primary": "b:2" }, "`b:2`"),
        ] {
            let Err(text) = of(hello.clone()) else {
                panic!("{hello}");
            };
            assert!(text.contains(reason), "{text}");
        }
    }
}
