//! Facts about a run in words: workload, schedule, server. Unreadable values are shown as unknown and never left out.

use crate::caveat::{CaveatBook, Topic};
use crate::machine;
use crate::page::Fact;
use dyno_record::document::variant_name;
use dyno_record::model::{DroppedCollection, RunDocument, ServerRecord, TraceRecord, milliseconds};
use dyno_record::plan::{Collection, FieldLength, RecordedPlan};
use dyno_record::quantity::Quantity;
use dyno_record::server::ExperimentServer;
use serde_json::Value;

/// The machine dashboard: its `uid` in `deploy/grafana/dashboards/node.json`. `dyno` reports no metrics of index builds and
/// messages to Prometheus.
pub(crate) const DASHBOARD_OF_MACHINES: &str = "mongodyno-node";

/// The run dashboard: its `uid` in `deploy/grafana/dashboards/run.json`.
pub(crate) const DASHBOARD: &str = "mongodyno-run";

/// Shown for an unreadable fact.
pub(crate) const UNKNOWN: &str = "unknown";

/// A number with separators: `100,000`.
pub(crate) fn count(value: u64) -> String {
    Quantity::count(value).to_string()
}

pub(crate) fn or_unknown<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| UNKNOWN.into(), |value| value.to_string())
}

/// The server of an experiment other than a run.
pub(crate) fn server_of(server: &ExperimentServer) -> String {
    let version = server.version.as_deref();
    let version = version.map_or(String::new(), |version| format!(" {version}"));
    let origin = if server.started { "started for this" } else { "was running" };
    format!("{}{version} at {}, {origin}", server.product, server.address)
}

/// The server's settings except those that are shown separately.
pub(crate) fn settings_of(server: &ExperimentServer, shown_apart: &[&str]) -> String {
    let others = server.settings.iter();
    let others = others.filter(|(name, _)| !shown_apart.contains(&name.as_str()));
    let others: Vec<String> = others.map(|(name, value)| format!("{name} {value}")).collect();
    others.join(", ")
}

/// `50 % read, 50 % update`: the mix of the plan, most frequent first. Empty if the plan has none.
pub(crate) fn mix(plan: &RecordedPlan) -> String {
    let mut weights: Vec<(&str, f64)> = plan
        .operations
        .iter()
        .map(|(name, weight)| (name.as_str(), *weight))
        .filter(|(_, weight)| *weight > 0.0)
        .collect();
    let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
    weights.sort_by(|a, b| b.1.total_cmp(&a.1));
    let share = |(name, weight): &(&str, f64)| {
        let percent = 100.0 * weight / sum;
        let digits = (percent * 1000.0).round() / 1000.0;
        format!("{digits} % {}", operation_label(name))
    };
    weights.iter().map(share).collect::<Vec<_>>().join(", ")
}

/// The name of an operation in words: `read_modify_write` is `read-modify-write`.
pub(crate) fn operation_label(name: &str) -> String {
    name.replace('_', "-")
}

/// Labels of operations that also count as others, such as `read-modify-write` and `one read and one update`.
pub(crate) fn wholes<'a>(
    document: &'a RunDocument,
    names: impl Iterator<Item = &'a String>,
) -> impl Iterator<Item = (String, String)> {
    let known = names.filter_map(|name| document.operations.find(name));
    known.filter(|one| !one.parts.is_empty()).map(|one| {
        let parts: Vec<String> =
            one.parts.iter().map(|part| format!("one {}", operation_label(part))).collect();
        (operation_label(&one.name), parts.join(" and "))
    })
}

/// `closed loop`, `closed loop, exponential think time 5ms` or `constant 20,000/s`; empty if the plan has no schedule.
pub(crate) fn schedule(plan: &RecordedPlan) -> String {
    match (plan.schedule_kind(), plan.rate_per_s()) {
        (Some(kind), Some(rate)) => format!("{} {}", kind.as_str(), Quantity::per_second(rate)),
        (Some(_), None) => format!("closed loop{}", think_time(plan)),
        (None, _) => String::new(),
    }
}

fn think_time(plan: &RecordedPlan) -> String {
    let Some((client, mean)) = plan.client.as_ref().and_then(|one| Some((one, one.think_time?)))
    else {
        return String::new();
    };
    let distribution = variant_name(&client.think_time_distribution.unwrap_or_default());
    format!(", {distribution} think time {mean}")
}

/// `32 connections on 1 thread`; empty if the plan does not say.
fn connections(document: &RunDocument, plan: &RecordedPlan) -> String {
    // The plan of a fleet does not have its connections.
    let fleet = document.fleet.as_ref();
    let of_fleet = fleet.map(|fleet| {
        let threads: u64 = fleet.agents.iter().map(|agent| agent.threads).sum();
        (Some(fleet.clients), Some(threads).filter(|threads| *threads > 0))
    });
    let client = plan.client.as_ref();
    let of_client = client.map(|one| (Some(one.clients.into()), Some(one.threads.into())));
    let (clients, threads) = of_fleet.or(of_client).unwrap_or_default();
    match (clients, threads) {
        (Some(clients), Some(threads)) => {
            let threads = Quantity::counted(threads, "thread");
            format!("{} on {threads}", Quantity::counted(clients, "connection"))
        }
        (Some(clients), None) => Quantity::counted(clients, "connection"),
        _ => String::new(),
    }
}

/// `100,000 documents of 10 fields, 100 bytes each`.
pub(crate) fn documents(plan: &RecordedPlan) -> String {
    let Some(data) = &plan.data else {
        return String::new();
    };
    if !data.collections.is_empty() {
        let of_one = |one: &Collection| {
            format!("{} documents in `{}`", count(one.records.unwrap_or(0)), one.name)
        };
        return data.collections.iter().map(of_one).collect::<Vec<_>>().join(", ");
    }
    let records = Quantity::counted(data.records, "document");
    let fields = Quantity::counted(data.field_count.into(), "field");
    let between = |kind, min: u32, max: u32| {
        format!("{kind} {}–{} bytes each", count(min.into()), count(max.into()))
    };
    let length = match data.field_length {
        FieldLength::Constant { bytes } => format!("{} bytes each", count(bytes.into())),
        FieldLength::Uniform { min_bytes, max_bytes } => between("uniform", min_bytes, max_bytes),
        FieldLength::Zipfian { min_bytes, max_bytes } => between("zipfian", min_bytes, max_bytes),
        FieldLength::Histogram { .. } => "lengths from a histogram".to_owned(),
    };
    let order = variant_name(&data.key_order);
    format!("{records} of {fields}, {length}, keys {order}")
}

/// `zipfian (exponent 1.1)`: the distribution with its parameters.
pub(crate) fn keys(plan: &RecordedPlan) -> String {
    let Some(keys) = &plan.keys else {
        return String::new();
    };
    let written = serde_json::to_value(keys).unwrap_or_default();
    let mut name = UNKNOWN.to_owned();
    let mut parameters = Vec::new();
    for (key, value) in written.as_object().into_iter().flatten() {
        match value {
            Value::String(distribution) => name = distribution.replace('-', " "),
            number => parameters.push(format!("{} {number}", key.replace('_', " "))),
        }
    }
    if parameters.is_empty() { name } else { format!("{name} ({})", parameters.join(", ")) }
}

/// Mix, data, keys and load. Facts that the plan does not contain are left out, because plans are complete by construction.
pub(crate) fn workload(document: &RunDocument, book: &CaveatBook) -> Vec<Fact> {
    let plan = &document.recorded_plan();
    let client = plan.client.as_ref();
    let backend = client.map(|client| format!("backend {}", client.backend.as_str()));
    let load = [schedule(plan), connections(document, plan), backend.unwrap_or_default()];
    let seed = plan.seed().map(|seed| seed.to_string());
    let known = [
        Fact::new("Mix", mix(plan)),
        Fact::new("Data", documents(plan)).marked(&book.marks(Topic::Data, None)),
        Fact::new("Secondary indexes", secondary_indexes(document)),
        Fact::new("Key distribution", keys(plan)),
        Fact::new("Load", joined(load, ", ")),
        Fact::new("Seed", seed.unwrap_or_default()),
    ];
    known
        .into_iter()
        .chain(document.dropped.iter().map(dropped))
        .chain(document.traces.iter().map(trace))
        .filter(|fact| !fact.value.is_empty())
        .collect()
}

fn secondary_indexes(document: &RunDocument) -> String {
    let Some(indexes) = &document.secondary_indexes else {
        return String::new();
    };
    let before = indexes.each.iter().filter(|one| one.before_load);
    let before_s = before.map(|one| one.build_s).reduce(|sum, build_s| sum + build_s);
    let created = |build_s: Option<f64>, when: &str| {
        build_s.map(|build_s| format!("created in {} {when} the load", Quantity::seconds(build_s)))
    };
    let times = [created(before_s, "before"), created(indexes.build_s, "after")];
    let times: Vec<String> = times.into_iter().flatten().collect();
    let built = if times.is_empty() { "there already".to_owned() } else { times.join(", ") };
    let keys: Vec<String> = indexes.keys.iter().map(|key| format!("`{key}`")).collect();
    format!("{}; {built}", keys.join(" "))
}

/// The run dashboard in the plan's Grafana, from the start of the run to the end of its last phase.
pub(crate) fn dashboard(document: &RunDocument) -> Option<String> {
    let from_ms = document.started_ms()?;
    let phase = document.phases.last()?;
    let end_ms = (phase.start_s + phase.duration_s) * 1e3;
    let to_ms = from_ms + end_ms.ceil() as i64;
    dashboard_at(DASHBOARD, &document.recorded_plan(), (from_ms, to_ms))
}

/// A dashboard in the plan's Grafana, from the start of an experiment to its end.
pub(crate) fn dashboard_between(
    dashboard: &str,
    plan: &RecordedPlan,
    (started_at, ended_at): (&str, Option<&str>),
) -> Option<String> {
    let between = milliseconds(started_at).zip(milliseconds(ended_at?))?;
    dashboard_at(dashboard, plan, between)
}

fn dashboard_at(
    dashboard: &str,
    plan: &RecordedPlan,
    (from_ms, to_ms): (i64, i64),
) -> Option<String> {
    let url = &plan.observe.as_ref()?.grafana.as_ref()?.url;
    // A record may be untrusted, and its link must not run a script.
    let is_page = url.starts_with("http://") || url.starts_with("https://");
    let url = url.trim_end_matches('/');
    is_page.then(|| format!("{url}/d/{dashboard}?from={from_ms}&to={to_ms}"))
}

/// The content of a collection that was dropped before the run.
fn dropped(dropped: &DroppedCollection) -> Fact {
    let foreign = match &dropped.foreign_key {
        Some(key) => format!(", including documents of others, such as {key}"),
        None if dropped.all_keys_checked || dropped.documents <= 102 => String::new(),
        None => " (at most 102 checked)".to_owned(),
    };
    let value = format!("{}: {} documents{foreign}", dropped.namespace, count(dropped.documents));
    Fact::new("Dropped before the run", value)
}

/// The time range of a trace and its directory.
fn trace(trace: &TraceRecord) -> Fact {
    let label = format!("Trace {}", trace.name);
    let window = match (trace.start_s, trace.end_s) {
        (Some(start), Some(end)) => format!("{start:.1} s to {end:.1} s of the run"),
        (Some(start), None) => format!("from {start:.1} s of the run"),
        (None, _) => "never started".to_owned(),
    };
    let outcome = &trace.outcome;
    Fact::new(label, format!("{window}, {outcome}; in {}/", trace.directory))
}

/// The measured server.
pub(crate) fn server(server: &ServerRecord, book: &CaveatBook) -> Vec<Fact> {
    let size = |bytes: Option<u64>| or_unknown(bytes.map(Quantity::bytes));
    let marks = |topic| book.marks(topic, None);
    let (data, settings) = (marks(Topic::Data), marks(Topic::ServerSettings));
    let place = if server.local { "on the client's machine" } else { "on another machine" };
    let address = format!("{} ({place})", server.address);
    let topology = server.topology.as_ref().map(|name| name.replace('_', " "));
    let documents = or_unknown(server.documents.map(count));
    let mut facts = vec![
        Fact::new("Server", server_name(server)),
        Fact::new("Address", address).marked(&marks(Topic::SharedMachine)),
        Fact::new("Storage engine", or_unknown(server.storage_engine.as_ref())),
        Fact::new("Topology", or_unknown(topology)),
        Fact::new("Write concern", &server.write_concern).marked(&marks(Topic::Durability)),
        Fact::new("Read concern", &server.read_concern),
        Fact::new("Cache", size(server.cache_bytes)).marked(&data),
        Fact::new("Documents before measuring", documents).marked(&data),
        Fact::new("Data, uncompressed", size(server.data_bytes)).marked(&data),
        Fact::new("Data, on disk", size(server.storage_bytes)),
    ];
    if let (Some(bytes), Some(cache)) = (server.data_bytes, server.cache_bytes.filter(|c| *c > 0)) {
        let ratio = Quantity::ratio(bytes as f64 / cache as f64).to_string();
        facts.push(Fact::new("Data as a share of the cache", ratio).marked(&data));
    }
    if server.settings.is_empty() {
        facts.push(Fact::new("Settings", UNKNOWN).marked(&settings));
    }
    facts.extend(
        server.settings.iter().map(|(name, value)| Fact::new(name, value).marked(&settings)),
    );
    facts
}

/// `secantusd-rs 0.5.3 (embedded)`; MongoDB does not report its name.
pub(crate) fn server_name(server: &ServerRecord) -> String {
    let product = match (server.product.as_deref(), server.kind.as_str()) {
        (Some(product), _) => product,
        (None, "uri") if server.topology.as_deref() == Some("sharded") => "mongos",
        (None, "uri") => "mongod",
        (None, kind) => kind,
    };
    let embedded =
        if server.kind == "embedded" && product != server.kind { " (embedded)" } else { "" };
    format!("{product} {}{embedded}", server.version.as_deref().unwrap_or("of unknown version"))
}

/// `mongod 6.0.5 at 127.0.0.1:27017`.
pub(crate) fn server_at(server: &ServerRecord) -> String {
    match server.address.as_str() {
        "" => server_name(server),
        address => format!("{} at {address}", server_name(server)),
    }
}

/// The setup in one line; unknown parts are empty. Lines break between the parts rather than in `2 × CPU`.
pub(crate) fn setup(parts: impl IntoIterator<Item = String>) -> String {
    joined(parts, "\u{a0}· ").replace(" × ", "\u{a0}×\u{a0}")
}

/// The parts that are not empty.
fn joined(parts: impl IntoIterator<Item = String>, between: &str) -> String {
    let known = parts.into_iter().filter(|part| !part.is_empty());
    known.collect::<Vec<_>>().join(between)
}

/// The setup of a run: mix, data, load, server and machine.
pub(crate) fn setup_of_run(document: &RunDocument) -> String {
    let plan = document.recorded_plan();
    let load = joined([schedule(&plan), connections(document, &plan)], ", ");
    let machine = machine::in_short(&document.environment);
    setup([mix(&plan), documents(&plan), load, server_at(&document.server), machine])
}

/// The resolved plan as text that can be saved and run again: TOML, or JSON if TOML cannot express a value, because a run
/// directory can be edited by hand.
pub(crate) fn plan_text(plan: &Value) -> String {
    let without_nulls = strip_nulls(plan);
    toml::to_string_pretty(&without_nulls)
        .unwrap_or_else(|_| format!("{:#}", without_nulls))
        .trim_end()
        .to_owned()
}

fn strip_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), strip_nulls(value)))
            .collect(),
        Value::Array(items) => items.iter().map(strip_nulls).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_mix_is_normalised_and_sorted() {
        let plan = json!({"operations": {"read": 1.0, "update": 0.0, "read_modify_write": 3.0}});
        assert_eq!(mix(&RecordedPlan::new(&plan)), "75 % read-modify-write, 25 % read");
        let thirds = json!({"operations": {"read": 1.0, "update": 2.0}});
        assert_eq!(mix(&RecordedPlan::new(&thirds)), "66.667 % update, 33.333 % read");
        assert_eq!(mix(&RecordedPlan::default()), "");
    }

    #[test]
    fn schedules_and_keys_are_shown_with_their_parameters() {
        let plan = json!({
            "schedule": {"kind": "constant", "rate_per_s": 20000.0},
            "keys": {"distribution": "zipfian", "exponent": 1.1},
        });
        let plan = RecordedPlan::new(&plan);
        assert_eq!(schedule(&plan), "constant 20,000/s");
        assert_eq!(keys(&plan), "zipfian (exponent 1.1)");
    }

    #[test]
    fn a_plan_is_shown_as_toml_that_reads_back() {
        let plan =
            json!({"name": "a", "data": {"records": 1000, "integrity": false}, "gone": null});
        let text = plan_text(&plan);
        let back: Value = toml::from_str(&text).unwrap();
        assert_eq!(back, strip_nulls(&plan));
        let no_table = json!(["a", 1]);
        let back: Value = serde_json::from_str(&plan_text(&no_table)).unwrap();
        assert_eq!(back, no_table);
    }

    #[test]
    fn unreadable_setting_is_shown_as_unknown() {
        let facts = server(&ServerRecord::default(), &CaveatBook::default());
        let cache = facts.iter().find(|fact| fact.label == "Cache").unwrap();
        assert_eq!(cache.value, UNKNOWN);
    }
}
