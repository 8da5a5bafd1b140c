//! `dyno fleet`: the verbs of this program on many hosts, and what other systems need for them.

use crate::args::{FleetArguments, FleetCommand, HostArguments, RenderArguments, RenderSystem};
use crate::commands::{ab, resume, run, slo, soak, sweep, xmax};
use crate::exit::{Exit, Failure};
use crate::fleet::{Fleet, check_run};
use crate::messages::print_data;
use crate::session::execute::Hands;
use crate::session::output;
use crate::surroundings::{ServerHome, Surroundings};
use dyno_fleet::kubernetes;
use dyno_fleet::names::RunName;
use dyno_plan::request::Request;
use dyno_plan::resolve::resolve;
use std::path::Path;

/// See the module.
pub(crate) fn fleet(
    arguments: &FleetArguments,
    state_dir: Option<&Path>,
    hands: Hands<'_>,
) -> Result<Exit, Failure> {
    match &arguments.command {
        FleetCommand::Run(on) => on_hosts(&on.hosts, hands, |hands| {
            run::run(&on.verb, state_dir, hands)
        }),
        FleetCommand::Soak(on) => on_hosts(&on.hosts, hands, |hands| {
            soak::soak(&on.verb, state_dir, hands)
        }),
        FleetCommand::Sweep(on) => on_hosts(&on.hosts, hands, |hands| {
            sweep::sweep(&on.verb, state_dir, hands)
        }),
        FleetCommand::Xmax(on) => on_hosts(&on.hosts, hands, |hands| {
            xmax::xmax(&on.verb, state_dir, hands)
        }),
        FleetCommand::Slo(on) => on_hosts(&on.hosts, hands, |hands| {
            slo::slo(&on.verb, state_dir, hands)
        }),
        FleetCommand::Ab(on) => {
            on_hosts(&on.hosts, hands, |hands| ab::ab(&on.verb, state_dir, hands))
        }
        FleetCommand::Resume(on) => on_hosts(&on.hosts, hands, |hands| {
            resume::resume(&on.verb, state_dir, hands)
        }),
        FleetCommand::Render(arguments) => render(arguments),
    }
}

/// Does a verb, and takes everything away from the hosts whatever came of it.
fn on_hosts(
    hosts: &HostArguments,
    hands: Hands<'_>,
    verb: impl FnOnce(Hands<'_>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let surroundings = Surroundings {
        home: match hosts.kubernetes {
            true => ServerHome::Pods,
            false => ServerHome::Hosts,
        },
        ..hands.surroundings.clone()
    };
    let hands = Hands {
        surroundings: &surroundings,
        ..hands
    };
    let fleet = Fleet::new(hosts, &surroundings);
    let result = verb(Hands {
        fleet: Some(&fleet),
        ..hands
    });
    fleet.close(hands);
    result
}

fn render(arguments: &RenderArguments) -> Result<Exit, Failure> {
    let run = RunName::new(&arguments.run)?.to_string();
    check_run(&run)?;
    let request = Request {
        source: Some(arguments.plan.clone()),
        ..Request::default()
    };
    // How many cores the clients have is known in the pods.
    let pods = Surroundings {
        home: ServerHome::Pods,
        cores: 1,
        ..Surroundings::default()
    };
    let plan = resolve(&request, &pods)?.plan;
    let manifests = match arguments.system {
        RenderSystem::Kubernetes => kubernetes::render(&plan, &run, 1),
    };
    let manifests = manifests.map_err(|error| {
        Failure::of(Exit::BadInput, error).with_hint("an empty one is enough, see docs/plans.md")
    })?;
    let out = &arguments.out;
    let is_used = std::fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some());
    if is_used || out.is_file() {
        let text = format!("`{}` is not empty", out.display());
        return Err(
            Failure::new(Exit::BadInput, text).with_hint("choose another folder with `--out`")
        );
    }
    let mut written = String::new();
    for manifest in &manifests {
        let path = out.join(&manifest.path);
        let folder = path.parent().unwrap_or(out);
        std::fs::create_dir_all(folder).map_err(|error| {
            Failure::of(Exit::Environment, error)
                .context(format!("cannot make `{}`", folder.display()))
        })?;
        output::write_file(&path, &manifest.text)?;
        written.push_str(&format!("{}\n", path.display()));
    }
    print_data(&written)?;
    Ok(Exit::Done)
}
