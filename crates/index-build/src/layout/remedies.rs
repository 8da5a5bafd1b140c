//! Changes the order of a collection's documents on disk. At any time, every document is in the collection, or in a verified
//! complete copy.

use crate::layout::collection::{Collection, Shape};
use crate::layout::contents::{Contents, contents};
use crate::layout::{Access, LayoutError};
use bson::{RawDocumentBuf, doc, rawdoc};
use dyno_load::connect::Control;
use dyno_plan::index_build::Remedy;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::SystemTime;

/// Largest number of documents of an insert; their bytes are bounded as well unless one exceeds the bound, because a server's cache
/// may be small.
const BATCH: usize = 500;
const BATCH_BYTES: usize = 1 << 20;
/// Smallest size of a BSON document: length and terminator.
const SMALLEST: u32 = 5;

/// Result of a remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Contents before.
    pub before: Contents,
    /// Contents after; equal, otherwise the remedy is an error.
    pub after: Contents,
}

/// Prefix of the names of copies.
pub fn copy_prefix(collection: &str) -> String {
    format!("{collection}.dyno-copy")
}

/// A name that no other remedy uses for its copy.
fn copy_name(collection: &str) -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let moment = since.map_or(0, |since| since.as_nanos());
    format!(
        "{}-{:x}-{:x}",
        copy_prefix(collection),
        std::process::id(),
        moment & u128::from(u32::MAX)
    )
}

/// Checks whether a remedy can begin; returns the collection's shape.
///
/// # Errors
/// [`LayoutError::Routed`], [`LayoutError::OfServer`], [`LayoutError::CopyExists`], [`LayoutError::Missing`],
/// [`LayoutError::NotOrdinary`], or a command failed. Nothing was changed.
pub fn check(control: &mut Control, collection: &Collection) -> Result<Shape, LayoutError> {
    check_place(control, collection)?;
    let namespace = collection.namespace();
    collection.shape(control)?.ok_or(LayoutError::Missing { namespace })
}

/// Checks whether a remedy can begin on a collection of this name, which need not exist yet.
///
/// # Errors
/// [`LayoutError::Routed`], [`LayoutError::OfServer`], [`LayoutError::CopyExists`], or a command failed.
pub fn check_place(control: &mut Control, collection: &Collection) -> Result<(), LayoutError> {
    let namespace = collection.namespace();
    if control.hello().is_mongos || is_shard(control) {
        return Err(LayoutError::Routed { namespace });
    }
    let is_internal = ["admin", "config", "local"].contains(&collection.database.as_str());
    if is_internal || collection.name.starts_with("system.") {
        return Err(LayoutError::OfServer { namespace });
    }
    if let Some(copy) = collection.sibling_with(control, &copy_prefix(&collection.name))? {
        return Err(LayoutError::CopyExists { namespace: copy.namespace() });
    }
    Ok(())
}

/// Whether the server belongs to a sharded cluster, whose collections are known to other servers. A server without the command does
/// not.
fn is_shard(control: &mut Control) -> bool {
    let state = control.run("admin", doc! { "shardingState": 1 });
    state.is_ok_and(|state| state.get_bool("enabled").unwrap_or(false))
}

/// Applies a remedy, and verifies that the contents are unchanged. `folder` is for a temporary file without a name.
///
/// The copy is verified by number, size and hash of its documents, its options and its indexes, before it replaces the collection
/// in one step of the server. Until then the collection is untouched, and an error drops the copy. If this process is killed, the
/// copy stays next to the collection.
///
/// # Errors
/// [`LayoutError`]. After all but [`LayoutError::NotIdentical`] and [`LayoutError::Unknown`] the collection holds what it
/// held.
pub fn apply(
    access: &Access<'_>,
    collection: &Collection,
    remedy: Remedy,
    folder: &Path,
) -> Result<Applied, LayoutError> {
    let mut control = (access.connect)()?;
    let shape = check(&mut control, collection)?;
    let before = contents(access, collection, "reading the documents")?;
    if remedy == Remedy::Compact {
        collection.compact(&mut control)?;
    } else {
        let job = Job {
            access,
            collection,
            copy: collection.sibling(copy_name(&collection.name)),
            shape: &shape,
            before,
            folder,
        };
        job.replace(remedy)?;
    }
    // The replacement is done; the rest only verifies, and an interruption proves nothing.
    let after = contents(access, collection, "verifying the result")?;
    if let Some(difference) = before.difference(&after) {
        return Err(LayoutError::NotIdentical(difference));
    }
    match collection.shape(&mut control)? {
        Some(now) if now.is_like(&shape) => Ok(Applied { before, after }),
        _ => Err(LayoutError::NotIdentical("its options or its indexes differ".into())),
    }
}

struct Job<'a> {
    access: &'a Access<'a>,
    collection: &'a Collection,
    copy: Collection,
    shape: &'a Shape,
    before: Contents,
    folder: &'a Path,
}

impl Job<'_> {
    fn replace(&self, remedy: Remedy) -> Result<(), LayoutError> {
        let mut control = (self.access.connect)()?;
        self.copy.create(&mut control, self.shape)?;
        if let Err(error) = self.fill_and_verify(&mut control, remedy) {
            return Err(self.drop_copy(error));
        }
        // An interrupted replacement would have an unknown result, so no signal ends it.
        let mut patient = (self.access.patient)()?;
        match self.copy.replace(&mut patient, self.collection) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.after_failed_replacement(error)),
        }
    }

    /// Drops the copy; returns the error to report.
    fn drop_copy(&self, error: LayoutError) -> LayoutError {
        // The connection may be broken, and the user may have interrupted.
        let dropped =
            (self.access.patient)().and_then(|mut control| self.copy.drop_it(&mut control));
        match dropped {
            Ok(()) => error,
            Err(_) => {
                LayoutError::CopyLeft { namespace: self.copy.namespace(), source: Box::new(error) }
            }
        }
    }

    /// The error to report if the server did not confirm the replacement.
    fn after_failed_replacement(&self, error: LayoutError) -> LayoutError {
        let looked = (self.access.patient)().and_then(|mut control| {
            let copy = self.copy.shape(&mut control)?;
            let collection = self.collection.shape(&mut control)?;
            Ok(copy.is_some() && collection.is_some_and(|now| now.is_like(self.shape)))
        });
        let patient =
            Access { connect: self.access.patient, interrupted: &|| false, ..*self.access };
        let is_untouched = matches!(looked, Ok(true))
            && contents(&patient, self.collection, "reading the documents")
                .is_ok_and(|now| now == self.before);
        if is_untouched {
            self.drop_copy(error)
        } else {
            LayoutError::Unknown {
                copy: self.copy.namespace(),
                collection: self.collection.namespace(),
                source: Box::new(error),
            }
        }
    }

    fn fill_and_verify(&self, control: &mut Control, remedy: Remedy) -> Result<(), LayoutError> {
        match remedy {
            Remedy::Dump => {
                let dump = self.dump()?;
                self.restore(dump)?;
            }
            Remedy::NaturalCopy => self.copy_in(rawdoc! { "$natural": 1 })?,
            Remedy::Rewrite | Remedy::Compact => self.copy_in(rawdoc! { "_id": 1 })?,
        }
        self.copy.create_indexes(control, &self.shape.indexes)?;
        let copied = contents(self.access, &self.copy, "verifying the copy")?;
        if let Some(difference) = self.before.difference(&copied) {
            // Either the copy is wrong, or the collection has changed.
            let now = contents(self.access, self.collection, "reading the documents")?;
            return Err(match self.before.difference(&now) {
                Some(_) => self.changed(),
                None => LayoutError::CopyDiffers(difference),
            });
        }
        // As late as possible: changes between this check and the replacement go unnoticed.
        let now = contents(self.access, self.collection, "looking for changes")?;
        if self.before.difference(&now).is_some() {
            return Err(self.changed());
        }
        match self.collection.shape(control)? {
            Some(now) if now.is_like(self.shape) => {}
            _ => return Err(self.changed()),
        }
        match self.copy.shape(control)? {
            Some(copied) if copied.is_like(self.shape) => self.access.check(),
            _ => Err(LayoutError::CopyDiffers("its options or its indexes".into())),
        }
    }

    fn changed(&self) -> LayoutError {
        LayoutError::Changed { namespace: self.collection.namespace() }
    }

    /// Copies the documents of the collection into the copy.
    fn copy_in(&self, order: RawDocumentBuf) -> Result<(), LayoutError> {
        let mut from = (self.access.connect)()?;
        let mut to = Inserter::new((self.access.connect)()?, &self.copy);
        let mut done = 0;
        self.collection.read(&mut from, Some(order), &mut |documents| {
            for document in documents {
                self.access.check()?;
                to.add(document)?;
                done += 1;
            }
            (self.access.progress)("copying", done, self.before.documents);
            Ok(())
        })?;
        to.finish()
    }

    fn failed(&self, intent: &'static str) -> impl Fn(std::io::Error) -> LayoutError {
        let path = self.folder.to_owned();
        move |source| LayoutError::File { intent, path: path.clone(), source }
    }

    /// Writes the documents to a private file without a name, so that nothing is left of it.
    fn dump(&self) -> Result<File, LayoutError> {
        let failed = self.failed("write a dump in");
        let file = tempfile::tempfile_in(self.folder).map_err(&failed)?;
        let mut out = BufWriter::new(file);
        let mut from = (self.access.connect)()?;
        let mut done = 0;
        let order = rawdoc! { "_id": 1 };
        self.collection.read(&mut from, Some(order), &mut |documents| {
            for document in documents {
                self.access.check()?;
                out.write_all(document.as_bytes()).map_err(&failed)?;
                done += 1;
            }
            (self.access.progress)("dumping", done, self.before.documents);
            Ok(())
        })?;
        let mut file = out.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().and_then(|()| file.seek(SeekFrom::Start(0))).map_err(&failed)?;
        Ok(file)
    }

    /// Inserts the documents of the file into the copy.
    fn restore(&self, dump: File) -> Result<(), LayoutError> {
        let failed = self.failed("read the dump in");
        let mut file = BufReader::new(dump);
        let mut to = Inserter::new((self.access.connect)()?, &self.copy);
        let mut done = 0;
        while let Some(bytes) = next_document(&mut file).map_err(&failed)? {
            self.access.check()?;
            let document = RawDocumentBuf::from_bytes(bytes).map_err(|error| {
                failed(std::io::Error::new(std::io::ErrorKind::InvalidData, error))
            })?;
            to.add(document)?;
            done += 1;
            if done % 1_000 == 0 || done == self.before.documents {
                (self.access.progress)("restoring", done, self.before.documents);
            }
        }
        to.finish()
    }
}

/// Inserts documents in batches of bounded size.
struct Inserter<'a> {
    control: Control,
    into: &'a Collection,
    pending: Vec<RawDocumentBuf>,
    bytes: usize,
}

impl<'a> Inserter<'a> {
    fn new(control: Control, into: &'a Collection) -> Self {
        Inserter { control, into, pending: Vec::new(), bytes: 0 }
    }

    fn add(&mut self, document: RawDocumentBuf) -> Result<(), LayoutError> {
        let bytes = document.as_bytes().len();
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
        self.into.insert_copies(&mut self.control, &pending)
    }

    fn finish(mut self) -> Result<(), LayoutError> {
        self.send()
    }
}

/// The next document of a dump file; `None` at its end.
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
    use bson::Document;

    #[test]
    fn document_file_is_read_to_its_end_and_a_torn_one_fails() {
        let documents = [doc! { "_id": 1 }, doc! { "_id": 2, "x": "y" }];
        let bytes: Vec<u8> =
            documents.iter().flat_map(|document| document.to_vec().expect("valid BSON")).collect();
        let mut file = bytes.as_slice();
        let mut found = Vec::new();
        while let Some(bytes) = next_document(&mut file).expect("complete") {
            found.push(Document::from_reader(bytes.as_slice()).expect("valid BSON"));
        }
        assert_eq!(found, documents);
        let mut torn = &bytes[..bytes.len() - 1];
        next_document(&mut torn).expect("the first is complete");
        assert!(next_document(&mut torn).is_err());
        assert!(next_document(&mut &[1, 0, 0, 0][..]).is_err());
        assert!(next_document(&mut &[9, 0][..]).is_err());
    }
}
