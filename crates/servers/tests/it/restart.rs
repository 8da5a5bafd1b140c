//! Restarts of servers with data while the rest of their deployment keeps running, with the fake
//! `mongod` and `mongos`.

use crate::deployment::{Bench, texts};
use dyno_plan::units::Bytes;
use dyno_servers::{Deployment, InstanceKind, ServerError};
use dyno_testkit::fake_mongod::FakeAdminClient;
use std::net::SocketAddr;
use std::time::Duration;

const SMALL: Bytes = Bytes(256 << 20);
const LARGE: Bytes = Bytes(512 << 20);

/// Kind, process and address of each server by its name.
fn processes(deployment: &Deployment) -> Vec<(String, InstanceKind, u32, SocketAddr)> {
    deployment
        .members()
        .iter()
        .map(|member| {
            let (instance, server) = (member.instance(), member.server());
            let name = instance.name.clone();
            (name, instance.kind, server.pid(), server.address())
        })
        .collect()
}

/// The cache that each server with data reports.
fn caches(deployment: &Deployment) -> Vec<String> {
    // A client without open connections to stopped servers.
    let mut admin = FakeAdminClient::default();
    let limit = Duration::from_secs(10);
    let settings = deployment.read_back(&mut admin, limit).unwrap();
    let data = settings.iter().zip(deployment.members());
    let data = data.filter(|(_, member)| member.instance().kind == InstanceKind::Data);
    data.map(|(settings, _)| {
        assert_eq!(settings.deviations, [], "{}", settings.name);
        settings.effective["cache_bytes"].clone()
    })
    .collect()
}

#[test]
fn only_data_members_of_a_cluster_are_restarted() {
    let mut bench = Bench::new("7.0.14");
    let mut options = bench.options();
    options.server.cache = Some(SMALL);
    let mut deployment = bench.start("sharded=2x2", &options).unwrap();
    let before = processes(&deployment);

    let ended = deployment.pause_data().unwrap();
    let names: Vec<&str> = ended.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["shard-0-1", "shard-1-1", "shard-0-0", "shard-1-0"]);
    assert!(ended.iter().all(|(_, how)| !how.ended_early && !how.killed));
    deployment.resume_data(Some(LARGE), &mut bench.admin, &|| false).unwrap();
    assert_eq!(caches(&deployment), vec![LARGE.0.to_string(); 4]);

    let after = processes(&deployment);
    for ((name, kind, process, address), (_, _, later, same)) in before.iter().zip(&after) {
        assert_eq!(address, same, "{name}");
        assert_eq!(*kind == InstanceKind::Data, process != later, "{name}");
    }
    let primaries = deployment.members().iter().filter(|one| one.was_primary());
    let primaries: Vec<&str> = primaries.map(|one| &*one.instance().name).collect();
    assert_eq!(primaries, ["config-0", "shard-0-0", "shard-1-0"]);
    assert_eq!(deployment.ended().unwrap(), None);

    // Without a new cache, the cache of the first start is used.
    deployment.pause_data().unwrap();
    deployment.resume_data(None, &mut bench.admin, &|| false).unwrap();
    assert_eq!(caches(&deployment), vec![SMALL.0.to_string(); 4]);
    let stopped = deployment.stop().unwrap();
    assert!(stopped.iter().all(|(_, how)| !how.ended_early));
    bench.assert_no_violation();
    bench.assert_clean();
}

#[test]
fn member_that_does_not_come_back_is_named() {
    let mut bench = Bench::new("7.0.14");
    let mut options = bench.options();
    options.step_limit = Duration::from_secs(2);
    let mut deployment = bench.start("replica-set=3", &options).unwrap();
    deployment.pause_data().unwrap();
    bench.fake_mongod.misbehave("stuck member-1");
    let error = deployment.resume_data(None, &mut bench.admin, &|| false).unwrap_err();
    let text = texts(&error);
    for part in ["primary", "all members", "`member-1`", "STARTUP2"] {
        assert!(text.contains(part), "{text}");
    }
    drop(deployment);
    bench.assert_clean();
}

#[test]
fn interrupt_during_a_restart_leaves_nothing() {
    let mut bench = Bench::new("7.0.14");
    let options = bench.options();
    let mut deployment = bench.start("replica-set=2", &options).unwrap();
    deployment.pause_data().unwrap();
    let error = deployment.resume_data(None, &mut bench.admin, &|| true).unwrap_err();
    assert!(matches!(error, ServerError::Interrupted { .. }), "{error}");
    drop(deployment);
    bench.assert_clean();
}
