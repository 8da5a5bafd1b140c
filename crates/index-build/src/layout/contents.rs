//! Contents of a collection for comparison: number, size and hash of its documents, independent of order.

use crate::layout::collection::{Collection, Held};
use crate::layout::{Access, LayoutError};
use sha2::{Digest, Sha256};
use std::fmt;

/// Sum of the documents' SHA-256 hashes as 256-bit numbers: independent of order, and sensitive to repetitions. It detects
/// mistakes, not deliberate collisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentHash([u64; 4]);

impl ContentHash {
    /// Adds a BSON document.
    pub fn add(&mut self, document: &[u8]) {
        let hash = Sha256::digest(document);
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(hash.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("chunks have eight bytes"));
        }
        self.join(ContentHash(words));
    }

    /// Adds another hash.
    fn join(&mut self, other: ContentHash) {
        let mut carry = 0u128;
        for (sum, word) in self.0.iter_mut().zip(other.0) {
            carry += u128::from(*sum) + u128::from(word);
            *sum = carry as u64;
            carry >>= 64;
        }
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().rev().try_for_each(|word| write!(formatter, "{word:016x}"))
    }
}

/// Contents of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    pub documents: u64,
    /// Size as BSON, in bytes.
    pub bytes: u64,
    /// Hash of all documents, independent of order.
    pub hash: ContentHash,
}

impl Contents {
    /// The amount of data.
    pub(crate) fn size(&self) -> Held {
        Held { documents: self.documents, bytes: self.bytes }
    }

    /// Adds a document, as stored.
    pub(crate) fn add(&mut self, document: &[u8]) {
        self.documents += 1;
        self.bytes += document.len() as u64;
        self.hash.add(document);
    }

    /// Adds the contents of the same collection on another server.
    #[must_use]
    pub fn with(mut self, other: Contents) -> Contents {
        self.documents += other.documents;
        self.bytes += other.bytes;
        self.hash.join(other.hash);
        self
    }

    /// Describes the difference; `None` if both are equal.
    pub fn difference(&self, other: &Contents) -> Option<String> {
        if self.documents != other.documents {
            return Some(format!("{} documents and {}", self.documents, other.documents));
        }
        (self.hash != other.hash)
            .then(|| format!("the content of the {} documents differs", self.documents))
    }
}

/// Reads all documents of a collection, and returns its contents.
///
/// # Errors
/// [`LayoutError::Interrupted`], or a command failed.
pub fn contents(
    access: &Access<'_>,
    collection: &Collection,
    what: &str,
) -> Result<Contents, LayoutError> {
    let mut control = (access.connect)()?;
    let all = collection.count(&mut control)?;
    let mut found = Contents::default();
    collection.read(&mut control, None, &mut |documents| {
        access.check()?;
        for document in documents {
            found.add(document.as_bytes());
        }
        (access.progress)(what, found.documents, all);
        Ok(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Document, doc};

    fn of(documents: &[Document]) -> Contents {
        let mut contents = Contents::default();
        for document in documents {
            contents.add(&document.to_vec().expect("valid BSON"));
        }
        contents
    }

    #[test]
    fn hash_ignores_only_the_order_of_documents() {
        let (a, b) = (doc! { "_id": 1, "x": "a" }, doc! { "_id": 2, "x": "b" });
        let both = of(&[a.clone(), b.clone()]);
        assert_eq!(both, of(&[b.clone(), a.clone()]));
        assert_eq!(both.difference(&of(&[b.clone(), a.clone()])), None);
        let changed = of(&[a.clone(), doc! { "_id": 2, "x": "c" }]);
        let words = both.difference(&changed).expect("they differ");
        assert!(words.contains("content"), "{words}");
        // Swapped values.
        let crossed = of(&[doc! { "_id": 1, "x": "b" }, doc! { "_id": 2, "x": "a" }]);
        assert!(both.difference(&crossed).is_some());
        // Another numeric type.
        assert_ne!(of(&[doc! { "_id": 1_i32 }]).hash, of(&[doc! { "_id": 1_i64 }]).hash);
        let fewer = both.difference(&of(std::slice::from_ref(&a))).expect("they differ");
        assert_eq!(fewer, "2 documents and 1");
        // Two copies differ from one, and from none.
        assert_ne!(of(&[a.clone(), a.clone()]).hash, of(&[b.clone(), b]).hash);
        assert_ne!(of(&[a.clone(), a]).hash, Contents::default().hash);
    }

    #[test]
    fn contents_of_several_servers_add_up() {
        let documents = [doc! { "_id": 1 }, doc! { "_id": 2 }, doc! { "_id": 3 }];
        let parts = of(&documents[1..]).with(of(&documents[..1]));
        assert_eq!(parts, of(&documents));
        assert_ne!(parts, of(&documents[..1]).with(of(&documents[..1])));
    }

    #[test]
    fn hash_is_printed_with_all_digits() {
        let text = of(&[doc! { "_id": 1 }]).hash.to_string();
        assert_eq!(text.len(), 64);
        assert!(text.chars().all(|c| c.is_ascii_hexdigit()));
    }

    #[test]
    fn sums_carry_from_word_to_word() {
        let mut hash = ContentHash([u64::MAX; 4]);
        hash.add(b"");
        let mut plain = ContentHash::default();
        plain.add(b"");
        // All ones is minus one.
        assert_eq!(hash.0[0], plain.0[0].wrapping_sub(1));
        assert_eq!(hash.0[1..], plain.0[1..]);
    }
}
