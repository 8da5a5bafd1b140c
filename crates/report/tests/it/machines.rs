//! The machines on the pages of experiments, in every form.

use crate::samples::experiment as support;
use dyno_record::experiment::Experiment;
use dyno_record::model::Environment;
use dyno_report::experiment::render;
use dyno_report::{PageFormat, RenderOptions};

/// The titles of the machines in a form, in their order.
fn titles(experiment: &Experiment, format: PageFormat) -> Vec<String> {
    let options = RenderOptions {
        width: 120,
        ..RenderOptions::default()
    };
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
