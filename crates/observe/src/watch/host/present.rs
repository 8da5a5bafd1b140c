//! Things that come and go, such as disks and threads, with the state kept for each.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// The things of the previous reading.
#[derive(Debug)]
pub(super) struct Present<K, T> {
    reading: u64,
    /// With the number of the last reading that saw each.
    things: HashMap<K, (u64, T)>,
}

impl<K, T> Default for Present<K, T> {
    fn default() -> Self {
        Present { reading: 0, things: HashMap::new() }
    }
}

impl<K: Hash + Eq, T> Present<K, T> {
    /// Begins a reading.
    pub(super) fn begin(&mut self) {
        self.reading += 1;
    }

    /// Marks a thing as present; `make` creates the state of a new one.
    pub(super) fn see<Q>(&mut self, key: &Q, make: impl FnOnce() -> T) -> &mut T
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        if !self.things.contains_key(key) {
            self.things.insert(key.to_owned(), (0, make()));
        }
        let entry = self.things.get_mut(key);
        let (seen, thing) = entry.expect("it was there or was added just now");
        *seen = self.reading;
        thing
    }

    /// Ends the reading: forgets the things that it did not see; they are new if they return.
    pub(super) fn end(&mut self) {
        let reading = self.reading;
        self.things.retain(|_, (seen, _)| *seen == reading);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returning_item_counts_as_new() {
        let mut present: Present<String, u32> = Present::default();
        let mut numbers = Vec::new();
        for (number, names) in [(1, vec!["a", "b"]), (2, vec!["a"]), (3, vec!["a", "b"])] {
            present.begin();
            for name in names {
                numbers.push((name, *present.see(name, || number)));
            }
            present.end();
        }
        assert_eq!(numbers, [("a", 1), ("b", 1), ("a", 1), ("a", 1), ("b", 3)]);
    }
}
