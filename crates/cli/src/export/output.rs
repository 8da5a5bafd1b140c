//! Destinations of exports and reports: a file (written completely or not at all), standard output, or a folder.

use crate::messages::print_data;
use dyno_engine::files::{write_error, write_file_with};
use dyno_engine::{Error, Kind};
use dyno_record::visible::visible;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

/// Function that writes the output.
pub(crate) type Writing<'a> = dyn FnOnce(&mut (dyn Write + Send)) -> Result<(), Error> + 'a;

/// Writes to standard output, without control characters on a terminal. A closed pipe is not an error.
pub(crate) fn to_standard_output(write: Box<Writing<'_>>) -> Result<(), Error> {
    if io::stdout().is_terminal() {
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        return print_data(&visible(&String::from_utf8_lossy(&bytes)));
    }
    let mut output = BufWriter::new(io::stdout());
    let cannot = |error| write_error(error).context("cannot write to standard output");
    match write(&mut output).and_then(|()| output.flush().map_err(cannot)) {
        Err(error) if is_closed_pipe(&error) => Ok(()),
        written => written,
    }
}

fn is_closed_pipe(error: &Error) -> bool {
    let mut causes = error.cause.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Writes to a file. `force` allows replacing an existing file; devices and pipes are written directly.
pub(crate) fn to_file(path: &Path, force: bool, write: Box<Writing<'_>>) -> Result<(), Error> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            let text = format!("`{}` is a folder", path.display());
            Err(Error::new(Kind::BadInput, text).with_hint("name a file in this folder"))
        }
        Ok(found) if found.is_file() && !force => {
            let text = format!("`{}` already exists", path.display());
            Err(Error::new(Kind::BadInput, text).with_hint("replace it with `--force`"))
        }
        _ => write_file_with(path, write),
    }
}

/// Fails unless the folder is empty or does not exist.
pub(crate) fn check_folder(folder: &Path) -> Result<(), Error> {
    let shown = folder.display();
    let text = match std::fs::read_dir(folder).map(|mut entries| entries.next()) {
        Ok(Some(_)) => format!("`{shown}` is not empty"),
        Err(_) if folder.exists() => format!("`{shown}` is not a folder"),
        _ => return Ok(()),
    };
    Err(Error::new(Kind::BadInput, text).with_hint("name an empty or new folder"))
}
