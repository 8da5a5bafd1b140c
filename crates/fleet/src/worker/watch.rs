//! Reads the machine of an agent while it works, and sends what it read to the controller.

use crate::agent::Readings;
use crate::clock::monotonic_ns;
use dyno_observe::watch::{Host, HostSubject, ReadingStatus, Source, thread_cpu_s};
use dyno_plan::Plan;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long somebody waits for a reading: for the last one of a stage, or at the end for one that is under way.
const READING_LIMIT: Duration = Duration::from_secs(1);

/// A thread that reads this machine until this value is dropped.
pub(super) struct HostWatch {
    interval: Duration,
    /// Asks for a reading now, and says where to tell that it is on its way; closed, it ends the thread.
    ask: Option<Sender<SyncSender<()>>>,
    thread: Option<JoinHandle<()>>,
}

impl HostWatch {
    /// As the plan wants it: nothing if it wants no metrics of hosts, or if the system has no thread left.
    pub(super) fn start(plan: &Plan, subject: HostSubject, readings: Readings) -> Option<Self> {
        if !plan.observe.host {
            return None;
        }
        let interval = plan.observe.interval.0;
        let (ask, asked) = channel::<SyncSender<()>>();
        let source = Host::new(Path::new("/"), subject);
        let thread = std::thread::Builder::new().name("observer".to_owned());
        let thread = thread.spawn(move || {
            let mut reader = Reader {
                source: Box::new(source),
                readings,
                start: Instant::now(),
            };
            let mut beat = 0;
            reader.read();
            loop {
                // After a reading that took long, or that Redis did not take at once, the beat goes on as it was.
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
                        // Nobody waits any more for what took too long.
                        let _ = answer.try_send(());
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        Some(HostWatch {
            interval,
            ask: Some(ask),
            thread: Some(thread.ok()?),
        })
    }

    /// Reads now, besides the beat: the last reading of a stage is about its end.
    pub(super) fn read_now(&self) {
        let (answer, answered) = sync_channel(1);
        let is_asked = self
            .ask
            .as_ref()
            .is_some_and(|ask| ask.send(answer).is_ok());
        if is_asked {
            let _ = answered.recv_timeout(READING_LIMIT);
        }
    }

    /// Ends it without a wait: nobody is there whom a late reading could disturb.
    pub(super) fn abandon(mut self) {
        self.thread = None;
    }

    /// Whether it does what the plan wants.
    pub(super) fn fits(&self, plan: &Plan) -> bool {
        plan.observe.host && plan.observe.interval.0 == self.interval
    }
}

impl Drop for HostWatch {
    fn drop(&mut self) {
        self.ask = None;
        let deadline = Instant::now() + READING_LIMIT;
        if let Some(thread) = self.thread.take() {
            // One that hangs is left behind.
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
        let account = serde_json::to_value(account).expect("figures and texts are plain data");
        // The next one goes again; the controller counts those that it lacks.
        let _ = self.readings.send(read_ns, &values, account);
    }
}
