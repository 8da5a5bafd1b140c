//! Versioned JSON documents, each in its own file that is written completely or not at all.

use crate::error::RecordError;
use crate::plain_file;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// A JSON document that describes a folder.
pub trait Document: Sized {
    /// File name.
    const FILE: &'static str;
    /// Format version.
    const SCHEMA_VERSION: u32;
    /// Noun for a folder with this document, such as `a run directory`.
    const FOLDER: &'static str;

    /// Parses the content of the file.
    ///
    /// # Errors
    /// If it is not JSON of this kind.
    fn from_json(text: &[u8]) -> serde_json::Result<Self>;

    /// The content of the file.
    ///
    /// # Errors
    /// If a value cannot be written as JSON.
    fn to_json(&self) -> serde_json::Result<Vec<u8>>;

    /// Whether the folder has a file of this name, readable or not.
    fn is_in(folder: &Path) -> bool {
        folder.join(Self::FILE).symlink_metadata().is_ok()
    }

    /// Reads the document in a folder.
    ///
    /// # Errors
    /// [`RecordError`] if the file cannot be read, is of another kind, or is newer than [`Document::SCHEMA_VERSION`].
    fn read(folder: &Path) -> Result<Self, RecordError> {
        if !folder.is_dir() {
            let path = folder.to_owned();
            return Err(RecordError::NoSuchFolder { path });
        }
        let path = folder.join(Self::FILE);
        let text = plain_file::read(&path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => RecordError::NoDocument {
                path: folder.to_owned(),
                wanted: Self::FOLDER,
                file: Self::FILE,
            },
            _ => RecordError::Read { path: path.clone(), source },
        })?;
        let document = |source| RecordError::Document { path: path.clone(), source };
        // Check the version first: a newer document may have another structure.
        let found: Version = serde_json::from_slice(&text).map_err(document)?;
        if found.schema_version > u64::from(Self::SCHEMA_VERSION) {
            return Err(RecordError::NewerSchema {
                path,
                found: found.schema_version,
                supported: Self::SCHEMA_VERSION,
            });
        }
        Self::from_json(&text).map_err(document)
    }

    /// Writes the document into an existing folder atomically: to a temporary file that is synced and renamed.
    ///
    /// # Errors
    /// [`RecordError`] if it cannot be written.
    fn write(&self, folder: &Path) -> Result<(), RecordError> {
        let mut text = self.to_json().map_err(|source| {
            let path = folder.join(Self::FILE);
            RecordError::EncodeDocument { path, source }
        })?;
        text.push(b'\n');
        write_whole(folder, Self::FILE, &text)
    }
}

/// Implements [`Document`] by JSON. A macro and not default methods: those would be compiled again in each crate that
/// reads a document, and the code for all documents takes more than a minute.
macro_rules! document {
    ($document:ty, $file:expr, $version:expr, $folder:literal) => {
        impl $crate::document::Document for $document {
            const FILE: &'static str = $file;
            const SCHEMA_VERSION: u32 = $version;
            const FOLDER: &'static str = $folder;

            fn from_json(text: &[u8]) -> serde_json::Result<Self> {
                serde_json::from_slice(text)
            }

            fn to_json(&self) -> serde_json::Result<Vec<u8>> {
                serde_json::to_vec_pretty(self)
            }
        }
    };
}

pub(crate) use document;

/// Writes a file into an existing folder atomically: to a temporary file that is synced and renamed.
///
/// # Errors
/// [`RecordError::Write`] if it cannot be written.
pub(crate) fn write_whole(folder: &Path, name: &str, content: &[u8]) -> Result<(), RecordError> {
    let path = folder.join(name);
    let temporary = folder.join(format!(".{name}.new"));
    let write = || {
        // Never write through a leftover file or a planted link.
        let _ = fs::remove_file(&temporary);
        let mut file = File::create_new(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, &path)?;
        // Sync the folder as well, or a crash can undo the rename.
        File::open(folder)?.sync_all()
    };
    write().map_err(|source| {
        let _ = fs::remove_file(&temporary);
        RecordError::Write { path, source }
    })
}

/// The part that documents of all versions share.
#[derive(Deserialize)]
struct Version {
    #[serde(default)]
    schema_version: u64,
}

/// Serialized name of a unit variant, such as `server_cpu_ratio`. Empty for anything else.
pub fn variant_name(variant: &impl Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}
