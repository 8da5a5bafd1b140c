//! Determines the capacity of each device of a volume from the kernel's counters while `fio` keeps
//! it busy. The operations of `fio` itself go to the file system, which may add requests, merge
//! them, spread them over several devices, or answer from memory.

use dyno_record::disk::{DeviceCounters, DiskCapacity};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Number of parts of a measurement that are compared to estimate its error.
const PARTS: usize = 8;
/// Student's t for a 95 % interval of the mean of this many parts.
const STUDENT_T: f64 = 2.365;
/// Share of the operations at the begin and at the end that is ignored, because the measurement
/// starts and stops there.
const MARGIN_RATIO: f64 = 0.05;
/// The rest must take at least this share of `fio`'s time: a later burst was held back in memory.
const LEAST_TIME_RATIO: f64 = 0.6;
/// From this share of the operations on, they reached the devices instead of a cache.
const ARRIVED_RATIO: f64 = 0.9;
/// Requests larger by this factor were merged on the way.
const JOINED_FACTOR: f64 = 1.5;
/// From this share of its CPU time on, `fio` is the limit instead of the device.
const BUSY_RATIO: f64 = 0.9;
/// If less than this share of the time of all CPUs is idle, `fio` may have waited for a CPU.
const LEAST_IDLE_RATIO: f64 = 0.1;

/// A device by its name in `/sys/block`, and its counters. Flushes are absent if they are counted
/// elsewhere, such as for a partition.
pub type NamedCounters = (String, DeviceCounters);

/// Reads the counters of the devices that finally serve the storage's requests, or returns why it
/// cannot.
pub type Counting<'a> = &'a dyn Fn() -> Result<Vec<NamedCounters>, String>;

/// Kind of operation to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Reads,
    Writes,
    ReadBytes,
    WriteBytes,
    Flushes,
}

impl Kind {
    pub(super) const ALL: [Kind; 5] =
        [Kind::Reads, Kind::Writes, Kind::ReadBytes, Kind::WriteBytes, Kind::Flushes];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Reads => "random reads",
            Kind::Writes => "random writes",
            Kind::ReadBytes => "bytes read",
            Kind::WriteBytes => "bytes written",
            Kind::Flushes => "flushes",
        }
    }

    pub(super) fn is_of_reads(self) -> bool {
        matches!(self, Kind::Reads | Kind::ReadBytes)
    }

    fn is_of_bytes(self) -> bool {
        matches!(self, Kind::ReadBytes | Kind::WriteBytes)
    }

    /// The requests or bytes of a device so far.
    fn count(self, device: &DeviceCounters) -> u64 {
        match self {
            Kind::Reads => device.reads,
            Kind::Writes => device.writes,
            Kind::ReadBytes => device.read_bytes,
            Kind::WriteBytes => device.written_bytes,
            Kind::Flushes => device.flushes.unwrap_or(0),
        }
    }

    /// The bytes of a device so far.
    fn bytes(self, device: &DeviceCounters) -> u64 {
        match self.is_of_reads() {
            true => device.read_bytes,
            false => device.written_bytes,
        }
    }

    fn place(self, capacity: &mut DiskCapacity) -> &mut Option<f64> {
        match self {
            Kind::Reads => &mut capacity.read_per_s,
            Kind::Writes => &mut capacity.write_per_s,
            Kind::ReadBytes => &mut capacity.read_bytes_per_s,
            Kind::WriteBytes => &mut capacity.write_bytes_per_s,
            Kind::Flushes => &mut capacity.flush_per_s,
        }
    }
}

/// The counters at a time after a common origin.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) at: Duration,
    pub(super) devices: Vec<NamedCounters>,
    pub(super) cpus: CpuTicks,
}

/// Time of all CPUs together since boot, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTicks {
    /// Idle, including while a process waits for a device.
    pub(super) idle: u64,
    pub(super) all: u64,
}

impl CpuTicks {
    /// Parses the text of `/proc/stat`: `cpu` user nice system idle iowait irq softirq steal, and
    /// guests, which are included in user.
    pub(super) fn parse(text: &str) -> Option<CpuTicks> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let times: Vec<u64> =
            line.split_ascii_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(CpuTicks { idle: times.get(3)? + times.get(4)?, all: times.iter().sum() })
    }

    /// Share of the elapsed time in which the CPUs were idle; `None` if too little time has passed.
    fn idle_ratio(self, later: CpuTicks) -> Option<f64> {
        let all = later.all.checked_sub(self.all).filter(|all| *all > 0)?;
        Some(later.idle.saturating_sub(self.idle) as f64 / all as f64)
    }
}

/// Work reported by `fio`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct JobDone {
    pub(super) requests_per_s: f64,
    pub(super) bytes_per_s: f64,
    pub(super) duration_s: f64,
    /// CPU time of one of its threads, as a share of the time.
    pub(super) cpu_ratio: f64,
}

/// Measured rate of a device.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeviceRate {
    name: String,
    per_s: f64,
    uncertainty_ratio: f64,
}

/// Rate of each device while `fio` did all it could, or why the rate is not the device's limit.
/// Devices without operations are omitted.
pub(super) fn rates(kind: Kind, looks: &[Look], job: &JobDone) -> Result<Vec<DeviceRate>, String> {
    if job.cpu_ratio >= BUSY_RATIO {
        return Err("`fio` had no CPU time left; the devices may be faster".to_owned());
    }
    let (first, last) = looks.first().zip(looks.last()).ok_or("no counters were read")?;
    let sum = |look: &Look, of: fn(Kind, &DeviceCounters) -> u64| -> u64 {
        look.devices.iter().map(|(_, device)| of(kind, device)).sum()
    };
    let grown = |from: &Look, to: &Look, of| sum(to, of).saturating_sub(sum(from, of)) as f64;
    let whole = grown(first, last, Kind::count);
    let part = |look: &Look| grown(first, look, Kind::count) / whole;
    let begin = looks.iter().rposition(|look| part(look) <= MARGIN_RATIO);
    let end = looks.iter().position(|look| part(look) >= 1.0 - MARGIN_RATIO);
    let middle = begin.zip(end).and_then(|(begin, end)| looks.get(begin..=end));
    let (middle, from, to) = match middle {
        Some(middle @ [from, .., to]) if whole > 0.0 => (middle, from, to),
        _ => return Err("no request reached the devices".to_owned()),
    };
    if middle.len() <= PARTS {
        return Err("the measurement ended too soon".to_owned());
    }
    let idle_ratio = from.cpus.idle_ratio(to.cpus);
    if idle_ratio.is_none_or(|idle| idle < LEAST_IDLE_RATIO) {
        return Err("the machine's CPUs were busy; the devices may be faster".to_owned());
    }
    let seconds = (to.at - from.at).as_secs_f64();
    let per_s = grown(from, to, Kind::count) / seconds;
    let asked_per_s = match kind.is_of_bytes() {
        true => job.bytes_per_s,
        false => job.requests_per_s,
    };
    let size_factor =
        grown(from, to, Kind::bytes) / seconds / per_s / (job.bytes_per_s / job.requests_per_s);
    // Several writes may wait for one flush, and a file system may need two for a write.
    let is_of_flushes = kind == Kind::Flushes;
    if !kind.is_of_bytes() && !is_of_flushes && size_factor > JOINED_FACTOR {
        return Err("the file system merged the requests".to_owned());
    }
    let has_arrived = is_of_flushes || per_s >= asked_per_s * ARRIVED_RATIO;
    if !has_arrived || seconds < job.duration_s * LEAST_TIME_RATIO {
        return Err("a cache absorbed some of the requests".to_owned());
    }
    let each = from.devices.iter();
    let each = each.map(|(name, _)| rate(kind, name, middle));
    let each: Option<Vec<DeviceRate>> = each.collect();
    let mut each = each.ok_or("the devices changed during the measurement")?;
    each.retain(|rate| rate.per_s > 0.0);
    Ok(each)
}

/// Rate of one device over the whole time, with the error estimated from its parts; `None` if the
/// device is not present all the time.
fn rate(kind: Kind, name: &str, looks: &[Look]) -> Option<DeviceRate> {
    let count = |look: &Look| -> Option<f64> {
        let (_, device) = look.devices.iter().find(|(device, _)| device == name)?;
        Some(kind.count(device) as f64)
    };
    let between = |from: &Look, to: &Look| -> Option<f64> {
        Some((count(to)? - count(from)?) / (to.at - from.at).as_secs_f64())
    };
    let last = looks.len() - 1;
    let ends: Vec<&Look> = (0..=PARTS).map(|part| &looks[part * last / PARTS]).collect();
    let per_s = between(ends[0], ends[PARTS])?;
    let parts: Vec<f64> =
        ends.windows(2).map(|pair| between(pair[0], pair[1])).collect::<Option<_>>()?;
    let n = PARTS as f64;
    let variance = parts.iter().map(|part| (part - per_s).powi(2)).sum::<f64>() / (n - 1.0);
    Some(DeviceRate {
        name: name.to_owned(),
        per_s,
        uncertainty_ratio: STUDENT_T * (variance / n).sqrt() / per_s,
    })
}

/// Names of the devices without a rate.
pub(super) fn idle(rates: &[DeviceRate], devices: &[NamedCounters]) -> Vec<String> {
    let names = devices.iter().map(|(name, _)| name.clone());
    names.filter(|name| rates.iter().all(|rate| rate.name != *name)).collect()
}

/// Enters the rates of one kind.
pub(super) fn enter(kind: Kind, rates: &[DeviceRate], into: &mut BTreeMap<String, DiskCapacity>) {
    for rate in rates {
        let capacity = into.entry(rate.name.clone()).or_default();
        if kind == Kind::Flushes {
            // Flush rates vary more, and are not a bound whose error matters.
            let least = rate.per_s * (1.0 - rate.uncertainty_ratio);
            capacity.flush_per_s = Some(least).filter(|least| *least > 0.0);
            continue;
        }
        *kind.place(capacity) = Some(rate.per_s);
        let worst = capacity.uncertainty_ratio.unwrap_or(0.0);
        capacity.uncertainty_ratio = Some(worst.max(rate.uncertainty_ratio));
    }
}

/// Refuses loop devices that use the page cache, which would answer instead of the disk.
pub(super) fn past_page_cache(root: &Path, devices: &[NamedCounters]) -> Result<(), String> {
    let is_cached = |(name, _): &&NamedCounters| {
        let file = root.join("sys/block").join(name).join("loop/dio");
        std::fs::read_to_string(file).is_ok_and(|text| text.trim() == "0")
    };
    match devices.iter().find(is_cached) {
        Some((name, _)) => Err(format!(
            "`{name}` uses the page cache because its file does not support direct I/O"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
