//! Destinations of exports and reports: a file (written completely or not at all), standard output, or a folder.

use dyno_engine::files::{write_error, write_file_with};
use dyno_engine::{Error, Kind};
use dyno_record::visible::visible;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

/// Function that writes the output.
pub(crate) type Writing<'a> = dyn FnOnce(&mut (dyn Write + Send)) -> Result<(), Error> + 'a;

/// Writes to standard output. A closed pipe is not an error.
pub(crate) fn to_standard_output(write: Box<Writing<'_>>) -> Result<(), Error> {
    let mut output = BufWriter::new(Listener {
        has_gone: false,
        is_terminal: io::stdout().is_terminal(),
        unfinished: Vec::new(),
    });
    write(&mut output)?;
    output.flush().map_err(|error| write_error(error).context("cannot write to standard output"))
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

/// Standard output; ignores writes after its reader is gone. Removes control characters on a terminal.
struct Listener {
    has_gone: bool,
    is_terminal: bool,
    /// Incomplete line for the terminal.
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

/// Returns the lines that these bytes complete, and keeps the rest, so that no character is split.
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
    fn terminal_gets_whole_lines_without_control_characters() {
        let mut unfinished = Vec::new();
        let text = "a,\u{1b}]0;title\u{7},gr\u{fc}\u{df}e\nrest".as_bytes();
        let (start, end) = text.split_at(16);
        assert!(start.ends_with(&[0xc3]), "the text ends inside a character");
        assert_eq!(finished_lines(&mut unfinished, start), "");
        let line = finished_lines(&mut unfinished, end);
        assert_eq!(visible(&line), "a,\\u{1b}]0;title\\u{7},gr\u{fc}\u{df}e\n");
        assert_eq!(unfinished, b"rest");
    }
}
