//! Caveats about the machine, most of them by the results of `dyno doctor`.

use super::facts::Facts;
use crate::values::{number, percent, us};
use dyno_record::model::{Caveat, CaveatKind, Environment, PhaseKind, ResourceKind};
use dyno_record::statement;
use dyno_record::verdict::{CheckName, Level};

/// A clock that is read without a system call costs 20 to 50 ns; above 100 ns it goes through the kernel, and
/// two readings are a visible part of a fast operation.
const SLOW_CLOCK_NS: f64 = 100.0;

/// Share of the machine's CPU time from which use by others is reported. Below it are the machine's own services.
const OTHERS_RATIO: f64 = 0.05;

/// Share of the machine's CPU time from which use by others invalidates the figures, as in `dyno doctor`.
pub const MUCH_OTHER_LOAD_RATIO: f64 = 0.3;

/// Client and server share the machine.
pub(super) fn shared_machine(facts: &Facts<'_>) -> Option<Caveat> {
    let environment = &facts.document.environment;
    let cpus = environment.machine_cpus.or(environment.cpus);
    let said = statement!("client-and-server-share-machine", cpus = cpus);
    let is_shared = facts.document.server.local;
    is_shared.then(|| Caveat::of_run(CaveatKind::SharedMachine, said))
}

/// CPUs of a machine, and busy CPUs in total, for the server and for the client. The use of a whole machine is
/// known only if the client also runs on it.
pub(crate) struct CpuUses {
    pub(crate) cpus: u32,
    pub(crate) all: f64,
    pub(crate) server: f64,
    pub(crate) client: f64,
}

impl CpuUses {
    pub(crate) fn others(&self) -> f64 {
        self.all - self.server - self.client
    }

    /// The share of others, if it matters.
    pub(crate) fn relevant_ratio(&self) -> Option<f64> {
        Some(self.others() / f64::from(self.cpus)).filter(|ratio| *ratio > OTHERS_RATIO)
    }
}

/// Other processes used the CPUs of client and server in the measure phase, or in the load phase of a run that only
/// loads.
pub(super) fn used_by_others(facts: &Facts<'_>) -> Option<Caveat> {
    let load = || facts.document.phases.iter().find(|phase| phase.name == PhaseKind::Load);
    let phase = facts.measure.or_else(load)?;
    let used = |kind: ResourceKind| {
        let mut of_phase = facts.document.resources.iter();
        of_phase
            .find(|one| one.resource == kind && one.phase == phase.name && one.reported.is_none())
    };
    let busy = |kind: ResourceKind| used(kind).map(|used| used.busy_s / used.duration_s);
    let uses = CpuUses {
        cpus: u32::try_from(used(ResourceKind::HostCpu)?.units.max(1)).unwrap_or(u32::MAX),
        all: busy(ResourceKind::HostCpu)?,
        server: busy(ResourceKind::ServerCpu)?,
        client: (phase.client.cpu_user_s + phase.client.cpu_system_s) / phase.duration_s,
    };
    let said = statement!(
        "cpus-used-by-others",
        others = number(uses.others()),
        cpus = uses.cpus,
        share = percent(uses.relevant_ratio()?)
    );
    Some(Caveat::of_phase(CaveatKind::OtherLoad, phase.name, said))
}

/// Checks of machine and server that failed before the measurement. Competition between client and server has
/// its own caveat for every run on one machine, so it is not repeated for their CPUs.
pub fn failed_checks(environment: &Environment) -> Vec<Caveat> {
    environment
        .doctor
        .iter()
        .filter(|verdict| verdict.level == Level::Fail && verdict.check != CheckName::SharedCores)
        .map(|verdict| Caveat {
            kind: kind_of_check(verdict.check),
            statement: statement!(
                "check-fails",
                check = verdict.check.as_str(),
                found = &verdict.found,
                advised = &verdict.advised,
                why = &verdict.why,
                change = verdict.change.as_ref().map(|change| &change.command)
            ),
            phase: None,
        })
        .collect()
}

/// Whether the check `other_load` failed.
pub fn has_other_load(environment: &Environment) -> bool {
    environment
        .doctor
        .iter()
        .any(|one| one.check == CheckName::OtherLoad && one.level == Level::Fail)
}

/// The kind of the caveat of a failed check.
pub fn kind_of_check(check: CheckName) -> CaveatKind {
    match check {
        CheckName::CpuGovernor => CaveatKind::CpuFrequency,
        CheckName::ClockSource => CaveatKind::ClockCoarse,
        CheckName::OtherLoad => CaveatKind::OtherLoad,
        _ => CaveatKind::MachineSetting,
    }
}

/// The clock is slow to read.
pub(super) fn clock_coarse(facts: &Facts<'_>) -> Option<Caveat> {
    let cost_ns =
        facts.document.environment.clock_read_ns.filter(|cost_ns| *cost_ns > SLOW_CLOCK_NS)?;
    let said = statement!("clock-slow-to-read", cost = us(cost_ns / 1e3));
    Some(Caveat::of_run(CaveatKind::ClockCoarse, said))
}
