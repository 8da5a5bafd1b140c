//! YCSB's status line: printed at the start, every `status.interval` seconds, and at the end.

use super::hdr_files::HdrFiles;
use super::java_format::{remaining, two_decimals};
use super::measured::{Block, Measured};
use dyno_engine::observer::Expectation;
use dyno_engine::{Error, Observer};
use dyno_plan::ycsb::{MeasurementType, YcsbClientOptions};
use dyno_record::interval::IntervalRecord;
use dyno_record::model::PhaseRecord;
use jiff::Zoned;
use std::io::Write;
use std::time::Duration;

/// Observer that works like YCSB's status thread.
#[derive(Debug)]
pub(crate) struct Status {
    options: YcsbClientOptions,
    measured: Measured,
    hdr_files: Option<HdrFiles>,
    counts: Counts,
    /// The first failure to write a histogram log.
    pub(crate) failure: Option<Error>,
}

/// Operations so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    operations: u64,
    /// Operations at the last line.
    last_operations: u64,
    elapsed_s: f64,
    last_elapsed_s: f64,
    /// Operations of the whole phase; absent without a limit.
    planned: Option<u64>,
}

impl Status {
    pub(crate) fn new(options: YcsbClientOptions) -> Self {
        let hdr_files = options
            .hdr_fileoutput
            .then(|| HdrFiles::new(&options.hdr_output_path, std::time::SystemTime::now()));
        Status {
            measured: Measured::new(options.measurement_interval),
            hdr_files,
            counts: Counts::default(),
            failure: None,
            options,
        }
    }

    fn report(&mut self) {
        if self.options.status {
            let text = self.line(&Zoned::now().strftime("%Y-%m-%d %H:%M:%S:%3f").to_string());
            // A closed stream cannot be reported anywhere.
            let _ = writeln!(std::io::stderr().lock(), "{text}");
            if self.options.measurement_type == MeasurementType::TimeSeries {
                let _ = writeln!(std::io::stdout().lock(), "{text}");
            }
        }
        let start = Duration::from_secs_f64(self.counts.last_elapsed_s);
        let length = Duration::from_secs_f64(self.counts.elapsed_s - self.counts.last_elapsed_s);
        if let Some(files) = &mut self.hdr_files
            && let Err(failure) = files.write(&self.measured, start, length)
        {
            self.failure.get_or_insert(failure);
        }
        self.counts.last_operations = self.counts.operations;
        self.counts.last_elapsed_s = self.counts.elapsed_s;
        self.measured.clear();
    }

    fn line(&self, date: &str) -> String {
        let counts = &self.counts;
        let mut line = format!(
            "{}{date} {:.0} sec: {} operations; ",
            self.options.label,
            counts.elapsed_s.floor(),
            counts.operations
        );
        if counts.operations > 0 {
            line.push_str(&format!(
                "{} current ops/sec; ",
                two_decimals(counts.current_rate_per_s())
            ));
        }
        if let Some(left_s) = counts.left_s() {
            line.push_str(&format!("est completion in {}", remaining(left_s)));
        }
        for block in self.measured.blocks() {
            line.push_str(&self.summary(block));
            line.push(' ');
        }
        line
    }

    fn summary(&self, block: &Block) -> String {
        let histogram = &block.histogram;
        let name = &block.name;
        let mean = if histogram.is_empty() { 0.0 } else { histogram.mean() };
        match self.options.measurement_type {
            MeasurementType::Histogram | MeasurementType::TimeSeries => {
                format!("[{name} AverageLatency(us)={}]", two_decimals(mean))
            }
            MeasurementType::HdrHistogram | MeasurementType::HdrHistogramAndHistogram => {
                let at =
                    |percentile| two_decimals(histogram.value_at_percentile(percentile) as f64);
                format!(
                    "[{name}: Count={}, Max={}, Min={}, Avg={}, 50={}, 90={}, 99={}, 99.9={}, 99.99={}]",
                    histogram.len(),
                    histogram.max(),
                    histogram.min(),
                    two_decimals(mean),
                    at(50.0),
                    at(90.0),
                    at(99.0),
                    at(99.9),
                    at(99.99)
                )
            }
        }
    }
}

impl Counts {
    fn current_rate_per_s(&self) -> f64 {
        let seconds = self.elapsed_s - self.last_elapsed_s;
        if seconds > 0.0 { (self.operations - self.last_operations) as f64 / seconds } else { 0.0 }
    }

    /// Time to the end at the rate so far, in whole seconds; absent when nothing remains. Before the
    /// first operation it is the largest number, as in YCSB.
    fn left_s(&self) -> Option<u64> {
        let left = self.planned?.saturating_sub(self.operations);
        if left == 0 {
            return None;
        }
        let rate_per_s =
            if self.elapsed_s > 0.0 { self.operations as f64 / self.elapsed_s } else { 0.0 };
        // The conversion saturates, as in Java.
        Some(((left as f64 / rate_per_s).ceil() as i64).unsigned_abs())
    }
}

impl Observer for Status {
    fn phase_started(&mut self, expected: &Expectation) {
        self.counts = Counts { planned: expected.operations, ..Counts::default() };
        self.report();
    }

    fn window(&mut self, interval: &IntervalRecord) {
        self.counts.operations += interval.progress() + interval.counts.failed;
        self.counts.elapsed_s += interval.duration_ns as f64 / 1e9;
        self.measured.add(interval);
        // Without a status line, YCSB writes a single interval to its histogram logs at the end.
        let step_s = self.options.status_interval_s as f64;
        if self.options.status
            && self.counts.elapsed_s - self.counts.last_elapsed_s >= step_s - 1e-6
        {
            self.report();
        }
    }

    fn phase_ended(&mut self, _phase: &PhaseRecord) {
        self.report();
    }
}

#[cfg(test)]
mod tests {
    use super::super::measured::tests::window;
    use super::*;
    use dyno_record::model::PhaseKind;

    fn status() -> Status {
        Status::new(YcsbClientOptions { label: "L".into(), ..YcsbClientOptions::default() })
    }

    fn expect(operations: Option<u64>) -> Expectation {
        Expectation { kind: PhaseKind::Measure, duration: None, operations }
    }

    #[test]
    fn first_status_line_matches_ycsb() {
        let mut status = status();
        status.phase_started(&expect(Some(100)));
        assert_eq!(
            status.line("2026-08-22 10:15:00:123"),
            "L2026-08-22 10:15:00:123 0 sec: 0 operations; est completion in 106751991167300 days 15 hours "
        );
    }

    #[test]
    fn line_has_rate_estimate_and_operation_summaries() {
        let mut status = status();
        status.phase_started(&expect(Some(20)));
        status.window(&window(PhaseKind::Measure, "read", 5, 5));
        assert_eq!(
            status.line("D"),
            "LD 1 sec: 5 operations; 5 current ops/sec; est completion in 3 seconds \
             [READ: Count=5, Max=2000, Min=2000, Avg=2000, 50=2000, 90=2000, 99=2000, 99.9=2000, 99.99=2000] "
        );
    }

    #[test]
    fn estimate_is_omitted_when_nothing_remains() {
        let mut status = status();
        status.phase_started(&expect(Some(5)));
        status.window(&window(PhaseKind::Measure, "read", 5, 5));
        assert!(!status.line("D").contains("est completion"));
        status.phase_started(&expect(None));
        assert_eq!(status.line("D").find("est completion"), None);
    }

    #[test]
    fn current_rate_counts_from_the_last_line() {
        let mut status = status();
        status.phase_started(&expect(None));
        status.window(&window(PhaseKind::Measure, "read", 5, 5));
        status.report();
        status.window(&window(PhaseKind::Measure, "read", 7, 7));
        let line = status.line("D");
        assert!(line.contains("2 sec: 12 operations; 7 current ops/sec; "), "{line}");
        assert!(line.contains("[READ: Count=7, "), "{line}");
    }

    #[test]
    fn load_phase_counts_documents() {
        let mut status = status();
        status.phase_started(&expect(Some(600)));
        status.window(&window(PhaseKind::Load, "insert_batch", 3, 300));
        let line = status.line("D");
        assert!(line.contains("1 sec: 300 operations; 300 current ops/sec; est completion in 1 second [INSERT: Count=300"), "{line}");
    }

    #[test]
    fn other_measurement_types_have_a_short_summary() {
        let mut status = status();
        status.options.measurement_type = MeasurementType::TimeSeries;
        status.window(&window(PhaseKind::Measure, "read", 5, 5));
        assert!(
            status.line("D").ends_with("[READ AverageLatency(us)=2000] "),
            "{}",
            status.line("D")
        );
    }
}
