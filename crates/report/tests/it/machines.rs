//! The machines on the pages of runs and experiments, in every format.

use crate::samples::experiment as support;
use dyno_record::experiment::Experiment;
use dyno_record::model::{
    Environment, FleetRecord, FleetServerRecord, InstanceRecord, RunDocument,
};
use dyno_record::reader::Run;
use dyno_record::server::ServerMachine;
use dyno_report::experiment::render;
use dyno_report::{Format, PageFormat, RenderOptions};

/// The titles of the machines in a format, in order.
fn titles(experiment: &Experiment, format: PageFormat) -> Vec<String> {
    let options = RenderOptions { width: 120, ..RenderOptions::default() };
    let text = render(experiment, format, &options).unwrap();
    let begin = match format {
        PageFormat::Markdown => "## Machine",
        _ => "Machine",
    };
    let lines = text.lines().filter(|line| line.starts_with(begin));
    let titles = lines.map(|line| line.trim_start_matches(['#', ' ']).to_owned());
    titles.collect()
}

fn machine(name: &str, model: &str) -> Environment {
    Environment {
        hostname: Some(name.into()),
        cpu_model: Some(model.into()),
        ..Environment::default()
    }
}

#[test]
fn an_experiment_of_a_fleet_has_the_machine_of_each_host() {
    let mut experiment = support::clients_sweep();
    experiment.environment = Some(machine("desk", "Slow 1"));
    for format in [PageFormat::Human, PageFormat::Markdown] {
        assert_eq!(titles(&experiment, format), ["Machine"]);
    }
    for (host, model) in [("client1", "Fast 2"), ("db1", "Large 3")] {
        experiment.hosts.insert(host.into(), machine(host, model));
    }
    let expected = ["Machine of the controller", "Machine client1", "Machine db1"];
    for format in [PageFormat::Human, PageFormat::Markdown] {
        assert_eq!(titles(&experiment, format), expected);
    }
    for format in [PageFormat::Human, PageFormat::Markdown, PageFormat::Html] {
        let text = render(&experiment, format, &RenderOptions::default()).unwrap();
        for part in expected.into_iter().chain(["Slow 1", "Fast 2", "Large 3"]) {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

/// `db1` as reported by its server.
fn reported() -> ServerMachine {
    ServerMachine {
        hostname: Some("db1".into()),
        os: Some("Debian GNU/Linux 12 (bookworm)".into()),
        kernel: Some("Linux 6.1.0-18-amd64".into()),
        architecture: Some("x86_64".into()),
        cpu_model: Some("Large 3".into()),
        cpus: Some(8),
        usable_cpus: Some(2),
        numa_nodes: Some(1),
        memory_bytes: Some(16 << 30),
        memory_limit_bytes: Some(4 << 30),
        reason: None,
    }
}

/// A run on a remote server.
fn remote_run() -> Run {
    let mut run = crate::support::closed_run();
    run.document.server.local = false;
    run.document.server.address = "db1:27017".into();
    run.document.server.machine = Some(reported());
    run
}

fn run_text(run: &Run, format: Format) -> String {
    dyno_report::render(run, None, format, &RenderOptions::default()).unwrap()
}

#[test]
fn remote_server_shows_the_machine_that_it_reports() {
    let mut run = remote_run();
    let parts = [
        "Machine of the server",
        "8 × Large 3 (x86_64), 2 for",
        "16.0 GiB, 4.00 GiB for",
        "Debian GNU/Linux 12 (bookworm)",
        "Linux 6.1.0-18-amd64",
        "db1:27017 (hostInfo)",
    ];
    let mut experiment = support::clients_sweep();
    let machines = &mut experiment.server_machines;
    machines.insert("db1:27017".into(), reported());
    for (form, page) in [
        (Format::Human, PageFormat::Human),
        (Format::Markdown, PageFormat::Markdown),
        (Format::Html, PageFormat::Html),
    ] {
        let of_experiment = render(&experiment, page, &RenderOptions::default()).unwrap();
        for text in [run_text(&run, form), of_experiment] {
            // HTML has entities for some characters of an address, and Markdown has escapes.
            let text = text.replace('\\', "").replace("&#x2f;", "/");
            for part in parts {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }
    // No limit.
    let machine = run.document.server.machine.as_mut().unwrap();
    (machine.usable_cpus, machine.memory_limit_bytes) = (Some(8), Some(16 << 30));
    let text = run_text(&run, Format::Human);
    for limited in ["(x86_64), ", "16.0 GiB, "] {
        assert!(!text.contains(limited), "{limited}: {text}");
    }
    // The server may refuse to report it.
    let machine = ServerMachine {
        reason: Some("the server refused hostInfo: not authorized (code 13)".into()),
        ..ServerMachine::default()
    };
    run.document.server.machine = Some(machine);
    let text = run_text(&run, Format::Human);
    assert!(text.contains("refused hostInfo: not authorized"), "{text}");
}

#[test]
fn server_machines_are_shown_once_unless_an_agent_reports_them() {
    let addresses = |document: &RunDocument| -> Vec<String> {
        document.server_machines().into_keys().map(str::to_owned).collect()
    };
    let mut run = remote_run();
    assert_eq!(addresses(&run.document), ["db1:27017"]);
    let instance = |number: u64, address: &str, host: &str| {
        let mut server = run.document.server.clone();
        server.address = address.into();
        server.machine = Some(ServerMachine { hostname: Some(host.into()), ..reported() });
        InstanceRecord { number, directory: number.to_string(), server, phases: Vec::new() }
    };
    run.document.instances = vec![
        instance(0, "db1:27017", "db1"),
        instance(1, "db1:27018", "db1"),
        instance(2, "db2:27017", "db2"),
    ];
    assert_eq!(addresses(&run.document), ["db1:27017", "db2:27017"]);
    let text = run_text(&run, Format::Human);
    for title in ["Machine of the server db1:27017", "Machine of the server db2:27017"] {
        assert!(text.contains(title), "{title}: {text}");
    }
    let agent = FleetServerRecord {
        host: "db1".into(),
        environment: Some(machine("db1", "Large 3")),
        ..FleetServerRecord::default()
    };
    run.document.fleet = Some(FleetRecord { servers: vec![agent], ..FleetRecord::default() });
    assert_eq!(addresses(&run.document), [""; 0]);
}
