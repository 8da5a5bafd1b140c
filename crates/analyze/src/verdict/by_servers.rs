//! CPU utilization of servers on machines without process data: by the machine's total use, and by the servers'
//! own reports.

use super::bench::{Bench, Read, TimeRange, sum_on};
use dyno_record::metrics::MetricTable;
use dyno_record::model::SourceKind;
use dyno_record::names::{cpu, server_cpu};
use std::collections::BTreeMap;

/// Smallest share of a machine's work that belongs to its servers if they fill it: the kernel also works for
/// their connections and disk.
const MOSTLY_RATIO: f64 = 0.5;

/// CPU time of the servers as a share of their CPUs.
pub(super) fn cpu_ratio(bench: &Bench<'_>, time_range: TimeRange) -> Option<Read> {
    let whole = bench.largest_elsewhere(cpu::ALL_BUSY_RATIO, time_range);
    match (whole, of_processes(bench, time_range)) {
        (Some(whole), Some(own)) if own.value < whole.value * MOSTLY_RATIO => Some(own),
        (whole, own) => whole.or(own),
    }
}

/// CPU time of the servers on one machine as a share of its CPUs, for the machine with the largest share.
/// `None` unless all servers report their own: a silent one may be the busiest.
fn of_processes(bench: &Bench<'_>, time_range: TimeRange) -> Option<Read> {
    let mut machines: BTreeMap<&str, (Read, f64)> = BTreeMap::new();
    let sources = bench.document.sources.iter();
    for source in sources.filter(|source| source.kind == SourceKind::Server) {
        let table = bench.tables.iter().find(|table| table.source == source.name)?;
        let (used, cpus) = of_server(table, time_range)?;
        // Records of earlier versions contain only the address.
        let host = || source.subject.rsplit_once(':').unwrap_or_default().0;
        let machine = source.machine.as_deref().unwrap_or_else(host);
        let known = machines.remove(machine);
        let sum = match known {
            None => (used, cpus),
            Some((known, most)) => {
                let value = known.value + used.value;
                (known.and(used, value), cpus.max(most))
            }
        };
        machines.insert(machine, sum);
    }
    let shares = machines.into_values().map(|(used, cpus)| {
        let share = used.value / cpus;
        used.with(share)
    });
    shares.max_by(|a, b| a.value.total_cmp(&b.value))
}

fn of_server(table: &MetricTable, time_range: TimeRange) -> Option<(Read, f64)> {
    let sum = |metric| sum_on(table, metric, |_| true, time_range);
    let (user, system) = (sum(server_cpu::USER_RATIO)?, sum(server_cpu::SYSTEM_RATIO)?);
    let cpus = sum(server_cpu::CPUS_COUNT)?.value;
    let value = user.value + system.value;
    (cpus >= 1.0).then(|| (user.and(system, value), cpus))
}
