//! Converts given properties to values of a plan. A property that is not given leaves the plan
//! unchanged, so the same code serves YCSB's defaults, built-in plans and plan files.

use super::reader::Reader;
use super::{Phase, field_length};
use crate::model::{
    Backend, KeyDistribution, KeyOrder, OperationWeights, Plan, ScanLength, Schedule, ServerKind,
    ServerPlan, set,
};
use crate::units::Span;

/// Applies all properties that set the plan, except the connection string.
pub(super) fn apply(plan: &mut Plan, reader: &mut Reader<'_>) {
    apply_server(plan, reader);
    apply_data(plan, reader);
    apply_operations(&mut plan.operations, reader);
    plan.keys = keys(&plan.keys, reader);
    apply_access(plan, reader);
    apply_client(plan, reader);
    apply_phases(plan, reader);
    apply_schedule(plan, reader);
}

fn apply_server(plan: &mut Plan, reader: &mut Reader<'_>) {
    let kinds = [
        ("uri", ServerKind::Uri),
        ("auto", ServerKind::Auto),
        ("embedded", ServerKind::Embedded),
        ("mongod", ServerKind::Mongod),
    ];
    if let Some(kind) = reader.choice("dyno.server", &kinds)
        && kind != plan.server.kind
    {
        plan.server = ServerPlan { kind, ..Default::default() };
    }
}

fn apply_data(plan: &mut Plan, reader: &mut Reader<'_>) {
    let data = &mut plan.data;
    set(&mut data.collection, reader.text("table").map(Into::into));
    set(&mut data.records, reader.count("recordcount"));
    set(&mut data.insert_start, reader.count("insertstart"));
    if let Some(count) = reader.count("insertcount") {
        data.insert_count = Some(count);
    }
    set(&mut data.field_count, reader.count("fieldcount"));
    set(&mut data.field_name_prefix, reader.text("fieldnameprefix").map(Into::into));
    data.field_length = field_length::read(&data.field_length, reader);
    set(&mut data.integrity, reader.boolean("dataintegrity"));
    // YCSB interprets every word except `hashed` as `ordered`, even misspelt ones.
    let orders = [("hashed", KeyOrder::Hashed), ("ordered", KeyOrder::Ordered)];
    set(&mut data.key_order, reader.choice("insertorder", &orders));
    set(&mut data.zero_padding, reader.count("zeropadding"));
    // A value of 4 means that a quarter of the bytes is random.
    let ratio = reader.number("compressibility", 1.0, 100.0).map(|factor| 1.0 - 1.0 / factor);
    set(&mut data.compressible_ratio, ratio);
}

fn apply_operations(weights: &mut OperationWeights, reader: &mut Reader<'_>) {
    let mut is_given = false;
    for (name, weight) in [
        ("readproportion", &mut weights.read),
        ("updateproportion", &mut weights.update),
        ("insertproportion", &mut weights.insert),
        ("scanproportion", &mut weights.scan),
        ("readmodifywriteproportion", &mut weights.read_modify_write),
    ] {
        is_given |= reader.is_given(name);
        set(weight, reader.number(name, 0.0, f64::MAX));
    }
    let sum = weights.read
        + weights.update
        + weights.insert
        + weights.scan
        + weights.read_modify_write
        + weights.delete;
    if is_given && (sum - 1.0).abs() > 1e-6 {
        let shown = (sum * 1e6).round() / 1e6;
        reader.warnings.push(format!(
            "the proportions add up to {shown}: they are weights, and those that are not given keep \
             their defaults (`readproportion` 0.95 and `updateproportion` 0.05 in YCSB)"
        ));
    }
}

fn keys(current: &KeyDistribution, reader: &mut Reader<'_>) -> KeyDistribution {
    let hotspot = KeyDistribution::Hotspot { hot_data_ratio: 0.2, hot_operation_ratio: 0.8 };
    let exponential =
        KeyDistribution::Exponential { percentile: 95.0, data_ratio: 0.857_142_857_1 };
    let chosen = reader.choice(
        "requestdistribution",
        &[
            ("uniform", KeyDistribution::Uniform {}),
            ("zipfian", KeyDistribution::ScrambledZipfian {}),
            ("latest", KeyDistribution::Latest {}),
            ("hotspot", hotspot),
            ("sequential", KeyDistribution::Sequential {}),
            ("exponential", exponential),
        ],
    );
    let mut keys = chosen.unwrap_or_else(|| current.clone());
    let hot_data = reader.number("hotspotdatafraction", 0.0, 1.0);
    let hot_operations = reader.number("hotspotopnfraction", 0.0, 1.0);
    let new_percentile = reader.number("exponential.percentile", 0.0, 100.0);
    let fraction = reader.number("exponential.frac", 0.0, f64::MAX);
    if let KeyDistribution::Hotspot { hot_data_ratio, hot_operation_ratio } = &mut keys {
        set(hot_data_ratio, hot_data);
        set(hot_operation_ratio, hot_operations);
    } else {
        let reason = "`requestdistribution` is not `hotspot`";
        reader.warn_unused("hotspotdatafraction", reason);
        reader.warn_unused("hotspotopnfraction", reason);
    }
    if let KeyDistribution::Exponential { percentile, data_ratio } = &mut keys {
        set(percentile, new_percentile);
        set(data_ratio, fraction);
    } else {
        let reason = "`requestdistribution` is not `exponential`";
        reader.warn_unused("exponential.percentile", reason);
        reader.warn_unused("exponential.frac", reason);
    }
    keys
}

fn apply_access(plan: &mut Plan, reader: &mut Reader<'_>) {
    let access = &mut plan.access;
    set(&mut access.read_all_fields, reader.boolean("readallfields"));
    set(&mut access.read_all_fields_by_name, reader.boolean("readallfieldsbyname"));
    if !access.read_all_fields && access.read_all_fields_by_name {
        // YCSB reads the second one only if the first is true.
        reader.warn_unused("readallfieldsbyname", "`readallfields` is `false`");
        access.read_all_fields_by_name = false;
    }
    set(&mut access.write_all_fields, reader.boolean("writeallfields"));
    set(&mut access.min_scan_length, reader.count("minscanlength"));
    set(&mut access.max_scan_length, reader.count("maxscanlength"));
    let lengths = [("uniform", ScanLength::Uniform), ("zipfian", ScanLength::Zipfian)];
    set(&mut access.scan_length_distribution, reader.choice("scanlengthdistribution", &lengths));
    set(&mut access.upsert, reader.boolean("mongodb.upsert"));
}

fn apply_client(plan: &mut Plan, reader: &mut Reader<'_>) {
    let client = &mut plan.client;
    set(&mut client.clients, reader.count("threadcount"));
    set(&mut client.batch, batch(reader));
    let backends = [("wire", Backend::Wire), ("driver", Backend::Driver)];
    set(&mut client.backend, reader.choice("dyno.backend", &backends));
    set(&mut client.seed, reader.count("dyno.seed"));
    set(&mut client.timeout, reader.parsed::<Span>("dyno.timeout", "a time span such as `10s`"));
}

/// The binding reads `batchsize`, its manual says `mongodb.batchsize`: both are accepted here.
fn batch(reader: &mut Reader<'_>) -> Option<u32> {
    let read = reader.count::<u32>("batchsize");
    let documented = reader.count::<u32>("mongodb.batchsize");
    if let (Some(read), Some(documented)) = (read, documented)
        && read != documented
    {
        let message = format!("`mongodb.batchsize` is `{documented}` and `batchsize` is `{read}`");
        reader.problem("mongodb.batchsize", message, "both mean the same; use only one of them");
    } else if read.is_none() && documented.is_some_and(|batch| batch != 1) {
        let warning = "`mongodb.batchsize` is supported here; YCSB's `mongodb` binding ignores it \
            and reads `batchsize`";
        reader.warnings.push(warning.into());
    }
    read.or(documented)
}

/// A single count ends the phase by count, a single time by time, both by whichever comes first; 0
/// means no limit.
fn apply_phases(plan: &mut Plan, reader: &mut Reader<'_>) {
    let operations = reader.count::<u64>("operationcount");
    let seconds = reader.count::<u64>("maxexecutiontime");
    if operations.is_some() || seconds.is_some() {
        plan.phases.operations = operations.filter(|count| *count > 0);
        plan.phases.duration = seconds.filter(|seconds| *seconds > 0).map(Span::from_secs);
    }
}

fn apply_schedule(plan: &mut Plan, reader: &mut Reader<'_>) {
    let Some(rate_per_s) = reader.number("target", 0.0, f64::MAX) else {
        return;
    };
    if rate_per_s == 0.0 {
        plan.schedule = Schedule::Closed {};
        return;
    }
    let max_start_delay = Schedule::DEFAULT_MAX_START_DELAY;
    plan.schedule = Schedule::Constant { rate_per_s, max_start_delay };
    reader.warnings.push(format!(
        "`target` is an open-loop schedule of {rate_per_s} operations per second over all threads: an \
         operation that cannot start within {max_start_delay} is dropped and counted, where YCSB \
         catches up without limit"
    ));
}

/// Sets values that depend on the phase: its number of operations, and the number of clients with
/// work to do.
pub(super) fn finish_phase(plan: &mut Plan, reader: &mut Reader<'_>, phase: Phase) {
    check_phase(reader, phase);
    let operations = match phase {
        Phase::Run => plan.phases.operations,
        Phase::Load => Some(load_count(plan, reader)),
    };
    plan.phases.operations = operations;
    if phase == Phase::Run && plan.client.batch > 1 && plan.operations.insert > 0.0 {
        let warning = "`batchsize` applies only to the load phase: in the run phase every insert \
            is sent separately";
        reader.warnings.push(warning.into());
    }
    let Some(operations) = operations else { return };
    let useful = u32::try_from(operations).unwrap_or(u32::MAX).max(1);
    if plan.client.clients > useful {
        reader.warnings.push(format!(
            "`threadcount` is reduced from {} to {useful}, the number of operations",
            plan.client.clients
        ));
        plan.client.clients = useful;
    }
}

fn check_phase(reader: &mut Reader<'_>, phase: Phase) {
    let Some(is_run) = reader.boolean("dotransactions") else {
        return;
    };
    if is_run != (phase == Phase::Run) {
        let message = format!("`dotransactions` is `{is_run}`, but the command is `{phase}`");
        reader.problem("dotransactions", message, "remove it: the command chooses the phase");
    }
}

/// Number of documents that this client loads.
fn load_count(plan: &Plan, reader: &mut Reader<'_>) -> u64 {
    let data = &plan.data;
    let rest = data.records.saturating_sub(data.insert_start);
    if data.insert_count.is_none() && data.insert_start > 0 {
        reader.warnings.push(format!(
            "without `insertcount`, {rest} documents are loaded, from `insertstart` to the end of \
             `recordcount`; YCSB would load `recordcount` documents and end beyond it"
        ));
    }
    data.insert_count.unwrap_or(rest)
}
