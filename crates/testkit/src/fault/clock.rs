//! The library for a wall clock that steps.

use crate::Skip;
use std::path::PathBuf;

/// The library that provides another wall clock to a program.
///
/// # Errors
/// libfaketime is not installed.
pub fn faketime_library() -> Result<PathBuf, Skip> {
    std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten()
        .map(|place| place.path().join("faketime/libfaketimeMT.so.1"))
        .find(|library| library.is_file())
        .ok_or_else(|| Skip::new("libfaketime is not installed", "run `scripts/setup.sh test`"))
}
