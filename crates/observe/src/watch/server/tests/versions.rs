//! `serverStatus` in the form of several versions.

use super::*;

/// An answer of MongoDB 4.4 with counters after `n` steps. Integers of both sizes and floating
/// point numbers, as in the original.
fn of_4_4(n: i32) -> Document {
    let wide = |number: i64| number * i64::from(n);
    doc! {
        "host": "a", "version": "4.4.29", "process": "mongod", "pid": 7_i64,
        "uptime": f64::from(n) * 2.0, "uptimeMillis": wide(2000), "uptimeEstimate": wide(2),
        "asserts": { "regular": n, "warning": 0, "msg": 0, "user": 8 * n, "rollovers": 0 },
        "connections": { "current": 20, "available": 800, "totalCreated": 30 * n, "active": 5 },
        "extra_info": { "note": "fields vary by platform", "page_faults": wide(6) },
        "flowControl": { "enabled": true, "targetRateLimit": 1_000_000_000, "timeAcquiringMicros": wide(500_000), "isLagged": true },
        "globalLock": {
            "totalTime": wide(2_000_000),
            "currentQueue": { "total": 3, "readers": 1, "writers": 2 },
            "activeClients": { "total": 9, "readers": 4, "writers": 5 },
        },
        "network": { "bytesIn": wide(400), "bytesOut": wide(1000), "physicalBytesIn": wide(400), "physicalBytesOut": wide(250), "numRequests": wide(20) },
        "opLatencies": {
            "reads": { "latency": wide(9000), "ops": wide(60) },
            "writes": { "latency": wide(500), "ops": wide(0) },
            "commands": { "latency": wide(70), "ops": wide(7) },
        },
        "opcounters": { "insert": 2 * n, "query": wide(200), "update": 4 * n, "delete": 6 * n, "getmore": 0, "command": f64::from(n) * 10.0 },
        "opcountersRepl": { "insert": 2 * n, "query": 0, "update": 0, "delete": 0, "getmore": 0, "command": 0 },
        "transactions": { "currentOpen": 1_i64, "totalStarted": wide(4), "totalCommitted": wide(2), "totalAborted": wide(2) },
        "wiredTiger": {
            "block-manager": { "bytes read": 4096 * n, "bytes written": 8192 * n, "bytes written for checkpoint": 2048 * n, "blocks read": 2 * n, "blocks written": 4 * n },
            "cache": {
                "bytes currently in the cache": 750.0, "maximum bytes configured": 1000, "tracked dirty bytes in the cache": 50,
                "bytes read into cache": 600 * n, "bytes written from cache": 200 * n,
                "pages read into cache": 10 * n, "pages requested from the cache": 100 * n, "pages written from cache": 4 * n,
                "pages evicted by application threads": 2 * n, "eviction worker thread evicting pages": 8 * n,
                "unmodified pages evicted": 6 * n, "modified pages evicted": 4 * n,
                "pages selected for eviction unable to be evicted": 2 * n, "hazard pointer blocked page eviction": 2 * n,
                "eviction server unable to reach eviction goal": 2 * n, "pages walked for eviction": 40 * n,
                "application threads page read from disk to cache time (usecs)": 3_000_000 * n,
                "application threads page write from cache to disk time (usecs)": 0,
            },
            "concurrentTransactions": {
                "read": { "out": 3, "available": 125, "totalTickets": 128 },
                "write": { "out": 128, "available": 0, "totalTickets": 128 },
            },
            "log": { "log bytes written": wide(5000), "log write operations": 20 * n, "log flush operations": 40 * n, "log sync operations": 4 * n, "log sync time duration (usecs)": 100_000 * n },
            "transaction": {
                "transaction begins": 10 * n, "transactions committed": 6 * n, "transactions rolled back": 4 * n,
                "transaction checkpoint currently running": 1, "transaction checkpoint most recent time (msecs)": 1234,
                "transaction checkpoints": 2 * n, "transaction checkpoint total time (msecs)": 500 * n,
                "transaction range of IDs currently pinned": 17, "transaction range of IDs currently pinned by a checkpoint": 5,
            },
        },
        "mem": { "bits": 64, "resident": 100, "virtual": 1500, "supported": true },
        "metrics": {
            "cursor": { "timedOut": wide(2), "open": { "noTimeout": 0_i64, "pinned": 1_i64, "total": 3_i64 } },
            "document": { "deleted": wide(2), "inserted": wide(4), "returned": wide(6), "updated": wide(8) },
            "operation": { "scanAndOrder": wide(2), "writeConflicts": wide(14) },
            "queryExecutor": { "scanned": wide(10), "scannedObjects": wide(12), "collectionScans": { "nonTailable": wide(2), "total": wide(2) } },
            "ttl": { "deletedDocuments": wide(2), "passes": wide(2) },
        },
        "ok": 1.0,
    }
}

/// Reported values of two such answers that are 2 s and one step apart.
const OF_4_4: &[(&str, f64)] = &[
    ("server.s.uptime_s", 4.0),
    ("operations.s.insert_per_s", 1.0),
    ("operations.s.query_per_s", 100.0),
    ("operations.s.update_per_s", 2.0),
    ("operations.s.delete_per_s", 3.0),
    ("operations.s.getmore_per_s", 0.0),
    ("operations.s.command_per_s", 5.0),
    ("operations.s.replicated_insert_per_s", 1.0),
    ("operation_latency.s.reads_mean_us", 150.0),
    ("operation_latency.s.commands_mean_us", 10.0),
    ("operation_latency.s.reads_per_s", 30.0),
    ("connections.s.current_count", 20.0),
    ("connections.s.available_count", 800.0),
    ("connections.s.active_count", 5.0),
    ("connections.s.created_per_s", 15.0),
    ("queue.s.readers_count", 1.0),
    ("queue.s.writers_count", 2.0),
    ("queue.s.total_count", 3.0),
    ("queue.s.active_readers_count", 4.0),
    ("queue.s.active_writers_count", 5.0),
    ("queue.s.active_total_count", 9.0),
    ("tickets.s.read_in_use_count", 3.0),
    ("tickets.s.read_available_count", 125.0),
    ("tickets.s.read_total_count", 128.0),
    ("tickets.s.write_in_use_count", 128.0),
    ("tickets.s.write_available_count", 0.0),
    ("cache.s.used_bytes", 750.0),
    ("cache.s.maximum_bytes", 1000.0),
    ("cache.s.used_ratio", 0.75),
    ("cache.s.dirty_ratio", 0.05),
    ("cache.s.read_bytes_per_s", 300.0),
    ("cache.s.written_bytes_per_s", 100.0),
    ("cache.s.pages_read_per_s", 5.0),
    ("cache.s.pages_requested_per_s", 50.0),
    ("cache.s.hit_ratio", 0.9),
    ("cache.s.evicted_by_application_per_s", 1.0),
    ("cache.s.evicted_by_workers_per_s", 4.0),
    ("cache.s.evicted_clean_per_s", 3.0),
    ("cache.s.evicted_dirty_per_s", 2.0),
    ("cache.s.eviction_walked_per_s", 20.0),
    ("cache.s.application_reading_count", 1.5),
    ("checkpoint.s.running_count", 1.0),
    ("checkpoint.s.recent_ms", 1234.0),
    ("checkpoint.s.finished_per_s", 1.0),
    ("checkpoint.s.busy_ratio", 0.25),
    ("log.s.written_bytes_per_s", 2500.0),
    ("log.s.flushes_per_s", 20.0),
    ("log.s.syncs_per_s", 2.0),
    ("log.s.sync_mean_ms", 25.0),
    ("log.s.syncing_ratio", 0.05),
    ("blocks.s.read_bytes_per_s", 2048.0),
    ("blocks.s.written_bytes_per_s", 4096.0),
    ("blocks.s.checkpoint_written_bytes_per_s", 1024.0),
    ("blocks.s.read_per_s", 1.0),
    ("blocks.s.written_per_s", 2.0),
    ("transactions.s.begun_per_s", 5.0),
    ("transactions.s.committed_per_s", 3.0),
    ("transactions.s.rolled_back_per_s", 2.0),
    ("transactions.s.pinned_count", 17.0),
    ("transactions.s.pinned_by_checkpoint_count", 5.0),
    ("transactions.s.client_open_count", 1.0),
    ("transactions.s.client_started_per_s", 2.0),
    ("server_network.s.received_bytes_per_s", 200.0),
    ("server_network.s.sent_bytes_per_s", 500.0),
    ("server_network.s.requests_per_s", 10.0),
    ("server_network.s.received_compressed_ratio", 1.0),
    ("server_network.s.sent_compressed_ratio", 0.25),
    ("asserts.s.regular_per_s", 0.5),
    ("asserts.s.user_per_s", 4.0),
    ("server_memory.s.resident_bytes", 104_857_600.0),
    ("server_memory.s.page_faults_per_s", 3.0),
    ("documents.s.inserted_per_s", 2.0),
    ("documents.s.returned_per_s", 3.0),
    ("documents.s.updated_per_s", 4.0),
    ("documents.s.deleted_per_s", 1.0),
    ("query.s.keys_scanned_per_s", 5.0),
    ("query.s.documents_scanned_per_s", 6.0),
    ("query.s.collection_scans_per_s", 1.0),
    ("query.s.sorted_in_memory_per_s", 1.0),
    ("query.s.write_conflicts_per_s", 7.0),
    ("cursors.s.open_count", 3.0),
    ("cursors.s.pinned_count", 1.0),
    ("cursors.s.timed_out_per_s", 1.0),
    ("ttl.s.deleted_per_s", 1.0),
    ("ttl.s.passes_per_s", 1.0),
    ("flow_control.s.lagged_count", 1.0),
    ("flow_control.s.acquiring_count", 0.25),
    ("flow_control.s.target_per_s", 1e9),
];

#[test]
fn two_readings_of_4_4_give_every_area_its_values() {
    let mut source = source_of(vec![of_4_4(1), of_4_4(2)]);
    let first = source.read(10.0).expect("it answers");
    let names = values(&first);
    assert!(names.contains_key("cache.s.used_bytes"));
    let changes = names.keys().filter(|name| name.ends_with("_per_s"));
    assert_eq!(changes.collect::<Vec<_>>(), ["flow_control.s.target_per_s"]);
    let second = source.read(12.0).expect("it answers");
    assert_values(&second, OF_4_4);
    // Without writes, their mean is absent, not 0.
    assert!(!values(&second).contains_key("operation_latency.s.writes_mean_us"));
    assert_eq!(values(&second)["operation_latency.s.writes_per_s"], 0.0);
}

#[test]
fn fields_that_a_version_lacks_are_reported_once() {
    let mut source = source_of(vec![of_4_4(1), of_4_4(2)]);
    let first = source.read(1.0).expect("it answers");
    let Some(Health::Unsupported { reason }) = missing(&first, "asserts") else {
        panic!("{:?}", first.missing);
    };
    for part in ["`serverStatus`", "`tripwire_per_s`"] {
        assert!(reason.contains(part), "{reason}");
    }
    assert_eq!(missing(&first, "cache"), None);
    let second = source.read(2.0).expect("it answers");
    assert_eq!(second.missing, []);
}

/// The parts that MongoDB 8.0 moved.
fn of_8_0(n: i32) -> Document {
    let tickets = |out: i32| {
        doc! {
            "out": out, "available": 10 - out, "totalTickets": 10,
            "normalPriority": { "queueLength": 6, "totalTimeQueuedMicros": 5_i64 },
        }
    };
    doc! {
        "uptime": f64::from(n), "uptimeMillis": 1000 * i64::from(n),
        "queues": { "execution": { "read": tickets(4), "write": tickets(10) } },
        "wiredTiger": {
            "cache": {
                "page evict attempts by application threads": 3 * n,
                "evict page attempts by eviction worker threads": 5 * n,
            },
            "checkpoint": {
                "progress state": 4, "most recent time (msecs)": 40,
                "total succeed number of checkpoints": n, "total time (msecs)": 40 * n,
            },
        },
    }
}

#[test]
fn names_of_8_0_give_the_same_metrics() {
    let mut source = source_of(vec![of_8_0(1), of_8_0(2)]);
    source.read(1.0).expect("it answers");
    let reported = source.read(2.0).expect("it answers");
    assert_values(
        &reported,
        &[
            ("tickets.s.read_in_use_count", 4.0),
            ("tickets.s.read_available_count", 6.0),
            ("tickets.s.read_queued_count", 6.0),
            ("tickets.s.write_in_use_count", 10.0),
            ("tickets.s.write_total_count", 10.0),
            ("cache.s.evicted_by_application_per_s", 3.0),
            ("cache.s.evicted_by_workers_per_s", 5.0),
            ("checkpoint.s.running_count", 1.0),
            ("checkpoint.s.recent_ms", 40.0),
            ("checkpoint.s.finished_per_s", 1.0),
            ("checkpoint.s.busy_ratio", 0.04),
        ],
    );
}

#[test]
fn admission_of_9_0_is_reported_and_absent_before() {
    let of_9_0 = |n: i64| {
        doc! {
            "uptime": n as f64, "uptimeMillis": 1000 * n,
            "network": { "ingressRequestRateLimiter": {
                "attemptedAdmissions": 110 * n, "successfulAdmissions": 100 * n, "rejectedAdmissions": 10 * n,
            } },
            "queues": {
                "execution": {
                    "totalDeprioritizations": 3 * n,
                    "monitor": { "timesIncreased": 2 * n, "timesDecreased": n },
                },
                "ingress": { "normalPriority": { "queueLength": 5_i64 } },
                "ingressSessionEstablishment": { "rejectedAdmissions": 4 * n },
            },
        }
    };
    let mut source = source_of(vec![of_9_0(1), of_9_0(2)]);
    source.read(1.0).expect("it answers");
    let reported = source.read(2.0).expect("it answers");
    let expected = [
        ("admission.s.tickets_raised_per_s", 2.0),
        ("admission.s.tickets_lowered_per_s", 1.0),
        ("admission.s.deprioritized_per_s", 3.0),
        ("admission.s.requests_admitted_per_s", 100.0),
        ("admission.s.requests_rejected_per_s", 10.0),
        ("admission.s.connections_rejected_per_s", 4.0),
        ("admission.s.ingress_queued_count", 5.0),
    ];
    assert_values(&reported, &expected);
    let mut before = source_of(vec![of_4_4(1), of_4_4(2)]);
    let first = before.read(1.0).expect("it answers");
    assert!(missing(&first, "admission").is_some());
    let second = before.read(2.0).expect("it answers");
    let values = values(&second);
    assert!(!values.keys().any(|name| name.starts_with("admission.")));
}

#[test]
fn router_reports_no_storage_and_no_zeros() {
    let router = doc! {
        "process": "mongos", "uptime": 5.0, "uptimeMillis": 5000_i64,
        "connections": { "current": 1, "available": 2, "totalCreated": 3_i64, "active": 1 },
    };
    let mut source = source_of(vec![router]);
    let reported = source.read(1.0).expect("it answers");
    for (part, section) in [
        ("cache", "`wiredTiger.cache`"),
        ("tickets", "`wiredTiger.concurrentTransactions` or `queues.execution`"),
    ] {
        let Some(Health::Unsupported { reason }) = missing(&reported, part) else {
            panic!("{part}: {:?}", reported.missing);
        };
        assert!(reason.starts_with(section), "{reason}");
        assert!(reason.contains("`serverStatus`"), "{reason}");
    }
    assert_eq!(missing(&reported, "connections"), None);
    let groups: Vec<&str> = reported.values.iter().map(|(id, _)| id.group()).collect();
    assert_eq!(groups, ["server", "connections", "connections", "connections"]);
}

#[test]
fn all_totals_are_first_ones_after_a_restart() {
    let mut restarted = of_4_4(1);
    restarted.insert("uptimeMillis", 100_i64);
    // A larger total than before the restart, in less time: not a growth.
    restarted.insert("opcounters", doc! { "insert": 1_000_000 });
    let mut after = of_4_4(2);
    after.insert("opcounters", doc! { "insert": 1_000_010 });
    let mut source = source_of(vec![of_4_4(3), restarted, after]);
    source.read(1.0).expect("it answers");
    let reported = source.read(2.0).expect("it answers");
    assert!(!values(&reported).contains_key("operations.s.insert_per_s"));
    let reported = source.read(3.0).expect("it answers");
    assert_values(&reported, &[("operations.s.insert_per_s", 10.0)]);
}

#[test]
fn restart_during_an_outage_is_noticed_on_a_young_server() {
    let of = |uptime_ms: i64, inserts: i64| {
        let mut answer = of_4_4(1);
        answer.insert("uptimeMillis", uptime_ms);
        answer.insert("opcounters", doc! { "insert": inserts });
        answer
    };
    // It was up for 3 s, and is up for 9 s, but 30 s later.
    let answers = vec![of(3_000, 10), of(9_000, 5_000), of(14_500, 5_060)];
    let mut source = source_of(answers);
    source.read(5.0).expect("it answers");
    let reported = source.read(35.0).expect("it answers");
    assert!(!values(&reported).contains_key("operations.s.insert_per_s"));
    // An answer half a second early is not from another server.
    let reported = source.read(41.0).expect("it answers");
    assert_values(&reported, &[("operations.s.insert_per_s", 10.0)]);
}

#[test]
fn forbidden_status_failed_and_unknown_status_is_unsupported() {
    let (mut source, asked) = source(|_, _| refused(13, "not authorized on admin"));
    let health = source.read(1.0).expect_err("it is refused");
    let Health::Failed { reason } = &health else {
        panic!("{health:?}");
    };
    for part in ["`serverStatus`", "13: not authorized on admin"] {
        assert!(reason.contains(part), "{reason}");
    }
    let of_status = |(_, command): &&(String, Document)| command.contains_key("serverStatus");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.iter().filter(of_status).count(), 1);
    let (mut source, _) = super::source(|_, _| refused(59, "no such command"));
    let health = source.read(1.0).expect_err("it is refused");
    assert!(matches!(health, Health::Unsupported { .. }), "{health:?}");
}

#[test]
fn useless_sections_are_disabled_unless_the_server_objects() {
    let (mut source, asked) = source(|name, command| match name {
        "serverStatus" if command.len() > 1 => refused(40415, "field 'locks' is unknown"),
        "serverStatus" => Ok(of_8_0(1)),
        _ => refused(59, "no such command"),
    });
    source.read(1.0).expect("it answers the plain command");
    source.read(2.0).expect("it answers the plain command");
    let asked = asked.lock().unwrap();
    let commands: Vec<&Document> = asked
        .iter()
        .map(|(database, command)| {
            assert_eq!(database, "admin");
            command
        })
        .filter(|command| command.contains_key("serverStatus"))
        .collect();
    assert_eq!(commands.len(), 3);
    assert_eq!(commands[0].get("locks"), Some(&Bson::Int32(0)));
    assert_eq!(commands[0].keys().next().map(String::as_str), Some("serverStatus"));
    assert_eq!(commands[1], &doc! { "serverStatus": 1 });
    assert_eq!(commands[2], &doc! { "serverStatus": 1 });
}

#[test]
fn lost_connection_is_an_outage_that_the_next_rate_spans() {
    let mut answers = vec![Ok(of_4_4(1)), lost(), Ok(of_4_4(3))].into_iter();
    let (mut source, _) = source(move |name, _| match name {
        "serverStatus" => answers.next().expect("an answer for each reading"),
        _ => refused(59, "no such command"),
    });
    source.read(1.0).expect("it answers");
    let health = source.read(2.0).expect_err("the connection is lost");
    let reason = "connection reset by peer".to_owned();
    assert_eq!(health, Health::Failed { reason });
    let reported = source.read(5.0).expect("it answers");
    assert_values(&reported, &[("operations.s.query_per_s", 100.0)]);
}

#[test]
fn answer_without_known_fields_is_not_a_reading() {
    let mut source = source_of(vec![doc! { "ok": 1.0, "compression": "none" }]);
    let health = source.read(1.0).expect_err("there is nothing in it");
    assert!(matches!(health, Health::Degraded { .. }), "{health:?}");
}
