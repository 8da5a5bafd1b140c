//! Documents of JSON with the version of their form, each in a file that is written whole or not at all.

use crate::error::RecordError;
use crate::plain_file;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// What a folder is about, in a file of its own.
pub trait Document: Serialize + DeserializeOwned {
    /// Name of the file.
    const FILE: &'static str;
    /// Version of the form that is written now. Earlier ones can be read.
    const SCHEMA_VERSION: u32;
    /// What a folder with such a document is, such as `a run directory`.
    const FOLDER: &'static str;

    /// Whether a folder holds such a document, or something else of its name that [`Document::read`] refuses.
    fn is_in(folder: &Path) -> bool {
        folder.join(Self::FILE).symlink_metadata().is_ok()
    }

    /// Reads the document in a folder.
    ///
    /// # Errors
    /// [`RecordError`] if it cannot be read, has a later version than [`Document::SCHEMA_VERSION`], or is no such document.
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
            _ => RecordError::Read {
                path: path.clone(),
                source,
            },
        })?;
        let document = |source| RecordError::Document {
            path: path.clone(),
            source,
        };
        // The version is looked at first: a newer document need not have the shape of this one.
        let found: Version = serde_json::from_slice(&text).map_err(document)?;
        if found.schema_version > u64::from(Self::SCHEMA_VERSION) {
            return Err(RecordError::NewerSchema {
                path,
                found: found.schema_version,
                supported: Self::SCHEMA_VERSION,
            });
        }
        let mut read: Self = serde_json::from_slice(&text).map_err(document)?;
        // Whatever was read has the form of this version.
        *read.schema_version() = Self::SCHEMA_VERSION;
        Ok(read)
    }

    /// Its version of the form.
    fn schema_version(&mut self) -> &mut u32;

    /// Writes the document into a folder that is there, all or nothing: beside the old one, to the disk, and renamed.
    ///
    /// # Errors
    /// [`RecordError`] if it cannot be written.
    fn write(&self, folder: &Path) -> Result<(), RecordError> {
        let mut text = serde_json::to_vec_pretty(self).map_err(|source| {
            let path = folder.join(Self::FILE);
            RecordError::EncodeDocument { path, source }
        })?;
        text.push(b'\n');
        write_whole(folder, Self::FILE, &text)
    }
}

/// Writes a file into a folder that is there, all or nothing: beside the old one, to the disk, and renamed.
///
/// # Errors
/// [`RecordError::Write`] if it cannot be written.
pub(crate) fn write_whole(folder: &Path, name: &str, content: &[u8]) -> Result<(), RecordError> {
    let path = folder.join(name);
    let temporary = folder.join(format!(".{name}.new"));
    let write = || {
        // A file that an earlier process left there, or a link that somebody has put there, is not written to.
        let _ = fs::remove_file(&temporary);
        let mut file = File::create_new(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, &path)?;
        // The rename itself is on the disk only with its folder.
        File::open(folder)?.sync_all()
    };
    write().map_err(|source| {
        let _ = fs::remove_file(&temporary);
        RecordError::Write { path, source }
    })
}

/// What can be read of a document of any version.
#[derive(Deserialize)]
struct Version {
    #[serde(default)]
    schema_version: u64,
}

/// The name by which records have a variant that holds nothing, such as `server_cpu_ratio`: what its serde attributes say.
/// Empty for anything else.
pub fn variant_name(variant: &impl Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}
