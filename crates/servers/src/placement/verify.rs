//! Verifies a placement: the CPUs of all threads of a process, and the location of its memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::deviation::Deviation;
use super::error::PlacementError;
use super::read::{optional, required, status_list};
use dyno_plan::placement::{CpuSet, NodeSet};
use dyno_plan::placement::{InstancePlacement, MemoryPolicy};

/// With less memory of its own, a process's memory is not judged.
const JUDGED_BYTES: u64 = 4 << 20;
/// Part of its own memory that a bound process may have elsewhere, because the loader ran before.
const TOLERATED_RATIO: f64 = 0.05;
/// An interleaved node should hold at least this part of its even share.
const UNEVEN_RATIO: f64 = 0.5;

/// Achieved placement of a process as reported by the kernel, recorded with a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AchievedPlacement {
    pub process_id: u32,
    /// Threads grouped by their CPUs, in ascending order of the CPUs.
    pub threads: Vec<ThreadGroup>,
    /// Nodes that its memory may come from, after all cpusets; `None` if the kernel does not report
    /// it.
    pub allowed_memory_nodes: Option<NodeSet>,
    pub memory: AchievedMemory,
}

/// Threads with the same CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadGroup {
    /// CPUs that they may run on.
    pub cpus: CpuSet,
    pub thread_count: u32,
}

/// Location of a process's memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AchievedMemory {
    /// Read from `/proc/PID/numa_maps`.
    Known {
        /// Memory policies in force, those with the most mappings first.
        policies: Vec<PolicyUse>,
        /// Resident anonymous memory on each node, in bytes.
        anonymous_bytes_by_node: BTreeMap<u32, u64>,
        /// Resident memory of mapped files on each node, in bytes. Not judged, because files may
        /// have been there before the process.
        file_bytes_by_node: BTreeMap<u32, u64>,
    },
    Unknown {
        reason: String,
    },
}

/// A memory policy, and the number of mappings with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyUse {
    /// In the kernel's notation, such as `bind:0`.
    pub policy: String,
    pub mapping_count: u32,
}

/// Compares some threads of a running process with their placement. Returns nothing if all is as
/// planned. It is for clients that are threads of one process; the location of their memory is not
/// judged, because memory belongs to all threads.
pub fn verify_threads(
    process_id: u32,
    thread_ids: &[u32],
    placement: &InstancePlacement,
    root: &Path,
) -> Vec<Deviation> {
    match AchievedThreads::read(process_id, thread_ids, placement, root) {
        Ok(achieved) => achieved.deviations(placement),
        Err(error) => vec![Deviation::not_verified(&error)],
    }
}

/// Achieved placement of client threads as reported by the kernel, recorded with a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AchievedThreads {
    /// The threads grouped by their CPUs, in ascending order of the CPUs.
    pub threads: Vec<ThreadGroup>,
    /// Memory of the process, with the policies of the first of these threads. Absent unless the
    /// placement names nodes, because the kernel has to scan all pages of the process for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<AchievedMemory>,
}

impl AchievedThreads {
    /// Reads the placement of threads from the files below `root`.
    ///
    /// # Errors
    /// [`PlacementError::Read`] if a thread does not exist or its files cannot be read.
    pub fn read(
        process_id: u32,
        thread_ids: &[u32],
        placement: &InstancePlacement,
        root: &Path,
    ) -> Result<AchievedThreads, PlacementError> {
        let folder = root.join(format!("proc/{process_id}/task"));
        let mut groups: BTreeMap<CpuSet, u32> = BTreeMap::new();
        for thread in thread_ids {
            let status = required(&folder.join(format!("{thread}/status")))?;
            let cpus = status_list(&status, "Cpus_allowed_list")?;
            *groups.entry(cpus.unwrap_or_default()).or_default() += 1;
        }
        let first = thread_ids.first();
        let first = first.filter(|_| !placement.memory.nodes().is_empty());
        Ok(AchievedThreads {
            threads: as_groups(groups),
            memory: first.map(|thread| read_memory(&folder.join(format!("{thread}/numa_maps")))),
        })
    }

    /// Differences from a placement; empty if all is as planned.
    pub fn deviations(&self, placement: &InstancePlacement) -> Vec<Deviation> {
        let cpus = placement.cpus.as_ref();
        let mut deviations = cpus.map_or_else(Vec::new, |cpus| cpu_deviations(&self.threads, cpus));
        if let Some(memory) = &self.memory {
            deviations.extend(memory.policy_deviation(&placement.memory));
        }
        deviations
    }
}

impl AchievedPlacement {
    /// Reads the placement of a process from the files below `root`. Skips threads that end in
    /// between. A kernel without nodes has no `numa_maps`; the memory is then unknown.
    ///
    /// # Errors
    /// [`PlacementError::Read`] if the process does not exist or its files cannot be read.
    pub fn read(process_id: u32, root: &Path) -> Result<AchievedPlacement, PlacementError> {
        let folder = root.join(format!("proc/{process_id}"));
        let status = required(&folder.join("status"))?;
        Ok(AchievedPlacement {
            process_id,
            threads: read_threads(&folder.join("task"))?,
            allowed_memory_nodes: status_list(&status, "Mems_allowed_list")?,
            memory: read_memory(&folder.join("numa_maps")),
        })
    }

    /// Differences from a placement; empty if all is as planned.
    ///
    /// Individual threads may have fewer CPUs than the placement, because a server may pin them
    /// further, but together they must have all of them. Memory is judged if the process has 4 MiB
    /// of its own.
    pub fn deviations(&self, placement: &InstancePlacement) -> Vec<Deviation> {
        let mut deviations = Vec::new();
        if let Some(cpus) = &placement.cpus {
            deviations.extend(cpu_deviations(&self.threads, cpus));
        }
        if let Some(allowed) = &self.allowed_memory_nodes {
            let nodes = placement.memory.nodes().difference(allowed);
            if !nodes.is_empty() {
                deviations.push(Deviation::ForbiddenNodes { nodes });
            }
        }
        if placement.memory != MemoryPolicy::Default {
            deviations.extend(self.memory.deviations(&placement.memory));
        }
        deviations
    }
}

fn cpu_deviations(threads: &[ThreadGroup], planned: &CpuSet) -> Vec<Deviation> {
    let mut used = CpuSet::default();
    let mut foreign = CpuSet::default();
    let mut thread_count = 0;
    for group in threads {
        used.extend(&group.cpus);
        if !group.cpus.is_subset(planned) {
            foreign.extend(&group.cpus.difference(planned));
            thread_count += group.thread_count;
        }
    }
    let missing = planned.difference(&used);
    let foreign =
        (thread_count > 0).then_some(Deviation::ForeignCpus { thread_count, cpus: foreign });
    let missing = (!missing.is_empty()).then_some(Deviation::MissingCpus { cpus: missing });
    foreign.into_iter().chain(missing).collect()
}

fn read_threads(folder: &Path) -> Result<Vec<ThreadGroup>, PlacementError> {
    let unreadable = |source| PlacementError::Read { path: folder.to_owned(), source };
    let mut groups: BTreeMap<CpuSet, u32> = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path().join("status");
        // A thread that ends between the two readings has no placement.
        let Ok(Some(status)) = optional(&path) else {
            continue;
        };
        if let Some(cpus) = status_list(&status, "Cpus_allowed_list")? {
            *groups.entry(cpus).or_default() += 1;
        }
    }
    Ok(as_groups(groups))
}

fn as_groups(groups: BTreeMap<CpuSet, u32>) -> Vec<ThreadGroup> {
    groups.into_iter().map(|(cpus, thread_count)| ThreadGroup { cpus, thread_count }).collect()
}

fn read_memory(path: &Path) -> AchievedMemory {
    match optional(path) {
        Ok(Some(text)) => parse_memory(&text),
        Ok(None) => AchievedMemory::Unknown {
            reason: "the kernel has no `numa_maps`; it was built without NUMA".to_owned(),
        },
        Err(PlacementError::Read { source, .. }) => AchievedMemory::Unknown {
            reason: format!("cannot read `{}`: {source}", path.display()),
        },
        Err(error) => AchievedMemory::Unknown { reason: error.to_string() },
    }
}

/// Parses a line: an address, a policy, and words such as `file=/bin/x`, `anon=3`, `N0=2` (pages on
/// node 0) and `kernelpagesize_kB=4`.
fn parse_memory(text: &str) -> AchievedMemory {
    let mut policies: BTreeMap<&str, u32> = BTreeMap::new();
    let mut anonymous_bytes_by_node = BTreeMap::new();
    let mut file_bytes_by_node = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ').skip(1);
        let Some(policy) = words.next() else { continue };
        *policies.entry(policy).or_default() += 1;
        let words: Vec<_> = words.filter_map(|word| word.split_once('=')).collect();
        let page_kb = words.iter().find(|(name, _)| *name == "kernelpagesize_kB");
        let page_kb: u64 = page_kb.and_then(|(_, size)| size.parse().ok()).unwrap_or(4);
        let by_node = if words.iter().any(|(name, _)| *name == "file") {
            &mut file_bytes_by_node
        } else {
            &mut anonymous_bytes_by_node
        };
        for (name, pages) in words {
            let node = name.strip_prefix('N').and_then(|node| node.parse().ok());
            if let (Some(node), Ok(pages)) = (node, pages.parse::<u64>()) {
                *by_node.entry(node).or_default() += pages * page_kb * 1024;
            }
        }
    }
    let mut policies: Vec<_> = policies
        .into_iter()
        .map(|(policy, mapping_count)| PolicyUse { policy: policy.to_owned(), mapping_count })
        .collect();
    policies.sort_by_key(|policy| std::cmp::Reverse(policy.mapping_count));
    AchievedMemory::Known { policies, anonymous_bytes_by_node, file_bytes_by_node }
}

impl AchievedMemory {
    fn deviations(&self, planned: &MemoryPolicy) -> Vec<Deviation> {
        let mut deviations: Vec<_> = self.policy_deviation(planned).into_iter().collect();
        let AchievedMemory::Known { anonymous_bytes_by_node: bytes, .. } = self else {
            return deviations;
        };
        let total: u64 = bytes.values().sum();
        if total >= JUDGED_BYTES {
            let ratio = |bytes: u64| bytes as f64 / total as f64;
            deviations.extend(misplaced(planned, bytes, ratio));
        }
        deviations
    }

    /// Deviation if no mapping has the planned policy, or if the policies are unknown.
    fn policy_deviation(&self, planned: &MemoryPolicy) -> Option<Deviation> {
        match self {
            AchievedMemory::Unknown { reason } => {
                Some(Deviation::NotVerified { reason: reason.clone() })
            }
            AchievedMemory::Known { policies, .. } => {
                let is_found = policies.iter().any(|found| shows(&found.policy, planned));
                (!is_found).then(|| Deviation::MemoryPolicy {
                    planned: planned.clone(),
                    found: policies.clone(),
                })
            }
        }
    }
}

/// Whether a policy in the kernel's notation is the planned one. Flags may come between the name
/// and the nodes, as in `bind=static:0`.
fn shows(found: &str, planned: &MemoryPolicy) -> bool {
    let planned = planned.to_string();
    let split = |text: &str| match text.split_once(':') {
        Some((name, nodes)) => (name.split('=').next().map(str::to_owned), nodes.to_owned()),
        None => (Some(text.to_owned()), String::new()),
    };
    split(found) == split(&planned)
}

fn misplaced(
    planned: &MemoryPolicy,
    bytes: &BTreeMap<u32, u64>,
    ratio: impl Fn(u64) -> f64,
) -> Vec<Deviation> {
    let nodes = planned.nodes();
    if matches!(planned, MemoryPolicy::Default | MemoryPolicy::Local | MemoryPolicy::Preferred(_)) {
        return Vec::new();
    }
    let elsewhere = bytes.iter().filter(|(node, _)| !nodes.contains(**node));
    let foreign: NodeSet = elsewhere.clone().map(|(node, _)| *node).collect();
    let memory_ratio = ratio(elsewhere.map(|(_, bytes)| bytes).sum());
    let mut deviations = Vec::new();
    if memory_ratio > TOLERATED_RATIO {
        deviations.push(Deviation::ForeignMemory { nodes: foreign, memory_ratio });
    }
    if matches!(planned, MemoryPolicy::Interleave(_)) {
        let shares = nodes.iter().map(|node| {
            let memory_ratio = ratio(bytes.get(&node).copied().unwrap_or(0));
            Deviation::UnevenMemory { node, memory_ratio }
        });
        let even = 1.0 / nodes.len() as f64;
        deviations.extend(shares.filter(|share| {
            matches!(share, Deviation::UnevenMemory { memory_ratio, .. }
                if *memory_ratio < even * UNEVEN_RATIO)
        }));
    }
    deviations
}
