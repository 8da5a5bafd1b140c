//! Which CPUs processes may use, and how much of their time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// CPUs that one or several processes may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllowedCpus {
    /// Their numbers, as the kernel lists them: `0-3,8`.
    pub cpus: String,
    /// The lowest CPU quota of each process, every control group once; empty if a process has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<CpuQuota>,
}

/// A CPU quota of a control group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuQuota {
    /// Folder of the group.
    pub group: String,
    /// CPU time per unit of time.
    pub cpus: f64,
}

impl AllowedCpus {
    /// CPUs by their numbers, with the lowest quota of the process.
    pub fn new(cpus: impl IntoIterator<Item = u64>, quota: Option<CpuQuota>) -> AllowedCpus {
        AllowedCpus {
            cpus: list_of(&cpus.into_iter().collect()),
            quotas: quota.into_iter().collect(),
        }
    }

    /// The CPUs of several processes together; `None` without any.
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
        (!set.is_empty()).then(|| AllowedCpus {
            cpus: list_of(&set),
            quotas,
        })
    }

    /// Their numbers; `None` if the list cannot be read.
    pub fn set(&self) -> Option<BTreeSet<u64>> {
        members_of_list(&self.cpus).map(|members| members.into_iter().collect())
    }

    /// How much CPU time per unit of time the quotas leave; `None` without.
    pub fn quota(&self) -> Option<f64> {
        let quotas = self.quotas.iter().map(|quota| quota.cpus);
        quotas.reduce(|sum, quota| sum + quota)
    }

    /// The CPUs that these and other processes may use together, if they compete: for a CPU, or for the time of one quota.
    pub fn shared_with(&self, other: &AllowedCpus) -> Option<AllowedCpus> {
        let is_shared = !self.set()?.is_disjoint(&other.set()?);
        let mut quotas = self.quotas.iter();
        let is_one_quota = quotas.any(|quota| {
            let mut others = other.quotas.iter();
            others.any(|other| other.group == quota.group)
        });
        let both = || AllowedCpus::together(vec![self.clone(), other.clone()]);
        (is_shared || is_one_quota).then(both)?
    }
}

/// The numbers of a list such as `0-3,8,10-11`.
pub fn members_of_list(list: &str) -> Option<Vec<u64>> {
    /// More than any machine has; a list beyond it is garbage that would fill the memory.
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

/// The list of these numbers.
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
        let quota = |(group, cpus): &(&str, f64)| CpuQuota {
            group: (*group).to_owned(),
            cpus: *cpus,
        };
        AllowedCpus {
            cpus: cpus.to_owned(),
            quotas: quotas.iter().map(quota).collect(),
        }
    }

    #[test]
    fn processes_together_have_all_their_cpus_and_each_quota_once() {
        let together = |all: &[AllowedCpus]| AllowedCpus::together(all.to_vec());
        let found = together(&[allowed("0-1,5", &[("a", 0.5)]), allowed("2", &[("a", 0.5)])]);
        assert_eq!(found, Some(allowed("0-2,5", &[("a", 0.5)])));
        let found = together(&[allowed("0", &[("a", 0.5)]), allowed("0", &[("b", 1.0)])]).unwrap();
        assert_eq!(found.quota(), Some(1.5));
        // One without a quota may use all of its CPUs.
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
