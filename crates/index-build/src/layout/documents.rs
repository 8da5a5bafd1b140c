//! The documents: small data units with an integer, a date, two strings, and a list of one to four strings.

use bson::{DateTime, Document, doc};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// Characters of the strings.
const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";
/// Dates are in the ten years from 2010-01-01, in milliseconds since 1970.
const FIRST_DATE_MS: i64 = 1_262_304_000_000;
const DATES_MS: i64 = 3_652 * 86_400_000;
/// Divisor of the string lengths of a document before it grows.
const SHORT_PART: u32 = 8;

/// Generates documents from their numbers: equal seed and number give equal documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    seed: u64,
    shortest: u32,
    longest: u32,
}

impl Units {
    /// String lengths are uniform from `shortest` to `longest` bytes; `shortest` is at most `longest`.
    pub fn new(seed: u64, shortest: u32, longest: u32) -> Units {
        Units { seed, shortest, longest }
    }

    /// The document with this number.
    pub fn unit(&self, number: u64) -> Document {
        self.unit_with(number, |length| length)
    }

    /// The document before its strings have grown: an eighth as long, at least one byte.
    pub fn short_unit(&self, number: u64) -> Document {
        self.unit_with(number, |length| (length / SHORT_PART).max(1))
    }

    fn unit_with(&self, number: u64, length: impl Fn(u32) -> u32) -> Document {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.seed.rotate_left(32) ^ number);
        let integer: i32 = rng.random();
        let date = FIRST_DATE_MS + rng.random_range(0..DATES_MS);
        let mut string = || {
            let full = rng.random_range(self.shortest..=self.longest);
            let mut text = String::with_capacity(full as usize);
            // Draw as for the full length, so that the short document has the same values.
            for place in 0..full {
                let letter = LETTERS[rng.random_range(0..LETTERS.len())];
                if place < length(full) {
                    text.push(char::from(letter));
                }
            }
            text
        };
        let (first, second) = (string(), string());
        let list: Vec<String> = {
            let mut list = vec![string(), string(), string(), string()];
            let seed = number ^ self.seed.rotate_left(17);
            let count = Xoshiro256PlusPlus::seed_from_u64(seed).random_range(1..=4);
            list.truncate(count);
            list
        };
        doc! {
            "_id": number as i64,
            "number": integer,
            "date": DateTime::from_millis(date),
            "first": first,
            "second": second,
            "list": list,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four and a half strings of 341 to 1024 bytes.
    const USUAL: Units = Units { seed: 42, shortest: 341, longest: 1024 };

    fn bytes(document: &Document) -> usize {
        document.to_vec().expect("valid BSON").len()
    }

    #[test]
    fn documents_average_three_kilobytes_from_one_to_six() {
        let sizes: Vec<usize> = (0..2_000).map(|n| bytes(&USUAL.unit(n))).collect();
        let mean = sizes.iter().sum::<usize>() as f64 / sizes.len() as f64;
        assert!((2_900.0..3_400.0).contains(&mean), "{mean}");
        assert!(sizes.iter().all(|size| (1_024..6_500).contains(size)));
        let counts = (0..2_000).map(|n| USUAL.unit(n).get_array("list").expect("a list").len());
        let mut seen = [0; 5];
        counts.for_each(|count| seen[count] += 1);
        assert_eq!(seen[0], 0);
        assert!(seen[1..].iter().all(|&count| count > 400), "{seen:?}");
    }

    #[test]
    fn number_determines_the_document_and_seed_changes_all() {
        assert_eq!(USUAL.unit(7), USUAL.unit(7));
        assert_ne!(USUAL.unit(7), USUAL.unit(8));
        assert_ne!(Units { seed: 1, ..USUAL }.unit(7), USUAL.unit(7));
    }

    #[test]
    fn short_document_grows_and_keeps_its_values() {
        let (short, long) = (USUAL.short_unit(7), USUAL.unit(7));
        assert!(5 * bytes(&short) < bytes(&long));
        assert_eq!(short.get("date"), long.get("date"));
        let text = |document: &Document| document.get_str("first").expect("a text").to_owned();
        assert!(text(&long).starts_with(&text(&short)));
    }
}
