//! Cache sizes of several servers on one host, so that their sum fits into its memory.

use std::fs;

use crate::{ServerError, ServerProgram};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// Instances that share the memory of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheDemand {
    /// The program that they run.
    pub program: ServerProgram,
    /// Instances that hold the data under test.
    pub data: u32,
    /// Arbiters and config servers: processes with a cache that holds next to nothing.
    pub small: u32,
}

/// Cache sizes that fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheShares {
    /// Of each instance with data.
    pub data_bytes: u64,
    /// Of each arbiter and config server.
    pub small_bytes: u64,
}

/// Smallest cache that a computed share may be. `mongod` refuses less than 256 MiB; the embedded
/// server takes 1 MiB, but a share of that size would measure little but eviction.
pub const fn smallest_share(program: ServerProgram) -> u64 {
    match program {
        ServerProgram::Embedded => 64 * MIB,
        ServerProgram::Mongod | ServerProgram::Mongos => 256 * MIB,
    }
}

/// Shares of the cache that one `mongod` would take by itself: half of what the memory has above
/// 1 GiB, at least 256 MiB (MongoDB manual, `storage.wiredTiger.engineConfig.cacheSizeGB`).
/// Arbiters and config servers get the smallest cache, the others an equal part of the rest in
/// whole MiB, and never less than the smallest.
///
/// # Errors
/// [`ServerError::NoMemory`] when the smallest caches together are more than half of the memory.
pub fn cache_shares(memory_bytes: u64, demand: CacheDemand) -> Result<CacheShares, ServerError> {
    let smallest = smallest_share(demand.program);
    let instances = u64::from(demand.data) + u64::from(demand.small);
    let needed = instances.saturating_mul(smallest);
    if needed > memory_bytes / 2 {
        return Err(ServerError::NoMemory {
            instances,
            smallest_bytes: smallest,
            memory_bytes,
        });
    }
    let budget = (memory_bytes.saturating_sub(GIB) / 2).max(needed);
    let rest = budget - u64::from(demand.small) * smallest;
    let share = rest / u64::from(demand.data.max(1)) / MIB * MIB;
    Ok(CacheShares {
        data_bytes: share.max(smallest),
        small_bytes: smallest,
    })
}

/// Memory that this process may use: that of the machine, or of its control group when less.
/// `None` when `/proc/meminfo` cannot be read.
pub fn memory_bytes() -> Option<u64> {
    let machine = total_memory(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let group = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ]
    .iter()
    .filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok())
    .min();
    Some(group.map_or(machine, |limit: u64| limit.min(machine)))
}

fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mongod(data: u32, small: u32) -> CacheDemand {
        CacheDemand {
            program: ServerProgram::Mongod,
            data,
            small,
        }
    }

    #[test]
    fn shares_are_equal_parts_of_what_one_mongod_would_take() {
        for (memory_gib, data, small, expected_mib) in [
            (9, 1, 0, 4096),
            (9, 4, 0, 1024),
            (65, 8, 0, 4096),
            (9, 3, 1, (4096 - 256) / 3),
            // (4 - 1) / 2 GiB = 1536 MiB, six of the smallest.
            (4, 6, 0, 256),
        ] {
            let shares = cache_shares(memory_gib * GIB, mongod(data, small)).unwrap();
            assert_eq!(
                shares.data_bytes / MIB,
                expected_mib,
                "{memory_gib} {data} {small}"
            );
            assert_eq!(shares.small_bytes, 256 * MIB);
        }
    }

    #[test]
    fn the_sum_never_exceeds_half_of_the_memory() {
        for memory in (0..200).map(|step| step * 333 * MIB) {
            for (data, small) in [(1, 0), (2, 0), (3, 1), (6, 3), (16, 3)] {
                if let Ok(shares) = cache_shares(memory, mongod(data, small)) {
                    let sum =
                        u64::from(data) * shares.data_bytes + u64::from(small) * shares.small_bytes;
                    assert!(sum <= memory / 2, "{memory} {data} {small}: {sum}");
                }
            }
        }
    }

    #[test]
    fn a_host_without_room_for_the_smallest_caches_is_refused_with_the_numbers() {
        let error = cache_shares(2 * GIB, mongod(5, 0)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "5 servers with a cache of at least 256 MiB each do not fit into half of 2048 MiB of memory"
        );
        assert!(cache_shares(2 * GIB, mongod(4, 0)).is_ok());
        let embedded = CacheDemand {
            program: ServerProgram::Embedded,
            ..mongod(5, 0)
        };
        assert!(cache_shares(2 * GIB, embedded).is_ok());
    }

    #[test]
    fn the_memory_of_the_machine_is_read_in_bytes() {
        assert_eq!(total_memory("MemFree: 1 kB\n"), None);
        assert_eq!(
            total_memory("MemTotal:       16384 kB\nMemFree: 1 kB\n"),
            Some(16 * MIB)
        );
        assert!(memory_bytes().is_some_and(|bytes| bytes > 16 * MIB));
    }
}
