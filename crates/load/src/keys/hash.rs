//! YCSB's hash of document numbers: 64-bit FNV-1a over the eight octets, low first.

/// FNV-1a offset basis.
const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
/// FNV prime for 64 bits.
const PRIME: u64 = 1_099_511_628_211;

/// YCSB's `fnvhash64` of a document number, bit for bit.
///
/// The sign is removed as by Java's `Math.abs`, so the result is 0 to `i64::MAX`, with one exception: a raw hash of
/// `i64::MIN` has no positive counterpart and stays `i64::MIN`. The exception (one number in 2^64) is kept, because a
/// key must have exactly the name that YCSB gave it; callers that need an index use `rem_euclid`.
#[must_use]
#[inline]
pub fn fnv_hash_64(number: u64) -> i64 {
    let raw = number
        .to_le_bytes()
        .iter()
        .fold(OFFSET_BASIS, |hash, &octet| (hash ^ u64::from(octet)).wrapping_mul(PRIME));
    java_abs(raw as i64)
}

/// Java's `Math.abs(long)`: `i64::MIN` stays as it is.
#[inline]
fn java_abs(value: i64) -> i64 {
    value.wrapping_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_equal_those_of_ycsb() {
        let vectors = [
            (0, 6284781860667377211),
            (1, 8517097267634966620),
            (2, 1820151046732198393),
            (999, 2071219101098386137),
            (1_000_000, 1011632231655643464),
            (123_456_789_012, 2556987882972209844),
            (i64::MAX as u64, 8289549613075766851),
        ];
        for (number, hash) in vectors {
            assert_eq!(fnv_hash_64(number), hash, "hash of {number}");
        }
    }

    #[test]
    fn the_sign_is_removed_as_java_does_it() {
        assert_eq!(java_abs(-1), 1);
        assert_eq!(java_abs(i64::MIN + 1), i64::MAX);
        assert_eq!(java_abs(i64::MIN), i64::MIN);
    }

    #[test]
    fn no_hash_of_the_first_million_numbers_is_negative() {
        assert!((0..1_000_000).all(|number| fnv_hash_64(number) >= 0));
    }
}
