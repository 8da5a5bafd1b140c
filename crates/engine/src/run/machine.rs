//! Changes to and checks of the server machine for a run.

use super::host_settings::HostSettings;
use super::{Session, collection, preflight};
use crate::deployment::server::{ServerUnderTest, data_folder};
use crate::deployment::storage::planned_bytes;
use crate::deployment::{self, DeploymentUnderTest};
use crate::error::Error;
use dyno_load::connect::Control;
use dyno_observe::doctor::{self, Subject, WATCH};
use dyno_plan::model::PageCache;
use std::path::Path;

impl<'a> Session<'a> {
    /// Keeps machine settings until the end of the run, and records them.
    pub(super) fn note_host(&mut self, settings: impl IntoIterator<Item = HostSettings<'a>>) {
        for own in settings {
            self.document.host_settings.extend(own.record());
            self.host_settings.push(own);
        }
    }

    /// Drops the page cache, if the plan wants reads from the disk.
    pub(super) fn drop_page_cache(&self, deployment: &DeploymentUnderTest) -> Result<(), Error> {
        if self.plan.data.page_cache == PageCache::Keep {
            return Ok(());
        }
        if !deployment.servers.iter().all(ServerUnderTest::is_local) {
            return Err(preflight::page_cache_of_others());
        }
        dyno_observe::environment::drop_page_cache().map_err(preflight::page_cache_stays)
    }

    /// Checks the placement of the servers after the work, when their memory has settled.
    pub(super) fn verify_placement(&mut self, deployment: &DeploymentUnderTest) {
        let Some(placement) = &self.placement else {
            return;
        };
        let (mut record, caveats) = placement.verify(&deployment.processes());
        record.clients_as_planned = self.clients_as_planned;
        self.document.placement = Some(record);
        self.caveats.extend(caveats);
    }

    /// Checks whether machine settings were unchanged at the end.
    pub(super) fn verify_host(&mut self) {
        let looks = self.host_settings.iter().map(HostSettings::look);
        let (records, caveats): (Vec<_>, Vec<_>) = looks.unzip();
        self.document.host_settings = records.concat();
        self.caveats.extend(caveats.concat());
    }

    /// Records the `dyno doctor` checks of the machine and the first server; failed checks become
    /// caveats.
    pub(super) fn check_machine(
        &mut self,
        deployment: &DeploymentUnderTest,
        controls: &mut [Control],
    ) {
        let servers = &deployment.servers;
        let own_folder = || data_folder(self.plan, &self.paths).filter(|_| !self.is_elsewhere());
        let (Some(server), Some(control)) = (servers.first(), controls.first_mut()) else {
            return;
        };
        // A started server with a temporary folder is empty; what others lack is unknown.
        let is_kept = self.plan.server.data_dir.is_some() || !self.plan.server.data_dirs.is_empty();
        let is_empty = !self.is_elsewhere() && !is_kept;
        let documents = collection::own_documents(self.plan).saturating_mul(servers.len() as u64);
        let instances = match &self.task.remote {
            None => {
                deployment::topology_of(self.plan).map_or(1, |topology| topology.data_servers())
            }
            Some(_) => 1,
        };
        let instances = u64::from(instances);
        let subject = Subject {
            data_dir: match deployment.storage() {
                Some(storage) => Some(storage.data()),
                None => own_folder(),
            },
            planned_data_bytes: is_empty
                .then(|| planned_bytes(&self.plan.data, documents))
                .flatten(),
            connections: Some(u64::from(self.plan.client.clients)),
            server: Some(server.checked(control, &self.servers[0], instances)),
            found: Vec::new(),
            watch: WATCH,
            own: Vec::new(),
        };
        let round_trip = subject.server.as_ref().and_then(|server| server.round_trip);
        self.servers[0].round_trip_us = round_trip.map(|time| time.median_us);
        let facts = doctor::observe(Path::new("/"), &subject);
        self.document.environment.doctor = doctor::examine(&facts);
    }
}
