//! Documents of JSON with the version of their form, each a file that is written whole or not at all.

use crate::error::RecordError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Reads the one in a file. Its version is in the field `schema_version`; one without it has version 0.
///
/// # Errors
/// [`RecordError`] if it cannot be read, has a later version than `supported`, or is no such document.
pub fn read<T: DeserializeOwned>(path: &Path, supported: u32) -> Result<T, RecordError> {
    let text = fs::read(path).map_err(|source| RecordError::Read {
        path: path.to_owned(),
        source,
    })?;
    parse(path, &text, supported)
}

/// Takes the text of the file `path`.
pub(crate) fn parse<T: DeserializeOwned>(
    path: &Path,
    text: &[u8],
    supported: u32,
) -> Result<T, RecordError> {
    let document = |source| RecordError::Document {
        path: path.to_owned(),
        source,
    };
    // The version is looked at first: a newer document need not have the shape of this one.
    let value: Value = serde_json::from_slice(text).map_err(document)?;
    let found = value["schema_version"].as_u64().unwrap_or(0);
    if found > u64::from(supported) {
        return Err(RecordError::NewerSchema {
            path: path.to_owned(),
            found,
            supported,
        });
    }
    serde_json::from_value(value).map_err(document)
}

/// The name by which records have a variant that holds nothing, such as `server_cpu_ratio`: what its serde attributes say.
/// Empty for anything else.
pub fn variant_name(variant: &impl Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

/// The text of a file, for people as well.
pub(crate) fn encode(path: &Path, document: &impl Serialize) -> Result<Vec<u8>, RecordError> {
    let mut text =
        serde_json::to_vec_pretty(document).map_err(|source| RecordError::EncodeDocument {
            path: path.to_owned(),
            source,
        })?;
    text.push(b'\n');
    Ok(text)
}

/// Writes it into a file, whose folder is there.
///
/// # Errors
/// [`RecordError`] if it cannot be written.
pub fn write(path: &Path, document: &impl Serialize) -> Result<(), RecordError> {
    let text = encode(path, document)?;
    let unfinished = path.with_extension("json.tmp");
    fs::write(&unfinished, text)
        .and_then(|()| fs::rename(&unfinished, path))
        .map_err(|source| RecordError::Write {
            path: path.to_owned(),
            source,
        })
}
