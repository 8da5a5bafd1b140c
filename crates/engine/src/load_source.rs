//! Interface to other hosts that generate the load of a run: runs and experiments use a fleet only
//! through it.

use crate::context::Context;
use crate::error::Error;
use dyno_load::Sink;
use dyno_load::clock::Clock;
use dyno_observe::watch::{Board, OutputOptions};
use dyno_plan::Plan;
use dyno_plan::task::{Remote, Threads};
use dyno_record::model::{Caveat, FleetRecord, PhaseKind, ResourceUse};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Phases that are performed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseGroup {
    Load,
    /// The warm-up and the measure phase.
    Run,
}

/// Phases that a source performs.
pub struct Phases<'a> {
    pub group: PhaseGroup,
    /// The plan of the run.
    pub plan: &'a Plan,
    /// Numbers of the loaded servers, each with whether its documents stay.
    pub servers: Vec<(usize, bool)>,
    /// Worker threads.
    pub threads: Threads,
    /// The clock of the run.
    pub clock: Clock,
    /// Set to end the phases early.
    pub stop: &'a Arc<AtomicBool>,
    /// Record of the source's hosts.
    pub record: &'a RefCell<FleetRecord>,
}

/// Readings of other hosts that become sources of a run.
pub struct Readings {
    /// Shows them during the run.
    pub board: Board,
    /// How they are written.
    pub keep: OutputOptions,
    /// Time between readings.
    pub interval: Duration,
    /// The clock of the run.
    pub clock: Clock,
}

/// Other hosts that start servers and load them.
pub trait LoadSource {
    /// The servers of a plan: started on their hosts, or `remote`, which is already running.
    ///
    /// # Errors
    /// A host cannot be reached or used, or a plan does not fit the hosts.
    fn servers(
        &self,
        plan: &Plan,
        remote: Option<&Remote>,
        embedded: Option<&Path>,
        context: Context<'_>,
    ) -> Result<Vec<Remote>, Error>;

    /// Performs phases, and passes their merged windows to the sink.
    ///
    /// # Errors
    /// A host fails, or the sink returns an error.
    fn perform(
        &self,
        phases: &Phases<'_>,
        context: Context<'_>,
        sink: Sink<'_>,
    ) -> Result<(), Error>;

    /// The plan for one of several servers, with the amounts of all hosts that load it. `None` if
    /// the plan does not fit the hosts.
    fn plan_of_server(&self, plan: &Plan, number: usize) -> Option<Plan>;

    /// Operations per second that all hosts together offer; `None` in a closed loop.
    fn offered_rate_per_s(&self, plan: &Plan) -> Option<f64>;

    /// Operations of all hosts together, for a planned number.
    fn operations(&self, plan: &Plan, planned: u64) -> u64;

    /// Starts to keep the hosts' own readings, until [`LoadSource::end_readings`].
    fn begin_readings(&self, readings: Readings);

    /// Utilization of the servers and their disks in a phase, where their hosts read it.
    fn server_use(
        &self,
        record: &FleetRecord,
        phase: PhaseKind,
        start_s: f64,
        end_s: f64,
    ) -> Vec<ResourceUse>;

    /// Writes the remaining readings.
    fn end_readings(&self);

    /// Caveats about the hosts.
    fn caveats(&self, record: &FleetRecord) -> Vec<Caveat>;

    /// Refuses plans of one experiment that need different hosts.
    ///
    /// # Errors
    /// The difference.
    fn check_same(&self, plans: &[&Plan]) -> Result<(), Error>;

    /// Refuses a plan with amounts that an experiment cannot vary.
    ///
    /// # Errors
    /// The amount, and how to write it instead.
    fn check_amounts(&self, plan: &Plan, verb: &str) -> Result<(), Error>;

    /// Refuses plans that the hosts cannot perform, before anything is placed on them. Dry runs
    /// call it, and so does the start of the servers.
    ///
    /// # Errors
    /// Something is missing or does not fit the hosts.
    fn check_plans(
        &self,
        _plans: &[(&Plan, Option<&Remote>)],
        _embedded: Option<&Path>,
        _context: Context<'_>,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Refuses plans that leave a host without work.
    ///
    /// # Errors
    /// The host and the plan.
    fn check_shares(
        &self,
        plans: &[(&Plan, Option<&Remote>)],
        context: Context<'_>,
    ) -> Result<(), Error>;

    /// Fewest clients of a plan that give every host something to do.
    ///
    /// # Errors
    /// A host cannot be found.
    fn least_clients(
        &self,
        plan: &Plan,
        remote: Option<&Remote>,
        context: Context<'_>,
    ) -> Result<u32, Error>;

    /// Whether hosts are lost, so that later runs cannot match the earlier ones.
    fn has_lost_hosts(&self) -> bool;

    /// Command that resumes an experiment in a folder.
    fn resume_command(&self, folder: &str) -> String;
}
