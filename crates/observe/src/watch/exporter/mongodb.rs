//! The numbers of `serverStatus` in the metrics of Percona's `mongodb_exporter`.
//!
//! Since version 0.30 the exporter derives the name of a metric from the path of a field:
//! `serverStatus.` becomes `ss_`, `wiredTiger.` becomes `wt_`, other characters become `_`, and in
//! some sections the last part of the path becomes a label. So a field is identified by the words
//! of its path, in any order. A table holds the names of older versions, which the exporter can
//! report in addition to its own.

use super::text::{Sample, Scrape};
use crate::watch::server::fields::Fields;
use crate::watch::server::table::ROWS;
use crate::watch::source::Reported;
use dyno_record::names::replication;
use std::collections::{HashMap, HashSet};

/// Labels about the location of the server, which the exporter or Prometheus adds to all metrics.
const OF_PLACE: [&str; 6] = ["cl_id", "cl_role", "rs_nm", "rs_state", "instance", "job"];

/// State of each member of a replica set, and the time of its last operation.
pub(super) const OF_MEMBERS: [&str; 2] =
    ["mongodb_rs_members_state", "mongodb_rs_members_optimeDate"];

/// Names of older versions without their prefix, the value of their label, and the path in
/// `serverStatus`.
#[rustfmt::skip]
const OLD: &[(&str, &str, &str)] = &[
    ("instance_uptime_seconds", "", "uptime"),
    ("asserts_total", "regular", "asserts.regular"),
    ("asserts_total", "warning", "asserts.warning"),
    ("asserts_total", "msg", "asserts.msg"),
    ("asserts_total", "user", "asserts.user"),
    ("connections", "current", "connections.current"),
    ("connections", "available", "connections.available"),
    ("connections", "active", "connections.active"),
    ("connections_metrics_created_total", "", "connections.totalCreated"),
    ("extra_info_page_faults_total", "", "extra_info.page_faults"),
    ("global_lock_current_queue", "reader", "globalLock.currentQueue.readers"),
    ("global_lock_current_queue", "writer", "globalLock.currentQueue.writers"),
    ("global_lock_client", "reader", "globalLock.activeClients.readers"),
    ("global_lock_client", "writer", "globalLock.activeClients.writers"),
    ("memory", "resident", "mem.resident"),
    ("memory", "virtual", "mem.virtual"),
    ("metrics_cursor_open", "total", "metrics.cursor.open.total"),
    ("metrics_cursor_open", "pinned", "metrics.cursor.open.pinned"),
    ("metrics_cursor_timed_out_total", "", "metrics.cursor.timedOut"),
    ("metrics_document_total", "deleted", "metrics.document.deleted"),
    ("metrics_document_total", "inserted", "metrics.document.inserted"),
    ("metrics_document_total", "returned", "metrics.document.returned"),
    ("metrics_document_total", "updated", "metrics.document.updated"),
    ("metrics_operation_total", "scan_and_order", "metrics.operation.scanAndOrder"),
    ("metrics_query_executor_total", "scanned", "metrics.queryExecutor.scanned"),
    ("metrics_query_executor_total", "scanned_objects", "metrics.queryExecutor.scannedObjects"),
    ("metrics_ttl_deleted_documents_total", "", "metrics.ttl.deletedDocuments"),
    ("metrics_ttl_passes_total", "", "metrics.ttl.passes"),
    ("network_bytes_total", "in_bytes", "network.bytesIn"),
    ("network_bytes_total", "out_bytes", "network.bytesOut"),
    ("network_metrics_num_requests_total", "", "network.numRequests"),
    ("op_counters_total", "insert", "opcounters.insert"),
    ("op_counters_total", "query", "opcounters.query"),
    ("op_counters_total", "update", "opcounters.update"),
    ("op_counters_total", "delete", "opcounters.delete"),
    ("op_counters_total", "getmore", "opcounters.getmore"),
    ("op_counters_total", "command", "opcounters.command"),
    ("op_counters_repl_total", "insert", "opcountersRepl.insert"),
    ("op_counters_repl_total", "update", "opcountersRepl.update"),
    ("op_counters_repl_total", "delete", "opcountersRepl.delete"),
    ("op_counters_repl_total", "command", "opcountersRepl.command"),
    ("wiredtiger_blockmanager_blocks_total", "read", "wiredTiger.block-manager.blocks read"),
    ("wiredtiger_blockmanager_blocks_total", "written", "wiredTiger.block-manager.blocks written"),
    ("wiredtiger_blockmanager_bytes_total", "read", "wiredTiger.block-manager.bytes read"),
    ("wiredtiger_blockmanager_bytes_total", "written", "wiredTiger.block-manager.bytes written"),
    ("wiredtiger_cache_bytes", "total", "wiredTiger.cache.bytes currently in the cache"),
    ("wiredtiger_cache_bytes", "dirty", "wiredTiger.cache.tracked dirty bytes in the cache"),
    ("wiredtiger_cache_max_bytes", "", "wiredTiger.cache.maximum bytes configured"),
    ("wiredtiger_cache_bytes_total", "read", "wiredTiger.cache.bytes read into cache"),
    ("wiredtiger_cache_bytes_total", "written", "wiredTiger.cache.bytes written from cache"),
    ("wiredtiger_cache_pages_total", "read", "wiredTiger.cache.pages read into cache"),
    ("wiredtiger_cache_pages_total", "written", "wiredTiger.cache.pages written from cache"),
    ("wiredtiger_cache_evicted_total", "modified", "wiredTiger.cache.modified pages evicted"),
    ("wiredtiger_cache_evicted_total", "unmodified", "wiredTiger.cache.unmodified pages evicted"),
    ("wiredtiger_concurrent_transactions_available_tickets", "read", "wiredTiger.concurrentTransactions.read.available"),
    ("wiredtiger_concurrent_transactions_available_tickets", "write", "wiredTiger.concurrentTransactions.write.available"),
    ("wiredtiger_concurrent_transactions_out_tickets", "read", "wiredTiger.concurrentTransactions.read.out"),
    ("wiredtiger_concurrent_transactions_out_tickets", "write", "wiredTiger.concurrentTransactions.write.out"),
    ("wiredtiger_concurrent_transactions_total_tickets", "read", "wiredTiger.concurrentTransactions.read.totalTickets"),
    ("wiredtiger_concurrent_transactions_total_tickets", "write", "wiredTiger.concurrentTransactions.write.totalTickets"),
    ("wiredtiger_log_bytes_total", "written", "wiredTiger.log.log bytes written"),
    ("wiredtiger_log_operations_total", "write", "wiredTiger.log.log write operations"),
    ("wiredtiger_log_operations_total", "sync", "wiredTiger.log.log sync operations"),
    ("wiredtiger_log_operations_total", "flush", "wiredTiger.log.log flush operations"),
    ("wiredtiger_transactions_total", "begins", "wiredTiger.transaction.transaction begins"),
    ("wiredtiger_transactions_total", "checkpoints", "wiredTiger.transaction.transaction checkpoints"),
    ("wiredtiger_transactions_total", "committed", "wiredTiger.transaction.transactions committed"),
    ("wiredtiger_transactions_total", "rolledback", "wiredTiger.transaction.transactions rolled back"),
    ("wiredtiger_transactions_checkpoint_milliseconds_total", "", "wiredTiger.transaction.transaction checkpoint total time (msecs)"),
    ("wiredtiger_transactions_running_checkpoints", "", "wiredTiger.transaction.transaction checkpoint currently running"),
];

/// The useful fields of `serverStatus`, keyed by their words.
pub(crate) struct Wanted(HashMap<String, &'static str>);

impl Wanted {
    /// The fields of the server's table, and its uptime.
    pub(crate) fn from_table() -> Wanted {
        let paths = ROWS.iter().flat_map(|row| row.measure.paths()).flatten();
        let paths = paths.copied().chain(["uptimeMillis"]);
        Wanted(paths.map(|path| (words(path), path)).collect())
    }

    /// The useful fields that an exporter reports.
    pub(crate) fn among<'a>(&self, scrape: &Scrape<'a>) -> Scraped<'a> {
        let mut scraped = Scraped::default();
        for (place, sample) in scrape.samples.iter().enumerate() {
            let path = sample.name.strip_prefix("mongodb_").and_then(|name| {
                match name.strip_prefix("ss_") {
                    Some(name) => self.0.get(&words_of(name, sample)).copied(),
                    None => old(name, sample),
                }
            });
            if let Some(path) = path.filter(|_| sample.value.is_finite()) {
                // One number may have both an older and a newer name.
                let first = scraped.names.entry(path).or_insert(sample.name);
                if *first == sample.name && scraped.numbers.contains_key(path) {
                    scraped.twice.get_or_insert(place);
                }
                scraped.numbers.entry(path).or_insert(sample.value);
                scraped.places.insert(place);
            }
        }
        scraped
    }
}

/// Numbers of `serverStatus` by their paths.
#[derive(Debug, Default)]
pub(crate) struct Scraped<'a> {
    numbers: HashMap<&'static str, f64>,
    /// The name under which each number came first.
    names: HashMap<&'static str, &'a str>,
    /// Index of the first sample that repeats a number under the same name.
    pub(crate) twice: Option<usize>,
    /// Indexes of the samples of these numbers.
    pub(crate) places: HashSet<usize>,
}

impl Scraped<'_> {
    /// Whether the exporter reports nothing about a server.
    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}

impl Fields for Scraped<'_> {
    fn number(&self, path: &str) -> Option<f64> {
        self.numbers.get(path).copied()
    }
}

/// State and lag of the members of a replica set, under the names of the server source.
pub(crate) fn report_replication(scrape: &Scrape<'_>, reported: &mut Reported) {
    let [states, times_ms] = OF_MEMBERS.map(|name| by_member(scrape, name));
    let time_ms = |member: &str| {
        let known = times_ms.iter().find(|(name, _)| *name == member);
        known.map(|(_, time_ms)| *time_ms)
    };
    let primary = states.iter().find(|(_, state)| *state == 1.0);
    let primary_ms = primary.and_then(|(member, _)| time_ms(member));
    for (member, state) in &states {
        reported.put(replication::STATE_COUNT.of(member), *state);
        // A member that is down has the time 0.
        let lag_ms = primary_ms.zip(time_ms(member).filter(|time_ms| *time_ms > 0.0));
        let lag_s = lag_ms.map(|(ahead, behind)| ((ahead - behind) / 1000.0).max(0.0));
        reported.put_if_known(replication::LAG_S.of(member), lag_s);
    }
}

fn by_member<'s>(scrape: &'s Scrape<'_>, name: &str) -> Vec<(&'s str, f64)> {
    let member = |sample: &'s Sample<'_>| Some((sample.label("member_idx")?, sample.value));
    scrape.named(name).filter_map(member).collect()
}

/// The path for a name of an older version.
fn old(name: &str, sample: &Sample<'_>) -> Option<&'static str> {
    let name =
        ["mongod_", "mongos_"].iter().find_map(|kind| name.strip_prefix(kind)).unwrap_or(name);
    let label = sample.label("type").or_else(|| sample.label("state"));
    // Some versions write `reader` where others have `readers`.
    let label = match label.unwrap_or_default() {
        "readers" => "reader",
        "writers" => "writer",
        other => other,
    };
    let found = OLD.iter().find(|line| line.0 == name && line.1 == label);
    found.map(|(_, _, path)| *path)
}

/// The words of a metric: the words of its name and its label values.
fn words_of(name: &str, sample: &Sample<'_>) -> String {
    let values = sample
        .labels
        .iter()
        .filter(|(label, _)| !OF_PLACE.contains(label))
        .map(|(_, value)| value.as_ref());
    sorted(std::iter::once(name).chain(values))
}

/// The words of a path, split by the rules of the exporter.
fn words(path: &str) -> String {
    let renamed = [("wiredTiger.transaction.", "wt txn "), ("wiredTiger.", "wt ")];
    let found =
        renamed.iter().find_map(|(prefix, short)| Some((*short, path.strip_prefix(prefix)?)));
    let (short, rest) = found.unwrap_or(("", path));
    sorted([short, rest].into_iter())
}

fn sorted<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut words: Vec<String> = texts
        .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric()))
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    words.sort_unstable();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scraped(text: &str) -> Scraped<'_> {
        Wanted::from_table().among(&Scrape::parse(text))
    }

    #[test]
    fn field_is_found_by_the_words_of_its_path_in_any_order() {
        let fields = scraped(
            "mongodb_ss_opcounters{cl_id=\"\",cl_role=\"mongod\",legacy_op_type=\"insert\",rs_nm=\"\",rs_state=\"0\"} 4\n\
             mongodb_ss_wt_cache_bytes_currently_in_the_cache{cl_role=\"mongod\"} 5\n\
             mongodb_ss_wt_txn_transaction_checkpoint_total_time_msecs 6\n\
             mongodb_ss_wt_block_manager_bytes_read 7\n\
             mongodb_ss_wt_concurrentTransactions_out{txn_rw=\"read\"} 8\n\
             mongodb_ss_opLatencies_latency{op_type=\"reads\"} 9\n\
             mongodb_ss_mem_resident 10\nmongodb_ss_mem_bits 64\n",
        );
        for (path, number) in [
            ("opcounters.insert", 4.0),
            ("wiredTiger.cache.bytes currently in the cache", 5.0),
            ("wiredTiger.transaction.transaction checkpoint total time (msecs)", 6.0),
            ("wiredTiger.block-manager.bytes read", 7.0),
            ("wiredTiger.concurrentTransactions.read.out", 8.0),
            ("opLatencies.reads.latency", 9.0),
            ("mem.resident", 10.0),
        ] {
            assert_eq!(fields.number(path), Some(number), "{path}");
        }
        assert_eq!(fields.places.len(), 7);
        assert_eq!(fields.number("opcounters.query"), None);
        assert!(scraped("node_load1 1\n").is_empty());
    }

    #[test]
    fn names_of_older_versions_are_known() {
        let fields = scraped(
            "mongodb_mongod_op_counters_total{type=\"query\"} 3\n\
             mongodb_op_counters_total{type=\"insert\"} 2\n\
             mongodb_mongod_global_lock_current_queue{type=\"readers\"} 1\n\
             mongodb_mongod_wiredtiger_cache_bytes{type=\"dirty\"} 8\n\
             mongodb_mongod_wiredtiger_cache_bytes_total{type=\"read\"} 9\n\
             mongodb_mongod_connections_metrics_created_total 5\n",
        );
        for (path, number) in [
            ("opcounters.query", 3.0),
            ("opcounters.insert", 2.0),
            ("globalLock.currentQueue.readers", 1.0),
            ("wiredTiger.cache.tracked dirty bytes in the cache", 8.0),
            ("wiredTiger.cache.bytes read into cache", 9.0),
            ("connections.totalCreated", 5.0),
        ] {
            assert_eq!(fields.number(path), Some(number), "{path}");
        }
    }

    #[test]
    fn every_field_of_the_tables_is_found_by_its_own_name() {
        let paths: HashSet<&str> =
            ROWS.iter().flat_map(|row| row.measure.paths()).flatten().copied().collect();
        let keys: HashSet<String> = paths.iter().map(|path| words(path)).collect();
        assert_eq!(keys.len(), paths.len());
        for (name, _, path) in OLD {
            assert!(paths.contains(path), "{name} is not used");
        }
    }

    #[test]
    fn member_lag_is_relative_to_the_primary() {
        let text = "mongodb_rs_members_state{member_idx=\"a:1\"} 1\n\
                    mongodb_rs_members_state{member_idx=\"b:1\"} 2\n\
                    mongodb_rs_members_state{member_idx=\"c:1\"} 8\n\
                    mongodb_rs_members_optimeDate{member_idx=\"a:1\"} 1.700000005e12\n\
                    mongodb_rs_members_optimeDate{member_idx=\"b:1\"} 1.700000002e12\n\
                    mongodb_rs_members_optimeDate{member_idx=\"c:1\"} 0\n";
        let mut reported = Reported::default();
        report_replication(&Scrape::parse(text), &mut reported);
        let values: Vec<(String, f64)> =
            reported.values.iter().map(|(id, value)| (id.to_string(), *value)).collect();
        let expected = [
            ("replication.a:1.state_count", 1.0),
            ("replication.a:1.lag_s", 0.0),
            ("replication.b:1.state_count", 2.0),
            ("replication.b:1.lag_s", 3.0),
            ("replication.c:1.state_count", 8.0),
        ];
        assert_eq!(values, expected.map(|(id, value)| (id.to_owned(), value)));
    }
}
