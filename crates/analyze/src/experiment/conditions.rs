//! Conditions that must be equal in all runs of an experiment: client and machine, and the server in runs with
//! the same server plan.

use super::comparable::client_hosts;
use dyno_record::experiment::Side;
use dyno_record::model::{Caveat, CaveatKind, RunDocument, ServerRecord};
use dyno_record::statement;
use dyno_record::statement::Statement;
use std::collections::{BTreeMap, BTreeSet};

/// Values by the name of the fact.
type Facts = BTreeMap<String, String>;

/// Value of a fact that one of the runs does not know.
const UNKNOWN: &str = "unknown";

/// May change when an experiment is resumed, as a server may have moved.
const ADDRESS: &str = "server address";

/// Facts with this prefix are memory sizes in bytes.
const MEMORY: &str = "memory of ";

/// Sizes that servers derive from the machine's memory. If a plan sets them, the plans must be equal.
const CACHE: [&str; 2] = ["cache", "cache_bytes"];

/// Memory sizes that differ by less than this share are equal: balloons of virtual machines and kernel updates
/// change them.
const SAME_MEMORY_RATIO: f64 = 0.05;

/// Separates the initial and the final value in [`changed_setting`].
const AT_FIRST: &str = " at first, ";

/// The conditions of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Which of two plans, and its server part: runs of one experiment may have several servers on purpose.
    server_plan: String,
    client: Facts,
    server: Facts,
}

/// A fact that differs between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherFact {
    /// Name of the fact, such as `server version`.
    pub what: String,
    /// Value in the earlier run.
    pub before: String,
    /// Value in the later run.
    pub now: String,
}

impl Conditions {
    /// Conditions that are recorded in a run of one of the experiment's plans.
    pub fn of_run(run: &RunDocument, side: Option<Side>) -> Conditions {
        let mut plan = run.plan["server"].clone();
        if let Some(plan) = plan.as_object_mut() {
            plan.remove("uri");
        }
        Conditions {
            server_plan: format!("{} {plan}", side.map_or("", Side::label)),
            client: client(run),
            server: server(run),
        }
    }

    /// Facts that both runs know and that differ although they must not.
    pub fn differing(&self, later: &Conditions) -> Vec<OtherFact> {
        let has_same_server = self.server_plan == later.server_plan;
        let servers = self.server.iter();
        let servers = servers.filter(|(what, _)| has_same_server && *what != ADDRESS);
        let mut found = Vec::new();
        for (what, before) in self.client.iter().chain(servers) {
            let now = later.client.get(what).or(later.server.get(what));
            if let Some(now) = now.filter(|now| !is_same(what, before, now)) {
                found.push(OtherFact {
                    what: what.clone(),
                    before: before.clone(),
                    now: now.clone(),
                });
            }
        }
        found
    }
}

fn client(run: &RunDocument) -> Facts {
    let machine = &run.environment;
    let known = [
        ("version of dyno", Some(run.dyno_version.clone())),
        ("host", machine.hostname.clone()),
        ("CPU model", machine.cpu_model.clone()),
        ("CPUs", machine.cpus.map(|cpus| cpus.to_string())),
        ("kernel", machine.kernel.clone()),
        ("client hosts", run.fleet.as_ref().map(|_| client_hosts(run))),
    ];
    facts(known)
}

fn server(run: &RunDocument) -> Facts {
    let server = &run.server;
    let is_elsewhere = server.kind == "uri";
    let known = [
        ("server product", server.product.clone()),
        ("server version", server.version.clone()),
        ("storage engine", server.storage_engine.clone()),
        ("topology", server.topology.clone()),
        ("cache", server.cache_bytes.map(|bytes| bytes.to_string())),
        // Servers that the run starts get any free port.
        (ADDRESS, is_elsewhere.then(|| server.address.clone())),
    ];
    let mut all = facts(known);
    all.extend(assumed(run));
    for (number, machine) in run.server_machines().into_values().enumerate() {
        let known = [
            ("host", machine.hostname.clone()),
            ("CPU model", machine.cpu_model.clone()),
            ("CPUs", machine.cpus.map(|cpus| cpus.to_string())),
            ("memory", machine.memory_bytes.map(|bytes| bytes.to_string())),
        ];
        all.extend(
            facts(known)
                .into_iter()
                .map(|(what, value)| (format!("{what} of the machine of server {number}"), value)),
        );
    }
    all.extend(settings(server, is_elsewhere));
    all
}

fn facts<const COUNT: usize>(known: [(&str, Option<String>); COUNT]) -> Facts {
    known.into_iter().filter_map(|(what, value)| Some((what.to_owned(), value?))).collect()
}

/// Machine properties that the placement and cache sizes of the servers are based on.
fn assumed(run: &RunDocument) -> Facts {
    let placement = run.placement.as_ref();
    let Some(machine) = placement.and_then(|placement| placement.machine.as_ref()) else {
        return Facts::new();
    };
    let nodes = machine.nodes.iter();
    let nodes = nodes.map(|node| format!("node {} with CPUs {}", node.number, node.cpus));
    let limit = machine.memory_limit_bytes;
    let parts: Vec<String> = nodes.chain(limit.map(|_| "a memory limit".to_owned())).collect();
    let shown = format!("CPUs {}: {}", machine.cpus, parts.join(", "));
    let mut all = Facts::from([("assumed machine".to_owned(), shown)]);
    for node in &machine.nodes {
        let what = format!("{MEMORY}assumed node {}", node.number);
        all.insert(what, node.memory_bytes.to_string());
    }
    if let Some(bytes) = limit {
        all.insert(format!("{MEMORY}the assumed limit"), bytes.to_string());
    }
    all
}

/// Whether a fact is equal in two runs.
fn is_same(what: &str, before: &str, now: &str) -> bool {
    let subject = what.split(" of ").next().unwrap_or(what);
    let is_memory = what.starts_with(MEMORY) || CACHE.contains(&subject);
    match (before.parse::<f64>(), now.parse::<f64>()) {
        (Ok(before), Ok(now)) if is_memory => {
            (before - now).abs() <= SAME_MEMORY_RATIO * before.max(now)
        }
        _ => before == now,
    }
}

/// Recorded text for a setting that changed during a run.
pub fn changed_setting(set: &str, found: &str) -> String {
    format!("{set}{AT_FIRST}{found} at the end")
}

/// The initial value of a setting, which later runs also start with.
fn set_first(value: &str) -> String {
    let (first, _) = value.split_once(AT_FIRST).unwrap_or((value, ""));
    first.to_owned()
}

fn settings(server: &ServerRecord, is_elsewhere: bool) -> Facts {
    // Directories and ports of started servers differ with each start.
    let stays = |(name, value): &(&String, &String)| {
        is_elsewhere || !(value.contains('/') || name.ends_with("port"))
    };
    let mut all = Facts::new();
    for (name, value) in server.settings.iter().filter(stays) {
        all.insert(name.clone(), set_first(value));
    }
    for member in &server.members {
        for (name, value) in member.asked.iter().filter(stays) {
            all.insert(format!("{name} of {}", member.name), value.clone());
        }
    }
    all
}

/// A fact with the runs by its values, the first run's value first.
type Division<'a> = Vec<(&'a str, Vec<usize>)>;

/// The caveats of an experiment with named runs whose conditions differ: one caveat for each way in which the
/// runs are divided.
pub fn caveats(runs: &[(String, Conditions)]) -> Vec<Caveat> {
    let all: Vec<usize> = (0..runs.len()).collect();
    let mut found: Vec<(Vec<Vec<usize>>, Vec<Statement>)> = Vec::new();
    let mut note = |places: &[usize], of: fn(&Conditions) -> &Facts| {
        let own = |place: &usize| of(&runs[*place].1);
        let names: BTreeSet<&String> = places.iter().flat_map(|place| own(place).keys()).collect();
        for what in names {
            let mut values: Division<'_> = Vec::new();
            for place in places {
                let value = own(place).get(what).map_or(UNKNOWN, String::as_str);
                match values.iter_mut().find(|(known, _)| is_same(what, known, value)) {
                    Some((_, runs)) => runs.push(*place),
                    None => values.push((value, vec![*place])),
                }
            }
            if values.len() < 2 {
                continue;
            }
            let texts: Vec<&str> = values.iter().map(|(value, _)| *value).collect();
            let fact = statement!("fact-that-differs", what = what, values = texts);
            let division = values.into_iter().map(|(_, runs)| runs).collect();
            match found.iter_mut().find(|(known, _)| *known == division) {
                Some((_, facts)) => facts.push(fact),
                None => found.push((division, vec![fact])),
            }
        }
    };
    note(&all, |run| &run.client);
    let plans: BTreeSet<&String> = runs.iter().map(|(_, run)| &run.server_plan).collect();
    for plan in plans {
        let is_of_plan = |place: &usize| runs[*place].1.server_plan == *plan;
        let own: Vec<usize> = all.iter().copied().filter(is_of_plan).collect();
        note(&own, |run| &run.server);
    }
    let caveat = |(division, facts): (Vec<Vec<usize>>, Vec<Statement>)| {
        let group = |places: &Vec<usize>| {
            let name = |place: &usize| runs[*place].0.as_str();
            statement!(
                "runs-that-agree",
                first = places.first().map(name),
                last = places[1..].last().map(name),
                count = places.len()
            )
        };
        let groups: Vec<Statement> = division.iter().map(group).collect();
        let said = statement!("runs-differ", facts = facts, groups = groups);
        Caveat::of_run(CaveatKind::MixedRuns, said)
    };
    found.into_iter().map(caveat).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(plan: &str, client: &[(&str, &str)], server: &[(&str, &str)]) -> Conditions {
        let facts = |all: &[(&str, &str)]| {
            all.iter().map(|(what, value)| ((*what).to_owned(), (*value).to_owned())).collect()
        };
        Conditions { server_plan: plan.to_owned(), client: facts(client), server: facts(server) }
    }

    fn server_with(set: &str) -> ServerRecord {
        let server = serde_json::json!({
            "kind": "mongod", "address": "x", "local": true, "write_concern": "1", "read_concern": "local",
            "settings": {"parameter.a": set},
        });
        serde_json::from_value(server).expect("a server record")
    }

    fn named(runs: Vec<Conditions>) -> Vec<(String, Conditions)> {
        runs.into_iter().enumerate().map(|(number, run)| (format!("runs/{number}"), run)).collect()
    }

    #[test]
    fn facts_that_divide_runs_alike_are_one_caveat() {
        let old = run("p", &[("host", "vm")], &[("server version", "6"), ("cache", "1")]);
        let new = run("p", &[("host", "vm")], &[("server version", "7")]);
        let found = caveats(&named(vec![old.clone(), old, new]));
        let [only] = &found[..] else {
            panic!("{found:?}");
        };
        let text = only.statement.to_string();
        for part in ["server version", "6", "7", "cache", "unknown", "runs/2"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(only.kind, CaveatKind::MixedRuns);
    }

    #[test]
    fn runs_with_other_plans_of_the_server_may_have_another_server() {
        let one = run("p", &[("host", "vm")], &[("server version", "6")]);
        let other = run("q", &[("host", "vm")], &[("server version", "7")]);
        assert!(caveats(&named(vec![one.clone(), other.clone()])).is_empty());
        assert!(one.differing(&other).is_empty());
        let moved = run("q", &[("host", "other")], &[("server version", "7")]);
        assert_eq!(caveats(&named(vec![one.clone(), moved.clone()])).len(), 1);
        let expected =
            OtherFact { what: "host".to_owned(), before: "vm".to_owned(), now: "other".to_owned() };
        assert_eq!(one.differing(&moved), [expected]);
    }

    #[test]
    fn memory_that_differs_by_a_few_percent_is_the_same() {
        for what in ["memory of the machine of server 0", "cache_bytes of a:1"] {
            let with = |bytes| run("p", &[], &[(what, bytes)]);
            let before = with("1000000");
            assert!(before.differing(&with("960000")).is_empty(), "{what}");
            assert_eq!(before.differing(&with("900000")).len(), 1, "{what}");
            let divided = |bytes| caveats(&named(vec![before.clone(), with(bytes)])).len();
            assert_eq!((divided("1040000"), divided("2000000")), (0, 1), "{what}");
        }
        // Other numbers must be equal.
        let with = |cpus| run("p", &[], &[("CPUs of the machine of server 0", cpus)]);
        assert_eq!(with("100").differing(&with("101")).len(), 1);
    }

    #[test]
    fn parameter_that_changed_later_is_compared_as_it_was_set() {
        let changed = changed_setting("20", "33");
        assert_eq!(set_first(&changed), "20");
        assert!(changed.contains("33"), "{changed}");
        // Records contain this text.
        assert_eq!(set_first("20 at first, 33 at the end"), "20");
        assert_eq!(set_first("20"), "20");
        let with = |set: &str| Conditions {
            server: settings(&server_with(set), false),
            ..Conditions::default()
        };
        let earlier = with("20 at first, not known at the end");
        assert!(earlier.differing(&with("20")).is_empty());
        assert_eq!(earlier.differing(&with("33")).len(), 1);
    }

    #[test]
    fn facts_that_a_run_does_not_know_yet_are_not_refused() {
        let known = run("p", &[], &[("assumed machine", "x"), ("server version", "6")]);
        let begun = run("p", &[], &[("server version", "6")]);
        assert!(known.differing(&begun).is_empty());
    }
}
