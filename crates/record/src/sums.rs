//! `SHA256SUMS`: the checksums of a finished record, in the format of `sha256sum`. The file is written last. A
//! subfolder with its own `SHA256SUMS` is covered by that file, and only that file is listed.

use crate::document::write_whole;
use crate::error::RecordError;
use crate::io_trace;
use crate::plain_file;
use crate::statement;
use crate::statement::Statement;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// File name.
pub const FILE: &str = "SHA256SUMS";

/// Files and folders of a record of any kind, except trace tables. Other programs own everything else and may change
/// it, including the files in `traces`: no figure comes from it.
const PARTS: [&str; 18] = [
    "before",
    "after",
    "cells",
    "experiment.json",
    "index-build.json",
    "instances",
    "io-trace",
    "latency.hlog",
    "metrics",
    "plan.toml",
    "plan-a.toml",
    "plan-b.toml",
    "run.json",
    "runs",
    "series",
    "server-logs",
    "tail.json",
    io_trace::DOCUMENT,
];
/// Reports can be regenerated, so they may change.
const REPORTS: [&str; 2] = ["report.html", "report.md"];
/// Bytes per read.
const PIECE: usize = 1 << 16;
/// Maximum number of files named for each kind of change; the others are counted.
const NAMED: usize = 8;

/// Changes of a record since its checksums were written; paths are relative to its folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Files with different content.
    pub changed: Vec<PathBuf>,
    pub missing: Vec<PathBuf>,
    pub added: Vec<PathBuf>,
    /// Unreadable files.
    pub unreadable: Vec<PathBuf>,
}

/// Writes the checksums of a finished record. Failures are only logged, because the record is valid without checksums:
/// unreadable files are left out, and so is the whole file if it cannot be written.
pub fn write(folder: &Path) {
    let written = files(folder).and_then(|files| write_whole(folder, FILE, &lines(folder, &files)));
    if let Err(error) = written {
        let cause = std::error::Error::source(&error).map_or(String::new(), ToString::to_string);
        tracing::warn!("cannot write the checksums of the record: {error}: {cause}");
    }
}

fn lines(folder: &Path, files: &[PathBuf]) -> Vec<u8> {
    let mut text = Vec::new();
    for path in files {
        let whole = folder.join(path);
        match sum(&whole) {
            Ok(sum) => put_line(&mut text, &sum, path),
            Err(error) => {
                tracing::warn!("cannot compute the checksum of `{}`: {error}", whole.display())
            }
        }
    }
    text
}

/// Removes the checksums of a record that will be extended.
///
/// # Errors
/// [`RecordError::Write`] if they cannot be removed.
pub fn remove(folder: &Path) -> Result<(), RecordError> {
    let path = folder.join(FILE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(RecordError::write(&path)(error)),
        _ => Ok(()),
    }
}

/// Finds changes of a record since it was finished, including subfolders with their own checksums. Without checksums
/// nothing is known: the record is older, was killed, or is still running.
///
/// # Errors
/// [`RecordError::Read`] if the folder or its checksums cannot be read.
pub fn check(folder: &Path) -> Result<Changes, RecordError> {
    let mut changes = Changes::default();
    check_below(folder, Path::new(""), &mut changes)?;
    Ok(changes)
}

fn check_below(root: &Path, below: &Path, changes: &mut Changes) -> Result<(), RecordError> {
    let folder = root.join(below);
    let list = folder.join(FILE);
    let text = match plain_file::read(&list) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(RecordError::read(&list)(error)),
    };
    let mut listed = BTreeMap::new();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match parse_line(line) {
            Some((sum, path)) => {
                listed.insert(path, sum);
            }
            None => changes.changed.push(below.join(FILE)),
        }
    }
    for path in files(&folder)? {
        // A file that was already unreadable has no checksum.
        if !listed.contains_key(&path) && plain_file::open(&folder.join(&path)).is_ok() {
            changes.added.push(below.join(path));
        }
    }
    for (path, expected) in listed {
        let shown = below.join(&path);
        match sum(&folder.join(&path)) {
            Ok(found) if found == expected => {}
            Ok(_) => changes.changed.push(shown),
            Err(error) if error.kind() == ErrorKind::NotFound => changes.missing.push(shown),
            Err(_) => changes.unreadable.push(shown),
        }
        if path.file_name() == Some(OsStr::new(FILE))
            && let Some(folder) = path.parent()
        {
            check_below(root, &below.join(folder), changes)?;
        }
    }
    Ok(())
}

impl Changes {
    /// Statement about the changes; `None` without changes.
    pub fn statement(&self) -> Option<Statement> {
        (*self != Changes::default()).then(|| {
            statement!(
                "record-changed",
                changed = names(&self.changed),
                missing = names(&self.missing),
                added = names(&self.added),
                unreadable = names(&self.unreadable),
            )
        })
    }
}

fn names(paths: &[PathBuf]) -> Option<Vec<String>> {
    let mut names: Vec<String> =
        paths.iter().take(NAMED).map(|path| format!("`{}`", path.display())).collect();
    match paths.len().saturating_sub(NAMED) {
        0 => {}
        more => names.push(format!("{more} more")),
    }
    (!names.is_empty()).then_some(names)
}

/// Files of the record in a folder, in the order of their paths.
fn files(folder: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let mut found = Vec::new();
    walk(folder, Path::new(""), &mut found).map_err(RecordError::read(folder))?;
    found.sort();
    Ok(found)
}

fn walk(root: &Path, below: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let is_top = below.as_os_str().is_empty();
    let is_trace = is_top && root.join(io_trace::DOCUMENT).is_file();
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let name = entry.file_name();
        if is_top && !is_part(&name) && !(is_trace && is_table(&name)) {
            continue;
        }
        let path = below.join(&name);
        // Links are not part of the record.
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let sums = path.join(FILE);
            match root.join(&sums).symlink_metadata() {
                Ok(data) if data.is_file() => found.push(sums),
                // List an unreadable folder, so that it is handled like an unreadable file.
                _ if walk(root, &path, found).is_err() => found.push(path),
                _ => {}
            }
        } else if kind.is_file() && !REPORTS.iter().any(|report| name == *report) {
            found.push(path);
        }
    }
    Ok(())
}

/// Whether this is the name of a file or folder of a record, or of its rendered reports.
pub fn is_of_record(name: &OsStr) -> bool {
    let others = [FILE].into_iter().chain(REPORTS);
    is_part(name) || is_table(name) || others.into_iter().any(|other| name == other)
}

fn is_part(name: &OsStr) -> bool {
    PARTS.iter().any(|part| name == *part)
}

/// Whether a file in a trace folder is one of the trace's tables.
pub fn is_table(name: &OsStr) -> bool {
    let number = |rest: &[u8]| rest.iter().all(u8::is_ascii_digit);
    let is_numbered = |table: &str| {
        let rest = name.as_bytes().strip_prefix(table.as_bytes());
        let rest = rest.and_then(|rest| rest.strip_prefix(b"-")?.strip_suffix(b".parquet"));
        rest.is_some_and(number)
    };
    name == io_trace::FILES || [io_trace::CALLS, io_trace::BLOCK].into_iter().any(is_numbered)
}

/// SHA-256 of a file, in hexadecimal digits.
fn sum(path: &Path) -> io::Result<String> {
    let mut file = plain_file::open(path)?;
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            length => digest.update(&piece[..length]),
        }
    }
    let mut text = String::new();
    for byte in digest.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Writes a line as `sha256sum` does: line ends and backslashes in a path are escaped, with a backslash before the
/// checksum.
fn put_line(text: &mut Vec<u8>, sum: &str, path: &Path) {
    let path = path.as_os_str().as_bytes();
    if path.iter().any(|byte| b"\\\n\r".contains(byte)) {
        text.push(b'\\');
    }
    text.extend_from_slice(sum.as_bytes());
    text.extend_from_slice(b"  ");
    for byte in path {
        match byte {
            b'\\' => text.extend_from_slice(b"\\\\"),
            b'\n' => text.extend_from_slice(b"\\n"),
            b'\r' => text.extend_from_slice(b"\\r"),
            other => text.push(*other),
        }
    }
    text.push(b'\n');
}

/// Checksum and path of a line; `None` if the line is malformed, or its path leads out of the folder.
fn parse_line(line: &[u8]) -> Option<(String, PathBuf)> {
    let line = line.strip_suffix(b"\n")?;
    let (line, is_escaped) = match line.strip_prefix(b"\\") {
        Some(rest) => (rest, true),
        None => (line, false),
    };
    let (sum, rest) = line.split_at_checked(64)?;
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if !sum.iter().all(is_digit) {
        return None;
    }
    let path = rest.strip_prefix(b"  ")?;
    let path = if is_escaped { unescaped(path)? } else { path.to_owned() };
    let path = PathBuf::from(OsString::from_vec(path));
    let is_inside = |part| matches!(part, Component::Normal(_));
    let is_valid = !path.as_os_str().is_empty() && path.components().all(is_inside);
    is_valid.then(|| (String::from_utf8_lossy(sum).into_owned(), path))
}

fn unescaped(path: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    let mut bytes = path.iter();
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next()? {
                b'\\' => b'\\',
                b'n' => b'\n',
                b'r' => b'\r',
                _ => return None,
            },
            other => *other,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    /// A record with files at several depths, and unrelated files.
    fn record() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let content = [
            ("run.json", "{\"succeeded\": 2000}\n"),
            ("series/intervals.csv", "phase,index\nmeasure,0\nmeasure,1\n"),
            ("metrics/host.csv", "at_ns\n1\n2\n"),
            ("server-logs/odd \\ name\n.txt", "it\n"),
            ("traces/t/output.log", "theirs\n"),
            ("instances/0/run.json", "{}\n"),
            ("report.html", "<p>"),
            ("notes.txt", "mine"),
            (".dyno-x", "temporary"),
        ];
        for (path, text) in content {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        write(&folder.path().join("instances/0"));
        write(folder.path());
        folder
    }

    /// Files with checksums in [`record`].
    const COVERED: [&str; 6] = [
        "run.json",
        "series/intervals.csv",
        "metrics/host.csv",
        "server-logs/odd \\ name\n.txt",
        "instances/0/SHA256SUMS",
        "instances/0/run.json",
    ];

    #[test]
    fn sha256sum_understands_the_file() {
        let record = record();
        let checked = Command::new("sha256sum")
            .args(["-c", "--strict", FILE])
            .current_dir(record.path())
            .output()
            .unwrap();
        assert!(checked.status.success(), "{checked:?}");
        let text = String::from_utf8(checked.stdout).unwrap();
        assert_eq!(text.lines().count(), 5, "{text}");
        assert_eq!(check(record.path()).unwrap(), Changes::default());
    }

    #[test]
    fn files_outside_the_record_may_change() {
        let record = record();
        let left = ["report.html", "notes.txt", ".dyno-x"];
        // Files of observers, and exported tables.
        let theirs = [
            "traces/t/output.log",
            "traces/t/more",
            "windows.parquet",
            "calls-1.parquet",
            "my-trace.json",
        ];
        for name in left.into_iter().chain(theirs) {
            fs::write(record.path().join(name), "other").unwrap();
        }
        assert_eq!(check(record.path()).unwrap(), Changes::default());
    }

    #[test]
    fn trace_tables_are_recognized_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let tables = ["block-000.parquet", "calls-001.parquet", "files.parquet"];
        for name in ["trace.json", "calls-copy.parquet", "my.parquet"].into_iter().chain(tables) {
            fs::write(folder.path().join(name), name).unwrap();
        }
        assert_eq!(
            files(folder.path()).unwrap(),
            tables.into_iter().chain(["trace.json"]).map(PathBuf::from).collect::<Vec<_>>()
        );
    }

    #[test]
    fn unreadable_files_get_no_checksum() {
        let record = record();
        let text = fs::read(record.path().join(FILE)).unwrap();
        let mut found = files(record.path()).unwrap();
        // A file that was deleted, and a folder that cannot be read as a file.
        found.extend(["metrics/gone.csv", "metrics"].map(PathBuf::from));
        assert_eq!(lines(record.path(), &found), text);
    }

    #[test]
    fn write_ignores_a_failure() {
        let record = record();
        remove(record.path()).unwrap();
        fs::create_dir_all(record.path().join(FILE).join("x")).unwrap();
        write(record.path());
        assert!(record.path().join("run.json").is_file());
    }

    #[test]
    fn check_finds_missing_and_added_files() {
        let record = record();
        fs::remove_file(record.path().join("metrics/host.csv")).unwrap();
        fs::write(record.path().join("metrics/other.csv"), "").unwrap();
        let changes = check(record.path()).unwrap();
        assert_eq!(changes.missing, [Path::new("metrics/host.csv")]);
        assert_eq!(changes.added, [Path::new("metrics/other.csv")]);
        assert!(changes.changed.is_empty());
    }

    #[test]
    fn check_does_not_read_added_files() {
        let record = record();
        let path = record.path().join("metrics/huge.csv");
        // A sparse file: it takes no space, but hours to read.
        fs::File::create(path).unwrap().set_len(1 << 40).unwrap();
        let changes = check(record.path()).unwrap();
        assert_eq!(changes.added, [Path::new("metrics/huge.csv")]);
    }

    #[test]
    fn check_does_not_follow_links() {
        let record = record();
        let path = record.path().join("run.json");
        fs::rename(&path, record.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        let changes = check(record.path()).unwrap();
        assert_eq!(changes.unreadable, [Path::new("run.json")]);
    }

    #[test]
    fn check_ignores_paths_outside_the_folder() {
        let record = record();
        let path = record.path().join(FILE);
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str(&format!("{}  ../../etc/passwd\n", "0".repeat(64)));
        fs::write(&path, text).unwrap();
        assert_eq!(check(record.path()).unwrap().changed, [Path::new(FILE)]);
    }

    #[test]
    fn remove_deletes_the_checksums() {
        let record = record();
        remove(record.path()).unwrap();
        remove(record.path()).unwrap();
        fs::write(record.path().join("run.json"), "other").unwrap();
        assert_eq!(check(record.path()).unwrap(), Changes::default());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn check_finds_every_flipped_bit_and_truncation(
            file in 0..COVERED.len(),
            place in any::<prop::sample::Index>(),
            bit in 0..8,
            cuts in any::<bool>(),
        ) {
            let record = record();
            let path = record.path().join(COVERED[file]);
            let mut content = fs::read(&path).unwrap();
            let place = place.index(content.len());
            if cuts {
                content.truncate(place);
            } else {
                content[place] ^= 1_u8 << bit;
            }
            fs::write(&path, content).unwrap();
            let changes = check(record.path()).unwrap();
            prop_assert!(changes.changed.contains(&PathBuf::from(COVERED[file])), "{:?}", changes);
        }

        #[test]
        fn check_finds_every_flipped_bit_of_the_checksums(
            place in any::<prop::sample::Index>(),
            bit in 0..8,
        ) {
            let record = record();
            let path = record.path().join(FILE);
            let mut content = fs::read(&path).unwrap();
            let place = place.index(content.len());
            content[place] ^= 1_u8 << bit;
            fs::write(&path, content).unwrap();
            prop_assert!(check(record.path()).unwrap() != Changes::default());
        }
    }
}
