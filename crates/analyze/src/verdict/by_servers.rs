//! CPU utilization of servers on machines without process data: by the machine's total use, and by the servers'
//! own reports.

use super::bench::{Read, View};
use dyno_record::metrics::MetricTable;
use dyno_record::model::SourceKind;
use dyno_record::names::{cpu, server_cpu};
use std::collections::BTreeMap;

/// Smallest share of a machine's work that belongs to its servers if they fill it: the kernel also works for
/// their connections and disk.
const MOSTLY_RATIO: f64 = 0.5;

/// CPU time of the servers as a share of their CPUs.
pub(super) fn cpu_ratio(view: &View<'_>) -> Option<Read> {
    let whole = view.largest_elsewhere(cpu::ALL_BUSY_RATIO);
    match (whole, of_processes(view)) {
        (Some(whole), Some(own)) if own.value < whole.value * MOSTLY_RATIO => Some(own),
        (whole, own) => whole.or(own),
    }
}

/// CPU time of the servers on one machine as a share of its CPUs, for the machine with the largest share.
/// `None` unless all servers report their own: a silent one may be the busiest.
fn of_processes(view: &View<'_>) -> Option<Read> {
    let mut machines: BTreeMap<&str, (Read, f64)> = BTreeMap::new();
    let sources = view.document.sources.iter();
    for source in sources.filter(|source| source.kind == SourceKind::Server) {
        let table = view.tables.iter().find(|table| table.source == source.name)?;
        let (used, cpus) = of_server(view, table)?;
        // Records of earlier versions contain only the address.
        let host = || source.subject.rsplit_once(':').unwrap_or_default().0;
        let machine = source.machine.as_deref().unwrap_or_else(host);
        let known = machines.remove(machine);
        let sum = match known {
            None => (used, cpus),
            Some((known, most)) => (known.plus(used), cpus.max(most)),
        };
        machines.insert(machine, sum);
    }
    let shares = machines.into_values().map(|(used, cpus)| {
        let share = used.value / cpus;
        used.with(share)
    });
    shares.max_by(|a, b| a.value.total_cmp(&b.value))
}

fn of_server(view: &View<'_>, table: &MetricTable) -> Option<(Read, f64)> {
    let sum = |metric| view.sum_on(table, metric, |_| true);
    let (user, system) = (sum(server_cpu::USER_RATIO)?, sum(server_cpu::SYSTEM_RATIO)?);
    let cpus = sum(server_cpu::CPUS_COUNT)?.value;
    (cpus >= 1.0).then(|| (user.plus(system), cpus))
}
