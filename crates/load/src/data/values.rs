//! Random values and their lengths.

use dyno_plan::model::FieldLength;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Zipf};

/// Exponent of zipfian lengths, YCSB's constant.
const EXPONENT: f64 = 0.99;
/// Content of the compressible part of a value.
const FILLER: u8 = b' ';
/// Bytes that YCSB generates from a 32-bit number.
const BYTES_PER_NUMBER: usize = 6;

/// Fills `value` with random printable bytes. `compressible_ratio` (0 to 1) of it is one run of the same byte at its end.
///
/// The rest is what YCSB's `RandomByteIterator` makes: 0 gives its values. A compressor that
/// finds runs removes that share; one that also codes single bytes (zlib, zstd) removes another
/// third of the rest, because the random bytes are printable.
#[inline]
pub fn fill<R: Rng + ?Sized>(compressible_ratio: f64, rng: &mut R, value: &mut [u8]) {
    if compressible_ratio == 0.0 {
        return fill_random(rng, value);
    }
    let run = (value.len() as f64 * compressible_ratio).round() as usize;
    let (random, run) = value.split_at_mut(value.len() - run);
    fill_random(rng, random);
    run.fill(FILLER);
}

/// Fills `value` with bytes from space to `DEL`, six from each 32-bit number, as YCSB does.
#[inline]
fn fill_random<R: Rng + ?Sized>(rng: &mut R, value: &mut [u8]) {
    let mut chunks = value.chunks_exact_mut(2 * BYTES_PER_NUMBER);
    for chunk in &mut chunks {
        let numbers = rng.next_u64();
        chunk[..BYTES_PER_NUMBER].copy_from_slice(&printable(numbers as u32));
        chunk[BYTES_PER_NUMBER..].copy_from_slice(&printable((numbers >> 32) as u32));
    }
    for chunk in chunks.into_remainder().chunks_mut(BYTES_PER_NUMBER) {
        chunk.copy_from_slice(&printable(rng.next_u32())[..chunk.len()]);
    }
}

/// Six printable bytes of one number: masks of 31, 63 and 95 in turn over shifts of 5 bits, plus a space.
#[inline]
fn printable(number: u32) -> [u8; BYTES_PER_NUMBER] {
    let x = u64::from(number);
    let bytes = (x & 31)
        | (((x >> 5) & 63) << 8)
        | (((x >> 10) & 95) << 16)
        | (((x >> 15) & 31) << 24)
        | (((x >> 20) & 63) << 32)
        | (((x >> 25) & 95) << 40);
    // No byte exceeds 95 + 32, so nothing carries over.
    let [a, b, c, d, e, f, _, _] = (bytes + 0x2020_2020_2020).to_le_bytes();
    [a, b, c, d, e, f]
}

/// Draws the length of a field's value.
#[derive(Clone, Debug)]
pub struct FieldLengths {
    length: FieldLength,
    /// Sums of a histogram's weights up to each bucket; otherwise empty.
    sums: Box<[u64]>,
}

impl FieldLengths {
    /// Lengths according to a valid plan.
    #[must_use]
    pub fn new(length: &FieldLength) -> Self {
        let weights = match length {
            FieldLength::Histogram { weights, .. } => weights.as_slice(),
            _ => &[],
        };
        let sums = weights.iter().scan(0_u64, |sum, &weight| {
            *sum = sum.saturating_add(weight);
            Some(*sum)
        });
        FieldLengths { length: length.clone(), sums: sums.collect() }
    }

    /// Draws a length in bytes.
    #[inline]
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> u32 {
        match self.length {
            FieldLength::Constant { bytes } => bytes,
            FieldLength::Uniform { min_bytes, max_bytes } => {
                rng.random_range(min_bytes..=max_bytes)
            }
            FieldLength::Zipfian { min_bytes, max_bytes } => {
                zipfian_between(min_bytes, max_bytes, rng)
            }
            FieldLength::Histogram { block_bytes, .. } => {
                let draw = rng.random_range(0..self.sums[self.sums.len() - 1]);
                let bucket = self.sums.partition_point(|&sum| sum <= draw);
                (bucket as u32 + 1).saturating_mul(block_bytes)
            }
        }
    }

    /// Length that no draw exceeds, in bytes.
    #[must_use]
    pub fn longest_bytes(&self) -> u32 {
        match self.length {
            FieldLength::Constant { bytes } => bytes,
            FieldLength::Uniform { max_bytes, .. } | FieldLength::Zipfian { max_bytes, .. } => {
                max_bytes
            }
            FieldLength::Histogram { block_bytes, .. } => {
                (self.sums.len() as u32).saturating_mul(block_bytes)
            }
        }
    }
}

/// Draws from `min..=max` with an exact zipfian (exponent 0.99) that favours small values; `min` if `max` is below it.
#[inline]
pub fn zipfian_between<R: Rng + ?Sized>(min: u32, max: u32, rng: &mut R) -> u32 {
    let values = f64::from(max.saturating_sub(min)) + 1.0;
    // Nothing to prepare: the sampler needs no sum over the values.
    match Zipf::new(values, EXPONENT) {
        Ok(zipf) => min + (zipf.sample(rng) as u32 - 1).min(max.saturating_sub(min)),
        Err(_) => min,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::testing::{chi_square, chi_square_bound, generator};

    #[test]
    fn numbers_become_the_bytes_of_ycsb() {
        // (number >> 5 i) & mask + ' ', by hand.
        assert_eq!(&printable(0), b"      ");
        assert_eq!(printable(u32::MAX), [63, 95, 127, 63, 95, 127]);
        let x = 0x89AB_CDEF_u32;
        let shifted = |shift: u32, mask: u32| ((x >> shift) & mask) as u8 + b' ';
        let expected = [
            shifted(0, 31),
            shifted(5, 63),
            shifted(10, 95),
            shifted(15, 31),
            shifted(20, 63),
            shifted(25, 95),
        ];
        assert_eq!(printable(x), expected);
        assert_eq!(expected, [0x2F, 0x4F, 0x73, 0x37, 0x3A, 0x64]);
    }

    #[test]
    fn values_of_every_length_are_filled_with_printable_bytes() {
        let mut rng = generator(101);
        for length in 0..200 {
            let mut value = vec![0; length];
            fill(0.0, &mut rng, &mut value);
            assert!(value.iter().all(|byte| (b' '..=127).contains(byte)), "{length} bytes");
        }
    }

    #[test]
    fn all_bytes_of_a_mask_are_used() {
        let mut rng = generator(102);
        let mut value = vec![0; 60_000];
        fill(0.0, &mut rng, &mut value);
        for (offset, values) in [(0, 32), (1, 64), (2, 64), (3, 32), (4, 64), (5, 64)] {
            let distinct: std::collections::HashSet<u8> =
                value.iter().skip(offset).step_by(6).copied().collect();
            assert_eq!(distinct.len(), values, "place {offset}");
        }
    }

    /// Documents of ten fields of 100 bytes, as a storage engine gets them in a block.
    fn block(ratio: f64) -> Vec<u8> {
        let mut rng = generator(103);
        let mut block = vec![0; 100_000];
        block.chunks_mut(100).for_each(|value| fill(ratio, &mut rng, value));
        block
    }

    #[test]
    fn the_compressed_size_follows_the_ratio() {
        fn snappy(bytes: &[u8]) -> usize {
            snap::raw::Encoder::new().compress_vec(bytes).unwrap().len()
        }
        fn zstd(bytes: &[u8]) -> usize {
            zstd::bulk::compress(bytes, 1).unwrap().len()
        }
        for compressed in [snappy, zstd] {
            let random = compressed(&block(0.0)) as f64;
            for ratio in [0.1, 0.25, 0.5, 0.75, 0.9] {
                let realised = 1.0 - compressed(&block(ratio)) as f64 / random;
                assert!((realised - ratio).abs() < 0.07, "{realised} for {ratio}");
            }
        }
    }

    #[test]
    fn whole_value_is_compressible_at_a_ratio_of_one() {
        let mut value = [0; 50];
        fill(1.0, &mut generator(104), &mut value);
        assert_eq!(value, [FILLER; 50]);
    }

    fn lengths(length: &FieldLength, draws: u32) -> Vec<u64> {
        let mut rng = generator(105);
        let lengths = FieldLengths::new(length);
        let mut counts = vec![0; lengths.longest_bytes() as usize + 1];
        for _ in 0..draws {
            counts[lengths.sample(&mut rng) as usize] += 1;
        }
        counts
    }

    #[test]
    fn constant_and_uniform_lengths_are_what_they_say() {
        assert_eq!(lengths(&FieldLength::Constant { bytes: 3 }, 10), [0, 0, 0, 10]);
        let uniform = lengths(&FieldLength::Uniform { min_bytes: 11, max_bytes: 60 }, 500_000);
        assert!(uniform[..11].iter().all(|&count| count == 0));
        let statistic = chi_square(&uniform[11..], &[10_000.0; 50]);
        assert!(statistic < chi_square_bound(49), "chi-square {statistic}");
    }

    #[test]
    fn zipfian_lengths_favour_short_values() {
        let counts = lengths(&FieldLength::Zipfian { min_bytes: 5, max_bytes: 104 }, 500_000);
        assert!(counts[..5].iter().all(|&count| count == 0));
        let zeta: f64 = (1..=100).map(|r| f64::from(r).powf(-0.99)).sum();
        let expected: Vec<f64> =
            (1..=100).map(|r| f64::from(r).powf(-0.99) / zeta * 500_000.0).collect();
        let statistic = chi_square(&counts[5..], &expected);
        assert!(statistic < chi_square_bound(99), "chi-square {statistic}");
    }

    #[test]
    fn histogram_lengths_follow_their_weights() {
        let histogram = FieldLength::Histogram { block_bytes: 10, weights: vec![1, 0, 3] };
        let counts = lengths(&histogram, 40_000);
        assert_eq!(counts.iter().filter(|&&count| count > 0).count(), 2);
        let statistic = chi_square(&[counts[10], counts[30]], &[10_000.0, 30_000.0]);
        assert!(statistic < 16.0, "chi-square {statistic}");
    }

    #[test]
    fn single_length_is_always_drawn() {
        let one = FieldLength::Zipfian { min_bytes: 7, max_bytes: 7 };
        assert_eq!(FieldLengths::new(&one).sample(&mut generator(106)), 7);
    }
}
