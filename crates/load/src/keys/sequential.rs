//! One document after the other, repeating from the start after the last.

/// Cycles through `first..first + count`.
#[derive(Clone, Debug)]
pub struct Sequential {
    first: u64,
    count: u64,
}

impl Sequential {
    /// Cycles through `count` numbers from `first`; `count` is at least 1 and the sum does not overflow.
    #[must_use]
    pub fn new(first: u64, count: u64) -> Self {
        Sequential { first, count }
    }

    /// The document of the operation with this number.
    ///
    /// It has no counter: workers that share the operation numbers share the documents, and repeating an operation
    /// repeats its document.
    #[must_use]
    #[inline]
    pub fn at(&self, operation_number: u64) -> u64 {
        self.first + operation_number % self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_comes_once_per_cycle_and_in_order() {
        let sequential = Sequential::new(10, 3);
        let documents: Vec<u64> = (0..7).map(|i| sequential.at(i)).collect();
        assert_eq!(documents, [10, 11, 12, 10, 11, 12, 10]);
    }

    #[test]
    fn the_largest_operation_number_has_a_document() {
        assert_eq!(Sequential::new(0, 10).at(u64::MAX), u64::MAX % 10);
    }
}
