//! Tests that need a real `mongod`: it accepts the settings and reports them correctly, its members
//! elect the right primary, and its last log lines are shown. `one_server` and `secured` test the
//! life cycle, users and certificates, for the embedded server as well.

use crate::one_server::Kind;
use crate::secured::{Driver, assert_only_logs, client_options, options};
use bson::{Document, doc};
use dyno_plan::model::{DiskMapping, Encryption, StorageEngine};
use dyno_plan::units::Span;
use dyno_servers::{AdminClient, Deployment, DeploymentOptions, Member, ServerError};
use dyno_testkit::{mongos_program, or_skip, percona_program};
use mongodb::Client;
use mongodb::options::{AuthMechanism, Credential};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(30);

/// A deployment of real servers, and its client.
struct Lab {
    folder: TempDir,
    driver: Driver,
    options: DeploymentOptions,
}

impl Lab {
    /// `None`, with a note, without a `mongod`.
    fn new() -> Option<Lab> {
        let folder = TempDir::new().unwrap();
        let options = options(folder.path(), Kind::Mongod)?;
        Some(Lab { driver: Driver::new(), options, folder })
    }

    fn start(&mut self, topology: &str) -> Result<Deployment, ServerError> {
        let topology = topology.parse().unwrap();
        Deployment::start(&topology, &self.options, &mut self.driver, &|| false)
    }

    fn admin(&mut self, deployment: &Deployment, member: &Member, command: Document) -> Document {
        let target = deployment.target(member);
        self.driver.run(target, "admin", command, LIMIT).unwrap()
    }

    /// The settings that each server reports; asserts that they have no deviations.
    #[track_caller]
    fn read_back(&mut self, deployment: &Deployment) -> Vec<BTreeMap<String, String>> {
        let all = deployment.read_back(&mut self.driver, LIMIT).unwrap();
        for member in &all {
            assert_eq!(member.deviations, [], "{}", member.name);
        }
        all.into_iter().map(|member| member.effective).collect()
    }

    #[track_caller]
    fn stop(self, deployment: Deployment) {
        let stopped = deployment.stop().unwrap();
        for (name, stopped) in stopped {
            assert!(!stopped.ended_early, "{name}");
            assert!(stopped.status.success() || stopped.killed, "{name}");
        }
        assert_only_logs(self.folder.path());
    }
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < LIMIT, "waited too long for: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn every_mongod_setting_is_read_back_as_requested() {
    let Some(mut lab) = Lab::new() else { return };
    let server = &mut lab.options.server;
    server.plan.block_compressor = Some("zstd".into());
    server.plan.checkpoint_interval = Some(Span::from_secs(30));
    server.plan.journal_compressor = Some("zlib".into());
    server.plan.journal_commit_interval = Some(Span(Duration::from_millis(50)));
    let parameters = [
        ("ttlMonitorSleepSecs", "30"),
        ("diagnosticDataCollectionPeriodMillis", "500"),
        ("notablescan", "true"),
    ];
    let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    server.plan.parameters = parameters.map(own).into();
    let deployment = lab.start("standalone").unwrap();
    let [found] = &lab.read_back(&deployment)[..] else { panic!("one server") };
    let expected = [
        ("block_compressor", "zstd"),
        ("cache_bytes", "268435456"),
        ("checkpoint_interval_s", "30"),
        ("journal_commit_interval_ms", "50"),
        ("journal_compressor", "zlib"),
        ("storage_engine", "wiredTiger"),
    ];
    let parameters = parameters.map(|(name, value)| (format!("parameter.{name}"), value));
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    for (name, value) in expected.into_iter().chain(parameters) {
        assert_eq!(found.get(&name).map(String::as_str), Some(value), "{name}");
    }
    assert_eq!(found["reported_version"], deployment.members()[0].server().version());
    // A parameter that is changed behind our back is a deviation.
    let changed = doc! { "setParameter": 1, "ttlMonitorSleepSecs": 45 };
    lab.admin(&deployment, &deployment.members()[0], changed);
    let again = deployment.read_back(&mut lab.driver, LIMIT).unwrap();
    let [deviation] = &again[0].deviations[..] else { panic!("{again:?}") };
    assert_eq!(deviation.setting, "parameter.ttlMonitorSleepSecs");
    assert_eq!((&*deviation.asked, &*deviation.found), ("30", "45"));
    lab.stop(deployment);
}

#[test]
fn mongod_without_a_journal_does_not_sync_commits() {
    let Some(mut lab) = Lab::new() else { return };
    lab.options.server.plan.journal = Some(false);
    let deployment = match lab.start("standalone") {
        Err(ServerError::Setting { setting, .. }) => {
            // There is always a journal from 6.1 on.
            assert_eq!(setting, "server.journal");
            return;
        }
        started => started.unwrap(),
    };
    assert_eq!(lab.read_back(&deployment)[0]["journal"], "false");
    lab.stop(deployment);
}

#[test]
fn pairs_alternate_between_disks() {
    let Some(mut lab) = Lab::new() else { return };
    let disks = ["disk-a", "disk-b"].map(|name| lab.folder.path().join(name));
    lab.options.data_dirs = disks.to_vec();
    let deployment = lab.start("pairs=3").unwrap();
    let used: Vec<usize> = deployment
        .members()
        .iter()
        .map(|member| {
            let folder = member.server().data_dir();
            assert!(folder.join("WiredTiger.wt").is_file());
            disks.iter().position(|disk| folder.starts_with(disk))
        })
        .map(Option::unwrap)
        .collect();
    assert_eq!(used, [0, 1, 0]);
    lab.read_back(&deployment);
    deployment.stop().unwrap();
    lab.options.server.plan.disk_mapping = DiskMapping::Direct;
    let error = lab.start("pairs=3").unwrap_err();
    assert!(error.to_string().contains("folder"), "{error}");
}

/// States of the members of a set, by the names of their servers.
fn states(lab: &mut Lab, deployment: &Deployment) -> Vec<String> {
    let first = &deployment.members()[0];
    let status = lab.admin(deployment, first, doc! { "replSetGetStatus": 1 });
    let members = status.get_array("members").unwrap().iter();
    let state = |member: &bson::Bson| {
        let member = member.as_document().unwrap();
        member.get_str("stateStr").unwrap().to_owned()
    };
    members.map(state).collect()
}

#[test]
fn replica_set_has_its_arbiter_priorities_and_primary() {
    let Some(mut lab) = Lab::new() else { return };
    let deployment = lab.start("replica-set=2+1,priorities=1/2").unwrap();
    assert_eq!(states(&mut lab, &deployment), ["SECONDARY", "PRIMARY", "ARBITER"]);
    let primaries: Vec<bool> = deployment.members().iter().map(Member::was_primary).collect();
    assert_eq!(primaries, [false, true, false]);
    for found in lab.read_back(&deployment) {
        assert_eq!(found["replica_set"], "dyno");
        assert_eq!(found["replica_set.priorities"], "1/2/0");
    }
    lab.stop(deployment);
}

/// Writes a document with a write concern and reads it with a read preference: its value, and the
/// server that answered.
async fn written_and_read(uri: String, read_preference: &str) -> (i32, String) {
    let uri = format!("{uri}&w=majority&readPreference={read_preference}");
    let client = Client::with_uri_str(&uri).await.unwrap();
    let preference = client.selection_criteria().cloned().unwrap();
    let shop = client.database("shop");
    let orders = shop.collection::<Document>("orders");
    orders.insert_one(doc! { "n": 7 }).await.unwrap();
    let find = shop.run_command(doc! { "find": "orders", "limit": 1 });
    let found = find.selection_criteria(preference.clone()).await.unwrap();
    let batch = found.get_document("cursor").unwrap();
    let first = batch.get_array("firstBatch").unwrap()[0].as_document();
    let hello = shop.run_command(doc! { "hello": 1 });
    let hello = hello.selection_criteria(preference).await.unwrap();
    let n = first.unwrap().get_i32("n").unwrap();
    (n, hello.get_str("me").unwrap().to_owned())
}

#[test]
fn driver_follows_write_concern_and_read_preference() {
    let Some(mut lab) = Lab::new() else { return };
    let deployment = lab.start("replica-set=2,priorities=2/1").unwrap();
    let addresses: Vec<String> =
        deployment.members().iter().map(|member| member.server().address().to_string()).collect();
    for (preference, expected) in [("primary", 0), ("secondary", 1)] {
        let answered = written_and_read(deployment.uri(), preference);
        let answered = lab.driver.runtime.block_on(answered);
        assert_eq!(answered, (7, addresses[expected].clone()), "{preference}");
    }
    lab.stop(deployment);
}

#[test]
fn members_with_users_and_certificates_trust_each_other() {
    let Some(mut lab) = Lab::new() else { return };
    lab.options.server.plan.auth = true;
    lab.options.server.plan.encryption = Encryption::Mutual;
    let deployment = lab.start("replica-set=2+1").unwrap();
    assert_eq!(states(&mut lab, &deployment).len(), 3);
    for found in lab.read_back(&deployment) {
        assert_eq!((&*found["tls"], &*found["auth"]), ("true", "true"));
    }
    lab.stop(deployment);
}

#[test]
fn secured_members_rejoin_after_a_restart() {
    let Some(mut lab) = Lab::new() else { return };
    lab.options.server.plan.auth = true;
    lab.options.server.plan.encryption = Encryption::Mutual;
    let mut deployment = lab.start("replica-set=2+1").unwrap();
    let is_primary = |member: &&Member| member.was_primary();
    let primary = deployment.members().iter().find(is_primary).unwrap();
    let name = primary.instance().name.clone();
    let write = doc! { "insert": "c", "documents": [{ "_id": 1 }] };
    lab.admin(&deployment, primary, write);
    deployment.wait_until_ready(&mut lab.driver, &|| false).unwrap();
    let ended = deployment.pause_data().unwrap();
    let names: Vec<&str> = ended.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names.len(), names[1]), (2, &*name));
    deployment.resume_data(None, &mut lab.driver, &|| false).unwrap();
    assert_eq!(states(&mut lab, &deployment).len(), 3);
    let primary = deployment.members().iter().find(is_primary).unwrap();
    let found = lab.admin(&deployment, primary, doc! { "count": "c" });
    assert_eq!(found.get_i32("n").unwrap(), 1);
    for found in lab.read_back(&deployment) {
        assert_eq!((&*found["tls"], &*found["auth"]), ("true", "true"));
    }
    lab.stop(deployment);
}

#[test]
fn both_kinds_of_scram_admit_only_the_user() {
    let Some(mut lab) = Lab::new() else { return };
    lab.options.server.plan.auth = true;
    let deployment = lab.start("standalone").unwrap();
    let member = &deployment.members()[0];
    let mechanisms =
        [("SCRAM-SHA-1", AuthMechanism::ScramSha1), ("SCRAM-SHA-256", AuthMechanism::ScramSha256)];
    for (name, mechanism) in mechanisms {
        let user = format!("by {name}");
        let made =
            doc! { "createUser": &user, "pwd": "geheim", "roles": ["root"], "mechanisms": [name] };
        lab.admin(&deployment, member, made);
        for (password, is_let_in) in [("geheim", true), ("wrong", false)] {
            let mut with = client_options(deployment.target(member), LIMIT, false);
            let mut credential = Credential::default();
            credential.username = Some(user.clone());
            credential.password = Some(password.to_owned());
            credential.mechanism = Some(mechanism.clone());
            with.credential = Some(credential);
            let status = lab.driver.runtime.block_on(async {
                let client = Client::with_options(with)?;
                let admin = client.database("admin");
                admin.run_command(doc! { "connectionStatus": 1 }).await
            });
            assert_eq!(status.is_ok(), is_let_in, "{name}: {status:?}");
        }
    }
    lab.stop(deployment);
}

#[test]
fn killed_mongod_is_named_with_its_last_log_lines() {
    let Some(mut lab) = Lab::new() else { return };
    let mut deployment = lab.start("pairs=2").unwrap();
    assert_eq!(deployment.ended().unwrap(), None);
    kill(deployment.members()[1].server().pid());
    let mut ended = None;
    wait_for("the end to be seen", || {
        ended = deployment.ended().unwrap();
        ended.is_some()
    });
    let ended = ended.unwrap();
    assert_eq!(ended.name, "pair-1");
    assert!(ended.status.to_string().contains("signal: 9"));
    let said = ended.log_tail.join("\n");
    assert!(said.contains(" I NETWORK: Waiting for connections, port "), "{said}");
    let stopped = deployment.stop().unwrap();
    let early: Vec<_> = stopped.iter().map(|(_, one)| one.ended_early).collect();
    assert_eq!(early, [false, true]);
    assert_only_logs(lab.folder.path());
}

#[test]
fn unknown_parameter_ends_the_start_with_the_server_log() {
    let Some(mut lab) = Lab::new() else { return };
    let parameters = &mut lab.options.server.plan.parameters;
    parameters.insert("noSuchParameter".into(), "1".into());
    let error = lab.start("standalone").unwrap_err();
    let mut said = format!("{error} {:?}", error.hint());
    if let ServerError::Exited { log_tail, .. } = &error {
        said.push_str(&log_tail.join("\n"));
    }
    assert!(said.contains("noSuchParameter"), "{error:?}");
    assert_only_logs(lab.folder.path());
}

/// The error of starting a set of two when `event` happens as soon as its second member is
/// reachable; asserts that nothing is left.
#[track_caller]
fn disturbed(mut lab: Lab, event: impl Fn(&Path) -> bool) -> ServerError {
    let folder = lab.folder.path().to_owned();
    let is_up = || {
        let log = std::fs::read_to_string(folder.join("logs/member-1.raw.log"));
        log.is_ok_and(|log| log.contains("Waiting for connections"))
    };
    let interrupted = || is_up() && event(&folder);
    let topology = "replica-set=2".parse().unwrap();
    let started = Deployment::start(&topology, &lab.options, &mut lab.driver, &interrupted);
    let error = started.unwrap_err();
    assert_only_logs(&folder);
    error
}

#[test]
fn interrupt_during_set_assembly_leaves_nothing() {
    let Some(lab) = Lab::new() else { return };
    let error = disturbed(lab, |_| true);
    assert!(matches!(error, ServerError::Interrupted { .. }), "{error:?}");
}

#[test]
fn member_that_dies_during_set_assembly_is_named() {
    let Some(lab) = Lab::new() else { return };
    let error = disturbed(lab, |folder| {
        let lock = folder.join("data/member-1/mongod.lock");
        let process = std::fs::read_to_string(lock).unwrap_or_default();
        if let Ok(process) = process.trim().parse::<u32>() {
            kill(process);
        }
        false
    });
    assert!(error.to_string().contains("`member-1`"), "{error:?}");
}

#[test]
fn set_that_is_not_ready_in_time_is_reported_and_stopped() {
    let Some(mut lab) = Lab::new() else { return };
    lab.options.step_limit = Duration::from_millis(1);
    let error = lab.start("replica-set=3").unwrap_err();
    let is_late = matches!(error, ServerError::Deadline { .. } | ServerError::Step { .. });
    assert!(is_late, "{error:?}");
    assert_only_logs(lab.folder.path());
}

fn kill(process: u32) {
    let process = process.to_string();
    let mut kill = std::process::Command::new("kill");
    kill.args(["-9", &process]).status().unwrap();
}

/// A member's old data folder is not reused: it would look for members at their old ports.
#[test]
fn kept_folder_of_a_set_is_refused_the_second_time() {
    let Some(mut lab) = Lab::new() else { return };
    let data = lab.folder.path().join("data");
    lab.options.server.data_dir = dyno_servers::DataDir::Kept(data);
    let deployment = lab.start("replica-set=1").unwrap();
    deployment.stop().unwrap();
    let error = lab.start("replica-set=1").unwrap_err();
    assert!(error.to_string().contains("data"), "{error}");
}

#[test]
fn cluster_is_assembled_with_its_router() {
    let Some(mut lab) = Lab::new() else { return };
    lab.options.router = match or_skip(mongos_program()) {
        Some(router) => Some(router),
        None => return,
    };
    let deployment = lab.start("sharded=2x1,chunks=4").unwrap();
    let router = deployment.members().iter().find(|member| {
        let name = &member.instance().name;
        name.starts_with("router")
    });
    let shards = lab.admin(&deployment, router.unwrap(), doc! { "listShards": 1 });
    assert_eq!(shards.get_array("shards").unwrap().len(), 2);
    lab.stop(deployment);
}

#[test]
fn percona_server_keeps_its_data_in_memory() {
    let Some(program) = or_skip(percona_program()) else {
        return;
    };
    let Some(mut lab) = Lab::new() else { return };
    lab.options.server.program = program;
    lab.options.server.plan.storage_engine = Some(StorageEngine::InMemory);
    let deployment = lab.start("standalone").unwrap();
    assert_eq!(lab.read_back(&deployment)[0]["storage_engine"], "inMemory");
    let data = deployment.members()[0].server().data_dir();
    assert!(!Path::new(data).join("WiredTiger.wt").exists());
    lab.stop(deployment);
}
