//! Where an export or a report goes: a file that is there as a whole or not at all, standard output, or a folder.

use dyno_engine::files::{write_error, write_file_with};
use dyno_engine::{Error, Kind};
use dyno_record::visible::visible;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

/// What writes it.
pub(crate) type Writing<'a> = dyn FnOnce(&mut (dyn Write + Send)) -> Result<(), Error> + 'a;

/// Writes to standard output. A reader that has gone is no fault.
pub(crate) fn to_standard_output(write: Box<Writing<'_>>) -> Result<(), Error> {
    let mut output = BufWriter::new(Listener {
        has_gone: false,
        is_terminal: io::stdout().is_terminal(),
        unfinished: Vec::new(),
    });
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

/// Refuses a folder that has something in it.
pub(crate) fn check_folder(folder: &Path) -> Result<(), Error> {
    let shown = folder.display();
    let text = match std::fs::read_dir(folder).map(|mut entries| entries.next()) {
        Ok(Some(_)) => format!("`{shown}` is not empty"),
        Err(_) if folder.exists() => format!("`{shown}` is not a folder"),
        _ => return Ok(()),
    };
    Err(Error::new(Kind::BadInput, text).with_hint("name a folder that is empty, or absent"))
}

/// Standard output until its reader goes, and nothing afterwards. A terminal gets no control characters of records.
struct Listener {
    has_gone: bool,
    is_terminal: bool,
    /// A line for the terminal whose end has not been written.
    unfinished: Vec<u8>,
}

impl Write for Listener {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.has_gone {
            return Ok(bytes.len());
        }
        let written = if self.is_terminal {
            let lines = finished_lines(&mut self.unfinished, bytes);
            let written = io::stdout().write_all(visible(&lines).as_bytes());
            written.map(|()| bytes.len())
        } else {
            io::stdout().write(bytes)
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.has_gone = true;
                Ok(bytes.len())
            }
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.unfinished.is_empty() {
            self.write_all(b"\n")?;
        }
        match io::stdout().flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }
}

/// The lines that are complete with these bytes; the rest is kept, so that no character is cut in two.
fn finished_lines(unfinished: &mut Vec<u8>, bytes: &[u8]) -> String {
    unfinished.extend_from_slice(bytes);
    let end = unfinished.iter().rposition(|byte| *byte == b'\n');
    let lines: Vec<u8> = unfinished.drain(..end.map_or(0, |end| end + 1)).collect();
    String::from_utf8_lossy(&lines).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_whole_lines_without_control_characters() {
        let mut unfinished = Vec::new();
        let text = "a,\u{1b}]0;title\u{7},gr\u{fc}\u{df}e\nrest".as_bytes();
        let (start, end) = text.split_at(16);
        assert!(start.ends_with(&[0xc3]), "it ends inside of a character");
        assert_eq!(finished_lines(&mut unfinished, start), "");
        let line = finished_lines(&mut unfinished, end);
        assert_eq!(visible(&line), "a,\\u{1b}]0;title\\u{7},gr\u{fc}\u{df}e\n");
        assert_eq!(unfinished, b"rest");
    }
}
