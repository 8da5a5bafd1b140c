//! Reads small files repeatedly without allocating new memory each time.

use crate::health::{Health, Reading};
use nix::errno::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Initial buffer size, sufficient for most files.
const FIRST_ROOM: usize = 4096;

/// How the kernel generates a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pieces {
    /// All at once: a short read means the end of the file, which saves a call in each of hundreds
    /// of files.
    One,
    /// Piece by piece, for example one disk at a time.
    Many,
}

/// A buffer with the content of the last file that was read.
#[derive(Debug, Default)]
pub(super) struct Content {
    bytes: Vec<u8>,
    length: usize,
}

impl Content {
    /// Opens and reads a file that the kernel generates in one piece, such as files of processes
    /// and groups.
    pub(super) fn read(&mut self, path: &Path) -> io::Result<&str> {
        self.read_piece(&File::open(path)?)
    }

    /// Reads an open file that the kernel generates in one piece.
    pub(super) fn read_piece(&mut self, file: &File) -> io::Result<&str> {
        self.fill(file, Pieces::One)?;
        self.text()
    }

    /// Reads from the beginning: the kernel then generates the current state.
    fn fill(&mut self, file: &File, pieces: Pieces) -> io::Result<()> {
        self.length = 0;
        loop {
            if self.length == self.bytes.len() {
                self.bytes.resize((self.length * 2).max(FIRST_ROOM), 0);
            }
            let room = &mut self.bytes[self.length..];
            let most = room.len();
            match file.read_at(room, self.length as u64) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    self.length += count;
                    if pieces == Pieces::One && count < most {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn text(&self) -> io::Result<&str> {
        let text = std::str::from_utf8(&self.bytes[..self.length]);
        text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// A kernel file that stays open between readings.
#[derive(Debug)]
pub(super) struct KeptFile {
    path: PathBuf,
    file: Option<File>,
    content: Content,
}

impl KeptFile {
    /// The file `path` below `root`, which is opened at the first reading.
    pub(super) fn new(root: &Path, path: &str) -> KeptFile {
        KeptFile { path: root.join(path), file: None, content: Content::default() }
    }

    /// The current content.
    pub(super) fn read(&mut self) -> Reading<&str> {
        let opened = match self.file.take() {
            Some(file) => Ok(file),
            None => File::open(&self.path),
        };
        // A file that fails is reopened at the next reading.
        let filled = opened.and_then(|file| {
            self.content.fill(&file, Pieces::Many)?;
            self.file = Some(file);
            self.content.text()
        });
        filled.map_err(|error| health(&self.path, &error))
    }

    /// Health of content that was not understood.
    pub(super) fn not_understood(&self, what: &str) -> Health {
        Health::not_understood(&self.path, what)
    }
}

/// Health of a file that could not be read. Some kernel files exist even if their feature is turned
/// off, and report this only when they are read.
pub(super) fn health(path: &Path, error: &io::Error) -> Health {
    match error.raw_os_error() {
        Some(code) if code == Errno::EOPNOTSUPP as i32 => {
            Health::Unsupported { reason: format!("`{}`: {error}", path.display()) }
        }
        _ => Health::from_io(path, error),
    }
}

/// Whether reading a file of a process failed because the process or thread has ended.
pub(super) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::ESRCH as i32)
}

/// The numbers of a line; `None` for a word that is not a number.
pub(super) fn numbers(line: &str) -> impl Iterator<Item = Option<u64>> {
    line.split_ascii_whitespace().map(|word| word.parse().ok())
}

/// The first numbers of a line; missing ones are `None`.
pub(super) fn first_numbers<const N: usize>(line: &str) -> [Option<u64>; N] {
    let mut found = [None; N];
    for (place, number) in found.iter_mut().zip(numbers(line)) {
        *place = number;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::Fixture;

    #[test]
    fn kept_file_is_read_from_its_beginning_each_time() {
        let long = "x".repeat(FIRST_ROOM + 5);
        let fixture = Fixture::new().with("proc/a", &long);
        let mut file = KeptFile::new(fixture.root(), "proc/a");
        assert_eq!(file.read(), Ok(long.as_str()));
        let _fixture = fixture.with("proc/a", "short");
        assert_eq!(file.read(), Ok("short"));
    }

    #[test]
    fn file_longer_than_the_buffer_is_read_completely() {
        let fixture = Fixture::new();
        let mut content = Content::default();
        let lengths = [3, FIRST_ROOM - 1, FIRST_ROOM, FIRST_ROOM + 1, 5 * FIRST_ROOM, 0];
        for length in lengths {
            let text = "x".repeat(length);
            let path = fixture.root().join("a");
            std::fs::write(&path, &text).unwrap();
            assert!(content.read(&path).unwrap() == text, "{length}");
        }
    }

    #[test]
    fn file_that_appears_late_is_read_then() {
        let fixture = Fixture::new();
        let mut file = KeptFile::new(fixture.root(), "proc/a");
        assert!(matches!(file.read(), Err(Health::Unsupported { .. })));
        let fixture = fixture.with("proc/a", "1");
        assert_eq!(file.read(), Ok("1"));
        std::fs::write(fixture.root().join("proc/a"), [0xff, 0xfe]).unwrap();
        assert!(matches!(file.read(), Err(Health::Failed { .. })));
    }

    #[test]
    fn feature_that_the_kernel_disabled_is_not_a_fault() {
        let error = io::Error::from(Errno::EOPNOTSUPP);
        let health = health(Path::new("/proc/pressure/cpu"), &error);
        assert!(matches!(health, Health::Unsupported { .. }));
    }

    #[test]
    fn numbers_keep_their_places() {
        assert_eq!(first_numbers("4 x 6"), [Some(4), None, Some(6), None]);
    }
}
