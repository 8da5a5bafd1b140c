//! Caveats about the machine, most of them by the results of `dyno doctor`.

use super::facts::Facts;
use crate::values::us;
use dyno_record::model::{Caveat, CaveatKind, Environment};
use dyno_record::statement;
use dyno_record::verdict::{CheckName, Level};

/// A clock that is read without a system call costs 20 to 50 ns; above 100 ns it goes through the kernel, and
/// two readings are a visible part of a fast operation.
const SLOW_CLOCK_NS: f64 = 100.0;

/// Client and server share the machine.
pub(super) fn shared_machine(facts: &Facts<'_>) -> Option<Caveat> {
    let environment = &facts.document.environment;
    let cpus = environment.machine_cpus.or(environment.cpus);
    let said = statement!("client-and-server-share-machine", cpus = cpus);
    let is_shared = facts.document.server.local;
    is_shared.then(|| Caveat::of_run(CaveatKind::SharedMachine, said))
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
        CheckName::OtherLoad => CaveatKind::SharedMachine,
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
