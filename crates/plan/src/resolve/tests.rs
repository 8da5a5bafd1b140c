//! Resolution as a whole.

use super::*;
use crate::builtin;
use crate::fleet::Mapping;
use crate::host::HostFacts;
use crate::model::{Schedule, ScheduleKind};
use crate::request::{Keys, Overrides};
use crate::units::Span;
use crate::wsf::Parameters;
use std::collections::BTreeSet;
use std::path::Path;

fn mongod(name: &str) -> FoundServer {
    FoundServer {
        kind: ServerKind::Mongod,
        mongod: Some(name.into()),
        description: Some(format!("`mongod` of {name}")),
    }
}

/// A machine that prefers the embedded server, which was not examined.
fn machine(cores: u32) -> HostFacts {
    HostFacts {
        cores,
        hostname: Some("bench".into()),
        folder: "/work".into(),
        tunnels: BTreeSet::from([27_999]),
        servers: vec![
            FoundServer::unseen(ServerKind::Embedded),
            mongod("6.0.27"),
            mongod("/opt/mongod"),
        ],
    }
}

impl From<Overrides> for Request {
    fn from(overrides: Overrides) -> Self {
        Request { overrides, ..Request::default() }
    }
}

fn set(settings: &[(&str, &str)]) -> Request {
    let settings = settings.iter();
    Request {
        settings: settings.map(|(key, text)| Setting::from_text(*key, *text)).collect(),
        ..Request::default()
    }
}

fn at(uri: &str) -> Request {
    Request { uri: Some(uri.into()), ..Request::default() }
}

fn with_property(name: &str, value: &str) -> Request {
    Request { properties: vec![(name.into(), value.into())], ..Request::default() }
}

fn task(cores: u32, request: impl Into<Request>) -> Task {
    resolve(&request.into(), &machine(cores)).unwrap_or_else(|error| panic!("{error}"))
}

fn resolved(source: &str, request: impl Into<Request>) -> Plan {
    let request = Request { source: Some(source.into()), ..request.into() };
    task(2, request).plan
}

fn refusal(source: &str, request: impl Into<Request>) -> PlanError {
    let request = Request { source: Some(source.into()), ..request.into() };
    match resolve(&request, &machine(2)) {
        Ok(_) => panic!("{source} should not resolve"),
        Err(error) => error,
    }
}

/// The problems of an invalid plan.
fn problems(source: &str, request: impl Into<Request>) -> Vec<Problem> {
    match refusal(source, request) {
        PlanError::Invalid(problems) => problems,
        error => panic!("{error:?}"),
    }
}

fn message(source: &str, request: impl Into<Request>) -> String {
    let error = refusal(source, request);
    format!("{error} {}", error.hint().unwrap_or_default())
}

#[test]
fn data_size_follows_the_cache_of_each_kind_of_server() {
    fn records(request: impl Into<Request>) -> u64 {
        let plan = resolved("storage-compare", request);
        assert_eq!(plan.data.times_cache, None);
        plan.data.records
    }
    let of = |server| Overrides { server: Some(server), ..Overrides::default() };
    let times_three = |mib: u64| (3 * (mib << 20)).div_ceil(1000);
    assert_eq!(records(Request::default()), times_three(64));
    assert_eq!(records(of(ServerKind::Embedded)), times_three(64));
    assert_eq!(records(of(ServerKind::Mongod)), times_three(256));
    assert_eq!(records(set(&[("server.cache", "1GiB")])), times_three(1024));
    assert_eq!(records(set(&[("data.records", "7")])), 7);
    let counted = Overrides { records: Some(8), ..Overrides::default() };
    assert_eq!(records(counted), 8);
    assert_eq!(records(with_property("recordcount", "9")), 9);
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
    assert_eq!(plan.server.cache_bytes().map(|cache| cache.0), Some(1 << 30));
    assert_eq!(plan.server.parameters["ttlMonitorEnabled"], "false");
    assert!(matches!(plan.schedule, Schedule::Poisson { rate_per_s, .. } if rate_per_s == 500.0));
    assert_eq!(plan.client.clients, 9);
    assert_eq!(plan.phases.duration, None);
    assert!(plan.operations.update > 0.0, "the other weights stay");
    assert_eq!(plan.data.collection, "42");
}

#[test]
fn wrong_setting_is_named_with_the_probable_one() {
    let problems = problems("a", set(&[("server.cahce", "1GiB"), ("x y", "1")]));
    let [misspelt, no_key] = problems.as_slice() else { panic!("{problems:?}") };
    let hint = misspelt.hint.as_deref().unwrap_or_default();
    assert!(hint.contains("`server.cache`"), "{misspelt}");
    assert!(no_key.message.contains("`x y`"), "{no_key}");
    assert!(problems.iter().all(|problem| problem.line.is_none()));
    for (key, value, part) in [
        ("client.clients", "many", "`client.clients`"),
        ("server.cache", "1XB", "`server.cache`"),
        ("server.kind", "mongo", "`mongod`"),
        ("schedule.max_start_delay", "5s", "`schedule.kind`"),
        ("base", "b", "`base`"),
    ] {
        let text = message("a", set(&[(key, value)]));
        assert!(text.contains(part), "{key}={value}: {text}");
    }
}

#[test]
fn currency_needs_a_price_possibly_from_the_plan() {
    let currency = ("price.currency", "USD");
    let text = message("a", set(&[currency]));
    assert!(text.contains("`price.per_h`"), "{text}");
    assert!(text.contains("--price '0.504 USD/h'"), "{text}");
    let mut plan = crate::builtin::find("a").unwrap();
    let typed = |(key, value): (&str, &str)| Setting::from_text(key, value);
    crate::file::set(&mut plan, &[typed(("price.per_h", "0.5"))]).unwrap();
    crate::file::set(&mut plan, &[typed(currency)]).unwrap();
    let price = plan.price.unwrap();
    assert_eq!((price.per_h, price.currency.as_deref()), (0.5, Some("USD")));
}

#[test]
fn rate_alone_means_a_constant_schedule() {
    let plan = resolved("a", Overrides { rate_per_s: Some(500.0), ..Default::default() });
    assert_eq!(
        plan.schedule,
        Schedule::Constant { rate_per_s: 500.0, max_start_delay: Span::from_secs(10) }
    );
}

#[test]
fn set_rate_alone_means_an_open_schedule() {
    let set_rate = set(&[("schedule.rate_per_s", "500")]);
    let rate_per_s = 500.0;
    let usual = Schedule::DEFAULT_MAX_START_DELAY;
    let constant = |max_start_delay| Schedule::Constant { rate_per_s, max_start_delay };
    assert_eq!(resolved("a", set_rate.clone()).schedule, constant(usual));
    let late = set(&[("schedule.rate_per_s", "500"), ("schedule.max_start_delay", "1s")]);
    assert_eq!(resolved("a", late).schedule, constant(Span::from_secs(1)));
    let with = |schedule| Request {
        overrides: Overrides { schedule: Some(schedule), ..Default::default() },
        ..set_rate.clone()
    };
    assert_eq!(
        resolved("a", with(ScheduleKind::Throttled)).schedule,
        Schedule::Throttled { rate_per_s }
    );
    assert!(message("a", with(ScheduleKind::Closed)).contains("`--schedule constant`"));
    // An open schedule of the plan stays.
    let mut plan = crate::builtin::find("a").unwrap();
    let max_start_delay = Span::from_secs(3);
    plan.schedule = Schedule::Poisson { rate_per_s: 5.0, max_start_delay };
    crate::file::set(&mut plan, &set_rate.settings).unwrap();
    assert_eq!(plan.schedule, Schedule::Poisson { rate_per_s, max_start_delay });
}

#[test]
fn rate_completes_the_schedule_of_a_setting() {
    let request = |kind| Request {
        overrides: Overrides { rate_per_s: Some(200.0), ..Default::default() },
        ..set(&[("schedule.kind", kind)])
    };
    let rate_per_s = 200.0;
    assert_eq!(resolved("a", request("throttled")).schedule, Schedule::Throttled { rate_per_s });
    assert!(message("a", request("closed")).contains("`--schedule constant`"));
}

#[test]
fn count_of_operations_as_a_property_has_no_time_limit() {
    let phases = resolved("a", with_property("operationcount", "3500")).phases;
    assert_eq!((phases.operations, phases.duration), (Some(3500), None));
}

#[test]
fn rate_with_a_closed_loop_is_refused() {
    let overrides = Overrides {
        rate_per_s: Some(5.0),
        schedule: Some(ScheduleKind::Closed),
        ..Default::default()
    };
    assert!(message("a", overrides).contains("`--schedule constant`"));
    let overrides = Overrides { schedule: Some(ScheduleKind::Poisson), ..Default::default() };
    let problem = problems("a", overrides).remove(0);
    assert!(problem.message.contains("`poisson`"), "{problem}");
    let hint = problem.hint.unwrap_or_default();
    assert!(hint.contains("`--rate`"), "{hint}");
}

#[test]
fn number_of_operations_replaces_the_default_duration() {
    let plan = resolved("a", Overrides { operations: Some(1000), ..Default::default() });
    assert_eq!((plan.phases.operations, plan.phases.duration), (Some(1000), None));
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
    let few = || set(&[("client.clients", "1")]);
    assert_eq!(task(16, few()).plan.client.threads, 1);
    let overrides = Overrides { threads: Some(3), ..Default::default() };
    assert!(message("a", Request { overrides, ..few() }).contains("client.threads"));
}

#[test]
fn address_means_a_running_server() {
    let plan = resolved("a", at("mongodb://localhost"));
    assert_eq!(plan.server.kind, ServerKind::Uri);
    let both = Request {
        overrides: Overrides { server: Some(ServerKind::Embedded), ..Default::default() },
        ..at("mongodb://localhost")
    };
    let text = message("a", both);
    assert!(text.contains("`--uri`") && text.contains("`--server`"), "{text}");
}

#[test]
fn machine_chooses_the_server_unless_it_is_named() {
    let started = |request: Request| {
        let task = task(2, request);
        (task.plan.server.kind, task.plan.server.mongod, task.server)
    };
    let unseen = (ServerKind::Embedded, None, None);
    assert_eq!(started(Request::default()), unseen);
    let (kind, name, server) = started(set(&[("server.mongod", "6.0.27")]));
    assert_eq!((kind, name.as_deref()), (ServerKind::Mongod, Some("6.0.27")));
    assert_eq!(server.as_deref(), Some("`mongod` of 6.0.27"));
    let named = Overrides { mongod: Some("/opt/mongod".into()), ..Default::default() };
    assert_eq!(started(named.clone().into()).0, ServerKind::Mongod);
    let both = Overrides { server: Some(ServerKind::Embedded), ..named };
    assert!(message("a", both).contains("`server.mongod`"));
    let missing = Overrides { mongod: Some("8.0.3".into()), ..Default::default() };
    let refusal = refusal("a", missing);
    assert!(
        matches!(&refusal, PlanError::Host(error) if error.to_string().contains("`8.0.3`")),
        "{refusal:?}"
    );
}

#[test]
fn chosen_server_is_noted_and_checked() {
    let chosen = HostFacts { servers: vec![mongod("6.0.27")], ..machine(2) };
    let task = resolve(&Request::default(), &chosen).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(task.notes, ["server: `mongod` of 6.0.27"]);
    assert!(task.plan_text().starts_with("# server: `mongod` of 6.0.27\n"));
    let set = set(&[("server.topology", "replica-set=3")]);
    let plan = resolve(&set, &chosen).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.plan.server.topology.as_deref(), Some("replica-set=3"));
    let text = message("a", set);
    assert!(
        text.contains("`server.topology` = `replica-set=3`")
            && text.contains("`dyno server install`"),
        "{text}"
    );
}

#[test]
fn fleet_refuses_pairs_given_as_a_topology() {
    let fleet = set(&[
        ("fleet.clients", r#"["h1", "h2"]"#),
        ("fleet.servers", r#"["h3"]"#),
        ("server.kind", "mongod"),
        ("server.topology", "pairs=2"),
    ]);
    let text = message("a", fleet);
    assert!(text.contains("`server.pairs`") && text.contains("`fleet.mapping`"), "{text}");
}

#[test]
fn framework_client_hosts_share_a_running_deployment() {
    let mapping = |request: Request| {
        let request = Request {
            wsf: Some(Parameters { on_hosts: true, ..Parameters::default() }),
            ..request
        };
        let task = resolve(&request, &machine(2)).unwrap_or_else(|error| panic!("{error}"));
        task.plan.fleet.expect("there is one").mapping
    };
    assert_eq!(mapping(Request::default()), Mapping::Pairs);
    assert_eq!(mapping(at("mongodb://db/")), Mapping::Deployment);
    let set = set(&[("fleet.mapping", "deployment"), ("server.pairs", "1")]);
    assert_eq!(mapping(set), Mapping::Deployment, "typed values count");
}

#[test]
fn client_placement_has_no_effect_with_a_running_server() {
    let warned = |given: &[(&str, &str)]| {
        let given = given.iter();
        let parameters = Parameters {
            given: given.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..Parameters::default()
        };
        let request = Request { wsf: Some(parameters), ..at("mongodb://db/") };
        let task = task(2, request);
        assert_eq!(task.plan.server.placement, None);
        assert!(!task.notes.iter().any(|note| note.contains("--placement")), "{:?}", task.notes);
        task.warnings.join("\n")
    };
    let cores = ("YCSB_CORES", "0-3");
    let warnings = warned(&[cores]);
    assert_eq!(warnings.matches("`YCSB_CORES`").count(), 1, "{warnings}");
    assert!(warnings.contains("not placed"), "{warnings}");
    let option = ("NUMACTL_OPTION", "1");
    let warnings = warned(&[option, cores, ("CUSTOMER_NUMAOPT_CLIENT", "-i all")]);
    for (begin, part) in [
        ("`NUMACTL_OPTION`", "already running"),
        ("`YCSB_CORES`", "`CUSTOMER_NUMAOPT_CLIENT`"),
        ("`CUSTOMER_NUMAOPT_CLIENT`", "not placed"),
    ] {
        let line = warnings.lines().find(|line| line.starts_with(begin));
        assert!(line.is_some_and(|line| line.contains(part)), "{warnings}");
    }
}

#[test]
fn plan_problems_are_reported_together_before_host_problems() {
    let request = Request {
        overrides: Overrides { mongod: Some("8.0.3".into()), ..Default::default() },
        settings: vec![
            Setting::new("client.clients", 0),
            Setting::new("server.placement", "spread=1"),
            Setting::new("server.topology", "ring=3"),
        ],
        ..Request::default()
    };
    let text = message("a", request);
    for part in ["`client.clients`", "`server.placement`", "`ring=3`"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("8.0.3"), "{text}");
}

#[test]
fn credentials_stay_out_of_the_plan() {
    let task = task(2, at("mongodb://me:secret@db.example/shop?authSource=admin"));
    let text = format!("{:?}{}", task.plan, file::to_toml(&task.plan));
    assert!(!text.contains("secret") && !text.contains("me@") && !text.contains("me:s"), "{text}");
    let remote = task.remote.expect("there is an address");
    assert_eq!(remote.credentials.expect("a user is named").password(), "secret");
    assert_eq!(task.plan.server.kind, ServerKind::Uri);
    assert_eq!(task.plan.data.database, "shop");
    let in_plan = set(&[("server.kind", "uri"), ("server.uri", "mongodb://me:secret@h")]);
    let text = message("a", in_plan);
    assert!(text.contains("`server.uri`") && text.contains("credentials"), "{text}");
}

#[test]
fn database_admin_is_only_for_authentication() {
    let plan = resolved("a", at("mongodb://h/admin"));
    assert_eq!(plan.data.database, "ycsb");
}

#[test]
fn more_clients_than_the_pool_allows_are_refused() {
    let request = Request {
        settings: vec![Setting::new("client.clients", 6)],
        ..at("mongodb://h/?maxPoolSize=5")
    };
    let text = message("a", request);
    assert!(text.contains("`maxPoolSize`") && text.contains("`5`"), "{text}");
}

#[test]
fn several_addresses_are_refused() {
    let refusal = refusal("a", at("mongodb://h1 mongodb://h2"));
    assert!(matches!(refusal, PlanError::SeveralUris { count: 2 }), "{refusal:?}");
}

#[test]
fn remote_server_leaves_all_cores_to_the_client() {
    let threads = |uri: &str| task(8, at(uri)).plan.client.threads;
    assert_eq!(threads("mongodb://db.example"), 8);
    assert_eq!(threads("mongodb://127.0.0.1"), 4);
    assert_eq!(threads("mongodb://[::1]:3"), 4);
    assert_eq!(threads("mongodb://Bench"), 4);
    assert_eq!(threads("mongodb://%2Ftmp%2Fm.sock"), 4);
    assert_eq!(threads("mongodb://127.0.0.1:27999"), 8, "a tunnel");
    assert_eq!(task(8, Request::default()).plan.client.threads, 4);
    assert_eq!(task(1, Request::default()).plan.client.threads, 1);
}

#[test]
fn requested_number_of_threads_stays() {
    let three = Overrides { threads: Some(3), ..Default::default() };
    let request = Request { overrides: three, ..at("mongodb://db.example") };
    let task = task(8, request);
    assert_eq!(task.plan.client.threads, 3);
    assert_eq!(task.threads, Threads::Given(3));
}

#[test]
fn clients_of_several_servers_share_the_threads() {
    let threads = |request: Request| task(8, request).plan.client.threads;
    let pairs = |threads| Overrides { pairs: Some(2), threads, ..Default::default() };
    assert_eq!(threads(pairs(None).into()), 2);
    assert_eq!(threads(set(&[("server.topology", "pairs=2")])), 2);
    assert_eq!(threads(set(&[("server.pairs", "2")])), 2);
    assert_eq!(threads(pairs(Some(4)).into()), 4);
    let both = Request { overrides: pairs(None), ..set(&[("client.threads", "3")]) };
    assert_eq!(threads(both), 3);
    let task = task(8, pairs(None));
    assert_eq!(task.threads, Threads::Shared(4));
}

#[test]
fn pool_size_limits_the_clients_of_ycsb_with_a_warning() {
    let text = "recordcount=10\noperationcount=10\nthreadcount=9\nmongodb.url=mongodb://h/?maxPoolSize=3\n";
    let properties = crate::ycsb::Properties::parse(text, "t").expect("it is valid");
    let ycsb = crate::ycsb::resolve(&properties, Phase::Run, false).expect("it is valid");
    let task =
        resolve_ycsb(ycsb, Phase::Run, &machine(8)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((task.plan.client.clients, task.plan.client.threads), (3, 3));
    let warning = task.warnings.last().expect("there are too many");
    assert!(warning.contains("maxPoolSize=3"), "{warning}");
}

#[test]
fn mongodb_url_is_used_unless_a_server_is_started() {
    let property = || with_property("mongodb.url", "mongodb://me:secret@localhost/x");
    let with_uri = task(2, property());
    assert_eq!(with_uri.plan.data.database, "x");
    assert!(with_uri.remote.is_some_and(|remote| remote.credentials.is_some()));
    let started = Request {
        overrides: Overrides { server: Some(ServerKind::Embedded), ..Default::default() },
        ..property()
    };
    let started = task(2, started);
    assert!(started.remote.is_none());
    assert!(started.warnings.iter().any(|warning| warning.contains("mongodb.url")));
}

#[test]
fn loading_into_a_temporary_server_is_refused() {
    let load = |data_dir: Option<&str>| Request {
        work: Work::Load,
        data_dir: data_dir.map(str::to_owned),
        ..Request::default()
    };
    assert!(matches!(refusal("a", load(None)), PlanError::DataGoesAway));
    let kept = resolved("a", load(Some("/d")));
    assert_eq!(kept.server.data_dir.as_deref(), Some("/d"));
}

#[test]
fn fresh_data_without_a_load_is_refused() {
    let request = Request { no_load: true, ..set(&[("data.fresh", "collection")]) };
    assert!(matches!(refusal("a", request), PlanError::NothingLoaded));
}

#[test]
fn soak_lasts_an_hour_by_default() {
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
    let soak = |source: &str, give_up: Option<u64>, request: Request| {
        let request =
            Request { work: Work::Soak { give_up: give_up.map(Span::from_secs) }, ..request };
        let plan = resolved(source, request);
        let seconds = plan.phases.duration.map(|length| length.0.as_secs());
        (seconds, plan.phases.operations, plan.client.give_up.0.as_secs())
    };
    let lasting =
        |seconds| Overrides { duration: Some(Span::from_secs(seconds)), ..Default::default() };
    let counted = Overrides { operations: Some(5), ..Default::default() };
    let plain_soak = |source: &str| soak(source, None, Request::default());
    assert_eq!(plain_soak("a"), (Some(3_600), None, 300));
    assert_eq!(plain_soak("pkm"), (Some(3_600), None, 300));
    assert_eq!(soak("a", None, lasting(30).into()), (Some(30), None, 300));
    let typed = set(&[("phases.duration", "30s")]);
    assert_eq!(soak("a", None, typed).0, Some(30));
    assert_eq!(soak("a", None, counted.into()), (None, Some(5), 300));
    assert_eq!(soak("a", Some(7), Request::default()).2, 7);
    let typed = set(&[("client.give_up", "8s")]);
    assert_eq!(soak("a", None, typed).2, 8);
    assert_eq!(plain_soak(&plain), (Some(3_600), None, 300));
    assert_eq!(plain_soak(&long), (Some(8 * 3_600), None, 540));
    assert_eq!(soak(&long, None, lasting(7_200).into()).0, Some(7_200));
}

#[test]
fn trace_command_runs_in_the_measure_phase_by_default() {
    let request = Request { trace: Some("perf record -a".into()), ..Request::default() };
    let plan = resolved("a", request);
    let trace = &plan.traces[0];
    assert_eq!(trace.command, ["sh", "-c", "perf record -a"]);
    assert_eq!(trace.phase, crate::model::PhaseKind::Measure);
}

#[test]
fn index_builds_and_messages_are_not_loads() {
    let work = |work| Request { work, ..Request::default() };
    let build = || Work::IndexBuild { collection: None };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tail.toml");
    std::fs::write(&path, "name = \"t\"\n[tail]\nmessages = 5\n").unwrap();
    let refused = refusal(&path.display().to_string(), Request::default());
    assert!(matches!(refused, PlanError::OtherWork { command: "dyno tail", .. }), "{refused:?}");
    let pairs =
        Request { overrides: Overrides { pairs: Some(2), ..Default::default() }, ..work(build()) };
    assert!(matches!(refusal("churned", pairs), PlanError::OneServer { .. }));
    // A plan that is valid only for an index build.
    let dealt = folder.path().join("dealt.toml");
    let text = "name = \"d\"\n[server]\ntopology = \"split=2\"\ncache = \"1GiB\"\n[index_build]\n";
    std::fs::write(&dealt, text).unwrap();
    let dealt = dealt.display().to_string();
    let refused = refusal(&dealt, work(Work::Servers));
    assert!(
        matches!(&refused, PlanError::Split { topology } if topology == "split=2"),
        "{refused:?}"
    );
    let plan = self::task(2, Request { source: Some(dealt), ..work(build()) }).plan;
    assert_eq!(plan.server.topology.as_deref(), Some("split=2"));
    let task = task(8, work(build()));
    assert_eq!(task.plan.client.threads, 1);
    let there = Request {
        data_dir: Some("data".into()),
        ..work(Work::IndexBuild { collection: Some(("shop".into(), "orders".into())) })
    };
    let plan = self::task(2, there).plan;
    assert_eq!((&*plan.data.database, &*plan.data.collection), ("shop", "orders"));
    assert_eq!(plan.server.data_dir.as_deref(), Some("/work/data"));
    let elsewhere = Request {
        work: Work::IndexBuild { collection: Some(("shop".into(), "orders".into())) },
        ..at("mongodb://localhost/other")
    };
    assert_eq!(self::task(2, elsewhere).plan.data.database, "shop");
}

#[test]
fn experiment_point_changes_keys_and_dependent_values() {
    let base = task(8, Request::default());
    assert_eq!(base.plan.client.threads, 4);
    let keys = |key: &str, value: &str| Keys::from([(key.to_owned(), value.to_owned())]);
    let point = |key: &str, value: &str| base.with_keys(&keys(key, value));
    let fewer = point("client.clients", "2").expect("it is valid");
    assert_eq!((fewer.plan.client.threads, fewer.plan.client.clients), (2, 2));
    let pairs = point("server.topology", "pairs=4").expect("it is valid");
    assert_eq!((pairs.plan.server.pairs, pairs.plan.client.threads), (4, 1));
    let mongod = Overrides { mongod: Some("6.0.27".into()), ..Default::default() };
    let mongod = task(2, mongod);
    assert!(mongod.server.is_some());
    let embedded = mongod.with_keys(&keys("server.kind", "embedded"));
    let embedded = embedded.expect("it is valid");
    assert_eq!((embedded.plan.server.mongod, embedded.server), (None, None));
    assert!(point("client.clients", "0").is_err());
}

#[test]
fn resolved_plan_can_be_aimed_at_another_address() {
    let plan = task(2, at("mongodb://one/x")).plan;
    let again = Task::from_plan(plan.clone(), None, Some("mongodb://me:secret@two/x"));
    let again = again.expect("it is valid");
    for address in ["`mongodb://one:27017/x`", "`mongodb://two:27017/x`"] {
        assert!(again.warnings[0].contains(address), "{:?}", again.warnings);
    }
    assert!(again.remote.is_some_and(|remote| remote.credentials.is_some()));
    let same = Task::from_plan(plan, None, None).expect("it is valid");
    assert!(same.warnings.is_empty() && same.remote.is_some());
    let started = task(2, Request::default()).plan;
    let started = Task::from_plan(started, None, Some("mongodb://two")).expect("it is valid");
    assert!(started.remote.is_none() && started.warnings.len() == 1);
}

#[test]
fn unknown_workload_names_the_nearest_one() {
    let refused = refusal("90read10updates", Request::default());
    assert!(
        matches!(refused, PlanError::Unknown { nearest: Some("90read10update"), .. }),
        "{refused:?}"
    );
    for name in ["workloada", "workloadA", "workloads/workloada", "workload_a"] {
        let refused = refusal(name, Request::default());
        assert!(matches!(refused, PlanError::Unknown { nearest: Some("a"), .. }), "{refused:?}");
    }
    let refused = refusal("z", Request::default());
    assert!(matches!(refused, PlanError::Unknown { nearest: None, .. }), "{refused:?}");
    let refused = refusal("no/such/file", Request::default());
    assert!(matches!(refused, PlanError::Unknown { nearest: None, .. }), "{refused:?}");
    let hint = refused.hint().unwrap_or_default();
    assert!(hint.contains("a, b, c"), "{hint}");
}

#[test]
fn property_files_are_recognized_by_their_content() {
    assert!(open::is_property_file(Path::new("workloada"), "# comment\nrecordcount=1000\n"));
    assert!(!open::is_property_file(Path::new("x.toml"), "recordcount=1000\n"));
    assert!(!open::is_property_file(Path::new("plan"), "name = \"x\"\n"));
}

#[test]
fn ycsb_workload_files_have_the_mixes_of_built_in_plans() {
    for name in ["a", "b", "c", "d", "e", "f"] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/ycsb/workload");
        let from_file = resolved(&format!("{folder}{name}"), Request::default());
        let built_in = builtin::find(name).expect("it is built in");
        assert_eq!(from_file.operations, built_in.operations, "{name}");
        assert_eq!(from_file.keys, built_in.keys, "{name}");
        assert_eq!(from_file.access, built_in.access, "{name}");
        assert_eq!(from_file.data.records, 1000, "{name}");
    }
}
