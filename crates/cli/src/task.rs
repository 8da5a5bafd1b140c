//! Converts command-line arguments to requests, and resolves them to tasks on this machine.

use crate::args::experiments::ExperimentArguments;
use crate::args::run::{
    BaseArguments, ChosenServer, DataArguments, LoadArguments, RunArguments, StartArguments,
    TargetArguments, WorkerArguments, WsfDefaults,
};
use crate::args::standing::{ObserveArguments, ShownArguments, SoakArguments};
use crate::args::tail::TailArguments;
use crate::args::trace::IndexBuildArguments;
use crate::surroundings::Surroundings;
use dyno_engine::Error;
use dyno_engine::environment::ServerHome;
use dyno_plan::Plan;
use dyno_plan::model::ScheduleKind;
use dyno_plan::request::{Observing, Overrides, Request, Setting, Work};
use dyno_plan::resolve::resolve;
use dyno_plan::storage::Storage;
use dyno_plan::task::Task;
use dyno_plan::wsf::Parameters;
use serde::Serialize;
use serde_json::json;

/// Resolves the arguments of `dyno run`.
pub(crate) fn of_run(arguments: &RunArguments, surroundings: &Surroundings) -> Result<Task, Error> {
    Ok(resolve(&run(arguments, surroundings), &surroundings.environment)?)
}

/// Resolves the arguments of `dyno soak`.
pub(crate) fn of_soak(
    arguments: &SoakArguments,
    surroundings: &Surroundings,
) -> Result<Task, Error> {
    let give_up = arguments.give_up;
    let request = Request { work: Work::Soak { give_up }, ..run(&arguments.run, surroundings) };
    Ok(resolve(&request, &surroundings.environment)?)
}

/// Resolves the arguments of `dyno load`.
pub(crate) fn of_load(
    arguments: &LoadArguments,
    surroundings: &Surroundings,
) -> Result<Task, Error> {
    let (target, client) = (&arguments.target, &arguments.client);
    let mut request = on_target(target, &client.worker, &arguments.data, surroundings);
    request.work = Work::Load;
    put_first(&mut request, shown(&arguments.shown));
    put_first(&mut request, keys_of("client.clients", client.clients));
    Ok(resolve(&request, &surroundings.environment)?)
}

/// Keys of the plan with their values.
pub(crate) type Settings<'a> = &'a [(String, String)];

/// A schedule and a rate in operations per second; `None` keeps the plan's.
pub(crate) type Offered = (Option<ScheduleKind>, Option<f64>);

/// Resolves the arguments of an experiment. `settings` replaces the keys given by `--set`.
pub(crate) fn of_experiment(
    arguments: &ExperimentArguments,
    settings: Settings<'_>,
    (schedule, rate_per_s): Offered,
    surroundings: &Surroundings,
) -> Result<Task, Error> {
    let mut base = arguments.base.clone();
    base.target.server.start.settings = settings.to_vec();
    let mut request = on_base(&base, &arguments.worker, surroundings);
    request.work = Work::Experiment;
    request.overrides =
        Overrides { duration: arguments.duration, schedule, rate_per_s, ..request.overrides };
    Ok(resolve(&request, &surroundings.environment)?)
}

/// Resolves the arguments of `dyno index-build`.
pub(crate) fn of_index_build(
    arguments: &IndexBuildArguments,
    surroundings: &Surroundings,
) -> Result<Task, Error> {
    let mut server = arguments.server.clone();
    let topologies = take_topologies(&mut server.start);
    let mut request = on_server(&server);
    put_first(&mut request, shown(&arguments.shown));
    request.work = Work::IndexBuild { collection: arguments.collection.clone() };
    request.source = Some(arguments.layout.clone());
    request.overrides.records = arguments.records;
    let remedy = arguments.remedy.map(|remedy| remedy.as_str());
    let storage = arguments.storage.as_ref().map(Storage::to_string);
    let settings = [
        keys_of("client.seed", arguments.seed),
        keys_of("index_build.keys", arguments.keys.as_deref()),
        keys_of("index_build.start", arguments.warm.then_some("warm")),
        keys_of("index_build.remedy", remedy),
        keys_of("index_build.remedy_on", arguments.remedy_on.as_deref()),
        keys_of("index_build.untraced", arguments.untraced),
        keys_of("index_build.topologies", topologies),
        keys_of("server.storage", storage),
    ];
    put_first(&mut request, settings.into_iter().flatten());
    Ok(resolve(&request, &surroundings.environment)?)
}

/// Takes several values of `server.topology`, separated by `;`, out of the arguments, as the topologies of an index build.
fn take_topologies(start: &mut StartArguments) -> Option<Vec<String>> {
    const KEY: &str = "server.topology";
    let typed = start.settings.iter().rev().find(|(key, _)| key == KEY);
    let typed = typed.map(|(_, text)| text).or(start.topology.as_ref())?;
    if !typed.contains(';') {
        return None;
    }
    let several = typed.split(';').map(|text| text.trim().to_owned()).collect();
    start.settings.retain(|(key, _)| key != KEY);
    start.topology = None;
    Some(several)
}

/// Resolves the arguments of `dyno tail`.
pub(crate) fn of_tail(
    arguments: &TailArguments,
    surroundings: &Surroundings,
) -> Result<Task, Error> {
    let mut request = on_server(&arguments.server);
    request.work = Work::Tail;
    request.source = Some(arguments.plan.clone());
    put_first(&mut request, shown(&arguments.shown));
    put_first(&mut request, keys_of("client.seed", arguments.sending.seed));
    put_first(&mut request, table_of("tail", &arguments.sending));
    Ok(resolve(&request, &surroundings.environment)?)
}

/// Settings of the given options, whose names are the keys of a table.
fn table_of(table: &str, options: &impl Serialize) -> Vec<Setting> {
    let options = serde_json::to_value(options).expect("it is plain data");
    let given = options.as_object().into_iter().flatten();
    given
        .filter(|(_, value)| !value.is_null() && **value != json!([]))
        .map(|(key, value)| Setting::new(format!("{table}.{key}"), value.clone()))
        .collect()
}

/// Resolves the plan of long-lived servers: a plan's `[server]` table, and its collection, which a cluster
/// shards.
pub(crate) fn of_server(
    workload: Option<&str>,
    start: &StartArguments,
    surroundings: &Surroundings,
) -> Result<Plan, Error> {
    let mut request = starting(start);
    request.work = Work::Servers;
    request.source = workload.map(str::to_owned);
    Ok(resolve(&request, &surroundings.environment)?.plan)
}

fn run(arguments: &RunArguments, surroundings: &Surroundings) -> Request {
    let mut request = on_base(&arguments.base, &arguments.client.worker, surroundings);
    let settings = [
        keys_of("client.clients", arguments.client.clients),
        keys_of("client.tolerated_error_ratio", arguments.tolerate_errors),
        keys_of("server.receive_packet_steering", arguments.receive_packet_steering.as_deref()),
    ];
    put_first(&mut request, settings.into_iter().flatten());
    Request {
        overrides: Overrides {
            operations: arguments.operations,
            duration: arguments.duration,
            rate_per_s: arguments.rate.map(|rate| rate.0),
            schedule: arguments.schedule,
            ..request.overrides
        },
        trace: arguments.trace.clone(),
        ..request
    }
}

/// Request with the options that runs and experiments share.
fn on_base(base: &BaseArguments, worker: &WorkerArguments, surroundings: &Surroundings) -> Request {
    let mut request = on_target(&base.target, worker, &base.data, surroundings);
    let warmup = base.warmup.map(|warmup| warmup.to_string());
    put_first(&mut request, keys_of("phases.warmup", warmup));
    put_first(&mut request, shown(&base.shown));
    let ObserveArguments { observe_interval: interval, no_observe: off, ref exporters } =
        base.observe;
    request.observe = Observing { interval, off, exporters: exporters.clone() };
    request.no_load = base.no_load;
    request
}

/// The options `--grafana`, `--price` and `--tag` as plan settings. Other keys of the table need the address of Grafana.
fn shown(arguments: &ShownArguments) -> impl Iterator<Item = Setting> {
    let url = arguments.grafana.as_deref();
    let url = url.map(|url| Setting::from_text("observe.grafana.url", url));
    let price = arguments.price.as_ref().map(|price| {
        let mut table = json!({ "per_h": price.per_h });
        if let Some(currency) = &price.currency {
            table["currency"] = json!(currency);
        }
        Setting::new("price", table)
    });
    let tags = &arguments.tags;
    let tags = (!tags.is_empty()).then(|| Setting::new("tags", json!(tags)));
    url.into_iter().chain(price).chain(tags)
}

/// Request with the options that all loads share.
fn on_target(
    target: &TargetArguments,
    worker: &WorkerArguments,
    data: &DataArguments,
    surroundings: &Surroundings,
) -> Request {
    let mut request = on_server(&target.server);
    put_first(&mut request, table_of("client", worker));
    put_first(&mut request, keys_of("client.batch", data.batch));
    Request {
        source: target.workload.clone(),
        overrides: Overrides {
            records: data.records,
            threads: worker.threads,
            ..request.overrides
        },
        properties: target.properties.clone(),
        lenient: target.lenient,
        wsf: target.wsf.map(|wsf| framework(wsf, surroundings)),
        ..request
    }
}

/// Parameters of the Workload Services Framework, for the hosts where servers are started.
pub(crate) fn framework(wsf: WsfDefaults, surroundings: &Surroundings) -> Parameters {
    let home = surroundings.environment.home;
    Parameters {
        given: surroundings.wsf.clone(),
        on_hosts: home != ServerHome::Here,
        on_pods: home == ServerHome::Pods,
        all_defaults: wsf == WsfDefaults::Defaults,
    }
}

/// Puts options that correspond to a plan key before the keys of `--set`, which win.
fn put_first(request: &mut Request, options: impl IntoIterator<Item = Setting>) {
    request.settings.splice(0..0, options);
}

fn on_server(server: &ChosenServer) -> Request {
    Request { uri: server.uri.clone(), ..starting(&server.start) }
}

/// Request with the options of started servers, before the keys of `--set`.
fn starting(start: &StartArguments) -> Request {
    let mut settings = table_of("server", start);
    settings.extend(keys_of("server.encryption", start.tls.then_some("server")));
    let typed = start.settings.iter();
    settings.extend(typed.map(|(key, text)| Setting::from_text(key, text)));
    Request {
        embedded_server: start.embedded_server.clone(),
        data_dir: start.data_dir.clone(),
        overrides: Overrides {
            pairs: start.pairs,
            server: start.server,
            mongod: start.mongod.clone(),
            ..Overrides::default()
        },
        settings,
        ..Request::default()
    }
}

/// Setting for an option that corresponds to a plan key.
fn keys_of(key: &str, value: Option<impl Into<serde_json::Value>>) -> Option<Setting> {
    Some(Setting::new(key, value?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Arguments, Command};
    use clap::Parser;
    use dyno_engine::environment::{Environment, ServerHome};

    fn surroundings() -> Surroundings {
        Surroundings {
            environment: Environment {
                cores: 8,
                hostname: Some("bench".into()),
                // Selects the embedded server without looking for it on this machine.
                home: ServerHome::Hosts,
                ..Environment::default()
            },
            ..Surroundings::default()
        }
    }

    fn task(arguments: &[&str]) -> Task {
        let all = ["dyno", "run", "a"].iter().chain(arguments);
        let Command::Run(suite) = Arguments::parse_from(all).command else { panic!("not a run") };
        of_run(&suite.run, &surroundings()).unwrap_or_else(|failure| panic!("{failure:#}"))
    }

    #[test]
    fn plan_keys_override_their_options() {
        let plan = task(&[
            "--server",
            "mongod",
            "--topology",
            "replica-set=3",
            "--cache",
            "1GiB",
            "--tls",
            "--auth",
            "--set",
            "server.cache=2GiB",
            "--set",
            "observe.grafana.token_file=token",
            "--grafana",
            "http://h:3000",
        ])
        .plan;
        let grafana = plan.observe.grafana.expect("Grafana is set");
        assert_eq!(grafana.url, "http://h:3000");
        assert_eq!(grafana.token_file, Some("token".into()));
        assert_eq!(plan.server.topology.as_deref(), Some("replica-set=3"));
        let cache = plan.server.cache_bytes().map(|cache| cache.0);
        assert_eq!(cache, Some(2 << 30));
        assert!(plan.server.auth);
        assert_eq!(plan.server.encryption, dyno_plan::model::Encryption::Server);
    }

    #[test]
    fn set_overrides_options_in_any_order() {
        let plan = task(&[
            "--set",
            "client.clients=3",
            "--set",
            "phases.warmup=2s",
            "--clients",
            "4",
            "--batch",
            "5",
            "--warmup",
            "1s",
            "--receive-packet-steering",
            "eth0=0-3",
            "--exporter",
            "http://h:1/m",
        ])
        .plan;
        assert_eq!((plan.client.clients, plan.client.batch), (3, 5));
        assert_eq!(plan.phases.warmup.0, std::time::Duration::from_secs(2));
        let card = plan.server.receive_packet_steering.as_deref();
        assert_eq!(card, Some("eth0=0-3"));
        assert_eq!(plan.observe.exporters[0].name, "exporter-1");
    }

    #[test]
    fn tail_options_become_plan_keys() {
        let all = [
            "dyno",
            "tail",
            "--producer",
            "wire, go",
            "--in-flight",
            "1,unbounded",
            "--pool",
            "5,50",
            "--rate",
            "100",
            "--size",
            "1KiB",
            "--work",
            "5ms",
            "--mode",
            "poll",
        ];
        let Command::Tail(tail) = Arguments::parse_from(all).command else { panic!("not tail") };
        let task = of_tail(&tail, &surroundings());
        let task = task.unwrap_or_else(|failure| panic!("{failure:#}"));
        let tail = task.plan.tail.expect("the plan has a tail table");
        assert_eq!(tail.producers, ["wire", "go"]);
        assert_eq!(tail.rate_per_s, Some(100.0));
        assert_eq!((tail.size.0, tail.pool), (1024, vec![5, 50]));
        assert_eq!(tail.mode, dyno_plan::tail::TailMode::Poll);
    }
}
