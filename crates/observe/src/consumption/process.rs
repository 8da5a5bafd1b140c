//! Counters of a server's process.
//! Sources: `proc_pid_stat(5)`, `proc_pid_status(5)`, `proc_pid_io(5)`.

use super::known::Known;
use crate::host::{field, text};
use crate::process::ticks_per_s;
use crate::stat::ProcessStat;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Context switches of each live thread: the kernel does not add them up.
pub(super) type Switches = BTreeMap<u32, u64>;

/// Counters of one process.
#[derive(Debug)]
pub(super) struct ProcessCounters {
    number: u32,
    start_ticks: u64,
    cpu_ticks: u64,
    resident_bytes: u64,
    peak_bytes: u64,
    /// Bytes read and written; absent if only the owner may read them.
    io: Option<[u64; 2]>,
}

/// Growth of the counters, summed over all processes.
#[derive(Debug, Default)]
pub(super) struct ProcessGrowth {
    pub(super) cpu_s: f64,
    pub(super) cpu_error_s: f64,
    pub(super) resident_bytes: u64,
    pub(super) peak_bytes: u64,
    pub(super) read_bytes: Option<u64>,
    pub(super) written_bytes: Option<u64>,
}

impl ProcessCounters {
    pub(super) fn read(root: &Path, process: u32) -> Known<Self> {
        let folder = format!("proc/{process}");
        let read = |name: &str| {
            let found = text(root, &format!("{folder}/{name}"));
            found.map_err(|health| health.reason().to_owned())
        };
        let not_understood = |name: &str| format!("`/{folder}/{name}` has an unknown format");
        let stat = ProcessStat::parse(&read("stat")?).ok_or_else(|| not_understood("stat"))?;
        let status = read("status")?;
        let memory = |name: &str| {
            let number = field(&status, name)?.strip_suffix("kB")?.trim();
            Some(number.parse::<u64>().ok()? * 1024)
        };
        let (resident, peak) =
            memory("VmRSS").zip(memory("VmHWM")).ok_or_else(|| not_understood("status"))?;
        let io = read("io").ok().and_then(|io| {
            let bytes = |name: &str| field(&io, name)?.parse::<u64>().ok();
            Some([bytes("read_bytes")?, bytes("write_bytes")?])
        });
        Ok(ProcessCounters {
            number: process,
            start_ticks: stat.start_ticks,
            cpu_ticks: stat.user_ticks + stat.system_ticks,
            resident_bytes: resident,
            peak_bytes: peak,
            io,
        })
    }
}

/// Context switches of the threads of a process. Reads many files, so it takes longer than all
/// other counters.
pub(super) fn switches(root: &Path, process: u32) -> Switches {
    let tasks = root.join(format!("proc/{process}/task"));
    let entries = fs::read_dir(tasks).into_iter().flatten().flatten();
    let of_one = |entry: fs::DirEntry| {
        let thread: u32 = entry.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let count = |name: &str| field(&status, name)?.parse::<u64>().ok();
        let both = count("voluntary_ctxt_switches")? + count("nonvoluntary_ctxt_switches")?;
        Some((thread, both))
    };
    entries.filter_map(of_one).collect()
}

/// Growth of context switches, summed over all processes. Threads that have ended are not included.
pub(super) fn more_switches(first: &[Switches], last: &[Switches]) -> u64 {
    let of_one = |(before, now): (&Switches, &Switches)| -> u64 {
        let of_thread = |(thread, count): (&u32, &u64)| {
            let known = before.get(thread).copied().unwrap_or(0);
            count.saturating_sub(known)
        };
        now.iter().map(of_thread).sum()
    };
    first.iter().zip(last).map(of_one).sum()
}

/// Growth of the counters, summed over all processes.
pub(super) fn growth(first: &[ProcessCounters], last: &[ProcessCounters]) -> Known<ProcessGrowth> {
    let ticks_per_s = ticks_per_s();
    let mut all =
        ProcessGrowth { read_bytes: Some(0), written_bytes: Some(0), ..ProcessGrowth::default() };
    for (before, now) in first.iter().zip(last) {
        if before.start_ticks != now.start_ticks {
            return Err(format!("process {} ended", before.number));
        }
        let ticks = now.cpu_ticks.saturating_sub(before.cpu_ticks);
        all.cpu_s += ticks as f64 / ticks_per_s;
        // User and system time are rounded, each at both ends.
        all.cpu_error_s += 2.0 / ticks_per_s;
        all.resident_bytes += now.resident_bytes;
        all.peak_bytes += now.peak_bytes;
        let by = |place: usize| {
            let (before, now) = before.io.zip(now.io)?;
            Some(now[place].saturating_sub(before[place]))
        };
        all.read_bytes = all.read_bytes.zip(by(0)).map(|(sum, one)| sum + one);
        all.written_bytes = all.written_bytes.zip(by(1)).map(|(sum, one)| sum + one);
    }
    Ok(all)
}
