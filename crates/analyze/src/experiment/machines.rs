//! Resources of servers on several machines: each machine's CPUs can be full on their own, and their total is
//! the demand of the deployment's servers.

use super::figures::resource_name;
use crate::grouping::grouped;
use dyno_record::experiment::Demand;
use dyno_record::model::{PhaseKind, ResourceKind, ResourceUse, RunDocument};

/// Separates the name of a resource from the name of its machine.
const OF: &str = " of ";

/// CPUs of servers; process figures take precedence over whole machines.
const CPUS: [ResourceKind; 2] = [ResourceKind::ServerCpu, ResourceKind::ServerHostCpu];

/// Prefix of a resource of one of several machines.
const fn each_begins(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::ServerHostCpu => "all CPUs",
        kind => resource_name(kind),
    }
}

/// Busy time of a resource, with its display name.
pub(super) struct Named {
    pub(super) name: String,
    pub(super) kind: ResourceKind,
    pub(super) units: u64,
    /// The CPUs within the quotas, if all uses have one.
    pub(super) quota: Option<f64>,
    pub(super) busy_s: f64,
    pub(super) duration_s: f64,
}

impl Named {
    fn of(name: String, uses: &[&ResourceUse]) -> Option<Named> {
        let first = uses.first()?;
        Some(Named {
            name,
            kind: first.resource,
            units: uses.iter().map(|one| one.units).sum(),
            quota: uses.iter().map(|one| one.allowed.as_ref()?.quota()).sum::<Option<f64>>(),
            busy_s: uses.iter().map(|one| one.busy_s).sum(),
            duration_s: first.duration_s,
        })
    }
}

/// The resources of the measure phase, each kind once: the total of several machines, followed by the CPUs of
/// each.
pub(super) fn of_measure_phase(document: &RunDocument) -> Vec<Named> {
    let measured = |one: &&ResourceUse| one.phase == PhaseKind::Measure && one.duration_s > 0.0;
    let measured = document.resources.iter().filter(measured);
    let mut found = Vec::new();
    for (kind, uses) in grouped(measured.map(|one| (one.resource, one))) {
        found.extend(Named::of(resource_name(kind).to_owned(), &uses));
        if uses.len() > 1 && CPUS.contains(&kind) {
            found.extend(uses.iter().filter_map(|one| {
                let machine = &one.reported.as_ref()?.machine;
                Named::of(format!("{}{OF}{machine}", each_begins(kind)), &[one])
            }));
        }
    }
    found
}

/// Whether a name belongs to a resource of this kind, of all machines or of one.
pub fn is_of_kind(name: &str, kind: ResourceKind) -> bool {
    name == resource_name(kind) || is_one_of(name, kind)
}

/// Whether a name belongs to the CPUs of one of several machines.
pub fn is_of_one_machine(name: &str) -> bool {
    CPUS.into_iter().any(|kind| is_one_of(name, kind))
}

fn is_one_of(name: &str, kind: ResourceKind) -> bool {
    let rest = name.strip_prefix(each_begins(kind));
    // The names of whole-machine resources contain ` of ` themselves.
    let is_whole = [ResourceKind::HostCpu, ResourceKind::ServerHostCpu]
        .into_iter()
        .any(|kind| name == resource_name(kind));
    CPUS.contains(&kind) && !is_whole && rest.is_some_and(|rest| rest.starts_with(OF))
}

/// The CPUs that the servers wait for, as stations: one for each of several machines; by process use or, if
/// that is unknown, by machine use.
pub(super) fn server_cpus(demands: &[Demand]) -> Vec<&Demand> {
    let of_kind = |kind: ResourceKind| -> Vec<&Demand> {
        let of_machines = demands.iter().filter(|one| is_one_of(&one.name, kind));
        let each: Vec<&Demand> = of_machines.collect();
        if each.is_empty() {
            let name = resource_name(kind);
            return demands.iter().filter(|one| one.name == name).collect();
        }
        each
    };
    CPUS.into_iter().map(of_kind).find(|stations| !stations.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_machine_is_distinguished_from_all_by_its_name() {
        let kinds = |name: &str| {
            let all = [CPUS[0], CPUS[1], ResourceKind::HostCpu, ResourceKind::Disk];
            all.map(|kind| is_of_kind(name, kind))
        };
        let (process, machine) = ([true, false, false, false], [false, true, false, false]);
        assert_eq!(kinds("server CPU"), process);
        assert_eq!(kinds("server CPU of db1"), process);
        assert_eq!(kinds("all CPUs of the server's machine"), machine);
        assert_eq!(kinds("all CPUs of db1"), machine);
        assert_eq!(kinds("all CPUs of the machine"), [false, false, true, false]);
        assert_eq!(kinds("disk"), [false, false, false, true]);
        let several = ["server CPU of db1", "all CPUs of 10.0.0.2"];
        assert!(several.into_iter().all(is_of_one_machine));
        let all = ["server CPU", "all CPUs of the machine", "all CPUs of the server's machine"];
        assert!(!all.into_iter().any(is_of_one_machine));
    }
}
