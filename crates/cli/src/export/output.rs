//! Where an export goes: a file that is there as a whole or not at all, or standard output.

use dyno_engine::{Error, Kind};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// What writes an export.
pub(crate) type Writing<'a> = dyn FnOnce(&mut (dyn Write + Send)) -> Result<(), Error> + 'a;

/// Something could not be written.
pub(crate) fn write_failure(error: io::Error) -> Error {
    Error::from_cause(Kind::Environment, error)
        .context("cannot write the export")
        .with_hint("check the path, its permissions and the free space")
}

/// Writes to standard output. A reader that has gone is no fault.
pub(crate) fn to_standard_output(write: Box<Writing<'_>>) -> Result<(), Error> {
    let mut output = BufWriter::new(Listener { has_gone: false });
    write(&mut output)?;
    output.flush().map_err(write_failure)
}

/// Writes to a file. One that exists is replaced only if that is wanted; a device or a pipe is written to.
pub(crate) fn to_file(path: &Path, force: bool, write: Box<Writing<'_>>) -> Result<(), Error> {
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match std::fs::metadata(&target) {
        Ok(found) if found.is_dir() => {
            let text = format!("`{}` is a folder", path.display());
            Err(Error::new(Kind::BadInput, text).with_hint("name a file in it"))
        }
        Ok(found) if !found.is_file() => {
            let file = File::options().write(true).open(&target);
            fill(file.map_err(write_failure)?, write)
        }
        Ok(_) if !force => {
            let text = format!("`{}` exists", path.display());
            Err(Error::new(Kind::BadInput, text).with_hint("`--force` replaces it"))
        }
        _ => replace(&target, write),
    }
}

fn replace(target: &Path, write: Box<Writing<'_>>) -> Result<(), Error> {
    let mut beside = target.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let context = |failure: Error| failure.context(format!("cannot write `{}`", target.display()));
    let file = File::create(&beside).map_err(|error| context(write_failure(error)))?;
    let renamed = || std::fs::rename(&beside, target).map_err(write_failure);
    fill(file, write)
        .and_then(|()| renamed())
        .map_err(|failure| {
            // It is not wanted, whether it can be removed or not.
            let _ = std::fs::remove_file(&beside);
            context(failure)
        })
}

fn fill(file: File, write: Box<Writing<'_>>) -> Result<(), Error> {
    let mut output = BufWriter::with_capacity(1 << 16, file);
    write(&mut output)?;
    output.flush().map_err(write_failure)
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
