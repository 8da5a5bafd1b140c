//! The machine as a source: CPUs, pressure, memory, disks, network, sensors, and some processes
//! with their control groups, from `/proc` and `/sys`. `docs/metrics.md` lists the metrics.
//!
//! Each topic is a part with its own file here. A part that cannot be read is reported as missing
//! and does not affect the others.

mod activity;
mod cgroup;
mod cpu;
mod data;
mod disk;
mod file;
mod hierarchy;
pub(super) mod memory;
mod network;
pub(super) mod paging;
mod part;
mod present;
mod pressure;
mod process;
mod sensors;
pub(super) mod tcp;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod threads;

pub(crate) use cgroup::{cpu_quota, memory_limit};

use crate::health::{Health, Reading};
use crate::watch::source::{Description, Reported, Source};
use dyno_record::model::SourceKind;
use part::Part;
use std::path::{Path, PathBuf};

/// The machine, and its processes and folders of interest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSubject {
    /// Host name, for the description.
    pub hostname: String,
    /// Whether a server under test runs on this machine.
    pub of_server: bool,
    /// Processes to watch, by the names that their metrics carry, such as `client` or `pair-0`.
    pub processes: Vec<(String, u32)>,
    /// Ports of the processes that may be restarted: after such a process has ended, the one that
    /// listens on its port is watched instead.
    pub ports: Vec<(String, u16)>,
    /// Why a process of interest is not among `processes`.
    pub unknown_process: Option<Health>,
    /// Folders whose devices are marked as holding data. They need not exist yet.
    pub data_folders: Vec<PathBuf>,
    /// Why a data folder is not among `data_folders`.
    pub unknown_folder: Option<Health>,
}

/// Watches this machine as it appears to this process: in a container, that is the container's
/// network and the machine's CPUs and disks.
pub struct Host {
    description: Description,
    /// Parts by their names among the missing ones.
    parts: Vec<(&'static str, Box<dyn Part>)>,
    unknown_folder: Option<Health>,
}

impl Host {
    /// A source named `host` that reads the file tree below `root`, which is `/` except in tests.
    /// Reads nothing yet.
    pub fn new(root: &Path, subject: HostSubject) -> Host {
        // Sensors come last: reading them can take long, and the other parts should be close to the
        // reading's time.
        let (processes, ports) = (subject.processes, &subject.ports);
        let processes = process::Processes::new(root, processes, ports, subject.unknown_process);
        let parts: Vec<(&str, Box<dyn Part>)> = vec![
            ("cpu", Box::new(cpu::Cpus::new(root))),
            ("pressure", Box::new(pressure::Pressure::new(root))),
            ("disk", Box::new(disk::Disks::new(root, subject.data_folders))),
            ("network", Box::new(network::Network::new(root))),
            ("tcp", Box::new(tcp::Tcp::new(root))),
            ("process", Box::new(processes)),
            ("memory", Box::new(memory::Memory::new(root))),
            ("paging", Box::new(paging::Paging::new(root))),
            ("load_average", Box::new(activity::LoadAverage::new(root))),
            ("frequency", Box::new(sensors::Frequency::new(root))),
            ("temperature", Box::new(sensors::Temperature::new(root))),
        ];
        Host {
            description: Description {
                name: "host".to_owned(),
                kind: SourceKind::Host,
                subject: subject.hostname,
                of_server: subject.of_server,
            },
            parts,
            unknown_folder: subject.unknown_folder,
        }
    }
}

impl Source for Host {
    fn description(&self) -> Description {
        self.description.clone()
    }

    fn read(&mut self, at_s: f64) -> Reading<Reported> {
        let mut reported = Reported::default();
        if let Some(health) = &self.unknown_folder {
            reported.miss("storage", health.clone());
        }
        for (name, part) in &mut self.parts {
            if let Err(health) = part.read(at_s, &mut reported) {
                reported.miss(name, health);
            }
        }
        if reported.values.is_empty() {
            let reasons = reported.missing.into_iter().map(|(_, health)| health);
            let nothing =
                || Health::Failed { reason: "no metrics of the machine could be read".to_owned() };
            return Err(reasons.max().unwrap_or_else(nothing));
        }
        Ok(reported)
    }
}
