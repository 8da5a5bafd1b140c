//! Deployments of every topology against the fake `mongod` and `mongos`: commands that are sent and
//! their order, and what is left behind after every kind of end.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bson::doc;
use dyno_plan::model::{DiskMapping, Encryption, ServerKind, ServerPlan};
use dyno_plan::units::Bytes;
use dyno_servers::placement::InstancePlacement;
use dyno_servers::{
    AdminClient, DataDir, Deployment, DeploymentOptions, InstanceKind, MemoryShare, Namespace,
    PreSplit, ServerError, ServerOptions, ShardKeyKind, Sharded, Topology, deviations, read_back,
};
use dyno_testkit::fake_mongod::{FakeAdminClient, FakeMongod, serve};
use tempfile::TempDir;

const HELPER: &str = "deployment::helper_that_is_a_server";
const HOLDER: &str = "deployment::helper_that_holds_a_cluster";
const HOLDER_FOLDER: &str = "DYNO_TEST_CLUSTER_FOLDER";

#[test]
#[ignore = "a helper process, started by other tests"]
fn helper_that_is_a_server() {
    serve();
}

pub(crate) struct Bench {
    folder: PathBuf,
    pub(crate) fake_mongod: FakeMongod,
    pub(crate) admin: FakeAdminClient,
    _temporary: Option<TempDir>,
}

impl Bench {
    pub(crate) fn new(version: &str) -> Bench {
        let temporary = TempDir::new().unwrap();
        let mut bench = Bench::in_folder(temporary.path(), version);
        bench._temporary = Some(temporary);
        bench
    }

    fn in_folder(folder: &Path, version: &str) -> Bench {
        Bench {
            fake_mongod: FakeMongod::install(&folder.join("bin"), version, HELPER),
            folder: folder.to_owned(),
            admin: FakeAdminClient::default(),
            _temporary: None,
        }
    }

    pub(crate) fn options(&self) -> DeploymentOptions {
        let plan = ServerPlan { kind: ServerKind::Mongod, ..ServerPlan::default() };
        let server = ServerOptions::from_plan(
            &plan,
            self.fake_mongod.mongod(),
            DataDir::Temporary(self.folder.join("data")),
            self.folder.join("logs/server.raw.log"),
        );
        let mut options = DeploymentOptions::new(server.unwrap());
        options.router = Some(self.fake_mongod.mongos());
        options.collection =
            Some(Namespace { database: "shop".into(), collection: "orders".into() });
        options
    }

    pub(crate) fn start(
        &mut self,
        text: &str,
        options: &DeploymentOptions,
    ) -> Result<Deployment, ServerError> {
        let topology: Topology = text.parse().unwrap();
        Deployment::start(&topology, options, &mut self.admin, &|| false)
    }

    fn error(&mut self, text: &str, options: &DeploymentOptions) -> ServerError {
        let error = self.start(text, options).unwrap_err();
        self.assert_clean();
        error
    }

    /// Asserts that no process and no folder is left, only programs and logs.
    pub(crate) fn assert_clean(&self) {
        let left: Vec<_> = processes_with(&self.folder);
        assert!(left.is_empty(), "processes are left: {left:?}");
        let mut names: Vec<_> = fs::read_dir(&self.folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.retain(|name| name != "bin" && name != "logs");
        assert!(names.is_empty(), "folders are left: {names:?}");
    }

    pub(crate) fn assert_no_violation(&self) {
        assert_eq!(self.fake_mongod.violations(), Vec::<String>::new());
    }

    /// Commands that the member received, in order.
    fn commands(&self, member: &str) -> Vec<String> {
        let events = self.fake_mongod.events();
        events
            .iter()
            .filter_map(|line| line.strip_prefix(&format!("{member} ")))
            .filter(|what| !["started", "stopped"].contains(what))
            .map(str::to_owned)
            .collect()
    }

    fn stop_order(&self) -> Vec<String> {
        let events = self.fake_mongod.events();
        let stopped = events.iter().filter_map(|line| line.strip_suffix(" stopped"));
        stopped.map(str::to_owned).collect()
    }
}

/// Live processes whose environment names the folder.
fn processes_with(folder: &Path) -> Vec<u32> {
    let needle = format!("DYNO_DOUBLE_FOLDER={}/", folder.display());
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|process| {
            let path = format!("/proc/{process}/environ");
            fs::read(path).is_ok_and(|text| String::from_utf8_lossy(&text).contains(&needle))
        })
        .collect()
}

pub(crate) fn texts(error: &ServerError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

#[test]
fn standalone_server_is_started() {
    let mut bench = Bench::new("7.0.14");
    let deployment = bench.start("standalone", &bench.options()).unwrap();
    assert_eq!(deployment.members().len(), 1);
    let address = deployment.members()[0].server().address();
    assert_eq!(deployment.uri(), format!("mongodb://{address}/?directConnection=true"));
    assert_eq!(deployment.members()[0].server().settings()["cache_bytes"], "server default");
    assert!(bench.folder.join("logs/server.raw.log").exists());
    deployment.stop().unwrap();
    assert_eq!(bench.commands("data"), Vec::<String>::new());
    bench.assert_no_violation();
    bench.assert_clean();
}

#[test]
fn pairs_share_memory_and_alternate_disks() {
    let mut bench = Bench::new("7.0.14");
    let mut options = bench.options();
    options.memory = Some(MemoryShare::equal(9 << 30, 3));
    options.data_dirs = vec![bench.folder.join("disk-a"), bench.folder.join("disk-b")];
    let deployment = bench.start("pairs=3", &options).unwrap();
    assert_eq!(deployment.uris().len(), 3);
    for (member, folder) in deployment.members().iter().zip(["disk-a", "disk-b", "disk-a"]) {
        let share = (4 << 30) / 3 / (1 << 20) * (1_u64 << 20);
        assert_eq!(member.server().settings()["cache_bytes"], share.to_string());
        assert!(member.server().data_dir().starts_with(bench.folder.join(folder)));
    }
    deployment.stop().unwrap();
    bench.assert_no_violation();
    bench.assert_clean();

    options.server.plan.disk_mapping = DiskMapping::Direct;
    let error = bench.error("pairs=3", &options);
    assert!(matches!(error, ServerError::TooFewFolders { instances: 3, folders: 2 }));
    options.memory = Some(MemoryShare::equal(1 << 30, 3));
    options.server.plan.disk_mapping = DiskMapping::RoundRobin;
    let error = bench.error("pairs=3", &options);
    assert!(matches!(error, ServerError::NoMemory { .. }), "{error:?}");
}

#[test]
fn replica_set_is_initiated_and_stopped_with_its_primary_last() {
    let mut bench = Bench::new("7.0.14");
    let options = bench.options();
    let deployment = bench.start("replica-set=3,priorities=1/2/1", &options).unwrap();
    let primaries: Vec<_> = deployment.members().iter().map(|one| one.was_primary()).collect();
    assert_eq!(primaries, [false, true, false]);
    let hosts: Vec<_> =
        deployment.members().iter().map(|member| member.server().address().to_string()).collect();
    let uri = format!("mongodb://{}/?replicaSet=dyno", hosts.join(","));
    assert_eq!(deployment.uri(), uri);
    assert_eq!(bench.commands("member-0")[0], "replSetInitiate");

    let member = &deployment.members()[2];
    let limit = Duration::from_secs(10);
    let found = read_back(&mut bench.admin, deployment.target(member), &[], limit).unwrap();
    assert_eq!(found["replica_set"], "dyno");
    assert_eq!(found["replica_set.members"], "3");
    assert_eq!(deviations(member.server().settings(), &found), []);

    deployment.stop().unwrap();
    // The secondaries end concurrently, and the primary after them.
    let mut order = bench.stop_order();
    assert_eq!(order.pop().as_deref(), Some("member-1"));
    order.sort();
    assert_eq!(order, ["member-0", "member-2"]);
    bench.assert_no_violation();
    bench.assert_clean();
}

#[test]
fn fake_members_answer_concurrent_requests() {
    let mut bench = Bench::new("7.0.14");
    let options = bench.options();
    let deployment = bench.start("replica-set=2", &options).unwrap();
    let question = doc! { "replSetGetStatus": 1 };
    let limit = Duration::from_secs(2);
    thread::scope(|scope| {
        for member in deployment.members() {
            let target = deployment.target(member);
            let question = &question;
            scope.spawn(move || {
                let mut admin = FakeAdminClient::default();
                for _ in 0..200 {
                    let status = admin.run(target, "admin", question.clone(), limit);
                    let members = status.unwrap().get_array("members").unwrap().clone();
                    for member in members {
                        let state = member.as_document().unwrap().get_i32("state").unwrap();
                        assert!(state == 1 || state == 2, "{member}");
                    }
                }
            });
        }
    });
    deployment.stop().unwrap();
    bench.assert_no_violation();
    bench.assert_clean();
}

#[test]
fn difference_from_requested_settings_is_a_deviation() {
    let mut bench = Bench::new("7.0.14");
    let mut options = bench.options();
    options.server.cache = Some(Bytes(512 << 20));
    let deployment = bench.start("standalone", &options).unwrap();
    let member = &deployment.members()[0];
    let mut asked = member.server().settings().clone();
    asked.insert("cache_bytes".into(), "1".into());
    let limit = Duration::from_secs(10);
    let found = read_back(&mut bench.admin, deployment.target(member), &[], limit).unwrap();
    let all = deviations(&asked, &found);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((all[0].setting.as_str(), all[0].found.as_str()), ("cache_bytes", "536870912"));
}

#[test]
fn arbiter_holds_no_data_and_has_the_smallest_cache() {
    let mut bench = Bench::new("4.4.29");
    let deployment = bench.start("replica-set=2+1", &bench.options()).unwrap();
    let arbiter = &deployment.members()[2];
    assert_eq!(arbiter.instance().kind, InstanceKind::Arbiter);
    assert_eq!(arbiter.server().settings()["cache_bytes"], (256_u64 << 20).to_string());
    assert_eq!(deployment.uri().matches("127.0.0.1").count(), 2);
    deployment.stop().unwrap();
    assert_eq!(bench.stop_order().last().unwrap(), "member-0");
    bench.assert_no_violation();
    bench.assert_clean();
}

#[test]
fn secured_members_share_a_key_and_a_user() {
    let mut bench = Bench::new("7.0.14");
    let mut options = bench.options();
    options.server.plan.auth = true;
    options.server.plan.encryption = Encryption::Mutual;
    let deployment = bench.start("replica-set=2+1", &options).unwrap();
    let secrets = bench.folder.join("server-secrets");
    assert!(secrets.join("members.key").exists());
    let credentials = deployment.credentials().unwrap().clone();
    let uri = deployment.with_credentials(&deployment.uri());
    assert!(uri.contains(credentials.password()) && uri.contains("authSource=admin"));
    assert!(uri.contains("tls=true&tlsCAFile=") && uri.contains("tlsCertificateKeyFile="));
    assert!(!deployment.uri().contains(credentials.password()));
    assert!(!format!("{deployment:?}").contains(credentials.password()));
    assert!(bench.admin.encrypted_targets > 0);
    let limit = Duration::from_secs(10);
    for member in deployment.members() {
        let target = deployment.target(member);
        assert_eq!(target.credentials.is_some(), member.instance().kind == InstanceKind::Data);
        let found = read_back(&mut bench.admin, target, &[], limit).unwrap();
        if member.instance().kind == InstanceKind::Data {
            assert_eq!(found["auth"], "true");
        }
    }
    deployment.stop().unwrap();
    for entry in fs::read_dir(bench.folder.join("logs")).unwrap() {
        let log = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!log.contains(credentials.password()));
    }
    // The last command of `read_back` needs more than an arbiter permits; nothing else was refused.
    let mut violations = bench.fake_mongod.violations();
    violations.retain(|line| !line.starts_with("arbiter-0 replSetGetConfig: 13"));
    assert_eq!(violations, Vec::<String>::new());
    bench.assert_clean();
}

#[test]
fn cluster_is_assembled_in_the_order_of_each_version() {
    for (version, members) in [("5.0.31", 1), ("7.0.14", 3), ("8.0.4", 1)] {
        let mut bench = Bench::new(version);
        let mut options = bench.options();
        options.server.plan.auth = true;
        let text = format!("sharded=2x{members},chunks=8");
        let deployment = bench.start(&text, &options).unwrap();
        let router = deployment.members().last().unwrap().server().address();
        let limit = Duration::from_secs(10);
        let settings = deployment.read_back(&mut bench.admin, limit).unwrap();
        assert_eq!(settings.len(), 2 * members + 2);
        for member in &settings {
            assert_eq!(member.deviations, [], "{}", member.name);
            assert_eq!(member.effective["reported_version"], version);
        }
        assert_eq!(deployment.uri(), format!("mongodb://{router}/"));

        let mut expected = vec!["createUser", "addShard", "addShard", "balancerStop"];
        if version == "5.0.31" {
            expected.push("enableSharding");
        }
        expected.extend(["shardCollection", "find", "find"]);
        // From 8.0 on two chunks are split until there are eight.
        expected.extend(vec!["split"; if version == "8.0.4" { 6 } else { 0 }]);
        expected.extend(["getCmdLineOpts", "getParameter", "serverStatus", "replSetGetConfig"]);
        assert_eq!(bench.commands("router"), expected, "{version}");

        deployment.stop().unwrap();
        let order = bench.stop_order();
        assert_eq!(order.first().unwrap(), "router");
        assert_eq!(order.last().unwrap(), "config-0");
        assert_eq!(order.len(), 2 * members + 2);
        let last_of_shard = order.iter().rfind(|name| name.starts_with("shard-0")).unwrap();
        assert_eq!(last_of_shard, "shard-0-0", "the primary is stopped last");
        bench.assert_no_violation();
        bench.assert_clean();
    }
    let here = Path::new("WiredTiger");
    assert!(!here.exists(), "a router marks the folder it starts in");
}

#[test]
fn ranged_key_is_split_at_its_values_over_the_shards() {
    let mut bench = Bench::new("7.0.14");
    let mut cluster = Sharded::new(2, 1);
    cluster.shard_key.kind = ShardKeyKind::Ranged;
    cluster.pre_split = PreSplit::At(["g", "n", "t"].map(str::to_owned).into());
    cluster.balancer = dyno_servers::Balancer::On;
    let topology = Topology::Sharded(cluster);
    let options = bench.options();
    let deployment = Deployment::start(&topology, &options, &mut bench.admin, &|| false).unwrap();
    let commands = bench.commands("router");
    let tail = [
        "shardCollection",
        "split",
        "split",
        "split",
        "find",
        "find",
        "moveChunk",
        "moveChunk",
        "balancerStart",
    ];
    assert_eq!(commands[commands.len() - tail.len()..], tail);
    deployment.stop().unwrap();
    bench.assert_no_violation();
    bench.assert_clean();
}

#[test]
fn set_without_a_primary_fails_at_the_deadline() {
    let mut bench = Bench::new("7.0.14");
    bench.fake_mongod.misbehave("never-primary dyno");
    let mut options = bench.options();
    options.step_limit = Duration::from_millis(600);
    let error = bench.error("replica-set=2", &options);
    let ServerError::Deadline { step, pending, waited } = &error else { panic!("{error:?}") };
    assert_eq!(*waited, options.step_limit);
    assert!(step.contains("`dyno`") && pending.contains("primary"), "{error}");
}

#[test]
fn member_that_never_gets_the_data_is_named() {
    let mut bench = Bench::new("7.0.14");
    bench.fake_mongod.misbehave("stuck shard-1-2");
    let mut options = bench.options();
    options.step_limit = Duration::from_millis(800);
    let error = bench.error("sharded=2x3", &options);
    let text = error.to_string();
    for part in ["`shard-1`", "`shard-1-2`", "STARTUP2"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(error.hint().unwrap().contains("logs"));
}

#[test]
fn member_that_dies_during_the_start_is_named_with_its_log() {
    let mut bench = Bench::new("7.0.14");
    bench.fake_mongod.misbehave("die router shardCollection");
    let error = bench.error("sharded=2x1", &bench.options());
    let ServerError::MemberEnded { name, step, log_tail, .. } = &error else {
        panic!("unexpected {error:?}");
    };
    assert_eq!(name, "router-0");
    assert!(step.contains("`shop.orders`"), "{step}");
    let last = log_tail.last().unwrap();
    assert!(last.contains("to die"), "{last}");
    assert!(error.to_string().contains(last), "{error}");
}

#[test]
fn refused_step_names_the_server_and_its_answer() {
    let mut bench = Bench::new("7.0.14");
    bench.fake_mongod.misbehave("refuse addShard");
    let error = bench.error("sharded=2x1", &bench.options());
    let ServerError::Step { name, step, source } = &error else { panic!("{error:?}") };
    assert_eq!((name.as_str(), source.code()), ("router-0", Some(8000)));
    assert!(step.contains("`shard-0`"), "{step}");
    let text = texts(&error);
    for part in ["`router-0`", "8000", "'addShard'"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn member_that_fails_to_start_stops_the_others() {
    let mut bench = Bench::new("7.0.14");
    let mut options = bench.options();
    // The machine does not have this CPU.
    let cpus = Some([8191].into_iter().collect());
    let seat = InstancePlacement { cpus, ..InstancePlacement::default() };
    options.seats.insert("pair-2".into(), seat);
    let error = bench.error("pairs=3", &options);
    assert!(matches!(&error, ServerError::Member { name, .. } if name == "pair-2"), "{error:?}");
}

#[test]
fn interrupt_stops_everything_that_was_started() {
    let mut bench = Bench::new("7.0.14");
    bench.fake_mongod.misbehave("never-primary dyno");
    let topology = "replica-set=3".parse().unwrap();
    let options = bench.options();
    let events = bench.folder.join("bin/events");
    let initiated =
        || fs::read_to_string(&events).is_ok_and(|text| text.contains("replSetInitiate"));
    let error = Deployment::start(&topology, &options, &mut bench.admin, &initiated).unwrap_err();
    assert!(matches!(error, ServerError::Interrupted { .. }), "{error:?}");
    assert_eq!(bench.stop_order().len(), 3);
    bench.assert_clean();
}

#[test]
fn member_that_dies_in_mid_run_is_found() {
    let mut bench = Bench::new("7.0.14");
    let mut deployment = bench.start("replica-set=3", &bench.options()).unwrap();
    assert_eq!(deployment.ended().unwrap(), None);
    let process = deployment.members()[1].server().pid().cast_signed();
    let process = nix::unistd::Pid::from_raw(process);
    nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL).unwrap();
    let begin = Instant::now();
    let ended = loop {
        if let Some(ended) = deployment.ended().unwrap() {
            break ended;
        }
        assert!(begin.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(ended.name, "member-1");
    assert!(ended.log_tail.last().unwrap().contains("Waiting for connections"));
    let stopped = deployment.stop().unwrap();
    let early: Vec<_> = stopped.iter().filter(|(_, how)| how.ended_early).collect();
    assert_eq!(early.len(), 1);
    assert_eq!(early[0].0, "member-1");
    bench.assert_clean();
}

#[test]
fn impossible_deployments_are_refused_before_the_start() {
    let mut bench = Bench::new("7.0.14");
    let mut options = bench.options();
    options.collection = None;
    let error = bench.error("sharded=1x1", &options);
    let ServerError::Setting { setting, reason, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*setting, "server.topology");
    assert!(reason.contains("collection"), "{reason}");

    let mut options = bench.options();
    options.server.kind = dyno_servers::ServerProgram::Embedded;
    let text = texts(&bench.error("replica-set=3", &options));
    assert!(text.contains("`server.topology`") && text.contains("`dyno server install`"), "{text}");

    let mut options = bench.options();
    options.router = None;
    let error = bench.error("sharded=1x1", &options);
    assert!(error.hint().unwrap().contains("`mongos`"), "{error:?}");
    assert!(!bench.folder.join("logs").exists());
}

#[test]
fn kept_replica_set_is_not_restarted() {
    let mut bench = Bench::new("7.0.14");
    let mut options = bench.options();
    let data = bench.folder.join("data");
    options.server.data_dir = DataDir::Kept(data.clone());
    bench.start("replica-set=2", &options).unwrap().stop().unwrap();
    assert!(data.join("member-1/WiredTiger").exists());
    let error = bench.start("replica-set=2", &options).unwrap_err();
    assert!(
        matches!(
            &error,
            ServerError::Setting {
                setting: "server.data_dir",
                reason,
                ..
            } if reason.contains("replica set")
        ),
        "{error:?}"
    );
}

#[test]
fn nothing_is_left_after_we_are_killed() {
    let bench = Bench::new("7.0.14");
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", HOLDER, "--ignored", "--nocapture"])
        .env(HOLDER_FOLDER, &bench.folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(
        BufReader::new(holder.stdout.take().unwrap())
            .lines()
            .any(|line| line.unwrap().contains("holding"))
    );
    assert_eq!(processes_with(&bench.folder).len(), 4);
    assert!(bench.folder.join("server-secrets/members.key").exists());
    holder.kill().unwrap();
    holder.wait().unwrap();
    let begin = Instant::now();
    let left = || {
        ["data", "server-secrets"].iter().any(|name| bench.folder.join(name).exists())
            || !processes_with(&bench.folder).is_empty()
    };
    while left() {
        assert!(begin.elapsed() < Duration::from_secs(60), "something is left");
        std::thread::sleep(Duration::from_millis(10));
    }
    bench.assert_clean();
}

#[test]
#[ignore = "a helper process, started by other tests"]
#[allow(clippy::print_stdout, reason = "the other process reads it")]
fn helper_that_holds_a_cluster() {
    let folder = PathBuf::from(std::env::var_os(HOLDER_FOLDER).expect("started by another test"));
    let mut bench = Bench::in_folder(&folder, "7.0.14");
    let mut options = bench.options();
    options.server.plan.auth = true;
    let deployment = bench.start("sharded=2x1", &options).unwrap();
    println!("holding {}", deployment.members().len());
    // Until the other process ends or kills us.
    let _ = std::io::stdin().read(&mut [0]);
}
