//! Detects times in which no thread of this process ran, because it was stopped by a signal or debugger, its container
//! was frozen, or its machine paused. A server that waits for such a client is not slow.

use crate::clock::Clock;
use dyno_record::model::{Event, EventRecord};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two checks.
const TICK: Duration = Duration::from_millis(50);
/// Shorter delays of a check may be caused by the scheduler.
const SHORTEST: Duration = Duration::from_millis(500);
/// Maximum CPU time of a process that did not run, as a share of the time, to allow for rounding and for other threads
/// before and after.
const MOST_USED_RATIO: f64 = 0.1;
/// CPU time is counted in ticks of 10 ms.
const USED_ERROR: Duration = Duration::from_millis(10);

/// Watches until it is ended.
pub struct StandstillWatch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<EventRecord>>,
}

impl StandstillWatch {
    /// Begins to watch.
    ///
    /// # Errors
    /// The machine allows no more threads.
    pub fn start(clock: Clock) -> std::io::Result<StandstillWatch> {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = std::thread::Builder::new().name("standstill".to_owned());
        let thread = thread.spawn(move || watch(clock, &ends))?;
        Ok(StandstillWatch { is_over, thread })
    }

    /// Ends watching, and returns the times in which no thread ran.
    pub fn end(self) -> Vec<EventRecord> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}

fn watch(clock: Clock, is_over: &AtomicBool) -> Vec<EventRecord> {
    let mut found = Vec::new();
    let mut usual_used = Duration::ZERO;
    while !is_over.load(Ordering::Relaxed) {
        let (begin, used_before) = (Instant::now(), cpu_time());
        std::thread::park_timeout(TICK);
        let (elapsed, used) = (begin.elapsed(), cpu_time().saturating_sub(used_before));
        match stood_still(elapsed, used, usual_used) {
            Some(length) => found.push(EventRecord {
                at_s: clock.seconds_at(begin),
                event: Event::ClientStopped { length_s: length.as_secs_f64() },
            }),
            None => usual_used = used,
        }
    }
    found
}

/// How long no thread ran within `elapsed`, in which the process used `used` CPU time; between two checks it usually
/// uses `usual_used`.
fn stood_still(elapsed: Duration, used: Duration, usual_used: Duration) -> Option<Duration> {
    let late = elapsed.saturating_sub(TICK);
    let most_used = late.mul_f64(MOST_USED_RATIO) + usual_used.mul_f64(1.5) + USED_ERROR;
    (late >= SHORTEST && used <= most_used).then_some(late)
}

/// CPU time of all threads of this process so far.
fn cpu_time() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID);
    time.map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_late_look_is_a_standstill_if_no_cpu_time_was_used() {
        // Usually one CPU is busy.
        let usual = ms(50);
        assert_eq!(stood_still(ms(2_050), ms(60), usual), Some(ms(2_000)));
        assert_eq!(stood_still(ms(2_050), ms(50), ms(0)), Some(ms(2_000)));
        // Another thread ran all the time, or half of it.
        assert_eq!(stood_still(ms(2_050), ms(2_050), usual), None);
        assert_eq!(stood_still(ms(2_050), ms(1_000), usual), None);
        // The scheduler took its time.
        assert_eq!(stood_still(ms(500), ms(0), usual), None);
    }

    #[test]
    fn nothing_is_noticed_while_the_process_runs() {
        let watch = StandstillWatch::start(Clock::start()).expect("the thread starts");
        let end = Instant::now() + ms(300);
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        assert_eq!(watch.end(), []);
    }
}
