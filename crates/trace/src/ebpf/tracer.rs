//! A trace from its start to its end.

use super::collect::Collector;
use super::cost::{self, Counting};
use super::layout::{self, Counter};
use super::maps::Maps;
use super::names::FileTable;
use super::totals::KernelTotals;
use super::{caveats, devices, load, object, tree};
use crate::error::TraceError;
use crate::hooks::{self, Choice};
use crate::kernel::{Kernel, LiveKernel};
use crate::probes::Attachment;
use crate::settings::{FilePatterns, Settings};
use crate::traced::{Sink, Traced};
use dyno_record::io_trace::document::{FileEntry, TraceMode};
use libbpf_rs::{Link, Object, RingBuffer, RingBufferBuilder};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::os::fd::AsFd;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Requests issued this long before the end of a trace have ended, even if the kernel did not report it.
const LONG_REQUEST: Duration = Duration::from_secs(1);

/// A running trace. It ends when it is stopped or dropped, or when its process ends.
#[derive(Debug)]
pub struct Tracer {
    // Dropped first, so that no program runs while the rest is dropped.
    links: Vec<Link>,
    ring: RingBuffer<'static>,
    wakeup: Epoll,
    collector: Arc<Mutex<Collector>>,
    kernel_totals: Option<KernelTotals>,
    maps: Maps,
    object: Object,
    counting: Option<Counting>,
    choice: Choice,
    settings: Settings,
    zero_ns: u64,
    start_ns: i64,
}

impl Tracer {
    /// Begins a trace. Without processes, nothing is traced until [`Tracer::spawn`] or [`Tracer::follow`].
    ///
    /// # Errors
    /// The settings are invalid, a process does not exist, or tracing is impossible.
    pub fn start(settings: Settings) -> Result<Tracer, TraceError> {
        settings.check()?;
        let kernel = LiveKernel::new();
        kernel.admits()?;
        let processes = &settings.filter.processes;
        if let Some(&process) = processes.iter().find(|&&process| !tree::exists(process)) {
            return Err(TraceError::NoProcess { process });
        }
        let choice = hooks::choose(&kernel, &settings.filter, settings.block, settings.method)?;
        let attachments = load::attachments_of(&choice);
        let mut object = load::load(&settings, &choice, &attachments)?;
        let maps = Maps::from_object(&mut object)?;
        let zero_ns = settings.zero_monotonic_ns.unwrap_or_else(monotonic_ns);
        let files = FileTable::new(FilePatterns::new(&settings.filter.files)?);
        let collector = Arc::new(Mutex::new(Collector::new(zero_ns, files)));
        let ring = ring_of(&maps, &collector)?;
        let mut tracer = Tracer {
            links: Vec::new(),
            ring,
            wakeup: wakeup_of(&maps)?,
            collector,
            kernel_totals: None,
            maps,
            object,
            counting: settings.measure_cost.then(Counting::start).flatten(),
            choice,
            settings,
            zero_ns,
            start_ns: 0,
        };
        tracer.attach(&attachments)?;
        tracer.start_ns = tracer.now();
        if tracer.settings.mode == TraceMode::Aggregated {
            let map = object::map(&mut tracer.object, "totals")?;
            let ends = object::map(&mut tracer.object, "ends")?;
            tracer.kernel_totals = Some(KernelTotals::new(map, ends, tracer.start_ns));
        }
        Ok(tracer)
    }

    /// Attaches process programs first, so that children born while the rest is attached are not missed.
    fn attach(&mut self, attachments: &[Attachment]) -> Result<(), TraceError> {
        let (first, rest): (Vec<_>, Vec<_>) = attachments
            .iter()
            .partition(|each| crate::probes::process::PROGRAMS.contains(&each.program));
        for attachment in first {
            self.links.extend(object::attach(&self.object, attachment)?);
        }
        for process in self.settings.filter.processes.clone() {
            self.follow(process)?;
        }
        for attachment in rest {
            self.links.extend(object::attach(&self.object, attachment)?);
        }
        Ok(())
    }

    /// Starts a command and traces it from its first instruction.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn spawn(&mut self, command: &mut Command) -> Result<Child, TraceError> {
        let own = std::process::id();
        let is_traced = self.settings.filter.processes.contains(&own);
        if !is_traced {
            self.maps.set_process(own, layout::CHILDREN_ONLY)?;
        }
        let child = command.spawn();
        if !is_traced {
            self.maps.forget_process(own);
        }
        child.map_err(|error| TraceError::Command {
            program: command.get_program().to_string_lossy().into_owned(),
            reason: error.to_string(),
        })
    }

    /// Traces another process and all its descendants.
    ///
    /// # Errors
    /// The process does not exist.
    pub fn follow(&mut self, process: u32) -> Result<(), TraceError> {
        if !tree::exists(process) {
            return Err(TraceError::NoProcess { process });
        }
        let mut known = Vec::new();
        // A child may be born between the scan and the entry of its parent: repeat until nothing is new.
        loop {
            let new: Vec<u32> = tree::with_descendants(&[process])
                .into_iter()
                .filter(|process| !known.contains(process))
                .collect();
            if new.is_empty() {
                break;
            }
            for &process in &new {
                self.maps.set_process(process, layout::TRACED)?;
            }
            known.extend(new);
        }
        if self.settings.block {
            let patterns = FilePatterns::new(&self.settings.filter.files)?;
            for device in devices_of_open_files(&known, &patterns) {
                lock(&self.collector).take_device(device);
                self.maps.want_device(device)?;
            }
        }
        Ok(())
    }

    /// Passes new events, after waiting for `timeout`, or until the buffer is so full that it should be emptied.
    ///
    /// # Errors
    /// The kernel refuses to provide the events.
    pub fn poll(&mut self, sink: &mut dyn Sink, timeout: Duration) -> Result<(), TraceError> {
        let timeout = EpollTimeout::try_from(timeout).unwrap_or(EpollTimeout::MAX);
        // An interruption by a signal is also a reason to read.
        let _woken = self.wakeup.wait(&mut [EpollEvent::empty()], timeout);
        self.drain(sink)?;
        let now = self.now();
        if let Some(totals) = self.kernel_totals.as_mut().filter(|totals| totals.is_due(now)) {
            totals.read(now).map_err(|error| object::refused("the table of totals", &error))?;
        }
        Ok(())
    }

    /// Files so far, by index, with their current names and without sizes: for a record that is readable even if this
    /// process is killed.
    pub fn files(&self) -> Vec<FileEntry> {
        lock(&self.collector).files.entries()
    }

    /// Ends the trace and passes the remaining events.
    ///
    /// # Errors
    /// The kernel refuses to provide the events.
    pub fn stop(mut self, sink: &mut dyn Sink) -> Result<Traced, TraceError> {
        let end_ns = self.now();
        self.links.clear();
        self.drain(sink)?;
        if let Some(totals) = &mut self.kernel_totals {
            totals.read(end_ns).map_err(|error| object::refused("the table of totals", &error))?;
        }
        let (cost, misses) = cost::read(&self.object);
        let counters = self.maps.counters();
        let collector = std::mem::replace(
            &mut *lock(&self.collector),
            Collector::new(self.zero_ns, FileTable::default()),
        );
        let lost_calls = |counter| {
            let of_traced = |file| collector.files.index_of(file).is_some();
            counters.get(counter) + self.maps.lost(counter, of_traced)
        };
        let lost_block =
            self.maps.lost(Counter::LostBlock, |device| collector.wants_device(device));
        let wanted = |device| collector.wants_device(device);
        let followed =
            counters.get(Counter::UnseenEnds) + self.maps.lost(Counter::UnseenEnds, wanted);
        let unended = self.maps.unended(wanted);
        let long_ago = monotonic_ns().saturating_sub(LONG_REQUEST.as_nanos() as u64);
        let is_old = |issue_ns: &&u64| **issue_ns < long_ago;
        let unseen_ends = followed + unended.iter().filter(is_old).count() as u64;
        let kernel_totals = self.kernel_totals.take();
        let mut traced = Traced {
            zero_monotonic_ns: self.zero_ns,
            start_ns: self.start_ns,
            end_ns,
            probes: self.choice.hooks.iter().map(hooks::Hook::to_record).collect(),
            cost: self.counting.is_some().then_some(cost),
            lost_calls: lost_calls(Counter::LostCalls)
                + lost_calls(Counter::LostTotals)
                + counters.get(Counter::LostFiles),
            lost_block_requests: counters.get(Counter::LostBlock) + lost_block,
            unended_requests: followed + unended.len() as u64,
            ..Traced::default()
        };
        let unknown_offsets = collector.unknown_offsets;
        traced.calls = collector.call_count;
        traced.block_requests = collector.block_count;
        traced.totals = match kernel_totals {
            Some(totals) => totals.into_totals(&collector.files),
            None => collector.totals.into_totals(),
        };
        if self.settings.mode == TraceMode::Aggregated {
            traced.calls = traced.totals.iter().map(|total| total.calls).sum();
        }
        traced.devices = collector.devices.devices;
        traced.files = collector.files.into_entries();
        traced.caveats = caveats::from_known(&caveats::Known {
            settings: &self.settings,
            missing: &self.choice.missing,
            traced: &traced,
            counters: &counters,
            misses,
            unseen_ends,
            unknown_offsets,
        });
        Ok(traced)
    }

    fn now(&self) -> i64 {
        monotonic_ns().wrapping_sub(self.zero_ns) as i64
    }

    /// Empties the buffer piece by piece, so that memory stays bounded.
    fn drain(&mut self, sink: &mut dyn Sink) -> Result<(), TraceError> {
        const PIECE: i32 = 65_536;
        loop {
            let count = self.ring.consume_raw_n(PIECE as usize);
            if count < 0 {
                let error = std::io::Error::from_raw_os_error(-count);
                return Err(TraceError::refused("to read events", error));
            }
            let mut collector = lock(&self.collector);
            collector.hand_over(sink);
            let totals = &mut self.kernel_totals;
            for (key, slot) in std::mem::take(&mut collector.denied) {
                self.maps.judge(key, slot, layout::DENIED)?;
                totals.iter_mut().for_each(|totals| totals.free(slot.id));
            }
            // After the denials: if a file is judged twice, tracing wins.
            for (key, slot) in std::mem::take(&mut collector.allowed) {
                self.maps.judge(key, slot, layout::ALLOWED)?;
            }
            for (key, slot) in std::mem::take(&mut collector.forgotten) {
                self.maps.forget_file(key);
                totals.iter_mut().for_each(|totals| totals.free(slot.id));
            }
            for id in std::mem::take(&mut collector.deleted) {
                totals.iter_mut().for_each(|totals| totals.keep(id));
            }
            for device in std::mem::take(&mut collector.wanted_devices) {
                self.maps.want_device(device)?;
            }
            if count < PIECE {
                return Ok(());
            }
        }
    }
}

fn monotonic_ns() -> u64 {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
    time.map_or(0, |time| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

fn lock(collector: &Mutex<Collector>) -> MutexGuard<'_, Collector> {
    collector.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ring_of(
    maps: &Maps,
    collector: &Arc<Mutex<Collector>>,
) -> Result<RingBuffer<'static>, TraceError> {
    let collector = Arc::clone(collector);
    let mut builder = RingBufferBuilder::new();
    builder
        .add(&maps.events, move |bytes| {
            lock(&collector).event(bytes);
            0
        })
        .map_err(|error| object::refused("the event buffer", &error))?;
    builder.build().map_err(|error| object::refused("the event buffer", &error))
}

/// Wakes only when the programs request it, not for every event: occasional events are read once per timeout.
fn wakeup_of(maps: &Maps) -> Result<Epoll, TraceError> {
    let open = || {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        epoll.add(maps.events.as_fd(), EpollEvent::new(flags, 0))?;
        Ok(epoll)
    };
    open().map_err(|error: nix::Error| TraceError::refused("to wait for events", error))
}

/// Devices of files that the processes already have open.
fn devices_of_open_files(processes: &[u32], patterns: &FilePatterns) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;
    let mut met: Vec<u32> = Vec::new();
    let folders = processes.iter().map(|process| format!("/proc/{process}/fd"));
    for entry in
        folders.flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten())
    {
        let Ok(metadata) = std::fs::metadata(entry.path()) else {
            continue;
        };
        let matches = std::fs::read_link(entry.path())
            .is_ok_and(|path| patterns.matches(&path.to_string_lossy()));
        if metadata.is_file() && matches {
            let device = metadata.dev();
            met.push(devices::kernel_number(libc::major(device), libc::minor(device)));
        }
    }
    met.sort_unstable();
    met.dedup();
    let mountinfo = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    met.into_iter().flat_map(|device| devices::reached_from(device, &mountinfo)).collect()
}
