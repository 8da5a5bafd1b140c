//! The metrics taken from `serverStatus`, one row each. If a path differs between server versions,
//! the row lists all paths and the first one present counts.
//!
//! Paths are from MongoDB 4.2 to 9.0. WiredTiger's statistics have the names in its `stat_data.py`;
//! version 11.3 (MongoDB 8.0) renamed the statistics of checkpoints and eviction.

use dyno_record::names::{
    Metric, admission, asserts, blocks, cache, checkpoint, connections, cursors, documents,
    flow_control, log, operation_latency, operations, query, queue, server, server_cpu,
    server_memory, server_network, tickets, transactions, ttl,
};

use Measure::{Flag, Gauge, Hits, Mean, Rate, Share};

/// Paths of one number in several versions.
pub(crate) type Paths = &'static [&'static str];

/// A metric and its origin.
pub(crate) struct Row {
    /// The instance is the server.
    pub(crate) metric: Metric,
    /// How the metric is computed from numbers of the server.
    pub(crate) measure: Measure,
}

/// Computation of a metric from numbers of the server.
#[derive(Clone, Copy)]
pub(crate) enum Measure {
    /// The number times a factor.
    Gauge(Paths, f64),
    /// 1 if the number is not 0.
    Flag(Paths),
    /// Growth of a total per second, times a factor.
    Rate(Paths, f64),
    /// One number as a share of another.
    Share(Paths, Paths),
    /// Growth of one total divided by growth of another, times a factor; absent while the other
    /// does not grow.
    Mean(Paths, Paths, f64),
    /// 1 minus the growth of one total, the misses, divided by the growth of another, the requests.
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

/// Areas with the section of `serverStatus` for each.
pub(crate) const AREAS: &[(&str, &str)] = &[
    (server::GROUP, "uptime"),
    (operations::GROUP, "opcounters"),
    (operation_latency::GROUP, "opLatencies"),
    (connections::GROUP, "connections"),
    (queue::GROUP, "globalLock"),
    (tickets::GROUP, "wiredTiger.concurrentTransactions` or `queues.execution"),
    (cache::GROUP, "wiredTiger.cache"),
    (checkpoint::GROUP, "wiredTiger.transaction` or `wiredTiger.checkpoint"),
    (log::GROUP, "wiredTiger.log"),
    (blocks::GROUP, "wiredTiger.block-manager"),
    (transactions::GROUP, "wiredTiger.transaction` or `transactions"),
    (server_network::GROUP, "network"),
    (asserts::GROUP, "asserts"),
    (server_cpu::GROUP, "extra_info.user_time_us"),
    (server_memory::GROUP, "mem"),
    (documents::GROUP, "metrics.document"),
    (query::GROUP, "metrics.queryExecutor` or `metrics.operation"),
    (cursors::GROUP, "metrics.cursor"),
    (ttl::GROUP, "metrics.ttl"),
    (flow_control::GROUP, "flowControl"),
    (admission::GROUP, "queues` or `network.ingressRequestRateLimiter"),
];

const MEBIBYTE: f64 = 1_048_576.0;

/// From microseconds per second to a share, or to a mean number of waiting operations.
const OF_MICROSECONDS: f64 = 1e-6;

/// From milliseconds per second to a share.
const OF_MILLISECONDS: f64 = 1e-3;

const CACHE_USED: Paths = &["wiredTiger.cache.bytes currently in the cache"];
const CACHE_MAXIMUM: Paths = &["wiredTiger.cache.maximum bytes configured"];
const CACHE_DIRTY: Paths = &["wiredTiger.cache.tracked dirty bytes in the cache"];
const PAGES_READ: Paths = &["wiredTiger.cache.pages read into cache"];
const PAGES_REQUESTED: Paths = &["wiredTiger.cache.pages requested from the cache"];
const LOG_SYNCS: Paths = &["wiredTiger.log.log sync operations"];
const LOG_SYNC_TIME: Paths = &["wiredTiger.log.log sync time duration (usecs)"];

const fn row(metric: Metric, measure: Measure) -> Row {
    Row { metric, measure }
}

/// All metrics.
#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    row(server::UPTIME_S, Gauge(&["uptime"], 1.0)),

    row(operations::INSERT_PER_S, Rate(&["opcounters.insert"], 1.0)),
    row(operations::QUERY_PER_S, Rate(&["opcounters.query"], 1.0)),
    row(operations::UPDATE_PER_S, Rate(&["opcounters.update"], 1.0)),
    row(operations::DELETE_PER_S, Rate(&["opcounters.delete"], 1.0)),
    row(operations::GETMORE_PER_S, Rate(&["opcounters.getmore"], 1.0)),
    row(operations::COMMAND_PER_S, Rate(&["opcounters.command"], 1.0)),
    row(operations::REPLICATED_INSERT_PER_S, Rate(&["opcountersRepl.insert"], 1.0)),
    row(operations::REPLICATED_UPDATE_PER_S, Rate(&["opcountersRepl.update"], 1.0)),
    row(operations::REPLICATED_DELETE_PER_S, Rate(&["opcountersRepl.delete"], 1.0)),
    row(operations::REPLICATED_COMMAND_PER_S, Rate(&["opcountersRepl.command"], 1.0)),

    row(operation_latency::READS_MEAN_US, Mean(&["opLatencies.reads.latency"], &["opLatencies.reads.ops"], 1.0)),
    row(operation_latency::WRITES_MEAN_US, Mean(&["opLatencies.writes.latency"], &["opLatencies.writes.ops"], 1.0)),
    row(operation_latency::COMMANDS_MEAN_US, Mean(&["opLatencies.commands.latency"], &["opLatencies.commands.ops"], 1.0)),
    row(operation_latency::READS_PER_S, Rate(&["opLatencies.reads.ops"], 1.0)),
    row(operation_latency::WRITES_PER_S, Rate(&["opLatencies.writes.ops"], 1.0)),
    row(operation_latency::COMMANDS_PER_S, Rate(&["opLatencies.commands.ops"], 1.0)),

    row(connections::CURRENT_COUNT, Gauge(&["connections.current"], 1.0)),
    row(connections::AVAILABLE_COUNT, Gauge(&["connections.available"], 1.0)),
    row(connections::ACTIVE_COUNT, Gauge(&["connections.active"], 1.0)),
    row(connections::CREATED_PER_S, Rate(&["connections.totalCreated"], 1.0)),

    row(queue::READERS_COUNT, Gauge(&["globalLock.currentQueue.readers"], 1.0)),
    row(queue::WRITERS_COUNT, Gauge(&["globalLock.currentQueue.writers"], 1.0)),
    row(queue::TOTAL_COUNT, Gauge(&["globalLock.currentQueue.total"], 1.0)),
    row(queue::ACTIVE_READERS_COUNT, Gauge(&["globalLock.activeClients.readers"], 1.0)),
    row(queue::ACTIVE_WRITERS_COUNT, Gauge(&["globalLock.activeClients.writers"], 1.0)),
    row(queue::ACTIVE_TOTAL_COUNT, Gauge(&["globalLock.activeClients.total"], 1.0)),

    row(tickets::READ_IN_USE_COUNT, Gauge(&["wiredTiger.concurrentTransactions.read.out", "queues.execution.read.out"], 1.0)),
    row(tickets::READ_AVAILABLE_COUNT, Gauge(&["wiredTiger.concurrentTransactions.read.available", "queues.execution.read.available"], 1.0)),
    row(tickets::READ_TOTAL_COUNT, Gauge(&["wiredTiger.concurrentTransactions.read.totalTickets", "queues.execution.read.totalTickets"], 1.0)),
    row(tickets::READ_QUEUED_COUNT, Gauge(&["queues.execution.read.normalPriority.queueLength", "wiredTiger.concurrentTransactions.read.normalPriority.queueLength", "wiredTiger.concurrentTransactions.read.queueLength"], 1.0)),
    row(tickets::WRITE_IN_USE_COUNT, Gauge(&["wiredTiger.concurrentTransactions.write.out", "queues.execution.write.out"], 1.0)),
    row(tickets::WRITE_AVAILABLE_COUNT, Gauge(&["wiredTiger.concurrentTransactions.write.available", "queues.execution.write.available"], 1.0)),
    row(tickets::WRITE_TOTAL_COUNT, Gauge(&["wiredTiger.concurrentTransactions.write.totalTickets", "queues.execution.write.totalTickets"], 1.0)),
    row(tickets::WRITE_QUEUED_COUNT, Gauge(&["queues.execution.write.normalPriority.queueLength", "wiredTiger.concurrentTransactions.write.normalPriority.queueLength", "wiredTiger.concurrentTransactions.write.queueLength"], 1.0)),

    row(cache::USED_BYTES, Gauge(CACHE_USED, 1.0)),
    row(cache::MAXIMUM_BYTES, Gauge(CACHE_MAXIMUM, 1.0)),
    row(cache::DIRTY_BYTES, Gauge(CACHE_DIRTY, 1.0)),
    row(cache::USED_RATIO, Share(CACHE_USED, CACHE_MAXIMUM)),
    row(cache::DIRTY_RATIO, Share(CACHE_DIRTY, CACHE_MAXIMUM)),
    row(cache::READ_BYTES_PER_S, Rate(&["wiredTiger.cache.bytes read into cache"], 1.0)),
    row(cache::WRITTEN_BYTES_PER_S, Rate(&["wiredTiger.cache.bytes written from cache"], 1.0)),
    row(cache::PAGES_READ_PER_S, Rate(PAGES_READ, 1.0)),
    row(cache::PAGES_WRITTEN_PER_S, Rate(&["wiredTiger.cache.pages written from cache"], 1.0)),
    row(cache::PAGES_REQUESTED_PER_S, Rate(PAGES_REQUESTED, 1.0)),
    row(cache::HIT_RATIO, Hits(PAGES_READ, PAGES_REQUESTED)),
    row(cache::EVICTED_BY_APPLICATION_PER_S, Rate(&["wiredTiger.cache.pages evicted by application threads", "wiredTiger.cache.page evict attempts by application threads"], 1.0)),
    row(cache::EVICTED_BY_WORKERS_PER_S, Rate(&["wiredTiger.cache.eviction worker thread evicting pages", "wiredTiger.cache.evict page attempts by eviction worker threads"], 1.0)),
    row(cache::EVICTED_CLEAN_PER_S, Rate(&["wiredTiger.cache.unmodified pages evicted"], 1.0)),
    row(cache::EVICTED_DIRTY_PER_S, Rate(&["wiredTiger.cache.modified pages evicted"], 1.0)),
    row(cache::EVICTION_FAILED_PER_S, Rate(&["wiredTiger.cache.pages selected for eviction unable to be evicted"], 1.0)),
    row(cache::EVICTION_BLOCKED_PER_S, Rate(&["wiredTiger.cache.hazard pointer blocked page eviction"], 1.0)),
    row(cache::EVICTION_GOAL_MISSED_PER_S, Rate(&["wiredTiger.cache.eviction server unable to reach eviction goal"], 1.0)),
    row(cache::EVICTION_WALKED_PER_S, Rate(&["wiredTiger.cache.pages walked for eviction"], 1.0)),
    row(cache::APPLICATION_READING_COUNT, Rate(&["wiredTiger.cache.application threads page read from disk to cache time (usecs)"], OF_MICROSECONDS)),
    row(cache::APPLICATION_WRITING_COUNT, Rate(&["wiredTiger.cache.application threads page write from cache to disk time (usecs)"], OF_MICROSECONDS)),

    row(checkpoint::RUNNING_COUNT, Flag(&["wiredTiger.transaction.transaction checkpoint currently running", "wiredTiger.checkpoint.progress state"])),
    row(checkpoint::RECENT_MS, Gauge(&["wiredTiger.transaction.transaction checkpoint most recent time (msecs)", "wiredTiger.checkpoint.most recent time (msecs)"], 1.0)),
    row(checkpoint::FINISHED_PER_S, Rate(&["wiredTiger.transaction.transaction checkpoints", "wiredTiger.checkpoint.total succeed number of checkpoints"], 1.0)),
    row(checkpoint::BUSY_RATIO, Rate(&["wiredTiger.transaction.transaction checkpoint total time (msecs)", "wiredTiger.checkpoint.total time (msecs)"], OF_MILLISECONDS)),

    row(log::WRITTEN_BYTES_PER_S, Rate(&["wiredTiger.log.log bytes written"], 1.0)),
    row(log::WRITES_PER_S, Rate(&["wiredTiger.log.log write operations"], 1.0)),
    row(log::FLUSHES_PER_S, Rate(&["wiredTiger.log.log flush operations"], 1.0)),
    row(log::SYNCS_PER_S, Rate(LOG_SYNCS, 1.0)),
    row(log::SYNC_MEAN_MS, Mean(LOG_SYNC_TIME, LOG_SYNCS, OF_MILLISECONDS)),
    row(log::SYNCING_RATIO, Rate(LOG_SYNC_TIME, OF_MICROSECONDS)),

    row(blocks::READ_BYTES_PER_S, Rate(&["wiredTiger.block-manager.bytes read"], 1.0)),
    row(blocks::WRITTEN_BYTES_PER_S, Rate(&["wiredTiger.block-manager.bytes written"], 1.0)),
    row(blocks::CHECKPOINT_WRITTEN_BYTES_PER_S, Rate(&["wiredTiger.block-manager.bytes written for checkpoint"], 1.0)),
    row(blocks::READ_PER_S, Rate(&["wiredTiger.block-manager.blocks read"], 1.0)),
    row(blocks::WRITTEN_PER_S, Rate(&["wiredTiger.block-manager.blocks written"], 1.0)),

    row(transactions::BEGUN_PER_S, Rate(&["wiredTiger.transaction.transaction begins"], 1.0)),
    row(transactions::COMMITTED_PER_S, Rate(&["wiredTiger.transaction.transactions committed"], 1.0)),
    row(transactions::ROLLED_BACK_PER_S, Rate(&["wiredTiger.transaction.transactions rolled back"], 1.0)),
    row(transactions::PINNED_COUNT, Gauge(&["wiredTiger.transaction.transaction range of IDs currently pinned"], 1.0)),
    row(transactions::PINNED_BY_CHECKPOINT_COUNT, Gauge(&["wiredTiger.transaction.transaction range of IDs currently pinned by a checkpoint"], 1.0)),
    row(transactions::CLIENT_OPEN_COUNT, Gauge(&["transactions.currentOpen"], 1.0)),
    row(transactions::CLIENT_STARTED_PER_S, Rate(&["transactions.totalStarted"], 1.0)),
    row(transactions::CLIENT_COMMITTED_PER_S, Rate(&["transactions.totalCommitted"], 1.0)),
    row(transactions::CLIENT_ABORTED_PER_S, Rate(&["transactions.totalAborted"], 1.0)),

    row(server_network::RECEIVED_BYTES_PER_S, Rate(&["network.bytesIn"], 1.0)),
    row(server_network::SENT_BYTES_PER_S, Rate(&["network.bytesOut"], 1.0)),
    row(server_network::REQUESTS_PER_S, Rate(&["network.numRequests"], 1.0)),
    row(server_network::RECEIVED_COMPRESSED_RATIO, Mean(&["network.physicalBytesIn"], &["network.bytesIn"], 1.0)),
    row(server_network::SENT_COMPRESSED_RATIO, Mean(&["network.physicalBytesOut"], &["network.bytesOut"], 1.0)),

    row(asserts::REGULAR_PER_S, Rate(&["asserts.regular"], 1.0)),
    row(asserts::WARNING_PER_S, Rate(&["asserts.warning"], 1.0)),
    row(asserts::MESSAGE_PER_S, Rate(&["asserts.msg"], 1.0)),
    row(asserts::USER_PER_S, Rate(&["asserts.user"], 1.0)),
    row(asserts::TRIPWIRE_PER_S, Rate(&["asserts.tripwire"], 1.0)),

    row(server_cpu::USER_RATIO, Rate(&["extra_info.user_time_us"], OF_MICROSECONDS)),
    row(server_cpu::SYSTEM_RATIO, Rate(&["extra_info.system_time_us"], OF_MICROSECONDS)),

    row(server_memory::RESIDENT_BYTES, Gauge(&["mem.resident"], MEBIBYTE)),
    row(server_memory::VIRTUAL_BYTES, Gauge(&["mem.virtual"], MEBIBYTE)),
    row(server_memory::PAGE_FAULTS_PER_S, Rate(&["extra_info.page_faults"], 1.0)),

    row(documents::INSERTED_PER_S, Rate(&["metrics.document.inserted"], 1.0)),
    row(documents::RETURNED_PER_S, Rate(&["metrics.document.returned"], 1.0)),
    row(documents::UPDATED_PER_S, Rate(&["metrics.document.updated"], 1.0)),
    row(documents::DELETED_PER_S, Rate(&["metrics.document.deleted"], 1.0)),

    row(query::KEYS_SCANNED_PER_S, Rate(&["metrics.queryExecutor.scanned"], 1.0)),
    row(query::DOCUMENTS_SCANNED_PER_S, Rate(&["metrics.queryExecutor.scannedObjects"], 1.0)),
    row(query::COLLECTION_SCANS_PER_S, Rate(&["metrics.queryExecutor.collectionScans.total"], 1.0)),
    row(query::SORTED_IN_MEMORY_PER_S, Rate(&["metrics.operation.scanAndOrder"], 1.0)),
    row(query::WRITE_CONFLICTS_PER_S, Rate(&["metrics.operation.writeConflicts"], 1.0)),

    row(cursors::OPEN_COUNT, Gauge(&["metrics.cursor.open.total"], 1.0)),
    row(cursors::PINNED_COUNT, Gauge(&["metrics.cursor.open.pinned"], 1.0)),
    row(cursors::TIMED_OUT_PER_S, Rate(&["metrics.cursor.timedOut"], 1.0)),

    row(ttl::DELETED_PER_S, Rate(&["metrics.ttl.deletedDocuments"], 1.0)),
    row(ttl::PASSES_PER_S, Rate(&["metrics.ttl.passes"], 1.0)),

    row(flow_control::LAGGED_COUNT, Flag(&["flowControl.isLagged"])),
    row(flow_control::ACQUIRING_COUNT, Rate(&["flowControl.timeAcquiringMicros"], OF_MICROSECONDS)),
    row(flow_control::TARGET_PER_S, Gauge(&["flowControl.targetRateLimit"], 1.0)),

    row(admission::TICKETS_RAISED_PER_S, Rate(&["queues.execution.monitor.timesIncreased", "wiredTiger.concurrentTransactions.monitor.timesIncreased"], 1.0)),
    row(admission::TICKETS_LOWERED_PER_S, Rate(&["queues.execution.monitor.timesDecreased", "wiredTiger.concurrentTransactions.monitor.timesDecreased"], 1.0)),
    row(admission::DEPRIORITIZED_PER_S, Rate(&["queues.execution.totalDeprioritizations"], 1.0)),
    row(admission::REQUESTS_ADMITTED_PER_S, Rate(&["network.ingressRequestRateLimiter.successfulAdmissions"], 1.0)),
    row(admission::REQUESTS_REJECTED_PER_S, Rate(&["network.ingressRequestRateLimiter.rejectedAdmissions"], 1.0)),
    row(admission::CONNECTIONS_REJECTED_PER_S, Rate(&["queues.ingressSessionEstablishment.rejectedAdmissions", "connections.establishmentRateLimit.rejected"], 1.0)),
    row(admission::INGRESS_QUEUED_COUNT, Gauge(&["queues.ingress.normalPriority.queueLength"], 1.0)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_metric_occurs_once_and_every_area_has_some() {
        let mut names = HashSet::new();
        for row in ROWS {
            assert!(names.insert(row.metric), "{} twice", row.metric);
            assert!(row.metric.has_instances(), "{}", row.metric);
            let group = row.metric.group();
            assert!(AREAS.iter().any(|(area, _)| *area == group), "{group}");
        }
        for (area, _) in AREAS {
            assert!(ROWS.iter().any(|row| row.metric.group() == *area), "{area} is empty");
        }
    }
}
