//! CPU time of servers, load generator and others, as shares of their CPUs or threads.

use super::bench::{Bench, Read, TimeRange, cpus, is_client, is_server, mean, of_others, sum_on};
use dyno_record::metrics::MetricTable;
use dyno_record::model::{PhaseKind, ResourceKind};
use dyno_record::names::{self, Metric, cgroup, cpu, process};

pub(super) fn processes(
    bench: &Bench<'_>,
    metric: Metric,
    which: fn(&str) -> bool,
    time_range: TimeRange,
) -> Option<Read> {
    bench.sum_over(metric, which, time_range)
}

/// CPUs that the servers may use: by their affinity, and by kernel limits.
pub(super) fn server_cpus(bench: &Bench<'_>, time_range: TimeRange) -> Option<f64> {
    let by_affinity = bench
        .document
        .resources
        .iter()
        .find(|one| one.resource == ResourceKind::ServerCpu && one.phase == PhaseKind::Measure);
    let environment = &bench.document.environment;
    let allowed = match by_affinity {
        Some(found) => found.units as f64,
        None => environment.machine_cpus.or(environment.cpus)? as f64,
    };
    // Each control group of servers counts once.
    let quota = by_affinity.and_then(|found| found.allowed.as_ref()?.quota());
    if let Some(quota) = quota.filter(|quota| *quota > 0.0) {
        return Some(quota.min(allowed));
    }
    let limited: f64 =
        bench.tables.iter().map(|table| limited_cpus(table, allowed, time_range)).sum();
    let limit = if limited > 0.0 { limited.min(allowed) } else { allowed };
    (limit > 0.0).then_some(limit)
}

/// CPUs of a machine that servers may use: in a pod its own instead of the node's.
pub(super) fn host_cpus(
    bench: &Bench<'_>,
    table: &MetricTable,
    time_range: TimeRange,
) -> Option<f64> {
    let mut all = cpus(table).len() as f64;
    let host = bench.document.sources.iter().find(|source| source.name == table.source);
    if let (Some(host), Some(fleet)) = (host, &bench.document.fleet) {
        let there = fleet.servers.iter().filter(|server| server.host == host.subject);
        let reported: u64 = there.map(|server| server.cpus).sum();
        all = if reported > 0 { all.min(reported as f64) } else { all };
    }
    let limited = limited_cpus(table, all, time_range);
    let allowed = if limited > 0.0 { limited.min(all) } else { all };
    (allowed > 0.0).then_some(allowed)
}

/// CPUs that the servers of a machine may use by their limits, each at most `all`: a server without a limit may
/// use all of them. 0 if no server process was read.
fn limited_cpus(table: &MetricTable, all: f64, time_range: TimeRange) -> f64 {
    let servers = table.columns_of(process::CPU_RATIO).map(|(id, _)| id);
    let servers = servers.filter_map(|id| id.instance().filter(|name| is_server(name)));
    servers
        .map(|name| {
            let limit = mean(table, &cgroup::CPU_LIMIT_COUNT.of(name), time_range);
            limit.map_or(all, |limit| limit.value.min(all))
        })
        .sum()
}

/// Sum of metrics of the client's worker threads as a share of their number, on the host with the largest
/// share. The first agent of a host reports its own; the others there do the same. Unknown in records without
/// metrics of worker threads.
pub(super) fn of_workers(
    bench: &Bench<'_>,
    metrics: &[Metric],
    time_range: TimeRange,
) -> Option<Read> {
    let shares = bench.tables.iter().filter_map(|table| {
        let of = |metric: Metric| mean(table, &metric.of(names::CLIENT), time_range);
        let workers = of(process::WORKERS_COUNT)?.value;
        let reads = metrics.iter().map(|metric| of(*metric));
        let sum = reads.reduce(|sum, read| {
            let (sum, read) = (sum?, read?);
            let value = sum.value + read.value;
            Some(sum.and(read, value))
        })??;
        let share = sum.value / workers;
        (workers > 0.0).then(|| sum.with(share))
    });
    shares.max_by(|a, b| a.value.total_cmp(&b.value))
}

/// The largest mean of a metric over the CPUs of the servers' machines.
pub(super) fn largest_of_cpus(
    bench: &Bench<'_>,
    metric: Metric,
    time_range: TimeRange,
) -> Option<Read> {
    bench.worst_host(|table| {
        let each = cpus(table).into_iter();
        let each = each.filter_map(|cpu| mean(table, &metric.of(cpu), time_range));
        each.max_by(|a, b| a.value.total_cmp(&b.value))
    })
}

pub(super) fn others(bench: &Bench<'_>, time_range: TimeRange) -> Option<Read> {
    let table = bench.server_machine()?;
    let count = cpus(table).len() as f64;
    let machine = |metric: Metric| mean(table, &metric.id(), time_range);
    let user = machine(cpu::ALL_USER_RATIO)?;
    let nice = machine(cpu::ALL_NICE_RATIO).map_or(0.0, |nice| nice.value);
    let all = [user.value + nice, machine(cpu::ALL_SYSTEM_RATIO)?.value].map(|share| share * count);
    // The client counts only if it shares the machine, in which case its table is also the server's.
    let is_shared = bench.client_host().is_some_and(|own| own.source == table.source);
    let known = |metric: Metric| {
        let of = |which| {
            if bench.is_fleet() {
                sum_on(table, metric, which, time_range)
            } else {
                processes(bench, metric, which, time_range)
            }
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
