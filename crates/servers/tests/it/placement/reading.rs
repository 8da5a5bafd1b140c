//! Reading machines of different shapes.

use std::path::Path;

use dyno_servers::placement::{Machine, PlacementError};

use super::fixtures::*;

fn nodes(machine: &Machine) -> Vec<(u32, String, u64)> {
    machine
        .nodes
        .iter()
        .map(|node| (node.number, node.cpus.to_string(), node.memory_bytes >> 30))
        .collect()
}

fn cores(machine: &Machine) -> Vec<String> {
    machine.cores.iter().map(|core| core.cpus.to_string()).collect()
}

#[test]
fn one_socket_with_siblings_has_half_as_many_cores() {
    let machine = ONE_SOCKET.fixture().machine();
    assert_eq!(cores(&machine), ["0,4", "1,5", "2,6", "3,7"]);
    assert_eq!(nodes(&machine), [(0, "0-7".to_owned(), 64)]);
    assert_eq!(machine.allowed_cpus.to_string(), "0-7");
    assert_eq!(machine.allowed_memory_nodes.to_string(), "0");
    assert!(machine.has_nodes);
    assert!(machine.cores.iter().all(|core| core.cache_group == Some(0)));
}

#[test]
fn one_socket_without_siblings_has_a_core_for_each_cpu() {
    let machine = ONE_SOCKET_NO_SMT.fixture().machine();
    assert_eq!(cores(&machine), ["0", "1", "2", "3", "4", "5", "6", "7"]);
}

#[test]
fn cores_of_nodes_numbered_in_turn_are_ordered_by_node() {
    let machine = TWO_SOCKETS_IN_TURN.fixture().machine();
    assert_eq!(
        cores(&machine)[..9],
        ["0,16", "2,18", "4,20", "6,22", "8,24", "10,26", "12,28", "14,30", "1,17"]
    );
    assert_eq!(machine.cores[8].node, 1);
    assert_eq!(machine.cores[8].package, 1);
}

#[test]
fn several_caches_of_a_node_are_distinguished() {
    let machine = SEVERAL_CACHES.fixture().machine();
    let groups: Vec<_> = machine.cores.iter().map(|core| core.cache_group).collect();
    assert_eq!(groups[..5], [Some(0), Some(0), Some(0), Some(0), Some(1)]);
    assert_eq!(groups.last(), Some(&Some(7)));
}

#[test]
fn sub_numa_clusters_are_nodes_of_one_package() {
    let machine = SUB_NODES.fixture().machine();
    let places: Vec<_> = machine.cores.iter().map(|core| (core.package, core.node)).collect();
    assert_eq!(places[0], (0, 0));
    assert_eq!(places[4], (0, 1));
    assert_eq!(places[8], (1, 2));
    assert_eq!(places[12], (1, 3));
    assert_eq!(machine.distance(0, 3), 21);
    assert_eq!(machine.distance(3, 3), 10);
}

#[test]
fn offline_cpus_are_left_out_and_their_siblings_stay() {
    // CPU 5, the sibling of 1, and the whole core of 2 and 6 are offline: no topology for them.
    let fixture = [(0, "0,4"), (1, "1"), (3, "3,7"), (4, "0,4"), (7, "3,7")]
        .into_iter()
        .fold(Fixture::new(8, "0-1,3-4,7"), |fixture, (cpu, siblings)| {
            fixture.cpu(&CpuShape {
                cpu,
                package: 0,
                core_id: cpu % 4,
                siblings: siblings.to_owned(),
                l3: Some("0-1,3-4,7".to_owned()),
            })
        })
        .nodes(&[node("0-1,3-4,7", 8)]);
    let machine = fixture.machine();
    assert_eq!(cores(&machine), ["0,4", "1", "3,7"]);
    assert_eq!(machine.online.to_string(), "0-1,3-4,7");
}

#[test]
fn memory_only_and_cpu_only_nodes_are_nodes() {
    let fixture = plain_cpus(Fixture::new(4, "0-3"), 0..4);
    let fixture = fixture.nodes(&[node("0-1", 16), node("2-3", 0), node("", 32)]);
    let machine = fixture.machine();
    assert_eq!(
        nodes(&machine),
        [(0, "0-1".to_owned(), 16), (1, "2-3".to_owned(), 0), (2, String::new(), 32)]
    );
    assert_eq!(machine.allowed_memory_nodes.to_string(), "0,2");
    // At equal distance, the larger node.
    assert_eq!(machine.nearest_memory_node(1), Some(2));
    assert_eq!(machine.nearest_memory_node(0), Some(0));
}

#[test]
fn everything_is_node_0_without_a_folder_of_nodes() {
    let machine = plain_cpus(Fixture::new(2, "0-1"), 0..2).machine();
    assert_eq!(nodes(&machine), [(0, "0-1".to_owned(), 16)]);
    assert!(!machine.has_nodes);
}

#[test]
fn missing_kernel_files_give_no_sibling_cores() {
    // No topology at all, as in some containers; -1 for an unknown package.
    let machine = Fixture::new(2, "0-1")
        .with("sys/devices/system/cpu/cpu0/topology/physical_package_id", "-1")
        .machine();
    assert_eq!(cores(&machine), ["0", "1"]);
    assert_eq!(machine.cores[0].package, 0);
    assert_eq!(machine.cores[0].cache_group, None);
}

#[test]
fn newer_name_of_the_sibling_list_is_read() {
    let machine = Fixture::new(2, "0-1")
        .with("sys/devices/system/cpu/cpu0/topology/core_cpus_list", "0-1")
        .with("sys/devices/system/cpu/cpu1/topology/core_cpus_list", "0-1")
        .machine();
    assert_eq!(cores(&machine), ["0-1"]);
}

#[test]
fn affinity_mask_and_forbidden_nodes_are_respected() {
    let machine = TWO_SOCKETS.fixture().allowed("8-11,24", "1").machine();
    assert_eq!(machine.allowed_cpus.to_string(), "8-11,24");
    assert_eq!(machine.allowed_memory_nodes.to_string(), "1");
    let allowed: Vec<_> =
        machine.allowed_cores().iter().map(|core| core.cpus.to_string()).collect();
    assert_eq!(allowed, ["8,24", "9", "10", "11"]);
}

#[test]
fn version_2_limits_apply_from_every_level() {
    let group = "sys/fs/cgroup";
    let machine = TWO_SOCKETS
        .fixture()
        .with("proc/self/cgroup", "0::/bench.slice/dyno.service")
        .with(&format!("{group}/cgroup.controllers"), "cpuset cpu memory")
        .with(&format!("{group}/bench.slice/memory.max"), "8589934592")
        .with(&format!("{group}/bench.slice/cpu.max"), "max 100000")
        .with(&format!("{group}/bench.slice/dyno.service/memory.max"), "max")
        .with(&format!("{group}/bench.slice/dyno.service/cpu.max"), "250000 100000")
        .with(&format!("{group}/bench.slice/dyno.service/cpuset.cpus.effective"), "0-7,16-19")
        .with(&format!("{group}/bench.slice/dyno.service/cpuset.mems.effective"), "0")
        .machine();
    assert_eq!(machine.limits.quota_cpus, Some(2.5));
    assert_eq!(machine.limits.memory_bytes, Some(8 << 30));
    assert_eq!(machine.allowed_cpus.to_string(), "0-7,16-19");
    assert_eq!(machine.allowed_memory_nodes.to_string(), "0");
}

#[test]
fn version_1_limits_apply_under_the_path_of_the_host() {
    let group = "sys/fs/cgroup";
    // As in a container: the groups have the path of the host, the mounts begin at the container.
    let machine = ONE_SOCKET
        .fixture()
        .with(
            "proc/self/cgroup",
            "4:memory:/docker/c0ffee\n3:cpuset:/docker/c0ffee\n2:cpu,cpuacct:/docker/c0ffee\n1:name=systemd:/docker/c0ffee",
        )
        .with(&format!("{group}/memory/memory.limit_in_bytes"), "2147483648")
        .with(&format!("{group}/cpu,cpuacct/cpu.cfs_quota_us"), "150000")
        .with(&format!("{group}/cpu,cpuacct/cpu.cfs_period_us"), "100000")
        .with(&format!("{group}/cpuset/cpuset.effective_cpus"), "1-3,5-7")
        .with(&format!("{group}/cpuset/cpuset.effective_mems"), "0")
        .machine();
    assert_eq!(machine.limits.quota_cpus, Some(1.5));
    assert_eq!(machine.limits.memory_bytes, Some(2 << 30));
    assert_eq!(machine.allowed_cpus.to_string(), "1-3,5-7");
}

#[test]
fn large_numbers_of_version_1_are_not_limits() {
    let group = "sys/fs/cgroup";
    let machine = ONE_SOCKET
        .fixture()
        .with("proc/self/cgroup", "2:memory:/\n1:cpu:/")
        .with(&format!("{group}/memory/memory.limit_in_bytes"), "9223372036854771712")
        .with(&format!("{group}/cpu/cpu.cfs_quota_us"), "-1")
        .with(&format!("{group}/cpu/cpu.cfs_period_us"), "100000")
        .machine();
    assert_eq!(machine.limits.quota_cpus, None);
    assert_eq!(machine.limits.memory_bytes, None);
}

#[test]
fn machine_that_allows_nothing_is_an_error_with_a_hint() {
    let error = ONE_SOCKET.fixture().allowed("64-127", "0").try_machine().unwrap_err();
    assert!(
        matches!(&error, PlacementError::NothingAllowed { online } if online.to_string() == "0-7"),
        "{error:?}"
    );
    assert!(error.hint().unwrap().contains("taskset"));
}

#[test]
fn missing_or_garbage_files_are_named() {
    let empty = tempfile::TempDir::new().unwrap();
    let error = Machine::read(empty.path()).unwrap_err();
    assert!(matches!(&error, PlacementError::Read { path, .. } if path.ends_with("cpu/online")));
    let garbage = ONE_SOCKET.fixture().with("sys/devices/system/node/node0/cpulist", "all");
    let error = garbage.try_machine().unwrap_err();
    assert!(matches!(&error, PlacementError::Malformed { path, .. } if path.ends_with("cpulist")));
    let no_total = ONE_SOCKET.fixture().with("sys/devices/system/node/node0/meminfo", "nothing");
    assert!(matches!(no_total.try_machine().unwrap_err(), PlacementError::NoMemoryTotal { .. }));
}

#[test]
fn single_node_has_all_memory_of_the_machine() {
    // Only then does memory that a virtual machine gets piece by piece count for its node.
    let grows = |node_gib: u64| {
        let fixture = plain_cpus(Fixture::new(2, "0-1"), 0..2);
        let fixture = fixture.nodes(&[node("0-1", node_gib)]);
        let total = format!("MemTotal: {} kB", 24_u64 << 20);
        fixture.with("proc/meminfo", &total).machine()
    };
    assert_eq!(grows(9).nodes[0].memory_bytes, 24 << 30);
    assert_eq!(grows(9), grows(11));
    let two = plain_cpus(Fixture::new(2, "0-1"), 0..2);
    let two = two.nodes(&[node("0", 9), node("1", 11)]).machine();
    assert_eq!(two.nodes[0].memory_bytes, 9 << 30);
}

#[test]
fn this_machine_can_be_read() {
    let machine = Machine::read(Path::new("/")).unwrap();
    assert!(!machine.allowed_cores().is_empty());
    assert!(machine.allowed_cpus.is_subset(&machine.online));
    let memory: u64 = machine.nodes.iter().map(|node| node.memory_bytes).sum();
    assert!(memory > 0);
}
