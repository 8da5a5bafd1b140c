//! The shared place of all clients on a machine without servers: planned, set and verified thread
//! by thread.

use super::fixtures::*;
use dyno_plan::placement::ClientPolicy;
use dyno_servers::placement::{
    AchievedMemory, AchievedThreads, Deviation, InstancePlacement, Machine, PlacementError,
    PreparedPlacement, plan_clients_alone, verify_threads,
};
use std::path::Path;

fn planned(machine: &Machine, client: &str) -> Result<InstancePlacement, PlacementError> {
    plan_clients_alone(machine, &client.parse().unwrap())
}

#[test]
fn client_nodes_are_resolved_on_their_machine() {
    let machine = TWO_SOCKETS.fixture().machine();
    for (client, place) in [
        ("none", "any@default"),
        ("0-3", "0-3@default"),
        ("0-3@bind:1", "0-3@bind:1"),
        ("nodes=1", "8-15,24-31@default"),
        ("nodes=1@bind:1", "8-15,24-31@bind:1"),
        ("nodes=!1@local", "0-7,16-23@local"),
        ("nodes=0-1", "0-31@default"),
        ("any@interleave:all", "any@interleave:0-1"),
    ] {
        assert_eq!(planned(&machine, client).unwrap().to_string(), place);
    }
    // A different machine.
    let machine = ONE_SOCKET.fixture().machine();
    let place = planned(&machine, "nodes=0@interleave:all").unwrap();
    assert_eq!(place.to_string(), "0-7@interleave:0");
}

#[test]
fn missing_cpus_and_nodes_are_refused_with_the_usable_ones() {
    let machine = ONE_SOCKET.fixture().machine();
    for (client, said) in [
        ("nodes=1", "node 1 has no usable CPUs; nodes with usable CPUs are `0`"),
        ("nodes=!0", "excluding the nodes `0` leaves none; nodes with usable CPUs are `0`"),
        ("nodes=0@bind:1", "node 1 has no usable memory; nodes with usable memory are `0`"),
        ("any@prefer:3", "node 3 has no usable memory; nodes with usable memory are `0`"),
        ("8", "CPUs `8` cannot be used; usable CPUs are `0-7`"),
    ] {
        let error = planned(&machine, client).unwrap_err();
        assert_eq!(error.to_string(), said, "{client}");
        assert!(error.hint().is_some(), "{client}");
    }
    for client in ["same", "other", "0/1"] {
        let error = planned(&machine, client).unwrap_err();
        assert!(matches!(error, PlacementError::NotOneForAll { .. }));
    }
}

#[test]
fn nodes_of_client_hosts_are_refused_beside_the_servers() {
    let machine = TWO_SOCKETS.fixture().machine();
    let request = dyno_servers::placement::PlacementRequest {
        instances: 1,
        policy: "spread".parse().unwrap(),
        client: ClientPolicy::Nodes("nodes=1".parse().unwrap()),
    };
    let error = dyno_servers::placement::plan(&machine, &request).unwrap_err();
    assert!(error.to_string().contains("`client=nodes=1`"), "{error}");
}

/// Number of the calling thread for the kernel.
fn own_thread() -> u32 {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    let name = link.file_name().unwrap().to_str().unwrap();
    name.parse().unwrap()
}

#[test]
fn memory_policy_applies_to_the_thread_that_set_it() {
    let machine = Machine::read(Path::new("/")).unwrap();
    let node = machine.allowed_memory_nodes.first().unwrap();
    let place: InstancePlacement = format!("any@bind:{node}").parse().unwrap();
    let memory = |place: &str| PreparedPlacement::memory_of_client(&place.parse().unwrap());
    assert!(memory("any@default").unwrap().is_none());
    let prepared = match PreparedPlacement::memory_of_client(&place) {
        Ok(prepared) => prepared.unwrap(),
        // A kernel without nodes, or a container that forbids the call.
        Err(error) => {
            assert!(matches!(error, PlacementError::Refused { .. }), "{error}");
            assert!(error.hint().is_some(), "{error}");
            return;
        }
    };
    assert!(memory("any@local").unwrap().is_some(), "another one could be inherited");
    let look = || verify_threads(std::process::id(), &[own_thread()], &place, Path::new("/"));
    let set = || {
        prepared.apply_to_current_thread().unwrap();
        look()
    };
    let found = std::thread::scope(|scope| scope.spawn(set).join().unwrap());
    assert_eq!(found, []);
    let before = look();
    assert!(matches!(before[..], [Deviation::MemoryPolicy { .. }]), "{before:?}");
}

#[test]
fn thread_policy_is_read_if_one_was_planned() {
    let maps = "7f10 bind:1 anon=3000 N0=3000 kernelpagesize_kB=4";
    let fixture = ONE_SOCKET
        .fixture()
        .with("proc/7/task/8/status", "Cpus_allowed_list:\t0-1")
        .with("proc/7/task/8/numa_maps", maps)
        .with("proc/7/task/9/status", "Cpus_allowed_list:\t0");
    let read = |place: &str| {
        let place = place.parse().unwrap();
        let achieved = AchievedThreads::read(7, &[8, 9], &place, fixture.root()).unwrap();
        let deviations = achieved.deviations(&place);
        (achieved, deviations)
    };
    let (achieved, deviations) = read("0-1@default");
    assert_eq!((achieved.memory, deviations), (None, vec![]));
    // Pages belong to all threads of the process, and their location depends on another thread.
    let (achieved, deviations) = read("0-1@bind:1");
    assert!(matches!(achieved.memory, Some(AchievedMemory::Known { .. })));
    assert_eq!(deviations, []);
    let deviations = read("0-1@bind:0").1;
    let [Deviation::MemoryPolicy { planned, found }] = &deviations[..] else {
        panic!("{deviations:?}")
    };
    let found: Vec<&str> = found.iter().map(|one| one.policy.as_str()).collect();
    assert_eq!((planned.to_string(), found), ("bind:0".into(), vec!["bind:1"]));
}
