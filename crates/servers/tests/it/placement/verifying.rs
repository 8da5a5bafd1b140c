//! Placements achieved by the kernel, on this machine and in recorded files.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use dyno_servers::placement::{
    AchievedMemory, AchievedPlacement, Deviation, InstancePlacement, Machine, PreparedPlacement,
    verify_threads,
};

use super::fixtures::*;

fn verify(process: u32, place: &InstancePlacement, root: &Path) -> Vec<Deviation> {
    match AchievedPlacement::read(process, root) {
        Ok(achieved) => achieved.deviations(place),
        Err(error) => vec![Deviation::not_verified(&error)],
    }
}

/// A process that is killed when the test ends.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Starts `sleep` with the placement set between fork and exec. `spawn` returns after the exec.
fn sleeping(placement: &InstancePlacement) -> std::io::Result<Process> {
    let prepared = PreparedPlacement::new(placement);
    let mut command = Command::new("/bin/sleep");
    command.arg("600").stdin(Stdio::null());
    // SAFETY: the closure makes system calls and allocates nothing.
    unsafe {
        command.pre_exec(move || prepared.apply_to_current_thread());
    }
    command.spawn().map(Process)
}

fn place(text: &str) -> InstancePlacement {
    text.parse().unwrap()
}

#[test]
fn wrong_placement_is_detected_and_right_one_is_not() {
    let machine = Machine::read(Path::new("/")).unwrap();
    let cpu = machine.allowed_cpus.first().unwrap();
    let process = sleeping(&place(&cpu.to_string())).unwrap();
    let id = process.0.id();
    assert_eq!(verify(id, &place(&cpu.to_string()), Path::new("/")), []);
    let elsewhere = place(&(cpu + 1).to_string());
    let deviations = verify(id, &elsewhere, Path::new("/"));
    assert!(
        matches!(
            &deviations[..],
            [Deviation::ForeignCpus { thread_count: 1, .. }, Deviation::MissingCpus { .. }]
        ),
        "{deviations:?}"
    );
}

#[test]
fn memory_policies_are_set_if_the_kernel_has_them() {
    let machine = Machine::read(Path::new("/")).unwrap();
    let node = machine.allowed_memory_nodes.first().unwrap();
    for text in [
        format!("any@bind:{node}"),
        format!("any@interleave:{node}"),
        format!("any@prefer:{node}"),
        "any@local".to_owned(),
    ] {
        let place = place(&text);
        let process = match sleeping(&place) {
            Ok(process) => process,
            // A kernel without nodes, or a container that forbids the call.
            Err(error) => {
                let refused = [Some(libc::ENOSYS), Some(libc::EPERM)];
                assert!(refused.contains(&error.raw_os_error()), "{text}: {error}");
                continue;
            }
        };
        let deviations = verify(process.0.id(), &place, Path::new("/"));
        let achieved = AchievedPlacement::read(process.0.id(), Path::new("/")).unwrap();
        match achieved.memory {
            AchievedMemory::Known { .. } => assert_eq!(deviations, [], "{text}"),
            AchievedMemory::Unknown { .. } => {
                assert!(matches!(deviations[..], [Deviation::NotVerified { .. }]));
            }
        }
    }
}

#[test]
fn cpus_of_a_running_thread_can_be_set_from_outside() {
    let machine = Machine::read(Path::new("/")).unwrap();
    let cpu = machine.allowed_cpus.last().unwrap();
    let process = sleeping(&InstancePlacement::default()).unwrap();
    let place = place(&cpu.to_string());
    let id = process.0.id();
    PreparedPlacement::new(&place).apply_cpus_to_thread(id.cast_signed()).unwrap();
    assert_eq!(verify(id, &place, Path::new("/")), []);
}

#[test]
fn missing_process_is_reported_as_unverified() {
    let folder = tempfile::TempDir::new().unwrap();
    let deviations = verify(7, &place("0"), folder.path());
    let [Deviation::NotVerified { reason }] = &deviations[..] else {
        panic!("{deviations:?}");
    };
    assert!(reason.contains("proc/7/status"), "{reason}");
}

/// Files of process 7 with the given CPUs of each thread.
fn process(threads: &[&str], memory: Option<&str>) -> Fixture {
    let status = |cpus: &str| format!("Cpus_allowed_list:\t{cpus}\nMems_allowed_list:\t0-1");
    let mut fixture = ONE_SOCKET.fixture().with("proc/7/status", &status(threads[0]));
    for (index, cpus) in threads.iter().enumerate() {
        fixture = fixture.with(&format!("proc/7/task/{}/status", 7 + index), &status(cpus));
    }
    match memory {
        Some(text) => fixture.with("proc/7/numa_maps", text),
        None => fixture,
    }
}

const BOUND: &str = "\
55e0 bind:1 file=/usr/bin/mongod mapped=900 N0=900 kernelpagesize_kB=4
7f10 bind:1 anon=3000 dirty=3000 N1=3000 kernelpagesize_kB=4
7f20 bind:1 anon=10 dirty=10 N1=10 kernelpagesize_kB=2048
7ffd default";

/// Deviations as recorded.
fn recorded(found: &[Deviation]) -> Vec<String> {
    found.iter().map(serde_json::to_string).map(Result::unwrap).collect()
}

fn deviations(fixture: &Fixture, text: &str) -> Vec<String> {
    recorded(&verify(7, &place(text), fixture.root()))
}

#[test]
fn threads_may_be_pinned_further_but_not_elsewhere() {
    let fixture = process(&["0-3", "0", "3"], Some(BOUND));
    assert_eq!(deviations(&fixture, "0-3@bind:1"), [""; 0]);
    let fixture = process(&["0-3", "0-7", "4-7"], Some(BOUND));
    assert_eq!(
        deviations(&fixture, "0-3@bind:1"),
        [r#"{"kind":"foreign_cpus","thread_count":2,"cpus":"4-7"}"#]
    );
    let fixture = process(&["0-2"], Some(BOUND));
    assert_eq!(deviations(&fixture, "0-3@bind:1"), [r#"{"kind":"missing_cpus","cpus":"3"}"#]);
}

#[test]
fn some_threads_of_a_process_are_judged_separately() {
    let fixture = process(&["0-7", "0-1", "0-1"], None);
    let found =
        |threads: &[u32], text| recorded(&verify_threads(7, threads, &place(text), fixture.root()));
    assert_eq!(found(&[8, 9], "0-1@local"), [""; 0]);
    assert_eq!(
        found(&[7, 8], "0-1@local"),
        [r#"{"kind":"foreign_cpus","thread_count":1,"cpus":"2-7"}"#]
    );
    assert!(found(&[8, 99], "0-1@local")[0].contains("task/99/status"));
}

#[test]
fn wrong_memory_node_and_policy_are_detected() {
    let fixture = process(&["0-3"], Some(BOUND));
    assert_eq!(
        deviations(&fixture, "0-3@bind:0"),
        [
            r#"{"kind":"memory_policy","planned":"bind:0","found":[{"policy":"bind:1","mapping_count":3},{"policy":"default","mapping_count":1}]}"#,
            r#"{"kind":"foreign_memory","nodes":"1","memory_ratio":1.0}"#
        ]
    );
    assert_eq!(
        deviations(&fixture, "0-3@bind:2"),
        [
            r#"{"kind":"forbidden_nodes","nodes":"2"}"#,
            r#"{"kind":"memory_policy","planned":"bind:2","found":[{"policy":"bind:1","mapping_count":3},{"policy":"default","mapping_count":1}]}"#,
            r#"{"kind":"foreign_memory","nodes":"1","memory_ratio":1.0}"#
        ]
    );
}

#[test]
fn interleaved_memory_must_be_on_all_nodes() {
    let uneven = "7f10 interleave:0-1 anon=4000 N0=3600 N1=400 kernelpagesize_kB=4";
    let fixture = process(&["0-3"], Some(uneven));
    assert_eq!(
        deviations(&fixture, "0-3@interleave:0-1"),
        [r#"{"kind":"uneven_memory","node":1,"memory_ratio":0.1}"#]
    );
    let even = "7f10 interleave=static:0-1 anon=4000 N0=2100 N1=1900 kernelpagesize_kB=4";
    let fixture = process(&["0-3"], Some(even));
    assert_eq!(deviations(&fixture, "0-3@interleave:0-1"), [""; 0]);
}

#[test]
fn little_memory_is_not_judged() {
    let little = "7f10 bind:1 anon=40 N0=40 kernelpagesize_kB=4";
    let fixture = process(&["0-3"], Some(little));
    assert_eq!(deviations(&fixture, "0-3@bind:1"), [""; 0]);
}

#[test]
fn kernel_without_nodes_is_reported_as_unverified() {
    let fixture = process(&["0-3"], None);
    assert_eq!(deviations(&fixture, "0-3"), [""; 0]);
    let found = verify(7, &place("0-3@local"), fixture.root());
    let [Deviation::NotVerified { reason }] = &found[..] else { panic!("{found:?}") };
    assert!(reason.contains("`numa_maps`"), "{reason}");
}

#[test]
fn deviations_have_these_messages() {
    let uneven = "7f10 interleave:0-1 anon=4000 N0=3600 N1=400 kernelpagesize_kB=4";
    let mut text = String::new();
    for (threads, memory, planned) in [
        (&["0-2", "4-7"][..], Some(BOUND), "0-3@bind:2"),
        (&["0-3"], Some(uneven), "0-3@interleave:0-1"),
        (&["0-3"], None, "0-3@local"),
    ] {
        let fixture = process(threads, memory);
        for deviation in verify(7, &place(planned), fixture.root()) {
            text.push_str(&format!("{deviation}\n"));
        }
    }
    insta::assert_snapshot!(text, @r"
    1 threads may run on CPUs 4-7, which are not assigned to them
    no thread may run on the planned CPUs 3
    memory of the planned nodes 2 is forbidden
    no memory has the policy bind:2; found bind:1, default
    100 % of the memory is on nodes 1, where it should not be
    only 10 % of the interleaved memory is on node 1
    the placement could not be verified: the kernel has no `numa_maps`; it was built without NUMA
    ");
}

#[test]
fn achieved_placement_is_recorded_with_units() {
    let fixture = process(&["0-3", "0-3", "0"], Some(BOUND));
    let achieved = AchievedPlacement::read(7, fixture.root()).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&achieved).unwrap(), @r#"
    {
      "process_id": 7,
      "threads": [
        {
          "cpus": "0",
          "thread_count": 1
        },
        {
          "cpus": "0-3",
          "thread_count": 2
        }
      ],
      "allowed_memory_nodes": "0-1",
      "memory": {
        "kind": "known",
        "policies": [
          {
            "policy": "bind:1",
            "mapping_count": 3
          },
          {
            "policy": "default",
            "mapping_count": 1
          }
        ],
        "anonymous_bytes_by_node": {
          "1": 33259520
        },
        "file_bytes_by_node": {
          "0": 3686400
        }
      }
    }
    "#);
}
