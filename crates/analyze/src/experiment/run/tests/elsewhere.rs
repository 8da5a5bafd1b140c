//! A server on another machine, reported by exporters and by the server itself.

use super::*;
use dyno_record::model::ReportedBy;

/// The usual run with other resources of its server.
fn run_with(resources: Vec<ResourceUse>) -> RunAnalysis {
    let (mut document, responses) = usual();
    document.resources = resources;
    analysis(&(document, responses))
}

fn of_machine(kind: ResourceKind, machine: &str, busy_s: f64) -> ResourceUse {
    ResourceUse {
        reported: Some(ReportedBy { source: "node".to_owned(), machine: machine.to_owned() }),
        ..resource(kind, 2, busy_s)
    }
}

/// Stations, the bottleneck, and its finding.
fn reported_of(analysis: &RunAnalysis) -> (Vec<&str>, &str, String) {
    let stations = analysis.stations.iter().map(|one| one.name.as_str());
    let bottleneck = analysis.bottleneck.as_ref().expect("a known server");
    let said = analysis.findings.iter().find(|finding| finding.statement.code == "bottleneck");
    let said = said.expect("a finding").statement.to_string();
    (stations.collect(), &bottleneck.demand.name, said)
}

const MACHINE: &str = "all CPUs of the server's machine";

#[test]
fn remote_machines_total_use_stands_for_its_server() {
    let operations = 48e-6 * 38_950.0 * WINDOWS as f64;
    let whole = of_machine(ResourceKind::ServerHostCpu, "db1", operations);
    let found = run_with(vec![whole.clone(), resource(ResourceKind::Disk, 1, 0.3)]);
    let (stations, bottleneck, said) = reported_of(&found);
    assert_eq!(stations, [MACHINE, "client CPU", "disk"]);
    assert_eq!(bottleneck, MACHINE);
    assert!(said.contains(MACHINE), "{said}");
    let bound_per_s = found.bottleneck.as_ref().map(|one| one.bound_per_s);
    assert!((bound_per_s.unwrap() / (2.0 / 48e-6) - 1.0).abs() < 1e-3);
    let codes = |found: &RunAnalysis| -> Vec<String> {
        found.findings.iter().map(|one| one.statement.code.clone()).collect()
    };
    for missing in ["server-not-watched", "not-watched"] {
        assert!(!codes(&found).iter().any(|code| code == missing));
    }
    // With process data the machine is not a station.
    let process = of_machine(ResourceKind::ServerCpu, "db1", operations / 2.0);
    let found = run_with(vec![process, whole]);
    let (stations, bottleneck, _) = reported_of(&found);
    assert_eq!(stations, ["server CPU", "client CPU"]);
    assert_eq!(bottleneck, "server CPU");
    assert!(found.figures.demands.iter().any(|one| one.name == MACHINE));
    assert!(!found.figures.shares_cpus);
}

#[test]
fn machine_with_the_largest_demand_saturates_first() {
    let operations = 48e-6 * 38_950.0 * WINDOWS as f64;
    for (kind, all, of) in [
        (ResourceKind::ServerCpu, "server CPU", "server CPU"),
        (ResourceKind::ServerHostCpu, MACHINE, "all CPUs"),
    ] {
        let found = run_with(vec![
            of_machine(kind, "db1", operations),
            of_machine(kind, "db2", operations / 3.0),
        ]);
        let (stations, bottleneck, said) = reported_of(&found);
        let each = ["db1", "db2"].map(|machine| format!("{of} of {machine}"));
        assert_eq!(stations, [each[0].as_str(), &each[1], "client CPU"]);
        assert_eq!(bottleneck, each[0]);
        assert!(said.contains(&each[0]), "{said}");
        // The first machine's two CPUs bound the rate, not the four of both.
        let bound_per_s = found.bottleneck.as_ref().map(|one| one.bound_per_s);
        assert!((bound_per_s.unwrap() / (2.0 / 48e-6) - 1.0).abs() < 1e-3);
        let together = found.figures.demands.iter().find(|one| one.name == all).unwrap();
        assert_eq!(together.servers, 4);
        assert!((together.demand_s / 64e-6 - 1.0).abs() < 1e-3);
    }
}
