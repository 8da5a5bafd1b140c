//! Files of a trace: their indexes in the record, their names and their final state.

use super::devices;
use super::layout::{FileEvent, FileKey, FileSlot, GivenName, NameEvent, WalkedPath};
use super::mounts;
use crate::settings::FilePatterns;
use dyno_record::io_trace::document::FileEntry;
use std::collections::HashMap;
use std::fs::Metadata;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A known file.
#[derive(Debug)]
struct Known {
    key: FileKey,
    /// Entry at the kernel's last request.
    slot: FileSlot,
    process: u32,
    descriptor: i32,
    /// All paths, the current one last; empty if unknown.
    names: Vec<String>,
    /// Partial path from the kernel, if no path was found.
    partial: String,
    deleted: bool,
    /// Whether the paths are relative to another root, the root of its process.
    elsewhere: bool,
}

/// All known files.
#[derive(Debug, Default)]
pub(super) struct FileTable {
    patterns: FilePatterns,
    /// Indexes of traced files; `None` for other files.
    indexes: HashMap<u32, Option<u32>>,
    known: Vec<Known>,
    /// Files that match no pattern, by number: they may be renamed to a matching name.
    left_out: HashMap<u32, Known>,
}

/// Consequences of a renamed or deleted name.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Files that were left out and are traced from now on.
    pub(super) fitting: Vec<Fitting>,
    /// Files that were left out and were deleted.
    pub(super) forgotten: Vec<(FileKey, FileSlot)>,
    /// Numbers of traced files that were deleted.
    pub(super) deleted: Vec<u32>,
}

/// A file that matches a pattern after it was renamed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fitting {
    pub(super) key: FileKey,
    pub(super) slot: FileSlot,
    pub(super) process: u32,
    pub(super) descriptor: i32,
}

impl FileTable {
    pub(super) fn new(patterns: FilePatterns) -> FileTable {
        FileTable { patterns, ..FileTable::default() }
    }

    /// Index of a file in the record, by its kernel number.
    pub(super) fn index_of(&self, id: u32) -> Option<u32> {
        self.indexes.get(&id).copied().flatten()
    }

    /// Adds a file that is seen for the first time, or under a new name, and returns whether it is traced. A file that
    /// once matched stays traced whatever its name.
    pub(super) fn add(&mut self, event: &FileEvent) -> bool {
        let id = event.slot.id;
        // Its renaming may already have been reported.
        if self.index_of(id).is_some() {
            return true;
        }
        let found = find_name(event);
        let name = found.as_ref().map_or(event.path.path.as_str(), |found| found.path.as_str());
        let wanted = self.patterns.matches(name);
        let before = self.left_out.remove(&id);
        let mut names: Vec<String> =
            before.and_then(|mut file| file.names.pop()).into_iter().collect();
        let deleted = found.as_ref().is_some_and(|found| found.deleted);
        names.extend(found.map(|found| found.path));
        names.dedup();
        let file = Known {
            key: event.key,
            slot: event.slot,
            process: event.process,
            descriptor: event.descriptor,
            deleted,
            names,
            partial: event.path.path.clone(),
            elsewhere: false,
        };
        if wanted {
            self.trace(file)
        } else {
            self.indexes.insert(id, None);
            self.left_out.insert(id, file);
        }
        wanted
    }

    /// Adds a file to the record.
    fn trace(&mut self, mut file: Known) {
        file.elsewhere = has_other_root(file.process);
        self.indexes.insert(file.slot.id, Some(self.known.len() as u32));
        self.known.push(file);
    }

    /// Applies a name change by a traced process.
    pub(super) fn rename(&mut self, event: &NameEvent) -> Changes {
        let mut changes = Changes::default();
        let Some(from) = whole_path(event.process, &event.from) else {
            return changes;
        };
        if event.to.name.is_empty() {
            self.take_away(&from, &mut changes);
            return changes;
        }
        let Some(to) = whole_path(event.process, &event.to) else {
            return changes;
        };
        if from == to {
            return changes;
        }
        self.take_away(&to, &mut changes);
        for file in self.known.iter_mut().filter(|file| !file.deleted) {
            let moved = file.names.last().and_then(|name| moved(name, &from, &to));
            file.names.extend(moved);
        }
        let mut fitting = Vec::new();
        for (&id, file) in &mut self.left_out {
            let Some(moved) = file.names.last().and_then(|name| moved(name, &from, &to)) else {
                continue;
            };
            if self.patterns.matches(&moved) {
                fitting.push(id);
            } else {
                // Names that never matched are not needed.
                file.names.clear();
            }
            file.names.push(moved);
        }
        fitting.sort_unstable();
        for id in fitting {
            let Some(file) = self.left_out.remove(&id) else {
                continue;
            };
            changes.fitting.push(Fitting {
                key: file.key,
                slot: file.slot,
                process: file.process,
                descriptor: file.descriptor,
            });
            self.trace(file);
        }
        changes
    }

    fn take_away(&mut self, path: &str, changes: &mut Changes) {
        let is_it = |file: &Known| file.names.last().is_some_and(|name| name == path);
        for file in self.known.iter_mut().filter(|file| is_it(file)) {
            file.deleted = true;
            changes.deleted.push(file.slot.id);
        }
        for (_, file) in self.left_out.extract_if(|_, file| is_it(file)) {
            changes.forgotten.push((file.key, file.slot));
        }
    }

    /// The files with their last known state, without checking the file system.
    pub(super) fn entries(&self) -> Vec<FileEntry> {
        self.known.iter().map(|file| file.to_entry(None)).collect()
    }

    /// The files after a final check of the file system.
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

    /// Finds the file under its name, in the same folder, or where its process has it open. A file that is not found
    /// was deleted.
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
        // Files in another root are invisible once its process has ended.
        let can_be_seen = !self.elsewhere || path.parent().is_some_and(Path::exists);
        if can_be_seen || open.as_ref().is_some_and(|metadata| metadata.nlink() == 0) {
            self.deleted = true;
        }
        open
    }

    fn path_for_us(&self, name: &str) -> PathBuf {
        if self.elsewhere {
            PathBuf::from(format!("/proc/{}/root{name}", self.process))
        } else {
            PathBuf::from(name)
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
        entries.flatten().filter(|entry| entry.ino() == self.key.inode).find_map(|entry| {
            let metadata = self.is_at(&entry.path())?;
            Some((entry.file_name().to_string_lossy().into_owned(), metadata))
        })
    }
}

/// New path after a file or a folder above it was renamed; `None` if the path is unaffected.
fn moved(path: &str, from: &str, to: &str) -> Option<String> {
    let rest = path.strip_prefix(from)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("{to}{rest}"))
}

struct FoundName {
    path: String,
    deleted: bool,
}

/// Path of a file: as it was when the kernel first saw it, within its mounted file system, or otherwise the current
/// path of the descriptor that used it.
fn find_name(event: &FileEvent) -> Option<FoundName> {
    let open = open_by_process(event);
    let deleted = open.as_ref().is_some_and(|(_, metadata)| metadata.nlink() == 0);
    let by_mount = path_by_mount(event.process, event.key.device, &event.path);
    let path = by_mount.or_else(|| {
        let path = open?.0.to_string_lossy().into_owned();
        Some(match path.strip_suffix(" (deleted)") {
            Some(stripped) if deleted => stripped.to_owned(),
            _ => path,
        })
    })?;
    Some(FoundName { path, deleted })
}

fn path_by_mount(process: u32, device: u32, walked: &WalkedPath) -> Option<String> {
    if !walked.whole {
        return None;
    }
    let of_process = std::fs::read_to_string(format!("/proc/{process}/mountinfo"));
    let mountinfo = of_process.or_else(|_| std::fs::read_to_string("/proc/self/mountinfo")).ok()?;
    mounts::mounted_path(&mountinfo, device, &walked.path)
}

/// The file that its process has open, unless the descriptor now belongs to another file.
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

/// Whether the inode matches. File systems without a device report other device numbers to users than within the
/// kernel.
fn is_inode(metadata: &Metadata, key: &FileKey) -> bool {
    let device = metadata.dev();
    let number = devices::kernel_number(libc::major(device), libc::minor(device));
    metadata.ino() == key.inode && (number == key.device || devices::parts(key.device).0 == 0)
}

/// Whether it is the same file, not a later one with the same inode. If the file system does not report generations,
/// they are assumed equal.
fn is_generation(path: &Path, metadata: &Metadata, generation: u32) -> bool {
    if !metadata.is_file() {
        return true;
    }
    let open = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    open.ok().and_then(|file| generation_of(&file)).is_none_or(|found| found == generation)
}

fn generation_of(file: &std::fs::File) -> Option<u32> {
    // FS_IOC_GETVERSION: its number encodes `long`, but file systems write an `int`.
    const GET_VERSION: libc::c_ulong = 0x8008_7601;
    let mut generation: [u32; 2] = [0; 2];
    // SAFETY: the pointer is to as many bytes as the request number encodes, and outlives the call.
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

/// A path passed by a process, made absolute and without links in its folders.
fn whole_path(process: u32, given: &GivenName) -> Option<String> {
    if given.name.is_empty() {
        return None;
    }
    let whole = if given.name.starts_with('/') {
        PathBuf::from(&given.name)
    } else {
        folder_of(process, given)?.join(&given.name)
    };
    let folder = whole.parent()?;
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    Some(folder.join(whole.file_name()?).to_string_lossy().into_owned())
}

/// Folder of a relative name: as the kernel recorded it, or else the process's current one.
fn folder_of(process: u32, given: &GivenName) -> Option<PathBuf> {
    if let Some(folder) = path_by_mount(process, given.device, &given.folder) {
        // The path of the root itself has no names.
        return Some(Path::new("/").join(folder));
    }
    let link = match given.descriptor {
        libc::AT_FDCWD => format!("/proc/{process}/cwd"),
        number => format!("/proc/{process}/fd/{number}"),
    };
    std::fs::read_link(link).ok()
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
