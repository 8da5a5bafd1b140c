//! Checks of a plan that its types cannot express. All checks run, and all problems are returned.

mod data;
mod fleet;
mod index_build;
mod load_only;
pub(crate) mod names;
mod observe;
mod own;
mod problems;
mod server;
mod tail;
pub(crate) mod windows;

pub(crate) use data::TIMES_CACHE;

use crate::model::{FreshData, KeyDistribution, Plan, ScanPath, ServerKind};
use crate::problem::Problem;
use names::{NAME_RULE, is_file_name};
use problems::Problems;
use std::time::Duration;

/// Largest number of documents per insert command that a server accepts.
const BATCH: u32 = 100_000;

/// Problems of a plan; empty if it can be run.
pub fn validate(plan: &Plan) -> Vec<Problem> {
    let mut problems = Problems::default();
    check_name(&mut problems, plan);
    check_fresh(&mut problems, plan);
    server::check_server(&mut problems, &plan.server);
    server::check_durable(&mut problems, plan);
    load_only::check_load_only(&mut problems, plan);
    data::check_data(&mut problems, &plan.data, plan.client.batch);
    data::check_times_cache(&mut problems, plan);
    own::check_own(&mut problems, plan);
    check_operations(&mut problems, plan);
    check_keys(&mut problems, plan);
    check_access(&mut problems, plan);
    check_client(&mut problems, plan);
    check_schedule(&mut problems, plan);
    check_phases(&mut problems, plan);
    check_traces(&mut problems, plan);
    check_io_trace(&mut problems, plan);
    server::check_split(&mut problems, plan);
    index_build::check_index_build(&mut problems, plan);
    tail::check_tail(&mut problems, plan);
    observe::check_observe(&mut problems, plan);
    observe::check_price(&mut problems, plan);
    fleet::check_fleet(&mut problems, plan);
    problems.0
}

fn check_traces(problems: &mut Problems, plan: &Plan) {
    for (index, trace) in plan.traces.iter().enumerate() {
        let name = &trace.name;
        let key = |name| format!("traces[{index}].{name}");
        problems.require_or(&key("name"), is_file_name(name), "it names a folder", || {
            format!("is `{name}`, but must have {NAME_RULE}")
        });
        let is_first = !plan.traces[..index].iter().any(|other| other.name == *name);
        problems.require(["traces"], is_first, || format!("two `traces` have the name `{name}`"));
        let has_program = trace.command.first().is_some_and(|program| !program.is_empty());
        problems.require(&key("command"), has_program, "does not name a program");
        problems.require(
            &key("for"),
            trace.length.is_none_or(|length| !length.0.is_zero()),
            "is 0, so the program would never run",
        );
    }
}

fn check_io_trace(problems: &mut Problems, plan: &Plan) {
    let Some(trace) = &plan.trace else { return };
    problems.require(
        "trace.for",
        trace.length.is_none_or(|length| !length.0.is_zero()),
        "is 0, so nothing would be traced",
    );
    let wants_some = !trace.operations.is_empty();
    problems.require_or(
        "trace.operations",
        wants_some,
        "omit it to trace all of them",
        "is empty, so nothing would be traced",
    );
    let is_empty = |pattern: &String| pattern.trim().is_empty();
    problems.require("trace.files", !trace.files.iter().any(is_empty), "has an empty pattern");
}

fn check_name(problems: &mut Problems, plan: &Plan) {
    let expected = |name: &str| format!("is `{name}`, but must have {NAME_RULE}");
    let name = &plan.name;
    problems
        .require_or("name", is_file_name(name), "it names the run directory", || expected(name));
    if let Some(tag) = plan.tags.iter().find(|tag| !is_file_name(tag)) {
        problems.require("tags", false, || expected(tag));
    }
}

fn check_fresh(problems: &mut Problems, plan: &Plan) {
    problems.require_or(
        "data.fresh",
        plan.data.fresh != FreshData::Server || plan.server.kind != ServerKind::Uri,
        "use `collection`, which drops and reloads the collection of a running server",
        "is `server`, but the plan uses a server that is already running",
    );
}

fn check_operations(problems: &mut Problems, plan: &Plan) {
    let named = plan.operations.by_name();
    for (name, weight) in named {
        problems.require(
            &format!("operations.{name}"),
            weight.is_finite() && weight >= 0.0,
            || format!("is `{weight}`, but must be 0 or more"),
        );
    }
    // Index builds and messages have no operations.
    let has_none = plan.index_build.is_some() || plan.tail.is_some();
    let has_some = named.iter().any(|(_, weight)| *weight > 0.0) || has_none || plan.is_own();
    problems.require([], has_some, "no operation has a weight above 0");
}

fn check_keys(problems: &mut Problems, plan: &Plan) {
    let count =
        plan.data.insert_count.unwrap_or(plan.data.records.saturating_sub(plan.data.insert_start));
    match plan.keys {
        KeyDistribution::Zipfian { exponent } => {
            problems.require(
                "keys.exponent",
                exponent.is_finite() && exponent > 0.0 && exponent <= 20.0,
                || format!("is `{exponent}`, but must be above 0 and at most 20"),
            );
        }
        KeyDistribution::Hotspot { hot_data_ratio, hot_operation_ratio } => {
            problems.ratio("keys.hot_data_ratio", hot_data_ratio);
            problems.ratio("keys.hot_operation_ratio", hot_operation_ratio);
            problems.require("keys.hot_data_ratio", hot_data_ratio * count as f64 >= 1.0, || {
                format!("= `{hot_data_ratio}` of {count} documents is less than one document")
            });
        }
        KeyDistribution::Exponential { percentile, data_ratio } => {
            problems.require("keys.percentile", percentile > 0.0 && percentile < 100.0, || {
                format!("is `{percentile}`, but must be above 0 and below 100")
            });
            problems.require("keys.data_ratio", data_ratio.is_finite() && data_ratio > 0.0, || {
                format!("is `{data_ratio}`, but must be above 0")
            });
        }
        KeyDistribution::Uniform {}
        | KeyDistribution::ScrambledZipfian {}
        | KeyDistribution::Latest {}
        | KeyDistribution::Sequential {} => {}
    }
}

fn check_access(problems: &mut Problems, plan: &Plan) {
    let access = &plan.access;
    let (least, most) = (access.min_scan_length, access.max_scan_length);
    let lengths = ["access.min_scan_length", "access.max_scan_length"];
    problems.require(lengths, (1..=most).contains(&least), || {
        format!("`access.min_scan_length` is `{least}`, but must be 1 to `access.max_scan_length` = `{most}`")
    });
    problems.require(
        "access.read_all_fields_by_name",
        !access.read_all_fields_by_name || access.read_all_fields,
        "needs `access.read_all_fields`",
    );
    if access.scan_along == Some(ScanPath::Indexes) {
        let hint = "name some with `data.indexes`, or scan along `key`";
        problems.require_or(
            "access.scan_along",
            !plan.data.indexes.is_empty(),
            hint,
            "is `indexes`, but there are no secondary indexes",
        );
        let starts_with_id = |fields: Vec<&str>| fields.first() == Some(&"_id");
        problems.require(
            ["access.scan_along", "data.indexes"],
            !plan.data.index_keys().any(starts_with_id),
            "`access.scan_along` is `indexes`, but one of `data.indexes` begins with `_id`",
        );
    }
}

fn check_client(problems: &mut Problems, plan: &Plan) {
    let client = &plan.client;
    problems.within("client.clients", client.clients, 1..=100_000);
    let (threads, clients) = (client.threads, client.clients);
    let counts = ["client.threads", "client.clients"];
    let hint = "YCSB's threads are `--clients` here; worker threads share the connections";
    problems.require_or(counts, (1..=clients.max(1)).contains(&threads), hint, || {
        format!("`client.threads` is `{threads}`, but must be 1 to `client.clients` = `{clients}`")
    });
    problems.within("client.batch", client.batch, 1..=BATCH);
    problems.require("client.load_clients", client.load_clients != Some(0), "must be at least 1");
    problems.require(
        "client.timeout",
        client.timeout.0 >= Duration::from_millis(1),
        "must be at least 1ms",
    );
    problems.within("client.seed", client.seed, 0..=i64::MAX as u64);
    problems.require_or(
        "client.think_time_distribution",
        client.think_time.is_some() || client.think_time_distribution.is_none(),
        "set `client.think_time`, such as `5ms`",
        "has no effect without `client.think_time`",
    );
    problems.ratio("client.tolerated_error_ratio", client.tolerated_error_ratio);
}

fn check_schedule(problems: &mut Problems, plan: &Plan) {
    let Some(rate_per_s) = plan.schedule.rate_per_s() else {
        return;
    };
    if let Some(think_time) = plan.client.mean_think_time() {
        problems.require_or("client.think_time", false, "remove one of them", || {
            format!("is `{think_time}`, but the schedule offers a rate, which sets the starts")
        });
    }
    problems.require(
        "schedule.rate_per_s",
        rate_per_s.is_finite() && rate_per_s > 0.0 && rate_per_s <= 1e9,
        || format!("is `{rate_per_s}`, but must be above 0 and at most 1e9"),
    );
}

fn check_phases(problems: &mut Problems, plan: &Plan) {
    let phases = &plan.phases;
    problems.require_or(
        [],
        phases.duration.is_some() || phases.operations.is_some(),
        "set `phases.duration`, `phases.operations` or both",
        "nothing ends the measure phase",
    );
    problems.require(
        "phases.duration",
        phases.duration.is_none_or(|duration| !duration.0.is_zero()),
        "must be above 0",
    );
    problems.require("phases.operations", phases.operations != Some(0), "must be at least 1");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use crate::model::{
        DiskMapping, DiskNames, Encryption, ExporterPlan, FieldLength, GrafanaPlan, Schedule,
        ServerPlan, StorageEngine,
    };
    use crate::units::{CacheSize, Span};
    use data::RECORDS;

    fn plan() -> Plan {
        builtin::find("a").expect("plan a is built in")
    }

    fn only_problem(change: impl FnOnce(&mut Plan)) -> String {
        let mut plan = plan();
        change(&mut plan);
        let problems = validate(&plan);
        assert_eq!(problems.len(), 1, "{problems:?}");
        problems[0].message.clone()
    }

    #[test]
    fn exporter_name_must_differ_from_other_sources() {
        let named =
            |name: &str| ExporterPlan::open(name.to_owned(), "http://db:9100/metrics".to_owned());
        for name in ["host", "server", "member-0", "pair-12", "shard-0-member-1"] {
            let problem = only_problem(|plan| plan.observe.exporters = vec![named(name)]);
            assert!(
                problem.contains("two sources") && problem.contains(&format!("`{name}`")),
                "{problem}"
            );
        }
        let mut plan = plan();
        plan.observe.exporters = vec![named("member-of-staff"), named("db-1")];
        assert_eq!(validate(&plan), []);
        // The name of a host, which its agent reads.
        plan.observe.exporters = vec![named("host-a")];
        assert_eq!(validate(&plan), []);
        plan.fleet = Some(crate::fleet::FleetPlan {
            clients: vec!["clients".to_owned()],
            servers: vec!["servers".to_owned()],
            ..crate::fleet::FleetPlan::default()
        });
        assert!(validate(&plan).iter().any(|problem| problem.message.contains("two sources")));
    }

    fn disks(names: &[&str]) -> Option<DiskNames> {
        let names = names.iter().map(|name| (*name).to_owned());
        Some(DiskNames::Several(names.collect()))
    }

    #[test]
    fn exporter_credentials_and_certificates_are_checked() {
        let plain = || ExporterPlan::open("node".to_owned(), "http://db:9100/metrics".to_owned());
        let file = || Some("secret".into());
        let user = || Some("scraper".to_owned());
        let with = |change: fn(&mut ExporterPlan)| {
            let mut exporter = plain();
            change(&mut exporter);
            exporter
        };
        for good in [
            with(|exporter| exporter.token_file = Some("secret".into())),
            ExporterPlan { user: user(), password_file: file(), ..plain() },
            ExporterPlan { url: "https://db:9100/metrics".to_owned(), ca_file: file(), ..plain() },
            with(|exporter| exporter.disk = disks(&["sdb", "sdc"])),
        ] {
            let mut plan = plan();
            plan.observe.exporters = vec![good];
            assert_eq!(validate(&plan), []);
        }
        let bad = [
            (ExporterPlan { user: user(), ..plain() }, "`user` and `password_file`"),
            (ExporterPlan { password_file: file(), ..plain() }, "`user` and `password_file`"),
            (
                ExporterPlan { user: user(), password_file: file(), token_file: file(), ..plain() },
                "`token_file` and `user`",
            ),
            (
                ExporterPlan { user: Some("a:b".to_owned()), password_file: file(), ..plain() },
                "`observe.exporters[0].user`",
            ),
            (ExporterPlan { ca_file: file(), ..plain() }, "`observe.exporters[0].ca_file`"),
            (
                ExporterPlan { url: "https://a:b@db/".to_owned(), ..plain() },
                "`observe.exporters[0].url`",
            ),
            (ExporterPlan { url: "ftp://db/".to_owned(), ..plain() }, "`observe.exporters[0].url`"),
            (
                ExporterPlan { disk: disks(&["sda", "/dev/sdb"]), ..plain() },
                "`observe.exporters[0].disk` is `/dev/sdb`",
            ),
            (
                ExporterPlan { disk: disks(&["sda", "sda"]), ..plain() },
                "`observe.exporters[0].disk` has `sda`",
            ),
            (ExporterPlan { disk: disks(&[]), ..plain() }, "empty list"),
            (
                ExporterPlan {
                    disk: Some(DiskNames::One("sda".to_owned())),
                    of_server: Some(false),
                    ..plain()
                },
                "`of_server` is `false`",
            ),
        ];
        for (exporter, expected) in bad {
            let problem = only_problem(|plan| plan.observe.exporters = vec![exporter]);
            assert!(problem.contains(expected), "{problem}");
        }
    }

    #[test]
    fn grafana_address_contains_no_secret() {
        let at = |url: &str| GrafanaPlan {
            url: url.to_owned(),
            token_file: Some("token".into()),
            ca_file: None,
        };
        for good in ["http://monitor:3000", "https://monitor/grafana/"] {
            let mut plan = plan();
            plan.observe.grafana = Some(at(good));
            assert_eq!(validate(&plan), []);
        }
        for bad in
            ["monitor:3000", "http://", "http://admin:admin@monitor", "http://monitor/?token=a"]
        {
            let problem = only_problem(|plan| plan.observe.grafana = Some(at(bad)));
            assert!(problem.contains("`observe.grafana.url`"), "{problem}");
        }
        let ca_file = Some("ca.pem".into());
        let plain = at("http://monitor");
        let problem = only_problem(|plan| {
            plan.observe.grafana = Some(GrafanaPlan { ca_file, ..plain });
        });
        assert!(problem.contains("`observe.grafana.ca_file`"), "{problem}");
    }

    #[test]
    fn embedded_server_refuses_replica_sets_by_topology() {
        let mut plan = plan();
        plan.server.topology = Some("replica-set=2+1".into());
        plan.server.kind = ServerKind::Embedded;
        let problems = validate(&plan);
        assert_eq!(problems.len(), 1, "{problems:?}");
        let text = problems[0].to_string();
        assert!(
            text.contains("`server.topology` = `replica-set=2+1`") && text.contains("install"),
            "{text}"
        );
    }

    #[test]
    fn every_topology_has_one_normalized_form() {
        let resolved = |text: &str| {
            let mut server = ServerPlan { topology: Some(text.into()), ..ServerPlan::default() };
            server.resolve_topology();
            (server.topology, server.pairs)
        };
        assert_eq!(resolved("standalone"), (None, 1));
        assert_eq!(resolved("pairs=3"), (None, 3));
        assert_eq!(resolved("replica-set=2+1"), (Some("replica-set=2+1".into()), 1));
        let problem = only_problem(|plan| plan.server.topology = Some("ring=3".into()));
        assert!(problem.contains("`server.topology`") && problem.contains("`ring=3`"), "{problem}");
    }

    #[test]
    fn malformed_placement_is_a_problem() {
        let problem = only_problem(|plan| plan.server.placement = Some("spread=1".into()));
        assert!(
            problem.starts_with("`server.placement`") && problem.contains("`spread=1`"),
            "{problem}"
        );
    }

    #[test]
    fn every_built_in_plan_is_valid() {
        for name in builtin::names() {
            let plan = builtin::find(name).expect("it is listed");
            assert_eq!(validate(&plan), [], "{name}");
        }
    }

    #[test]
    fn reachable_servers_may_have_users_and_certificates() {
        let mut plan = plan();
        plan.server.auth = true;
        plan.server.encryption = Encryption::Mutual;
        for (listen, advertise) in [
            ("10.0.0.1", None),
            ("fd00::1", None),
            ("10.0.0.1", Some("db-1.example.com")),
            ("0.0.0.0", Some("10.0.0.1")),
            ("::", Some("db_1")),
        ] {
            plan.server.listen = Some(listen.into());
            plan.server.advertise = advertise.map(str::to_owned);
            assert_eq!(validate(&plan), [], "{listen} {advertise:?}");
        }
        for advertise in ["", "0.0.0.0", "[::1]", "a..b", "-a", "a b", "u:p@h"] {
            plan.server.advertise = Some(advertise.into());
            assert_eq!(validate(&plan).len(), 1, "{advertise}");
        }
    }

    #[test]
    fn network_card_is_a_name_with_or_without_cpus() {
        let problems = |text: &str| {
            let mut plan = plan();
            plan.server.receive_packet_steering = Some(text.into());
            validate(&plan).len()
        };
        for text in ["lo", "eth0=0-3,8", "enp0s31f6.100=0", "a=0"] {
            assert_eq!(problems(text), 0, "{text}");
        }
        for text in ["", "=0", "eth0=", "..", "../x", "a b", "sixteen-letters!", "lo=3-1", "lo=x"] {
            assert_eq!(problems(text), 1, "{text}");
        }
    }

    #[test]
    fn each_check_names_the_key_and_the_value() {
        type Change = fn(&mut Plan);
        let cases: [(&str, Change); 58] = [
            ("`server.listen` is `0.0.0.0`", |p| {
                p.server.listen = Some("0.0.0.0".into());
            }),
            ("`server.listen` is `db1`", |p| {
                p.server.listen = Some("db1".into());
            }),
            ("`server.advertise` is `db1:27017`", |p| {
                p.server.listen = Some("0.0.0.0".into());
                p.server.advertise = Some("db1:27017".into());
            }),
            ("`tail.consumer_host`", |p| {
                p.server.encryption = Encryption::Server;
                p.tail = Some(crate::tail::TailPlan {
                    consumer_host: Some("client2".into()),
                    ..Default::default()
                });
            }),
            ("`server.listen` is missing", |p| {
                p.server.advertise = Some("db1".into());
            }),
            ("data.fresh", |p| {
                p.data.fresh = FreshData::Server;
                p.server.kind = ServerKind::Uri;
                p.server.uri = Some("mongodb://h".into());
            }),
            ("name", |p| p.name = "a b".into()),
            ("server.uri", |p| p.server.uri = Some("mongodb://h".into())),
            ("server.receive_packet_steering", |p| {
                p.server.receive_packet_steering = Some("eth0=0-".into());
            }),
            ("server.uri`: ", |p| {
                p.server.kind = ServerKind::Uri;
                p.server.uri = Some("nonsense".into());
            }),
            ("credentials", |p| {
                p.server.kind = ServerKind::Uri;
                p.server.uri = Some("mongodb://u:secret@h".into());
            }),
            ("client.seed", |p| p.client.seed = u64::MAX),
            ("server.topology", |p| {
                p.server.topology = Some("replica-set=3".into());
                p.server.pairs = 2;
            }),
            ("server.data_dirs", |p| {
                p.server.data_dir = Some("/a".into());
                p.server.data_dirs = vec!["/b".into()];
            }),
            ("server.disk_mapping", |p| {
                p.server.disk_mapping = DiskMapping::Direct;
            }),
            ("server.parameters", |p| {
                p.server.parameters.insert("a=b".into(), "1".into());
            }),
            ("server.runtime_parameters", |p| {
                p.server.runtime_parameters.insert("a=b".into(), "1".into());
            }),
            ("`server.runtime_parameters` apply", |p| {
                p.server.kind = ServerKind::Mongod;
                p.server.runtime_parameters.insert("a".into(), "1".into());
                p.tail = Some(crate::tail::TailPlan::default());
            }),
            ("`server.host_settings` apply", |p| {
                p.server.host_settings.insert("swappiness".into(), "1".into());
                p.tail = Some(crate::tail::TailPlan::default());
            }),
            ("`server.host_settings` has `vm`", |p| {
                p.server.host_settings.insert("vm".into(), "1".into());
            }),
            ("`server.host_settings.readahead` is `6KiB`", |p| {
                p.server.host_settings.insert("readahead".into(), "6KiB".into());
            }),
            ("`server.host_settings`", |p| {
                p.server.kind = ServerKind::Uri;
                p.server.uri = Some("mongodb://h".into());
                p.server.host_settings.insert("swappiness".into(), "1".into());
            }),
            ("`server.runtime_parameters`", |p| {
                p.server.kind = ServerKind::Embedded;
                p.server.runtime_parameters.insert("a".into(), "1".into());
            }),
            ("has `tls`", |p| {
                p.server.connection_options = Some("w=1&tls=true".into());
            }),
            ("server.connection_options`: ", |p| {
                p.server.connection_options = Some("w=1&readConcernLevels=local".into());
            }),
            ("server.auth", |p| {
                p.server.kind = ServerKind::Uri;
                p.server.uri = Some("mongodb://h".into());
                p.server.auth = true;
            }),
            ("server.mongos", |p| {
                p.server.kind = ServerKind::Embedded;
                p.server.mongos = Some("/bin/mongos".into())
            }),
            ("server.mongod", |p| {
                p.server.kind = ServerKind::Embedded;
                p.server.mongod = Some("/bin/mongod".into())
            }),
            ("block_compressor", |p| {
                p.server.kind = ServerKind::Embedded;
                p.server.block_compressor = Some("snappy".into())
            }),
            ("block_compressor", |p| p.server.block_compressor = Some("brotli".into())),
            ("data.records", |p| p.data.records = RECORDS + 1),
            ("insert_start", |p| p.data.insert_start = p.data.records),
            ("insert_count", |p| p.data.insert_count = Some(p.data.records + 1)),
            ("insert_offset", |p| p.data.insert_offset = 1),
            ("field_count", |p| p.data.field_count = 0),
            ("compressible_ratio", |p| p.data.compressible_ratio = 1.5),
            ("database", |p| p.data.database = "a.b".into()),
            ("collection", |p| p.data.collection = "system.users".into()),
            ("bytes", |p| p.data.field_length = FieldLength::Constant { bytes: 2_000_000 }),
            ("min_bytes", |p| {
                p.data.field_length = FieldLength::Uniform { min_bytes: 2, max_bytes: 1 }
            }),
            ("a positive weight", |p| {
                p.data.field_length = FieldLength::Histogram { block_bytes: 10, weights: vec![0] };
            }),
            ("weight", |p| p.operations = Default::default()),
            ("operations.read", |p| p.operations.read = -1.0),
            ("keys.exponent", |p| p.keys = KeyDistribution::Zipfian { exponent: 0.0 }),
            ("hot_data_ratio", |p| {
                p.keys = KeyDistribution::Hotspot { hot_data_ratio: 0.0, hot_operation_ratio: 0.5 };
            }),
            ("keys.hot_operation_ratio", |p| {
                p.keys = KeyDistribution::Hotspot { hot_data_ratio: 0.5, hot_operation_ratio: 1.5 };
            }),
            ("keys.percentile", |p| {
                p.keys = KeyDistribution::Exponential { percentile: 100.0, data_ratio: 0.5 };
            }),
            ("keys.data_ratio", |p| {
                p.keys = KeyDistribution::Exponential { percentile: 95.0, data_ratio: 0.0 };
            }),
            ("min_scan_length", |p| p.access.min_scan_length = 0),
            ("`access.scan_along` is `indexes`", |p| {
                p.access.scan_along = Some(ScanPath::Indexes);
            }),
            ("`_id`", |p| {
                p.access.scan_along = Some(ScanPath::Indexes);
                p.data.indexes = vec!["field0".into(), "_id,field1".into()];
            }),
            ("client.threads", |p| p.client.threads = p.client.clients + 1),
            ("client.batch", |p| p.client.batch = 0),
            ("`client.batch` = `60000`", |p| p.client.batch = 60_000),
            ("rate_per_s", |p| {
                p.schedule = Schedule::Constant {
                    rate_per_s: f64::NAN,
                    max_start_delay: Span::from_secs(1),
                };
            }),
            ("`client.think_time_distribution`", |p| {
                p.client.think_time_distribution = Some(crate::model::ThinkTime::Exponential);
            }),
            ("client.think_time", |p| {
                p.client.think_time = Some(Span::from_secs(1));
                p.schedule = Schedule::Throttled { rate_per_s: 1.0 };
            }),
            ("measure phase", |p| {
                p.phases.duration = None;
                p.phases.operations = None;
            }),
        ];
        for (expected, change) in cases {
            let message = only_problem(change);
            assert!(message.contains(expected), "`{message}` does not name `{expected}`");
        }
    }

    #[test]
    fn durable_writes_conflict_with_weaker_settings() {
        let durable = |change: &dyn Fn(&mut Plan)| {
            only_problem(|plan| {
                plan.server.kind = ServerKind::Mongod;
                plan.server.durable_writes = true;
                change(plan);
            })
        };
        let options = |text: &'static str| {
            durable(&|plan| plan.server.connection_options = Some(text.into()))
        };
        assert!(options("j=false").contains("`journal=false`"));
        assert!(options("w=0").contains("`w=0`"));
        let uri = durable(&|plan| {
            plan.server.kind = ServerKind::Uri;
            plan.server.uri = Some("mongodb://h/?journal=false".into());
        });
        assert!(uri.contains("`journal=false`"), "{uri}");
        let journal = durable(&|plan| plan.server.journal = Some(false));
        assert!(journal.contains("`server.journal = false`"), "{journal}");
        let engine = durable(&|plan| plan.server.storage_engine = Some(StorageEngine::InMemory));
        assert!(engine.contains("in-memory"), "{engine}");
        let messages = durable(&|plan| {
            plan.tail =
                Some(crate::tail::TailPlan { write_concern: "0".into(), ..Default::default() });
        });
        assert!(messages.contains("`tail.write_concern"), "{messages}");
        let index = durable(&|plan| plan.index_build = Some(Default::default()));
        assert!(index.contains("index build"), "{index}");
        for (kind, options) in
            [(ServerKind::Embedded, "w=1"), (ServerKind::Mongod, "w=majority&journal=true")]
        {
            let mut plan = plan();
            plan.server.kind = kind;
            plan.server.durable_writes = true;
            plan.server.connection_options = Some(options.into());
            assert_eq!(validate(&plan), []);
        }
    }

    #[test]
    fn times_cache_needs_a_known_cache() {
        let times = |change: &dyn Fn(&mut Plan)| {
            only_problem(|plan| {
                plan.server.cache = Some(CacheSize::Smallest);
                plan.data.times_cache = Some(2.0);
                change(plan);
            })
        };
        assert!(times(&|plan| plan.server.cache = None).contains("`data.times_cache`"));
        assert!(times(&|plan| plan.data.times_cache = Some(0.0)).contains("0.01 to 1000"));
        let histogram = times(&|plan| {
            plan.data.field_length = FieldLength::Histogram { block_bytes: 1, weights: vec![1] };
        });
        assert!(histogram.contains("histogram"), "{histogram}");
    }

    #[test]
    fn integrity_needs_values_of_constant_length() {
        let message = only_problem(|plan| {
            plan.data.integrity = true;
            plan.data.field_length = FieldLength::Uniform { min_bytes: 1, max_bytes: 9 };
        });
        assert!(message.contains("integrity"));
    }

    #[test]
    fn all_problems_are_reported_together() {
        let mut plan = plan();
        plan.data.field_count = 0;
        plan.client.batch = 0;
        plan.client.tolerated_error_ratio = 2.0;
        assert_eq!(validate(&plan).len(), 3);
    }
}
