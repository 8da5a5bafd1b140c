//! `dyno fleet`: the verbs of this program on many hosts, and what other systems need for them.

use crate::args::{FleetArguments, FleetCommand, HostArguments, RenderArguments, RenderSystem};
use crate::commands::{ab, resume, run, slo, soak, sweep, xmax};
use crate::exit::{Exit, Failure};
use crate::fleet::{Fleet, check_run};
use crate::invocation::Invocation;
use crate::messages::print_data;
use crate::reports;
use crate::surroundings::{ServerHome, Surroundings};
use dyno_engine::deployment::choice;
use dyno_fleet::kubernetes;
use dyno_fleet::names::RunName;
use dyno_plan::resolve::{self, Overrides};
use std::path::Path;

/// See the module.
pub(crate) fn fleet(
    arguments: &FleetArguments,
    state_dir: Option<&Path>,
    invocation: Invocation<'_>,
) -> Result<Exit, Failure> {
    match &arguments.command {
        FleetCommand::Run(on) => on_hosts(&on.hosts, invocation, |invocation| {
            run::run(&on.verb, state_dir, invocation)
        }),
        FleetCommand::Soak(on) => on_hosts(&on.hosts, invocation, |invocation| {
            soak::soak(&on.verb, state_dir, invocation)
        }),
        FleetCommand::Sweep(on) => on_hosts(&on.hosts, invocation, |invocation| {
            sweep::sweep(&on.verb, state_dir, invocation)
        }),
        FleetCommand::Xmax(on) => on_hosts(&on.hosts, invocation, |invocation| {
            xmax::xmax(&on.verb, state_dir, invocation)
        }),
        FleetCommand::Slo(on) => on_hosts(&on.hosts, invocation, |invocation| {
            slo::slo(&on.verb, state_dir, invocation)
        }),
        FleetCommand::Ab(on) => on_hosts(&on.hosts, invocation, |invocation| {
            ab::ab(&on.verb, state_dir, invocation)
        }),
        FleetCommand::Resume(on) => on_hosts(&on.hosts, invocation, |invocation| {
            resume::resume(&on.verb, state_dir, invocation)
        }),
        FleetCommand::Render(arguments) => render(arguments),
    }
}

/// Does a verb, and takes everything away from the hosts whatever came of it.
fn on_hosts(
    hosts: &HostArguments,
    invocation: Invocation<'_>,
    verb: impl FnOnce(Invocation<'_>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let surroundings = Surroundings {
        home: match hosts.kubernetes {
            true => ServerHome::Pods,
            false => ServerHome::Hosts,
        },
        ..invocation.surroundings.clone()
    };
    let invocation = Hands {
        surroundings: &surroundings,
        ..invocation
    };
    let fleet = Fleet::new(hosts, &surroundings);
    let result = verb(Hands {
        fleet: Some(&fleet),
        ..invocation
    });
    fleet.close(invocation);
    result
}

fn render(arguments: &RenderArguments) -> Result<Exit, Failure> {
    let run = RunName::new(&arguments.run)?.to_string();
    check_run(&run)?;
    let mut plan = resolve::resolve(&arguments.plan, &Overrides::default())?.plan;
    let pods = Surroundings {
        home: ServerHome::Pods,
        ..Surroundings::default()
    };
    choice::settle(&mut plan, None, &pods)?;
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
        reports::write_file(&path, &manifest.text)?;
        written.push_str(&format!("{}\n", path.display()));
    }
    print_data(&written)?;
    Ok(Exit::Done)
}
