//! Divides documents among several servers that hold a collection without a router.

use md5::{Digest, Md5};

/// Canonical type of numbers, part of the hash: `canonicalizeBSONType` of MongoDB.
const NUMBER: i32 = 10;
/// Seed of hashed indexes.
const SEED: i32 = 0;

/// The documents of one of several servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    server: u32,
    servers: u32,
}

impl Share {
    /// All documents, for a standalone server.
    pub const ALL: Share = Share { server: 0, servers: 1 };

    /// Documents of server `server`, from 0, of `servers`.
    pub fn new(server: u32, servers: u32) -> Share {
        Share { server, servers }
    }

    /// Number of servers, at least 1.
    pub(crate) fn servers(self) -> u64 {
        u64::from(self.servers)
    }

    /// Whether the server holds the document with this `_id`.
    pub fn has(self, id: i64) -> bool {
        self.servers == 1 || server_of(id, self.servers) == self.server
    }

    /// Number of its documents with an `_id` below `count`.
    pub fn of(self, count: u64) -> u64 {
        match self.servers {
            1 => count,
            _ => (0..count).filter(|id| self.has(*id as i64)).count() as u64,
        }
    }
}

/// Divides hashes into ranges of equal size, one for each server, as hashed sharding does for an empty collection.
fn server_of(id: i64, servers: u32) -> u32 {
    let place = (i128::from(hash_of(id)) - i128::from(i64::MIN)) as u128;
    ((place * u128::from(servers)) >> 64) as u32
}

/// Hash of an `_id` in hashed sharding. Source: MongoDB, `src/mongo/db/hasher.cpp`: the first eight bytes of the MD5 of seed, type
/// and value, each as little-endian; numbers of all types are hashed as 64-bit integers.
pub(crate) fn hash_of(id: i64) -> i64 {
    let mut hasher = Md5::new();
    hasher.update(SEED.to_le_bytes());
    hasher.update(NUMBER.to_le_bytes());
    hasher.update(id.to_le_bytes());
    let digest = hasher.finalize();
    i64::from_le_bytes(digest[..8].try_into().expect("an MD5 has 16 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_matches_the_server() {
        // `HashIntOrLongOrDouble` in MongoDB's `hasher_test.cpp`.
        assert_eq!(hash_of(42), -944_302_157_085_130_861);
    }

    #[test]
    fn documents_are_divided_evenly_among_servers() {
        for servers in [1, 2, 3, 4, 64] {
            let shares: Vec<Share> = (0..servers).map(|n| Share::new(n, servers)).collect();
            for id in 0..1_000 {
                let holders = shares.iter().filter(|share| share.has(id)).count();
                assert_eq!(holders, 1, "{id} of {servers}");
            }
            let counts: Vec<u64> = shares.iter().map(|share| share.of(64_000)).collect();
            assert_eq!(counts.iter().sum::<u64>(), 64_000);
            let mean = 64_000 / u64::from(servers);
            let is_fair = |count: &u64| count.abs_diff(mean) * 5 < mean;
            assert!(counts.iter().all(is_fair), "{counts:?}");
        }
    }
}
