//! Metrics that a machine has once: run queue, pressure, memory, paging, TCP; and its network
//! interfaces and sensors.

use super::super::text::Scrape;
use super::numbers::{growth, instances, of_instance};
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::names::{
    Metric, interrupts, load, memory, network, paging, pressure, tcp, temperature,
};

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

/// Totals of an interface that are summed and reported per second.
const OF_INTERFACE: [(&[&str], Metric); 6] = [
    (&[RECEIVED_BYTES], network::RECEIVED_BYTES_PER_S),
    (&[SENT_BYTES], network::SENT_BYTES_PER_S),
    (&["node_network_receive_packets_total"], network::RECEIVED_PACKETS_PER_S),
    (&["node_network_transmit_packets_total"], network::SENT_PACKETS_PER_S),
    (
        &["node_network_receive_errs_total", "node_network_transmit_errs_total"],
        network::ERRORS_PER_S,
    ),
    (
        &["node_network_receive_drop_total", "node_network_transmit_drop_total"],
        network::DROPPED_PER_S,
    ),
];

const KIBIBYTE: f64 = 1024.0;
const PAGE: f64 = 4096.0;

/// A metric without labels.
pub(super) struct Value {
    /// Its name at the exporter.
    pub(super) series: &'static str,
    metric: Metric,
    /// Whether it is a total, which is reported per second.
    is_total: bool,
    factor: f64,
}

const fn gauge(series: &'static str, metric: Metric) -> Value {
    Value { series, metric, is_total: false, factor: 1.0 }
}

const fn total(series: &'static str, metric: Metric, factor: f64) -> Value {
    Value { is_total: true, factor, ..gauge(series, metric) }
}

/// All metrics without labels.
#[rustfmt::skip]
pub(super) const VALUES: &[Value] = &[
    gauge("node_procs_running", load::RUNNABLE_COUNT),
    gauge("node_procs_blocked", load::BLOCKED_COUNT),
    gauge("node_load1", load::AVERAGE_1M_COUNT),
    total("node_context_switches_total", load::CONTEXT_SWITCHES_PER_S, 1.0),
    total("node_forks_total", load::FORKS_PER_S, 1.0),
    total("node_intr_total", interrupts::TOTAL_PER_S, 1.0),

    total("node_pressure_cpu_waiting_seconds_total", pressure::CPU_SOME_RATIO, 1.0),
    total("node_pressure_io_waiting_seconds_total", pressure::IO_SOME_RATIO, 1.0),
    total("node_pressure_io_stalled_seconds_total", pressure::IO_FULL_RATIO, 1.0),
    total("node_pressure_memory_waiting_seconds_total", pressure::MEMORY_SOME_RATIO, 1.0),
    total("node_pressure_memory_stalled_seconds_total", pressure::MEMORY_FULL_RATIO, 1.0),

    gauge("node_memory_MemTotal_bytes", memory::TOTAL_BYTES),
    gauge("node_memory_MemFree_bytes", memory::FREE_BYTES),
    gauge("node_memory_MemAvailable_bytes", memory::AVAILABLE_BYTES),
    gauge("node_memory_Cached_bytes", memory::CACHED_BYTES),
    gauge("node_memory_Buffers_bytes", memory::BUFFERS_BYTES),
    gauge("node_memory_Dirty_bytes", memory::DIRTY_BYTES),
    gauge("node_memory_Writeback_bytes", memory::WRITEBACK_BYTES),
    gauge("node_memory_AnonPages_bytes", memory::ANONYMOUS_BYTES),
    gauge("node_memory_Slab_bytes", memory::SLAB_BYTES),
    gauge("node_memory_AnonHugePages_bytes", memory::TRANSPARENT_HUGEPAGES_BYTES),

    total("node_vmstat_pgpgin", paging::IN_BYTES_PER_S, KIBIBYTE),
    total("node_vmstat_pgpgout", paging::OUT_BYTES_PER_S, KIBIBYTE),
    total("node_vmstat_pswpin", paging::SWAP_IN_BYTES_PER_S, PAGE),
    total("node_vmstat_pswpout", paging::SWAP_OUT_BYTES_PER_S, PAGE),
    total("node_vmstat_pgmajfault", paging::MAJOR_FAULTS_PER_S, 1.0),
    total("node_vmstat_oom_kill", paging::OOM_KILLS_PER_S, 1.0),

    total("node_netstat_Tcp_RetransSegs", tcp::RETRANSMITS_PER_S, 1.0),
    total("node_netstat_Tcp_OutSegs", tcp::SEGMENTS_SENT_PER_S, 1.0),
    total("node_netstat_Tcp_InSegs", tcp::SEGMENTS_RECEIVED_PER_S, 1.0),
    total("node_netstat_Tcp_OutRsts", tcp::RESETS_SENT_PER_S, 1.0),
    total("node_netstat_Tcp_PassiveOpens", tcp::PASSIVE_OPENS_PER_S, 1.0),
    total("node_netstat_Tcp_ActiveOpens", tcp::ACTIVE_OPENS_PER_S, 1.0),
    total("node_netstat_TcpExt_ListenOverflows", tcp::LISTEN_OVERFLOWS_PER_S, 1.0),
    gauge("node_netstat_Tcp_CurrEstab", tcp::ESTABLISHED_COUNT),
];

/// Reports the metrics that a machine has once.
pub(super) fn report_values(scrape: &Scrape<'_>, rates: &mut Rates, reported: &mut Reported) {
    for value in VALUES {
        let Some(number) = scrape.number(value.series) else {
            continue;
        };
        let id = value.metric.id();
        let known = if value.is_total { rates.per_s(&id, number) } else { Some(number) };
        reported.put_if_known(id, known.map(|known| known * value.factor));
    }
    let swap = scrape.number(SWAP_TOTAL).zip(scrape.number(SWAP_FREE));
    let swap = swap.map(|(total, free)| total - free);
    reported.put_if_known(memory::SWAP_USED_BYTES.id(), swap);
    let pages = scrape.number(HUGE_PAGES).zip(scrape.number(HUGE_PAGE_BYTES));
    let pages = pages.map(|(count, bytes)| count * bytes);
    reported.put_if_known(memory::HUGEPAGES_BYTES.id(), pages);
}

/// Reports every interface that has carried traffic.
pub(super) fn report_network(scrape: &Scrape<'_>, rates: &mut Rates, reported: &mut Reported) {
    for interface in instances(scrape, RECEIVED_BYTES, "device") {
        let number = |series: &str| of_instance(scrape, series, "device", interface);
        let carried = number(RECEIVED_BYTES).unwrap_or(0.0) + number(SENT_BYTES).unwrap_or(0.0);
        if carried == 0.0 {
            continue;
        }
        for (series, metric) in OF_INTERFACE {
            let total: Option<f64> = series.iter().map(|series| number(series)).sum();
            let grown = total.and_then(|total| growth(rates, metric.name(), interface, total));
            let per_s = grown.zip(rates.duration_s());
            let per_s = per_s.map(|(growth, duration_s)| growth / duration_s);
            reported.put_if_known(metric.of(interface), per_s);
        }
        let speed = number(SPEED).filter(|speed| *speed > 0.0);
        reported.put_if_known(network::SPEED_BYTES_PER_S.of(interface), speed);
    }
}

/// Reports every sensor.
pub(super) fn report_temperature(scrape: &Scrape<'_>, reported: &mut Reported) {
    for (series, labels) in
        [(ZONE_TEMPERATURE, ["type", "zone"]), (SENSOR_TEMPERATURE, ["chip", "sensor"])]
    {
        for sample in scrape.named(series) {
            let parts: Vec<&str> = labels.iter().filter_map(|label| sample.label(label)).collect();
            reported.put(temperature::CELSIUS.of(&parts.join("-")), sample.value);
        }
    }
}
