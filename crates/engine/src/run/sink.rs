//! Receives the windows of phases: records them, and checks disks, servers and clients.

use super::guard::GuardCheck;
use super::limits::LimitCheck;
use super::phases::LoadTarget;
use super::recorder::Recorder;
use crate::deployment::DeploymentUnderTest;
use crate::deployment::placement::{self, HostPlacement};
use crate::error::Error;
use crate::run::instance::InstanceRun;
use dyno_load::Window;
use dyno_load::clock::Clock;
use dyno_observe::usage::UsageSampler;
use dyno_record::model::Caveat;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

type Refused = Box<dyn std::error::Error + Send + Sync>;

/// See the module. Its findings are complete when the phases have ended.
pub(super) struct WindowSink<'a, 'r> {
    pub(super) recorder: &'a mut Recorder<'r>,
    pub(super) instances: &'a mut [InstanceRun],
    pub(super) targets: &'a [LoadTarget],
    pub(super) deployment: &'a mut DeploymentUnderTest,
    /// Planned places of the clients, if they can be checked.
    pub(super) placement: Option<&'a HostPlacement>,
    /// Worker threads of each client.
    pub(super) threads: usize,
    pub(super) guard: Option<GuardCheck>,
    pub(super) limits: Option<LimitCheck>,
    pub(super) sampler: UsageSampler,
    pub(super) clock: Clock,
    /// Set to end the phases early.
    pub(super) stop: Arc<AtomicBool>,
    /// Differences of the clients' places from the plan, once known.
    pub(super) clients: Option<Vec<Caveat>>,
    /// Fault found by the guard or the limits.
    pub(super) fault: Option<Error>,
    /// Why the result is already certain, if the limits found that.
    pub(super) enough: Option<String>,
    /// Whether a server has ended.
    pub(super) ended: bool,
}

impl WindowSink<'_, '_> {
    pub(super) fn take(&mut self, window: &Window) -> Result<(), Refused> {
        self.recorder.record(&window.merged)?;
        self.guard()?;
        self.check_limits(window);
        self.record_instances(window)?;
        if self.clients.is_none()
            && let Some(placement) = self.placement
        {
            self.clients =
                placement::client_deviations(placement, self.targets.len(), self.threads);
        }
        self.sample();
        // A started server that has ended does not come back, so stop soon. The errors that clients
        // still see belong to the record.
        self.ended = self.ended || self.deployment.ended().is_some();
        if self.ended || self.fault.is_some() || self.enough.is_some() {
            self.stop.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Reads the utilization of the processes until now.
    pub(super) fn sample(&mut self) {
        self.sampler.sample(self.clock.now_ns() as f64 / 1e9);
    }

    /// Signals that no windows follow.
    pub(super) fn end(&mut self) {
        self.sample();
        self.recorder.end();
        for (number, _) in self.targets {
            if let Some(instance) = self.instances.get_mut(*number) {
                instance.recorder.end();
            }
        }
    }

    fn guard(&mut self) -> Result<(), Refused> {
        let Some(guard) = self.guard.as_mut().filter(|_| self.fault.is_none()) else {
            return Ok(());
        };
        if guard.sync_is_due() {
            self.recorder.sync()?;
            for instance in self.instances.iter_mut() {
                instance.recorder.sync()?;
            }
        }
        self.fault = guard.fault();
        Ok(())
    }

    fn check_limits(&mut self, window: &Window) {
        let goes_on = self.fault.is_none() && self.enough.is_none();
        if let Some(limits) = self.limits.as_mut().filter(|_| goes_on) {
            self.fault = limits.fault(&window.merged);
            if self.fault.is_none() {
                self.enough = limits.says_enough();
            }
        }
    }

    /// Passes the windows of single instances to their records.
    fn record_instances(&mut self, window: &Window) -> Result<(), Refused> {
        if self.instances.is_empty() {
            return Ok(());
        }
        // A single target has no separate windows.
        if let [(number, _)] = self.targets {
            return self.instances[*number].recorder.record(&window.merged);
        }
        for ((number, _), interval) in self.targets.iter().zip(&window.pairs) {
            if let Some(interval) = interval {
                self.instances[*number].recorder.record(interval)?;
            }
        }
        Ok(())
    }
}
