//! The files of a trace: which number they have in the record, how they are called, and what became of
//! them.

use super::devices;
use super::layout::{FileEvent, FileKey, NameEvent};
use super::mounts;
use crate::settings::FilePatterns;
use dyno_record::io_trace::document::FileEntry;
use std::collections::HashMap;
use std::fs::Metadata;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A file that is traced.
#[derive(Debug)]
struct Known {
    key: FileKey,
    process: u32,
    descriptor: i32,
    /// All paths that it had, the last one being that of now; none if it is not known.
    names: Vec<String>,
    /// What the kernel said where no path was found.
    partial: String,
    deleted: bool,
    /// Paths are those of another root than ours: that of its process.
    elsewhere: bool,
}

/// All files that were met.
#[derive(Debug, Default)]
pub(super) struct FileTable {
    patterns: FilePatterns,
    /// Places of files that are traced; `None` of those that are not.
    places: HashMap<u32, Option<u32>>,
    known: Vec<Known>,
}

impl FileTable {
    pub(super) fn new(patterns: FilePatterns) -> FileTable {
        FileTable {
            patterns,
            ..FileTable::default()
        }
    }

    /// The place of a file in the record, by the number that the kernel gave it.
    pub(super) fn place_of(&self, id: u32) -> Option<u32> {
        self.places.get(&id).copied().flatten()
    }

    /// Takes a file that is met the first time, and says whether it is to be traced.
    pub(super) fn add(&mut self, event: &FileEvent) -> bool {
        let found = find_name(event);
        let name = found
            .as_ref()
            .map_or(event.path.as_str(), |found| found.path.as_str());
        let wanted = self.patterns.matches(name);
        let place = wanted.then_some(self.known.len() as u32);
        self.places.insert(event.id, place);
        if wanted {
            self.known.push(Known {
                key: event.key,
                process: event.process,
                descriptor: event.descriptor,
                deleted: found.as_ref().is_some_and(|found| found.deleted),
                names: found.into_iter().map(|found| found.path).collect(),
                partial: event.path.clone(),
                elsewhere: has_other_root(event.process),
            });
        }
        wanted
    }

    /// Follows a name that a traced process changed or took away.
    pub(super) fn rename(&mut self, event: &NameEvent) {
        let Some(from) = whole_path(event.process, event.folder_from, &event.from) else {
            return;
        };
        if event.to.is_empty() {
            self.take_away(&from);
            return;
        }
        let Some(to) = whole_path(event.process, event.folder_to, &event.to) else {
            return;
        };
        if from == to {
            return;
        }
        self.take_away(&to);
        let below = format!("{from}/");
        for file in self.known.iter_mut().filter(|file| !file.deleted) {
            let Some(name) = file.names.last() else {
                continue;
            };
            if *name == from {
                file.names.push(to.clone());
            } else if let Some(rest) = name.strip_prefix(&below) {
                let moved = format!("{to}/{rest}");
                file.names.push(moved);
            }
        }
    }

    fn take_away(&mut self, path: &str) {
        for file in &mut self.known {
            if file.names.last().is_some_and(|name| name == path) {
                file.deleted = true;
            }
        }
    }

    /// The files as they are known now, without a look at them.
    pub(super) fn entries(&self) -> Vec<FileEntry> {
        self.known.iter().map(|file| file.to_entry(None)).collect()
    }

    /// The files as they are recorded, after a last look at them.
    pub(super) fn into_entries(self) -> Vec<FileEntry> {
        self.known.into_iter().map(Known::into_entry).collect()
    }
}

impl Known {
    fn into_entry(mut self) -> FileEntry {
        let now = self.look();
        self.to_entry(now.as_ref().and_then(size_of_file))
    }

    fn to_entry(&self, bytes: Option<u64>) -> FileEntry {
        let (device_major, device_minor) = devices::parts(self.key.device);
        FileEntry {
            device_major,
            device_minor,
            inode: self.key.inode,
            generation: (self.key.generation != 0).then_some(u64::from(self.key.generation)),
            name: self.names.last().unwrap_or(&self.partial).clone(),
            names: match self.names.len() {
                0 | 1 => Vec::new(),
                _ => self.names.clone(),
            },
            deleted: self.deleted,
            bytes,
            role: None,
        }
    }

    /// Looks where the file is now: at its name, beside it, or where its process has it open. What is
    /// not found is deleted.
    fn look(&mut self) -> Option<Metadata> {
        let name = self.names.last()?.clone();
        let path = self.path_for_us(&name);
        if let Some(metadata) = self.is_at(&path) {
            self.deleted = false;
            return Some(metadata);
        }
        if let Some((beside, metadata)) = self.beside(&path) {
            if let Some((folder, _)) = name.rsplit_once('/') {
                self.names.push(format!("{folder}/{beside}"));
            }
            self.deleted = false;
            return Some(metadata);
        }
        let link = PathBuf::from(format!("/proc/{}/fd/{}", self.process, self.descriptor));
        let open = std::fs::metadata(&link).ok().filter(|metadata| {
            is_inode(metadata, &self.key) && is_generation(&link, metadata, self.key.generation)
        });
        // In another root nothing can be said once its process has ended.
        let can_be_seen = !self.elsewhere || path.parent().is_some_and(Path::exists);
        if can_be_seen || open.as_ref().is_some_and(|metadata| metadata.nlink() == 0) {
            self.deleted = true;
        }
        open
    }

    fn path_for_us(&self, name: &str) -> PathBuf {
        match self.elsewhere {
            true => PathBuf::from(format!("/proc/{}/root{name}", self.process)),
            false => PathBuf::from(name),
        }
    }

    fn is_at(&self, path: &Path) -> Option<Metadata> {
        let metadata = std::fs::symlink_metadata(path).ok()?;
        (is_inode(&metadata, &self.key) && is_generation(path, &metadata, self.key.generation))
            .then_some(metadata)
    }

    /// The same file under another name in its folder.
    fn beside(&self, path: &Path) -> Option<(String, Metadata)> {
        use std::os::unix::fs::DirEntryExt;
        let entries = std::fs::read_dir(path.parent()?).ok()?;
        entries
            .flatten()
            .filter(|entry| entry.ino() == self.key.inode)
            .find_map(|entry| {
                let metadata = self.is_at(&entry.path())?;
                Some((entry.file_name().to_string_lossy().into_owned(), metadata))
            })
    }
}

struct FoundName {
    path: String,
    deleted: bool,
}

/// The path of a file as it was when the kernel met it, which is told by where its file system is
/// mounted; or else that of the descriptor by which it was used, which may have another name by now.
fn find_name(event: &FileEvent) -> Option<FoundName> {
    let open = open_by_process(event);
    let deleted = open
        .as_ref()
        .is_some_and(|(_, metadata)| metadata.nlink() == 0);
    let by_mount = event.whole.then(|| path_by_mount(event)).flatten();
    let path = by_mount.or_else(|| {
        let path = open?.0.to_string_lossy().into_owned();
        Some(match path.strip_suffix(" (deleted)") {
            Some(stripped) if deleted => stripped.to_owned(),
            _ => path,
        })
    })?;
    Some(FoundName { path, deleted })
}

fn path_by_mount(event: &FileEvent) -> Option<String> {
    let of_process = std::fs::read_to_string(format!("/proc/{}/mountinfo", event.process));
    let mountinfo = of_process
        .or_else(|_| std::fs::read_to_string("/proc/self/mountinfo"))
        .ok()?;
    mounts::place(&mountinfo, event.key.device, &event.path)
}

/// The file where its process has it open, if it still has: by now the descriptor may be another's.
fn open_by_process(event: &FileEvent) -> Option<(PathBuf, Metadata)> {
    if event.descriptor < 0 {
        return None;
    }
    let link = PathBuf::from(format!("/proc/{}/fd/{}", event.process, event.descriptor));
    let metadata = std::fs::metadata(&link).ok()?;
    let same =
        is_inode(&metadata, &event.key) && is_generation(&link, &metadata, event.key.generation);
    same.then_some(())?;
    Some((std::fs::read_link(&link).ok()?, metadata))
}

/// Whether it is the inode. File systems with numbers that are no device tell others to users than
/// they have within the kernel.
fn is_inode(metadata: &Metadata, key: &FileKey) -> bool {
    let device = metadata.dev();
    let number = devices::kernel_number(libc::major(device), libc::minor(device));
    metadata.ino() == key.inode && (number == key.device || devices::parts(key.device).0 == 0)
}

/// Whether it is still the same file and not one that got its inode afterwards. Where the file system
/// does not tell, it is taken for the same.
fn is_generation(path: &Path, metadata: &Metadata, generation: u32) -> bool {
    if !metadata.is_file() {
        return true;
    }
    let open = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path);
    open.ok()
        .and_then(|file| generation_of(&file))
        .is_none_or(|found| found == generation)
}

fn generation_of(file: &std::fs::File) -> Option<u32> {
    // FS_IOC_GETVERSION: its number says `long`, file systems write an `int`.
    const GET_VERSION: libc::c_ulong = 0x8008_7601;
    let mut generation: [u32; 2] = [0; 2];
    // SAFETY: the pointer is to as many bytes as the number of the call says, and outlives the call.
    let status =
        unsafe { libc::ioctl(file.as_raw_fd(), GET_VERSION as _, generation.as_mut_ptr()) };
    (status == 0).then_some(generation[0])
}

fn size_of_file(metadata: &Metadata) -> Option<u64> {
    if !metadata.file_type().is_block_device() {
        return Some(metadata.len());
    }
    let device = metadata.rdev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let sectors = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/size")).ok()?;
    Some(sectors.trim().parse::<u64>().ok()? * 512)
}

fn has_other_root(process: u32) -> bool {
    let identity = |path: String| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    let of_mounts = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let process = process.to_string();
    match (of_mounts(&process), of_mounts("self")) {
        (Some(theirs), Some(ours)) if theirs != ours => true,
        _ => {
            let theirs = identity(format!("/proc/{process}/root"));
            theirs.is_some() && theirs != identity("/proc/self/root".to_owned())
        }
    }
}

/// A path as a process gave it, as a whole and without links in its folders.
fn whole_path(process: u32, folder: i32, path: &str) -> Option<String> {
    if path.is_empty() {
        return None;
    }
    let base = match folder {
        libc::AT_FDCWD => format!("/proc/{process}/cwd"),
        number => format!("/proc/{process}/fd/{number}"),
    };
    let whole = match path.starts_with('/') {
        true => PathBuf::from(path),
        false => std::fs::read_link(base).ok()?.join(path),
    };
    let folder = whole.parent()?;
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    Some(
        folder
            .join(whole.file_name()?)
            .to_string_lossy()
            .into_owned(),
    )
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
