//! Disks and file systems.

use super::super::text::Scrape;
use super::numbers::{growth, instances, of_instance};
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::metrics::MetricId;

const READS: &str = "node_disk_reads_completed_total";
const WRITES: &str = "node_disk_writes_completed_total";
const DISCARDS: &str = "node_disk_discards_completed_total";
const FLUSHES: &str = "node_disk_flush_requests_total";
const READ_BYTES: &str = "node_disk_read_bytes_total";
const WRITTEN_BYTES: &str = "node_disk_written_bytes_total";
const READ_SECONDS: &str = "node_disk_read_time_seconds_total";
const WRITE_SECONDS: &str = "node_disk_write_time_seconds_total";
const FLUSH_SECONDS: &str = "node_disk_flush_requests_time_seconds_total";
const BUSY_SECONDS: &str = "node_disk_io_time_seconds_total";
const WEIGHTED_SECONDS: &str = "node_disk_io_time_weighted_seconds_total";
const IN_FLIGHT: &str = "node_disk_io_now";
const AVAILABLE: &str = "node_filesystem_avail_bytes";
const SIZE: &str = "node_filesystem_size_bytes";

pub(super) const NAMES: [&str; 14] = [
    READS,
    WRITES,
    DISCARDS,
    FLUSHES,
    READ_BYTES,
    WRITTEN_BYTES,
    READ_SECONDS,
    WRITE_SECONDS,
    FLUSH_SECONDS,
    BUSY_SECONDS,
    WEIGHTED_SECONDS,
    IN_FLIGHT,
    AVAILABLE,
    SIZE,
];

/// Totals that are reported per second.
const RATES: [(&str, &str); 7] = [
    (READS, "read_per_s"),
    (WRITES, "write_per_s"),
    (DISCARDS, "discard_per_s"),
    (FLUSHES, "flush_per_s"),
    (READ_BYTES, "read_bytes_per_s"),
    (WRITTEN_BYTES, "write_bytes_per_s"),
    // Seconds of waiting per second: by Little's law the mean number of those that wait.
    (WEIGHTED_SECONDS, "queue_count"),
];

/// Totals by which others are divided, and the factor: the time and the size of an operation.
const MEANS: [(&str, &str, &str, f64); 5] = [
    (READ_SECONDS, READS, "read_await_ms", 1000.0),
    (WRITE_SECONDS, WRITES, "write_await_ms", 1000.0),
    (FLUSH_SECONDS, FLUSHES, "flush_await_ms", 1000.0),
    (READ_BYTES, READS, "read_size_bytes", 1.0),
    (WRITTEN_BYTES, WRITES, "write_size_bytes", 1.0),
];

/// Tells of every device.
pub(super) fn report(scrape: &Scrape<'_>, rates: &mut Rates, reported: &mut Reported) {
    for device in instances(scrape, BUSY_SECONDS, "device") {
        let id = |name| MetricId::of_instance("disk", device, name);
        let number = |series| of_instance(scrape, series, "device", device);
        let duration_s = rates.duration_s();
        let mut grown = |series| growth(rates, series, device, number(series)?);
        for (series, name) in RATES {
            let per_s = grown(series).zip(duration_s);
            reported.put_if_known(
                id(name),
                per_s.map(|(growth, duration_s)| growth / duration_s),
            );
        }
        for (sum, count, name, factor) in MEANS {
            let (sum, count) = (grown(sum), grown(count));
            let ended = count.filter(|count| *count > 0.0);
            reported.put_if_known(
                id(name),
                sum.zip(ended).map(|(sum, count)| sum / count * factor),
            );
        }
        let busy = grown(BUSY_SECONDS).zip(duration_s);
        let ratio = busy.map(|(busy_s, duration_s)| (busy_s / duration_s).min(1.0));
        reported.put_if_known(id("utilization_ratio"), ratio);
        reported.put_if_known(id("in_flight_count"), number(IN_FLIGHT));
    }
}

/// Tells of every file system on a device; of one that is mounted at several places once.
pub(super) fn report_storage(scrape: &Scrape<'_>, reported: &mut Reported) {
    for device in instances(scrape, AVAILABLE, "device") {
        let Some(name) = device.strip_prefix("/dev/") else {
            continue;
        };
        let id = |metric| MetricId::of_instance("storage", name, metric);
        let number = |series| of_instance(scrape, series, "device", device);
        let size = number(SIZE).filter(|size| *size > 0.0);
        reported.put_if_known(id("free_bytes"), number(AVAILABLE));
        let ratio = number(AVAILABLE).zip(size).map(|(free, size)| free / size);
        reported.put_if_known(id("free_ratio"), ratio);
    }
}
