//! Where an export or a report goes: a file that is there as a whole or not at all, or standard output.

use dyno_engine::files::{write_error, write_file_with};
use dyno_engine::{Error, Kind};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// What writes it.
pub(crate) type Writing<'a> = dyn FnOnce(&mut (dyn Write + Send)) -> Result<(), Error> + 'a;

/// Writes to standard output. A reader that has gone is no fault.
pub(crate) fn to_standard_output(write: Box<Writing<'_>>) -> Result<(), Error> {
    let mut output = BufWriter::new(Listener { has_gone: false });
    write(&mut output)?;
    output
        .flush()
        .map_err(|error| write_error(error).context("cannot write to standard output"))
}

/// Writes to a file. One that exists is replaced only if that is wanted; a device or a pipe is written to.
pub(crate) fn to_file(path: &Path, force: bool, write: Box<Writing<'_>>) -> Result<(), Error> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            let text = format!("`{}` is a folder", path.display());
            Err(Error::new(Kind::BadInput, text).with_hint("name a file in it"))
        }
        Ok(found) if found.is_file() && !force => {
            let text = format!("`{}` exists", path.display());
            Err(Error::new(Kind::BadInput, text).with_hint("`--force` replaces it"))
        }
        _ => write_file_with(path, write),
    }
}

/// Standard output until its reader goes, and nothing afterwards.
struct Listener {
    has_gone: bool,
}

impl Write for Listener {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.has_gone {
            return Ok(bytes.len());
        }
        match io::stdout().write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.has_gone = true;
                Ok(bytes.len())
            }
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match io::stdout().flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }
}
