//! Merges the windows of the workers into recording windows, for all pairs together and by pair.

use crate::clock::SECOND_NS;
use crate::core::Handover;
use crate::error::LoadError;
use crate::job::{OnEnded, ProcessUsage};
use crate::recorder::Part;
use dyno_record::interval::IntervalRecord;
use dyno_record::model::PhaseKind;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

/// Length of a recording window.
pub const WINDOW_NS: u64 = SECOND_NS;

/// One recording window, for all pairs together and by pair.
pub struct Window {
    /// All pairs together: counts added, histograms merged, CPU time of the whole process.
    pub merged: IntervalRecord,
    /// Windows by pair, if there are several: absent if a pair did not take part. After the load phase, all have the
    /// length of `merged`, and a finished pair has an empty window, so that the pairs' rates add up to the total rate.
    /// CPU time is the CPU time of the pair's worker threads.
    pub pairs: Vec<Option<IntervalRecord>>,
}

/// Receives the windows of a run.
pub type Sink<'a> =
    &'a mut dyn FnMut(Window) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Merges the windows of all workers.
pub(crate) struct Collector {
    workers: Vec<WorkerQueue>,
    pair_count: usize,
    /// By pair: the last phase that it took part in.
    last_phases: Vec<Option<PhaseKind>>,
    spares: Vec<Sender<Box<Part>>>,
    usage: Option<fn() -> ProcessUsage>,
    last_usage: ProcessUsage,
    /// Called when every worker has ended.
    on_ended: Option<OnEnded>,
}

#[derive(Default)]
struct WorkerQueue {
    pair: usize,
    parts: VecDeque<Box<Part>>,
    finished: bool,
}

impl Collector {
    pub(crate) fn new(
        pair_count: usize,
        pairs: Vec<usize>,
        spares: Vec<Sender<Box<Part>>>,
        usage: Option<fn() -> ProcessUsage>,
        on_ended: Option<OnEnded>,
    ) -> Self {
        let queue = |pair| WorkerQueue { pair, ..WorkerQueue::default() };
        Collector {
            workers: pairs.into_iter().map(queue).collect(),
            pair_count,
            last_phases: vec![None; pair_count],
            spares,
            usage,
            last_usage: usage.map(|usage| usage()).unwrap_or_default(),
            on_ended,
        }
    }

    /// Receives until every worker has ended. After an error of `sink`, it stops the run and discards the rest.
    pub(crate) fn collect(
        &mut self,
        handovers: &Receiver<Handover>,
        sink: Sink<'_>,
        stop: &AtomicBool,
    ) -> Result<(), LoadError> {
        let mut failure = None;
        while let Ok(handover) = handovers.recv() {
            let queue = &mut self.workers[handover.worker as usize];
            queue.parts.extend(handover.part);
            queue.finished = handover.last;
            if self.workers.iter().all(|worker| worker.finished)
                && let Some(on_ended) = self.on_ended.take()
            {
                on_ended();
            }
            while let Some(window) = self.next_complete() {
                if failure.is_none()
                    && !is_void(&window.merged)
                    && let Err(error) = sink(window)
                {
                    stop.store(true, Ordering::Relaxed);
                    failure = Some(LoadError::Sink(error));
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// The earliest window that no worker can still add to.
    fn next_complete(&mut self) -> Option<Window> {
        if self.workers.iter().any(|worker| worker.parts.is_empty() && !worker.finished) {
            return None;
        }
        // Windows of a later phase start later, so the start alone orders them.
        let start_ns = self
            .workers
            .iter()
            .filter_map(|worker| worker.parts.front())
            .map(|part| part.start_ns)
            .min()?;
        let fronts = self.workers.iter().filter_map(|one| one.parts.front());
        let fronts = fronts.filter(|part| part.start_ns == start_ns);
        let end_ns = fronts.map(|part| part.end_ns).max()?;
        let mut merged: Option<IntervalRecord> = None;
        let mut by_pair: Vec<Option<IntervalRecord>> = Vec::new();
        if self.pair_count > 1 {
            by_pair.resize_with(self.pair_count, || None);
        }
        for (worker, spares) in self.workers.iter_mut().zip(&self.spares) {
            if worker.parts.front().is_none_or(|part| part.start_ns != start_ns) {
                continue;
            }
            let Some(mut part) = worker.parts.pop_front() else {
                continue;
            };
            part.think_until(end_ns);
            let mine = by_pair.get_mut(worker.pair);
            for sum in [Some(&mut merged), mine].into_iter().flatten() {
                part.add_to(sum.get_or_insert_with(|| part.window()));
            }
            // A worker that has ended does not need its window back.
            let _ = spares.send(part);
        }
        let merged = self.with_usage(merged?);
        let pairs = by_pair
            .into_iter()
            .zip(&mut self.last_phases)
            .map(|(pair, last)| in_common_window(pair, last, &merged))
            .collect();
        Some(Window { merged, pairs })
    }

    fn with_usage(&mut self, mut interval: IntervalRecord) -> IntervalRecord {
        let Some(usage) = self.usage else {
            return interval;
        };
        let usage = usage();
        let counts = &mut interval.counts;
        counts.cpu_user_ns = usage.user_ns.saturating_sub(self.last_usage.user_ns);
        counts.cpu_system_ns = usage.system_ns.saturating_sub(self.last_usage.system_ns);
        counts.max_rss_bytes = usage.max_rss_bytes;
        self.last_usage = usage;
        interval
    }
}

/// The window of a pair, with the length of the merged window. In the load phase, a pair is done when it has loaded its
/// documents. In other phases it counts until the last pair has ended, because it could have done more in that time.
fn in_common_window(
    pair: Option<IntervalRecord>,
    last_phase: &mut Option<PhaseKind>,
    merged: &IntervalRecord,
) -> Option<IntervalRecord> {
    let took_part = *last_phase == Some(merged.phase);
    if pair.is_some() {
        *last_phase = Some(merged.phase);
    }
    if merged.phase == PhaseKind::Load {
        return pair;
    }
    let interval = match pair {
        Some(pair) => pair,
        None if took_part => IntervalRecord::empty(merged.phase, merged.index, merged.start_ns),
        None => return None,
    };
    Some(IntervalRecord { duration_ns: merged.duration_ns, ..interval })
}

/// A last window without length or content: the phase ended with the window before.
fn is_void(interval: &IntervalRecord) -> bool {
    let counts = &interval.counts;
    interval.duration_ns == 0
        && counts.succeeded + counts.failed + counts.arrivals.due + counts.reconnects == 0
}
