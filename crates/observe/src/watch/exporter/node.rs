//! The metrics of `node_exporter` under the names of the host source, so that a remote machine is
//! judged like this one.
//!
//! The exporter does not report processes, control groups, or reclaim by allocating tasks. Its
//! `node_vmstat_pswp*` count pages, whose size it does not report either; this module assumes 4
//! KiB.

use super::DataPlace;
use super::text::Scrape;
use crate::health::Health;
use crate::watch::rates::Rates;
use crate::watch::source::Reported;

mod cpu;
mod data;
mod disk;
mod machine;
mod numbers;

/// Parts of a machine, each with a metric that must be present.
const PARTS: [(&str, &str); 11] = [
    ("cpu", "node_cpu_seconds_total"),
    ("load", "node_procs_running"),
    ("pressure", "node_pressure_cpu_waiting_seconds_total"),
    ("memory", "node_memory_MemAvailable_bytes"),
    ("paging", "node_vmstat_pgpgin"),
    ("disk", "node_disk_io_time_seconds_total"),
    ("storage", "node_filesystem_avail_bytes"),
    ("network", "node_network_receive_bytes_total"),
    ("tcp", "node_netstat_Tcp_RetransSegs"),
    ("frequency", "node_cpu_scaling_frequency_hertz"),
    ("temperature", "node_hwmon_temp_celsius"),
];

/// Reports the machine of a scrape; nothing if another exporter wrote it.
pub(super) fn report(
    scrape: &Scrape<'_>,
    place: &DataPlace,
    rates: &mut Rates,
    reported: &mut Reported,
) {
    if !PARTS.iter().any(|(_, name)| has(scrape, name)) {
        return;
    }
    cpu::report(scrape, rates, reported);
    cpu::report_frequency(scrape, reported);
    disk::report(scrape, rates, reported);
    disk::report_storage(scrape, reported);
    data::report(scrape, place, reported);
    machine::report_values(scrape, rates, reported);
    machine::report_network(scrape, rates, reported);
    machine::report_temperature(scrape, reported);
    for (part, name) in PARTS {
        if !has(scrape, name) {
            let reason = format!("the exporter does not report `{name}`");
            reported.miss(part, Health::Unsupported { reason });
        }
    }
}

/// Whether a metric is reported here, or is useless next to the reported ones.
pub(super) fn is_known(name: &str) -> bool {
    let mut names = cpu::NAMES.into_iter().chain(disk::names()).chain(machine::names());
    name.starts_with("node_") && names.any(|known| known == name)
}

fn has(scrape: &Scrape<'_>, name: &str) -> bool {
    scrape.named(name).next().is_some()
}
