//! Results of policies on machines of different shapes.

use dyno_plan::placement::{ClientPolicy, CpuSet, MemoryPolicy, NodeSet};
use dyno_plan::wsf::{self, Parameters};
use dyno_servers::placement::{
    InstancePlacement, Machine, Note, Placement, PlacementError, PlacementRequest, plan,
};

use dyno_servers::{ServerError, ServerProgram, cache_shares};

use super::fixtures::*;

fn request(text: &str, instances: u32) -> PlacementRequest {
    PlacementRequest::parse(text, instances).unwrap()
}

fn planned(machine: &Machine, text: &str, instances: u32) -> Placement {
    plan(machine, &request(text, instances)).unwrap()
}

fn refused(machine: &Machine, text: &str, instances: u32) -> PlacementError {
    plan(machine, &request(text, instances)).unwrap_err()
}

/// Free and needed cores.
fn cores(error: &PlacementError) -> (usize, usize) {
    match error {
        PlacementError::TooFewCores { available, needed, .. } => (*available, *needed),
        error => panic!("{error:?}"),
    }
}

/// CPUs that two processes would share.
fn overlap(error: &PlacementError) -> String {
    match error {
        PlacementError::Overlap { cpus, .. } => cpus.to_string(),
        error => panic!("{error:?}"),
    }
}

fn texts(places: &[InstancePlacement]) -> Vec<String> {
    places.iter().map(ToString::to_string).collect()
}

#[test]
fn none_leaves_everything_to_the_system() {
    let placement = planned(&TWO_SOCKETS.fixture().machine(), "none", 2);
    assert_eq!(texts(&placement.instances), ["any@default", "any@default"]);
    assert_eq!(texts(&placement.clients), ["any@default", "any@default"]);
    assert_eq!(placement.notes, []);
}

#[test]
fn interleave_uses_memory_of_all_nodes_that_have_some() {
    let fixture = plain_cpus(Fixture::new(4, "0-3"), 0..4);
    let fixture = fixture.nodes(&[node("0-1", 16), node("2-3", 0), node("", 32)]);
    let placement = planned(&fixture.machine(), "interleave client=3", 1);
    assert_eq!(texts(&placement.instances), ["any@interleave:0,2"]);
    assert_eq!(texts(&placement.clients), ["3@local"]);
}

#[test]
fn spread_gives_each_node_the_same_number_of_instances() {
    let machine = TWO_SOCKETS_IN_TURN.fixture().machine();
    let placement = planned(&machine, "spread client=none", 2);
    assert_eq!(
        texts(&placement.instances),
        [
            "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30@bind:0",
            "1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31@bind:1"
        ]
    );
    let machine = TWO_SOCKETS.fixture().machine();
    let placement = planned(&machine, "spread client=none", 4);
    assert_eq!(
        texts(&placement.instances),
        ["0-3,16-19@bind:0", "8-11,24-27@bind:1", "4-7,20-23@bind:0", "12-15,28-31@bind:1"]
    );
}

#[test]
fn spread_gives_equal_cores_when_a_node_has_fewer() {
    let placement = planned(&TWO_SOCKETS.fixture().machine(), "spread client=none", 3);
    assert_eq!(
        texts(&placement.instances),
        ["0-3,16-19@bind:0", "8-11,24-27@bind:1", "4-7,20-23@bind:0"]
    );
}

#[test]
fn spread_uses_both_packages_before_two_nodes_of_one() {
    let placement = planned(&SUB_NODES.fixture().machine(), "spread client=none", 2);
    assert_eq!(texts(&placement.instances), ["0-3,16-19@bind:0", "8-11,24-27@bind:2"]);
}

#[test]
fn spread_follows_the_allowed_cores() {
    // Node 1 has one core left: two more instances find more room on node 0.
    let fixture = TWO_SOCKETS.fixture().allowed("0-7,16-23,8", "0-1");
    let placement = planned(&fixture.machine(), "spread client=none", 2);
    assert_eq!(texts(&placement.instances), ["0-3,16-19@bind:0", "4-7,20-23@bind:0"]);
}

#[test]
fn clients_use_the_node_of_their_instance_or_another() {
    let machine = TWO_SOCKETS.fixture().machine();
    let same = planned(&machine, "spread", 2);
    assert_eq!(texts(&same.instances), ["0-3,16-19@bind:0", "8-11,24-27@bind:1"]);
    assert_eq!(texts(&same.clients), ["4-7,20-23@local", "12-15,28-31@local"]);
    let other = planned(&machine, "spread client=other", 2);
    assert_eq!(texts(&other.instances), texts(&same.instances));
    assert_eq!(texts(&other.clients), ["12-15,28-31@local", "4-7,20-23@local"]);
    // The client takes nothing from a node on which it does not run.
    let other = planned(&machine, "spread client=other", 1);
    assert_eq!(texts(&other.instances), ["0-7,16-23@bind:0"]);
    assert_eq!(texts(&other.clients), ["8-15,24-31@local"]);
}

#[test]
fn one_node_holds_all_instances() {
    let machine = TWO_SOCKETS.fixture().machine();
    let placement = planned(&machine, "node=1 client=other", 2);
    assert_eq!(texts(&placement.instances), ["8-11,24-27@bind:1", "12-15,28-31@bind:1"]);
    assert_eq!(texts(&placement.clients), ["0-3,16-19@local", "4-7,20-23@local"]);
    let error = refused(&machine, "node=2", 1);
    assert!(
        matches!(
            &error,
            PlacementError::UnusableNode { node: 2, what: "CPUs", known }
                if known.to_string() == "0-1"
        ),
        "{error:?}"
    );
}

/// The request that parameters of the Workload Services Framework make for a host with 16 servers
/// and remote clients.
fn sixteen_of_framework(parameters: &[(&str, &str)]) -> PlacementRequest {
    let pairs = [("CLIENT_SERVER_PAIR", "16")];
    let given = pairs.iter().chain(parameters);
    let given = given.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let parameters = Parameters { given: given.collect(), on_hosts: true, ..Parameters::default() };
    let settings = wsf::apply(&parameters, None).unwrap();
    let value = |name: &str| {
        let found = settings.keys.iter().find(|key| key.name == name);
        found.unwrap().value.clone()
    };
    PlacementRequest {
        client: ClientPolicy::Unpinned,
        ..request(&value("server.placement"), value("server.pairs").parse().unwrap())
    }
}

#[test]
fn sixteen_framework_servers_have_their_own_cpus() {
    let spread = [("NUMACTL_OPTION", "1")];
    let one_node = [("NUMACTL_OPTION", "2"), ("YCSB_CORES", "0-3")];
    let numbered = |numbering| Shape { numbering, ..LARGE };
    for shape in
        [SEVERAL_CACHES, LARGE, numbered(Numbering::NodesInTurn), numbered(Numbering::SiblingsNext)]
    {
        let machine = shape.fixture().machine();
        for (parameters, nodes) in [(&spread[..], &[0, 1][..]), (&one_node[..], &[0][..])] {
            let placement = plan(&machine, &sixteen_of_framework(parameters)).unwrap();
            assert_eq!(placement.instances.len(), 16);
            let mut taken = CpuSet::default();
            for (number, place) in placement.instances.iter().enumerate() {
                let node: NodeSet = [nodes[number % nodes.len()]].into_iter().collect();
                let cpus = place.cpus.as_ref().unwrap();
                assert!(cpus.is_disjoint(&taken), "{shape:?}: {number} on {cpus}");
                assert_eq!(machine.nodes_of(cpus), node, "{shape:?}: {number}");
                assert_eq!(place.memory, MemoryPolicy::Bind(node));
                taken.extend(cpus);
            }
            // All cores of the nodes are assigned.
            let cpus_of_node = (shape.cores_per_node() * shape.threads) as usize;
            assert_eq!(taken.len(), nodes.len() * cpus_of_node, "{shape:?}");
            assert!(placement.clients.iter().all(|place| place.cpus.is_none()), "{shape:?}");
        }
    }
    let small = TWO_SOCKETS.fixture().machine();
    let error = plan(&small, &sixteen_of_framework(&one_node)).unwrap_err();
    assert_eq!(cores(&error), (8, 16));
}

#[test]
fn list_is_divided_and_never_shared() {
    let machine = TWO_SOCKETS.fixture().machine();
    let placement = planned(&machine, "cores=0-3,16-19 client=4-5", 2);
    assert_eq!(texts(&placement.instances), ["0-1,16-17@bind:0", "2-3,18-19@bind:0"]);
    assert_eq!(texts(&placement.clients), ["4@local", "5@local"]);
    // Siblings in the list stay together although their numbers are far apart.
    let placement = planned(&machine, "cores=0-2,17-18 client=none", 2);
    assert_eq!(texts(&placement.instances), ["0-1,17@bind:0", "2,18@bind:0"]);
}

#[test]
fn list_on_both_nodes_binds_each_instance_to_its_own() {
    let machine = TWO_SOCKETS.fixture().machine();
    let placement = planned(&machine, "cores=6-9 client=same", 2);
    assert_eq!(texts(&placement.instances), ["6-7@bind:0", "8-9@bind:1"]);
    assert_eq!(texts(&placement.clients), ["0-5,16-21@local", "10-15,26-31@local"]);
    let placement = planned(&machine, "cores=6-9 client=none", 1);
    assert_eq!(texts(&placement.instances), ["6-9@bind:0-1"]);
    assert!(matches!(placement.notes[0], Note::SpansNodes { .. }));
}

#[test]
fn list_with_forbidden_or_offline_cpus_is_refused() {
    let machine = TWO_SOCKETS.fixture().allowed("0-7", "0-1").machine();
    let error = refused(&machine, "cores=6-9", 1);
    let PlacementError::UnusableCpus { refused: cpus, allowed } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((&*cpus.to_string(), &*allowed.to_string()), ("8-9", "0-7"));
    let error = refused(&machine, "cores=0-3 client=64", 1);
    assert!(
        matches!(&error, PlacementError::UnusableCpus { refused, .. } if refused.to_string() == "64"),
        "{error:?}"
    );
}

#[test]
fn cores_per_instance_takes_whole_cores() {
    let machine = TWO_SOCKETS.fixture().machine();
    let with = planned(&machine, "cores-per-instance=2,smt client=none", 3);
    assert_eq!(texts(&with.instances), ["0-1,16-17@local", "8-9,24-25@local", "2-3,18-19@local"]);
    let without = planned(&machine, "cores-per-instance=2 client=same", 2);
    assert_eq!(texts(&without.instances), ["0-1@local", "8-9@local"]);
    // The idle siblings are not assigned.
    assert_eq!(texts(&without.clients), ["2-7,18-23@local", "10-15,26-31@local"]);
}

#[test]
fn cores_per_instance_stays_within_a_cache_if_possible() {
    let machine = SEVERAL_CACHES.fixture().machine();
    let placement = planned(&machine, "cores-per-instance=3 client=none", 4);
    assert_eq!(
        texts(&placement.instances),
        ["0-2@local", "16-18@local", "4-6@local", "20-22@local"]
    );
    let placement = planned(&machine, "cores-per-instance=6 client=none", 1);
    assert_eq!(texts(&placement.instances), ["0-5@local"]);
}

#[test]
fn cores_per_instance_notes_an_instance_on_two_nodes() {
    let machine = TWO_SOCKETS.fixture().machine();
    let placement = planned(&machine, "cores-per-instance=5 client=none", 3);
    assert_eq!(texts(&placement.instances)[2], "5-7,13-14@local");
    assert!(
        matches!(&placement.notes[0], Note::SpansNodes { process, nodes }
            if process.contains('2') && nodes.to_string() == "0-1"),
        "{:?}",
        placement.notes
    );
    let error = refused(&machine, "cores-per-instance=6 client=none", 3);
    assert_eq!(cores(&error), (16, 18));
    let hint = error.hint().unwrap();
    assert!(hint.contains("fewer") && !hint.contains("client=none"), "{hint}");
}

#[test]
fn servers_of_unequal_size_are_noted() {
    let machine = ONE_SOCKET_NO_SMT.fixture().machine();
    let notes = |text| planned(&machine, text, 2).notes;
    let is_unequal = |note: &Note| matches!(note, Note::UnequalServers { .. });
    let found = notes("custom=0-3/4 client=none");
    let cpus = vec![4, 1];
    assert!(found.contains(&Note::UnequalServers { cpus }), "{found:?}");
    assert!(!notes("custom=0-3/4-7").iter().any(is_unequal));
    assert!(!notes("none").iter().any(is_unequal));
}

#[test]
fn too_few_cores_error_has_the_place_and_the_numbers() {
    let machine = ONE_SOCKET.fixture().machine();
    let error = refused(&machine, "spread", 3);
    assert_eq!(cores(&error), (4, 6));
    assert!(error.hint().unwrap().contains("client=none"));
    let error = refused(&machine, "cores=0,4 client=none", 2);
    assert_eq!(cores(&error), (1, 2));
    assert!(error.to_string().contains("`0,4`"), "{error}");
    let error = refused(&machine, "cores=0-7 client=same", 2);
    assert_eq!(cores(&error), (0, 1));
    assert!(error.hint().unwrap().contains("client=none"));
}

#[test]
fn clients_on_another_node_need_another_node() {
    let machine = ONE_SOCKET.fixture().machine();
    let error = refused(&machine, "spread client=other", 1);
    assert!(matches!(error, PlacementError::NoOtherNode { instance: 0 }), "{error:?}");
    assert!(error.hint().unwrap().contains("client=same"));
    let error = refused(&machine, "none client=same", 1);
    assert!(
        matches!(&error, PlacementError::Unpinned { client, policy } if client == "same" && policy == "none"),
        "{error:?}"
    );
}

#[test]
fn instances_avoid_cpus_that_are_named_for_clients() {
    let machine = ONE_SOCKET.fixture().machine();
    // CPU 3 and its sibling 7 are one core.
    let placement = planned(&machine, "spread client=3", 1);
    assert_eq!(texts(&placement.instances), ["0-2,4-6@default"]);
    let error = refused(&machine, "cores=2-3 client=3", 1);
    assert_eq!(overlap(&error), "3");
}

#[test]
fn core_split_by_a_list_is_noted() {
    let machine = ONE_SOCKET.fixture().machine();
    let placement = planned(&machine, "cores=0-3 client=4", 1);
    let [Note::SharedCore { cpus, owners }] = &placement.notes[..] else {
        panic!("{:?}", placement.notes)
    };
    assert_eq!((cpus.to_string(), owners.len()), ("0,4".into(), 2));
}

#[test]
fn processes_that_may_run_on_others_cpus_are_noted() {
    let machine = TWO_SOCKETS.fixture().machine();
    let notes = |text| planned(&machine, text, 2).notes;
    let unpinned = |instance_count, client_count| Note::Unpinned { instance_count, client_count };
    assert_eq!(notes("spread client=none"), [unpinned(0, 2)]);
    assert_eq!(notes("custom=0@local/any client=1/any"), [unpinned(1, 1)]);
    assert_eq!(notes("spread"), []);
}

#[test]
fn custom_places_are_checked_and_used_unchanged() {
    let machine = TWO_SOCKETS.fixture().machine();
    let text = "custom=0-3@bind:1/any@interleave:0-1 client=8@prefer:0/any@local";
    let placement = planned(&machine, text, 2);
    assert_eq!(texts(&placement.instances), ["0-3@bind:1", "any@interleave:0-1"]);
    assert_eq!(texts(&placement.clients), ["8@prefer:0", "any@local"]);
    let all = "custom=any@interleave:all client=any@interleave:all";
    let placement = planned(&machine, all, 1);
    assert_eq!(texts(&placement.instances), ["any@interleave:0-1"]);
    assert_eq!(texts(&placement.clients), ["any@interleave:0-1"]);
    let error = refused(&machine, "custom=0-3@bind:0", 2);
    assert!(
        matches!(error, PlacementError::PlacementCount { who: "instances", given: 1, wanted: 2 }),
        "{error:?}"
    );
    let error = refused(&machine, "custom=0-3@bind:5", 1);
    assert!(
        matches!(
            &error,
            PlacementError::UnusableNode { node: 5, what: "memory", known }
                if known.to_string() == "0-1"
        ),
        "{error:?}"
    );
    let error = refused(&machine, "custom=0-3/2-5", 2);
    assert_eq!(overlap(&error), "2-3");
}

#[test]
fn node_without_memory_uses_the_nearest_with_a_note() {
    let fixture = plain_cpus(Fixture::new(4, "0-3"), 0..4);
    let fixture = fixture
        .nodes(&[node("0-1", 16), node("2-3", 0), node("", 32)])
        .with("sys/devices/system/node/node1/distance", "15 10 30");
    let placement = planned(&fixture.machine(), "spread client=none", 2);
    assert_eq!(texts(&placement.instances), ["0-1@bind:0", "2-3@bind:0"]);
    assert!(
        matches!(&placement.notes[0], Note::RemoteMemory { process, node: 1, memory_node: 0 }
            if process.contains('1')),
        "{:?}",
        placement.notes
    );
}

#[test]
fn one_memory_node_leaves_nothing_to_choose() {
    for machine in
        [ONE_SOCKET.fixture().machine(), plain_cpus(Fixture::new(4, "0-3"), 0..4).machine()]
    {
        let placement = planned(&machine, "spread", 1);
        let memory = [&placement.instances[0].memory, &placement.clients[0].memory];
        assert_eq!(memory.map(ToString::to_string), ["default", "default"], "{machine:?}");
    }
}

#[test]
fn quota_below_the_planned_cpus_is_noted() {
    let fixture = ONE_SOCKET
        .fixture()
        .with("proc/self/cgroup", "0::/")
        .with("sys/fs/cgroup/cgroup.controllers", "cpu")
        .with("sys/fs/cgroup/cpu.max", "250000 100000");
    let machine = fixture.machine();
    let placement = planned(&machine, "cores=0-1 client=2", 1);
    let quota = Note::Quota { quota_cpus: 2.5, planned_cpus: 3 };
    assert_eq!(placement.notes, [quota]);
    assert_eq!(planned(&machine, "cores=0 client=2", 1).notes, []);
}

#[test]
fn refusals_and_notes_have_these_messages() {
    let one = ONE_SOCKET.fixture().machine();
    let two = TWO_SOCKETS.fixture().machine();
    let mut text = String::new();
    for (machine, policy, instances) in [
        (&two, "node=2", 1),
        (&two, "cores=31-32 client=none", 1),
        (&two, "cores-per-instance=6 client=none", 3),
        (&two, "cores-per-instance=5 client=none", 3),
        (&one, "spread", 3),
        (&one, "cores=0,4 client=none", 2),
        (&one, "cores=0-7 client=same", 2),
        (&one, "spread client=other", 1),
        (&one, "none client=same", 1),
        (&one, "cores=2-3 client=3", 1),
        (&one, "cores=0-3 client=4", 1),
        (&two, "custom=0@local/any client=1/any", 2),
        (&two, "custom=0-3@bind:0", 2),
        (&two, "custom=0-3@bind:5", 1),
        (&two, "custom=0-3/4 client=none", 2),
    ] {
        let found = match plan(machine, &request(policy, instances)) {
            Ok(placement) => placement.notes.iter().map(ToString::to_string).collect(),
            Err(error) => vec![error.to_string()],
        };
        text.push_str(&format!("{policy}: {}\n", found.join("; ")));
    }
    insta::assert_snapshot!(text, @r"
    node=2: node 2 has no usable CPUs; nodes with usable CPUs are `0-1`
    cores=31-32 client=none: CPUs `32` cannot be used; usable CPUs are `0-31`
    cores-per-instance=6 client=none: too few cores: the machine has 16 free, 18 needed for 3 instances of 6
    cores-per-instance=5 client=none: instance 2 has CPUs on the nodes 0-1; 3 clients left to the system, which may run them on CPUs of the others
    spread: too few cores: node 0 has 4 free, 6 needed for 3 instances and 3 clients
    cores=0,4 client=none: too few cores: the list `0,4` has 1 free, 2 needed for 2 instances
    cores=0-7 client=same: too few cores: node 0 has 0 free, 1 needed for the client of instance 0
    spread client=other: no other node has CPUs for the client of instance 0
    none client=same: `client=same` needs instances with their own CPUs, but `none` assigns none
    cores=2-3 client=3: instance 0 and the client of instance 0 would share the CPUs `3`
    cores=0-3 client=4: CPUs 0,4 are one core and belong to instance 0 and the client of instance 0
    custom=0@local/any client=1/any: 1 instance and 1 client left to the system, which may run them on CPUs of the others
    custom=0-3@bind:0: 1 placement given for 2 instances
    custom=0-3@bind:5: node 5 has no usable memory; nodes with usable memory are `0-1`
    custom=0-3/4 client=none: 2 clients left to the system, which may run them on CPUs of the others; the servers have different numbers of CPUs (4, 1): their figures cannot be compared with each other
    ");
}

#[test]
fn nothing_to_place_is_an_error() {
    let machine = ONE_SOCKET.fixture().machine();
    let error = refused(&machine, "spread", 0);
    assert!(matches!(error, PlacementError::NoInstances));
}

fn try_caches(machine: &Machine, text: &str, data: u32) -> Result<Vec<u64>, ServerError> {
    let memory = planned(machine, text, data).memory_shares(machine);
    let shares = cache_shares(&memory, ServerProgram::Mongod, 0)?;
    Ok(shares.iter().map(|bytes| bytes >> 20).collect())
}

fn caches(machine: &Machine, text: &str, instances: u32) -> Vec<u64> {
    try_caches(machine, text, instances).unwrap()
}

#[test]
fn caches_divide_the_default_among_servers_that_share_memory() {
    let machine = TWO_SOCKETS.fixture().machine();
    // 128 GiB in all: (128 - 1) / 2 GiB.
    assert_eq!(caches(&machine, "none", 1), [65024]);
    assert_eq!(caches(&machine, "none", 2), [32512, 32512]);
    // 64 GiB on each node: (64 - 1) / 2 GiB for the node.
    assert_eq!(caches(&machine, "spread", 2), [32256, 32256]);
    assert_eq!(caches(&machine, "spread", 3), [16128, 32256, 16128]);
    assert_eq!(caches(&machine, "node=1", 2), [16128, 16128]);
    assert_eq!(caches(&machine, "cores-per-instance=1", 2), [32256, 32256]);
}

#[test]
fn caches_fit_the_limit_of_the_control_group() {
    let limited = |bytes: u64| {
        TWO_SOCKETS
            .fixture()
            .with("proc/self/cgroup", "0::/")
            .with("sys/fs/cgroup/cgroup.controllers", "memory")
            .with("sys/fs/cgroup/memory.max", &bytes.to_string())
            .machine()
    };
    assert_eq!(caches(&limited(9 << 30), "none", 2), [2048, 2048]);
    assert_eq!(caches(&limited(9 << 30), "spread", 2), [2048, 2048]);
    // The smallest possible cache.
    assert_eq!(caches(&limited(1 << 30), "none", 2), [256, 256]);
    let machine = limited(1 << 30);
    let error = try_caches(&machine, "none", 3).unwrap_err();
    assert!(
        matches!(error, ServerError::NoMemory { instances: 3, memory_bytes, .. }
            if memory_bytes >> 20 == 1023),
        "{error:?}"
    );
}

#[test]
fn container_cpuset_limits_cpus_and_memory() {
    let fixture = TWO_SOCKETS
        .fixture()
        .with("proc/self/cgroup", "3:cpuset:/box")
        .with("sys/fs/cgroup/cpuset/box/cpuset.effective_cpus", "1-2,17,9-10")
        .with("sys/fs/cgroup/cpuset/box/cpuset.effective_mems", "1");
    let machine = fixture.machine();
    let placement = planned(&machine, "spread client=none", 2);
    // Node 0 has a core of two CPUs and one of one; its memory is forbidden.
    assert_eq!(texts(&placement.instances), ["1,17@default", "9-10@default"]);
    assert_eq!(caches(&machine, "spread client=none", 2), [16128, 16128]);
}
