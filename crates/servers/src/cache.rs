//! Cache sizes of several servers on one host, chosen so that they fit together in its memory.

use dyno_plan::model::ServerKind;

use crate::placement::{self, Machine, PlacementError, PlacementRequest};
use crate::{ServerError, ServerProgram};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// Memory of one instance with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShare {
    /// Memory that it can use, in bytes.
    pub reach_bytes: u64,
    /// Its part of that memory, in bytes, if all instances that can use the same memory get equal
    /// parts.
    pub share_bytes: u64,
}

impl MemoryShare {
    /// Shares of `instances` that all use the same memory.
    pub fn equal(memory_bytes: u64, instances: u32) -> Vec<MemoryShare> {
        let share = MemoryShare {
            reach_bytes: memory_bytes,
            // Rounded up, because a missing byte would cost a whole MiB of cache.
            share_bytes: memory_bytes.div_ceil(u64::from(instances.max(1))),
        };
        vec![share; instances as usize]
    }

    /// Shares of `instances` on this machine without placement.
    ///
    /// # Errors
    /// [`PlacementError`] if the machine cannot be read.
    pub fn for_this_machine(instances: u32) -> Result<Vec<MemoryShare>, PlacementError> {
        let machine = Machine::read(std::path::Path::new("/"))?;
        let request = PlacementRequest::parse("none", instances)?;
        Ok(placement::plan(&machine, &request)?.memory_shares(&machine))
    }
}

/// Smallest computed share of the cache, as in [`ServerKind::smallest_cache`].
pub const fn smallest_share(program: ServerProgram) -> u64 {
    let kind = match program {
        ServerProgram::Embedded => ServerKind::Embedded,
        ServerProgram::Mongod | ServerProgram::Mongos => ServerKind::Mongod,
    };
    match kind.smallest_cache() {
        Some(bytes) => bytes.0,
        None => 0,
    }
}

/// Divides the cache that a single `mongod` would use: half of the memory above 1 GiB (MongoDB
/// manual, `storage.wiredTiger.engineConfig.cacheSizeGB`). Arbiters and config servers get the
/// smallest cache. An instance with data gets, in whole MiB and at least the smallest cache,
///
/// `(reach - 1 GiB) / 2 * share / reach - (caches of arbiters and config servers) / (instances with data)`
///
/// `memory` has one entry for each instance with data, and `small` counts arbiters and config
/// servers.
///
/// # Errors
/// [`ServerError::NoMemory`] if the smallest caches of the instances that use the same memory, and
/// of the arbiters and config servers, exceed half of it together.
pub fn cache_shares(
    memory: &[MemoryShare],
    program: ServerProgram,
    small: u32,
) -> Result<Vec<u64>, ServerError> {
    let smallest = smallest_share(program);
    let part_of_small = u64::from(small) * smallest / (memory.len() as u64).max(1);
    let data = memory.iter().map(|own| {
        if smallest + part_of_small > own.share_bytes / 2 {
            let sharing = memory.iter().filter(|other| *other == own).count() as u64;
            return Err(ServerError::NoMemory {
                instances: sharing + u64::from(small),
                smallest_bytes: smallest,
                memory_bytes: own.reach_bytes.min(own.share_bytes.saturating_mul(sharing)),
            });
        }
        let part = own_part(*own).saturating_sub(part_of_small) / MIB * MIB;
        Ok(part.max(smallest))
    });
    data.collect()
}

/// An instance's part of the cache that a single server would use of the same memory.
fn own_part(own: MemoryShare) -> u64 {
    let half = own.reach_bytes.saturating_sub(GIB) / 2;
    let part = u128::from(half) * u128::from(own.share_bytes) / u128::from(own.reach_bytes.max(1));
    u64::try_from(part).unwrap_or(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MONGOD: ServerProgram = ServerProgram::Mongod;

    #[test]
    fn shares_are_equal_parts_of_a_single_mongod_cache() {
        for (memory_gib, data, small, expected_mib) in [
            (9, 1, 0, 4096),
            (9, 4, 0, 1024),
            (65, 8, 0, 4096),
            (9, 3, 1, (4096 - 256) / 3),
            // (4 - 1) / 2 GiB = 1536 MiB, six times the smallest cache.
            (4, 6, 0, 256),
        ] {
            let memory = MemoryShare::equal(memory_gib * GIB, data);
            let shares = cache_shares(&memory, MONGOD, small).unwrap();
            assert_eq!(shares[0] / MIB, expected_mib, "{memory_gib} {data} {small}");
        }
    }

    #[test]
    fn sum_never_exceeds_half_of_the_memory() {
        for memory in (0..200).map(|step| step * 333 * MIB) {
            for (data, small) in [(1, 0), (2, 0), (3, 1), (6, 3), (16, 3)] {
                let parts = MemoryShare::equal(memory, data);
                if let Ok(shares) = cache_shares(&parts, MONGOD, small) {
                    let smallest = smallest_share(MONGOD);
                    let sum = shares.iter().sum::<u64>() + u64::from(small) * smallest;
                    assert!(sum <= memory / 2, "{memory} {data} {small}: {sum}");
                }
            }
        }
    }

    #[test]
    fn memory_below_the_smallest_caches_is_refused() {
        let error = cache_shares(&MemoryShare::equal(2 * GIB, 5), MONGOD, 0).unwrap_err();
        let ServerError::NoMemory { instances, smallest_bytes, memory_bytes } = error else {
            panic!("{error:?}")
        };
        assert_eq!((instances, smallest_bytes, memory_bytes), (5, 256 * MIB, 2 * GIB));
        assert!(cache_shares(&MemoryShare::equal(2 * GIB, 4), MONGOD, 0).is_ok());
        let five = MemoryShare::equal(2 * GIB, 5);
        assert!(cache_shares(&five, ServerProgram::Embedded, 0).is_ok());
    }

    #[test]
    fn memory_of_a_node_is_divided_among_its_servers() {
        let one = MemoryShare::equal(65 * GIB, 1);
        let two = MemoryShare::equal(9 * GIB, 2);
        let memory = [one[0], two[0], two[1]];
        let shares = cache_shares(&memory, MONGOD, 0).unwrap();
        assert_eq!(shares, [32 * GIB, 2 * GIB, 2 * GIB]);
        let memory = [one[0], MemoryShare::equal(256 * MIB, 1)[0]];
        let error = cache_shares(&memory, MONGOD, 0).unwrap_err();
        assert!(matches!(error, ServerError::NoMemory { instances: 1, .. }), "{error:?}");
    }

    #[test]
    fn memory_of_this_machine_is_divided_evenly() {
        let shares = MemoryShare::for_this_machine(3).unwrap();
        assert_eq!(shares.len(), 3);
        assert!(shares.iter().all(|share| *share == shares[0]));
        assert!(
            shares[0].share_bytes > 16 * MIB && shares[0].reach_bytes / 3 >= shares[0].share_bytes
        );
    }
}
