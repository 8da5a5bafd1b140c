//! Reads recorded plans field by field: `record` does not know `plan`, so only this test uses both.

use dyno_plan::index_build::{IndexBuildPlan, Layout, Remedy};
use dyno_plan::model::{FieldLength, KeyDistribution, KeyOrder, Schedule, ServerKind, ThinkTime};
use dyno_plan::units::Span;
use dyno_plan::{Plan, builtin};
use dyno_record::plan::RecordedPlan;
use serde_json::{Value, json};

/// The text form of a value in a plan.
fn word(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).unwrap().as_str().map(str::to_owned)
}

/// Reads the record of a plan, and compares every recorded field with the plan.
fn check(plan: &Plan) {
    let written = serde_json::to_value(plan).unwrap();
    let read = RecordedPlan::new(&written);
    let name = &plan.name;
    let description = (!plan.description.is_empty()).then(|| plan.description.clone());
    assert_eq!(read.description, description, "{name}");

    assert_eq!(read.server.kind, word(&plan.server.kind));
    assert_eq!(read.server.pairs, Some(u64::from(plan.server.pairs)));
    assert_eq!(read.server.durable_writes, Some(plan.server.durable_writes));
    assert_eq!(read.server.block_compressor, plan.server.block_compressor);
    assert_eq!(read.server.cache, plan.server.cache.as_ref().and_then(word));

    assert_eq!(read.data.records, Some(plan.data.records));
    assert_eq!(read.data.field_count, Some(u64::from(plan.data.field_count)));
    assert_eq!(read.data.key_order, word(&plan.data.key_order));
    assert_eq!(read.data.integrity, Some(plan.data.integrity));
    let length = read.data.field_length.as_ref().unwrap();
    let sizes = [length.bytes, length.min_bytes, length.max_bytes].map(|size| size.unwrap_or(0));
    let (kind, expected) = match plan.data.field_length {
        FieldLength::Constant { bytes } => ("constant", [bytes, 0, 0]),
        FieldLength::Uniform { min_bytes, max_bytes } => ("uniform", [0, min_bytes, max_bytes]),
        FieldLength::Zipfian { min_bytes, max_bytes } => ("zipfian", [0, min_bytes, max_bytes]),
        FieldLength::Histogram { .. } => ("histogram", [0, 0, 0]),
    };
    assert_eq!(length.distribution.as_deref(), Some(kind));
    assert_eq!(sizes, expected.map(u64::from));

    let operations = serde_json::to_value(&read.operations).unwrap();
    assert_eq!(operations, serde_json::to_value(&plan.operations).unwrap());

    let keys = read.keys.as_ref().unwrap();
    let mut all = keys.parameters.clone();
    all.insert("distribution".into(), json!(keys.distribution));
    let back: KeyDistribution = serde_json::from_value(Value::Object(all)).unwrap();
    assert_eq!(back, plan.keys, "{name}");

    assert_eq!(read.client.clients, Some(u64::from(plan.client.clients)));
    assert_eq!(read.client.threads, Some(u64::from(plan.client.threads)));
    assert_eq!(read.client.backend, word(&plan.client.backend));
    assert_eq!(read.client.seed, Some(plan.client.seed));
    assert_eq!(read.client.batch, Some(u64::from(plan.client.batch)));
    let think_time = plan.client.think_time.as_ref().and_then(word);
    assert_eq!(read.client.think_time, think_time, "{name}");
    let distribution = plan.client.think_time_distribution.as_ref().and_then(word);
    assert_eq!(read.client.think_time_distribution, distribution, "{name}");

    let is_closed = matches!(plan.schedule, Schedule::Closed {});
    let is_poisson = matches!(plan.schedule, Schedule::Poisson { .. });
    let is_throttled = matches!(plan.schedule, Schedule::Throttled { .. });
    assert_eq!(read.schedule.rate_per_s, plan.schedule.rate_per_s());
    assert_eq!(read.schedule.is_closed(), is_closed, "{name}");
    assert_eq!(read.schedule.is_poisson(), is_poisson, "{name}");
    assert_eq!(read.schedule.is_throttled(), is_throttled, "{name}");
    assert!(read.schedule.kind.is_some());

    assert_eq!(read.phases.warmup, word(&plan.phases.warmup));
    assert_eq!(read.phases.duration, plan.phases.duration.as_ref().and_then(word));
    assert_eq!(read.phases.operations, plan.phases.operations);

    let build = plan.index_build.as_ref();
    let found = read.index_build.as_ref();
    assert_eq!(found.is_some(), build.is_some());
    if let Some((found, build)) = found.zip(build) {
        assert_eq!(found.layout, word(&build.layout));
        assert_eq!(found.keys.as_deref(), Some(build.keys.as_str()));
        assert_eq!(found.remedy, build.remedy.as_ref().and_then(word));
    }
}

/// Checks a default plan after this change.
fn changed(change: impl FnOnce(&mut Plan)) {
    let mut plan = builtin::find("a").unwrap();
    change(&mut plan);
    check(&plan);
}

#[test]
fn built_in_plans_are_read_from_their_records() {
    let runs = builtin::names().map(|name| builtin::find(name).unwrap());
    let builds =
        builtin::INDEX_BUILDS.names().map(|name| builtin::INDEX_BUILDS.find(name).unwrap());
    let tails = builtin::TAILS.names().map(|name| builtin::TAILS.find(name).unwrap());
    let all: Vec<Plan> = runs.chain(builds).chain(tails).collect();
    assert!(all.len() > 10, "{}", all.len());
    all.iter().for_each(check);
}

#[test]
fn each_kind_of_schedule_keys_and_lengths_is_read_from_a_record() {
    let max_start_delay = Span::from_secs(10);
    for schedule in [
        Schedule::Closed {},
        Schedule::Constant { rate_per_s: 1500.5, max_start_delay },
        Schedule::Poisson { rate_per_s: 500.0, max_start_delay },
        Schedule::Throttled { rate_per_s: 250.5 },
    ] {
        changed(|plan| plan.schedule = schedule);
    }
    changed(|plan| {
        plan.client.think_time = Some(Span::from_secs(2));
        plan.client.think_time_distribution = Some(ThinkTime::Exponential);
    });
    for keys in [
        KeyDistribution::Uniform {},
        KeyDistribution::ScrambledZipfian {},
        KeyDistribution::Zipfian { exponent: 1.1 },
        KeyDistribution::Latest {},
        KeyDistribution::Hotspot { hot_data_ratio: 0.2, hot_operation_ratio: 0.8 },
        KeyDistribution::Sequential {},
        KeyDistribution::Exponential { percentile: 95.0, data_ratio: 0.8 },
    ] {
        changed(|plan| plan.keys = keys);
    }
    for length in [
        FieldLength::Constant { bytes: 7 },
        FieldLength::Uniform { min_bytes: 1, max_bytes: 9 },
        FieldLength::Zipfian { min_bytes: 2, max_bytes: 8 },
        FieldLength::Histogram { block_bytes: 16, weights: vec![1, 2] },
    ] {
        changed(|plan| plan.data.field_length = length);
    }
}

#[test]
fn each_setting_that_results_need_is_read_from_a_record() {
    for kind in [ServerKind::Auto, ServerKind::Embedded, ServerKind::Mongod, ServerKind::Uri] {
        changed(|plan| plan.server.kind = kind);
    }
    changed(|plan| {
        plan.server.pairs = 3;
        plan.server.durable_writes = true;
        plan.server.cache = serde_json::from_value(json!("512 MiB")).unwrap();
        plan.server.block_compressor = Some("zstd".into());
        plan.data.key_order = KeyOrder::Ordered;
        plan.data.integrity = true;
        plan.phases.operations = Some(1000);
        plan.phases.duration = None;
        plan.client.seed = u64::MAX;
    });
    for layout in [
        Layout::Existing,
        Layout::Ordered,
        Layout::Shuffled,
        Layout::Concurrent,
        Layout::Churned,
        Layout::Migrated,
    ] {
        for remedy in [
            None,
            Some(Remedy::Rewrite),
            Some(Remedy::NaturalCopy),
            Some(Remedy::Dump),
            Some(Remedy::Compact),
        ] {
            let build = IndexBuildPlan { layout, remedy, ..IndexBuildPlan::default() };
            changed(|plan| plan.index_build = Some(build));
        }
    }
}
