//! Tests with files of this process.

use super::*;
use std::fs::{self, File};
use std::os::fd::AsRawFd;

fn event(id: u32, file: &File) -> FileEvent {
    let metadata = file.metadata().unwrap();
    let device = metadata.dev();
    FileEvent {
        slot: FileSlot { id, verdict: 0, name: 0, met_ns: 0, asked: 1 },
        key: FileKey {
            inode: metadata.ino(),
            device: devices::kernel_number(libc::major(device), libc::minor(device)),
            generation: generation_of(file).unwrap_or(0),
        },
        process: std::process::id(),
        descriptor: file.as_raw_fd(),
        path: WalkedPath { path: "/only/known/to/the/kernel".to_owned(), whole: false },
    }
}

fn renamed(from: &Path, to: Option<&Path>) -> NameEvent {
    let given = |path: &Path| GivenName {
        name: path.to_string_lossy().into_owned(),
        ..GivenName::default()
    };
    NameEvent {
        process: std::process::id(),
        from: given(from),
        to: to.map(given).unwrap_or_default(),
    }
}

/// A folder on a disk: in-memory file systems do not report generations.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR").to_owned() + "/../../target").unwrap()
}

fn path(folder: &tempfile::TempDir, name: &str) -> PathBuf {
    folder.path().canonicalize().unwrap().join(name)
}

#[test]
fn file_has_its_descriptor_path_and_final_size() {
    let folder = folder();
    let path = path(&folder, "data.wt");
    let file = File::create(&path).unwrap();
    let mut table = FileTable::default();
    assert!(table.add(&event(7, &file)));
    file.set_len(5000).unwrap();
    assert_eq!(table.index_of(7), Some(0));
    assert_eq!(table.index_of(8), None);
    let entry = table.into_entries().remove(0);
    assert_eq!(Path::new(&entry.name), path);
    assert_eq!((entry.bytes, entry.deleted), (Some(5000), false));
    assert!(entry.names.is_empty());
}

#[test]
fn a_file_that_matches_no_pattern_has_no_place() {
    let folder = folder();
    let (wanted, other) = (path(&folder, "a.wt"), path(&folder, "a.log"));
    let (wanted, other) = (File::create(wanted).unwrap(), File::create(other).unwrap());
    let mut table = FileTable::new(FilePatterns::new(&["*.wt".to_owned()]).unwrap());
    assert!(!table.add(&event(1, &other)));
    assert!(table.add(&event(2, &wanted)));
    assert_eq!((table.index_of(1), table.index_of(2)), (None, Some(0)));
}

#[test]
fn names_are_kept_through_renaming_by_traced_processes() {
    let folder = folder();
    let (first, second) = (path(&folder, "a"), path(&folder, "b"));
    let file = File::create(&first).unwrap();
    let mut table = FileTable::default();
    table.add(&event(1, &file));
    fs::rename(&first, &second).unwrap();
    table.rename(&renamed(&first, Some(&second)));
    fs::remove_file(&second).unwrap();
    table.rename(&renamed(&second, None));
    let entry = table.into_entries().remove(0);
    assert_eq!(Path::new(&entry.name), second);
    assert_eq!(entry.names.len(), 2);
    assert!(entry.deleted);
}

#[test]
fn a_folder_that_is_renamed_takes_its_files_along() {
    let folder = folder();
    let (first, second) = (path(&folder, "one"), path(&folder, "two"));
    fs::create_dir(&first).unwrap();
    let file = File::create(first.join("a")).unwrap();
    let mut table = FileTable::default();
    table.add(&event(1, &file));
    fs::rename(&first, &second).unwrap();
    table.rename(&renamed(&first, Some(&second)));
    let entry = table.into_entries().remove(0);
    assert_eq!(Path::new(&entry.name), second.join("a"));
    assert!(!entry.deleted);
}

#[test]
fn an_unreported_renaming_is_found_at_the_end() {
    let folder = folder();
    let (first, second) = (path(&folder, "a"), path(&folder, "b"));
    let file = File::create(&first).unwrap();
    let mut table = FileTable::default();
    table.add(&event(1, &file));
    drop(file);
    fs::rename(&first, &second).unwrap();
    let entry = table.into_entries().remove(0);
    assert_eq!(Path::new(&entry.name), second);
    assert!(!entry.deleted);
}

#[test]
fn a_new_file_with_an_old_name_is_a_different_file() {
    let folder = folder();
    let path = path(&folder, "a");
    let file = File::create(&path).unwrap();
    let mut table = FileTable::default();
    table.add(&event(1, &file));
    drop(file);
    fs::remove_file(&path).unwrap();
    let new = File::create(&path).unwrap();
    table.add(&event(2, &new));
    let entries = table.into_entries();
    assert!(entries[0].deleted);
    assert!(!entries[1].deleted);
    assert_eq!(entries[0].bytes, None);
}

#[test]
fn a_deleted_open_file_still_has_a_size() {
    let folder = folder();
    let path = path(&folder, "a");
    let file = File::create(&path).unwrap();
    fs::remove_file(&path).unwrap();
    file.set_len(100).unwrap();
    let mut table = FileTable::default();
    table.add(&event(1, &file));
    let entry = table.into_entries().remove(0);
    assert_eq!(Path::new(&entry.name), path);
    assert_eq!((entry.bytes, entry.deleted), (Some(100), true));
}

#[test]
fn file_with_a_closed_descriptor_is_found_by_its_file_system() {
    let folder = folder();
    let path = path(&folder, "a");
    let file = File::create(&path).unwrap();
    let mut event = event(1, &file);
    event.descriptor = -1;
    event.path.path = path.to_string_lossy().into_owned();
    event.path.whole = true;
    let mut table = FileTable::default();
    table.add(&event);
    let entry = table.into_entries().remove(0);
    assert!(Path::new(&entry.name).exists(), "{}", entry.name);
}

#[test]
fn a_file_renamed_into_the_pattern_is_judged_again() {
    let folder = folder();
    let (first, second) = (path(&folder, "a.tmp"), path(&folder, "a.wt"));
    let file = File::create(&first).unwrap();
    let mut table = FileTable::new(FilePatterns::new(&["*.wt".to_owned()]).unwrap());
    assert!(!table.add(&event(4, &file)));
    fs::rename(&first, &second).unwrap();
    let changes = table.rename(&renamed(&first, Some(&second)));
    let fitting: Vec<u32> = changes.fitting.iter().map(|each| each.slot.id).collect();
    assert_eq!(fitting, [4]);
    assert_eq!(table.index_of(4), Some(0));
    // The kernel also notices the name, and asks.
    assert!(table.add(&event(4, &file)));
    let entry = table.into_entries().remove(0);
    assert_eq!(Path::new(&entry.name), second);
    assert_eq!(entry.names.len(), 2);
}

#[test]
fn file_renamed_into_the_pattern_by_others_is_judged_again() {
    let folder = folder();
    let (first, second) = (path(&folder, "a.tmp"), path(&folder, "a.wt"));
    let file = File::create(&first).unwrap();
    let mut table = FileTable::new(FilePatterns::new(&["*.wt".to_owned()]).unwrap());
    assert!(!table.add(&event(4, &file)));
    fs::rename(&first, &second).unwrap();
    assert!(table.add(&event(4, &file)));
    let entry = table.into_entries().remove(0);
    assert_eq!(Path::new(&entry.name), second);
    assert_eq!(Path::new(&entry.names[0]), first);
}

#[test]
fn folder_renamed_into_the_pattern_takes_its_files_along() {
    let folder = folder();
    let (first, second) = (path(&folder, "one"), path(&folder, "two"));
    fs::create_dir(&first).unwrap();
    let file = File::create(first.join("a")).unwrap();
    let mut table = FileTable::new(FilePatterns::new(&["**/two/*".to_owned()]).unwrap());
    assert!(!table.add(&event(1, &file)));
    fs::rename(&first, &second).unwrap();
    let changes = table.rename(&renamed(&first, Some(&second)));
    assert_eq!((changes.fitting.len(), table.index_of(1)), (1, Some(0)));
}

#[test]
fn deleted_files_are_reported_traced_or_not() {
    let folder = folder();
    let (wanted, other) = (path(&folder, "a.wt"), path(&folder, "a.log"));
    let files = [File::create(&wanted).unwrap(), File::create(&other).unwrap()];
    let mut table = FileTable::new(FilePatterns::new(&["*.wt".to_owned()]).unwrap());
    table.add(&event(1, &files[0]));
    table.add(&event(2, &files[1]));
    let changes = table.rename(&renamed(&wanted, None));
    assert_eq!((changes.deleted, changes.forgotten.len()), (vec![1], 0));
    let changes = table.rename(&renamed(&other, None));
    let forgotten: Vec<u32> = changes.forgotten.iter().map(|(_, slot)| slot.id).collect();
    assert_eq!((changes.deleted.len(), forgotten), (0, vec![2]));
    assert!(table.left_out.is_empty());
}
