//! YCSB's `dataintegrity` values: the content of a field depends on its key and name.
//!
//! A value is `key:field`, then repeatedly a colon and the Java `String.hashCode` of the text so far, truncated to the
//! length of the field. The hash is updated incrementally, so the time is linear in the length instead of quadratic.

use crate::keys::key_name::{MAX_DIGITS, decimal};

/// Fills `value` with the expected content of the field.
///
/// Bytes are treated as characters, so the result equals YCSB's for ASCII names.
pub fn fill(key: &[u8], field: &[u8], value: &mut [u8]) {
    generate(key, field, value.len(), |at, byte| value[at] = byte);
}

/// Whether `value` has the expected content for its length.
///
/// The length itself is not checked: a truncated value is valid, so callers that know the length must compare it.
#[must_use]
pub fn verify(key: &[u8], field: &[u8], value: &[u8]) -> bool {
    let mut intact = true;
    generate(key, field, value.len(), |at, byte| intact &= value[at] == byte);
    intact
}

/// Calls `emit` with each of the first `length` bytes and its place.
#[inline]
fn generate(key: &[u8], field: &[u8], length: usize, emit: impl FnMut(usize, u8)) {
    let mut text = Text { hash: 0, at: 0, length, emit };
    text.append(key);
    text.append(b":");
    text.append(field);
    while text.at < length {
        text.append(b":");
        text.append_number(text.hash as i32);
    }
}

/// The text so far: only its hash and length.
struct Text<F> {
    hash: u32,
    at: usize,
    length: usize,
    emit: F,
}

impl<F: FnMut(usize, u8)> Text<F> {
    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        for &byte in bytes.iter().take(self.length - self.at) {
            // Java's String.hashCode: h = 31 h + c, modulo 2^32.
            self.hash = self.hash.wrapping_mul(31).wrapping_add(u32::from(byte));
            (self.emit)(self.at, byte);
            self.at += 1;
        }
    }

    #[inline]
    fn append_number(&mut self, number: i32) {
        if number < 0 {
            self.append(b"-");
        }
        self.append(decimal(u64::from(number.unsigned_abs()), &mut [0; MAX_DIGITS]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(key: &str, field: &str, length: usize) -> String {
        let mut value = vec![0; length];
        fill(key.as_bytes(), field.as_bytes(), &mut value);
        String::from_utf8(value).unwrap()
    }

    #[test]
    fn values_equal_those_of_a_java_program() {
        // From an independent Java program that hashes the whole buffer each time.
        assert_eq!(
            value("user6284781860667377211", "field0", 100),
            "user6284781860667377211:field0:-56807877:2032869390:-165488160:1762371712:-169193395:-1039977118:-10"
        );
        assert_eq!(value("a", "b", 40), "a:b:2948561:786865894:-117925105:-185766");
        assert_eq!(
            value("user8517097267634966620", "field9", 37),
            "user8517097267634966620:field9:-55795"
        );
    }

    #[test]
    fn a_field_shorter_than_its_names_holds_their_beginning() {
        assert_eq!(value("user1", "field1", 8), "user1:fi");
        assert_eq!(value("user1", "field1", 0), "");
    }

    #[test]
    fn filled_values_are_found_intact() {
        for length in 0..300 {
            let value = value("user42", "field3", length);
            assert!(verify(b"user42", b"field3", value.as_bytes()), "{length} bytes");
        }
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let mut bytes = value("user42", "field3", 120).into_bytes();
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            assert!(!verify(b"user42", b"field3", &bytes), "byte {at}");
            bytes[at] ^= 1;
        }
        assert!(verify(b"user42", b"field3", &bytes));
    }

    #[test]
    fn the_value_of_another_key_or_field_is_noticed() {
        let bytes = value("user42", "field3", 100).into_bytes();
        assert!(!verify(b"user43", b"field3", &bytes));
        assert!(!verify(b"user42", b"field4", &bytes));
    }
}
