//! Whether two runs measured the same thing: their differences other than the result.

use crate::caveats::has_other_load;
use dyno_record::model::{CaveatKind, IdleState, PhaseKind, RunDocument, RunStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Caveats that make a run's figures invalid for its server.
pub const SPOILING: [CaveatKind; 9] = [
    CaveatKind::ClientStopped,
    CaveatKind::Fleet,
    CaveatKind::GeneratorBottleneck,
    CaveatKind::LittleLaw,
    CaveatKind::DocumentCount,
    CaveatKind::Partial,
    CaveatKind::Integrity,
    CaveatKind::CheckViolated,
    CaveatKind::RecordChanged,
];

/// Caveats that affect a comparison only if exactly one run has them.
const ONE_SIDED: [CaveatKind; 7] = [
    CaveatKind::NotSteady,
    CaveatKind::Errors,
    CaveatKind::DroppedArrivals,
    CaveatKind::RateNotAchieved,
    CaveatKind::FitsInCache,
    CaveatKind::SharedMachine,
    CaveatKind::OtherLoad,
];

/// Plan parts that define the workload. Parts that may differ on purpose (the server, the client's threads) are
/// listed as differences but do not forbid the comparison.
const WORKLOAD: [&str; 4] = ["data", "operations", "keys", "access"];

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Name of the difference, such as `data.records`.
    pub what: String,
    /// Value in the first run.
    pub a: String,
    /// Value in the second run.
    pub b: String,
    /// Whether it forbids the comparison: the runs did other work, with other guarantees, or one of them is
    /// invalid.
    pub forbids: bool,
}

/// Differences between the workloads of two recorded plans: data, operations, keys, access and schedule.
pub fn workload_differences(a: &Value, b: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    for section in WORKLOAD.into_iter().chain(["schedule"]) {
        compare_section(section, a, b, &mut |what, a, b| {
            if a != b {
                found.push(Difference { what: what.to_owned(), a, b, forbids: true });
            }
        });
    }
    found
}

/// Where servers run, and their programs: nightly runs may change them, and their series shows the effect.
const PLACES: [&str; 6] = [
    "server.uri",
    "server.mongod",
    "server.mongos",
    "server.data_dir",
    "server.listen",
    "server.advertise",
];

/// Differences that put two recorded plans into different series: their workloads, the settings of their servers, and the
/// load of closed loops.
pub fn series_differences(a: &Value, b: &Value) -> Vec<Difference> {
    let is_closed =
        |plan: &Value| matches!(plan["schedule"]["kind"].as_str(), Some("closed" | "throttled"));
    let are_closed = is_closed(a) && is_closed(b);
    let mut found = workload_differences(a, b);
    for section in ["server", "client"] {
        compare_section(section, a, b, &mut |what, a, b| {
            let is_load = what == "client.clients" || what.starts_with("client.think_time");
            let counts =
                if section == "server" { !PLACES.contains(&what) } else { is_load && are_closed };
            if counts && a != b {
                found.push(Difference { what: what.to_owned(), a, b, forbids: false });
            }
        });
    }
    found
}

/// Parts of a recorded plan that are not settings; a plan that was not recorded is one as a whole.
const NO_SETTINGS: [&str; 4] = ["plan", "plan.name", "plan.description", "plan.tags"];

/// Differences in the settings of two recorded plans.
pub(super) fn plan_differences(a: &Value, b: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare_values("plan", Some(a), Some(b), &mut |what, a, b| {
        if a != b && !NO_SETTINGS.contains(&what) {
            found.push(Difference { what: what.to_owned(), a, b, forbids: false });
        }
    });
    found
}

/// Most characters of a name by a setting.
const LONGEST_NAME: usize = 24;

/// Values that say nothing without their key.
const VAGUE: [&str; 8] = ["true", "false", "on", "off", "none", "auto", "default", "unknown"];

/// Short names of both sides by the only setting in which they differ: `zstd`, or `clients 16` where the value alone says
/// little. `None` if they differ in several settings or in none, or if a name would be long.
pub(super) fn distinction(differences: &[Difference]) -> [Option<String>; 2] {
    let is_setting = |one: &&Difference| {
        let what = one.what.as_str();
        what != "status" && !what.starts_with("caveat ") && !DISTURBANCES.contains(&what)
    };
    let mut settings = differences.iter().filter(is_setting);
    let (Some(one), None) = (settings.next(), settings.next()) else {
        return [None, None];
    };
    let key = one.what.rsplit('.').next().unwrap_or(&one.what);
    let names = [&one.a, &one.b].map(|value| {
        let is_word = value.starts_with(|first: char| first.is_ascii_alphabetic());
        match is_word && !VAGUE.contains(&value.as_str()) {
            true => value.clone(),
            false => format!("{key} {value}"),
        }
    });
    match names.iter().all(|name| name.chars().count() <= LONGEST_NAME) {
        true => names.map(Some),
        false => [None, None],
    }
}

/// All differences between two runs, forbidding ones first.
pub fn differences(a: &RunDocument, b: &RunDocument) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut note = |what: &str, a: String, b: String, forbids: bool| {
        if a != b {
            found.push(Difference { what: what.to_owned(), a, b, forbids });
        }
    };
    let of_plan = |section: &str, note: &mut dyn FnMut(&str, String, String)| {
        compare_section(section, &a.plan, &b.plan, note);
    };
    for section in WORKLOAD {
        of_plan(section, &mut |what, a, b| note(what, a, b, true));
    }
    let schedule = |document: &RunDocument| {
        let kind = document.recorded_plan().schedule_kind();
        kind.map_or_else(|| text(None), |kind| kind.as_str().to_owned())
    };
    // In a closed loop each client waits for its own operation, so more clients alone make response times
    // longer.
    let is_closed = |kind: &str| kind == "closed" || kind == "throttled";
    let are_closed = is_closed(&schedule(a)) && is_closed(&schedule(b));
    note("schedule.kind", schedule(a), schedule(b), true);
    of_plan("schedule", &mut |what, a, b| {
        if what != "schedule.kind" {
            note(what, a, b, true);
        }
    });
    for ((what, a, forbids), (_, b, _)) in promises(a).into_iter().zip(promises(b)) {
        note(what, a, b, forbids);
    }
    of_plan("server", &mut |what, a, b| {
        if what != "server.uri" {
            // A write that waits for the disk is another guarantee.
            note(what, a, b, what == "server.durable_writes");
        }
    });
    of_plan("client", &mut |what, a, b| {
        if what != "client.seed" {
            let is_load = what == "client.clients" || what.starts_with("client.think_time");
            note(what, a, b, is_load && are_closed);
        }
    });
    for ((what, a, forbids), (_, b, _)) in surroundings(a).into_iter().zip(surroundings(b)) {
        note(what, a, b, forbids);
    }
    let (settings_a, settings_b) = (machine_settings(a), machine_settings(b));
    for ((what, a), (_, b)) in settings_a.into_iter().zip(settings_b) {
        // Many machines show few settings: a missing value is not a difference.
        if let (Some(a), Some(b)) = (a, b) {
            note(what, a, b, false);
        }
    }
    compare_states(a, b, &mut note);
    found.sort_by_key(|difference| !difference.forbids);
    found
}

/// Name, value, and whether another value forbids a comparison.
type Fact = (&'static str, String, bool);

/// Whether a run measured the same thing with the same server on the same machine: only its disturbances and its
/// length may be others.
pub fn is_same_setting(a: &RunDocument, b: &RunDocument) -> bool {
    let is_same = |one: Difference| !one.forbids && DISTURBANCES.contains(&one.what.as_str());
    differences(a, b).into_iter().all(is_same)
}

/// Names of the differences that are disturbances.
const DISTURBANCES: [&str; 2] = ["check other_load", "other caveats"];

/// Guarantees of reads and writes, which decide what they cost.
fn promises(run: &RunDocument) -> [Fact; 2] {
    [
        ("write concern", run.server.write_concern.clone(), true),
        ("read concern", run.server.read_concern.clone(), true),
    ]
}

/// Server, machine and hosts.
fn surroundings(run: &RunDocument) -> [Fact; 6] {
    let (server, machine) = (&run.server, &run.environment);
    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| UNKNOWN.into());
    let cpus = machine.cpus.map(|cpus| cpus.to_string());
    [
        ("server version", known(&server.version), false),
        ("server product", known(&server.product), true),
        ("CPU model", known(&machine.cpu_model), false),
        ("kernel", known(&machine.kernel), false),
        ("CPUs", known(&cpus), false),
        ("client hosts", client_hosts(run), false),
    ]
}

/// Settings of the client's machine by name; absent if the machine does not show them.
type MachineSettings = [(&'static str, Option<String>); 13];

/// CPU and firmware settings: a single change makes it another machine.
fn machine_settings(run: &RunDocument) -> MachineSettings {
    let machine = &run.environment;
    let cpus = &machine.cpu_settings;
    let on = |is_on: Option<bool>| is_on.map(|is_on| if is_on { "on" } else { "off" }.to_owned());
    let prefetchers = cpus.prefetchers_off.as_ref().map(|off| match &off[..] {
        [] => "none".to_owned(),
        off => off.join(", "),
    });
    [
        ("CPU governor", machine.cpu_governor.clone()),
        ("CPU frequency driver", cpus.frequency_driver.clone()),
        ("CPU energy preference", cpus.energy_preference.clone()),
        ("CPU turbo", on(cpus.turbo)),
        ("hardware P-states", on(cpus.hardware_pstates)),
        ("CPU idle driver", cpus.idle_driver.clone()),
        ("CPU idle states", idle_states(&cpus.idle_states)),
        ("SMT", cpus.smt.clone()),
        ("NUMA nodes per socket", cpus.nodes_per_socket.map(|nodes| nodes.to_string())),
        ("prefetchers that are off", prefetchers),
        ("microcode", cpus.microcode.clone()),
        ("BIOS", cpus.bios.clone()),
        ("irqbalance", on(cpus.irqbalance)),
    ]
}

/// Names of the enabled idle states.
fn idle_states(states: &[IdleState]) -> Option<String> {
    let usable = states.iter().filter(|state| state.enabled);
    let usable: Vec<&str> = usable.map(|state| state.name.as_str()).collect();
    let text = if usable.is_empty() { "none".to_owned() } else { usable.join(", ") };
    (!states.is_empty()).then_some(text)
}

/// The fleet's hosts with their agents.
pub(super) fn client_hosts(run: &RunDocument) -> String {
    let Some(fleet) = &run.fleet else {
        return "only this machine".into();
    };
    let mut hosts: BTreeMap<&str, u32> = BTreeMap::new();
    for agent in &fleet.agents {
        *hosts.entry(&agent.host).or_default() += 1;
    }
    let hosts: Vec<String> =
        hosts.iter().map(|(host, agents)| format!("{host} with {agents} agents")).collect();
    hosts.join(", ")
}

const UNKNOWN: &str = "unknown";

/// Compares how the runs ended and their caveats.
fn compare_states(
    a: &RunDocument,
    b: &RunDocument,
    note: &mut impl FnMut(&str, String, String, bool),
) {
    let has_measured = |document: &RunDocument| {
        document.phases.iter().any(|phase| phase.name == PhaseKind::Measure && phase.succeeded > 0)
    };
    let state = |document: &RunDocument| match (document.status, has_measured(document)) {
        (RunStatus::Complete, true) => "complete",
        (_, false) => "nothing measured",
        _ => "not complete",
    };
    // Two invalid runs both differ from what a comparison needs.
    if state(a) != "complete" || state(b) != "complete" {
        let of = |document, letter: &str| format!("{} ({letter})", state(document));
        note("status", of(a, "A"), of(b, "B"), true);
    }
    let caveats = |document: &RunDocument, wanted: &[CaveatKind]| -> BTreeSet<String> {
        let own = document.caveats.iter().map(|caveat| caveat.kind);
        own.filter(|kind| wanted.contains(kind))
            .map(|kind| text(serde_json::to_value(kind).ok().as_ref()))
            .collect()
    };
    for kind in SPOILING {
        let has = |document| !caveats(document, &[kind]).is_empty();
        let (in_a, in_b) = (has(a), has(b));
        if in_a || in_b {
            let name = text(serde_json::to_value(kind).ok().as_ref());
            let word = |has: bool| if has { "yes" } else { "no" };
            // A caveat of both runs is not a difference, but still a reason.
            let mark = |has: bool, letter: &str| format!("{} ({letter})", word(has));
            note(&format!("caveat {name}"), mark(in_a, "A"), mark(in_b, "B"), true);
        }
    }
    let join = |set: BTreeSet<String>| {
        let all: Vec<String> = set.into_iter().collect();
        if all.is_empty() { "none".into() } else { all.join(", ") }
    };
    let busy = [a, b].map(|document| has_other_load(&document.environment));
    if busy.contains(&true) {
        // A failure on both sides is also a reason.
        let [in_a, in_b] = busy.map(|fails| if fails { "fails" } else { "no failure" });
        let what = "check other_load";
        note(what, format!("{in_a} (A)"), format!("{in_b} (B)"), false);
    }
    let promise = |document| join(caveats(document, &[CaveatKind::Durability]));
    note("caveat durability", promise(a), promise(b), true);
    note("other caveats", join(caveats(a, &ONE_SIDED)), join(caveats(b, &ONE_SIDED)), false);
}

/// Compares a section of two recorded plans by its meaning.
fn compare_section(
    section: &str,
    a: &Value,
    b: &Value,
    note: &mut dyn FnMut(&str, String, String),
) {
    let [a, b] = [a, b].map(|plan| match section {
        "operations" => plan.get(section).map(shares),
        _ => plan.get(section).cloned(),
    });
    compare_values(section, a.as_ref(), b.as_ref(), &mut |what, a, b| {
        // The other kind of schedule has no such key, so that the kind says it.
        let is_of_kind = what == "schedule.max_start_delay" && [&a, &b].contains(&&text(None));
        if !is_of_kind {
            note(what, a, b);
        }
    });
}

/// Weights divided by their sum, with six digits: `80` and `20` mean the same as `0.8` and `0.2`.
fn shares(weights: &Value) -> Value {
    let Some(weights) = weights.as_object() else {
        return weights.clone();
    };
    let sum: f64 = weights.values().filter_map(Value::as_f64).sum();
    let share = |weight: &Value| match weight.as_f64() {
        Some(weight) if sum > 0.0 => json!((weight / sum * 1e6).round() / 1e6),
        _ => weight.clone(),
    };
    weights.iter().map(|(name, weight)| (name.clone(), share(weight))).collect()
}

/// Compares two values recursively, down to the keys.
fn compare_values(
    name: &str,
    a: Option<&Value>,
    b: Option<&Value>,
    note: &mut dyn FnMut(&str, String, String),
) {
    match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                compare_values(&format!("{name}.{key}"), a.get(key), b.get(key), note);
            }
        }
        (a, b) => note(name, text(a), text(b)),
    }
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "default".into(),
        Some(Value::String(text)) => text.clone(),
        // `300`, as people write it, and not `300.0`.
        Some(Value::Number(number)) if number.is_f64() => {
            number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string())
        }
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_compared_by_their_meaning() {
        let names = |a: &Value, b: &Value| -> Vec<String> {
            workload_differences(a, b).into_iter().map(|one| one.what).collect()
        };
        let weights =
            |read: f64, update: f64| json!({"operations": {"read": read, "update": update}});
        assert_eq!(names(&weights(0.95, 0.05), &weights(95.0, 5.0)), [""; 0]);
        let others = names(&weights(0.95, 0.05), &weights(0.5, 0.5));
        assert_eq!(others, ["operations.read", "operations.update"]);
        let closed = json!({"schedule": {"kind": "closed"}});
        let constant = json!({"schedule": {"kind": "constant", "max_start_delay": "10s"}});
        assert_eq!(names(&closed, &constant), ["schedule.kind"]);
    }

    #[test]
    fn series_differ_by_server_settings_and_closed_clients() {
        let plan = |kind: &str, clients: u32, cache: &str, mongod: &str| {
            json!({
                "schedule": {"kind": kind},
                "client": {"clients": clients},
                "server": {"cache": cache, "mongod": mongod},
            })
        };
        let names = |a: &Value, b: &Value| -> Vec<String> {
            series_differences(a, b).into_iter().map(|one| one.what).collect()
        };
        let closed = plan("closed", 4, "256MiB", "6.0.5");
        let found = names(&closed, &plan("closed", 8, "1GiB", "6.0.27"));
        assert_eq!(found, ["server.cache", "client.clients"]);
        let open = |clients| plan("constant", clients, "256MiB", "6.0.5");
        assert_eq!(names(&open(4), &open(8)), [""; 0]);
    }
}
