//! What each device of a volume can do at most, by what the kernel counted of it while `fio` kept it busy. The operations of
//! `fio` itself are those of the file system: it may add requests, join them, spread them over several devices, or answer from
//! memory.

use std::path::Path;
use std::time::Duration;

/// Parts of a measurement that are compared for its error.
const PARTS: usize = 8;
/// Student's t for a 95 % interval of the mean of so many parts.
const STUDENT_T: f64 = 2.365;
/// The first and the last part of what was done, in which the measurement began and ended.
const MARGIN_RATIO: f64 = 0.05;
/// The rest takes this part of the time of `fio` at least: what comes later in a burst was held back in memory.
const LEAST_TIME_RATIO: f64 = 0.6;
/// From this part of the operations on they reached the devices, and no cache answered.
const ARRIVED_RATIO: f64 = 0.9;
/// Requests larger by this factor were joined on the way.
const JOINED_FACTOR: f64 = 1.5;
/// From this part of its CPU time on, `fio` is the limit, and not the device.
const BUSY_RATIO: f64 = 0.9;
/// Less than this part of the time of all CPUs idle, and `fio` may have waited for one of them, whoever used it.
const LEAST_IDLE_RATIO: f64 = 0.1;

/// What a device has done so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceDone {
    /// Its name in `/sys/block`.
    pub name: String,
    /// Reads that have ended.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes that have ended.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Flushes that have ended; absent where they are counted elsewhere, as those of a partition are.
    pub flushes: Option<u64>,
}

/// Reads the counters of the devices at which the requests for the storage end, or says why it cannot.
pub type Counting<'a> = &'a dyn Fn() -> Result<Vec<DeviceDone>, String>;

/// What one device can do at most, if it does nothing else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceCapacity {
    /// Its name in `/sys/block`.
    pub name: String,
    /// Reads of 4 KiB per second.
    pub read_per_s: Option<f64>,
    /// Writes of 4 KiB per second.
    pub write_per_s: Option<f64>,
    /// Bytes read per second, in large requests.
    pub read_bytes_per_s: Option<f64>,
    /// Bytes written per second, likewise.
    pub write_bytes_per_s: Option<f64>,
    /// Flushes per second, each behind a write at least: the lower end of the 95 % interval.
    pub flush_per_s: Option<f64>,
    /// Half of the 95 % interval of the least certain of the others, as a part of it: how much it varied within the second or two of
    /// the measurement. What it is at another time is not known.
    pub uncertainty_ratio: Option<f64>,
}

/// What a measurement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Reads,
    Writes,
    ReadBytes,
    WriteBytes,
    Flushes,
}

impl Kind {
    pub(super) const ALL: [Kind; 5] = [
        Kind::Reads,
        Kind::Writes,
        Kind::ReadBytes,
        Kind::WriteBytes,
        Kind::Flushes,
    ];

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
    fn count(self, device: &DeviceDone) -> u64 {
        match self {
            Kind::Reads => device.reads,
            Kind::Writes => device.writes,
            Kind::ReadBytes => device.read_bytes,
            Kind::WriteBytes => device.written_bytes,
            Kind::Flushes => device.flushes.unwrap_or(0),
        }
    }

    /// The same in bytes.
    fn bytes(self, device: &DeviceDone) -> u64 {
        match self.is_of_reads() {
            true => device.read_bytes,
            false => device.written_bytes,
        }
    }

    fn place(self, capacity: &mut DeviceCapacity) -> &mut Option<f64> {
        match self {
            Kind::Reads => &mut capacity.read_per_s,
            Kind::Writes => &mut capacity.write_per_s,
            Kind::ReadBytes => &mut capacity.read_bytes_per_s,
            Kind::WriteBytes => &mut capacity.write_bytes_per_s,
            Kind::Flushes => &mut capacity.flush_per_s,
        }
    }
}

/// The counters at a time since some begin.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) at: Duration,
    pub(super) devices: Vec<DeviceDone>,
    pub(super) cpus: CpuTicks,
}

/// What all CPUs together have done since the machine runs, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTicks {
    /// Without work, also while a process waits for a device.
    pub(super) idle: u64,
    pub(super) all: u64,
}

impl CpuTicks {
    /// From the text of `/proc/stat`: `cpu` user nice system idle iowait irq softirq steal, and guests, which are in user.
    pub(super) fn parse(text: &str) -> Option<CpuTicks> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let times: Vec<u64> = line
            .split_ascii_whitespace()
            .take(8)
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?;
        Some(CpuTicks {
            idle: times.get(3)? + times.get(4)?,
            all: times.iter().sum(),
        })
    }

    /// The part of the time between that they were idle; `None` if it is too short to tell.
    fn idle_ratio(self, later: CpuTicks) -> Option<f64> {
        let all = later.all.checked_sub(self.all).filter(|all| *all > 0)?;
        Some(later.idle.saturating_sub(self.idle) as f64 / all as f64)
    }
}

/// What `fio` says that it did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct JobDone {
    pub(super) requests_per_s: f64,
    pub(super) bytes_per_s: f64,
    pub(super) duration_s: f64,
    /// CPU time of one of its threads, as a part of the time.
    pub(super) cpu_ratio: f64,
}

/// What a device did per second.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DeviceRate {
    name: String,
    per_s: f64,
    uncertainty_ratio: f64,
}

/// What each device did per second while `fio` did all it could, or why that is not what the device can do. One that did nothing
/// is left out.
pub(super) fn rates(kind: Kind, looks: &[Look], job: &JobDone) -> Result<Vec<DeviceRate>, String> {
    if job.cpu_ratio >= BUSY_RATIO {
        return Err("`fio` had no CPU time left, and the devices may do more".to_owned());
    }
    let (first, last) = looks
        .first()
        .zip(looks.last())
        .ok_or("nothing was counted")?;
    let sum = |look: &Look, of: fn(Kind, &DeviceDone) -> u64| -> u64 {
        look.devices.iter().map(|device| of(kind, device)).sum()
    };
    let grown = |from: &Look, to: &Look, of| sum(to, of).saturating_sub(sum(from, of)) as f64;
    let whole = grown(first, last, Kind::count);
    let part = |look: &Look| grown(first, look, Kind::count) / whole;
    let begin = looks.iter().rposition(|look| part(look) <= MARGIN_RATIO);
    let end = looks
        .iter()
        .position(|look| part(look) >= 1.0 - MARGIN_RATIO);
    let middle = begin
        .zip(end)
        .and_then(|(begin, end)| looks.get(begin..=end));
    let (middle, from, to) = match middle {
        Some(middle @ [from, .., to]) if whole > 0.0 => (middle, from, to),
        _ => return Err("no request reached the devices".to_owned()),
    };
    if middle.len() <= PARTS {
        return Err("it ended too soon".to_owned());
    }
    let idle_ratio = from.cpus.idle_ratio(to.cpus);
    if idle_ratio.is_none_or(|idle| idle < LEAST_IDLE_RATIO) {
        return Err("the CPUs of the machine were busy, and the devices may do more".to_owned());
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
        return Err("the file system joined the requests".to_owned());
    }
    let has_arrived = is_of_flushes || per_s >= asked_per_s * ARRIVED_RATIO;
    if !has_arrived || seconds < job.duration_s * LEAST_TIME_RATIO {
        return Err("a cache took part of the requests".to_owned());
    }
    let each = from.devices.iter();
    let each = each.map(|device| rate(kind, &device.name, middle));
    let each: Option<Vec<DeviceRate>> = each.collect();
    let mut each = each.ok_or("the devices changed meanwhile")?;
    each.retain(|rate| rate.per_s > 0.0);
    Ok(each)
}

/// What one device did per second, by all of this time, with the error that its parts show; `None` if it is not there all the
/// time.
fn rate(kind: Kind, name: &str, looks: &[Look]) -> Option<DeviceRate> {
    let count = |look: &Look| -> Option<f64> {
        let device = look.devices.iter().find(|device| device.name == name)?;
        Some(kind.count(device) as f64)
    };
    let between = |from: &Look, to: &Look| -> Option<f64> {
        Some((count(to)? - count(from)?) / (to.at - from.at).as_secs_f64())
    };
    let last = looks.len() - 1;
    let ends: Vec<&Look> = (0..=PARTS)
        .map(|part| &looks[part * last / PARTS])
        .collect();
    let per_s = between(ends[0], ends[PARTS])?;
    let pairs = ends.windows(2);
    let parts: Vec<f64> = pairs
        .map(|pair| between(pair[0], pair[1]))
        .collect::<Option<_>>()?;
    let n = PARTS as f64;
    let variance = parts.iter().map(|part| (part - per_s).powi(2)).sum::<f64>() / (n - 1.0);
    Some(DeviceRate {
        name: name.to_owned(),
        per_s,
        uncertainty_ratio: STUDENT_T * (variance / n).sqrt() / per_s,
    })
}

/// Names of the devices of which these rates have none.
pub(super) fn idle(rates: &[DeviceRate], devices: &[DeviceDone]) -> Vec<String> {
    let names = devices.iter().map(|device| device.name.clone());
    names
        .filter(|name| rates.iter().all(|rate| rate.name != *name))
        .collect()
}

/// Enters what was measured of one kind.
pub(super) fn enter(kind: Kind, rates: &[DeviceRate], into: &mut Vec<DeviceCapacity>) {
    for rate in rates {
        let place = into.iter().position(|one| one.name == rate.name);
        let place = place.unwrap_or_else(|| {
            into.push(DeviceCapacity {
                name: rate.name.clone(),
                ..DeviceCapacity::default()
            });
            into.len() - 1
        });
        let capacity = &mut into[place];
        if kind == Kind::Flushes {
            // They vary more, and are no bound whose error matters.
            let least = rate.per_s * (1.0 - rate.uncertainty_ratio);
            capacity.flush_per_s = Some(least).filter(|least| *least > 0.0);
            continue;
        }
        *kind.place(capacity) = Some(rate.per_s);
        let worst = capacity.uncertainty_ratio.unwrap_or(0.0);
        capacity.uncertainty_ratio = Some(worst.max(rate.uncertainty_ratio));
    }
}

/// Refuses loop devices that go through the page cache, which would answer for the disk.
pub(super) fn past_page_cache(root: &Path, devices: &[DeviceDone]) -> Result<(), String> {
    let is_cached = |device: &&DeviceDone| {
        let file = root.join("sys/block").join(&device.name).join("loop/dio");
        std::fs::read_to_string(file).is_ok_and(|text| text.trim() == "0")
    };
    match devices.iter().find(is_cached) {
        Some(device) => Err(format!(
            "`{}` reads and writes its file through the page cache: there is no direct I/O there",
            device.name
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
