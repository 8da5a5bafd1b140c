//! `dyno fleet`: runs commands on many hosts, and renders manifests for other systems. `dyno agent`: the part of a fleet on each
//! host.

use crate::args::fleet::{
    AgentArguments, FleetArguments, FleetCommand, HostArguments, RedisArguments, RenderArguments,
    RenderSystem,
};
use crate::commands::doctor::wanted;
use crate::commands::{experiments, run};
use crate::exit::Exit;
use crate::export::output::check_folder;
use crate::invocation::Invocation;
use crate::messages::print_data;
use crate::surroundings::Surroundings;
use crate::task::framework;
use dyno_engine::Error;
use dyno_engine::context::Context;
use dyno_engine::environment::{Environment, ServerHome};
use dyno_engine::observer::Shared;
use dyno_fleet::kubernetes::RenderOptions;
use dyno_fleet::names::RunName;
use dyno_fleet::options::{FleetOptions, Hidden, RedisOptions, WorkerOptions};
use dyno_fleet::permits::Permits;
use dyno_fleet::source::check_run_name;
use dyno_fleet::{Fleet, kubernetes, worker};
use dyno_plan::request::Request;
use dyno_plan::resolve::resolve;

/// Executes `dyno fleet`.
pub(crate) fn fleet(arguments: &FleetArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    match &arguments.command {
        FleetCommand::Run(typed) => {
            on_hosts(&typed.hosts, invocation, |invocation| run::run(&typed.verb, invocation))
        }
        FleetCommand::Soak(typed) => {
            on_hosts(&typed.hosts, invocation, |invocation| run::soak(&typed.verb, invocation))
        }
        FleetCommand::Experiment(command) => {
            experiments::execute(command, |hosts, verb| on_hosts(hosts, invocation, verb))
        }
        FleetCommand::Render(arguments) => render(arguments, invocation),
    }
}

/// Executes a command on the hosts, and cleans them up even after an error.
fn on_hosts(
    hosts: &HostArguments,
    invocation: Invocation<'_>,
    perform: impl FnOnce(Invocation<'_>) -> Result<Exit, Error>,
) -> Result<Exit, Error> {
    let mut surroundings = invocation.surroundings.clone();
    surroundings.environment.home =
        if hosts.kubernetes { ServerHome::Pods } else { ServerHome::Hosts };
    let options = FleetOptions {
        inventory: hosts.inventory.clone(),
        kubernetes: hosts.kubernetes,
        redis: redis(&hosts.redis, &surroundings),
        run: hosts.run.clone(),
        logs: hosts.logs.clone(),
        host_folder: hosts.host_folder.clone(),
        apply: wanted(&hosts.apply)?.unwrap_or_default(),
    };
    let fleet = Fleet::new(&options);
    let invocation = Invocation { surroundings: &surroundings, ..invocation };
    let on_fleet = Invocation { source: Some(&fleet), ..invocation };
    let result = perform(on_fleet);
    in_context(invocation, |context| fleet.close(context));
    result
}

/// Executes `dyno agent`: the part of one host in a run of a fleet.
pub(crate) fn agent(arguments: &AgentArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let options = WorkerOptions {
        redis: redis(&arguments.redis, invocation.surroundings),
        run: arguments.run.clone(),
        index: arguments.index,
        host: arguments.host.clone(),
        serve: arguments.serve,
        watch: arguments.watch.clone(),
        folder: arguments.folder.clone(),
        permits: Permits {
            programs: arguments.programs.iter().cloned().collect(),
            data_folders: arguments.data_folders.iter().cloned().collect(),
            parameters: arguments.parameters.iter().cloned().collect(),
            cards: arguments.cards.iter().cloned().collect(),
            open: arguments.without_password,
            plain: arguments.without_tls,
            listen: arguments.listen,
            members: arguments.members.iter().cloned().collect(),
            targets: arguments.targets.iter().cloned().collect(),
        },
        apply: wanted(&arguments.apply)?.unwrap_or_default(),
        secrets: arguments.secrets.clone(),
        remove_folder: arguments.remove_folder,
        join_within: arguments.join_within.0,
        embedded_server: arguments.embedded_server.clone(),
    };
    in_context(invocation, |context| worker::work(&options, context))?;
    Ok(Exit::Done)
}

/// Converts the Redis options; variables provide an address with a password.
fn redis(arguments: &RedisArguments, surroundings: &Surroundings) -> RedisOptions {
    RedisOptions {
        public_address: arguments.redis.as_deref().map(Hidden::new),
        secret_address: surroundings.redis.clone(),
        address_file: surroundings.redis_file.clone(),
        authority: arguments.redis_ca.clone(),
        insecure: arguments.insecure_redis,
    }
}

/// Calls `work` with a context that prints messages on the terminal.
fn in_context<T>(invocation: Invocation<'_>, work: impl FnOnce(Context<'_>) -> T) -> T {
    let mut messages = invocation.messages;
    let observer = Shared::new(&mut messages);
    work(Context {
        environment: invocation.environment(),
        cancel: invocation.cancel,
        observer: &observer,
        source: None,
    })
}

fn render(arguments: &RenderArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let run = RunName::new(&arguments.run)?.to_string();
    check_run_name(&run)?;
    // The number of client cores is known only in the pods.
    let environment = Environment { home: ServerHome::Pods, cores: 1, ..Environment::default() };
    let surroundings = Surroundings { environment, ..invocation.surroundings.clone() };
    let request = Request {
        source: arguments.plan.clone(),
        wsf: arguments.wsf.map(|wsf| framework(wsf, &surroundings)),
        ..Request::default()
    };
    let task = resolve(&request, &surroundings.environment)?;
    for warning in &task.warnings {
        invocation.messages.warning(warning);
    }
    let plan = task.plan;
    let permits = Permits::of(&plan.server);
    let options = RenderOptions::of(&plan, &permits, &run);
    let manifests = match arguments.system {
        RenderSystem::Kubernetes => kubernetes::render(&plan, &options),
    };
    let manifests = manifests?;
    check_folder(&arguments.out)?;
    let mut written = String::new();
    for manifest in &manifests {
        written.push_str(&format!("{}\n", manifest.write(&arguments.out)?.display()));
    }
    print_data(&written)?;
    Ok(Exit::Done)
}
