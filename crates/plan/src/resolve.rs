//! From what a person typed to the plan: built-in plan, plan file or property file, then options.

use crate::builtin;
use crate::file::{self, FileError};
use crate::model::{Backend, Plan, Schedule, ServerKind};
use crate::nearest::nearest;
use crate::problem::{self, Problem};
use crate::units::Span;
use crate::uri::{self, UriError};
use crate::validate::{TIMES_CACHE, validate};
use crate::ycsb::{self, Phase, Properties};
use std::path::{Path, PathBuf};

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The workload is neither a built-in plan nor a file.
    #[error("there is no built-in plan and no file `{name}`")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The built-in plan that was probably meant.
        nearest: Option<&'static str>,
    },
    /// The layout of an index build is neither a built-in plan nor a file.
    #[error("there is no built-in index build and no file `{name}`")]
    UnknownIndexBuild {
        /// What was asked for.
        name: String,
        /// The built-in plan that was probably meant.
        nearest: Option<&'static str>,
    },
    /// The plan for messages is neither a built-in one nor a file.
    #[error("there is no built-in plan for messages and no file `{name}`")]
    UnknownTail {
        /// What was asked for.
        name: String,
        /// The built-in plan that was probably meant.
        nearest: Option<&'static str>,
    },
    /// The file cannot be read.
    #[error("cannot read plan `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is no valid plan.
    #[error(transparent)]
    File(#[from] FileError),
    /// A property file or `-p` is wrong.
    #[error("the YCSB properties are not valid:{}", problem::list(.0))]
    Properties(Vec<Problem>),
    /// File and options together make no valid plan.
    #[error("the plan is not valid:{}", problem::list(.0))]
    Invalid(Vec<Problem>),
    /// More than one connection string where one is needed.
    #[error("{count} connection strings were given, and one is needed")]
    SeveralUris {
        /// How many there are.
        count: usize,
    },
    /// The connection string is wrong.
    #[error("the connection string is not valid")]
    Uri(#[from] UriError),
}

impl PlanError {
    /// What to do about it, where that is not in the message.
    pub fn hint(&self) -> Option<String> {
        match self {
            PlanError::Unknown {
                nearest: Some(name),
                ..
            }
            | PlanError::UnknownIndexBuild {
                nearest: Some(name),
                ..
            }
            | PlanError::UnknownTail {
                nearest: Some(name),
                ..
            } => Some(format!("did you mean `{name}`?")),
            PlanError::UnknownIndexBuild { nearest: None, .. } => Some(format!(
                "built-in index builds: {}",
                builtin::index_build_names().collect::<Vec<_>>().join(", ")
            )),
            PlanError::UnknownTail { nearest: None, .. } => Some(format!(
                "built-in plans for messages: {}",
                builtin::tail_names().collect::<Vec<_>>().join(", ")
            )),
            PlanError::Unknown { nearest: None, .. } => Some(format!(
                "built-in plans: {}",
                builtin::names().collect::<Vec<_>>().join(", ")
            )),
            PlanError::Unreadable { .. } => Some("check the path and its permissions".into()),
            PlanError::SeveralUris { .. } => Some("several pairs have one each: run once for each of them; or let `dyno run --pairs N` start the servers and load all of them at once".into()),
            PlanError::Uri(error) => error.hint(),
            PlanError::File(_) | PlanError::Properties(_) | PlanError::Invalid(_) => None,
        }
    }
}

/// Name of a schedule, as an option gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleKind {
    /// See [`Schedule::Closed`].
    Closed,
    /// See [`Schedule::Constant`].
    Constant,
    /// See [`Schedule::Poisson`].
    Poisson,
}

/// What options change; `None` leaves the plan as it is.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Aim at this server. It may hold credentials; they go to [`Resolved::uri`] and not into the plan.
    pub uri: Option<String>,
    /// Independent servers, each with a client of its own.
    pub pairs: Option<u32>,
    /// CPUs and memory of the servers and their clients.
    pub placement: Option<String>,
    /// Start this kind of server.
    pub server: Option<ServerKind>,
    /// Path of the `mongod` program.
    pub mongod: Option<String>,
    /// Documents of the data set.
    pub records: Option<u64>,
    /// Operations to measure.
    pub operations: Option<u64>,
    /// Measuring time.
    pub duration: Option<Span>,
    /// Warm-up time.
    pub warmup: Option<Span>,
    /// Concurrent connections.
    pub clients: Option<u32>,
    /// Worker threads.
    pub threads: Option<u32>,
    /// Offered rate in operations per second.
    pub rate_per_s: Option<f64>,
    /// When operations start.
    pub schedule: Option<ScheduleKind>,
    /// Who speaks the protocol.
    pub backend: Option<Backend>,
    /// Seed of all random sequences.
    pub seed: Option<u64>,
    /// Longest wait for an answer.
    pub timeout: Option<Span>,
    /// Largest share of failed operations that is not a failure.
    pub tolerated_error_ratio: Option<f64>,
    /// Documents per insert command of the load phase.
    pub batch: Option<u32>,
    /// Keys of the plan and their values, as [`file::set`] takes them, laid over the plan before the other options
    /// and after the YCSB properties.
    pub settings: Vec<(String, String)>,
    /// YCSB properties, laid over the plan before the other options.
    pub properties: Vec<(String, String)>,
    /// Accept unknown YCSB property names.
    pub lenient: bool,
    /// Most worker threads when nothing gives their number: usually the cores that the client may use.
    pub thread_limit: Option<u32>,
}

/// A resolved plan.
pub struct Resolved {
    /// The plan; valid.
    pub plan: Plan,
    /// The connection string as it was given, from an option or a property; absent when the plan itself has
    /// one or none is needed. It may hold credentials, so it is kept apart.
    pub uri: Option<String>,
    /// What the person should know, one sentence each.
    pub warnings: Vec<String>,
    /// Whether somebody gave the number of worker threads; else it follows from [`Overrides::thread_limit`] and
    /// the number of clients.
    pub gives_threads: bool,
}

/// Resolves `source`, the name of a built-in plan or the path of a plan or property file.
///
/// # Errors
/// [`PlanError`] with all problems of the file, or all problems of the whole.
pub fn resolve(source: &str, overrides: &Overrides) -> Result<Resolved, PlanError> {
    resolve_opened(open(source, overrides)?, overrides)
}

/// Resolves `source`, the name of a built-in plan for index builds or the path of a plan. A plan without `index_build`
/// gets the defaults.
///
/// # Errors
/// As those of [`resolve`].
pub fn resolve_index_build(source: &str, overrides: &Overrides) -> Result<Resolved, PlanError> {
    let mut resolved = match builtin::find_index_build(source) {
        Some(mut plan) => {
            let mut ignored = None;
            if overrides.uri.is_some() {
                let server = std::mem::take(&mut plan.server);
                ignored = (server != plan.server).then(|| {
                    "cache and compressor of the plan are for a server that is started: this one keeps its own"
                        .to_owned()
                });
            }
            let mut resolved = with_properties(plan, overrides)?;
            resolved.warnings.extend(ignored);
            resolved
        }
        None => open_or(source, overrides, |name| PlanError::UnknownIndexBuild {
            nearest: nearest(&name, builtin::index_build_names()),
            name,
        })?,
    };
    resolved.plan.index_build.get_or_insert_default();
    resolve_opened(resolved, overrides)
}

/// Resolves `source`, the name of a built-in plan for messages or the path of a plan. A plan without `tail` gets the
/// defaults.
///
/// # Errors
/// As those of [`resolve`].
pub fn resolve_tail(source: &str, overrides: &Overrides) -> Result<Resolved, PlanError> {
    let mut resolved = match builtin::find_tail(source) {
        Some(plan) => with_properties(plan, overrides)?,
        None => open_or(source, overrides, |name| PlanError::UnknownTail {
            nearest: nearest(&name, builtin::tail_names()),
            name,
        })?,
    };
    resolved.plan.tail.get_or_insert_default();
    resolve_opened(resolved, overrides)
}

/// Opens a plan of a kind of its own; what is neither built in nor a file is `unknown` among those of this kind.
fn open_or(
    source: &str,
    overrides: &Overrides,
    unknown: impl FnOnce(String) -> PlanError,
) -> Result<Resolved, PlanError> {
    open(source, overrides).map_err(|error| match error {
        PlanError::Unknown { name, .. } => unknown(name),
        other => other,
    })
}

fn resolve_opened(mut resolved: Resolved, overrides: &Overrides) -> Result<Resolved, PlanError> {
    let gives_threads = overrides.threads.is_some() || resolved.plan.client.threads > 1;
    file::set(&mut resolved.plan, &overrides.settings).map_err(PlanError::Invalid)?;
    let gives_threads = gives_threads
        || overrides
            .settings
            .iter()
            .any(|(key, _)| key == "client.threads");
    apply(&mut resolved.plan, overrides)?;
    let server = &mut resolved.plan.server;
    if server.kind == ServerKind::Auto && server.mongod.is_some() {
        server.kind = ServerKind::Mongod;
    }
    resolved.gives_threads = gives_threads;
    if !gives_threads && let Some(limit) = overrides.thread_limit {
        resolved.plan.client.threads = limit.clamp(1, resolved.plan.client.clients.max(1));
    }
    separate_credentials(&mut resolved, overrides)?;
    size_by_cache(&mut resolved.plan);
    let problems = validate(&resolved.plan);
    if problems.is_empty() {
        Ok(resolved)
    } else {
        Err(PlanError::Invalid(problems))
    }
}

/// Turns `data.times_cache` into a number of documents. It stays while the kind of server is open and its smallest cache is
/// wanted, and where it is a problem of the plan.
pub fn size_by_cache(plan: &mut Plan) {
    let data = &mut plan.data;
    let times = data.times_cache.filter(|times| TIMES_CACHE.contains(times));
    let document = data.mean_document_bytes().filter(|bytes| *bytes > 0);
    if let (Some(times), Some(cache), Some(document)) = (times, plan.server.cache_bytes(), document)
    {
        data.records = (cache.0 as f64 * times / document as f64).ceil() as u64;
        data.times_cache = None;
    }
}

/// Keeps the connection string as it was given in `resolved.uri`, and in the plan the part of it that can be shown.
fn separate_credentials(resolved: &mut Resolved, overrides: &Overrides) -> Result<(), PlanError> {
    let given = overrides.uri.clone().or_else(|| resolved.uri.take());
    let plan = &mut resolved.plan;
    let Some(text) = given.filter(|_| matches!(plan.server.kind, ServerKind::Uri)) else {
        return Ok(());
    };
    let (target, _) = uri::parse(&text).map_err(|error| {
        let hint = error.hint();
        PlanError::Invalid(vec![Problem {
            hint,
            ..Problem::new(format!("the connection string: {error}"))
        }])
    })?;
    plan.server.uri = Some(target.to_string());
    if let Some(pool) = target.options.max_pool_size
        && pool > 0
        && u64::from(plan.client.clients) > u64::from(pool)
    {
        let problem = Problem::new(format!(
            "`maxPoolSize` is `{pool}`, but `{}` clients need a connection each",
            plan.client.clients
        ))
        .with_hint("raise `maxPoolSize` or lower the number of clients");
        return Err(PlanError::Invalid(vec![problem]));
    }
    resolved.uri = Some(text);
    Ok(())
}

fn open(source: &str, overrides: &Overrides) -> Result<Resolved, PlanError> {
    if let Some(plan) = builtin::find(source) {
        return with_properties(plan, overrides);
    }
    let path = Path::new(source);
    if !path.exists() {
        return Err(PlanError::Unknown {
            name: source.into(),
            nearest: nearest(source, builtin::names()),
        });
    }
    let unreadable = |error| PlanError::Unreadable {
        path: path.into(),
        source: error,
    };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    if is_property_file(path, &text) {
        return from_properties(&text, source, overrides);
    }
    with_properties(file::parse(&text, source)?, overrides)
}

/// Property files have no fixed ending, but every one of them names a workload class.
fn is_property_file(path: &Path, text: &str) -> bool {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => false,
        Some("properties") => true,
        _ => text.lines().any(|line| {
            let line = line.trim_start();
            [
                "workload=",
                "workload:",
                "workload ",
                "recordcount",
                "readproportion",
            ]
            .iter()
            .any(|start| line.starts_with(start))
        }),
    }
}

fn from_properties(text: &str, origin: &str, overrides: &Overrides) -> Result<Resolved, PlanError> {
    let mut properties = Properties::parse(text, origin).map_err(PlanError::Properties)?;
    for (name, value) in &overrides.properties {
        properties.set(name, value);
    }
    // The options stand in for properties that the file must have otherwise.
    for (name, value) in [
        ("recordcount", overrides.records),
        ("operationcount", overrides.operations),
    ] {
        if let Some(value) = value {
            properties.set(name, &value.to_string());
        }
    }
    let gives_uri = properties.get("mongodb.url").is_some();
    let gives_server = properties.get("dyno.server").is_some();
    let resolved =
        ycsb::resolve(&properties, Phase::Run, overrides.lenient).map_err(PlanError::Properties)?;
    let mut plan = resolved.plan;
    if !gives_uri && !gives_server {
        // The tool's own server unless the properties aim at one.
        plan.server = Default::default();
    }
    Ok(Resolved {
        plan,
        uri: gives_uri.then_some(resolved.uri),
        warnings: resolved.warnings,
        gives_threads: false,
    })
}

fn with_properties(mut plan: Plan, overrides: &Overrides) -> Result<Resolved, PlanError> {
    if overrides.properties.is_empty() {
        return Ok(Resolved {
            plan,
            uri: None,
            warnings: Vec::new(),
            gives_threads: false,
        });
    }
    let mut properties = Properties::default();
    for (name, value) in &overrides.properties {
        properties.set(name, value);
    }
    let applied =
        ycsb::apply(&mut plan, &properties, overrides.lenient).map_err(PlanError::Properties)?;
    if properties.get("recordcount").is_some() {
        plan.data.times_cache = None;
    }
    Ok(Resolved {
        plan,
        uri: applied.uri,
        warnings: applied.warnings,
        gives_threads: false,
    })
}

fn apply(plan: &mut Plan, overrides: &Overrides) -> Result<(), PlanError> {
    apply_server(plan, overrides)?;
    let client = &mut plan.client;
    set(&mut client.clients, overrides.clients);
    set(&mut client.threads, overrides.threads);
    if overrides.threads.is_none() {
        client.threads = client.threads.min(client.clients.max(1));
    }
    set(&mut client.backend, overrides.backend);
    set(&mut client.seed, overrides.seed);
    set(&mut client.timeout, overrides.timeout);
    set(
        &mut client.tolerated_error_ratio,
        overrides.tolerated_error_ratio,
    );
    set(&mut client.batch, overrides.batch);
    if overrides.records.is_some() {
        plan.data.times_cache = None;
    }
    set(&mut plan.data.records, overrides.records);
    set(&mut plan.phases.warmup, overrides.warmup);
    apply_stop(plan, overrides);
    apply_schedule(plan, overrides)
}

fn set<T>(target: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *target = value;
    }
}

fn apply_server(plan: &mut Plan, overrides: &Overrides) -> Result<(), PlanError> {
    if let Some(pairs) = overrides.pairs {
        plan.server.pairs = pairs;
    }
    if overrides.placement.is_some() {
        plan.server.placement.clone_from(&overrides.placement);
    }
    let kind = match (overrides.server, &overrides.uri, &overrides.mongod) {
        (Some(kind), Some(_), _) if kind != ServerKind::Uri => {
            let problem = Problem::new("`--uri` aims at a server that runs, `--server` starts one")
                .with_hint("give one of them");
            return Err(PlanError::Invalid(vec![problem]));
        }
        (Some(kind), _, _) => Some(kind),
        (None, Some(_), _) => Some(ServerKind::Uri),
        (None, None, Some(_)) => Some(ServerKind::Mongod),
        (None, None, None) => None,
    };
    if let Some(kind) = kind {
        plan.server.kind = kind;
        plan.server.uri = overrides.uri.clone().or(plan
            .server
            .uri
            .take()
            .filter(|_| kind == ServerKind::Uri));
    }
    if overrides.mongod.is_some() {
        plan.server.mongod = overrides.mongod.clone();
    }
    Ok(())
}

/// A count alone ends the phase by count, a time alone by time, both by whichever comes first.
fn apply_stop(plan: &mut Plan, overrides: &Overrides) {
    match (overrides.operations, overrides.duration) {
        (None, None) => {}
        (operations, duration) => {
            plan.phases.operations = operations;
            plan.phases.duration = duration;
        }
    }
}

fn apply_schedule(plan: &mut Plan, overrides: &Overrides) -> Result<(), PlanError> {
    let (rate, delay) = match plan.schedule {
        Schedule::Closed {} => (None, Schedule::DEFAULT_MAX_START_DELAY),
        Schedule::Constant {
            rate_per_s,
            max_start_delay,
        }
        | Schedule::Poisson {
            rate_per_s,
            max_start_delay,
        } => (Some(rate_per_s), max_start_delay),
    };
    let kind = overrides.schedule.unwrap_or(match plan.schedule {
        Schedule::Poisson { .. } => ScheduleKind::Poisson,
        Schedule::Constant { .. } => ScheduleKind::Constant,
        Schedule::Closed {} if overrides.rate_per_s.is_some() => ScheduleKind::Constant,
        Schedule::Closed {} => ScheduleKind::Closed,
    });
    let rate_per_s = overrides.rate_per_s.or(rate);
    let missing = || {
        let problem = Problem::new("an open-loop schedule needs a rate").with_hint("give `--rate`");
        PlanError::Invalid(vec![problem])
    };
    plan.schedule = match kind {
        ScheduleKind::Closed if overrides.rate_per_s.is_some() => {
            let problem = Problem::new("a closed loop has no rate")
                .with_hint("drop `--rate`, or use `--schedule constant` or `--schedule poisson`");
            return Err(PlanError::Invalid(vec![problem]));
        }
        ScheduleKind::Closed => Schedule::Closed {},
        ScheduleKind::Constant => Schedule::Constant {
            rate_per_s: rate_per_s.ok_or_else(missing)?,
            max_start_delay: delay,
        },
        ScheduleKind::Poisson => Schedule::Poisson {
            rate_per_s: rate_per_s.ok_or_else(missing)?,
            max_start_delay: delay,
        },
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_follows_the_cache_of_each_kind_of_server() {
        let records = |overrides: Overrides| {
            let resolved = resolve("storage-compare", &overrides).expect("it is valid");
            assert_eq!(resolved.plan.data.times_cache, None);
            resolved.plan.data.records
        };
        let of = |server| Overrides {
            server: Some(server),
            ..Overrides::default()
        };
        let times_three = |mib: u64| (3 * (mib << 20)).div_ceil(1000);
        assert_eq!(records(of(ServerKind::Embedded)), times_three(64));
        assert_eq!(records(of(ServerKind::Mongod)), times_three(256));
        assert_eq!(records(set(&[("server.cache", "1GiB")])), times_three(1024));
        assert_eq!(records(set(&[("data.records", "7")])), 7);
        let counted = Overrides {
            records: Some(8),
            ..Overrides::default()
        };
        assert_eq!(records(counted), 8);
        let properties = Overrides {
            properties: vec![("recordcount".into(), "9".into())],
            ..Overrides::default()
        };
        assert_eq!(records(properties), 9);
    }

    fn set(settings: &[(&str, &str)]) -> Overrides {
        Overrides {
            settings: settings
                .iter()
                .map(|(key, value)| ((*key).into(), (*value).into()))
                .collect(),
            ..Default::default()
        }
    }

    #[test]
    fn any_key_of_the_plan_can_be_set() {
        let plan = resolved(
            "a",
            set(&[
                ("server.cache", "1GiB"),
                ("server.kind", "mongod"),
                ("server.parameters.ttlMonitorEnabled", "false"),
                ("schedule.rate_per_s", "500"),
                ("schedule.kind", "poisson"),
                ("client.clients", "7"),
                ("client.clients", "9"),
                ("phases.operations", "100"),
                ("operations.read", "3"),
                ("data.collection", "42"),
            ]),
        );
        assert_eq!(
            plan.server.cache_bytes().map(|cache| cache.0),
            Some(1 << 30)
        );
        assert_eq!(plan.server.parameters["ttlMonitorEnabled"], "false");
        assert!(
            matches!(plan.schedule, Schedule::Poisson { rate_per_s, .. } if rate_per_s == 500.0)
        );
        assert_eq!(plan.client.clients, 9);
        assert_eq!(plan.phases.duration, None);
        assert!(plan.operations.update > 0.0, "the other weights stay");
        assert_eq!(plan.data.collection, "42");
    }

    #[test]
    fn a_wrong_setting_is_named_with_what_was_meant() {
        let text = message("a", set(&[("server.cahce", "1GiB"), ("x y", "1")]));
        assert!(text.contains("did you mean `server.cache`?"), "{text}");
        assert!(text.contains("`x y` is no key"), "{text}");
        assert!(!text.contains("line"), "{text}");
        for (key, value, part) in [
            ("client.clients", "many", "must be a whole number"),
            ("server.cache", "1XB", "`server.cache`"),
            ("server.kind", "mongo", "did you mean `mongod`?"),
            ("schedule.rate_per_s", "5", "`schedule.kind` is missing"),
            ("base", "b", "is no key"),
        ] {
            let text = message("a", set(&[(key, value)]));
            assert!(text.contains(part), "{key}={value}: {text}");
        }
    }

    fn resolved(source: &str, overrides: Overrides) -> Plan {
        resolve(source, &overrides)
            .unwrap_or_else(|error| panic!("{error}"))
            .plan
    }

    fn message(source: &str, overrides: Overrides) -> String {
        match resolve(source, &overrides) {
            Ok(_) => panic!("{source} should not resolve"),
            Err(error) => format!("{error} {}", error.hint().unwrap_or_default()),
        }
    }

    #[test]
    fn a_rate_alone_means_a_constant_schedule() {
        let plan = resolved(
            "a",
            Overrides {
                rate_per_s: Some(500.0),
                ..Default::default()
            },
        );
        assert_eq!(
            plan.schedule,
            Schedule::Constant {
                rate_per_s: 500.0,
                max_start_delay: Span::from_secs(10)
            }
        );
    }

    #[test]
    fn a_rate_with_a_closed_loop_is_refused() {
        let overrides = Overrides {
            rate_per_s: Some(5.0),
            schedule: Some(ScheduleKind::Closed),
            ..Default::default()
        };
        assert!(message("a", overrides).contains("closed loop has no rate"));
        let overrides = Overrides {
            schedule: Some(ScheduleKind::Poisson),
            ..Default::default()
        };
        assert!(message("a", overrides).contains("needs a rate"));
    }

    #[test]
    fn a_number_of_operations_replaces_the_default_duration() {
        let plan = resolved(
            "a",
            Overrides {
                operations: Some(1000),
                ..Default::default()
            },
        );
        assert_eq!(
            (plan.phases.operations, plan.phases.duration),
            (Some(1000), None)
        );
        let both = Overrides {
            operations: Some(1000),
            duration: Some(Span::from_secs(3)),
            ..Default::default()
        };
        let plan = resolved("a", both);
        assert_eq!(
            (plan.phases.operations, plan.phases.duration),
            (Some(1000), Some(Span::from_secs(3)))
        );
    }

    #[test]
    fn fewer_clients_than_threads_lower_the_threads() {
        let overrides = Overrides {
            clients: Some(1),
            thread_limit: Some(8),
            ..Default::default()
        };
        assert_eq!(resolved("a", overrides).client.threads, 1);
        let overrides = Overrides {
            clients: Some(2),
            threads: Some(3),
            ..Default::default()
        };
        assert!(message("a", overrides).contains("client.threads"));
    }

    #[test]
    fn an_address_means_a_server_that_runs() {
        let plan = resolved(
            "a",
            Overrides {
                uri: Some("mongodb://localhost".into()),
                ..Default::default()
            },
        );
        assert_eq!(plan.server.kind, ServerKind::Uri);
        let both = Overrides {
            uri: Some("mongodb://localhost".into()),
            server: Some(ServerKind::Embedded),
            ..Default::default()
        };
        assert!(message("a", both).contains("`--uri` aims at"));
    }

    #[test]
    fn which_server_is_started_is_left_open_unless_a_mongod_is_named() {
        let kind = |overrides| resolved("a", overrides).server.kind;
        assert_eq!(kind(Overrides::default()), ServerKind::Auto);
        assert_eq!(
            kind(set(&[("server.mongod", "6.0.27")])),
            ServerKind::Mongod
        );
        let named = Overrides {
            mongod: Some("/opt/mongod".into()),
            ..Default::default()
        };
        assert_eq!(kind(named.clone()), ServerKind::Mongod);
        let both = Overrides {
            server: Some(ServerKind::Embedded),
            ..named
        };
        assert!(message("a", both).contains("`server.mongod` is given"));
    }

    #[test]
    fn credentials_stay_out_of_the_plan() {
        let uri = Some("mongodb://ann:secret@localhost/db".to_owned());
        let resolved = resolve(
            "a",
            &Overrides {
                uri: uri.clone(),
                ..Default::default()
            },
        )
        .unwrap_or_else(|error| panic!("{error}"));
        assert!(!file::to_toml(&resolved.plan).contains("secret"));
        assert_eq!(resolved.uri, uri);
    }

    #[test]
    fn more_clients_than_the_pool_allows_are_refused() {
        let overrides = Overrides {
            uri: Some("mongodb://h/?maxPoolSize=5".into()),
            clients: Some(6),
            ..Default::default()
        };
        assert!(message("a", overrides).contains("`maxPoolSize` is `5`"));
    }

    #[test]
    fn an_unknown_workload_names_the_nearest_one() {
        assert!(
            message("90read10updates", Overrides::default())
                .contains("did you mean `90read10update`")
        );
        assert!(message("no/such/file", Overrides::default()).contains("built-in plans: a, b"));
    }

    #[test]
    fn a_property_file_is_told_from_a_plan_by_its_content() {
        assert!(is_property_file(
            Path::new("workloada"),
            "# comment\nrecordcount=1000\n"
        ));
        assert!(!is_property_file(Path::new("x.toml"), "recordcount=1000\n"));
        assert!(!is_property_file(Path::new("plan"), "name = \"x\"\n"));
    }

    #[test]
    fn property_files_of_the_ycsb_workloads_have_the_mixes_of_the_built_in_plans() {
        for name in ["a", "b", "c", "d", "e", "f"] {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/ycsb/workload");
            let from_file = resolved(&format!("{folder}{name}"), Overrides::default());
            let built_in = builtin::find(name).expect("it is built in");
            assert_eq!(from_file.operations, built_in.operations, "{name}");
            assert_eq!(from_file.keys, built_in.keys, "{name}");
            assert_eq!(from_file.access, built_in.access, "{name}");
            assert_eq!(from_file.data.records, 1000, "{name}");
        }
    }
}
