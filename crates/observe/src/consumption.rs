//! Resources that the servers, their devices and this machine's processors used between two
//! instants, as differences of exact kernel and server counters.

mod device;
mod energy;
mod known;
mod process;
mod server;

use dyno_record::consumption::{
    Consumption, Counted, CountedBy, DeviceUse, EnergyUse, NetworkUse, ReadTime, ReadTimes, Unknown,
};
use dyno_record::model::PhaseKind;
use std::path::{Path, PathBuf};

use device::{Devices, SummedCounters};
use energy::Rapl;
pub use known::Known;
use process::{ProcessCounters, Switches};
use server::ServerGrowth;
pub use server::{ServerCounters, server_counters, write_back};

/// The processes, folders and energy to account for.
#[derive(Clone, Debug)]
pub struct ConsumptionSubject {
    /// Processes of the data-bearing servers, or why they cannot be read.
    pub processes: Known<Vec<u32>>,
    /// Data folders of these servers, or why their devices are unknown.
    pub data_folders: Known<Vec<PathBuf>>,
    /// Whether the servers run on this machine; only then is its energy the energy of their work.
    pub is_local: bool,
}

/// Reads the consumption counters.
#[derive(Debug)]
pub struct ConsumptionCounters {
    root: PathBuf,
    processes: Known<Vec<u32>>,
    devices: Known<Devices>,
    energy: Known<Rapl>,
}

/// Counter values at one instant.
#[derive(Debug)]
pub struct CountersAt {
    kernel_read: ReadTime,
    servers_read: ReadTime,
    processes: Known<Vec<ProcessCounters>>,
    devices: Known<SummedCounters>,
    energy: Known<EnergyUse>,
    servers: Vec<Known<ServerCounters>>,
    /// Context switches of the threads of each process; read only if a server does not report its
    /// own.
    switches: Option<Vec<Switches>>,
}

impl ConsumptionCounters {
    /// Creates a reader for the machine with the file tree `root`, which is `/` except in tests.
    pub fn new(root: &Path, subject: ConsumptionSubject) -> Self {
        let elsewhere = "the servers run on another machine";
        ConsumptionCounters {
            root: root.to_owned(),
            processes: subject.processes,
            devices: subject.data_folders.and_then(|folders| Devices::find(root, &folders)),
            energy: match subject.is_local {
                true => Rapl::find(root),
                false => Err(elsewhere.to_owned()),
            },
        }
    }

    /// Reads the energy counters, which wrap around within minutes.
    pub fn keep_up(&mut self) {
        if let Ok(energy) = &mut self.energy {
            energy.keep_up();
        }
    }

    /// Reads all counters. The servers are asked last because an answer takes a while under load
    /// and would delay the kernel's readings. `now_s` is the clock of the run.
    pub fn read(
        &mut self,
        now_s: &dyn Fn() -> f64,
        ask: &mut dyn FnMut() -> Vec<Known<ServerCounters>>,
    ) -> CountersAt {
        let from_s = now_s();
        let processes = match &self.processes {
            Err(reason) => Err(reason.clone()),
            Ok(all) => {
                all.iter().map(|process| ProcessCounters::read(&self.root, *process)).collect()
            }
        };
        let energy = match &mut self.energy {
            Err(reason) => Err(reason.clone()),
            Ok(energy) => {
                energy.keep_up();
                energy.total()
            }
        };
        let devices = self.devices.as_ref().map_err(String::clone);
        let devices = devices.and_then(Devices::read);
        let between_s = now_s();
        let servers = ask();
        let tell = server::tell_switches(&servers);
        let switches = match &self.processes {
            Ok(all) if !tell => Some(all.iter().map(|one| self.switches(*one)).collect()),
            _ => None,
        };
        CountersAt {
            kernel_read: ReadTime { from_s, until_s: between_s },
            servers_read: ReadTime { from_s: between_s, until_s: now_s() },
            processes,
            devices,
            energy,
            servers,
            switches,
        }
    }

    fn switches(&self, process: u32) -> Switches {
        process::switches(&self.root, process)
    }

    /// Bytes that the devices have written so far.
    ///
    /// # Errors
    /// Why the counters cannot be read.
    pub fn written_bytes(&self) -> Known<u64> {
        let devices = self.devices.as_ref().map_err(String::clone)?;
        Ok(devices.read()?.written_bytes())
    }
}

impl CountersAt {
    /// Bytes that the devices had written at this instant.
    pub fn written_bytes(&self) -> Option<u64> {
        self.devices.as_ref().ok().map(SummedCounters::written_bytes)
    }
}

/// Resources used from `first` to `last`.
pub fn consumption(phase: PhaseKind, first: &CountersAt, last: &CountersAt) -> Consumption {
    let mut unknown = Vec::new();
    let of_processes = both(&first.processes, &last.processes)
        .and_then(|(first, last)| process::growth(first, last));
    let of_servers = server::growth(&first.servers, &last.servers);
    let device: Option<DeviceUse> = known(
        Counted::Device,
        both(&first.devices, &last.devices).and_then(|(first, last)| first.growth(last)),
        &mut unknown,
    );
    if let Some(reason) = last.devices.as_ref().ok().and_then(SummedCounters::why_no_flushes) {
        unknown.push(Unknown { what: Counted::Flushes, reason });
    }
    let energy = both(&first.energy, &last.energy).map(|(first, last)| EnergyUse {
        energy_joules: last.energy_joules - first.energy_joules,
        domains: last.domains.clone(),
    });
    let energy = known(Counted::Energy, energy, &mut unknown);
    let of_processes = of_processes.as_ref();
    let of_servers = of_servers.as_ref();
    let cpu = match (of_processes, of_servers) {
        (Ok(found), _) => Ok((found.cpu_s, found.cpu_error_s)),
        (Err(reason), Ok(found)) => found.cpu_s.map(|cpu_s| (cpu_s, 0.0)).ok_or(reason.clone()),
        (Err(reason), Err(_)) => Err(reason.clone()),
    };
    let cpu = known(Counted::ServerCpu, cpu, &mut unknown);
    // The server's own count includes threads that have ended.
    let of_threads = first.switches.as_ref().zip(last.switches.as_ref());
    let switches =
        match (of_servers.ok().and_then(|found| found.switches), of_processes, of_threads) {
            (Some(switches), _, _) => Ok((switches, CountedBy::Servers)),
            (None, Ok(_), Some((first, last))) => {
                Ok((process::more_switches(first, last), CountedBy::Threads))
            }
            (None, Ok(_), None) => {
                Err("the servers reported it only at one end of the phase".to_owned())
            }
            (None, Err(reason), _) => Err(reason.clone()),
        };
    let switches = known(Counted::ContextSwitches, switches, &mut unknown);
    let memory = match (of_processes, of_servers) {
        (Ok(found), _) => Ok((Some(found.resident_bytes), Some(found.peak_bytes))),
        (Err(_), Ok(found)) => Ok((found.resident_bytes, found.peak_bytes)),
        (Err(reason), Err(_)) => Err(reason.clone()),
    };
    let memory = known(Counted::Memory, memory, &mut unknown);
    let network: Option<NetworkUse> =
        known(Counted::Network, reported(of_servers, |found| found.network), &mut unknown);
    let cache_misses =
        known(Counted::CacheMisses, reported(of_servers, |found| found.cache_misses), &mut unknown);
    let journal_sync_s = known(
        Counted::JournalSyncs,
        reported(of_servers, |found| found.journal_sync_s),
        &mut unknown,
    );
    let count = |counted: usize| counted as u64;
    Consumption {
        every_s: None,
        phase,
        start_s: first.kernel_read.from_s,
        end_s: last.kernel_read.from_s,
        read: Some(ReadTimes {
            kernel_at_start: first.kernel_read,
            kernel_at_end: last.kernel_read,
            servers_at_start: first.servers_read,
            servers_at_end: last.servers_read,
        }),
        processes: of_processes
            .map_or(0, |_| first.processes.as_ref().map_or(0, |all| count(all.len()))),
        servers: of_servers.map_or(0, |_| count(first.servers.len())),
        server_cpu_s: cpu.map(|(cpu_s, _)| cpu_s),
        server_cpu_error_s: cpu.map(|(_, error_s)| error_s),
        context_switches: switches.map(|(switches, _)| switches),
        context_switches_by: switches.map(|(_, by)| by),
        resident_bytes: memory.and_then(|(resident, _)| resident),
        peak_resident_bytes: memory.and_then(|(_, peak)| peak),
        server_read_bytes: of_processes.ok().and_then(|found| found.read_bytes),
        server_written_bytes: of_processes.ok().and_then(|found| found.written_bytes),
        device,
        network,
        cache_misses,
        journal_sync_s,
        dirty_at_start_bytes: server::dirty_bytes(&first.servers),
        dirty_at_end_bytes: server::dirty_bytes(&last.servers),
        energy,
        unknown,
    }
}

/// Both values, or why one of them is unknown.
fn both<'a, T>(first: &'a Known<T>, last: &'a Known<T>) -> Known<(&'a T, &'a T)> {
    match (first, last) {
        (Ok(first), Ok(last)) => Ok((first, last)),
        (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
    }
}

/// A counter of all servers, or why it is unknown.
fn reported<T>(
    of_servers: Result<&ServerGrowth, &String>,
    of: impl FnOnce(&ServerGrowth) -> Option<T>,
) -> Known<T> {
    let found = of_servers.map_err(String::clone)?;
    of(found).ok_or_else(|| "the server does not report it".to_owned())
}

/// The value if it is known; otherwise adds the reason to `unknown`.
fn known<T>(what: Counted, found: Known<T>, unknown: &mut Vec<Unknown>) -> Option<T> {
    found.map_err(|reason| unknown.push(Unknown { what, reason })).ok()
}

#[cfg(test)]
mod tests;
