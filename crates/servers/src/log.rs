//! The log file of one server: the output since its start, completely or only the last lines.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::ServerError;

mod readable;

/// The tail is read from at most this many bytes: enough for a server's last messages and the
/// addresses that several threads print after them.
const TAIL_LIMIT_BYTES: u64 = 256 * 1024;

/// A log file, and the position in it where the output of this start begins.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    begin: u64,
}

impl Log {
    /// Creates the file and its folder if they are missing; existing content stays.
    pub(crate) fn create(path: &Path) -> Result<Log, ServerError> {
        let prepare = ServerError::prepare(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(prepare)?;
        }
        let file = Self::open_to_append(path).map_err(prepare)?;
        let begin = file.metadata().map_err(prepare)?.len();
        Ok(Log { path: path.to_owned(), begin })
    }

    /// A handle for the output of the server.
    pub(crate) fn writer(&self) -> Result<File, ServerError> {
        Self::open_to_append(&self.path).map_err(ServerError::prepare(&self.path))
    }

    /// Ignores everything printed so far.
    pub(crate) fn restart(&mut self) {
        if let Ok(metadata) = fs::metadata(&self.path) {
            self.begin = metadata.len();
        }
    }

    /// The output since the start. Invalid UTF-8 is replaced; an unreadable file counts as empty.
    pub(crate) fn text(&self) -> String {
        self.read_from(self.begin).unwrap_or_default()
    }

    /// The most informative lines at the end of the log, at most `count` ([`readable`]).
    pub(crate) fn tail(&self, count: usize) -> Vec<String> {
        let length = fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        let from = self.begin.max(length.saturating_sub(TAIL_LIMIT_BYTES));
        readable::readable(&self.read_from(from).unwrap_or_default(), count)
    }

    fn open_to_append(path: &Path) -> io::Result<File> {
        OpenOptions::new().create(true).append(true).open(path)
    }

    fn read_from(&self, from: u64) -> io::Result<String> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tempfile::TempDir;

    #[test]
    fn output_of_an_earlier_start_is_kept_but_ignored() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("logs/server.log");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "listening on 1\n").unwrap();
        let log = Log::create(&path).unwrap();
        assert_eq!(log.text(), "");
        writeln!(log.writer().unwrap(), "listening on 2").unwrap();
        assert_eq!(log.text(), "listening on 2\n");
        assert_eq!(log.tail(5), ["listening on 2"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "listening on 1\nlistening on 2\n");
    }

    #[test]
    fn tail_is_the_last_lines_even_of_a_long_file() {
        let folder = TempDir::new().unwrap();
        let log = Log::create(&folder.path().join("server.log")).unwrap();
        let mut writer = log.writer().unwrap();
        for number in 0..20_000 {
            writeln!(writer, "line {number}").unwrap();
        }
        assert_eq!(log.tail(2), ["line 19998", "line 19999"]);
        assert_eq!(log.tail(0), Vec::<String>::new());
    }
}
