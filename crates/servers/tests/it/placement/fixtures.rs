//! File trees of machines with real shapes.

use std::fs;
use std::path::Path;

use dyno_servers::placement::{Machine, PlacementError};
use tempfile::TempDir;

const GIB_KB: u64 = 1 << 20;

/// Properties of one node.
#[derive(Clone)]
pub(crate) struct NodeShape {
    /// CPU list as the kernel writes it.
    pub(crate) cpus: String,
    /// Memory in GiB; 0 means none.
    pub(crate) memory_gib: u64,
}

/// One CPU with its position.
#[derive(Clone)]
pub(crate) struct CpuShape {
    pub(crate) cpu: u32,
    pub(crate) package: u32,
    pub(crate) core_id: u32,
    pub(crate) siblings: String,
    /// CPUs that share its L3; without a cache folder if absent.
    pub(crate) l3: Option<String>,
}

/// Writes the files of a machine.
pub(crate) struct Fixture(TempDir);

impl Fixture {
    /// CPUs `online` of a machine that has 0 to `present - 1`, all allowed, without other files.
    pub(crate) fn new(present: u32, online: &str) -> Fixture {
        let fixture = Fixture(TempDir::new().unwrap());
        let cpu = "sys/devices/system/cpu";
        let all = format!("0-{}", present - 1);
        fixture
            .with(&format!("{cpu}/present"), &all)
            .with(&format!("{cpu}/possible"), &format!("0-{}", 2 * present - 1))
            .with(&format!("{cpu}/online"), online)
            .with("proc/meminfo", &format!("MemTotal: {} kB", 16 * GIB_KB))
            .with("proc/self/cgroup", "")
            .allowed("0-8191", "0-1023")
    }

    pub(crate) fn with(self, path: &str, text: &str) -> Fixture {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    /// The masks in `/proc/self/status`.
    pub(crate) fn allowed(self, cpus: &str, memory: &str) -> Fixture {
        let status =
            format!("Name:\tdyno\nCpus_allowed_list:\t{cpus}\nMems_allowed_list:\t{memory}");
        self.with("proc/self/status", &status)
    }

    pub(crate) fn cpu(self, shape: &CpuShape) -> Fixture {
        let base = format!("sys/devices/system/cpu/cpu{}", shape.cpu);
        let file = |name: &str| format!("{base}/{name}");
        let mut fixture = self
            .with(&file("topology/physical_package_id"), &shape.package.to_string())
            .with(&file("topology/core_id"), &shape.core_id.to_string())
            .with(&file("topology/die_id"), "0")
            .with(&file("topology/thread_siblings_list"), &shape.siblings)
            .with(&file("cache/index0/level"), "1")
            .with(&file("cache/index0/shared_cpu_list"), &shape.siblings);
        if let Some(l3) = &shape.l3 {
            fixture = fixture
                .with(&file("cache/index1/level"), "3")
                .with(&file("cache/index1/shared_cpu_list"), l3);
        }
        fixture
    }

    /// The folder of nodes, with distance 10 to itself, 21 to others.
    pub(crate) fn nodes(self, shapes: &[NodeShape]) -> Fixture {
        let count = shapes.len();
        let folder = "sys/devices/system/node";
        let total: u64 = shapes.iter().map(|shape| shape.memory_gib).sum();
        let mut fixture = self
            .with(&format!("{folder}/online"), &format!("0-{}", count - 1))
            .with("proc/meminfo", &format!("MemTotal: {} kB", total * GIB_KB));
        for (number, shape) in shapes.iter().enumerate() {
            let kb = shape.memory_gib * GIB_KB;
            let meminfo = format!("Node {number} MemTotal:  {kb} kB\nNode {number} MemFree: 1 kB");
            let distances: Vec<_> =
                (0..count).map(|other| if other == number { "10" } else { "21" }).collect();
            fixture = fixture
                .with(&format!("{folder}/node{number}/cpulist"), &shape.cpus)
                .with(&format!("{folder}/node{number}/meminfo"), &meminfo)
                .with(&format!("{folder}/node{number}/distance"), &distances.join(" "));
        }
        fixture
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn try_machine(&self) -> Result<Machine, PlacementError> {
        Machine::read(self.root())
    }

    pub(crate) fn machine(&self) -> Machine {
        self.try_machine().unwrap()
    }
}

pub(crate) fn node(cpus: &str, memory_gib: u64) -> NodeShape {
    NodeShape { cpus: cpus.to_owned(), memory_gib }
}

fn joined(cpus: impl Iterator<Item = u32>) -> String {
    let cpus: Vec<_> = cpus.map(|cpu| cpu.to_string()).collect();
    cpus.join(",")
}

/// How the kernel numbers the CPUs of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Numbering {
    /// First CPUs of all cores, package by package, then the siblings in the same order.
    SiblingsLast,
    /// Like `SiblingsLast`, but alternating between nodes: node 0 has even CPUs, node 1 odd.
    NodesInTurn,
    /// Siblings next to each other.
    SiblingsNext,
}

/// A regular machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    pub(crate) packages: u32,
    pub(crate) nodes_per_package: u32,
    pub(crate) groups_per_node: u32,
    pub(crate) cores_per_group: u32,
    pub(crate) threads: u32,
    pub(crate) numbering: Numbering,
}

impl Shape {
    pub(crate) fn cores(&self) -> u32 {
        self.nodes() * self.cores_per_node()
    }

    pub(crate) fn nodes(&self) -> u32 {
        self.packages * self.nodes_per_package
    }

    pub(crate) fn cores_per_node(&self) -> u32 {
        self.groups_per_node * self.cores_per_group
    }

    /// Number of a CPU: core `core` of node `node`, thread `thread`.
    fn number(&self, node: u32, core: u32, thread: u32) -> u32 {
        let in_order = node * self.cores_per_node() + core;
        match self.numbering {
            Numbering::SiblingsLast => thread * self.cores() + in_order,
            Numbering::NodesInTurn => thread * self.cores() + core * self.nodes() + node,
            Numbering::SiblingsNext => in_order * self.threads + thread,
        }
    }

    fn siblings(&self, node: u32, core: u32) -> impl Iterator<Item = u32> + '_ {
        (0..self.threads).map(move |thread| self.number(node, core, thread))
    }

    fn cpus_of(&self, node: u32, cores: std::ops::Range<u32>) -> String {
        let mut cpus: Vec<_> = cores.flat_map(|core| self.siblings(node, core)).collect();
        cpus.sort_unstable();
        joined(cpus.into_iter())
    }

    /// The files; all nodes have 64 GiB.
    pub(crate) fn fixture(&self) -> Fixture {
        let total = self.cores() * self.threads;
        let mut fixture = Fixture::new(total, &format!("0-{}", total - 1));
        let mut nodes = Vec::new();
        for node_number in 0..self.nodes() {
            for core in 0..self.cores_per_node() {
                let group = core / self.cores_per_group * self.cores_per_group;
                for cpu in self.siblings(node_number, core) {
                    fixture = fixture.cpu(&CpuShape {
                        cpu,
                        package: node_number / self.nodes_per_package,
                        core_id: core,
                        siblings: joined(self.siblings(node_number, core)),
                        l3: Some(self.cpus_of(node_number, group..group + self.cores_per_group)),
                    });
                }
            }
            nodes.push(node(&self.cpus_of(node_number, 0..self.cores_per_node()), 64));
        }
        fixture.nodes(&nodes)
    }
}

pub(crate) const ONE_SOCKET: Shape = Shape {
    packages: 1,
    nodes_per_package: 1,
    groups_per_node: 1,
    cores_per_group: 4,
    threads: 2,
    numbering: Numbering::SiblingsLast,
};

pub(crate) const ONE_SOCKET_NO_SMT: Shape = Shape { threads: 1, cores_per_group: 8, ..ONE_SOCKET };

pub(crate) const TWO_SOCKETS: Shape = Shape { packages: 2, cores_per_group: 8, ..ONE_SOCKET };

pub(crate) const TWO_SOCKETS_IN_TURN: Shape =
    Shape { numbering: Numbering::NodesInTurn, ..TWO_SOCKETS };

pub(crate) const SUB_NODES: Shape =
    Shape { packages: 2, nodes_per_package: 2, cores_per_group: 4, ..ONE_SOCKET };

pub(crate) const SEVERAL_CACHES: Shape =
    Shape { packages: 2, groups_per_node: 4, cores_per_group: 4, ..ONE_SOCKET };

pub(crate) const LARGE: Shape = Shape { packages: 2, cores_per_group: 32, ..ONE_SOCKET };

/// One CPU each, without cache and without SMT: the plainest virtual machine.
pub(crate) fn plain_cpus(fixture: Fixture, cpus: std::ops::Range<u32>) -> Fixture {
    cpus.fold(fixture, |fixture, cpu| {
        fixture.cpu(&CpuShape {
            cpu,
            package: 0,
            core_id: cpu,
            siblings: cpu.to_string(),
            l3: None,
        })
    })
}
