//! Every named metric is produced by a real run, or is listed here as optional with a reason. Rules, charts and exports query
//! metrics only by these names, so a name without a producer fails this test instead of silencing a verdict.

use crate::common::Bench;
use dyno_record::metrics::{self, MetricId};
use dyno_record::names::{
    Metric, admission, all, cgroup, disk, frequency, network, pressure, process, storage,
    temperature, tickets,
};
use dyno_testkit::{mongod_program, or_skip};

const NO_REQUEST: &str = "the run may complete no such request";
const NO_LIMIT: &str = "the control group of the test has no limit";
const NO_PRESSURE: &str = "some kernels do not report pressure";
const NO_DEVICE: &str = "the test folder may not be on a device";
const NO_SENSOR: &str = "virtual machines have no such sensor";
const NEW_SERVER: &str = "servers report it from 7.0 on";
const NEWER_SERVER: &str = "servers report it from 8.0, 8.1, 8.2 or 8.3 on";

/// Metrics that a run on a sound machine may lack, and why.
const OPTIONAL: &[(Metric, &str)] = &[
    (pressure::CPU_SOME_RATIO, NO_PRESSURE),
    (pressure::IO_SOME_RATIO, NO_PRESSURE),
    (pressure::IO_FULL_RATIO, NO_PRESSURE),
    (pressure::MEMORY_SOME_RATIO, NO_PRESSURE),
    (pressure::MEMORY_FULL_RATIO, NO_PRESSURE),
    (disk::READ_AWAIT_MS, NO_REQUEST),
    (disk::READ_SIZE_BYTES, NO_REQUEST),
    (disk::FLUSH_AWAIT_MS, NO_REQUEST),
    (storage::HOLDS_DATA_COUNT, NO_DEVICE),
    (storage::SERVES_COUNT, NO_DEVICE),
    (network::SPEED_BYTES_PER_S, "virtual interfaces do not have a speed"),
    (frequency::MEAN_HZ, NO_SENSOR),
    (frequency::MIN_HZ, NO_SENSOR),
    (temperature::CELSIUS, NO_SENSOR),
    (process::DELAY_IO_RATIO, "off by default in the kernel"),
    (cgroup::CPU_LIMIT_COUNT, NO_LIMIT),
    (cgroup::CPU_THROTTLED_RATIO, NO_LIMIT),
    (cgroup::CPU_THROTTLED_PERIODS_RATIO, NO_LIMIT),
    (cgroup::MEMORY_LIMIT_BYTES, NO_LIMIT),
    (cgroup::MEMORY_USED_BYTES, NO_LIMIT),
    (tickets::READ_QUEUED_COUNT, NEW_SERVER),
    (tickets::WRITE_QUEUED_COUNT, NEW_SERVER),
    (admission::TICKETS_RAISED_PER_S, NEW_SERVER),
    (admission::TICKETS_LOWERED_PER_S, NEW_SERVER),
    (admission::INGRESS_QUEUED_COUNT, NEWER_SERVER),
    (admission::CONNECTIONS_REJECTED_PER_S, NEWER_SERVER),
    (admission::REQUESTS_ADMITTED_PER_S, NEWER_SERVER),
    (admission::REQUESTS_REJECTED_PER_S, NEWER_SERVER),
    (admission::DEPRIORITIZED_PER_S, NEWER_SERVER),
];

#[test]
fn every_named_metric_is_produced_or_optional() {
    let Some(mongod) = or_skip(mongod_program()) else {
        return;
    };
    let bench = Bench::new();
    // Twenty readings, because the server's log is read every tenth time.
    let load = ["--records", "300", "--clients", "4", "--warmup", "0s"];
    let often = ["--duration", "4s", "--set", "observe.interval=200ms"];
    let servers = ["--mongod", mongod.to_str().unwrap(), "--topology", "replica-set=1"];
    let run = [&["run", "a", "--out", "r"][..], &servers, &load, &often];
    bench.dyno(&run.concat()).expect(0);

    let (tables, notes) = metrics::read(&bench.path("r")).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let produced: Vec<&MetricId> = tables.iter().flat_map(|table| table.columns.keys()).collect();
    // A whole-machine metric does not match a metric with instances: `cpu.all.busy_ratio` does not belong to a core.
    let whole: Vec<Metric> = all().filter(|metric| !metric.has_instances()).collect();
    let is_produced = |metric: &Metric| {
        let is_whole = |id: &MetricId| whole.iter().any(|other| other != metric && other.is(id));
        produced.iter().any(|id| metric.is(id) && !is_whole(id))
    };
    let is_optional = |metric: &Metric| OPTIONAL.iter().any(|(optional, _)| optional == metric);
    let missing: Vec<String> = all()
        .filter(|metric| !is_produced(metric) && !is_optional(metric))
        .map(|metric| metric.to_string())
        .collect();
    assert!(missing.is_empty(), "no source produces {missing:?}");

    let nameless = |id: &&MetricId| !all().any(|metric| metric.is(id));
    let unknown: Vec<String> =
        produced.into_iter().filter(nameless).map(MetricId::to_string).collect();
    assert!(unknown.is_empty(), "these have no name in `record`: {unknown:?}");
}
