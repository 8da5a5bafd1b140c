//! Gives the documents of a collection another order on the disk. Whatever happens, every document is in the
//! collection, or in a verified copy with all of the others.

use crate::collection::{Collection, Shape};
use crate::contents::{Contents, contents};
use crate::{Bench, LayoutError};
use bson::{Document, doc};
use dyno_load::connect::Control;
use dyno_plan::index_build::Remedy;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Documents of an insert, at most, and their bytes: a message has at most 48 MB.
const BATCH: usize = 500;
const BATCH_BYTES: usize = 8 << 20;
/// Smallest size of a document: its length and its end.
const SMALLEST: u32 = 5;

/// What a remedy found and left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// What the collection held before.
    pub before: Contents,
    /// What it holds now. The same, or the remedy is an error.
    pub after: Contents,
}

/// Name of the collection that a remedy copies to.
pub fn copy_name(collection: &str) -> String {
    format!("{collection}.dyno-copy")
}

/// Applies a remedy, and verifies that the collection holds what it held before. `folder` is for files that are
/// needed meanwhile.
///
/// The copy is verified by the number, size and hash of its documents before it takes the place of the collection
/// in one step of the server; until then the collection is untouched, and the copy goes away after an error. If this
/// process is killed, the copy stays beside the collection.
///
/// # Errors
/// [`LayoutError`]. After all but [`LayoutError::NotIdentical`] the collection holds what it held.
pub fn apply(
    bench: &Bench<'_>,
    collection: &Collection,
    remedy: Remedy,
    folder: &Path,
) -> Result<Applied, LayoutError> {
    let mut control = (bench.connect)()?;
    if control.hello().is_mongos {
        return Err(LayoutError::Routed {
            namespace: collection.namespace(),
        });
    }
    let copy = collection.sibling(copy_name(&collection.name));
    if copy.shape(&mut control)?.is_some() {
        return Err(LayoutError::CopyExists {
            namespace: copy.namespace(),
        });
    }
    let shape = collection
        .shape(&mut control)?
        .ok_or_else(|| LayoutError::Missing {
            namespace: collection.namespace(),
        })?;
    let before = contents(bench, collection, "reading what is there")?;
    if remedy == Remedy::Compact {
        collection.compact(&mut control)?;
    } else {
        let job = Job {
            bench,
            collection,
            copy,
            shape,
            before,
            dump: folder.join(format!("{}.bson", collection.name)),
        };
        job.replace(remedy)?;
    }
    let after = contents(bench, collection, "verifying the result")?;
    match before.difference(&after) {
        None => Ok(Applied { before, after }),
        Some(difference) => Err(LayoutError::NotIdentical(difference)),
    }
}

struct Job<'a> {
    bench: &'a Bench<'a>,
    collection: &'a Collection,
    copy: Collection,
    shape: Shape,
    before: Contents,
    dump: PathBuf,
}

impl Job<'_> {
    fn replace(&self, remedy: Remedy) -> Result<(), LayoutError> {
        let mut control = (self.bench.connect)()?;
        let copied = self.make_copy(&mut control, remedy);
        if remedy == Remedy::Dump {
            // The collection, or its verified copy, holds the same.
            let _ = std::fs::remove_file(&self.dump);
        }
        if let Err(error) = copied {
            // The connection may be of no more use.
            let dropped =
                (self.bench.connect)().and_then(|mut control| self.copy.drop_it(&mut control));
            return Err(match dropped {
                Ok(()) => error,
                Err(_) => LayoutError::CopyLeft {
                    namespace: self.copy.namespace(),
                    source: Box::new(error),
                },
            });
        }
        self.copy.replace(&mut control, self.collection)
    }

    /// Copies, and verifies the copy.
    fn make_copy(&self, control: &mut Control, remedy: Remedy) -> Result<(), LayoutError> {
        self.copy.create(control, &self.shape)?;
        match remedy {
            Remedy::Dump => {
                self.write_dump()?;
                self.restore()?;
            }
            Remedy::NaturalCopy => self.copy_in(doc! { "$natural": 1 })?,
            Remedy::Rewrite | Remedy::Compact => self.copy_in(doc! { "_id": 1 })?,
        }
        self.copy.create_indexes(control, &self.shape.indexes)?;
        let copied = contents(self.bench, &self.copy, "verifying the copy")?;
        if let Some(difference) = self.before.difference(&copied) {
            // Either the copy is wrong or the collection has changed.
            let now = contents(self.bench, self.collection, "reading what is there")?;
            return Err(match self.before.difference(&now) {
                Some(_) => LayoutError::Changed {
                    namespace: self.collection.namespace(),
                },
                None => LayoutError::CopyDiffers(difference),
            });
        }
        // As late as can be: what others write from here on to the replacement is not seen.
        let now = contents(self.bench, self.collection, "looking for changes")?;
        match self.before.difference(&now) {
            None => self.bench.check(),
            Some(_) => Err(LayoutError::Changed {
                namespace: self.collection.namespace(),
            }),
        }
    }

    /// From the collection into the copy.
    fn copy_in(&self, order: Document) -> Result<(), LayoutError> {
        let mut from = (self.bench.connect)()?;
        let mut to = Inserter::new((self.bench.connect)()?, &self.copy);
        let mut done = 0;
        self.collection
            .read(&mut from, Some(order), &mut |documents| {
                for document in documents {
                    self.bench.check()?;
                    let bytes = encoded(&document)?.len();
                    to.add(document, bytes)?;
                    done += 1;
                }
                (self.bench.progress)("copying", done, self.before.documents);
                Ok(())
            })?;
        to.finish()
    }

    fn write_dump(&self) -> Result<(), LayoutError> {
        let failed = |source| LayoutError::File {
            intent: "write",
            path: self.dump.clone(),
            source,
        };
        let file = File::create_new(&self.dump).map_err(failed)?;
        let mut out = BufWriter::new(file);
        let mut from = (self.bench.connect)()?;
        let mut done = 0;
        self.collection
            .read(&mut from, Some(doc! { "_id": 1 }), &mut |documents| {
                for document in documents {
                    self.bench.check()?;
                    out.write_all(&encoded(&document)?).map_err(failed)?;
                    done += 1;
                }
                (self.bench.progress)("dumping", done, self.before.documents);
                Ok(())
            })?;
        let file = out
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)
    }

    /// From the file into the copy.
    fn restore(&self) -> Result<(), LayoutError> {
        let failed = |source| LayoutError::File {
            intent: "read",
            path: self.dump.clone(),
            source,
        };
        let mut file = BufReader::new(File::open(&self.dump).map_err(failed)?);
        let mut to = Inserter::new((self.bench.connect)()?, &self.copy);
        let mut done = 0;
        while let Some(bytes) = next_document(&mut file).map_err(failed)? {
            self.bench.check()?;
            let document = Document::from_reader(bytes.as_slice()).map_err(|error| {
                failed(std::io::Error::new(std::io::ErrorKind::InvalidData, error))
            })?;
            to.add(document, bytes.len())?;
            done += 1;
            if done % 1_000 == 0 || done == self.before.documents {
                (self.bench.progress)("restoring", done, self.before.documents);
            }
        }
        to.finish()
    }
}

/// Inserts documents in batches of bounded size.
struct Inserter<'a> {
    control: Control,
    into: &'a Collection,
    pending: Vec<Document>,
    bytes: usize,
}

impl<'a> Inserter<'a> {
    fn new(control: Control, into: &'a Collection) -> Self {
        Inserter {
            control,
            into,
            pending: Vec::new(),
            bytes: 0,
        }
    }

    fn add(&mut self, document: Document, bytes: usize) -> Result<(), LayoutError> {
        if self.pending.len() == BATCH || self.bytes + bytes > BATCH_BYTES {
            self.send()?;
        }
        self.pending.push(document);
        self.bytes += bytes;
        Ok(())
    }

    fn send(&mut self) -> Result<(), LayoutError> {
        self.bytes = 0;
        let pending = std::mem::take(&mut self.pending);
        self.into.insert(&mut self.control, pending)
    }

    fn finish(mut self) -> Result<(), LayoutError> {
        self.send()
    }
}

fn encoded(document: &Document) -> Result<Vec<u8>, LayoutError> {
    document.to_vec().map_err(|error| LayoutError::Answer {
        command: "find",
        reason: error.to_string(),
    })
}

/// The next document of a file of them; `None` at its end.
fn next_document(file: &mut impl Read) -> std::io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    let first = file.read(&mut length)?;
    if first == 0 {
        return Ok(None);
    }
    file.read_exact(&mut length[first..])?;
    let bytes = u32::from_le_bytes(length);
    if !(SMALLEST..=(1 << 26)).contains(&bytes) {
        let text = format!("a document of {bytes} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, text));
    }
    let mut document = vec![0; bytes as usize];
    document[..4].copy_from_slice(&length);
    file.read_exact(&mut document[4..])?;
    Ok(Some(document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_documents_is_read_to_its_end_and_a_torn_one_is_an_error() {
        let documents = [doc! { "_id": 1 }, doc! { "_id": 2, "x": "y" }];
        let bytes: Vec<u8> = documents
            .iter()
            .flat_map(|document| encoded(document).expect("it is BSON"))
            .collect();
        let mut file = bytes.as_slice();
        let mut found = Vec::new();
        while let Some(bytes) = next_document(&mut file).expect("it is whole") {
            found.push(Document::from_reader(bytes.as_slice()).expect("it is BSON"));
        }
        assert_eq!(found, documents);
        let mut torn = &bytes[..bytes.len() - 1];
        next_document(&mut torn).expect("the first is whole");
        assert!(next_document(&mut torn).is_err());
        assert!(next_document(&mut &[1, 0, 0, 0][..]).is_err());
        assert!(next_document(&mut &[9, 0][..]).is_err());
    }
}
