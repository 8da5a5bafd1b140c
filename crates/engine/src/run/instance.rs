//! The record of one of several servers that are measured at the same time: its own run directory
//! inside the run's, from which every report can be made.

use crate::error::Error;
use crate::run::recorder::Recorder;
use dyno_plan::Plan;
use dyno_record::model::{
    Caveat, FleetRecord, FleetServerRecord, InstanceRecord, RunDocument, ServerRecord,
};
use dyno_record::reader::Run;
use dyno_record::writer::RunWriter;
use dyno_results::AnalysedRun;
use dyno_results::run::find_caveats;
use std::path::{Path, PathBuf};

/// Folder of the instances in the run directory.
const INSTANCES: &str = "instances";

/// See the module.
pub(crate) struct InstanceRun {
    number: usize,
    /// Below the working folder.
    directory: PathBuf,
    pub(crate) document: RunDocument,
    pub(crate) recorder: Recorder<'static>,
    /// Rate offered by its clients; absent in a closed loop.
    pub(crate) offered_rate_per_s: Option<f64>,
    /// Caveats about this instance that its figures do not show.
    pub(crate) caveats: Vec<Caveat>,
}

impl InstanceRun {
    /// Creates the folder of instance `number` inside the run's. `document` belongs to the whole
    /// run; its rows cover the same number of windows.
    pub(crate) fn create(
        number: usize,
        run: &Path,
        plan: &Plan,
        document: &RunDocument,
        windows_per_row: u64,
    ) -> Result<Self, Error> {
        let mut plan = plan.clone();
        plan.server.pairs = 1;
        let document = RunDocument { plan: dyno_plan::file::recorded(&plan), ..document.clone() };
        let directory = run.join(relative(number));
        let toml = dyno_plan::file::to_toml(&plan);
        let writer = RunWriter::create(&directory, &toml, &document)?;
        Ok(InstanceRun {
            number,
            directory,
            document,
            recorder: Recorder::new(writer, Box::new(()), windows_per_row),
            offered_rate_per_s: plan.schedule.rate_per_s(),
            caveats: Vec::new(),
        })
    }

    /// Saves the current state.
    pub(crate) fn save(&mut self, server: &ServerRecord) -> Result<(), Error> {
        self.document.server.clone_from(server);
        self.recorder.save(&mut self.document)?;
        Ok(())
    }

    /// Its part of the whole run's document.
    pub(crate) fn to_record(&self) -> InstanceRecord {
        InstanceRecord {
            number: self.number as u64,
            directory: relative(self.number),
            server: self.document.server.clone(),
            phases: self.recorder.phases().to_vec(),
        }
    }

    /// Marks its clients as hosts of a fleet instead of this machine. Its record then describes
    /// what the agents did on all of their servers.
    pub(crate) fn is_of_fleet(&mut self, fleet: &FleetRecord) {
        let own = |server: &&FleetServerRecord| server.number == self.number as u64;
        let servers: Vec<FleetServerRecord> = fleet.servers.iter().filter(own).cloned().collect();
        let client = self.document.recorded_plan().client;
        self.document.selfcheck = None;
        self.document.fleet = Some(FleetRecord {
            clients: client.map_or(fleet.clients, |client| client.clients.into()),
            // Belongs to all servers.
            common_rate_per_s: None,
            servers,
            ..fleet.clone()
        });
    }

    /// Finds the caveats of this instance and analyses its record; `None` if nothing was recorded.
    pub(crate) fn analyse(&mut self) -> Result<Option<AnalysedRun>, Error> {
        if self.recorder.is_empty() {
            return Ok(None);
        }
        let mut run = Run::open(&self.directory)?;
        find_caveats(&mut run, std::mem::take(&mut self.caveats));
        self.document.caveats.clone_from(&run.document.caveats);
        self.recorder.save(&mut self.document)?;
        Ok(Some(AnalysedRun::with_trace(run, None)))
    }

    /// Syncs everything to the disk.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.recorder.finish(&self.document)?;
        Ok(())
    }
}

fn relative(number: usize) -> String {
    format!("{INSTANCES}/{number}")
}
