//! Disks and file systems.

use super::super::text::Scrape;
use super::numbers::{growth, instances, of_instance};
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::names::{Metric, disk, storage};

const READS: &str = "node_disk_reads_completed_total";
const WRITES: &str = "node_disk_writes_completed_total";
const DISCARDS: &str = "node_disk_discards_completed_total";
const FLUSHES: &str = "node_disk_flush_requests_total";
const READ_BYTES: &str = "node_disk_read_bytes_total";
const WRITTEN_BYTES: &str = "node_disk_written_bytes_total";
const READ_SECONDS: &str = "node_disk_read_time_seconds_total";
const WRITE_SECONDS: &str = "node_disk_write_time_seconds_total";
const FLUSH_SECONDS: &str = "node_disk_flush_requests_time_seconds_total";
pub(super) const BUSY_SECONDS: &str = "node_disk_io_time_seconds_total";
const WEIGHTED_SECONDS: &str = "node_disk_io_time_weighted_seconds_total";
const IN_FLIGHT: &str = "node_disk_io_now";
const AVAILABLE: &str = "node_filesystem_avail_bytes";
const SIZE: &str = "node_filesystem_size_bytes";

/// Totals that are reported per second.
const RATES: [(&str, Metric); 7] = [
    (READS, disk::READ_PER_S),
    (WRITES, disk::WRITE_PER_S),
    (DISCARDS, disk::DISCARD_PER_S),
    (FLUSHES, disk::FLUSH_PER_S),
    (READ_BYTES, disk::READ_BYTES_PER_S),
    (WRITTEN_BYTES, disk::WRITE_BYTES_PER_S),
    // Seconds of waiting per second: by Little's law the mean number of waiting requests.
    (WEIGHTED_SECONDS, disk::QUEUE_COUNT),
];

/// Totals that are divided by others, and a factor: time and size of an operation.
const MEANS: [(&str, &str, Metric, f64); 5] = [
    (READ_SECONDS, READS, disk::READ_AWAIT_MS, 1000.0),
    (WRITE_SECONDS, WRITES, disk::WRITE_AWAIT_MS, 1000.0),
    (FLUSH_SECONDS, FLUSHES, disk::FLUSH_AWAIT_MS, 1000.0),
    (READ_BYTES, READS, disk::READ_SIZE_BYTES, 1.0),
    (WRITTEN_BYTES, WRITES, disk::WRITE_SIZE_BYTES, 1.0),
];

/// Names of all metrics that are reported here.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let others = [FLUSH_SECONDS, READ_SECONDS, WRITE_SECONDS, BUSY_SECONDS, IN_FLIGHT];
    RATES.map(|(name, _)| name).into_iter().chain(others).chain([AVAILABLE, SIZE])
}

/// Reports every device.
pub(super) fn report(scrape: &Scrape<'_>, rates: &mut Rates, reported: &mut Reported) {
    for device in instances(scrape, BUSY_SECONDS, "device") {
        let number = |series| of_instance(scrape, series, "device", device);
        let duration_s = rates.duration_s();
        let mut grown = |series| growth(rates, series, device, number(series)?);
        for (series, metric) in RATES {
            let per_s = grown(series).zip(duration_s);
            let per_s = per_s.map(|(growth, duration_s)| growth / duration_s);
            reported.put_if_known(metric.of(device), per_s);
        }
        for (sum, count, metric, factor) in MEANS {
            let (sum, count) = (grown(sum), grown(count));
            let ended = count.filter(|count| *count > 0.0);
            let mean = sum.zip(ended).map(|(sum, count)| sum / count * factor);
            reported.put_if_known(metric.of(device), mean);
        }
        let busy = grown(BUSY_SECONDS).zip(duration_s);
        let ratio = busy.map(|(busy_s, duration_s)| (busy_s / duration_s).min(1.0));
        reported.put_if_known(disk::UTILIZATION_RATIO.of(device), ratio);
        reported.put_if_known(disk::IN_FLIGHT_COUNT.of(device), number(IN_FLIGHT));
    }
}

/// Reports every file system on a device; once if it is mounted at several places.
pub(super) fn report_storage(scrape: &Scrape<'_>, reported: &mut Reported) {
    for device in instances(scrape, AVAILABLE, "device") {
        let Some(name) = device.strip_prefix("/dev/") else {
            continue;
        };
        let number = |series| of_instance(scrape, series, "device", device);
        let size = number(SIZE).filter(|size| *size > 0.0);
        reported.put_if_known(storage::FREE_BYTES.of(name), number(AVAILABLE));
        let ratio = number(AVAILABLE).zip(size).map(|(free, size)| free / size);
        reported.put_if_known(storage::FREE_RATIO.of(name), ratio);
    }
}
