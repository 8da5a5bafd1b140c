//! The servers with data of a deployment that was started: each by itself, and all of them ended and started again.

use super::admin::ControlAdminClient;
use super::{DeploymentUnderTest, ending_caveat, name_and_host, with_data};
use crate::context::Context;
use crate::error::Error;
use dyno_load::connect::Connector;
use dyno_plan::units::Bytes;
use std::path::PathBuf;

/// A server with data that was started.
#[derive(Clone, Debug)]
pub struct DataMember {
    /// Its name within the deployment.
    pub name: String,
    /// Its process, another one after each start.
    pub process: u32,
    /// Folder of its data.
    pub data: PathBuf,
    /// Makes connections to it alone.
    pub connector: Connector,
}

impl DeploymentUnderTest {
    /// The servers with data that were started, in the order of their start.
    ///
    /// # Errors
    /// A connection string that cannot be used.
    pub fn data_members(&self) -> Result<Vec<DataMember>, Error> {
        let Some(speaker) = self.servers.first() else {
            return Ok(Vec::new());
        };
        let members = with_data(self.members()).map(|member| {
            let (name, host) = name_and_host(member);
            Ok(DataMember {
                name,
                process: member.server().pid(),
                data: member.server().data_dir().to_owned(),
                connector: speaker.connector_to(host)?,
            })
        });
        members.collect()
    }

    /// Ends the servers with data. Their data stays, and nobody else is ended: [`resume`](Self::resume) is next. What is
    /// unusual about the end of a server is told.
    ///
    /// # Errors
    /// A process that cannot be signalled.
    pub fn pause(&mut self, context: Context<'_>) -> Result<(), Error> {
        let Some(deployment) = &mut self.deployment else {
            return Ok(());
        };
        let ended = deployment.pause_data()?;
        for caveat in ended.iter().filter_map(ending_caveat) {
            context.caveat(&caveat.statement);
        }
        Ok(())
    }

    /// Starts them again on the same data and ports, with another cache if one is given, and waits until they are joined as
    /// they were.
    ///
    /// # Errors
    /// A server that does not start, or is not as it was in time.
    pub fn resume(&mut self, cache: Option<u64>, context: Context<'_>) -> Result<(), Error> {
        let Some(deployment) = &mut self.deployment else {
            return Ok(());
        };
        let interrupted = || context.cancel.requested();
        let mut admin = ControlAdminClient::default();
        deployment
            .resume_data(cache.map(Bytes), &mut admin, &interrupted)
            .map_err(|error| Error::from(error).context("cannot start the servers again"))
    }

    /// Waits until all members of replica sets with data have what their primary has.
    ///
    /// # Errors
    /// A member that is missing or behind for too long.
    pub fn wait_until_ready(&mut self, context: Context<'_>) -> Result<(), Error> {
        let Some(deployment) = &mut self.deployment else {
            return Ok(());
        };
        let interrupted = || context.cancel.requested();
        let mut admin = ControlAdminClient::default();
        Ok(deployment.wait_until_ready(&mut admin, &interrupted)?)
    }
}
