//! `tail.json` in its folder: written all or nothing, and read again.

use dyno_analyze::messages::record::{FILE, SCHEMA_VERSION, TailDocument};
use dyno_record::document;
use dyno_record::error::RecordError;
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
    document::read(&folder.join(FILE), SCHEMA_VERSION)
}

/// Writes it into a folder that is there.
///
/// # Errors
/// [`RecordError`] if it cannot be written.
pub fn write(tail: &TailDocument, folder: &Path) -> Result<(), RecordError> {
    document::write(&folder.join(FILE), tail)
}
