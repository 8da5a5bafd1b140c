//! Stops and restarts the data servers of a started deployment, and lists them.

use super::admin::ControlAdminClient;
use super::{DeploymentUnderTest, ending_caveat, name_and_host, with_data};
use crate::context::Context;
use crate::error::Error;
use dyno_load::connect::Connector;
use dyno_plan::units::Bytes;
use std::path::PathBuf;

/// A data server.
#[derive(Clone, Debug)]
pub struct DataMember {
    /// Its name within the deployment.
    pub name: String,
    /// Changes with each start.
    pub process: u32,
    /// Data folder, if this program started the server.
    pub data: Option<PathBuf>,
    /// Connects to this server only.
    pub connector: Connector,
}

impl DeploymentUnderTest {
    /// Started data servers, in start order.
    ///
    /// # Errors
    /// A connection string cannot be used.
    pub fn data_members(&self) -> Result<Vec<DataMember>, Error> {
        let Some(speaker) = self.servers.first() else {
            return Ok(Vec::new());
        };
        let members = with_data(self.members()).map(|member| {
            let (name, host) = name_and_host(member);
            Ok(DataMember {
                name,
                process: member.server().pid(),
                data: Some(member.server().data_dir().to_owned()),
                connector: speaker.connector_to(host)?,
            })
        });
        members.collect()
    }

    /// Stops the data servers and keeps their data; [`resume`](Self::resume) restarts them. The
    /// other servers keep running. Shows unusual endings as caveats.
    ///
    /// # Errors
    /// A process cannot be signalled.
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

    /// Restarts the servers on the same data and ports, optionally with another cache size, and
    /// waits until they have rejoined.
    ///
    /// # Errors
    /// A server does not start or does not rejoin in time.
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

    /// Waits until all data members of replica sets have caught up with their primary.
    ///
    /// # Errors
    /// A member is missing or behind for too long.
    pub fn wait_until_ready(&mut self, context: Context<'_>) -> Result<(), Error> {
        let Some(deployment) = &mut self.deployment else {
            return Ok(());
        };
        let interrupted = || context.cancel.requested();
        let mut admin = ControlAdminClient::default();
        Ok(deployment.wait_until_ready(&mut admin, &interrupted)?)
    }
}
