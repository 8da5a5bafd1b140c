//! CPU time of servers, load generator and others, as shares of their CPUs or threads.

use super::bench::{Read, View, cpus, is_client, is_server, of_others};
use dyno_record::metrics::MetricTable;
use dyno_record::model::{PhaseKind, ResourceKind};
use dyno_record::names::{self, Metric, cgroup, cpu, process};

/// CPUs that the servers may use: by their affinity, and by kernel limits.
pub(super) fn server_cpus(view: &View<'_>) -> Option<f64> {
    let by_affinity = view
        .document
        .resources
        .iter()
        .find(|one| one.resource == ResourceKind::ServerCpu && one.phase == PhaseKind::Measure);
    let environment = &view.document.environment;
    let allowed = match by_affinity {
        Some(found) => found.units as f64,
        None => environment.machine_cpus.or(environment.cpus)? as f64,
    };
    // Each control group of servers counts once.
    let quota = by_affinity.and_then(|found| found.allowed.as_ref()?.quota());
    if let Some(quota) = quota.filter(|quota| *quota > 0.0) {
        return Some(quota.min(allowed));
    }
    let limited: f64 = view.tables.iter().map(|table| limited_cpus(view, table, allowed)).sum();
    let limit = if limited > 0.0 { limited.min(allowed) } else { allowed };
    (limit > 0.0).then_some(limit)
}

/// CPUs of a machine that servers may use: in a pod its own instead of the node's.
pub(super) fn host_cpus(view: &View<'_>, table: &MetricTable) -> Option<f64> {
    let mut all = cpus(table).len() as f64;
    let host = view.document.sources.iter().find(|source| source.name == table.source);
    if let (Some(host), Some(fleet)) = (host, &view.document.fleet) {
        let there = fleet.servers.iter().filter(|server| server.host == host.subject);
        let reported: u64 = there.map(|server| server.cpus).sum();
        all = if reported > 0 { all.min(reported as f64) } else { all };
    }
    let limited = limited_cpus(view, table, all);
    let allowed = if limited > 0.0 { limited.min(all) } else { all };
    (allowed > 0.0).then_some(allowed)
}

/// CPUs that the servers of a machine may use by their limits, each at most `all`: a server without a limit may
/// use all of them. 0 if no server process was read.
fn limited_cpus(view: &View<'_>, table: &MetricTable, all: f64) -> f64 {
    let servers = table.columns_of(process::CPU_RATIO).map(|(id, _)| id);
    let servers = servers.filter_map(|id| id.instance().filter(|name| is_server(name)));
    servers
        .map(|name| {
            let limit = view.mean(table, &cgroup::CPU_LIMIT_COUNT.of(name));
            limit.map_or(all, |limit| limit.value.min(all))
        })
        .sum()
}

/// Sum of metrics of the client's worker threads as a share of their number, on the host with the largest
/// share. The first agent of a host reports its own; the others there do the same. Unknown in records without
/// metrics of worker threads.
pub(super) fn of_workers(view: &View<'_>, metrics: &[Metric]) -> Option<Read> {
    let shares = view.tables.iter().filter_map(|table| {
        let of = |metric: Metric| view.mean(table, &metric.of(names::CLIENT));
        let workers = of(process::WORKERS_COUNT)?.value;
        let reads = metrics.iter().map(|metric| of(*metric));
        let sum = reads.reduce(|sum, read| Some(sum?.plus(read?)))??;
        let share = sum.value / workers;
        (workers > 0.0).then(|| sum.with(share))
    });
    shares.max_by(|a, b| a.value.total_cmp(&b.value))
}

/// The largest mean of a metric over the CPUs of the servers' machines.
pub(super) fn largest_of_cpus(view: &View<'_>, metric: Metric) -> Option<Read> {
    view.worst_host(|table| {
        let each = cpus(table).into_iter();
        let each = each.filter_map(|cpu| view.mean(table, &metric.of(cpu)));
        each.max_by(|a, b| a.value.total_cmp(&b.value))
    })
}

pub(super) fn others(view: &View<'_>) -> Option<Read> {
    let table = view.server_machine()?;
    let count = cpus(table).len() as f64;
    let machine = |metric: Metric| view.mean(table, &metric.id());
    let user = machine(cpu::ALL_USER_RATIO)?;
    let nice = machine(cpu::ALL_NICE_RATIO).map_or(0.0, |nice| nice.value);
    let all = [user.value + nice, machine(cpu::ALL_SYSTEM_RATIO)?.value].map(|share| share * count);
    // The client counts only if it shares the machine, in which case its table is also the server's.
    let is_shared = view.client_host().is_some_and(|own| own.source == table.source);
    let known = |metric: Metric| {
        let of = |which: fn(&str) -> bool| match view.is_fleet() {
            true => view.sum_on(table, metric, which),
            false => view.sum_over(metric, which),
        };
        let servers = of(is_server)?;
        let client = of(is_client).filter(|_| is_shared);
        let sum = servers.value + client.map_or(0.0, |client| client.value);
        Some(servers.with(sum))
    };
    let (in_user, in_kernel) = (known(process::CPU_USER_RATIO)?, known(process::CPU_SYSTEM_RATIO)?);
    let others = of_others(all, [in_user.value, in_kernel.value]);
    Some(user.and(in_user, others))
}
