//! Sets of CPU numbers and node numbers in the notation of Linux: `0-3,8`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde_with::{DeserializeFromStr, SerializeDisplay};

/// Larger numbers are probably typing errors. Linux builds have at most 8192 CPUs, and a list such
/// as `0-4000000000` must not fill the memory.
const LARGEST_ID: u32 = 65_535;

/// A set of CPU or node numbers, in ascending order. As text it is a list of numbers and ranges;
/// the empty text is the empty set, as in the files below `/sys`.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    SerializeDisplay,
    DeserializeFromStr,
)]
pub struct IdSet(BTreeSet<u32>);

/// CPU numbers: hardware threads as numbered by the kernel.
pub type CpuSet = IdSet;

/// Numbers of NUMA nodes.
pub type NodeSet = IdSet;

/// A text is not a list of CPU or node numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a list of numbers up to {LARGEST_ID} such as `0-3,8`")]
pub struct IdSetError {
    pub text: String,
}

impl IdSet {
    /// The numbers in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The smallest number; `None` if empty.
    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }

    /// The largest number; `None` if empty.
    pub fn last(&self) -> Option<u32> {
        self.0.last().copied()
    }

    /// Whether the set contains the number.
    pub fn contains(&self, id: u32) -> bool {
        self.0.contains(&id)
    }

    /// Whether `other` contains all numbers of this set.
    pub fn is_subset(&self, other: &IdSet) -> bool {
        self.0.is_subset(&other.0)
    }

    /// Whether both sets have no common number.
    pub fn is_disjoint(&self, other: &IdSet) -> bool {
        self.0.is_disjoint(&other.0)
    }

    /// The numbers in both sets.
    pub fn intersection(&self, other: &IdSet) -> IdSet {
        IdSet(self.0.intersection(&other.0).copied().collect())
    }

    /// The numbers that are not in `other`.
    pub fn difference(&self, other: &IdSet) -> IdSet {
        IdSet(self.0.difference(&other.0).copied().collect())
    }

    /// Adds all numbers of `other`.
    pub fn extend(&mut self, other: &IdSet) {
        self.0.extend(&other.0);
    }

    /// Adds one number.
    pub fn insert(&mut self, id: u32) {
        self.0.insert(id);
    }
}

impl FromIterator<u32> for IdSet {
    fn from_iter<I: IntoIterator<Item = u32>>(ids: I) -> IdSet {
        IdSet(ids.into_iter().collect())
    }
}

impl FromStr for IdSet {
    type Err = IdSetError;

    fn from_str(text: &str) -> Result<IdSet, IdSetError> {
        let mut set = BTreeSet::new();
        if text.trim().is_empty() {
            return Ok(IdSet(set));
        }
        for part in text.trim().split(',') {
            let range = range(part).ok_or_else(|| IdSetError { text: text.to_owned() })?;
            set.extend(range);
        }
        Ok(IdSet(set))
    }
}

fn range(part: &str) -> Option<std::ops::RangeInclusive<u32>> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number: u32 = digits.then(|| text.parse().ok())??;
        (number <= LARGEST_ID).then_some(number)
    };
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then_some(first..=last)
}

impl fmt::Display for IdSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ids = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = ids.next() {
            let mut last = first;
            while let Some(next) = ids.next_if_eq(&(last + 1)) {
                last = next;
            }
            if first == last {
                write!(formatter, "{separator}{first}")?
            } else {
                write!(formatter, "{separator}{first}-{last}")?
            }
            separator = ",";
        }
        Ok(())
    }
}

/// Whether a text is a list of CPU or node numbers and ascending ranges, such as `0-7,16`.
pub(crate) fn is_list(text: &str) -> bool {
    text.trim() == text && text.parse().is_ok_and(|set: IdSet| !set.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_the_kernel_writes_it() {
        let set: IdSet = "0-2,8,10-11\n".parse().unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 1, 2, 8, 10, 11]);
        assert_eq!(set.to_string(), "0-2,8,10-11");
        assert!("\n".parse::<IdSet>().unwrap().is_empty());
        assert_eq!(IdSet::default().to_string(), "");
    }

    #[test]
    fn order_and_repetition_do_not_matter() {
        let set: IdSet = "3,1,2-3".parse().unwrap();
        assert_eq!(set.to_string(), "1-3");
    }

    #[test]
    fn malformed_lists_are_refused() {
        for text in ["a", "1-", "-1", "3-1", "1,,2", "+1", "0-4294967295", "1 2"] {
            let error = text.parse::<IdSet>().unwrap_err();
            assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
        }
    }
}
