//! Restarts the servers with data while the rest of the deployment keeps running, to empty their
//! caches.

use bson::doc;
use dyno_plan::units::Bytes;

use super::assemble::StepContext;
use super::replica_set::behind;
use super::{Deployment, InstanceKind, Member, end_together, member_error};
use crate::child_guard::Stopped;
use crate::server::RunningServer;
use crate::{AdminClient, ServerError};

impl Deployment {
    /// Stops the servers with data, in each set the primary last. Their data and all other servers
    /// stay. Operations on them fail until [`resume_data`](Deployment::resume_data).
    ///
    /// # Errors
    /// The error of the first server whose process cannot be signalled.
    pub fn pause_data(&mut self) -> Result<Vec<(String, Stopped)>, ServerError> {
        let all = data(&mut self.members);
        let (last, first): (Vec<_>, Vec<_>) = all.partition(|member| member.is_primary);
        let mut ended = end_together(servers(first), RunningServer::pause);
        ended.extend(end_together(servers(last), RunningServer::pause));
        ended.into_iter().collect()
    }

    /// Restarts the paused servers on their ports with the same options, or with another cache, and
    /// waits until each set has its primary, no member is behind, and the routers reach all shards.
    ///
    /// # Errors
    /// [`ServerError`], like a start. Servers that run keep running.
    pub fn resume_data(
        &mut self,
        cache: Option<Bytes>,
        admin: &mut dyn AdminClient,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), ServerError> {
        let is_alone = self.members.len() == 1;
        for member in data(&mut self.members) {
            // A set knows its members by their ports, and so do clients.
            member.options.port = member.server.address().port();
            let mut options = member.options.clone();
            options.cache = cache.or(options.cache);
            member.server.resume(&options, interrupted).map_err(|source| match is_alone {
                true => source,
                false => member_error(&member.instance.name, source),
            })?;
        }
        let mut context = StepContext { admin, interrupted, limit: self.step_limit };
        self.wait_for_sets(&mut context)?;
        self.wait_for_routers(&mut context)
    }

    /// Waits until every set with data has its primary, and all members have applied the primary's
    /// operations.
    ///
    /// # Errors
    /// [`ServerError::Deadline`] with the member that is missing or behind.
    pub fn wait_until_ready(
        &mut self,
        admin: &mut dyn AdminClient,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), ServerError> {
        let mut context = StepContext { admin, interrupted, limit: self.step_limit };
        self.wait_for_sets(&mut context)
    }

    fn wait_for_sets(&mut self, context: &mut StepContext<'_>) -> Result<(), ServerError> {
        let mut sets: Vec<String> =
            data(&mut self.members).filter_map(|member| member.instance.set.clone()).collect();
        sets.dedup();
        for set in sets {
            let primary = self.wait_for_set(&set, context)?;
            let step =
                format!("waiting until all members of `{set}` have caught up with its primary");
            self.wait(context, &step, |deployment, context| {
                let status = deployment.ask(context, primary, doc! { "replSetGetStatus": 1 });
                let status =
                    status.map_err(|failure| deployment.describe_failure(primary, &failure))?;
                behind(&status).map_or(Ok(()), |name| Err(format!("`{name}` is behind")))
            })?;
        }
        Ok(())
    }

    /// A router notices only by a query that shards were away, and answers once they are back.
    fn wait_for_routers(&mut self, context: &mut StepContext<'_>) -> Result<(), ServerError> {
        for at in 0..self.members.len() {
            if self.members[at].instance.kind != InstanceKind::Router {
                continue;
            }
            let step =
                format!("waiting until `{}` reaches all shards", self.members[at].instance.name);
            self.wait(context, &step, |deployment, context| {
                let command = doc! { "listDatabases": 1, "nameOnly": true };
                let reply = deployment.ask(context, at, command);
                reply.map(drop).map_err(|failure| deployment.describe_failure(at, &failure))
            })?;
        }
        Ok(())
    }
}

/// The members with data under test.
fn data(members: &mut [Member]) -> impl Iterator<Item = &mut Member> {
    let is_data = |member: &&mut Member| member.instance.kind == InstanceKind::Data;
    members.iter_mut().filter(is_data)
}

fn servers(members: Vec<&mut Member>) -> Vec<(String, &mut RunningServer)> {
    let named =
        members.into_iter().map(|member| (member.instance.name.clone(), &mut member.server));
    named.collect()
}
