//! What is taken from `serverStatus`: a line for each metric. Where versions of the server differ in a path, all
//! paths are named and the first that is there counts.
//!
//! Paths are those of MongoDB 4.2 to 8.0; the statistics of WiredTiger have the names of its `stat_data.py`, of which
//! version 11.3 (MongoDB 8.0) renamed those of checkpoints and of eviction.

use Measure::{Flag, Gauge, Hits, Mean, Rate, Share};

/// Paths of one number in several versions.
pub(crate) type Paths = &'static [&'static str];

/// One metric.
pub(crate) struct Row {
    /// Group of the metric.
    pub(crate) area: &'static str,
    /// Its name, with its unit.
    pub(crate) name: &'static str,
    /// How it comes from numbers of the server.
    pub(crate) measure: Measure,
}

/// How a metric comes from numbers of the server.
#[derive(Clone, Copy)]
pub(crate) enum Measure {
    /// The number as it is, times a factor.
    Gauge(Paths, f64),
    /// 1 if the number is not 0.
    Flag(Paths),
    /// Growth of a total per second, times a factor.
    Rate(Paths, f64),
    /// One number as a share of another.
    Share(Paths, Paths),
    /// Growth of one total by growth of another, times a factor; nothing while the other does not grow.
    Mean(Paths, Paths, f64),
    /// 1 less the growth of one total, the misses, by that of another, the requests.
    Hits(Paths, Paths),
}

impl Measure {
    /// The numbers that it needs.
    pub(crate) fn paths(self) -> impl Iterator<Item = Paths> {
        let (first, second) = match self {
            Gauge(paths, _) | Flag(paths) | Rate(paths, _) => (paths, None),
            Share(part, whole) => (part, Some(whole)),
            Mean(sum, count, _) => (sum, Some(count)),
            Hits(misses, requests) => (misses, Some(requests)),
        };
        std::iter::once(first).chain(second)
    }
}

/// Areas with the section of `serverStatus` that each comes from.
pub(crate) const AREAS: &[(&str, &str)] = &[
    ("server", "uptime"),
    ("operations", "opcounters"),
    ("operation_latency", "opLatencies"),
    ("connections", "connections"),
    ("queue", "globalLock"),
    (
        "tickets",
        "wiredTiger.concurrentTransactions` or `queues.execution",
    ),
    ("cache", "wiredTiger.cache"),
    (
        "checkpoint",
        "wiredTiger.transaction` or `wiredTiger.checkpoint",
    ),
    ("log", "wiredTiger.log"),
    ("blocks", "wiredTiger.block-manager"),
    ("transactions", "wiredTiger.transaction` or `transactions"),
    ("server_network", "network"),
    ("asserts", "asserts"),
    ("server_memory", "mem"),
    ("documents", "metrics.document"),
    ("query", "metrics.queryExecutor` or `metrics.operation"),
    ("cursors", "metrics.cursor"),
    ("ttl", "metrics.ttl"),
    ("flow_control", "flowControl"),
];

const MEBIBYTE: f64 = 1_048_576.0;

/// From microseconds per second to a share, or a mean number of those that wait.
const OF_MICROSECONDS: f64 = 1e-6;

/// The same from milliseconds.
const OF_MILLISECONDS: f64 = 1e-3;

const CACHE_USED: Paths = &["wiredTiger.cache.bytes currently in the cache"];
const CACHE_MAXIMUM: Paths = &["wiredTiger.cache.maximum bytes configured"];
const CACHE_DIRTY: Paths = &["wiredTiger.cache.tracked dirty bytes in the cache"];
const PAGES_READ: Paths = &["wiredTiger.cache.pages read into cache"];
const PAGES_REQUESTED: Paths = &["wiredTiger.cache.pages requested from the cache"];
const LOG_SYNCS: Paths = &["wiredTiger.log.log sync operations"];
const LOG_SYNC_TIME: Paths = &["wiredTiger.log.log sync time duration (usecs)"];

const fn row(area: &'static str, name: &'static str, measure: Measure) -> Row {
    Row {
        area,
        name,
        measure,
    }
}

/// All metrics.
#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    row("server", "uptime_s", Gauge(&["uptime"], 1.0)),

    row("operations", "insert_per_s", Rate(&["opcounters.insert"], 1.0)),
    row("operations", "query_per_s", Rate(&["opcounters.query"], 1.0)),
    row("operations", "update_per_s", Rate(&["opcounters.update"], 1.0)),
    row("operations", "delete_per_s", Rate(&["opcounters.delete"], 1.0)),
    row("operations", "getmore_per_s", Rate(&["opcounters.getmore"], 1.0)),
    row("operations", "command_per_s", Rate(&["opcounters.command"], 1.0)),
    row("operations", "replicated_insert_per_s", Rate(&["opcountersRepl.insert"], 1.0)),
    row("operations", "replicated_update_per_s", Rate(&["opcountersRepl.update"], 1.0)),
    row("operations", "replicated_delete_per_s", Rate(&["opcountersRepl.delete"], 1.0)),
    row("operations", "replicated_command_per_s", Rate(&["opcountersRepl.command"], 1.0)),

    row("operation_latency", "reads_mean_us", Mean(&["opLatencies.reads.latency"], &["opLatencies.reads.ops"], 1.0)),
    row("operation_latency", "writes_mean_us", Mean(&["opLatencies.writes.latency"], &["opLatencies.writes.ops"], 1.0)),
    row("operation_latency", "commands_mean_us", Mean(&["opLatencies.commands.latency"], &["opLatencies.commands.ops"], 1.0)),
    row("operation_latency", "reads_per_s", Rate(&["opLatencies.reads.ops"], 1.0)),
    row("operation_latency", "writes_per_s", Rate(&["opLatencies.writes.ops"], 1.0)),
    row("operation_latency", "commands_per_s", Rate(&["opLatencies.commands.ops"], 1.0)),

    row("connections", "current_count", Gauge(&["connections.current"], 1.0)),
    row("connections", "available_count", Gauge(&["connections.available"], 1.0)),
    row("connections", "active_count", Gauge(&["connections.active"], 1.0)),
    row("connections", "created_per_s", Rate(&["connections.totalCreated"], 1.0)),

    row("queue", "readers_count", Gauge(&["globalLock.currentQueue.readers"], 1.0)),
    row("queue", "writers_count", Gauge(&["globalLock.currentQueue.writers"], 1.0)),
    row("queue", "total_count", Gauge(&["globalLock.currentQueue.total"], 1.0)),
    row("queue", "active_readers_count", Gauge(&["globalLock.activeClients.readers"], 1.0)),
    row("queue", "active_writers_count", Gauge(&["globalLock.activeClients.writers"], 1.0)),
    row("queue", "active_total_count", Gauge(&["globalLock.activeClients.total"], 1.0)),

    row("tickets", "read_in_use_count", Gauge(&["wiredTiger.concurrentTransactions.read.out", "queues.execution.read.out"], 1.0)),
    row("tickets", "read_available_count", Gauge(&["wiredTiger.concurrentTransactions.read.available", "queues.execution.read.available"], 1.0)),
    row("tickets", "read_total_count", Gauge(&["wiredTiger.concurrentTransactions.read.totalTickets", "queues.execution.read.totalTickets"], 1.0)),
    row("tickets", "read_queued_count", Gauge(&["queues.execution.read.normalPriority.queueLength", "wiredTiger.concurrentTransactions.read.normalPriority.queueLength", "wiredTiger.concurrentTransactions.read.queueLength"], 1.0)),
    row("tickets", "write_in_use_count", Gauge(&["wiredTiger.concurrentTransactions.write.out", "queues.execution.write.out"], 1.0)),
    row("tickets", "write_available_count", Gauge(&["wiredTiger.concurrentTransactions.write.available", "queues.execution.write.available"], 1.0)),
    row("tickets", "write_total_count", Gauge(&["wiredTiger.concurrentTransactions.write.totalTickets", "queues.execution.write.totalTickets"], 1.0)),
    row("tickets", "write_queued_count", Gauge(&["queues.execution.write.normalPriority.queueLength", "wiredTiger.concurrentTransactions.write.normalPriority.queueLength", "wiredTiger.concurrentTransactions.write.queueLength"], 1.0)),

    row("cache", "used_bytes", Gauge(CACHE_USED, 1.0)),
    row("cache", "maximum_bytes", Gauge(CACHE_MAXIMUM, 1.0)),
    row("cache", "dirty_bytes", Gauge(CACHE_DIRTY, 1.0)),
    row("cache", "used_ratio", Share(CACHE_USED, CACHE_MAXIMUM)),
    row("cache", "dirty_ratio", Share(CACHE_DIRTY, CACHE_MAXIMUM)),
    row("cache", "read_bytes_per_s", Rate(&["wiredTiger.cache.bytes read into cache"], 1.0)),
    row("cache", "written_bytes_per_s", Rate(&["wiredTiger.cache.bytes written from cache"], 1.0)),
    row("cache", "pages_read_per_s", Rate(PAGES_READ, 1.0)),
    row("cache", "pages_written_per_s", Rate(&["wiredTiger.cache.pages written from cache"], 1.0)),
    row("cache", "pages_requested_per_s", Rate(PAGES_REQUESTED, 1.0)),
    row("cache", "hit_ratio", Hits(PAGES_READ, PAGES_REQUESTED)),
    row("cache", "evicted_by_application_per_s", Rate(&["wiredTiger.cache.pages evicted by application threads", "wiredTiger.cache.page evict attempts by application threads"], 1.0)),
    row("cache", "evicted_by_workers_per_s", Rate(&["wiredTiger.cache.eviction worker thread evicting pages", "wiredTiger.cache.evict page attempts by eviction worker threads"], 1.0)),
    row("cache", "evicted_clean_per_s", Rate(&["wiredTiger.cache.unmodified pages evicted"], 1.0)),
    row("cache", "evicted_dirty_per_s", Rate(&["wiredTiger.cache.modified pages evicted"], 1.0)),
    row("cache", "eviction_failed_per_s", Rate(&["wiredTiger.cache.pages selected for eviction unable to be evicted"], 1.0)),
    row("cache", "eviction_blocked_per_s", Rate(&["wiredTiger.cache.hazard pointer blocked page eviction"], 1.0)),
    row("cache", "eviction_goal_missed_per_s", Rate(&["wiredTiger.cache.eviction server unable to reach eviction goal"], 1.0)),
    row("cache", "eviction_walked_per_s", Rate(&["wiredTiger.cache.pages walked for eviction"], 1.0)),
    row("cache", "application_reading_count", Rate(&["wiredTiger.cache.application threads page read from disk to cache time (usecs)"], OF_MICROSECONDS)),
    row("cache", "application_writing_count", Rate(&["wiredTiger.cache.application threads page write from cache to disk time (usecs)"], OF_MICROSECONDS)),

    row("checkpoint", "running_count", Flag(&["wiredTiger.transaction.transaction checkpoint currently running", "wiredTiger.checkpoint.progress state"])),
    row("checkpoint", "recent_ms", Gauge(&["wiredTiger.transaction.transaction checkpoint most recent time (msecs)", "wiredTiger.checkpoint.most recent time (msecs)"], 1.0)),
    row("checkpoint", "finished_per_s", Rate(&["wiredTiger.transaction.transaction checkpoints", "wiredTiger.checkpoint.total succeed number of checkpoints"], 1.0)),
    row("checkpoint", "busy_ratio", Rate(&["wiredTiger.transaction.transaction checkpoint total time (msecs)", "wiredTiger.checkpoint.total time (msecs)"], OF_MILLISECONDS)),

    row("log", "written_bytes_per_s", Rate(&["wiredTiger.log.log bytes written"], 1.0)),
    row("log", "writes_per_s", Rate(&["wiredTiger.log.log write operations"], 1.0)),
    row("log", "flushes_per_s", Rate(&["wiredTiger.log.log flush operations"], 1.0)),
    row("log", "syncs_per_s", Rate(LOG_SYNCS, 1.0)),
    row("log", "sync_mean_ms", Mean(LOG_SYNC_TIME, LOG_SYNCS, OF_MILLISECONDS)),
    row("log", "syncing_ratio", Rate(LOG_SYNC_TIME, OF_MICROSECONDS)),

    row("blocks", "read_bytes_per_s", Rate(&["wiredTiger.block-manager.bytes read"], 1.0)),
    row("blocks", "written_bytes_per_s", Rate(&["wiredTiger.block-manager.bytes written"], 1.0)),
    row("blocks", "checkpoint_written_bytes_per_s", Rate(&["wiredTiger.block-manager.bytes written for checkpoint"], 1.0)),
    row("blocks", "read_per_s", Rate(&["wiredTiger.block-manager.blocks read"], 1.0)),
    row("blocks", "written_per_s", Rate(&["wiredTiger.block-manager.blocks written"], 1.0)),

    row("transactions", "begun_per_s", Rate(&["wiredTiger.transaction.transaction begins"], 1.0)),
    row("transactions", "committed_per_s", Rate(&["wiredTiger.transaction.transactions committed"], 1.0)),
    row("transactions", "rolled_back_per_s", Rate(&["wiredTiger.transaction.transactions rolled back"], 1.0)),
    row("transactions", "pinned_count", Gauge(&["wiredTiger.transaction.transaction range of IDs currently pinned"], 1.0)),
    row("transactions", "pinned_by_checkpoint_count", Gauge(&["wiredTiger.transaction.transaction range of IDs currently pinned by a checkpoint"], 1.0)),
    row("transactions", "client_open_count", Gauge(&["transactions.currentOpen"], 1.0)),
    row("transactions", "client_started_per_s", Rate(&["transactions.totalStarted"], 1.0)),
    row("transactions", "client_committed_per_s", Rate(&["transactions.totalCommitted"], 1.0)),
    row("transactions", "client_aborted_per_s", Rate(&["transactions.totalAborted"], 1.0)),

    row("server_network", "received_bytes_per_s", Rate(&["network.bytesIn"], 1.0)),
    row("server_network", "sent_bytes_per_s", Rate(&["network.bytesOut"], 1.0)),
    row("server_network", "requests_per_s", Rate(&["network.numRequests"], 1.0)),
    row("server_network", "received_compressed_ratio", Mean(&["network.physicalBytesIn"], &["network.bytesIn"], 1.0)),
    row("server_network", "sent_compressed_ratio", Mean(&["network.physicalBytesOut"], &["network.bytesOut"], 1.0)),

    row("asserts", "regular_per_s", Rate(&["asserts.regular"], 1.0)),
    row("asserts", "warning_per_s", Rate(&["asserts.warning"], 1.0)),
    row("asserts", "message_per_s", Rate(&["asserts.msg"], 1.0)),
    row("asserts", "user_per_s", Rate(&["asserts.user"], 1.0)),
    row("asserts", "tripwire_per_s", Rate(&["asserts.tripwire"], 1.0)),

    row("server_memory", "resident_bytes", Gauge(&["mem.resident"], MEBIBYTE)),
    row("server_memory", "virtual_bytes", Gauge(&["mem.virtual"], MEBIBYTE)),
    row("server_memory", "page_faults_per_s", Rate(&["extra_info.page_faults"], 1.0)),

    row("documents", "inserted_per_s", Rate(&["metrics.document.inserted"], 1.0)),
    row("documents", "returned_per_s", Rate(&["metrics.document.returned"], 1.0)),
    row("documents", "updated_per_s", Rate(&["metrics.document.updated"], 1.0)),
    row("documents", "deleted_per_s", Rate(&["metrics.document.deleted"], 1.0)),

    row("query", "keys_scanned_per_s", Rate(&["metrics.queryExecutor.scanned"], 1.0)),
    row("query", "documents_scanned_per_s", Rate(&["metrics.queryExecutor.scannedObjects"], 1.0)),
    row("query", "collection_scans_per_s", Rate(&["metrics.queryExecutor.collectionScans.total"], 1.0)),
    row("query", "sorted_in_memory_per_s", Rate(&["metrics.operation.scanAndOrder"], 1.0)),
    row("query", "write_conflicts_per_s", Rate(&["metrics.operation.writeConflicts"], 1.0)),

    row("cursors", "open_count", Gauge(&["metrics.cursor.open.total"], 1.0)),
    row("cursors", "pinned_count", Gauge(&["metrics.cursor.open.pinned"], 1.0)),
    row("cursors", "timed_out_per_s", Rate(&["metrics.cursor.timedOut"], 1.0)),

    row("ttl", "deleted_per_s", Rate(&["metrics.ttl.deletedDocuments"], 1.0)),
    row("ttl", "passes_per_s", Rate(&["metrics.ttl.passes"], 1.0)),

    row("flow_control", "lagged_count", Flag(&["flowControl.isLagged"])),
    row("flow_control", "acquiring_count", Rate(&["flowControl.timeAcquiringMicros"], OF_MICROSECONDS)),
    row("flow_control", "target_per_s", Gauge(&["flowControl.targetRateLimit"], 1.0)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_metric_has_its_own_name_with_a_unit_and_an_area_that_is_known() {
        let mut names = HashSet::new();
        for row in ROWS {
            assert!(names.insert((row.area, row.name)), "{} twice", row.name);
            assert!(
                AREAS.iter().any(|(area, _)| *area == row.area),
                "{}",
                row.area
            );
            let units = ["_per_s", "_bytes", "_ratio", "_us", "_ms", "_s", "_count"];
            assert!(
                units.iter().any(|unit| row.name.ends_with(unit)),
                "{}",
                row.name
            );
        }
        for (area, _) in AREAS {
            assert!(ROWS.iter().any(|row| row.area == *area), "{area} is empty");
        }
    }
}
