//! Reads a [`Machine`] from the files below `/sys` and `/proc`, or from copies of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::cgroup;
use super::error::PlacementError;
use super::machine::{Core, Limits, Machine, Node, OTHER_DISTANCE, OWN_DISTANCE};
use dyno_plan::placement::{CpuSet, IdSet, NodeSet};

impl Machine {
    /// Reads the machine below `root`, which is `/` except in tests.
    ///
    /// Skips offline CPUs. Missing information about a CPU is filled in without inventing
    /// neighbours: the CPU is then a core of its own in package 0 without an L3 cache. Without a
    /// folder of nodes all CPUs and all memory are node 0.
    ///
    /// # Errors
    /// [`PlacementError::Read`] and [`PlacementError::Malformed`] for a missing or malformed file;
    /// [`PlacementError::NothingAllowed`] if no online CPU may be used.
    pub fn read(root: &Path) -> Result<Machine, PlacementError> {
        let folder = root.join("sys/devices/system/cpu");
        let online: CpuSet = required_list(&folder.join("online"))?;
        let (nodes, has_nodes) = read_nodes(root, &online)?;
        let cores = read_cores(&folder, &online, &nodes)?;
        let limits = cgroup::read(root)?;
        let status = required(&root.join("proc/self/status"))?;
        let allowed_cpus = allowed_cpus(&status, &online, &limits)?;
        let allowed_memory_nodes = allowed_memory(&status, &nodes, has_nodes, &limits)?;
        Ok(Machine { cores, nodes, online, allowed_cpus, allowed_memory_nodes, has_nodes, limits })
    }
}

/// The text of a file without the line end; `None` if it does not exist.
pub(super) fn optional(path: &Path) -> Result<Option<String>, PlacementError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim_end().to_owned())),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(source) => Err(PlacementError::Read { path: path.to_owned(), source }),
    }
}

/// The text of a file that every system has.
pub(super) fn required(path: &Path) -> Result<String, PlacementError> {
    optional(path)?.ok_or_else(|| PlacementError::Read {
        path: path.to_owned(),
        source: ErrorKind::NotFound.into(),
    })
}

/// A list of numbers in a field of `/proc/*/status`; `None` if the field is missing.
pub(super) fn status_list(status: &str, field: &str) -> Result<Option<IdSet>, PlacementError> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field).and_then(|rest| rest.strip_prefix(':')));
    line.map(|text| list(text, Path::new(field))).transpose()
}

fn required_list(path: &Path) -> Result<IdSet, PlacementError> {
    list(&required(path)?, path)
}

pub(super) fn optional_list(path: &Path) -> Result<Option<IdSet>, PlacementError> {
    optional(path)?.map(|text| list(&text, path)).transpose()
}

fn list(text: &str, path: &Path) -> Result<IdSet, PlacementError> {
    text.trim()
        .parse()
        .map_err(|source| PlacementError::Malformed { path: path.to_owned(), source })
}

fn allowed_cpus(status: &str, online: &CpuSet, limits: &Limits) -> Result<CpuSet, PlacementError> {
    let mut allowed = online.clone();
    let mask = status_list(status, "Cpus_allowed_list")?;
    for set in mask.iter().chain(&limits.cpus) {
        allowed = allowed.intersection(set);
    }
    if allowed.is_empty() {
        Err(PlacementError::NothingAllowed { online: online.clone() })
    } else {
        Ok(allowed)
    }
}

fn allowed_memory(
    status: &str,
    nodes: &[Node],
    has_nodes: bool,
    limits: &Limits,
) -> Result<NodeSet, PlacementError> {
    let with_memory = nodes.iter().filter(|node| node.memory_bytes > 0);
    let mut allowed: NodeSet = with_memory.map(|node| node.number).collect();
    if has_nodes {
        let mask = status_list(status, "Mems_allowed_list")?;
        for set in mask.iter().chain(&limits.memory_nodes) {
            allowed = allowed.intersection(set);
        }
    }
    Ok(allowed)
}

/// The online nodes, and whether the kernel supports nodes at all.
fn read_nodes(root: &Path, online: &CpuSet) -> Result<(Vec<Node>, bool), PlacementError> {
    let folder = root.join("sys/devices/system/node");
    let numbers = optional_list(&folder.join("online"))?.unwrap_or_default();
    if numbers.is_empty() {
        let only = Node {
            number: 0,
            cpus: online.clone(),
            memory_bytes: memory_total(&root.join("proc/meminfo"))?,
            distances: vec![(0, OWN_DISTANCE)],
        };
        return Ok((vec![only], false));
    }
    let mut nodes = Vec::new();
    for number in numbers.iter() {
        let folder = folder.join(format!("node{number}"));
        nodes.push(Node {
            number,
            cpus: required_list(&folder.join("cpulist"))?.intersection(online),
            memory_bytes: memory_total(&folder.join("meminfo"))?,
            distances: distances(&folder.join("distance"), number, &numbers)?,
        });
    }
    adopt_strays(&mut nodes, online);
    if let [only] = &mut nodes[..] {
        // Some virtual machines get memory piece by piece: the node's memory grows, and caches of
        // equal plans would differ.
        only.memory_bytes = memory_total(&root.join("proc/meminfo"))?;
    }
    Ok((nodes, true))
}

/// Adds CPUs without a node to the first node: they are usable, only their memory is unknown.
fn adopt_strays(nodes: &mut [Node], online: &CpuSet) {
    let mut strays = online.clone();
    for node in nodes.iter() {
        strays = strays.difference(&node.cpus);
    }
    if let Some(first) = nodes.first_mut() {
        first.cpus.extend(&strays);
    }
}

/// `MemTotal` in bytes, of the machine or of a node, whose lines begin with `Node 0`.
fn memory_total(path: &Path) -> Result<u64, PlacementError> {
    let text = required(path)?;
    let kibibytes = text.lines().find_map(|line| {
        let (_, value) = line.split_once("MemTotal:")?;
        value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kibibytes
        .map(|kibibytes| kibibytes * 1024)
        .ok_or_else(|| PlacementError::NoMemoryTotal { path: path.to_owned() })
}

/// Reads the distance to each online node, in their order.
fn distances(path: &Path, own: u32, nodes: &NodeSet) -> Result<Vec<(u32, u32)>, PlacementError> {
    let text = optional(path)?.unwrap_or_default();
    let mut columns = text.split_whitespace().map(|word| word.parse::<u32>().ok());
    let guess = |node| {
        if node == own { OWN_DISTANCE } else { OTHER_DISTANCE }
    };
    Ok(nodes
        .iter()
        .map(|node| (node, columns.next().flatten().unwrap_or_else(|| guess(node))))
        .collect())
}

/// Known properties of one CPU.
struct Thread {
    siblings: CpuSet,
    package: u32,
    /// First CPU of the group that shares its L3 cache.
    cache: Option<u32>,
}

fn read_cores(folder: &Path, online: &CpuSet, nodes: &[Node]) -> Result<Vec<Core>, PlacementError> {
    let mut cores = Vec::new();
    let mut seen = CpuSet::default();
    let mut caches = BTreeSet::new();
    for cpu in online.iter() {
        if seen.contains(cpu) {
            continue;
        }
        let thread = read_thread(&folder.join(format!("cpu{cpu}")), cpu, online)?;
        let node = nodes.iter().find(|node| node.cpus.contains(cpu));
        let node = node.map_or(0, |node| node.number);
        let cpus = thread.siblings.difference(&seen);
        seen.extend(&cpus);
        caches.extend(thread.cache.map(|first| (node, first)));
        cores.push((thread.cache, Core { cpus, node, package: thread.package, cache_group: None }));
    }
    let numbers: BTreeMap<_, _> = caches.into_iter().zip(0..).collect();
    let numbered = cores.into_iter().map(|(cache, core)| Core {
        cache_group: cache.and_then(|first| numbers.get(&(core.node, first)).copied()),
        ..core
    });
    let mut cores: Vec<Core> = numbered.collect();
    cores.sort_by_key(|core| (core.node, core.cache_group, core.cpus.first()));
    Ok(cores)
}

fn read_thread(folder: &Path, cpu: u32, online: &CpuSet) -> Result<Thread, PlacementError> {
    let topology = folder.join("topology");
    let package = optional(&topology.join("physical_package_id"))?;
    let siblings = match optional_list(&topology.join("thread_siblings_list"))? {
        Some(list) => Some(list),
        None => optional_list(&topology.join("core_cpus_list"))?,
    };
    let mut siblings = siblings.unwrap_or_default().intersection(online);
    siblings.insert(cpu);
    Ok(Thread {
        siblings,
        // Some virtual machines report -1 for an unknown one.
        package: package.and_then(|text| text.trim().parse().ok()).unwrap_or(0),
        cache: read_cache(&folder.join("cache"), online)?,
    })
}

fn read_cache(folder: &Path, online: &CpuSet) -> Result<Option<u32>, PlacementError> {
    for index in 0.. {
        let folder = folder.join(format!("index{index}"));
        let Some(level) = optional(&folder.join("level"))? else {
            break;
        };
        if level.trim() == "3" {
            let shared = optional_list(&folder.join("shared_cpu_list"))?;
            return Ok(shared.and_then(|cpus| cpus.intersection(online).first()));
        }
    }
    Ok(None)
}
