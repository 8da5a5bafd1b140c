//! Converts document numbers to keys without allocating.

use super::hash::fnv_hash_64;
use dyno_plan::model::KeyOrder;

/// Digits of the largest 64-bit number.
pub(crate) const MAX_DIGITS: usize = 20;

/// Rule that turns document numbers into keys: prefix, zeros up to a width, decimal number.
///
/// With the prefix `user`, the keys equal YCSB's `CoreWorkload.buildKeyName`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyNames {
    prefix: Box<[u8]>,
    order: KeyOrder,
    zero_padding: usize,
    /// Numbers from here on belong to documents that this client inserts.
    new_from: u64,
    step: u64,
    offset: u64,
}

impl KeyNames {
    /// Keys with `prefix`; `order` says whether the number is hashed first, and numbers shorter than `zero_padding`
    /// characters are padded with zeros (0 and 1 add none).
    #[must_use]
    pub fn new(prefix: &str, order: KeyOrder, zero_padding: u32) -> Self {
        KeyNames {
            prefix: prefix.as_bytes().into(),
            order,
            zero_padding: zero_padding as usize,
            new_from: u64::MAX,
            step: 1,
            offset: 0,
        }
    }

    /// Keeps the keys up to document `new_from`, and continues with every `step`th number, `offset` after `new_from`:
    /// clients that share a data set insert different documents, each with gapless numbers.
    #[must_use]
    pub fn with_new_documents(self, new_from: u64, step: u32, offset: u32) -> Self {
        KeyNames { new_from, step: u64::from(step.max(1)), offset: u64::from(offset), ..self }
    }

    /// The number in the key of a document.
    #[inline]
    fn number_in_key(&self, document: u64) -> u64 {
        match document.checked_sub(self.new_from) {
            None => document,
            // Beyond 64 bits only after centuries of inserts.
            Some(new) => (self.new_from + self.offset).wrapping_add(new.wrapping_mul(self.step)),
        }
    }

    /// Appends the key of document `number` to `out`.
    ///
    /// Allocates only when `out` has less than [`longest_bytes`](Self::longest_bytes) to spare.
    #[inline]
    pub fn write(&self, number: u64, out: &mut Vec<u8>) {
        let number = self.number_in_key(number);
        let (negative, magnitude) = match self.order {
            KeyOrder::Ordered => (false, number),
            KeyOrder::Hashed => {
                let hash = fnv_hash_64(number);
                (hash < 0, hash.unsigned_abs())
            }
        };
        let mut buffer = [0_u8; MAX_DIGITS];
        let digits = decimal(magnitude, &mut buffer);
        let width = digits.len() + usize::from(negative);
        out.extend_from_slice(&self.prefix);
        // Zeros come before the sign, as in YCSB, which pads the text of the number.
        for _ in width..self.zero_padding {
            out.push(b'0');
        }
        if negative {
            out.push(b'-');
        }
        out.extend_from_slice(digits);
    }

    /// Length that no key exceeds.
    #[must_use]
    pub fn longest_bytes(&self) -> usize {
        self.prefix.len() + self.zero_padding.max(MAX_DIGITS)
    }
}

/// Decimal digits of `value`, written to the end of `buffer`.
#[inline]
pub(crate) fn decimal(mut value: u64, buffer: &mut [u8; MAX_DIGITS]) -> &[u8] {
    let mut start = MAX_DIGITS;
    loop {
        start -= 1;
        buffer[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return &buffer[start..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(names: &KeyNames, number: u64) -> String {
        let mut out = Vec::new();
        names.write(number, &mut out);
        assert!(out.len() <= names.longest_bytes());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn hashed_keys_equal_those_of_ycsb() {
        let names = KeyNames::new("user", KeyOrder::Hashed, 1);
        assert_eq!(key(&names, 0), "user6284781860667377211");
        assert_eq!(key(&names, 1), "user8517097267634966620");
        assert_eq!(key(&names, 2), "user1820151046732198393");
        assert_eq!(key(&names, 999), "user2071219101098386137");
        assert_eq!(key(&names, 1_000_000), "user1011632231655643464");
    }

    #[test]
    fn clients_of_one_data_set_insert_distinct_documents() {
        let of =
            |client| KeyNames::new("k", KeyOrder::Ordered, 1).with_new_documents(100, 3, client);
        assert_eq!(key(&of(2), 99), "k99", "the data set is shared");
        let mut inserted: Vec<String> = (0..3)
            .flat_map(|client| (100..104).map(move |number| key(&of(client), number)))
            .collect();
        inserted.sort();
        let expected: Vec<String> = (100..112).map(|number| format!("k{number}")).collect();
        assert_eq!(inserted, expected);
        assert_eq!(key(&of(0), 101), "k103");
    }

    #[test]
    fn ordered_keys_equal_those_of_ycsb() {
        let names = KeyNames::new("user", KeyOrder::Ordered, 12);
        assert_eq!(key(&names, 0), "user000000000000");
        assert_eq!(key(&names, 1), "user000000000001");
        assert_eq!(key(&names, 999), "user000000000999");
        assert_eq!(key(&names, 1_000_000), "user000001000000");
    }

    #[test]
    fn a_number_wider_than_the_padding_is_written_in_full() {
        let names = KeyNames::new("", KeyOrder::Ordered, 3);
        assert_eq!(key(&names, 12_345), "12345");
        assert_eq!(key(&names, u64::MAX), u64::MAX.to_string());
    }

    #[test]
    fn the_smallest_padding_of_ycsb_adds_nothing() {
        for padding in [0, 1] {
            assert_eq!(key(&KeyNames::new("k", KeyOrder::Ordered, padding), 0), "k0");
        }
    }

    #[test]
    fn a_prefix_of_any_length_is_kept() {
        let names = KeyNames::new("tenant-7:é:", KeyOrder::Ordered, 4);
        assert_eq!(key(&names, 42), "tenant-7:é:0042");
    }

    #[test]
    fn writing_appends_and_does_not_allocate_with_room_to_spare() {
        let names = KeyNames::new("user", KeyOrder::Hashed, 30);
        let mut out = Vec::with_capacity(3 + names.longest_bytes());
        out.extend_from_slice(b"abc");
        let (pointer, capacity) = (out.as_ptr(), out.capacity());
        names.write(7, &mut out);
        assert!(out.starts_with(b"abcuser"));
        assert_eq!((out.as_ptr(), out.capacity()), (pointer, capacity));
    }
}
