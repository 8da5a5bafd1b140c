//! Progress of a run: one live line on a terminal, or a plain line every ten seconds and at the end
//! of a phase. It reads finished windows only and never touches the workers.

use crate::messages::Messages;
use dyno_engine::Observer;
use dyno_engine::observer::{Expectation, Notice, RunFacts};
use dyno_engine::run::live::{RateHistory, sparkline};
use dyno_record::interval::{IntervalRecord, latency_histogram};
use dyno_record::model::{PhaseKind, PhaseRecord, RunStatus};
use dyno_record::quantity::Quantity;
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Interval between plain lines, in run time: rare enough for a log, often enough to show progress.
const PLAIN_EVERY_S: f64 = 10.0;
/// Interval between plain lines in long phases.
const PLAIN_EVERY_LONG_S: f64 = 60.0;
/// A phase that lasts longer than this is long.
const LONG_S: f64 = 900.0;
/// Bars of the sparkline of the rate.
const BARS: usize = 24;
/// Fewest points for a sparkline.
const FEWEST_BARS: usize = 12;

/// Shows the progress of a run.
pub(crate) struct Progress {
    messages: Messages,
    /// Whether the run has a live line.
    shows_line: bool,
    line: Option<ProgressBar>,
    phase: Option<Phase>,
}

/// State of the current phase.
struct Phase {
    expected: Expectation,
    elapsed_s: f64,
    /// Operations, or documents in the load phase.
    done: u64,
    failed: u64,
    plain_at_s: f64,
    timeline: RateHistory,
    /// Operations since the last line.
    recent: Recent,
}

struct Recent {
    done: u64,
    seconds: f64,
    response: Histogram<u64>,
}

impl Progress {
    /// Uses a live line if standard error is a terminal, else plain lines; prints nothing with `--quiet`.
    pub(crate) fn new(messages: Messages) -> Self {
        Progress {
            messages,
            shows_line: std::io::stderr().is_terminal() && !messages.quiet(),
            line: None,
            phase: None,
        }
    }

    fn clear(&mut self) {
        if let Some(line) = self.line.take() {
            line.finish_and_clear();
        }
    }

    fn say(&self, text: &str) {
        match &self.line {
            Some(line) => line.suspend(|| self.messages.note(text)),
            None => self.messages.note(text),
        }
    }
}

impl Observer for Progress {
    fn phase_started(&mut self, expected: &Expectation) {
        self.phase = Some(Phase::new(*expected));
        if let Some(line) = &self.line {
            line.set_message(format!("{}: starting", expected.kind.as_str()));
            line.enable_steady_tick(Duration::from_millis(200));
        }
    }

    fn window(&mut self, interval: &IntervalRecord) {
        let Some(phase) = &mut self.phase else { return };
        phase.add(interval);
        if let Some(line) = &self.line {
            line.set_message(phase.text());
            phase.recent.clear();
        } else if phase.elapsed_s >= phase.plain_at_s {
            phase.plain_at_s += phase.plain_every_s();
            let text = phase.text();
            phase.recent.clear();
            self.say(&text);
        }
    }

    fn notice(&mut self, notice: &Notice) {
        match &self.line {
            Some(line) => line.suspend(|| self.messages.notice(notice)),
            None => self.messages.notice(notice),
        }
    }

    fn run_started(&mut self, _: &RunFacts) {
        self.line = self.shows_line.then(live_line);
    }

    fn run_ended(&mut self, _: RunStatus) {
        self.clear();
    }

    fn phase_ended(&mut self, record: &PhaseRecord) {
        let Some(phase) = self.phase.take() else {
            return;
        };
        if let Some(line) = &self.line {
            line.disable_steady_tick();
            line.set_message("");
        }
        self.say(&phase.summary(record));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn live_line() -> ProgressBar {
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {wide_msg}");
    line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    line
}

impl Phase {
    fn new(expected: Expectation) -> Self {
        let mut phase = Phase {
            expected,
            elapsed_s: 0.0,
            done: 0,
            failed: 0,
            plain_at_s: 0.0,
            timeline: RateHistory::default(),
            recent: Recent { done: 0, seconds: 0.0, response: latency_histogram() },
        };
        phase.plain_at_s = phase.plain_every_s();
        phase
    }

    fn plain_every_s(&self) -> f64 {
        let is_long = |length: Duration| length.as_secs_f64() > LONG_S;
        if self.expected.duration.is_some_and(is_long) { PLAIN_EVERY_LONG_S } else { PLAIN_EVERY_S }
    }

    fn add(&mut self, interval: &IntervalRecord) {
        let done = interval.progress();
        let seconds = interval.duration_ns as f64 / 1e9;
        self.elapsed_s += seconds;
        self.done += done;
        self.failed += interval.counts.failed;
        self.recent.done += done;
        self.recent.seconds += seconds;
        self.timeline.add(done as f64, seconds);
        for operation in &interval.operations {
            // Cannot fail: all latency histograms have the same bounds.
            let _ = self.recent.response.add(&operation.response);
        }
    }

    fn unit(&self) -> &'static str {
        if self.expected.kind == PhaseKind::Load { "documents" } else { "operations" }
    }

    /// `measure: 12 s of 30 s, 12,345/s, p50 0.8 ms, p99 3.2 ms, 0 errors, 18 s left`
    fn text(&self) -> String {
        let mut parts = vec![match (self.expected.duration, self.expected.operations) {
            (Some(duration), _) => {
                let whole = Quantity::seconds(duration.as_secs_f64()).brief();
                format!("{} of {whole}", Quantity::seconds(self.elapsed_s).brief())
            }
            (None, Some(operations)) => {
                format!(
                    "{} of {} {}",
                    Quantity::count(self.done),
                    Quantity::count(operations),
                    self.unit()
                )
            }
            (None, None) => Quantity::seconds(self.elapsed_s).brief().to_string(),
        }];
        let timeline = self.timeline.per_s();
        let bars = match timeline.len() {
            count if count >= FEWEST_BARS => format!("{} ", sparkline(&timeline, BARS)),
            _ => String::new(),
        };
        parts.push(format!("{bars}{}", rate(self.recent.done, self.recent.seconds)));
        if !self.recent.response.is_empty() {
            for percentile in [50.0, 99.0] {
                let value_us = self.recent.response.value_at_percentile(percentile) as f64 / 1e3;
                parts.push(format!("p{percentile} {}", Quantity::microseconds(value_us)));
            }
        }
        parts.push(errors(self.failed));
        if let Some(left_s) = self.left_s() {
            parts.push(format!("{} left", Quantity::seconds(left_s).brief()));
        }
        format!("{}: {}", self.expected.kind.as_str(), parts.join(", "))
    }

    /// Time to the end of the phase, by time or by count, whichever comes first.
    fn left_s(&self) -> Option<f64> {
        let by_time = self
            .expected
            .duration
            .map(|duration| (duration.as_secs_f64() - self.elapsed_s).max(0.0));
        let finished = self.done + self.failed;
        let by_count = self.expected.operations.filter(|_| finished > 0).map(|operations| {
            operations.saturating_sub(finished) as f64 * self.elapsed_s / finished as f64
        });
        match (by_time, by_count) {
            (Some(time), Some(count)) => Some(time.min(count)),
            (time, count) => time.or(count),
        }
    }

    fn summary(&self, record: &PhaseRecord) -> String {
        format!(
            "{}: done, {} {} in {}, {}, {}",
            self.expected.kind.as_str(),
            Quantity::count(self.done),
            self.unit(),
            Quantity::seconds(record.duration_s),
            rate(self.done, record.duration_s),
            errors(self.failed)
        )
    }
}

impl Recent {
    fn clear(&mut self) {
        self.done = 0;
        self.seconds = 0.0;
        self.response.reset();
    }
}

fn rate(done: u64, seconds: f64) -> String {
    let per_s = if seconds > 0.0 { done as f64 / seconds } else { 0.0 };
    Quantity::per_second(per_s).to_string()
}

fn errors(count: u64) -> String {
    match count {
        1 => "1 error".into(),
        _ => format!("{} errors", Quantity::count(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::interval::{OperationInterval, WindowCounts};

    fn interval(succeeded: u64, failed: u64, documents: u64) -> IntervalRecord {
        let mut response = latency_histogram();
        response.record_n(2_000_000, succeeded.max(1)).expect("it is in range");
        IntervalRecord {
            duration_ns: 2_000_000_000,
            operations: vec![OperationInterval {
                name: "read".into(),
                service: response.clone(),
                start_delay: latency_histogram(),
                response,
                response_sum_ns: 0,
                service_sum_ns: 0,
                start_delay_sum_ns: 0,
                documents,
                errors: failed,
                clamped: 0,
            }],
            counts: WindowCounts { succeeded, failed, ..WindowCounts::default() },
            ..IntervalRecord::empty(PhaseKind::Measure, 0, 0)
        }
    }

    fn phase(kind: PhaseKind, duration_s: Option<u64>, operations: Option<u64>) -> Phase {
        Phase::new(Expectation { kind, duration: duration_s.map(Duration::from_secs), operations })
    }

    #[test]
    fn line_has_rate_latencies_errors_and_time_left() {
        let mut phase = phase(PhaseKind::Measure, Some(30), None);
        phase.add(&interval(2_000, 1, 2_000));
        let text = phase.text();
        assert!(text.starts_with("measure: 2 s of 30 s, "), "{text}");
        assert!(text.contains("p50 2") && text.contains("p99 2"), "{text}");
        assert!(text.contains("1 error, ") && text.ends_with("28 s left"), "{text}");
    }

    #[test]
    fn longer_phase_shows_a_sparkline() {
        let mut phase = phase(PhaseKind::Measure, Some(3_600), None);
        for index in 0..20 {
            phase.add(&interval(if index < 10 { 2_000 } else { 1_000 }, 0, 0));
        }
        let text = phase.text();
        assert!(text.contains("██████████▅▅▅▅▅▅▅▅▅▅ "), "{text}");
        assert_eq!(phase.plain_at_s, PLAIN_EVERY_LONG_S);
    }

    #[test]
    fn load_phase_counts_documents() {
        let mut phase = phase(PhaseKind::Load, None, Some(1_000));
        phase.add(&IntervalRecord { phase: PhaseKind::Load, ..interval(5, 0, 500) });
        assert_eq!(phase.done, 500);
        assert!(phase.text().contains("documents"), "{}", phase.text());
        assert_eq!(phase.left_s(), Some(2.0));
    }

    #[test]
    fn end_is_by_time_or_count_whichever_comes_first() {
        let mut by_count = phase(PhaseKind::Measure, Some(30), Some(4_000));
        by_count.add(&interval(2_000, 0, 0));
        assert_eq!(by_count.left_s(), Some(2.0));
        let mut by_time = phase(PhaseKind::Measure, Some(3), Some(4_000_000));
        by_time.add(&interval(2_000, 0, 0));
        assert_eq!(by_time.left_s(), Some(1.0));
        assert_eq!(phase(PhaseKind::Measure, None, None).left_s(), None);
    }

    #[test]
    fn recent_numbers_reset_after_each_line() {
        let mut phase = phase(PhaseKind::Measure, Some(30), None);
        phase.add(&interval(2_000, 0, 0));
        phase.recent.clear();
        assert!(phase.recent.response.is_empty());
        assert_eq!((phase.recent.done, phase.done), (0, 2_000));
    }
}
