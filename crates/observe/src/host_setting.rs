//! Finds a kernel setting of this machine, its value and its possible values.
//! [`doctor::change`](crate::doctor::change) sets and reverts it.

use crate::health::{Health, Reading};
use crate::host::{self, below};
use crate::storage;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

/// The files that hold one setting: one file for a kernel setting, one per CPU for a CPU setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingFiles {
    /// At least one.
    pub files: Vec<PathBuf>,
    /// Content of the first file.
    pub value: String,
    /// Possible values; `None` if the kernel does not report them.
    pub choices: Option<Vec<String>>,
}

/// A setting in one kernel file, given by its absolute path.
///
/// # Errors
/// This kernel does not have it, or it cannot be read.
pub fn of_machine(file: &str, root: &Path) -> Reading<SettingFiles> {
    found(vec![PathBuf::from(file)], root)
}

/// A setting in a file of each online CPU, given relative to the CPU's folder.
///
/// # Errors
/// The errors of [`of_machine`].
pub fn of_cpus(file: &str, root: &Path) -> Reading<SettingFiles> {
    let files = host::online_list(root)?
        .into_iter()
        .map(|cpu| PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/{file}")));
    found(files.collect(), root)
}

/// A setting in a file of the queue of the disk that holds a folder.
///
/// # Errors
/// The errors of [`of_machine`], or the folder is not on a disk.
pub fn of_disk(file: &str, folder: &Path, root: &Path) -> Reading<SettingFiles> {
    let queue = storage::queue(root, folder)?;
    found(vec![queue.join(file)], root)
}

/// The number in a kernel file, given by its absolute path.
///
/// # Errors
/// The errors of [`of_machine`], or the content is not a number.
pub fn number(file: &str, root: &Path) -> Reading<u64> {
    host::number(root, file.trim_start_matches('/'))
}

/// Checks whether a file may be written, without writing it.
///
/// # Errors
/// Mostly missing rights: kernel settings need root.
pub fn may_set(file: &Path, root: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(below(root, file));
    file.map(drop)
}

fn found(files: Vec<PathBuf>, root: &Path) -> Reading<SettingFiles> {
    let mut files_found = Vec::new();
    let mut first = None;
    for file in files {
        let path = below(root, &file);
        let text =
            std::fs::read_to_string(&path).map_err(|error| Health::from_io(&file, &error))?;
        first.get_or_insert(text.trim().to_owned());
        files_found.push(file);
    }
    let (Some(text), Some(file)) = (first, files_found.first()) else {
        return Err(Health::unsupported("no CPU has it"));
    };
    Ok(SettingFiles {
        choices: choices(&text, file, root),
        value: host::selected(&text).unwrap_or(text),
        files: files_found,
    })
}

/// Possible values of a file: its words if one is in brackets, or the governors that a driver lists
/// in a file next to it.
fn choices(text: &str, file: &Path, root: &Path) -> Option<Vec<String>> {
    let words = |text: &str| {
        let words = text.split_ascii_whitespace();
        words.map(|word| word.trim_matches(['[', ']']).to_owned()).collect()
    };
    if host::selected(text).is_some() {
        return Some(words(text));
    }
    let beside = file.with_file_name("scaling_available_governors");
    let is_governor = file.file_name().is_some_and(|name| name == "scaling_governor");
    let named = std::fs::read_to_string(below(root, &beside)).ok();
    named.filter(|_| is_governor).map(|text| words(&text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::Fixture;

    #[test]
    fn setting_is_found_with_its_possible_values() {
        let governors =
            |cpu: u32| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        let fixture = Fixture::new()
            .with("proc/sys/vm/swappiness", "60\n")
            .with("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
            .with("sys/devices/system/cpu/online", "0-1\n")
            .with(&governors(0), "powersave\n")
            .with(&governors(1), "powersave\n")
            .with(
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors",
                "performance powersave\n",
            );
        let root = fixture.root();
        let swappiness = of_machine("/proc/sys/vm/swappiness", root).unwrap();
        assert_eq!((swappiness.value.as_str(), swappiness.choices), ("60", None));
        let pages = of_machine("/sys/kernel/mm/transparent_hugepage/enabled", root).unwrap();
        assert_eq!(pages.value, "madvise");
        assert_eq!(pages.choices.unwrap(), ["always", "madvise", "never"]);
        let cpus = of_cpus("cpufreq/scaling_governor", root).unwrap();
        assert_eq!((cpus.files.len(), cpus.value.as_str()), (2, "powersave"));
        assert_eq!(cpus.choices.unwrap(), ["performance", "powersave"]);
        assert!(may_set(&cpus.files[0], root).is_ok());
        let missing = of_machine("/proc/sys/vm/zone_reclaim_mode", root).unwrap_err();
        assert!(matches!(missing, Health::Unsupported { .. }), "{missing:?}");
        assert!(may_set(Path::new("/proc/sys/vm/zone_reclaim_mode"), root).is_err());
        assert!(!root.join("proc/sys/vm/zone_reclaim_mode").exists());
    }
}
