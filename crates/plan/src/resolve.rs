//! Resolves a [`Request`] and the machine to a [`Task`] in one pass.
//!
//! Opens the plan and applies all typed values; the address shows whether the server is local; the
//! whole plan is checked; then the machine chooses the server to start, and values that depend on
//! it are set.

mod framework;
mod open;
mod options;
#[cfg(test)]
mod tests;

pub use crate::error::PlanError;
use crate::file;
use crate::host::{FoundServer, Host, WantedServer};
use crate::model::{Backend, Plan, ScheduleKind, ServerKind};
use crate::problem::Problem;
use crate::request::{Overrides, Request, Setting, SettingValue, Work};
use crate::strangers;
use crate::task::{Remote, Task, Threads, check};
use crate::topology::Topology;
use crate::validate::{TIMES_CACHE, validate, windows};
use crate::wsf::WsfSettings;
use crate::ycsb::{Phase, YcsbPlan};
use std::path::PathBuf;

/// Resolves a request to a task.
///
/// # Errors
/// [`PlanError`] with all problems of the file, or all problems of the whole plan; or something
/// that the machine lacks.
pub fn resolve(request: &Request, host: &dyn Host) -> Result<Task, PlanError> {
    let given = request.uri.as_deref().map(Remote::parse).transpose()?;
    let mut framework = framework::read(request)?;
    let resolved = resolve_over(request, given, framework.as_mut(), host);
    resolved.map_err(|error| match &framework {
        Some(framework) => framework::explain(error, framework),
        None => error,
    })
}

fn resolve_over(
    request: &Request,
    given: Option<Remote>,
    mut framework: Option<&mut WsfSettings>,
    host: &dyn Host,
) -> Result<Task, PlanError> {
    let workload = framework.as_ref().map(|framework| framework.workload.clone());
    let source = open::source(request, workload.as_deref());
    let properties = framework::properties(framework.as_deref(), request);
    let mut draft = open::open(request, source, &properties)?;
    let mut settings = match &mut framework {
        Some(framework) => framework::keys(framework, request, &draft.plan)?,
        None => Vec::new(),
    };
    settings.extend(request.settings.iter().cloned());
    settings.extend(offered_rate(request));
    let gives_threads = gives_threads(&draft.plan, request, &settings);
    let window = framework.as_ref().and_then(|framework| framework.trace);
    let window = window.filter(|_| is_run(request));
    let plan = &mut draft.plan;
    let address = given.as_ref().map(|remote| remote.target.to_string());
    file::set(plan, &settings).map_err(PlanError::Invalid)?;
    options::apply_server(plan, &request.overrides, address)?;
    let schedule = request.overrides.schedule.or(closed_by_setting(request));
    let set_rate = plan.schedule.rate_per_s().filter(|_| sets_rate(request));
    let rate_per_s = request.overrides.rate_per_s.or(set_rate);
    let overrides = Overrides { schedule, rate_per_s, ..request.overrides.clone() };
    options::apply(plan, &overrides)?;
    options::apply_trace(plan, request.trace.as_deref(), window.as_ref());
    options::apply_observing(plan, &request.observe);
    apply_work(plan, request, source, &settings, host)?;
    let named = named_server(plan, given, draft.uri.as_deref())?;
    let remote = check_whole(plan, named, request)?;
    let mut task = Task {
        plan: draft.plan,
        remote,
        warnings: draft.warnings,
        notes: Vec::new(),
        threads: Threads::Given(1),
        server: None,
    };
    if let Some(framework) = framework {
        task.warnings.splice(0..0, framework.warnings.iter().cloned());
        task.notes.clone_from(&framework.notes);
    }
    ask_host(&mut task, request, gives_threads, host)?;
    task.warnings.extend(strangers::warning(&task.plan.server));
    task.warnings.extend(windows::warnings(&task.plan));
    if window.is_some() && task.plan.traces.is_empty() {
        let note =
            "no program observes the window of `EVENT_TRACE_PARAMS`: name one with `--trace`";
        task.notes.push(note.into());
    }
    Ok(task)
}

/// Whether trace windows apply.
fn is_run(request: &Request) -> bool {
    matches!(request.work, Work::Run | Work::Soak { .. })
}

/// The rate of an option, for a schedule that a setting names without a rate.
fn offered_rate(request: &Request) -> Option<Setting> {
    let rate = request.overrides.rate_per_s?;
    let is_open = set_schedule(request)? != ScheduleKind::Closed.as_str();
    (is_open && !sets_rate(request)).then(|| Setting::from_text(RATE, rate.to_string()))
}

const RATE: &str = "schedule.rate_per_s";

fn sets_rate(request: &Request) -> bool {
    request.settings.iter().any(|setting| setting.key == RATE)
}

/// The option's closed schedule, if a setting names it.
fn closed_by_setting(request: &Request) -> Option<ScheduleKind> {
    let is_closed = set_schedule(request)? == ScheduleKind::Closed.as_str();
    is_closed.then_some(ScheduleKind::Closed)
}

/// The kind of schedule that a setting names.
fn set_schedule(request: &Request) -> Option<&str> {
    let setting = request.settings.iter().rev().find(|setting| setting.key == "schedule.kind")?;
    match &setting.value {
        SettingValue::Text(kind) => Some(kind.trim_matches('"')),
        _ => None,
    }
}

/// Aims the plan at its server, checks the whole plan, and returns the server if it is already
/// running. `named` is the server that the plan itself does not name.
fn check_whole(
    plan: &mut Plan,
    named: Option<Remote>,
    request: &Request,
) -> Result<Option<Remote>, PlanError> {
    let mut problems = Vec::new();
    if let Some(remote) = &named {
        aim(plan, remote, request);
        problems.extend(pool_problem(plan, remote));
    }
    size_by_cache(plan);
    problems.extend(validate(plan));
    problems.extend(windows::outside(plan));
    if !problems.is_empty() {
        return Err(PlanError::Invalid(problems));
    }
    check_work(plan, request)?;
    let own = plan.server.uri.as_deref().filter(|_| named.is_none());
    let Some(own) = own.map(Remote::parse).transpose()? else {
        return Ok(named);
    };
    aim(plan, &own, request);
    Ok(Some(own))
}

/// Sets the values that depend on the machine: the server to start, and the number of worker
/// threads.
fn ask_host(
    task: &mut Task,
    request: &Request,
    gives_threads: bool,
    host: &dyn Host,
) -> Result<(), PlanError> {
    let is_property = |(name, _): &(String, String)| name == "mongodb.url";
    if task.remote.is_none() && request.properties.iter().any(is_property) {
        let text = "`mongodb.url` has no effect because `--server` starts a server";
        task.warnings.push(text.into());
    }
    let is_open = task.plan.server.kind == ServerKind::Auto;
    task.server = resolve_server(&mut task.plan, request, host)?;
    let chosen = task.server.iter().filter(|_| is_open);
    task.notes.extend(chosen.map(|server| format!("server: {server}")));
    task.notes.extend(options_without_effect(&task.plan, task.remote.as_ref()));
    let has_clients =
        matches!(request.work, Work::Run | Work::Soak { .. } | Work::Load | Work::Experiment);
    task.threads = if has_clients && !gives_threads {
        let shared = Threads::Shared(cores_for_clients(task.remote.as_ref(), host));
        shared.apply(&mut task.plan);
        shared
    } else {
        Threads::Given(task.plan.client.threads)
    };
    Ok(())
}

/// Resolves YCSB's options. `maxPoolSize` in a connection string limits the clients, which is
/// reported, and the number of worker threads follows from the machine's cores.
///
/// # Errors
/// The errors of [`resolve`].
pub fn resolve_ycsb(ycsb: YcsbPlan, phase: Phase, host: &dyn Host) -> Result<Task, PlanError> {
    let YcsbPlan { mut plan, uri, mut warnings, unsupported_by_wire, .. } = ycsb;
    let uri = (plan.server.kind == ServerKind::Uri).then_some(uri);
    let has_wire = plan.client.backend == Backend::Wire && uri.is_some();
    if has_wire && !unsupported_by_wire.is_empty() {
        return Err(PlanError::Properties(unsupported_by_wire));
    }
    if uri.is_none() && phase == Phase::Load {
        check_data_stays(&plan)?;
    }
    let remote = uri.as_deref().map(Remote::parse).transpose()?;
    if let Some(remote) = &remote {
        remote.aim(&mut plan);
        warnings.extend(limit_clients(&mut plan, remote));
    }
    Threads::Shared(cores_for_clients(remote.as_ref(), host)).apply(&mut plan);
    let server = resolve_server(&mut plan, &Request::default(), host)?;
    check(&plan)?;
    Ok(Task {
        threads: Threads::Given(plan.client.threads),
        server,
        notes: options_without_effect(&plan, remote.as_ref()).into_iter().collect(),
        plan,
        remote,
        warnings,
    })
}

/// A note about options of the connection string that the wire backend accepts without an effect.
fn options_without_effect(plan: &Plan, remote: Option<&Remote>) -> Option<String> {
    if plan.client.backend != Backend::Wire {
        return None;
    }
    let own = plan.server.connection_options.as_ref();
    let own = own.and_then(|options| Remote::parse(&format!("mongodb://h/?{options}")).ok());
    let options: Vec<String> = remote.or(own.as_ref())?.target.only_of_drivers().collect();
    let verb = if options.len() == 1 { "has" } else { "have" };
    (!options.is_empty()).then(|| {
        format!(
            "{} {verb} no effect: the wire backend has no connection pool and does not monitor servers",
            options.join(", ")
        )
    })
}

/// Applies `maxPoolSize`: more clients than connections would only wait for each other.
fn limit_clients(plan: &mut Plan, remote: &Remote) -> Option<String> {
    let limit = remote.target.options.max_pool_size?;
    let client = &mut plan.client;
    let asked = client.clients.max(client.load_clients.unwrap_or(0));
    client.clients = client.clients.min(limit);
    client.load_clients = client.load_clients.map(|clients| clients.min(limit));
    (asked > limit).then(|| format!("`maxPoolSize={limit}` in the connection string limits the clients to {limit} (asked for: {asked})"))
}

/// Whether the number of worker threads was given explicitly.
fn gives_threads(plan: &Plan, request: &Request, settings: &[Setting]) -> bool {
    request.overrides.threads.is_some()
        || plan.client.threads > 1
        || settings.iter().any(|setting| setting.key == "client.threads")
}

/// The running server: from the address in `given`, or from the properties.
fn named_server(
    plan: &Plan,
    given: Option<Remote>,
    property: Option<&str>,
) -> Result<Option<Remote>, PlanError> {
    match (given, property) {
        (Some(remote), _) => Ok(Some(remote)),
        (None, Some(text)) if plan.server.kind == ServerKind::Uri => Remote::parse(text).map(Some),
        (None, _) => Ok(None),
    }
}

/// A problem if there are more clients than the address allows connections.
fn pool_problem(plan: &Plan, remote: &Remote) -> Option<Problem> {
    let pool = remote.target.options.max_pool_size;
    let pool = pool.filter(|pool| *pool > 0)?;
    let clients = plan.client.clients;
    (clients > pool).then(|| {
        let text =
            format!("`maxPoolSize` is `{pool}`, but `{clients}` clients need a connection each");
        Problem::new(text).with_hint("raise `maxPoolSize` or lower the number of clients")
    })
}

/// Aims the plan at a server. A collection that was named explicitly keeps its database.
fn aim(plan: &mut Plan, remote: &Remote, request: &Request) {
    remote.aim(plan);
    take_collection(plan, request);
}

fn take_collection(plan: &mut Plan, request: &Request) {
    if let Work::IndexBuild { collection: Some((database, collection)) } = &request.work {
        plan.data.database.clone_from(database);
        plan.data.collection.clone_from(collection);
    }
}

/// Applies the kind of work to the plan.
fn apply_work(
    plan: &mut Plan,
    request: &Request,
    source: &str,
    settings: &[Setting],
    host: &dyn Host,
) -> Result<(), PlanError> {
    if let Some(folder) = &request.data_dir {
        plan.server.data_dir = Some(folder.clone());
    }
    match &request.work {
        Work::Run | Work::Load | Work::Experiment => {}
        Work::Soak { give_up } => {
            let is_end = |key: &str| key == "phases.duration" || key == "phases.operations";
            let is_said = request.overrides.duration.is_some()
                || request.overrides.operations.is_some()
                || settings.iter().any(|setting| is_end(&setting.key));
            options::apply_soak(plan, *give_up, source, is_said);
        }
        Work::IndexBuild { .. } => {
            take_collection(plan, request);
            absolute(plan, host)?;
        }
        Work::Tail | Work::Servers => absolute(plan, host)?,
    }
    Ok(())
}

/// Makes paths independent of the working folder.
fn absolute(plan: &mut Plan, host: &dyn Host) -> Result<(), PlanError> {
    let server = &mut plan.server;
    let paths = [&mut server.data_dir, &mut server.mongos];
    let paths = paths.into_iter().flatten().chain(&mut server.data_dirs);
    for path in paths {
        let full = host
            .folder()
            .and_then(|folder| std::path::absolute(folder.join(&*path)))
            .map_err(|source| PlanError::Folder { path: path.clone(), source })?;
        *path = text_of(full)?;
    }
    Ok(())
}

fn text_of(path: PathBuf) -> Result<String, PlanError> {
    path.into_os_string().into_string().map_err(|path| {
        let path = path.display().to_string();
        PlanError::NotText { path }
    })
}

/// Refuses a plan that is for a different kind of work.
fn check_work(plan: &Plan, request: &Request) -> Result<(), PlanError> {
    match &request.work {
        Work::Run | Work::Soak { .. } | Work::Load | Work::Experiment => check_is_load(plan)?,
        Work::IndexBuild { .. } if split(plan).is_some() => {}
        Work::IndexBuild { .. } => check_one_server(
            plan,
            "an index is built on one server or one deployment, not on several at once",
        )?,
        Work::Tail => check_one_server(
            plan,
            "messages go through one server or one deployment, not through several at once",
        )?,
        Work::Servers if plan.server.kind == ServerKind::Uri => {
            return Err(PlanError::NothingToStart);
        }
        // The plan is valid because it is the plan of an index build.
        Work::Servers => split(plan).map_or(Ok(()), |topology| {
            let topology = topology.to_string();
            Err(PlanError::Split { topology })
        })?,
    }
    if request.work == Work::Load {
        check_data_stays(plan)?;
    }
    check_loads_what_it_drops(plan, request.no_load)
}

/// Refuses the plan of an index build or of messages if a load was requested.
fn check_is_load(plan: &Plan) -> Result<(), PlanError> {
    let (what, command) = match (&plan.index_build, &plan.tail) {
        (None, None) => return Ok(()),
        (Some(_), _) => ("an index build (`index_build`)", "dyno index-build"),
        (None, Some(_)) => ("messages (`tail`)", "dyno tail"),
    };
    Err(PlanError::OtherWork { what, command })
}

/// The topology over which documents are distributed, if the plan asks for it.
fn split(plan: &Plan) -> Option<Topology> {
    let topology = plan.server.topology().ok()?;
    matches!(topology, Topology::Split { .. }).then_some(topology)
}

fn check_one_server(plan: &Plan, what: &'static str) -> Result<(), PlanError> {
    let clients = plan.server.topology().map_or(1, |topology| topology.clients());
    if clients > 1 {
        return Err(PlanError::OneServer { what });
    }
    Ok(())
}

/// Refuses to load data into a server that is removed afterwards.
fn check_data_stays(plan: &Plan) -> Result<(), PlanError> {
    let server = &plan.server;
    let is_kept = server.data_dir.is_some() || !server.data_dirs.is_empty();
    if server.kind == ServerKind::Uri || is_kept {
        return Ok(());
    }
    Err(PlanError::DataGoesAway)
}

/// Refuses to drop the data before each run without loading it again.
///
/// # Errors
/// [`PlanError::NothingLoaded`].
pub fn check_loads_what_it_drops(plan: &Plan, no_load: bool) -> Result<(), PlanError> {
    if no_load && plan.data.fresh.is_for_each_run() {
        return Err(PlanError::NothingLoaded);
    }
    Ok(())
}

/// Sets the server that a valid plan starts, and returns its description; `None` if it starts none
/// here.
fn resolve_server(
    plan: &mut Plan,
    request: &Request,
    host: &dyn Host,
) -> Result<Option<String>, PlanError> {
    let asked = plan.server.kind;
    let mut description = None;
    if asked != ServerKind::Uri {
        let wanted = WantedServer {
            kind: asked,
            mongod: plan.server.mongod.as_deref(),
            embedded: request.embedded_server.as_deref(),
        };
        let found = host.server(&wanted).map_err(PlanError::Host)?;
        description = take_over(plan, found);
    }
    if plan.server.kind != asked {
        // The smallest cache is known now.
        size_by_cache(plan);
    }
    plan.server.resolve_topology();
    // Not every kind of server supports all settings, and a topology can name pairs, which not
    // every plan may have.
    check(plan)?;
    Ok(description)
}

fn take_over(plan: &mut Plan, found: FoundServer) -> Option<String> {
    plan.server.kind = found.kind;
    if found.mongod.is_some() {
        plan.server.mongod = found.mongod;
    }
    found.description
}

/// Cores for the clients: half of them are left to a server on the same machine.
fn cores_for_clients(remote: Option<&Remote>, host: &dyn Host) -> u32 {
    let is_tunnel = |port| host.is_tunnel(port);
    match remote {
        Some(remote) if !remote.is_local(host.hostname(), is_tunnel) => host.cores(),
        _ => (host.cores() / 2).max(1),
    }
}

/// Converts `data.times_cache` to a number of documents. It stays if the smallest cache is
/// requested for a kind of server that is not chosen yet, or if it is a problem of the plan.
fn size_by_cache(plan: &mut Plan) {
    let data = &mut plan.data;
    let times = data.times_cache.filter(|times| TIMES_CACHE.contains(times));
    let document = data.mean_document_bytes().filter(|bytes| *bytes > 0);
    if let (Some(times), Some(cache), Some(document)) = (times, plan.server.cache_bytes(), document)
    {
        data.records = (cache.0 as f64 * times / document as f64).ceil() as u64;
        data.times_cache = None;
    }
}
