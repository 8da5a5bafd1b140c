//! CPUs and CPU time that processes may use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// CPUs and quotas of one or several processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllowedCpus {
    /// CPU list as the kernel writes it: `0-3,8`.
    pub cpus: String,
    /// Lowest CPU quota of each process, each control group once; empty if a process does not have one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<CpuQuota>,
}

/// A CPU quota of a control group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuQuota {
    /// Folder of the control group.
    pub group: String,
    /// CPU time per unit of time.
    pub cpus: f64,
}

impl AllowedCpus {
    /// Creates it from CPU numbers and the lowest quota of the process.
    pub fn new(cpus: impl IntoIterator<Item = u64>, quota: Option<CpuQuota>) -> AllowedCpus {
        AllowedCpus {
            cpus: list_of(&cpus.into_iter().collect()),
            quotas: quota.into_iter().collect(),
        }
    }

    /// Combines the CPUs of several processes; `None` without any.
    pub fn together(all: Vec<AllowedCpus>) -> Option<AllowedCpus> {
        let sets: Vec<BTreeSet<u64>> = all.iter().map(|one| one.set()).collect::<Option<_>>()?;
        let set: BTreeSet<u64> = sets.into_iter().flatten().collect();
        let is_limited = all.iter().all(|one| !one.quotas.is_empty());
        let mut quotas: Vec<CpuQuota> = Vec::new();
        for quota in all.into_iter().flat_map(|one| one.quotas) {
            if quotas.iter().all(|known| known.group != quota.group) {
                quotas.push(quota);
            }
        }
        quotas.retain(|_| is_limited);
        (!set.is_empty()).then(|| AllowedCpus { cpus: list_of(&set), quotas })
    }

    /// CPU numbers; `None` if the list is invalid.
    pub fn set(&self) -> Option<BTreeSet<u64>> {
        members_of_list(&self.cpus).map(|members| members.into_iter().collect())
    }

    /// CPU time per unit of time that the quotas allow; `None` without quotas.
    pub fn quota(&self) -> Option<f64> {
        let quotas = self.quotas.iter().map(|quota| quota.cpus);
        quotas.reduce(|sum, quota| sum + quota)
    }

    /// CPUs that these and other processes may both use, if they compete for a CPU or for the time of a quota.
    pub fn shared_with(&self, other: &AllowedCpus) -> Option<AllowedCpus> {
        let is_shared = !self.set()?.is_disjoint(&other.set()?);
        let is_one_quota = self
            .quotas
            .iter()
            .any(|quota| other.quotas.iter().any(|other| other.group == quota.group));
        let both = || AllowedCpus::together(vec![self.clone(), other.clone()]);
        (is_shared || is_one_quota).then(both)?
    }
}

/// Parses a list such as `0-3,8,10-11`.
pub fn members_of_list(list: &str) -> Option<Vec<u64>> {
    /// More than any machine has; a longer list is invalid and would fill the memory.
    const MOST: u64 = 1 << 16;
    let mut members = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last >= MOST {
            return None;
        }
        members.extend(first..=last);
    }
    Some(members)
}

/// Formats a list of CPU numbers.
fn list_of(set: &BTreeSet<u64>) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in set {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let range = |(first, last): &(u64, u64)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let ranges: Vec<String> = ranges.iter().map(range).collect();
    ranges.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(cpus: &str, quotas: &[(&str, f64)]) -> AllowedCpus {
        let quota =
            |(group, cpus): &(&str, f64)| CpuQuota { group: (*group).to_owned(), cpus: *cpus };
        AllowedCpus { cpus: cpus.to_owned(), quotas: quotas.iter().map(quota).collect() }
    }

    #[test]
    fn combined_processes_have_all_cpus_and_each_quota_once() {
        let together = |all: &[AllowedCpus]| AllowedCpus::together(all.to_vec());
        let found = together(&[allowed("0-1,5", &[("a", 0.5)]), allowed("2", &[("a", 0.5)])]);
        assert_eq!(found, Some(allowed("0-2,5", &[("a", 0.5)])));
        let found = together(&[allowed("0", &[("a", 0.5)]), allowed("0", &[("b", 1.0)])]).unwrap();
        assert_eq!(found.quota(), Some(1.5));
        // A process without a quota may use all of its CPUs.
        let found = together(&[allowed("0", &[("a", 0.5)]), allowed("0", &[])]).unwrap();
        assert_eq!(found.quota(), None);
        assert_eq!(together(&[]), None);
        assert_eq!(together(&[allowed("3-1", &[])]), None);
    }

    #[test]
    fn processes_compete_for_common_cpus_or_one_quota() {
        let shared = |one: &AllowedCpus, other: &AllowedCpus| one.shared_with(other);
        let (first, second, both) = (allowed("0", &[]), allowed("1", &[]), allowed("0-1", &[]));
        assert_eq!(shared(&first, &second), None);
        assert_eq!(shared(&first, &both), Some(both.clone()));
        let of_one = [allowed("0", &[("a", 0.5)]), allowed("1", &[("a", 0.5)])];
        let found = shared(&of_one[0], &of_one[1]);
        assert_eq!(found, Some(allowed("0-1", &[("a", 0.5)])));
    }
}
