use super::*;
use crate::model::{Backend, FieldLength, KeyOrder, ScanLength, Schedule};
use proptest::prelude::*;

/// Properties from `name=value` words, as for `-p`.
fn given(words: &[&str]) -> Properties {
    let mut properties = Properties::default();
    for word in words {
        let (name, value) = word.split_once('=').expect("a word is `name=value`");
        properties.set(name, value);
    }
    properties
}

/// The smallest set of properties that makes a plan, and additional ones.
fn with_counts(words: &[&str]) -> Properties {
    let mut all = vec!["recordcount=1000", "operationcount=500"];
    all.extend(words);
    given(&all)
}

fn resolved(words: &[&str], phase: Phase) -> YcsbPlan {
    resolve(&with_counts(words), phase, false)
        .unwrap_or_else(|problems| panic!("{words:?}: {problems:?}"))
}

fn run(words: &[&str]) -> YcsbPlan {
    resolved(words, Phase::Run)
}

fn problems_of(properties: &Properties, phase: Phase) -> Vec<String> {
    match resolve(properties, phase, false) {
        Ok(_) => panic!("{properties:?} should not resolve"),
        Err(problems) => problems.iter().map(Problem::to_string).collect(),
    }
}

fn problem(words: &[&str]) -> String {
    let mut problems = problems_of(&with_counts(words), Phase::Run);
    assert_eq!(problems.len(), 1, "{words:?}: {problems:?}");
    problems.remove(0)
}

fn only_warning(words: &[&str]) -> String {
    let mut warnings = run(words).warnings;
    assert_eq!(warnings.len(), 1, "{words:?}: {warnings:?}");
    warnings.remove(0)
}

#[test]
fn missing_properties_have_the_defaults_of_ycsb() {
    let YcsbPlan { plan, uri, client, warnings, unsupported_by_wire } = run(&[]);
    assert_eq!(unsupported_by_wire, []);
    assert_eq!(uri, "mongodb://localhost:27017/ycsb?w=1");
    assert_eq!(plan.server.uri.as_deref(), Some("mongodb://localhost:27017/ycsb?w=1"));
    assert_eq!(plan.name, "ycsb");
    assert_eq!(
        (plan.data.records, plan.data.insert_start, plan.data.insert_count),
        (1000, 0, None)
    );
    assert_eq!(plan.data.field_length, FieldLength::Constant { bytes: 100 });
    assert_eq!((plan.data.database.as_str(), plan.data.collection.as_str()), ("ycsb", "usertable"));
    assert_eq!((plan.operations.read, plan.operations.update), (0.95, 0.05));
    assert_eq!(plan.keys, KeyDistribution::Uniform {});
    assert_eq!((plan.client.clients, plan.client.batch), (1, 1));
    assert_eq!(plan.schedule, Schedule::Closed {});
    assert_eq!(plan.phases.warmup, Span::from_secs(0));
    assert_eq!((plan.phases.operations, plan.phases.duration), (Some(500), None));
    assert_eq!(client, YcsbClientOptions::default());
    assert_eq!(warnings, Vec::<String>::new());
}

/// Every default in the table, given explicitly, equals its absence: table and code agree.
#[test]
fn explicit_default_changes_nothing() {
    let plain = run(&[]);
    for property in PROPERTIES.iter().filter(|property| !property.name.ends_with('*')) {
        let Some(default) = property.default else {
            continue;
        };
        if property.name == "operationcount" {
            continue;
        }
        let word = format!("{}={default}", property.name);
        let written = run(&[&word]);
        assert_eq!(written.plan, plain.plan, "{word}");
        assert_eq!(written.client, plain.client, "{word}");
        assert_eq!(written.uri, plain.uri, "{word}");
        assert_eq!(written.warnings, plain.warnings, "{word}");
    }
}

/// Every supported property changes something, so none is read and forgotten.
#[test]
fn every_honoured_property_has_an_effect() {
    let folder = tempfile::tempdir().unwrap();
    let histogram = folder.path().join("lengths");
    std::fs::write(&histogram, "BlockSize\t10\n0\t5\n").unwrap();
    let histogram = format!("fieldlengthhistogram={}", histogram.display());
    // Words that make the property matter, followed by the property itself.
    let cases: &[&[&str]] = &[
        &["recordcount=7"],
        &["operationcount=7"],
        &["insertcount=7"],
        &["insertstart=7"],
        &["threadcount=7"],
        &["target=7"],
        &["maxexecutiontime=7"],
        &["status=true"],
        &["status.interval=7"],
        &["label=seven "],
        &["exporter=com.yahoo.ycsb.measurements.exporter.JSONArrayMeasurementsExporter"],
        &["exportfile=seven"],
        &["measurementtype=timeseries"],
        &["target=7", "measurement.interval=both"],
        &["hdrhistogram.percentiles=7, 99.9"],
        &["hdrhistogram.fileoutput=true"],
        &["hdrhistogram.fileoutput=true", "hdrhistogram.output.path=seven"],
        &["measurement.histogram.verbose=true"],
        &["histogram.buckets=7"],
        &["timeseries.granularity=7"],
        &["reportlatencyforeacherror=true"],
        &["latencytrackederrors=NOT_FOUND, ERROR"],
        &["table=seven"],
        &["fieldcount=7"],
        &["fieldnameprefix=seven"],
        &["fieldlength=7"],
        &["fieldlengthdistribution=uniform", "minfieldlength=7"],
        &["fieldlengthdistribution=zipfian"],
        &["fieldlengthdistribution=histogram", &histogram],
        &["dataintegrity=true"],
        &["insertorder=ordered"],
        &["zeropadding=7"],
        &["readallfields=false"],
        &["readallfieldsbyname=true"],
        &["writeallfields=true"],
        &["minscanlength=7"],
        &["maxscanlength=7"],
        &["scanlengthdistribution=zipfian"],
        &["readproportion=0.7"],
        &["updateproportion=0.7"],
        &["insertproportion=0.7"],
        &["scanproportion=0.7"],
        &["readmodifywriteproportion=0.7"],
        &["requestdistribution=latest"],
        &["requestdistribution=hotspot", "hotspotdatafraction=0.7"],
        &["requestdistribution=hotspot", "hotspotopnfraction=0.7"],
        &["requestdistribution=exponential", "exponential.percentile=7"],
        &["requestdistribution=exponential", "exponential.frac=0.7"],
        &["core_workload_insertion_retry_limit=7"],
        &["core_workload_insertion_retry_interval=7"],
        &["core_workload_insertion_keep_going_on_error=true"],
        &["mongodb.url=mongodb://seven"],
        &["mongodb.url=mongodb://h", "mongodb.database=seven"],
        &["batchsize=7"],
        &["mongodb.batchsize=7"],
        &["mongodb.upsert=true"],
        &["mongodb.url=mongodb://h", "mongodb.writeConcern=majority"],
        &["mongodb.readPreference=nearest"],
        &["mongodb.maxconnections=7"],
        &["mongodb.username=seven"],
        &["mongodb.username=seven", "mongodb.password=7"],
        &["compressibility=7"],
        &["dyno.server=embedded"],
        &["dyno.backend=driver"],
        &["dyno.seed=7"],
        &["dyno.timeout=7s"],
    ];
    let all = |words: &[&str]| {
        // The histogram's own default file does not exist here.
        let mut words = words.to_vec();
        if words == ["fieldlengthdistribution=histogram"] {
            words = vec!["fieldlengthdistribution=constant"];
        }
        let YcsbPlan { plan, uri, client, .. } = run(&words);
        (plan, uri, client)
    };
    for words in cases {
        let (_, before) = words.split_last().unwrap();
        assert!(all(words) != all(before), "{words:?}");
    }
    let checked = ["workload", "db", "dotransactions"];
    for property in PROPERTIES {
        let is_honoured = matches!(
            property.treatment,
            Treatment::Plan(_)
                | Treatment::Client(_)
                | Treatment::Checked(_)
                | Treatment::Target(_)
        );
        let start = format!("{}=", property.name);
        let is_covered =
            cases.iter().any(|words| words.last().is_some_and(|word| word.starts_with(&start)));
        let is_covered =
            is_covered || checked.contains(&property.name) || start == "fieldlengthhistogram=";
        assert!(!is_honoured || is_covered, "`{}` is not in the table of this test", property.name);
    }
}

#[test]
fn property_without_effect_gives_the_reason() {
    for property in PROPERTIES {
        let name = property.name.replace('*', "anything");
        let Treatment::NoEffect(reason) = property.treatment else {
            continue;
        };
        let warning = only_warning(&[&format!("{name}=changed")]);
        assert!(warning.starts_with(&format!("`{name}`")), "{warning}");
        assert!(warning.ends_with(reason), "{warning}");
    }
}

#[test]
fn refused_property_is_an_error_by_name() {
    for property in PROPERTIES {
        let name = property.name.replace('*', "anything");
        let Treatment::Refused(reason) = property.treatment else {
            continue;
        };
        let text = problem(&[&format!("{name}=changed")]);
        for part in ["`changed`", reason, &format!("`{name}`")] {
            assert!(text.contains(part), "{text}");
        }
    }
}

#[test]
fn unknown_name_is_an_error_with_the_nearest_name() {
    for (name, near) in [
        ("readpropotion", "readproportion"),
        ("readmodifywrite_proportion", "readmodifywriteproportion"),
    ] {
        let text = problem(&[&format!("{name}=1")]);
        for part in [name, near] {
            assert!(text.contains(&format!("`{part}`")), "{text}");
        }
    }
    assert!(problem(&["cassandra.tracing=true"]).contains("--lenient"));
}

#[test]
fn lenient_only_turns_unknown_names_into_warnings() {
    let properties = with_counts(&["readpropotion=1", "jdbc.url=x"]);
    let resolved = resolve(&properties, Phase::Run, true).expect("unknown names are tolerated");
    let [near, far] = resolved.warnings.as_slice() else { panic!("{:?}", resolved.warnings) };
    assert!(near.contains("`readpropotion`") && near.contains("`readproportion`"), "{near}");
    assert!(far.contains("`jdbc.url`"), "{far}");
    assert_eq!(far.matches('`').count(), 2, "no name is near: {far}");
    assert!(resolve(&with_counts(&["insertorder=random"]), Phase::Run, true).is_err());
}

#[test]
fn all_problems_are_reported_together_with_their_places() {
    let text =
        "workload=site.ycsb.RestWorkload\nrecordcount=many\n\n  insertorder = RANDOM\nstatus=yes\n";
    let properties = Properties::parse(text, "dir/mine").unwrap();
    let problems = resolve(&properties, Phase::Run, false).err().expect("it is full of problems");
    let mut shown: Vec<_> = problems.iter().map(Problem::to_string).collect();
    shown.sort();
    let expected: [(&str, &[&str]); 4] = [
        (
            "line 1, column 1: `workload`",
            &["`site.ycsb.RestWorkload`", "`site.ycsb.workloads.CoreWorkload`"],
        ),
        ("line 2, column 1: `recordcount`", &["`many`"]),
        ("line 4, column 3: `insertorder`", &["`RANDOM`", "`hashed`", "`ordered`"]),
        ("line 5, column 1: `status`", &["`yes`", "`true`", "`false`"]),
    ];
    assert_eq!(shown.len(), expected.len(), "{shown:#?}");
    for (problem, (begin, parts)) in shown.iter().zip(expected) {
        assert!(problem.starts_with(begin), "{problem}");
        assert!(problem.contains("`dir/mine`"), "{problem}");
        for part in parts {
            assert!(problem.contains(part), "{problem}");
        }
    }
}

#[test]
fn misspelt_values_are_errors_with_the_nearest_word() {
    // Messages with a list of all words name the nearest one twice.
    for (word, near, count) in [
        ("requestdistribution=zipfain", "`zipfian`", 2),
        ("requestdistribution=Zipfian", "`zipfian`", 2),
        ("measurementtype=HISTOGRAM", "`histogram`", 2),
        ("latencytrackederrors=NOTFOUND", "`NOT_FOUND`", 1),
    ] {
        let text = problem(&[word]);
        assert_eq!(text.matches(near).count(), count, "{text}");
    }
    for word in [
        "fieldlengthdistribution=normal",
        "scanlengthdistribution=latest",
        "measurement.interval=intent",
        "hdrhistogram.percentiles=50,high",
        "hdrhistogram.percentiles=101",
        "exporter=site.ycsb.measurements.exporter.XmlExporter",
        "measurementtype=raw",
        "measurementtype=hdrhistogram+raw",
        "status.interval=0",
        "histogram.buckets=0",
        "maxexecutiontime=-1",
        "target=-5",
        "target=nan",
        "readproportion=-0.1",
        "hotspotdatafraction=1.5",
        "zeropadding=1.5",
        "compressibility=0.5",
        "db=site.ycsb.db.AsyncMongoDbClient",
        "dotransactions=false",
        "dyno.server=postgres",
        "dyno.timeout=soon",
        "fieldlengthdistribution=histogram",
        "mongodb.writeConcern=safe",
        "mongodb.readPreference=secondaryPreferred",
    ] {
        let (name, _) = word.split_once('=').unwrap();
        let name = if word == "fieldlengthdistribution=histogram" { "hist.txt" } else { name };
        assert!(problem(&[word]).contains(&format!("`{name}`")), "{word}");
    }
}

#[test]
fn plan_problems_are_reported_with_property_names() {
    for part in ["insertstart=50\ninsertcount=51\n", "insertcount=101\n"] {
        let text = format!("recordcount=100\noperationcount=10\n{part}");
        let properties = Properties::parse(&text, "mine").unwrap();
        let problems =
            resolve(&properties, Phase::Load, false).err().expect("the part is beyond the data");
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].message.contains("`insertstart` + `insertcount`"), "{problems:?}");
        assert!(problems[0].message.contains("`mine`"), "{problems:?}");
        assert!(problems[0].line.is_some_and(|line| line == 1 || line == 3), "{problems:?}");
    }

    let text = problem(&["dataintegrity=true", "fieldlengthdistribution=uniform"]);
    assert!(text.contains("`dataintegrity`") && text.contains("`fieldlength`"), "{text}");
    assert!(problem(&["threadcount=0"]).contains("`threadcount`"));
    assert!(problem(&["readproportion=0", "updateproportion=0"]).contains("weight"));
    assert!(problem(&["operationcount=0"]).contains("`maxexecutiontime`"));
    assert!(problem(&["recordcount=0"]).contains("`recordcount`"));
}

#[test]
fn number_of_documents_is_required() {
    let problems = problems_of(&given(&["operationcount=10"]), Phase::Run);
    assert!(problems[0].starts_with("`recordcount`"), "{problems:?}");
}

#[test]
fn counts_may_have_more_than_32_bits() {
    let plan = run(&["recordcount=5000000000", "operationcount=6000000000"]).plan;
    assert_eq!((plan.data.records, plan.phases.operations), (5_000_000_000, Some(6_000_000_000)));
}

#[test]
fn the_load_phase_has_one_operation_per_document() {
    let load = |words: &[&str]| {
        let resolved = resolved(words, Phase::Load);
        (resolved.plan.phases.operations, resolved.warnings.len())
    };
    assert_eq!(load(&[]), (Some(1000), 0));
    assert_eq!(load(&["insertcount=30"]), (Some(30), 0));
    assert_eq!(load(&["insertstart=900", "insertcount=30"]), (Some(30), 0));
    // YCSB would write 1000 documents here, 900 of them beyond the data set.
    assert_eq!(load(&["insertstart=900"]), (Some(100), 1));
}

#[test]
fn threads_without_an_operation_are_not_started() {
    let resolved = run(&["operationcount=3", "threadcount=8"]);
    assert_eq!(resolved.plan.client.clients, 3);
    let [warning] = resolved.warnings.as_slice() else { panic!("{:?}", resolved.warnings) };
    for part in ["`threadcount`", "8", "3"] {
        assert!(warning.contains(part), "{warning}");
    }
}

#[test]
fn target_is_a_constant_schedule_and_zero_is_none() {
    let resolved = run(&["target=250"]);
    assert_eq!(
        resolved.plan.schedule,
        Schedule::Constant { rate_per_s: 250.0, max_start_delay: Span::from_secs(10) }
    );
    assert_eq!(resolved.client.target_ops_per_s, Some(250.0));
    let warning = &resolved.warnings[0];
    assert!(warning.contains("`target`") && warning.contains("250"), "{warning}");
    assert_eq!(run(&["target=0"]).plan.schedule, Schedule::Closed {});
}

#[test]
fn intended_start_needs_a_target() {
    assert!(only_warning(&["measurement.interval=intended"]).contains("without `target`"));
}

#[test]
fn proportions_that_do_not_add_up_to_one_give_a_warning() {
    let warning = only_warning(&["readproportion=1"]);
    for part in ["1.05", "`readproportion`", "`updateproportion`"] {
        assert!(warning.contains(part), "{warning}");
    }
    let silent = ["readproportion=0.1", "updateproportion=0.2", "scanproportion=0.7"];
    assert!(run(&silent).warnings.is_empty());
}

#[test]
fn every_request_distribution_has_its_counterpart() {
    let keys = |words: &[&str]| run(words).plan.keys;
    assert_eq!(keys(&["requestdistribution=zipfian"]), KeyDistribution::ScrambledZipfian {});
    assert_eq!(keys(&["requestdistribution=latest"]), KeyDistribution::Latest {});
    assert_eq!(keys(&["requestdistribution=sequential"]), KeyDistribution::Sequential {});
    assert_eq!(
        keys(&["requestdistribution=hotspot", "hotspotdatafraction=0.5"]),
        KeyDistribution::Hotspot { hot_data_ratio: 0.5, hot_operation_ratio: 0.8 }
    );
    assert_eq!(
        keys(&["requestdistribution=exponential", "exponential.percentile=90"]),
        KeyDistribution::Exponential { percentile: 90.0, data_ratio: 0.857_142_857_1 }
    );
    assert!(only_warning(&["hotspotopnfraction=0.5"]).contains("is not `hotspot`"));
}

#[test]
fn workload_e_of_ycsb_becomes_its_plan() {
    let text = "# Yahoo! Cloud System Benchmark\nrecordcount=1000\noperationcount=1000\n\
                workload=site.ycsb.workloads.CoreWorkload\n\nreadallfields=true\n\nreadproportion=0\n\
                updateproportion=0\nscanproportion=0.95\ninsertproportion=0.05\n\n\
                requestdistribution=zipfian\n\nmaxscanlength=100\n\nscanlengthdistribution=uniform\n";
    let properties = Properties::parse(text, "/ycsb/workloads/workloade").unwrap();
    let YcsbPlan { plan, warnings, .. } =
        resolve(&properties, Phase::Run, false).expect("it is valid");
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(plan.name, "workloade");
    assert_eq!(
        (plan.operations.scan, plan.operations.insert, plan.operations.read),
        (0.95, 0.05, 0.0)
    );
    assert_eq!(plan.keys, KeyDistribution::ScrambledZipfian {});
    assert_eq!((plan.access.min_scan_length, plan.access.max_scan_length), (1, 100));
    assert_eq!(plan.access.scan_length_distribution, ScanLength::Uniform);
    assert_eq!(plan.data.key_order, KeyOrder::Hashed);
}

#[test]
fn both_names_of_the_batch_size_are_accepted() {
    assert_eq!(resolved(&["batchsize=50"], Phase::Load).plan.client.batch, 50);
    let documented = resolved(&["mongodb.batchsize=50"], Phase::Load);
    assert_eq!(documented.plan.client.batch, 50);
    assert!(documented.warnings[0].contains("`mongodb.batchsize`"));
    let text = problem(&["batchsize=50", "mongodb.batchsize=60"]);
    for part in ["`batchsize`", "`50`", "`mongodb.batchsize`", "`60`"] {
        assert!(text.contains(part), "{text}");
    }
    let warning = only_warning(&["batchsize=5", "updateproportion=0", "insertproportion=0.05"]);
    assert!(warning.contains("`batchsize`") && warning.contains("load phase"), "{warning}");
}

#[test]
fn binding_properties_become_connection_string_options() {
    let uri = |words: &[&str]| run(words).uri;
    assert_eq!(
        uri(&["mongodb.url=mongodb://h", "mongodb.writeConcern=majority"]),
        "mongodb://h/?w=majority"
    );
    assert_eq!(
        uri(&["mongodb.url=mongodb://h/?", "mongodb.writeConcern=journaled"]),
        "mongodb://h/?journal=true"
    );
    assert_eq!(
        uri(&["mongodb.url=mongodb://a,b/db?w=1", "mongodb.readPreference=secondary_preferred"]),
        "mongodb://a,b/db?w=1&readPreference=secondaryPreferred"
    );
    assert_eq!(
        uri(&["mongodb.maxconnections=7"]),
        "mongodb://localhost:27017/ycsb?w=1&maxPoolSize=7"
    );
}

#[test]
fn binding_words_are_read_in_any_case() {
    let uri = |word: &str| run(&["mongodb.url=mongodb://h", word]).uri;
    assert_eq!(uri("mongodb.writeConcern=MAJORITY"), "mongodb://h/?w=majority");
    assert_eq!(
        uri("mongodb.readPreference=Secondary_Preferred"),
        "mongodb://h/?readPreference=secondaryPreferred"
    );
    assert_eq!(run(&["readproportion=0.95d"]).plan.operations.read, 0.95);
}

#[test]
fn database_may_be_a_property() {
    let uri = |words: &[&str]| run(words).uri;
    assert_eq!(uri(&["mongodb.database=mine"]), "mongodb://localhost:27017/mine?w=1");
    let server = "mongodb.url=mongodb://h:1/?w=1";
    assert_eq!(uri(&[server, "mongodb.database=mine"]), "mongodb://h:1/mine?w=1");
    let url = "mongodb.url=mongodb://h/own";
    let warning = only_warning(&[url, "mongodb.database=mine"]);
    for part in ["`mongodb.database`", "`mongodb.url`"] {
        assert!(warning.contains(part), "{warning}");
    }
}

#[test]
fn refused_options_have_their_given_name_and_a_valid_hint() {
    let problems = |words: &[&str]| run(words).unsupported_by_wire;
    let given = problems(&["mongodb.readPreference=secondary"]);
    assert!(given[0].message.starts_with("`mongodb.readPreference`"));
    let hint = given[0].hint.as_deref().unwrap();
    assert!(hint.contains("`-p dyno.backend=driver`"), "{hint}");
    let given = problems(&["mongodb.url=mongodb://h", "mongodb.writeConcern=unacknowledged"]);
    let hint = given[0].hint.as_deref().unwrap_or_default();
    assert!(hint.contains("`acknowledged`"), "{hint}");
    for name in crate::uri::option_names() {
        for value in ["1", "true", "false", "secondary", "stream", "x"] {
            let url = format!("mongodb://h/?{name}={value}");
            let properties = with_counts(&[&format!("mongodb.url={url}")]);
            let Ok(plan) = resolve(&properties, Phase::Run, false) else {
                continue;
            };
            for problem in plan.unsupported_by_wire {
                let hint = problem.hint.unwrap_or_default();
                assert!(!hint.contains("`--"), "{name}: {hint}");
            }
        }
    }
}

#[test]
fn connection_string_options_override_properties() {
    for (url, word) in [
        ("mongodb.url=mongodb://h/?W=1", "mongodb.writeConcern=majority"),
        ("mongodb.url=mongodb://h/?j=false", "mongodb.writeConcern=journaled"),
        ("mongodb.url=mongodb://h/?maxPoolSize=3", "mongodb.maxconnections=7"),
    ] {
        let resolved = run(&[url, word]);
        assert_eq!(resolved.uri, url.strip_prefix("mongodb.url=").unwrap());
        let (property, _) = word.split_once('=').unwrap();
        for part in [property, "mongodb.url"] {
            let part = format!("`{part}`");
            assert!(resolved.warnings[0].contains(&part), "{:?}", resolved.warnings);
        }
    }
    let named =
        run(&["mongodb.url=mongodb://u:p@h", "mongodb.username=other", "mongodb.password=x"]);
    assert_eq!(named.uri, "mongodb://u:p@h");
    assert_eq!(named.warnings.len(), 1);
}

#[test]
fn database_of_the_connection_string_is_used_unless_admin() {
    let database = |url: &str| run(&[&format!("mongodb.url={url}")]).plan.data.database;
    assert_eq!(database("mongodb://h/mine"), "mine");
    assert_eq!(database("mongodb://h/admin"), "ycsb");
    assert_eq!(database("mongodb://h"), "ycsb");
}

#[test]
fn credentials_are_only_in_the_connection_string() {
    let resolved =
        run(&["mongodb.url=mongodb://h/db", "mongodb.username=a@b", "mongodb.password=p/secret"]);
    assert_eq!(resolved.uri, "mongodb://a%40b:p%2Fsecret@h/db");
    let shown = format!("{:?} {:?} {:?}", resolved.plan, resolved.client, resolved.warnings);
    assert!(!shown.contains("secret"), "{shown}");
    for words in [
        &["mongodb.url=mongodb://u:se/cret@h"][..],
        &["mongodb.url=mongodb://u:secret@h/?nonsense=1"],
        &["mongodb.url=http://u:secret@h"],
        &["mongodb.url=mongodb://u:secret@h|mongodb://u:secret@i"],
        &["mongodb.password=secret"],
        &["mongodb.url=mongodb://h:bad", "mongodb.username=u", "mongodb.password=secret"],
    ] {
        let text = problem(words);
        assert!(!text.contains("cret"), "{text}");
    }
}

#[test]
fn dyno_server_property_starts_a_server() {
    let plan =
        run(&["dyno.server=embedded", "dyno.backend=driver", "dyno.seed=7", "dyno.timeout=2s"])
            .plan;
    assert_eq!((plan.server.kind, plan.server.uri), (ServerKind::Embedded, None));
    assert_eq!((plan.client.backend, plan.client.seed), (Backend::Driver, 7));
    assert_eq!(plan.client.timeout, Span::from_secs(2));
}

fn applied(plan: &Plan, words: &[&str]) -> (Plan, Applied) {
    let mut plan = plan.clone();
    let applied = apply(&mut plan, &given(words), false)
        .unwrap_or_else(|problems| panic!("{words:?}: {problems:?}"));
    (plan, applied)
}

#[test]
fn properties_over_a_plan_change_only_what_they_name() {
    let built_in = crate::builtin::find("e").expect("it is built in");
    let (plan, applied) = applied(&built_in, &[]);
    assert_eq!(plan, built_in);
    assert!(applied.uri.is_none() && applied.warnings.is_empty());

    let (plan, _) =
        self::applied(&built_in, &["fieldlength=7", "maxscanlength=5", "operationcount=9"]);
    let mut expected = built_in.clone();
    expected.data.field_length = FieldLength::Constant { bytes: 7 };
    expected.access.max_scan_length = 5;
    expected.phases.operations = Some(9);
    expected.phases.duration = None;
    assert_eq!(plan, expected);
}

#[test]
fn properties_without_effect_on_a_plan_give_warnings() {
    let built_in = crate::builtin::find("a").expect("it is built in");
    let (_, applied) =
        applied(&built_in, &["status=true", "exporter=x.JSONArrayMeasurementsExporter"]);
    assert_eq!(applied.warnings.len(), 2, "{:?}", applied.warnings);
    assert!(applied.warnings.iter().all(|warning| warning.contains("`dyno ycsb`")));
    let mut plan = built_in.clone();
    let problems =
        apply(&mut plan, &given(&["mongodb.maxconnections=5"]), false).err().expect("no URL");
    for part in ["`mongodb.maxconnections`", "`mongodb.url`"] {
        assert!(problems[0].message.contains(part), "{problems:?}");
    }
}

#[test]
fn connection_string_aims_a_plan_at_a_running_server() {
    let built_in = crate::builtin::find("a").expect("it is built in");
    let (plan, applied) = applied(&built_in, &["mongodb.url=mongodb://u:p@h/mine"]);
    assert_eq!(applied.uri.as_deref(), Some("mongodb://u:p@h/mine"));
    assert_eq!(plan.server.kind, ServerKind::Uri);
    assert_eq!(plan.server.uri.as_deref(), Some("mongodb://h:27017/mine"));
    assert_eq!(plan.data.database, "mine");
}

proptest! {
    #[test]
    fn any_value_of_any_property_is_honoured_or_refused(
        index in 0..PROPERTIES.len(),
        value in "[-+a-zA-Z0-9.,:/@?&= ]{0,12}",
        is_run: bool,
    ) {
        let name = PROPERTIES[index].name.replace('*', "x");
        let mut properties = with_counts(&[]);
        properties.set(&name, &value);
        let phase = if is_run { Phase::Run } else { Phase::Load };
        if let Ok(resolved) = resolve(&properties, phase, false) {
            prop_assert_eq!(validate(&resolved.plan), vec![]);
        }
    }
}
