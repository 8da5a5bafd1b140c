//! What a machine has once: run queue, pressure, memory, paging, TCP; and its network interfaces and sensors.

use super::super::text::Scrape;
use super::numbers::{growth, instances, of_instance};
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::metrics::MetricId;

const RECEIVED_BYTES: &str = "node_network_receive_bytes_total";
const SENT_BYTES: &str = "node_network_transmit_bytes_total";
const SPEED: &str = "node_network_speed_bytes";
const SWAP_TOTAL: &str = "node_memory_SwapTotal_bytes";
const SWAP_FREE: &str = "node_memory_SwapFree_bytes";
const HUGE_PAGES: &str = "node_memory_HugePages_Total";
const HUGE_PAGE_BYTES: &str = "node_memory_Hugepagesize_bytes";
const ZONE_TEMPERATURE: &str = "node_thermal_zone_temp";
const SENSOR_TEMPERATURE: &str = "node_hwmon_temp_celsius";

pub(super) const NAMES: [&str; 15] = [
    RECEIVED_BYTES,
    SENT_BYTES,
    SPEED,
    SWAP_TOTAL,
    SWAP_FREE,
    HUGE_PAGES,
    HUGE_PAGE_BYTES,
    ZONE_TEMPERATURE,
    SENSOR_TEMPERATURE,
    "node_network_receive_packets_total",
    "node_network_transmit_packets_total",
    "node_network_receive_errs_total",
    "node_network_transmit_errs_total",
    "node_network_receive_drop_total",
    "node_network_transmit_drop_total",
];

/// Totals of an interface that are added up and reported per second.
const OF_INTERFACE: [(&[&str], &str); 6] = [
    (&[RECEIVED_BYTES], "received_bytes_per_s"),
    (&[SENT_BYTES], "sent_bytes_per_s"),
    (
        &["node_network_receive_packets_total"],
        "received_packets_per_s",
    ),
    (
        &["node_network_transmit_packets_total"],
        "sent_packets_per_s",
    ),
    (
        &[
            "node_network_receive_errs_total",
            "node_network_transmit_errs_total",
        ],
        "errors_per_s",
    ),
    (
        &[
            "node_network_receive_drop_total",
            "node_network_transmit_drop_total",
        ],
        "dropped_per_s",
    ),
];

const KIBIBYTE: f64 = 1024.0;
const PAGE: f64 = 4096.0;

/// A metric without labels.
pub(super) struct Value {
    /// Name at the exporter.
    pub(super) series: &'static str,
    group: &'static str,
    instance: Option<&'static str>,
    name: &'static str,
    /// Reported per second.
    is_total: bool,
    factor: f64,
}

const fn gauge(series: &'static str, group: &'static str, name: &'static str) -> Value {
    Value {
        series,
        group,
        instance: None,
        name,
        is_total: false,
        factor: 1.0,
    }
}

const fn total(
    series: &'static str,
    group: &'static str,
    name: &'static str,
    factor: f64,
) -> Value {
    Value {
        is_total: true,
        factor,
        ..gauge(series, group, name)
    }
}

const fn pressure(series: &'static str, instance: &'static str, name: &'static str) -> Value {
    Value {
        instance: Some(instance),
        ..total(series, "pressure", name, 1.0)
    }
}

/// All metrics without labels.
#[rustfmt::skip]
pub(super) const VALUES: &[Value] = &[
    gauge("node_procs_running", "load", "runnable_count"),
    gauge("node_procs_blocked", "load", "blocked_count"),
    gauge("node_load1", "load", "average_1m_count"),
    total("node_context_switches_total", "load", "context_switches_per_s", 1.0),
    total("node_forks_total", "load", "forks_per_s", 1.0),
    total("node_intr_total", "interrupts", "total_per_s", 1.0),

    pressure("node_pressure_cpu_waiting_seconds_total", "cpu", "some_ratio"),
    pressure("node_pressure_io_waiting_seconds_total", "io", "some_ratio"),
    pressure("node_pressure_io_stalled_seconds_total", "io", "full_ratio"),
    pressure("node_pressure_memory_waiting_seconds_total", "memory", "some_ratio"),
    pressure("node_pressure_memory_stalled_seconds_total", "memory", "full_ratio"),

    gauge("node_memory_MemTotal_bytes", "memory", "total_bytes"),
    gauge("node_memory_MemFree_bytes", "memory", "free_bytes"),
    gauge("node_memory_MemAvailable_bytes", "memory", "available_bytes"),
    gauge("node_memory_Cached_bytes", "memory", "cached_bytes"),
    gauge("node_memory_Buffers_bytes", "memory", "buffers_bytes"),
    gauge("node_memory_Dirty_bytes", "memory", "dirty_bytes"),
    gauge("node_memory_Writeback_bytes", "memory", "writeback_bytes"),
    gauge("node_memory_AnonPages_bytes", "memory", "anonymous_bytes"),
    gauge("node_memory_Slab_bytes", "memory", "slab_bytes"),
    gauge("node_memory_AnonHugePages_bytes", "memory", "transparent_hugepages_bytes"),

    total("node_vmstat_pgpgin", "paging", "in_bytes_per_s", KIBIBYTE),
    total("node_vmstat_pgpgout", "paging", "out_bytes_per_s", KIBIBYTE),
    total("node_vmstat_pswpin", "paging", "swap_in_bytes_per_s", PAGE),
    total("node_vmstat_pswpout", "paging", "swap_out_bytes_per_s", PAGE),
    total("node_vmstat_pgmajfault", "paging", "major_faults_per_s", 1.0),
    total("node_vmstat_oom_kill", "paging", "oom_kills_per_s", 1.0),

    total("node_netstat_Tcp_RetransSegs", "tcp", "retransmits_per_s", 1.0),
    total("node_netstat_Tcp_OutSegs", "tcp", "segments_sent_per_s", 1.0),
    total("node_netstat_Tcp_InSegs", "tcp", "segments_received_per_s", 1.0),
    total("node_netstat_Tcp_OutRsts", "tcp", "resets_sent_per_s", 1.0),
    total("node_netstat_Tcp_PassiveOpens", "tcp", "passive_opens_per_s", 1.0),
    total("node_netstat_Tcp_ActiveOpens", "tcp", "active_opens_per_s", 1.0),
    total("node_netstat_TcpExt_ListenOverflows", "tcp", "listen_overflows_per_s", 1.0),
    gauge("node_netstat_Tcp_CurrEstab", "tcp", "established_count"),
];

/// Tells what a machine has once.
pub(super) fn report_values(scrape: &Scrape<'_>, rates: &mut Rates, reported: &mut Reported) {
    for value in VALUES {
        let Some(number) = scrape.number(value.series) else {
            continue;
        };
        let id = match value.instance {
            Some(instance) => MetricId::of_instance(value.group, instance, value.name),
            None => MetricId::of(value.group, value.name),
        };
        let known = if value.is_total {
            rates.per_s(&id, number)
        } else {
            Some(number)
        };
        reported.put_if_known(id, known.map(|known| known * value.factor));
    }
    let memory = |name| MetricId::of("memory", name);
    let swap = scrape.number(SWAP_TOTAL).zip(scrape.number(SWAP_FREE));
    reported.put_if_known(
        memory("swap_used_bytes"),
        swap.map(|(total, free)| total - free),
    );
    let pages = scrape
        .number(HUGE_PAGES)
        .zip(scrape.number(HUGE_PAGE_BYTES));
    reported.put_if_known(
        memory("hugepages_bytes"),
        pages.map(|(count, bytes)| count * bytes),
    );
}

/// Tells of every interface that ever carried anything.
pub(super) fn report_network(scrape: &Scrape<'_>, rates: &mut Rates, reported: &mut Reported) {
    for interface in instances(scrape, RECEIVED_BYTES, "device") {
        let number = |series: &str| of_instance(scrape, series, "device", interface);
        let carried = number(RECEIVED_BYTES).unwrap_or(0.0) + number(SENT_BYTES).unwrap_or(0.0);
        if carried == 0.0 {
            continue;
        }
        let id = |name| MetricId::of_instance("network", interface, name);
        for (series, name) in OF_INTERFACE {
            let total: Option<f64> = series.iter().map(|series| number(series)).sum();
            let grown = total.and_then(|total| growth(rates, name, interface, total));
            let per_s = grown.zip(rates.duration_s());
            reported.put_if_known(
                id(name),
                per_s.map(|(growth, duration_s)| growth / duration_s),
            );
        }
        let speed = number(SPEED).filter(|speed| *speed > 0.0);
        reported.put_if_known(id("speed_bytes_per_s"), speed);
    }
}

/// Tells of every sensor.
pub(super) fn report_temperature(scrape: &Scrape<'_>, reported: &mut Reported) {
    for (series, labels) in [
        (ZONE_TEMPERATURE, ["type", "zone"]),
        (SENSOR_TEMPERATURE, ["chip", "sensor"]),
    ] {
        for sample in scrape.named(series) {
            let parts: Vec<&str> = labels
                .iter()
                .filter_map(|label| sample.label(label))
                .collect();
            let id = MetricId::of_instance("temperature", &parts.join("-"), "celsius");
            reported.put(id, sample.value);
        }
    }
}
