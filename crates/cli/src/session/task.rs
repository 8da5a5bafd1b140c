//! What is to be done, and against which server: options, plan and connection string put together.
//! Credentials stay apart from the plan from here on.

use crate::args::{
    BackendName, ClientArguments, DataArguments, ExperimentArguments, IndexBuildArguments,
    ObserveArguments, RemedyName, RunArguments, ScheduleName, ServerName, SoakArguments,
    StartArguments, TailArguments, TailModeName, TargetArguments, WorkerArguments,
};
use crate::exit::{Exit, Failure};
use crate::messages::Messages;
use crate::session::{choice, framework, locality};
use crate::surroundings::Surroundings;
use dyno_plan::Plan;
use dyno_plan::builtin;
use dyno_plan::model::{
    Backend, ClientPlan, ExporterPlan, PhasePlan, ServerKind, TracePhase, TracePlan,
};
use dyno_plan::resolve::{self, Overrides, PlanError, ScheduleKind};
use dyno_plan::task::{Remote, Task, Threads};
use dyno_plan::units::Span;
use dyno_plan::uri::Target;
use dyno_plan::validate::validate;
use dyno_plan::wsf::{TraceWindow, WsfSettings};

/// Says what the person should know about a task.
pub(crate) fn tell(task: &Task, messages: Messages) {
    for warning in &task.warnings {
        messages.warning(warning);
    }
    for note in &task.notes {
        messages.note(note);
    }
}

/// How long a soak lasts, and how long its server may be away, unless something else is said.
const SOAK_DURATION: Span = Span::from_secs(3_600);
const SOAK_GIVE_UP: Span = Span::from_secs(300);

/// Resolves what was typed after `dyno soak`.
pub(crate) fn of_soak(
    arguments: &SoakArguments,
    surroundings: &Surroundings,
) -> Result<Task, Failure> {
    let mut task = resolve_run(&arguments.run, surroundings, |_| {})?;
    let usual = usual_phases(arguments.run.target.workload.as_deref());
    let phases = &mut task.plan.phases;
    let is_usual = phases.duration == usual.duration && phases.operations == usual.operations;
    if is_usual && !says_how_long(&arguments.run) {
        phases.duration = Some(SOAK_DURATION);
    }
    let client = &mut task.plan.client;
    match arguments.give_up {
        Some(give_up) => client.give_up = give_up,
        None if client.give_up == ClientPlan::default().give_up => client.give_up = SOAK_GIVE_UP,
        None => {}
    }
    check(&task.plan)?;
    Ok(task)
}

/// How long a workload is measured if nobody says it.
fn usual_phases(workload: Option<&str>) -> PhasePlan {
    let is_builtin = |name: &&str| builtin::names().any(|known| known == *name);
    workload
        .filter(is_builtin)
        .and_then(|name| resolve::resolve(name, &Overrides::default()).ok())
        .map_or_else(PhasePlan::default, |resolved| resolved.plan.phases)
}

/// Whether the end of the measured time was typed, be it the usual one.
fn says_how_long(arguments: &RunArguments) -> bool {
    let mut settings = arguments.target.start.settings.iter();
    arguments.duration.is_some()
        || arguments.operations.is_some()
        || settings.any(|(key, _)| key == "phases.duration" || key == "phases.operations")
}

/// Resolves what was typed after `dyno run`.
pub(crate) fn of_run(
    arguments: &RunArguments,
    surroundings: &Surroundings,
) -> Result<Task, Failure> {
    resolve_run(arguments, surroundings, |_| {})
}

fn resolve_run(
    arguments: &RunArguments,
    surroundings: &Surroundings,
    adjust: impl FnOnce(&mut Overrides),
) -> Result<Task, Failure> {
    let mut overrides = Overrides {
        operations: arguments.operations,
        duration: arguments.duration,
        warmup: arguments.warmup,
        rate_per_s: arguments.rate.map(|rate| rate.0),
        schedule: arguments.schedule.map(schedule_kind),
        tolerated_error_ratio: arguments.tolerate_errors,
        ..overrides(&arguments.target, &arguments.client, &arguments.data)
    };
    if let Some(card) = &arguments.rps {
        let key = "server.receive_packet_steering";
        overrides.settings.push((key.into(), card.clone()));
    }
    adjust(&mut overrides);
    let framework = framework::lay_below(&arguments.target, &mut overrides, surroundings)?;
    let mut task = resolve_task(
        &arguments.target,
        overrides,
        surroundings,
        framework.as_ref(),
    )?;
    let window = framework.and_then(|framework| framework.trace);
    if let Some(window) = &window {
        move_traces(&mut task.plan, window);
        if task.plan.traces.is_empty() && arguments.trace.is_none() {
            let note =
                "no program watches in the window of `EVENT_TRACE_PARAMS`: name one by `--trace`";
            task.notes.push(note.into());
        }
    }
    if let Some(command) = &arguments.trace {
        trace_with(&mut task.plan, command, window.as_ref());
    }
    watch_with(&mut task.plan, &arguments.observe);
    check(&task.plan)?;
    Ok(task)
}

/// Puts what was typed about watching over the plan.
fn watch_with(plan: &mut Plan, arguments: &ObserveArguments) {
    let observe = &mut plan.observe;
    if let Some(interval) = arguments.observe_interval {
        observe.interval = interval;
    }
    if arguments.no_observe {
        (observe.host, observe.server) = (false, false);
    }
    for text in &arguments.exporters {
        // A name comes before the address, and an address may hold `=` only after its scheme.
        let named = text
            .split_once('=')
            .filter(|(name, _)| !name.contains("://"));
        let number = observe.exporters.len() + 1;
        let (name, url) = match named {
            Some((name, url)) => (name.to_owned(), url),
            None => (format!("exporter-{number}"), text.as_str()),
        };
        let exporter = ExporterPlan::open(name, url.to_owned());
        observe.exporters.push(exporter);
    }
}

/// Moves the trace windows of a plan.
fn move_traces(plan: &mut Plan, window: &TraceWindow) {
    for trace in &mut plan.traces {
        (trace.phase, trace.from, trace.length) = (window.phase, window.from, window.length);
    }
}

/// Puts a shell command into the trace windows of a plan; if it has none, into this one, or the
/// measure phase.
fn trace_with(plan: &mut Plan, command: &str, window: Option<&TraceWindow>) {
    if plan.traces.is_empty() {
        plan.traces.push(TracePlan {
            name: "trace".into(),
            command: Vec::new(),
            phase: TracePhase::Measure,
            from: Span::from_secs(0),
            length: None,
        });
        if let Some(window) = window {
            move_traces(plan, window);
        }
    }
    for trace in &mut plan.traces {
        // Without `exec`: more than one program, and assignments, are commands too.
        trace.command = vec!["sh".into(), "-c".into(), command.to_owned()];
    }
}

/// Resolves what was typed after `dyno load`.
pub(crate) fn of_load(
    target: &TargetArguments,
    client: &ClientArguments,
    data: &DataArguments,
    surroundings: &Surroundings,
) -> Result<Task, Failure> {
    let mut overrides = overrides(target, client, data);
    let framework = framework::lay_below(target, &mut overrides, surroundings)?;
    resolve_task(target, overrides, surroundings, framework.as_ref())
}

fn overrides(
    target: &TargetArguments,
    client: &ClientArguments,
    data: &DataArguments,
) -> Overrides {
    Overrides {
        clients: client.clients,
        ..worker_overrides(target, &client.worker, data)
    }
}

fn worker_overrides(
    target: &TargetArguments,
    worker: &WorkerArguments,
    data: &DataArguments,
) -> Overrides {
    Overrides {
        records: data.records,
        threads: worker.threads,
        backend: worker.backend.map(|backend| match backend {
            BackendName::Wire => Backend::Wire,
            BackendName::Driver => Backend::Driver,
        }),
        seed: worker.seed,
        timeout: worker.timeout,
        batch: data.batch,
        properties: target.properties.clone(),
        lenient: target.lenient,
        ..start_overrides(&target.start)
    }
}

/// Resolves what was typed after the verb of an experiment. `settings` are single keys of the plan.
pub(crate) fn of_experiment(
    arguments: &ExperimentArguments,
    settings: &[(String, String)],
    schedule: Option<(ScheduleName, f64)>,
    surroundings: &Surroundings,
) -> Result<Task, Failure> {
    let mut target = arguments.target.clone();
    target.start.settings = settings.to_vec();
    let mut overrides = Overrides {
        duration: arguments.duration,
        warmup: arguments.warmup,
        schedule: schedule.map(|(name, _)| schedule_kind(name)),
        rate_per_s: schedule.map(|(_, rate_per_s)| rate_per_s),
        ..worker_overrides(&target, &arguments.worker, &arguments.data)
    };
    let framework = framework::lay_below(&target, &mut overrides, surroundings)?;
    resolve_task(&target, overrides, surroundings, framework.as_ref())
}

/// The task of a plan that was resolved before. The address may be another one by now, and credentials are in
/// `uri` only.
pub(crate) fn of_plan(
    mut plan: Plan,
    threads: Option<Threads>,
    uri: Option<&str>,
) -> Result<Task, Failure> {
    let mut warnings = Vec::new();
    let remote = match (uri, &plan.server.uri) {
        (Some(uri), Some(known)) => {
            let remote = Remote::parse(uri)?;
            let target = remote.target.to_string();
            if target != *known {
                let text = format!(
                    "the runs that are done were made at `{known}`, the rest is made at `{target}`"
                );
                warnings.push(text);
                aim(&mut plan, &remote);
            }
            Some(remote)
        }
        (None, Some(known)) => Some(Remote::parse(known)?),
        (Some(_), None) => {
            warnings.push("`--uri` has no effect: the experiment starts its servers".into());
            None
        }
        (None, None) => None,
    };
    check(&plan)?;
    Ok(Task {
        threads: threads.unwrap_or(Threads::Given(plan.client.threads)),
        plan,
        remote,
        warnings,
        notes: Vec::new(),
        server: None,
    })
}

/// Resolves what was typed after `dyno index-build`.
pub(crate) fn of_index_build(
    arguments: &IndexBuildArguments,
    surroundings: &Surroundings,
) -> Result<Task, Failure> {
    let given = arguments.uri.as_deref().map(Remote::parse).transpose()?;
    let mut overrides = Overrides {
        records: arguments.records,
        seed: arguments.seed,
        uri: given.as_ref().map(|remote| remote.target.to_string()),
        ..start_overrides(&arguments.start)
    };
    let mut set = |key: &str, value: String| overrides.settings.push((key.to_owned(), value));
    if let Some((database, collection)) = &arguments.collection {
        set("data.database", toml_text(database));
        set("data.collection", toml_text(collection));
    }
    if let Some(keys) = &arguments.keys {
        set("index_build.keys", toml_text(keys));
    }
    if arguments.warm {
        set("index_build.start", "warm".to_owned());
    }
    if let Some(remedy) = arguments.remedy {
        let name = match remedy {
            RemedyName::Rewrite => "rewrite",
            RemedyName::NaturalCopy => "natural-copy",
            RemedyName::Dump => "dump",
            RemedyName::Compact => "compact",
        };
        set("index_build.remedy", name.to_owned());
    }
    if let Some(per_s) = arguments.iops {
        set("index_build.disk_iops", per_s.to_string());
    }
    let source = match arguments.collection {
        Some(_) => "existing",
        None => &arguments.layout,
    };
    let resolved = resolve::resolve_index_build(source, &overrides)?;
    let mut task = on_one_server(resolved.plan, given, &arguments.start, surroundings)?;
    task.warnings = resolved.warnings;
    if let (Some(_), Some((database, _))) = (&task.remote, &arguments.collection) {
        task.plan.data.database.clone_from(database);
    }
    Ok(task)
}

/// The task of a plan whose work is done on one server or deployment: on that of the address that was `given`, of the one that
/// the plan names, or of one that is started.
fn on_one_server(
    mut plan: Plan,
    given: Option<Remote>,
    start: &StartArguments,
    surroundings: &Surroundings,
) -> Result<Task, Failure> {
    let remote = match given {
        Some(remote) => Some(remote),
        None => plan.server.uri.as_deref().map(Remote::parse).transpose()?,
    };
    if let Some(remote) = &remote {
        aim(&mut plan, remote);
    }
    let mut notes = Vec::new();
    let server = settle_server(&mut plan, start, surroundings, &mut notes)?;
    absolute(&mut plan, start)?;
    check(&plan)?;
    plan.server.settle_topology();
    if remote.is_none() && plan.server.pairs > 1 {
        let text = match plan.tail {
            Some(_) => {
                "messages go through one server or one deployment, not through several at once"
            }
            None => "an index is built on one server or one deployment, not on several at once",
        };
        return Err(Failure::new(Exit::BadInput, text).with_hint("leave `--pairs` out"));
    }
    Ok(Task {
        threads: Threads::Given(plan.client.threads),
        plan,
        remote,
        warnings: Vec::new(),
        notes,
        server,
    })
}

/// Resolves what was typed after `dyno tail`.
pub(crate) fn of_tail(
    arguments: &TailArguments,
    surroundings: &Surroundings,
) -> Result<Task, Failure> {
    let given = arguments.uri.as_deref().map(Remote::parse).transpose()?;
    let mut overrides = Overrides {
        seed: arguments.seed,
        uri: given.as_ref().map(|remote| remote.target.to_string()),
        ..start_overrides(&arguments.start)
    };
    let mut set = |key: &str, value: Option<String>| {
        let settings = &mut overrides.settings;
        settings.extend(value.map(|value| (format!("tail.{key}"), value)));
    };
    let texts = |list: &[String]| {
        let list: Vec<&str> = list.iter().map(|text| text.trim()).collect();
        (!list.is_empty()).then(|| serde_json::Value::from(list).to_string())
    };
    set("producers", texts(&arguments.producer));
    set("consumers", texts(&arguments.consumer));
    set("in_flight", texts(&arguments.in_flight));
    let pool = &arguments.pool;
    set("pool", (!pool.is_empty()).then(|| format!("{pool:?}")));
    set("messages", arguments.messages.map(|n| n.to_string()));
    set("rate_per_s", arguments.rate.map(|rate| format!("{rate:?}")));
    set(
        "producers_at_once",
        arguments.producers.map(|n| n.to_string()),
    );
    set(
        "consumers_at_once",
        arguments.consumers.map(|n| n.to_string()),
    );
    for (key, text) in [
        ("producer_host", &arguments.producer_host),
        ("consumer_host", &arguments.consumer_host),
        ("host_drivers", &arguments.host_drivers),
    ] {
        set(key, text.as_deref().map(toml_text));
    }
    set("size", arguments.size.map(|size| size.0.to_string()));
    set(
        "capped_size",
        arguments.capped_size.map(|size| size.0.to_string()),
    );
    set(
        "write_concern",
        arguments.write_concern.as_deref().map(toml_text),
    );
    set(
        "work",
        arguments.work.map(|span| toml_text(&span.to_string())),
    );
    let mode = arguments.mode.map(|mode| match mode {
        TailModeName::Tailable => "tailable",
        TailModeName::ChangeStream => "change-stream",
        TailModeName::Poll => "poll",
    });
    set("mode", mode.map(str::to_owned));
    let plan = resolve::resolve_tail(&arguments.plan, &overrides)?.plan;
    on_one_server(plan, given, &arguments.start, surroundings)
}

/// Refuses the plan of an index build or of messages where a load is asked for.
fn check_is_load(plan: &Plan) -> Result<(), Failure> {
    let (what, command) = match (&plan.index_build, &plan.tail) {
        (None, None) => return Ok(()),
        (Some(_), _) => ("an index build (`index_build`)", "dyno index-build"),
        (None, Some(_)) => ("messages (`tail`)", "dyno tail"),
    };
    let hint = format!("give it to `{command}`, or take the table out");
    Err(Failure::new(Exit::BadInput, format!("the plan is one of {what}")).with_hint(hint))
}

/// What the options say about the servers that are started.
fn start_overrides(start: &StartArguments) -> Overrides {
    Overrides {
        pairs: start.pairs,
        settings: settings(start),
        placement: start.placement.clone(),
        server: start.server.map(|server| match server {
            ServerName::Auto => ServerKind::Auto,
            ServerName::Embedded => ServerKind::Embedded,
            ServerName::Mongod => ServerKind::Mongod,
        }),
        mongod: start.mongod.clone(),
        ..Overrides::default()
    }
}

/// The plan of servers that stay: of a plan its `[server]` table and its collection, which a cluster
/// shards.
pub(crate) fn of_server(
    workload: Option<&str>,
    start: &StartArguments,
    surroundings: &Surroundings,
) -> Result<Plan, Failure> {
    let mut resolved = resolve::resolve(workload.unwrap_or(ANY_WORKLOAD), &start_overrides(start))?;
    let server = &mut resolved.plan.server;
    if server.kind == ServerKind::Uri {
        let text = "the plan aims at a server that runs already, so that there is nothing to start";
        return Err(Failure::new(Exit::BadInput, text).with_hint("give `--server auto`"));
    }
    choice::settle(
        &mut resolved.plan,
        start.embedded_server.as_deref(),
        surroundings,
    )?;
    absolute(&mut resolved.plan, start)?;
    check(&resolved.plan)?;
    resolved.plan.server.settle_topology();
    Ok(resolved.plan)
}

/// Built in, and its servers are the default ones.
const ANY_WORKLOAD: &str = "a";

/// Takes over the data folder, and makes paths valid in every working folder.
fn absolute(plan: &mut Plan, start: &StartArguments) -> Result<(), Failure> {
    let server = &mut plan.server;
    if let Some(folder) = &start.data_dir {
        server.data_dir = Some(folder.clone());
    }
    let paths = [&mut server.data_dir, &mut server.mongos];
    let paths = paths.into_iter().flatten().chain(&mut server.data_dirs);
    for path in paths {
        let full = std::path::absolute(&*path).map_err(|error| {
            Failure::of(Exit::Environment, error).context(format!("cannot use `{path}`"))
        })?;
        *path = full.into_os_string().into_string().map_err(|path| {
            let path = path.display().to_string();
            Failure::new(Exit::BadInput, format!("`{path}` is no UTF-8 text"))
        })?;
    }
    Ok(())
}

/// Options that stand for a key of the plan, and the keys themselves, which win.
fn settings(start: &StartArguments) -> Vec<(String, String)> {
    let quoted = |text: &String| toml_text(text);
    let options = [
        ("server.topology", start.topology.as_ref().map(quoted)),
        ("server.mongos", start.mongos.as_ref().map(quoted)),
        (
            "server.cache",
            start.cache.map(|cache| toml_text(&cache.to_string())),
        ),
        ("server.encryption", start.tls.then(|| "server".into())),
        ("server.auth", start.auth.then(|| "true".into())),
    ];
    let options = options
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)));
    options.chain(start.settings.iter().cloned()).collect()
}

/// A text that is taken as such, whatever it looks like.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn schedule_kind(name: ScheduleName) -> ScheduleKind {
    match name {
        ScheduleName::Closed => ScheduleKind::Closed,
        ScheduleName::Constant => ScheduleKind::Constant,
        ScheduleName::Poisson => ScheduleKind::Poisson,
    }
}

fn resolve_task(
    arguments: &TargetArguments,
    mut overrides: Overrides,
    surroundings: &Surroundings,
    framework: Option<&WsfSettings>,
) -> Result<Task, Failure> {
    let workload = match framework {
        Some(framework) => framework.workload.as_str(),
        None => arguments.workload.as_deref().unwrap_or_default(),
    };
    let resolve = |overrides: &Overrides| {
        resolve::resolve(workload, overrides).map_err(|error| framework::explain(error, framework))
    };
    let given = arguments.uri.as_deref().map(Remote::parse).transpose()?;
    overrides.uri = given.as_ref().map(|remote| remote.target.to_string());
    overrides.thread_limit = Some(local_threads(surroundings.cores));
    let resolved = resolve(&overrides)?;
    let gives_threads = resolved.gives_threads;
    let mut plan = resolved.plan;
    check_is_load(&plan)?;
    let mut warnings = resolved.warnings;
    let mut cores = local_threads(surroundings.cores);
    let mut notes = Vec::new();
    if let Some(framework) = framework {
        warnings.splice(0..0, framework.warnings.iter().cloned());
        notes.clone_from(&framework.notes);
    }
    let remote = match (given, resolved.uri) {
        (Some(remote), _) => Some(remote),
        (None, Some(text)) => Some(Remote::parse(&text)?),
        (None, None) => plan.server.uri.as_deref().map(Remote::parse).transpose()?,
    };
    if let Some(remote) = &remote {
        aim(&mut plan, remote);
        if !locality::is_local(remote, surroundings.hostname.as_deref()) {
            cores = surroundings.cores;
            overrides.thread_limit = Some(cores);
            plan.client.threads = resolve(&overrides)?.plan.client.threads;
        }
    } else if arguments
        .properties
        .iter()
        .any(|(name, _)| name == "mongodb.url")
    {
        warnings.push("`mongodb.url` has no effect, because `--server` starts a server".into());
    }
    if let Some(folder) = &arguments.start.data_dir {
        plan.server.data_dir = Some(folder.clone());
    }
    let server = settle_server(&mut plan, &arguments.start, surroundings, &mut notes)?;
    check(&plan)?;
    plan.server.settle_topology();
    if remote.is_none() && plan.server.pairs > 1 {
        // The clients share what one would have, unless somebody says how many threads there shall be.
        overrides.thread_limit = Some(Threads::Shared(cores).most(plan.server.pairs));
        plan.client.threads = resolve(&overrides)?.plan.client.threads;
    }
    let threads = match gives_threads {
        true => Threads::Given(plan.client.threads),
        false => Threads::Shared(cores),
    };
    Ok(Task {
        plan,
        remote,
        warnings,
        notes,
        threads,
        server,
    })
}

/// Decides which server the plan starts; where nobody said its kind, the person is told.
fn settle_server(
    plan: &mut Plan,
    start: &StartArguments,
    surroundings: &Surroundings,
    notes: &mut Vec<String>,
) -> Result<Option<String>, Failure> {
    let is_open = plan.server.kind == ServerKind::Auto;
    let server = choice::settle(plan, start.embedded_server.as_deref(), surroundings)?;
    if is_open && let Some(server) = &server {
        notes.push(format!("server: {server}"));
    }
    Ok(server)
}

/// Half of the cores are left to a server on the same machine.
pub(crate) fn local_threads(cores: u32) -> u32 {
    (cores / 2).max(1)
}

/// Makes the plan one for a server that runs already.
pub(crate) fn aim(plan: &mut Plan, remote: &Remote) {
    plan.server.kind = ServerKind::Uri;
    plan.server.uri = Some(remote.target.to_string());
    if let Some(database) = remote
        .target
        .database
        .as_deref()
        .filter(|database| *database != "admin")
    {
        plan.data.database = database.to_owned();
    }
}

/// Keeps `maxPoolSize`: more clients than connections would only wait for each other.
pub(crate) fn limit_clients(plan: &mut Plan, target: &Target) -> Option<String> {
    let limit = target.options.max_pool_size?;
    let client = &mut plan.client;
    let asked = client.clients.max(client.load_clients.unwrap_or(0));
    client.clients = client.clients.min(limit);
    client.threads = client.threads.min(client.clients);
    client.load_clients = client.load_clients.map(|clients| clients.min(limit));
    (asked > limit).then(|| format!("`maxPoolSize={limit}` in the connection string limits the clients to {limit} (asked for: {asked})"))
}

/// All problems of the plan as an error.
pub(crate) fn check(plan: &Plan) -> Result<(), Failure> {
    let problems = validate(plan);
    if problems.is_empty() {
        return Ok(());
    }
    Err(PlanError::Invalid(problems).into())
}

/// Refuses to throw the data away before each run and to load none.
pub(crate) fn check_loads_what_it_drops(plan: &Plan, no_load: bool) -> Result<(), Failure> {
    if !no_load || !plan.data.fresh.is_for_each_run() {
        return Ok(());
    }
    let text = "the plan drops the data before each run (`data.fresh`), and `--no-load` loads none";
    Err(Failure::new(Exit::BadInput, text).with_hint("leave one of them out"))
}

/// Refuses to load into a server that is thrown away afterwards.
pub(crate) fn check_data_stays(plan: &Plan) -> Result<(), Failure> {
    let server = &plan.server;
    let is_kept = server.data_dir.is_some() || !server.data_dirs.is_empty();
    if server.kind == ServerKind::Uri || is_kept {
        return Ok(());
    }
    let failure = Failure::new(
        Exit::BadInput,
        "the data would be loaded into a server that is removed at once",
    );
    Err(failure.with_hint("aim at a server with `--uri`, or keep the data with `--data-dir DIR`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Arguments, Command};
    use crate::surroundings::ServerHome;
    use clap::Parser;

    fn task(cores: u32, arguments: &[&str]) -> Result<Task, Failure> {
        let all = ["dyno", "run", "a"].iter().chain(arguments);
        let Command::Run(run) = Arguments::parse_from(all).command else {
            panic!("not a run")
        };
        of_run(&run, &surroundings(cores))
    }

    fn surroundings(cores: u32) -> Surroundings {
        Surroundings {
            cores,
            hostname: Some("bench".into()),
            // Here the embedded server is taken unseen, whatever this machine has.
            home: ServerHome::Hosts,
            ..Surroundings::default()
        }
    }

    #[test]
    fn a_soak_lasts_an_hour_unless_somebody_says_something_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let long = file(
            "long.toml",
            "name = \"long\"\n[operations]\nread = 1.0\n[phases]\nduration = \"8h\"\n[client]\ngive_up = \"9m\"\n",
        );
        let plain = file("plain.toml", "name = \"plain\"\n[operations]\nread = 1.0\n");
        let lengths = |arguments: &[&str]| {
            let all = ["dyno", "soak"].iter().chain(arguments);
            let Command::Soak(soak) = Arguments::parse_from(all).command else {
                panic!("not a soak")
            };
            let plan = of_soak(&soak, &surroundings(2)).unwrap().plan;
            let seconds = plan.phases.duration.map(|length| length.0.as_secs());
            (
                seconds,
                plan.phases.operations,
                plan.client.give_up.0.as_secs(),
            )
        };
        assert_eq!(lengths(&["a"]), (Some(3_600), None, 300));
        assert_eq!(lengths(&["pkm"]), (Some(3_600), None, 300));
        assert_eq!(lengths(&["a", "--duration", "30s"]), (Some(30), None, 300));
        assert_eq!(lengths(&["a", "--set", "phases.duration=30s"]).0, Some(30));
        assert_eq!(lengths(&["a", "--operations", "5"]), (None, Some(5), 300));
        assert_eq!(lengths(&["a", "--give-up", "7s"]).2, 7);
        assert_eq!(lengths(&["a", "--set", "client.give_up=8s"]).2, 8);
        assert_eq!(lengths(&[&plain]), (Some(3_600), None, 300));
        assert_eq!(lengths(&[&long]), (Some(8 * 3_600), None, 540));
        assert_eq!(lengths(&[&long, "--duration", "2h"]).0, Some(7_200));
    }

    #[test]
    fn credentials_stay_out_of_the_plan() {
        let task = task(
            2,
            &[
                "--uri",
                "mongodb://me:secret@db.example/shop?authSource=admin",
            ],
        )
        .expect("it is valid");
        let text = format!("{:?}{}", task.plan, dyno_plan::file::to_toml(&task.plan));
        assert!(
            !text.contains("secret") && !text.contains("me@") && !text.contains("me:s"),
            "{text}"
        );
        let remote = task.remote.expect("there is an address");
        assert_eq!(
            remote.credentials.expect("a user is named").password(),
            "secret"
        );
        assert_eq!(task.plan.server.kind, ServerKind::Uri);
        assert_eq!(task.plan.data.database, "shop");
    }

    #[test]
    fn the_database_admin_is_for_authentication_only() {
        let task = task(2, &["--uri", "mongodb://h/admin"]).expect("it is valid");
        assert_eq!(task.plan.data.database, "ycsb");
    }

    #[test]
    fn a_server_elsewhere_leaves_all_cores_to_the_client() {
        let threads = |uri: &str| {
            task(8, &["--uri", uri])
                .expect("it is valid")
                .plan
                .client
                .threads
        };
        assert_eq!(threads("mongodb://db.example"), 8);
        assert_eq!(threads("mongodb://127.0.0.1"), 4);
        assert_eq!(threads("mongodb://[::1]:3"), 4);
        assert_eq!(threads("mongodb://Bench"), 4);
        assert_eq!(threads("mongodb://%2Ftmp%2Fm.sock"), 4);
        assert_eq!(task(8, &[]).expect("it is valid").plan.client.threads, 4);
        assert_eq!(task(1, &[]).expect("it is valid").plan.client.threads, 1);
    }

    #[test]
    fn a_number_of_threads_that_was_asked_for_stays() {
        let task =
            task(8, &["--uri", "mongodb://db.example", "--threads", "3"]).expect("it is valid");
        assert_eq!(task.plan.client.threads, 3);
    }

    #[test]
    fn clients_of_several_servers_share_the_threads_however_the_servers_are_given() {
        let threads = |more: &[&str]| task(8, more).expect("it is valid").plan.client.threads;
        assert_eq!(threads(&["--pairs", "2"]), 2);
        assert_eq!(threads(&["--topology", "pairs=2"]), 2);
        assert_eq!(threads(&["--set", "server.pairs=2"]), 2);
        assert_eq!(threads(&["--pairs", "2", "--threads", "4"]), 4);
        assert_eq!(threads(&["--pairs", "2", "--set", "client.threads=3"]), 3);
    }

    #[test]
    fn the_size_of_the_pool_limits_the_clients_of_ycsb_and_says_so() {
        let mut plan = task(8, &["--clients", "9"]).expect("it is valid").plan;
        let remote = Remote::parse("mongodb://h/?maxPoolSize=3").expect("it is valid");
        let warning = limit_clients(&mut plan, &remote.target).expect("there are too many");
        assert_eq!((plan.client.clients, plan.client.threads), (3, 3));
        assert!(warning.contains("maxPoolSize=3"), "{warning}");
        assert_eq!(limit_clients(&mut plan, &remote.target), None);
        assert!(
            task(
                8,
                &["--uri", "mongodb://h/?maxPoolSize=3", "--clients", "9"]
            )
            .is_err()
        );
    }

    #[test]
    fn an_address_among_the_properties_is_used_unless_a_server_is_started() {
        let property = "mongodb.url=mongodb://me:secret@localhost/x";
        let task_with_uri = task(2, &["-p", property]).expect("it is valid");
        assert_eq!(task_with_uri.plan.data.database, "x");
        assert!(
            task_with_uri
                .remote
                .is_some_and(|remote| remote.credentials.is_some())
        );
        let started = task(2, &["-p", property, "--server", "embedded"]).expect("it is valid");
        assert!(started.remote.is_none());
        assert!(
            started
                .warnings
                .iter()
                .any(|warning| warning.contains("mongodb.url"))
        );
    }

    #[test]
    fn loading_into_a_server_that_is_thrown_away_is_refused() {
        let plan = task(2, &[]).expect("it is valid").plan;
        assert_eq!(
            check_data_stays(&plan)
                .expect_err("nothing would stay")
                .exit,
            Exit::BadInput
        );
        let kept = task(2, &["--data-dir", "/d"]).expect("it is valid").plan;
        assert!(check_data_stays(&kept).is_ok());
    }
}
