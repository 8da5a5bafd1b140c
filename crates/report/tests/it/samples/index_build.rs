//! Index builds with known figures, on churned documents, before and after a rewrite.

use dyno_record::index_build::{
    BuildRecord, CollectionFacts, ConfigurationRecord, DiskFacts, IndexBuildCaveat,
    IndexBuildDocument, IoFigures, MemberBuild, MemberFacts, RemedyRecord, SCHEMA_VERSION,
    TracingPair,
};
use dyno_record::model::RunStatus;
use dyno_record::server::ExperimentServer;
use dyno_record::statement::Statement;
use serde_json::json;
use std::collections::BTreeMap;

const HASH: &str = "5d2f0a1c9b7e4863a0c4d1e2f3b4a5968778695a4b3c2d1e0f1e2d3c4b5a6978";

/// Two builds with a rewrite between them.
pub(crate) fn rewritten() -> IndexBuildDocument {
    IndexBuildDocument {
        schema_version: SCHEMA_VERSION,
        dyno_version: "0.1.0".into(),
        started_at: "2026-08-22T10:15:00Z".into(),
        status: RunStatus::Complete,
        ended_at: None,
        status_reason: None,
        name: "churned".into(),
        plan: json!({
            "name": "churned",
            "server": {"kind": "embedded", "cache": "16MiB", "block_compressor": "none"},
            "client": {"seed": 42},
            "data": {"database": "sdu", "collection": "docs", "records": 20_000},
            "index_build": {
                "layout": "churned",
                "keys": "a",
                "start": "cold",
                "remedy": "rewrite",
            },
        }),
        server: ExperimentServer {
            product: "secantusd-rs".into(),
            version: Some("0.5.3".into()),
            address: "127.0.0.1:27117".into(),
            started: true,
            settings: BTreeMap::from([("sync_on_commit".into(), "off".into())]),
        },
        environment: None,
        collection: CollectionFacts {
            namespace: "sdu.docs".into(),
            documents: 20_000,
            bytes: 61_440_000,
            content_hash: HASH.into(),
            load_s: Some(48.2),
        },
        disk: Some(DiskFacts {
            device: "loop0".into(),
            file_system: "ext4".into(),
            made: true,
            iops: Some(200),
        }),
        builds: vec![before(), after()],
        remedy: Some(RemedyRecord {
            kind: "rewrite".into(),
            duration_s: 9.31,
            documents: (20_000, 20_000),
            content_hash: (HASH.into(), HASH.into()),
            cache_bytes: Some(512 << 20),
            on: None,
        }),
        configurations: Vec::new(),
        caveats: vec![IndexBuildCaveat {
            statement: Statement::recorded(
                "1.2 MiB of the data files could not be dropped from the page cache",
            )
            .with("hint", "end what else has them open"),
            build: Some("before".into()),
        }],
    }
}

fn before() -> BuildRecord {
    let mut server: BTreeMap<String, f64> =
        (0..12).map(|number| (format!("metrics.counter {number:02}"), f64::from(number))).collect();
    server.insert("wiredTiger.cache.pages read into cache".into(), 2_310.0);
    server.insert("wiredTiger.cache.bytes read into cache".into(), 75_694_080.0);
    server.insert("wiredTiger.cache.eviction walks".into(), 0.0);
    BuildRecord {
        name: "before".into(),
        configuration: None,
        started_at: "2026-08-22T10:16:02Z".into(),
        duration_s: 13.62,
        server_restarted: true,
        page_cache_dropped: true,
        cached_bytes: Some(1_258_291),
        read_at_start_bytes: Some(2_097_152),
        data_bytes: Some(75_000_000),
        process: Some(IoFigures {
            reads: 2_004,
            read_bytes: 58_982_400,
            writes: 230,
            written_bytes: 7_340_032,
            busy_ratio: None,
        }),
        device: Some(IoFigures {
            reads: 1_800,
            read_bytes: 58_982_400,
            writes: 64,
            written_bytes: 7_340_032,
            busy_ratio: Some(0.991),
        }),
        consumption: None,
        server,
        members: Vec::new(),
        tracing: Vec::new(),
    }
}

fn after() -> BuildRecord {
    BuildRecord {
        name: "after".into(),
        started_at: "2026-08-22T10:16:31Z".into(),
        duration_s: 0.94,
        cached_bytes: Some(0),
        data_bytes: Some(68_000_000),
        process: Some(IoFigures { reads: 2_001, read_bytes: 49_152_000, ..IoFigures::default() }),
        device: Some(IoFigures {
            reads: 150,
            read_bytes: 49_152_000,
            busy_ratio: Some(0.42),
            ..IoFigures::default()
        }),
        server: BTreeMap::from([
            ("wiredTiger.cache.pages read into cache".into(), 2_002.0),
            ("wiredTiger.cache.bytes read into cache".into(), 65_601_536.0),
            ("metrics.counter 11".into(), 11.0),
        ]),
        ..before()
    }
}

/// One build without a remedy.
pub(crate) fn without_remedy() -> IndexBuildDocument {
    let mut document = rewritten();
    document.builds.truncate(1);
    document.remedy = None;
    document.disk = Some(DiskFacts {
        device: "vda1".into(),
        file_system: "ext4".into(),
        ..DiskFacts::default()
    });
    if let Some(plan) = document.plan["index_build"].as_object_mut() {
        plan.remove("remedy");
    }
    document.caveats.clear();
    document
}

/// Repeated with and without a trace, once per duration.
pub(crate) fn pairs(durations: &[(f64, f64)]) -> Vec<TracingPair> {
    durations
        .iter()
        .enumerate()
        .map(|(number, &(traced_s, untraced_s))| TracingPair {
            traced_s,
            untraced_s,
            traced_first: number % 2 == 0,
        })
        .collect()
}

/// On one server, and on two servers that share the documents.
pub(crate) fn dealt() -> IndexBuildDocument {
    let mut document = without_remedy();
    let member = |name: &str, documents: u64| MemberFacts {
        name: name.into(),
        documents,
        bytes: documents * 3_072,
        data: Some(format!("/data/{name}")),
    };
    let configuration = |topology: &str, members| ConfigurationRecord {
        topology: topology.into(),
        collection: document.collection.clone(),
        members,
        remedy: None,
    };
    let both = vec![member("split-0", 10_180), member("split-1", 9_820)];
    document.configurations = vec![
        configuration("standalone", vec![member("server", 20_000)]),
        configuration("split=2", both),
    ];
    let on_member = |name: &str, duration_s, reads| MemberBuild {
        name: name.into(),
        duration_s,
        process: Some(IoFigures { reads, read_bytes: reads << 15, ..IoFigures::default() }),
        device: None,
    };
    document.builds = vec![
        BuildRecord {
            name: "standalone".into(),
            configuration: Some("standalone".into()),
            tracing: pairs(&[(13.62, 13.5)]),
            ..before()
        },
        BuildRecord {
            name: "split-2".into(),
            configuration: Some("split=2".into()),
            duration_s: 6.81,
            members: vec![on_member("split-0", 6.81, 1_000), on_member("split-1", 0.8, 1_004)],
            tracing: pairs(&[(6.81, 6.83)]),
            ..before()
        },
    ];
    document
}

/// Ended before the index was built.
pub(crate) fn failed() -> IndexBuildDocument {
    let mut document = rewritten();
    document.status = RunStatus::Failed;
    document.status_reason = Some("the server ended while `sdu.docs` was loaded".into());
    document.builds.clear();
    document.remedy = None;
    document.collection.load_s = None;
    document
}
