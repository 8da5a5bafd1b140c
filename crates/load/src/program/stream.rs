//! Randomness without state: each generated value draws from a sequence that its stream and the document's number select.

use rand::rand_core::utils::fill_bytes_via_next_word;
use rand::{RngExt, TryRng};
use std::convert::Infallible;

/// Increment of SplitMix64: 2^64 divided by the golden ratio, odd.
const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// Finalizer of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014), a bijection.
#[inline]
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Identifies a generated value within a workload: a hash of seed, owner and path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stream(u64);

impl Stream {
    /// The root of a collection's or operation's streams.
    pub(super) fn new(seed: u64, owner: &str) -> Self {
        Stream(mix(seed.wrapping_add(GOLDEN_GAMMA))).child(b'o', owner)
    }

    /// The stream of a field or of an element of a fixed array.
    pub(super) fn field(self, name: &str) -> Self {
        self.child(b'f', name)
    }

    /// The stream of a part of a generator. It differs from the streams of all fields.
    pub(super) fn part(self, name: &str) -> Self {
        self.child(b'p', name)
    }

    /// FNV-1a over the kind and the name, mixed into this stream.
    fn child(self, kind: u8, name: &str) -> Self {
        let octets = std::iter::once(kind).chain(name.bytes());
        let hash = octets.fold(0xCBF2_9CE4_8422_2325, |hash: u64, octet| {
            (hash ^ u64::from(octet)).wrapping_mul(1_099_511_628_211)
        });
        Stream(mix(self.0.wrapping_add(GOLDEN_GAMMA) ^ mix(hash)))
    }

    /// The key of an order that belongs to the stream.
    pub(super) fn key(self) -> u64 {
        self.0
    }

    /// The random numbers of this value at a place.
    #[inline]
    pub(super) fn at(self, place: Place) -> Draws {
        Draws { state: mix(self.0 ^ place.number_hash.wrapping_add(place.elements_hash)) }
    }

    /// Random bits that all documents share, and only the elements of generated arrays differ in.
    #[inline]
    pub(super) fn shared_bits(self, place: Place) -> u64 {
        mix(self.0 ^ place.elements_hash)
    }
}

/// Where values are computed: a document or operation by its number, and the elements of generated arrays around them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Number of the document in its collection, or of the operation.
    pub(super) number: u64,
    number_hash: u64,
    /// Hash of the elements' indexes; 0 outside of generated arrays.
    elements_hash: u64,
}

impl Place {
    #[inline]
    pub(super) fn new(number: u64) -> Self {
        Place { number, number_hash: mix(number.wrapping_add(GOLDEN_GAMMA)), elements_hash: 0 }
    }

    /// An element of a generated array, by its index. `attempt` counts how often it was drawn again.
    #[inline]
    pub(super) fn element(self, index: u32, attempt: u32) -> Self {
        let index = (u64::from(attempt) << 32) | u64::from(index);
        let elements_hash = mix(self.elements_hash.wrapping_add(GOLDEN_GAMMA) ^ mix(index + 1));
        Place { elements_hash, ..self }
    }
}

/// The random numbers of one value: SplitMix64.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    state: u64,
}

impl Draws {
    /// Whether an event of this probability happens.
    #[inline]
    pub(super) fn happens(&mut self, probability: f64) -> bool {
        self.random::<f64>() < probability
    }
}

impl TryRng for Draws {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|number| (number >> 32) as u32)
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        Ok(mix(self.state))
    }

    #[inline]
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        fill_bytes_via_next_word(bytes, || self.try_next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;
    use std::collections::HashSet;

    #[test]
    fn draws_equal_splitmix64() {
        // First outputs of the reference implementation for seed 0.
        let mut draws = Draws { state: 0 };
        assert_eq!(draws.next_u64(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(draws.next_u64(), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn streams_differ_by_seed_owner_path_and_place() {
        let root = Stream::new(1, "orders");
        let streams = [
            root,
            Stream::new(2, "orders"),
            Stream::new(1, "order"),
            root.field("a"),
            root.part("a"),
            root.field("a.b"),
            root.field("a").field("b"),
            root.field("ab"),
        ];
        let place = Place::new(0);
        let places = [place, Place::new(1), place.element(0, 0), place.element(1, 0)];
        let again = [place.element(0, 1), place.element(0, 0).element(0, 0)];
        let mut seen = HashSet::new();
        for stream in streams {
            for place in places.into_iter().chain(again) {
                assert!(seen.insert(stream.at(place).next_u64()), "{stream:?} {place:?}");
            }
        }
    }

    #[test]
    fn neighbouring_numbers_are_independent() {
        // The sums of all bits of xor-ed neighbours: 64 × 10,000 fair coins, standard deviation 400.
        let stream = Stream::new(3, "a").field("b");
        let first = |number| stream.at(Place::new(number)).next_u64();
        let differing: u32 = (0..10_000).map(|n| (first(n) ^ first(n + 1)).count_ones()).sum();
        assert!(differing.abs_diff(320_000) < 1_600, "{differing}");
    }
}
