//! What the servers, their devices and the processors of this machine used between two instants: exact counters of the
//! kernel and of the servers, read at both.

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

/// What is counted.
#[derive(Clone, Debug)]
pub struct ConsumptionSubject {
    /// The processes of the servers that hold data, or why they cannot be read.
    pub processes: Known<Vec<u32>>,
    /// The folders of their data, or why their devices are not known.
    pub data_folders: Known<Vec<PathBuf>>,
    /// Whether the servers are on this machine, whose energy is that of their work then.
    pub is_local: bool,
}

/// Reads the counters.
#[derive(Debug)]
pub struct ConsumptionCounters {
    root: PathBuf,
    processes: Known<Vec<u32>>,
    devices: Known<Devices>,
    energy: Known<Rapl>,
}

/// The counters at one instant.
#[derive(Debug)]
pub struct CountersAt {
    kernel_read: ReadTime,
    servers_read: ReadTime,
    processes: Known<Vec<ProcessCounters>>,
    devices: Known<SummedCounters>,
    energy: Known<EnergyUse>,
    servers: Vec<Known<ServerCounters>>,
    /// Context switches of the threads of each process, where a server does not tell its own.
    switches: Option<Vec<Switches>>,
}

impl ConsumptionCounters {
    /// For a machine whose files are those below `root`, which is `/` but in tests.
    pub fn new(root: &Path, subject: ConsumptionSubject) -> Self {
        let elsewhere = "the servers run on another machine";
        ConsumptionCounters {
            root: root.to_owned(),
            processes: subject.processes,
            devices: subject
                .data_folders
                .and_then(|folders| Devices::find(root, &folders)),
            energy: match subject.is_local {
                true => Rapl::find(root),
                false => Err(elsewhere.to_owned()),
            },
        }
    }

    /// Reads what would be lost if nobody looked for minutes: the counters of energy begin again at 0.
    pub fn keep_up(&mut self) {
        if let Ok(energy) = &mut self.energy {
            energy.keep_up();
        }
    }

    /// Reads all of it, and asks the servers what they say of themselves. They come last: under load an answer takes a while,
    /// and what the kernel counts would be read that much later. `now_s` is the clock of the run.
    pub fn read(
        &mut self,
        now_s: &dyn Fn() -> f64,
        ask: &mut dyn FnMut() -> Vec<Known<ServerCounters>>,
    ) -> CountersAt {
        let from_s = now_s();
        let processes = match &self.processes {
            Err(reason) => Err(reason.clone()),
            Ok(all) => all
                .iter()
                .map(|process| ProcessCounters::read(&self.root, *process))
                .collect(),
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
            kernel_read: ReadTime {
                from_s,
                until_s: between_s,
            },
            servers_read: ReadTime {
                from_s: between_s,
                until_s: now_s(),
            },
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

    /// Bytes that the devices have written until now.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub fn written_bytes(&self) -> Known<u64> {
        let devices = self.devices.as_ref().map_err(String::clone)?;
        Ok(devices.read()?.written_bytes())
    }
}

impl CountersAt {
    /// Bytes that the devices had written.
    pub fn written_bytes(&self) -> Option<u64> {
        self.devices
            .as_ref()
            .ok()
            .map(SummedCounters::written_bytes)
    }
}

/// What was used from `first` to `last`.
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
    if let Some(reason) = last
        .devices
        .as_ref()
        .ok()
        .and_then(SummedCounters::why_no_flushes)
    {
        unknown.push(Unknown {
            what: Counted::Flushes,
            reason,
        });
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
    // The server's own count holds the threads that have ended.
    let of_threads = first.switches.as_ref().zip(last.switches.as_ref());
    let switches = match (
        of_servers.ok().and_then(|found| found.switches),
        of_processes,
        of_threads,
    ) {
        (Some(switches), _, _) => Ok((switches, CountedBy::Servers)),
        (None, Ok(_), Some((first, last))) => {
            Ok((process::more_switches(first, last), CountedBy::Threads))
        }
        (None, Ok(_), None) => Err("the servers told it at one end of the phase only".to_owned()),
        (None, Err(reason), _) => Err(reason.clone()),
    };
    let switches = known(Counted::ContextSwitches, switches, &mut unknown);
    let memory = match (of_processes, of_servers) {
        (Ok(found), _) => Ok((Some(found.resident_bytes), Some(found.peak_bytes))),
        (Err(_), Ok(found)) => Ok((found.resident_bytes, found.peak_bytes)),
        (Err(reason), Err(_)) => Err(reason.clone()),
    };
    let memory = known(Counted::Memory, memory, &mut unknown);
    let network: Option<NetworkUse> = known(
        Counted::Network,
        reported(of_servers, |found| found.network),
        &mut unknown,
    );
    let cache_misses = known(
        Counted::CacheMisses,
        reported(of_servers, |found| found.cache_misses),
        &mut unknown,
    );
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
        processes: of_processes.map_or(0, |_| {
            first.processes.as_ref().map_or(0, |all| count(all.len()))
        }),
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

/// Both, or why one of them is not known.
fn both<'a, T>(first: &'a Known<T>, last: &'a Known<T>) -> Known<(&'a T, &'a T)> {
    match (first, last) {
        (Ok(first), Ok(last)) => Ok((first, last)),
        (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
    }
}

/// What all servers tell, or why it is not known.
fn reported<T>(
    of_servers: Result<&ServerGrowth, &String>,
    of: impl FnOnce(&ServerGrowth) -> Option<T>,
) -> Known<T> {
    let found = of_servers.map_err(String::clone)?;
    of(found).ok_or_else(|| "the server does not tell".to_owned())
}

/// What is known; what is not is noted.
fn known<T>(what: Counted, found: Known<T>, unknown: &mut Vec<Unknown>) -> Option<T> {
    found
        .map_err(|reason| unknown.push(Unknown { what, reason }))
        .ok()
}

#[cfg(test)]
mod tests;
