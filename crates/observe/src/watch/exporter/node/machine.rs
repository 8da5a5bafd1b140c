//! Metrics that a machine has once: run queue, pressure, memory, paging, TCP; and its network
//! interfaces and sensors.

use super::super::text::Scrape;
use super::numbers::{growth, instances, of_instance};
use crate::watch::host;
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::names::{Metric, interrupts, load, memory, network, pressure, tcp, temperature};
use std::sync::LazyLock;

const RECEIVED_BYTES: &str = "node_network_receive_bytes_total";
const SENT_BYTES: &str = "node_network_transmit_bytes_total";
const SPEED: &str = "node_network_speed_bytes";
const SWAP_TOTAL: &str = "node_memory_SwapTotal_bytes";
const SWAP_FREE: &str = "node_memory_SwapFree_bytes";
const HUGE_PAGES: &str = "node_memory_HugePages_Total";
const HUGE_PAGE_BYTES: &str = "node_memory_Hugepagesize_bytes";
const ZONE_TEMPERATURE: &str = "node_thermal_zone_temp";
const SENSOR_TEMPERATURE: &str = "node_hwmon_temp_celsius";

const OTHERS: [&str; 7] = [
    SPEED,
    SWAP_TOTAL,
    SWAP_FREE,
    HUGE_PAGES,
    HUGE_PAGE_BYTES,
    ZONE_TEMPERATURE,
    SENSOR_TEMPERATURE,
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

/// Assumed size of a page, which the exporter does not report.
const PAGE_BYTES: f64 = 4096.0;

/// A metric without labels.
struct Value {
    /// Its name at the exporter.
    series: String,
    metric: Metric,
    /// Whether it is a total, which is reported per second.
    is_total: bool,
    factor: f64,
}

fn gauge(series: impl Into<String>, metric: Metric) -> Value {
    Value { series: series.into(), metric, is_total: false, factor: 1.0 }
}

fn total(series: impl Into<String>, metric: Metric) -> Value {
    Value { is_total: true, ..gauge(series, metric) }
}

/// All metrics without labels. The exporter names the lines of `/proc/meminfo`, `/proc/vmstat` and `/proc/net/snmp` after
/// the file and the line.
static VALUES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let lines = host::memory::LINES.iter();
    let memory = lines.map(|(line, metric)| gauge(format!("node_memory_{line}_bytes"), *metric));
    let paging = host::paging::LINES.iter().map(|(line, metric, unit)| Value {
        factor: unit.factor(PAGE_BYTES),
        ..total(format!("node_vmstat_{line}"), *metric)
    });
    let counters = host::tcp::COUNTERS.iter();
    let tcp = counters.map(|(name, metric)| total(format!("node_netstat_Tcp_{name}"), *metric));
    others().into_iter().chain(memory).chain(paging).chain(tcp).collect()
});

/// Metrics whose names at the exporter follow no rule.
#[rustfmt::skip]
fn others() -> Vec<Value> {
    vec![
        gauge("node_procs_running", load::RUNNABLE_COUNT),
        gauge("node_procs_blocked", load::BLOCKED_COUNT),
        gauge("node_load1", load::AVERAGE_1M_COUNT),
        total("node_context_switches_total", load::CONTEXT_SWITCHES_PER_S),
        total("node_forks_total", load::FORKS_PER_S),
        total("node_intr_total", interrupts::TOTAL_PER_S),
        total("node_pressure_cpu_waiting_seconds_total", pressure::CPU_SOME_RATIO),
        total("node_pressure_io_waiting_seconds_total", pressure::IO_SOME_RATIO),
        total("node_pressure_io_stalled_seconds_total", pressure::IO_FULL_RATIO),
        total("node_pressure_memory_waiting_seconds_total", pressure::MEMORY_SOME_RATIO),
        total("node_pressure_memory_stalled_seconds_total", pressure::MEMORY_FULL_RATIO),
        total("node_netstat_TcpExt_ListenOverflows", tcp::LISTEN_OVERFLOWS_PER_S),
        gauge("node_netstat_Tcp_CurrEstab", tcp::ESTABLISHED_COUNT),
    ]
}

/// Names of all metrics that are reported here.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let values = VALUES.iter().map(|value| value.series.as_str());
    values.chain(OF_INTERFACE.iter().flat_map(|(names, _)| *names).copied()).chain(OTHERS)
}

/// Reports the metrics that a machine has once.
pub(super) fn report_values(scrape: &Scrape<'_>, rates: &mut Rates, reported: &mut Reported) {
    for value in VALUES.iter() {
        let Some(number) = scrape.number(&value.series) else {
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
