//! `tail.json` in its folder: written all or nothing, and read again.

use dyno_analyze::messages::record::{FILE, SCHEMA_VERSION, TailDocument};
use dyno_record::error::RecordError;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Whether a folder holds one.
pub fn is_in(folder: &Path) -> bool {
    folder.join(FILE).is_file()
}

/// Reads the one in a folder.
///
/// # Errors
/// [`RecordError`] if it cannot be read, is of a later version, or is no such document.
pub fn read(folder: &Path) -> Result<TailDocument, RecordError> {
    let path = folder.join(FILE);
    let text = fs::read(&path).map_err(|source| RecordError::Read {
        path: path.clone(),
        source,
    })?;
    let document = |source| RecordError::Document {
        path: path.clone(),
        source,
    };
    let value: Value = serde_json::from_slice(&text).map_err(document)?;
    let found = value["schema_version"].as_u64().unwrap_or(0);
    if found > u64::from(SCHEMA_VERSION) {
        return Err(RecordError::NewerSchema {
            path,
            found,
            supported: SCHEMA_VERSION,
        });
    }
    serde_json::from_value(value).map_err(document)
}

/// Writes it into a folder that is there.
///
/// # Errors
/// [`RecordError`] if it cannot be written.
pub fn write(document: &TailDocument, folder: &Path) -> Result<(), RecordError> {
    let path = folder.join(FILE);
    let mut text =
        serde_json::to_vec_pretty(document).map_err(|source| RecordError::EncodeDocument {
            path: path.clone(),
            source,
        })?;
    text.push(b'\n');
    let unfinished = folder.join("tail.json.tmp");
    fs::write(&unfinished, text)
        .and_then(|()| fs::rename(&unfinished, &path))
        .map_err(|source| RecordError::Write { path, source })
}
