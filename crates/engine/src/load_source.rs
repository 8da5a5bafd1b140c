//! Where the load of a run comes from, if not from this process: the one way in which runs and experiments know a fleet.

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

/// What of a run is done at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseGroup {
    /// The load phase.
    Load,
    /// The warm-up and the measure phase.
    Run,
}

/// Phases that a source performs.
pub struct Phases<'a> {
    /// Which phases.
    pub group: PhaseGroup,
    /// The plan of the run.
    pub plan: &'a Plan,
    /// The servers that are loaded, by number, and whether the documents that they hold stay.
    pub servers: Vec<(usize, bool)>,
    /// Worker threads.
    pub threads: Threads,
    /// The clock of the run.
    pub clock: Clock,
    /// Set when the phases are to end early.
    pub stop: &'a Arc<AtomicBool>,
    /// What the source keeps of its hosts.
    pub record: &'a RefCell<FleetRecord>,
}

/// Readings of other hosts that become sources of a run.
pub struct Readings {
    /// Where they are shown while the run goes on.
    pub board: Board,
    /// How they are written.
    pub keep: OutputOptions,
    /// From one reading to the next.
    pub interval: Duration,
    /// The clock of the run.
    pub clock: Clock,
}

/// Other hosts that load servers, and start them.
pub trait LoadSource {
    /// The servers of a plan: started on their hosts, or `remote`, which is already running.
    ///
    /// # Errors
    /// Hosts that cannot be reached or used, and plans that do not fit them.
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
    /// Hosts that fail, and what the sink refuses.
    fn perform(
        &self,
        phases: &Phases<'_>,
        context: Context<'_>,
        sink: Sink<'_>,
    ) -> Result<(), Error>;

    /// The plan as one of several servers sees it: amounts are those of all hosts that load it. `None` if the plan does not fit
    /// the hosts.
    fn plan_of_server(&self, plan: &Plan, number: usize) -> Option<Plan>;

    /// Operations per second that all hosts together offer; `None` in a closed loop.
    fn offered_rate_per_s(&self, plan: &Plan) -> Option<f64>;

    /// Operations of all hosts together, when the plan says this many.
    fn operations(&self, plan: &Plan, planned: u64) -> u64;

    /// Begins to keep what hosts read of themselves, until [`LoadSource::end_readings`].
    fn begin_readings(&self, readings: Readings);

    /// How busy the servers and their disks were in a phase, as far as their hosts read it.
    fn server_use(
        &self,
        record: &FleetRecord,
        phase: PhaseKind,
        start_s: f64,
        end_s: f64,
    ) -> Vec<ResourceUse>;

    /// Writes the readings that are left.
    fn end_readings(&self);

    /// Caveats of what became of the hosts.
    fn caveats(&self, record: &FleetRecord) -> Vec<Caveat>;

    /// Refuses plans of one experiment that need different hosts.
    ///
    /// # Errors
    /// The difference.
    fn check_same(&self, plans: &[&Plan]) -> Result<(), Error>;

    /// Refuses a plan whose amounts an experiment cannot vary.
    ///
    /// # Errors
    /// Which, and what to write instead.
    fn check_amounts(&self, plan: &Plan, verb: &str) -> Result<(), Error>;

    /// Refuses plans that the hosts could not do, as far as that is known before anything is placed on them. A dry run asks it, and
    /// so does the way to the servers.
    ///
    /// # Errors
    /// What does not fit the hosts, or is not there.
    fn check_plans(
        &self,
        _plans: &[(&Plan, Option<&Remote>)],
        _embedded: Option<&Path>,
        _context: Context<'_>,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Refuses plans in which a host would have nothing to do.
    ///
    /// # Errors
    /// Which host of which plan.
    fn check_shares(
        &self,
        plans: &[(&Plan, Option<&Remote>)],
        context: Context<'_>,
    ) -> Result<(), Error>;

    /// Fewest clients of a plan with which every host has something to do.
    ///
    /// # Errors
    /// Hosts that cannot be found.
    fn least_clients(
        &self,
        plan: &Plan,
        remote: Option<&Remote>,
        context: Context<'_>,
    ) -> Result<u32, Error>;

    /// Whether hosts are lost, so that no other run can be like those before.
    fn has_lost_hosts(&self) -> bool;

    /// The command that goes on with an experiment in a folder.
    fn resume_command(&self, folder: &str) -> String;
}
