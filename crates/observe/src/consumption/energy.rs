//! Energy of processors and memory by RAPL.
//! Source: `Documentation/power/powercap/powercap.rst` of Linux.

use super::known::Known;
use dyno_record::consumption::EnergyUse;
use std::fs;
use std::path::{Path, PathBuf};

const FOLDER: &str = "sys/class/powercap";

/// The RAPL counters of this machine.
#[derive(Debug)]
pub(super) struct Rapl {
    domains: Vec<Domain>,
}

/// One counter.
#[derive(Debug)]
struct Domain {
    name: String,
    folder: PathBuf,
    /// The counter wraps to 0 after this value.
    last_value_uj: u64,
    last_uj: u64,
    /// Growth since the reader was created.
    total_uj: u64,
    fault: Option<String>,
}

impl Rapl {
    /// Finds the packages, and their memory if it is counted separately. Cores and graphics are
    /// parts of a package, and `psys` contains all packages.
    pub(super) fn find(root: &Path) -> Known<Self> {
        let entries = fs::read_dir(root.join(FOLDER)).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = entries
            .filter(|entry| is_zone(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect();
        folders.sort();
        let mut domains = Vec::new();
        for folder in folders {
            let name = fs::read_to_string(folder.join("name")).unwrap_or_default();
            let name = name.trim();
            if name.starts_with("package") || name == "dram" {
                domains.push(Domain::new(name, folder)?);
            }
        }
        match domains.is_empty() {
            true => Err("no RAPL counters on this machine".to_owned()),
            false => Ok(Rapl { domains }),
        }
    }

    /// Updates the totals. Must be called before a counter wraps twice, which takes at least a
    /// minute.
    pub(super) fn keep_up(&mut self) {
        for domain in &mut self.domains {
            match number(&domain.folder.join("energy_uj")) {
                Ok(now_uj) => domain.follow(now_uj),
                Err(reason) => domain.fault = Some(reason),
            }
        }
    }

    /// Growth since the reader was created.
    pub(super) fn total(&self) -> Known<EnergyUse> {
        if let Some(reason) = self.domains.iter().find_map(|domain| domain.fault.clone()) {
            return Err(reason);
        }
        let total_uj: u64 = self.domains.iter().map(|domain| domain.total_uj).sum();
        Ok(EnergyUse {
            energy_joules: total_uj as f64 / 1e6,
            domains: self.domains.iter().map(|domain| domain.name.clone()).collect(),
        })
    }
}

/// Matches `intel-rapl:0` and `intel-rapl:0:2`, the names on AMD as well. `intel-rapl-mmio` repeats
/// the same counters.
fn is_zone(name: &str) -> bool {
    name.starts_with("intel-rapl:")
}

impl Domain {
    fn new(name: &str, folder: PathBuf) -> Known<Self> {
        let last_value_uj = number(&folder.join("max_energy_range_uj"))?;
        let last_uj = number(&folder.join("energy_uj"))?;
        Ok(Domain {
            name: name.to_owned(),
            folder,
            last_value_uj,
            last_uj,
            total_uj: 0,
            fault: None,
        })
    }

    fn follow(&mut self, now_uj: u64) {
        self.total_uj += match now_uj.checked_sub(self.last_uj) {
            Some(by_uj) => by_uj,
            None => self.last_value_uj.saturating_sub(self.last_uj) + now_uj,
        };
        self.last_uj = now_uj;
    }
}

/// Reads a number. Since Linux 5.10 only root may read the energy.
fn number(path: &Path) -> Known<u64> {
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            format!("only root can read `{}`", path.display())
        }
        _ => format!("`{}`: {error}", path.display()),
    })?;
    let number = text.trim().parse();
    number.map_err(|_| format!("cannot parse `{}`", path.display()))
}
