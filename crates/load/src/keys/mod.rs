//! Choice of an operation's document: one key distribution per file, the names of the keys, and the counter of
//! acknowledged inserts.
//!
//! Everything here is pure arithmetic on document numbers (64 bits throughout); random numbers come from the caller,
//! and no draw allocates. Operations decide how the key is used.

pub mod acknowledged;
pub mod chooser;
pub mod exponential;
pub mod hash;
pub mod hotspot;
pub mod key_name;
pub mod latest;
pub mod permutation;
pub mod scrambled_zipfian;
pub mod shares;
pub mod zipfian;
pub mod zipfian_exact;

pub use acknowledged::InsertCounter;
pub use chooser::KeyChooser;
pub use key_name::KeyNames;
pub use permutation::Permutation;
pub use shares::ShareTable;

#[cfg(test)]
pub(crate) mod testing {
    //! Shared code of the distributions' statistical tests.

    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    /// A generator with a fixed seed.
    pub(crate) fn generator(seed: u64) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(seed)
    }

    /// Pearson's chi-square of `observed` against the `expected` counts.
    pub(crate) fn chi_square(observed: &[u64], expected: &[f64]) -> f64 {
        assert_eq!(observed.len(), expected.len());
        observed.iter().zip(expected).map(|(&o, &e)| (o as f64 - e).powi(2) / e).sum()
    }

    /// Upper bound of chi-square that a right distribution exceeds once in about 30 000 tests:
    /// mean + 4 standard deviations of the normal approximation, for many degrees of freedom.
    pub(crate) fn chi_square_bound(degrees: usize) -> f64 {
        let d = degrees as f64;
        d + 4.5 * (2.0 * d).sqrt()
    }

    /// Share of all counts that the largest `top` of them hold.
    pub(crate) fn top_share(counts: &[u32], top: usize) -> f64 {
        let mut sorted = counts.to_vec();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let sum = |slice: &[u32]| slice.iter().map(|&c| u64::from(c)).sum::<u64>() as f64;
        sum(&sorted[..top]) / sum(&sorted)
    }
}
