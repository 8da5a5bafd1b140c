//! Reads an agent's host in the background, and sends the readings to the controller.

use crate::agent::Readings;
use crate::clock::monotonic_ns;
use dyno_observe::watch::{Host, HostSubject, ReadingStatus, Source, thread_cpu_s};
use dyno_plan::Plan;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest wait for a reading: the last one of a stage, or one in progress at the end.
const READING_LIMIT: Duration = Duration::from_secs(1);

/// A thread that reads this host until the value is dropped.
pub(super) struct HostWatch {
    interval: Duration,
    /// Requests a reading now, with the channel to answer on; closing it ends the thread.
    ask: Option<Sender<SyncSender<()>>>,
    thread: Option<JoinHandle<()>>,
}

impl HostWatch {
    /// Starts reading as the plan says; `None` if it wants no host metrics, or if the thread cannot be started.
    pub(super) fn start(plan: &Plan, subject: HostSubject, readings: Readings) -> Option<Self> {
        if !plan.observe.host {
            return None;
        }
        let interval = plan.observe.interval.0;
        let (ask, asked) = channel::<SyncSender<()>>();
        let source = Host::new(Path::new("/"), subject);
        let thread = std::thread::Builder::new().name("observer".to_owned());
        let thread = thread.spawn(move || {
            let mut reader = Reader { source: Box::new(source), readings, start: Instant::now() };
            let mut beat = 0;
            reader.read();
            loop {
                // After a slow reading, or one that Redis took late, keep the original beat.
                let passed = reader.start.elapsed().as_nanos() / interval.as_nanos();
                let passed = u32::try_from(passed).unwrap_or(u32::MAX);
                let next = reader.start + interval * (passed.max(beat) + 1);
                let pause = next.saturating_duration_since(Instant::now());
                match asked.recv_timeout(pause) {
                    _ if reader.readings.is_over() => return,
                    Err(RecvTimeoutError::Timeout) => {
                        beat = passed.max(beat) + 1;
                        reader.read();
                    }
                    Ok(answer) => {
                        reader.read();
                        // The requester gives up when a reading takes too long.
                        let _ = answer.try_send(());
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        Some(HostWatch { interval, ask: Some(ask), thread: Some(thread.ok()?) })
    }

    /// Takes a reading outside the beat, such as the last one of a stage.
    pub(super) fn read_now(&self) {
        let (answer, answered) = sync_channel(1);
        let is_asked = self.ask.as_ref().is_some_and(|ask| ask.send(answer).is_ok());
        if is_asked {
            let _ = answered.recv_timeout(READING_LIMIT);
        }
    }

    /// Ends the thread without waiting, where a late reading disturbs nothing.
    pub(super) fn abandon(mut self) {
        self.thread = None;
    }

    /// Whether it reads as the plan wants.
    pub(super) fn fits(&self, plan: &Plan) -> bool {
        plan.observe.host && plan.observe.interval.0 == self.interval
    }
}

impl Drop for HostWatch {
    fn drop(&mut self) {
        self.ask = None;
        let deadline = Instant::now() + READING_LIMIT;
        if let Some(thread) = self.thread.take() {
            // Leave a hanging thread behind.
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
            }
            if thread.is_finished() {
                let _ = thread.join();
            }
        }
    }
}

struct Reader {
    source: Box<dyn Source>,
    readings: Readings,
    start: Instant,
}

impl Reader {
    fn read(&mut self) {
        let read_ns = monotonic_ns();
        let lasted_s = self.start.elapsed().as_secs_f64();
        let reading = self.source.read(lasted_s);
        let (values, account) = ReadingStatus::split(reading, thread_cpu_s(), lasted_s);
        let account = serde_json::to_value(account).expect("serializable");
        // The next reading is sent again; the controller counts the missing ones.
        let _ = self.readings.send(read_ns, &values, account);
    }
}
