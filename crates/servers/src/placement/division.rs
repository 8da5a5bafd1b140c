//! Divides cores among processes: whole cores, neighbours together, as evenly as cores allow.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::machine::Core;
use dyno_plan::placement::CpuSet;

/// CPUs of these cores.
pub(super) fn cpus_of(cores: &[Core]) -> CpuSet {
    let mut cpus = CpuSet::default();
    for core in cores {
        cpus.extend(&core.cpus);
    }
    cpus
}

/// Divides `cores`, which are in the order of the machine, into `parts`.
///
/// No core is split, every core is assigned, and the numbers of CPUs of two parts differ by at most
/// the CPUs of the largest core. Each part gets neighbours in that order, so that it touches as few
/// L3 groups as the sizes allow. With at least as many cores as parts no part is empty.
///
/// Cores with different numbers of CPUs (a control group may exclude one of two siblings) are
/// distributed separately, the large ones first; the remainder goes to the smallest parts.
pub(super) fn divide(cores: &[Core], parts: usize) -> Vec<Vec<Core>> {
    let mut shares = vec![Vec::new(); parts];
    if parts == 0 {
        return shares;
    }
    let mut by_size: BTreeMap<Reverse<usize>, Vec<&Core>> = BTreeMap::new();
    for core in cores {
        let same_size = by_size.entry(Reverse(core.cpus.len())).or_default();
        same_size.push(core);
    }
    for same_size in by_size.into_values() {
        let mut order: Vec<usize> = (0..parts).collect();
        order.sort_by_key(|&part| cpus_of(&shares[part]).len());
        let favoured = &order[..same_size.len() % parts];
        let mut rest = same_size.iter();
        for (part, share) in shares.iter_mut().enumerate() {
            let count = same_size.len() / parts + usize::from(favoured.contains(&part));
            share.extend(rest.by_ref().take(count).map(|&core| core.clone()));
        }
    }
    shares
}

/// Takes `count` cores out of `free`: from the node with the most free cores, there from the L3
/// group with the most. Several nodes or groups are used only if none has enough cores, and then as
/// few as possible. `load` is the use of a package; among equals the least used one is chosen.
/// `None` if there are not enough cores in total.
pub(super) fn take(
    free: &mut Vec<Core>,
    count: usize,
    load: impl Fn(u32) -> usize,
) -> Option<Vec<Core>> {
    if free.len() < count {
        return None;
    }
    let nodes = grouped(free, |core| core.node);
    let roomy = nodes.iter().filter(|cores| cores.len() >= count);
    let node = roomy.min_by_key(|cores| (Reverse(cores.len()), load(cores[0].package)));
    let mut taken = match node {
        Some(cores) => fewest_groups(grouped(cores, |core| core.cache_group), count),
        None => fewest_groups(nodes, count),
    };
    free.retain(|core| !taken.contains(core));
    taken.sort_by_key(|core| (core.node, core.cache_group, core.cpus.first()));
    Some(taken)
}

fn grouped<K: Ord>(cores: &[Core], key: impl Fn(&Core) -> K) -> Vec<Vec<Core>> {
    let mut groups: BTreeMap<K, Vec<Core>> = BTreeMap::new();
    for core in cores {
        groups.entry(key(core)).or_default().push(core.clone());
    }
    groups.into_values().collect()
}

/// Cores of the largest groups first; of a single group if one is large enough.
fn fewest_groups(mut groups: Vec<Vec<Core>>, count: usize) -> Vec<Core> {
    groups.sort_by_key(|cores| Reverse(cores.len()));
    groups.into_iter().flatten().take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A core of each given number of CPUs, two cores per L3 group.
    fn cores(sizes: &[u32]) -> Vec<Core> {
        let mut next = 0;
        let mut cores = Vec::new();
        for (index, size) in (0..).zip(sizes) {
            cores.push(Core {
                cpus: (next..next + size).collect(),
                node: 0,
                package: 0,
                cache_group: Some(index / 2),
            });
            next += size;
        }
        cores
    }

    fn text(shares: &[Vec<Core>]) -> Vec<String> {
        let texts = shares.iter().map(|share| cpus_of(share).to_string());
        texts.collect()
    }

    #[test]
    fn neighbours_stay_together() {
        assert_eq!(text(&divide(&cores(&[2; 4]), 2)), ["0-3", "4-7"]);
        assert_eq!(text(&divide(&cores(&[1; 5]), 2)), ["0-2", "3-4"]);
    }

    #[test]
    fn cores_of_different_size_are_divided_evenly() {
        assert_eq!(text(&divide(&cores(&[1, 2, 1, 2, 1]), 2)), ["0-3", "4-6"]);
        assert_eq!(text(&divide(&cores(&[2, 1]), 2)), ["0-1", "2"]);
        assert_eq!(text(&divide(&cores(&[2, 2, 2, 1]), 2)), ["0-3", "4-6"]);
    }

    #[test]
    fn sufficient_group_is_not_left() {
        let mut free = cores(&[1; 6]);
        free.remove(0);
        let mut take = |count| take(&mut free, count, |_| 0).map(|taken| cpus_of(&taken));
        assert_eq!(take(2).unwrap().to_string(), "2-3");
        assert_eq!(take(1).unwrap().to_string(), "4");
        assert_eq!(take(2).unwrap().to_string(), "1,5");
        assert_eq!(take(1), None);
    }
}
