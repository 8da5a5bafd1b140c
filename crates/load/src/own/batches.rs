//! The insert commands of a load phase.

/// The insert commands of a load phase: each has documents of one collection.
#[derive(Clone, Debug)]
pub(crate) struct Batches {
    documents: u64,
    /// Records of each collection, and the number of its first batch.
    collections: Vec<(u64, u64)>,
    len: u64,
}

/// Documents of an insert command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) collection: usize,
    pub(crate) first: u64,
    pub(crate) count: u32,
}

impl Batches {
    pub(super) fn new(records: impl Iterator<Item = u64>, documents: u32) -> Self {
        let documents = u64::from(documents.max(1));
        let (mut len, mut collections) = (0, Vec::new());
        for records in records {
            collections.push((records, len));
            len += records.div_ceil(documents);
        }
        Batches { documents, collections, len }
    }

    /// Number of commands.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Command `number`; without documents behind the last one.
    pub(crate) fn get(&self, number: u64) -> Batch {
        // The last collection that begins at or before the number; empty ones begin with their successors.
        let collection = self.collections.partition_point(|(_, begin)| *begin <= number) - 1;
        let (records, begin) = self.collections[collection];
        let first = (number - begin) * self.documents;
        let count = records.saturating_sub(first).min(self.documents) as u32;
        Batch { collection, first, count }
    }
}
