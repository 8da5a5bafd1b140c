//! Receives the recording windows: writes them, sums them up, and passes them to the observers of
//! the run. Memory does not grow with the length of the run.

use crate::observer::{Expectation, Observer};
use crate::run::options::Totals;
use dyno_load::workload::Workload;
use dyno_record::RecordError;
use dyno_record::accumulate::PhaseAccumulator;
use dyno_record::interval::IntervalRecord;
use dyno_record::model::{PhaseKind, PhaseRecord, RunDocument};
use dyno_record::writer::RunWriter;
use std::sync::Arc;

/// The sink of the engine's windows.
pub(crate) struct Recorder<'a> {
    writer: RunWriter,
    observer: Box<dyn Observer + 'a>,
    phases: Vec<PhaseRecord>,
    current: Option<Current>,
    /// Number of recorded windows.
    windows: u64,
    joint: Joint,
}

/// Merges windows into rows, so that long runs have a bounded number of rows.
struct Joint {
    windows_per_row: u64,
    windows: u64,
    row: Option<IntervalRecord>,
    /// Number of the next row in its phase.
    index: u64,
}

impl Joint {
    /// Adds a window. Returns the rows to write now, in order.
    fn take(&mut self, window: &IntervalRecord) -> Vec<IntervalRecord> {
        let mut full = Vec::new();
        if let Some(row) = &self.row
            && row.phase != window.phase
        {
            full.extend(self.close());
            self.index = 0;
        }
        match &mut self.row {
            Some(row) => row.join(window.clone()),
            None => {
                self.row = Some(IntervalRecord { index: self.index, ..window.clone() });
            }
        }
        self.windows += 1;
        if self.windows >= self.windows_per_row {
            full.extend(self.close());
        }
        full
    }

    fn close(&mut self) -> Option<IntervalRecord> {
        let row = self.row.take()?;
        self.windows = 0;
        self.index += 1;
        Some(row)
    }
}

/// The current phase.
struct Current {
    accumulator: PhaseAccumulator,
    /// Workload for counting keys.
    workload: Option<Arc<Workload>>,
    expected: Vec<Expectation>,
    offered_rate_per_s: Option<f64>,
}

impl<'a> Recorder<'a> {
    /// Creates a recorder that writes this many windows as one row to `writer`, and passes windows
    /// to `observer`.
    pub(crate) fn new(
        writer: RunWriter,
        observer: Box<dyn Observer + 'a>,
        windows_per_row: u64,
    ) -> Self {
        let windows_per_row = windows_per_row.max(1);
        Recorder {
            writer,
            observer,
            phases: Vec::new(),
            current: None,
            windows: 0,
            joint: Joint { windows_per_row, windows: 0, row: None, index: 0 },
        }
    }

    /// Syncs the written windows to the disk.
    pub(crate) fn sync(&mut self) -> Result<(), RecordError> {
        self.writer.sync()
    }

    /// Begins successive phases of one load; the first one is `expected[0]`. The key skew comes
    /// from `workload`; several workloads have no common one.
    pub(crate) fn begin(
        &mut self,
        workload: Option<Arc<Workload>>,
        expected: Vec<Expectation>,
        offered_rate_per_s: Option<f64>,
    ) {
        let Some(first) = expected.first() else {
            return;
        };
        self.observer.phase_started(first);
        self.current = Some(Current {
            accumulator: PhaseAccumulator::new(first.kind, offered_rate_per_s),
            workload,
            expected,
            offered_rate_per_s,
        });
    }

    /// Records one window.
    pub(crate) fn record(
        &mut self,
        interval: &IntervalRecord,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if self.joint.windows_per_row == 1 {
            self.writer.record(interval)?;
        } else {
            for row in self.joint.take(interval) {
                self.writer.record(&row)?;
            }
        }
        self.windows += 1;
        if self
            .current
            .as_ref()
            .is_some_and(|current| current.accumulator.phase() != interval.phase)
        {
            self.next_phase(interval.phase);
        }
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        current.accumulator.add(interval)?;
        self.observer.window(interval);
        Ok(())
    }

    fn next_phase(&mut self, kind: PhaseKind) {
        let Some(current) = &mut self.current else {
            return;
        };
        let offered = current.offered_rate_per_s;
        let ended =
            std::mem::replace(&mut current.accumulator, PhaseAccumulator::new(kind, offered));
        let started = current.expected.iter().find(|expected| expected.kind == kind).copied();
        let record = ended.to_record();
        self.observer.phase_ended(&record);
        self.phases.push(record);
        if let Some(started) = started {
            self.observer.phase_started(&started);
        }
    }

    /// Ends the phases. A row that cannot be written is lost, but the totals include it.
    pub(crate) fn end(&mut self) {
        if let Some(row) = self.joint.close() {
            let _ = self.writer.record(&row);
        }
        self.joint.index = 0;
        let Some(current) = self.current.take() else {
            return;
        };
        let mut record = current.accumulator.to_record();
        if record.name == PhaseKind::Measure {
            record.keys = current.workload.and_then(|workload| workload.key_shares());
        }
        self.observer.phase_ended(&record);
        self.phases.push(record);
    }

    /// Saves the document with the phases that have ended so far.
    pub(crate) fn save(&mut self, document: &mut RunDocument) -> Result<(), RecordError> {
        document.phases.clone_from(&self.phases);
        self.writer.set_document(document)
    }

    /// Syncs everything to the disk.
    pub(crate) fn finish(self, document: &RunDocument) -> Result<(), RecordError> {
        self.writer.finish(document)
    }

    /// Whether nothing was recorded.
    pub(crate) fn is_empty(&self) -> bool {
        self.windows == 0
    }

    /// Operations of a phase, once it has ended.
    pub(crate) fn totals(&self, kind: PhaseKind) -> Totals {
        let of_kind = self.phases.iter().filter(|phase| phase.name == kind);
        of_kind.fold(Totals::default(), |sum, phase| Totals {
            succeeded: sum.succeeded + phase.succeeded,
            failed: sum.failed + phase.failed,
        })
    }

    /// Phases that have ended.
    pub(crate) fn phases(&self) -> &[PhaseRecord] {
        &self.phases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_load::workload::Concerns;
    use dyno_record::interval::WindowCounts;
    use dyno_record::reader::Run;
    use std::time::Duration;

    #[derive(Default)]
    struct Log(Vec<String>);

    impl Observer for Log {
        fn phase_started(&mut self, expected: &Expectation) {
            self.0.push(format!("start {}", expected.kind.as_str()));
        }
        fn window(&mut self, interval: &IntervalRecord) {
            self.0.push(format!("{} {}", interval.phase.as_str(), interval.index));
        }
        fn phase_ended(&mut self, phase: &PhaseRecord) {
            self.0.push(format!("end {}", phase.name.as_str()));
        }
    }

    fn interval(phase: PhaseKind, index: u64, start_s: u64) -> IntervalRecord {
        IntervalRecord {
            duration_ns: 1_000_000_000,
            counts: WindowCounts { succeeded: 3, failed: 1, ..WindowCounts::default() },
            ..IntervalRecord::empty(phase, index, start_s * 1_000_000_000)
        }
    }

    #[test]
    fn phases_are_distinguished_by_windows_and_kept_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let plan = dyno_plan::builtin::find("read").expect("it is built in");
        let mut document =
            super::super::document::initial(&plan, jiff::Timestamp::UNIX_EPOCH, Default::default());
        let writer = RunWriter::create(folder.path(), "", &document).expect("it can be written");
        let mut log = Log::default();
        let mut recorder = Recorder::new(writer, Box::new(&mut log), 1);
        assert!(recorder.is_empty());
        let workload =
            Arc::new(Workload::mix(&plan, &Concerns::default()).expect("the plan is valid"));
        let expect = |kind, seconds| Expectation {
            kind,
            duration: Some(Duration::from_secs(seconds)),
            operations: None,
        };
        let expected = vec![expect(PhaseKind::Warmup, 1), expect(PhaseKind::Measure, 2)];
        recorder.begin(Some(workload), expected, None);
        let windows =
            [(PhaseKind::Warmup, 0, 0), (PhaseKind::Measure, 0, 1), (PhaseKind::Measure, 1, 2)];
        for (kind, index, start_s) in windows {
            recorder.record(&interval(kind, index, start_s)).expect("it can be written");
        }
        recorder.end();
        assert!(!recorder.is_empty());
        assert_eq!(recorder.totals(PhaseKind::Measure), Totals { succeeded: 6, failed: 2 });
        assert_eq!(recorder.totals(PhaseKind::Load), Totals::default());
        recorder.save(&mut document).expect("it can be written");
        recorder.finish(&document).expect("it can be written");
        let names: Vec<_> = document.phases.iter().map(|phase| phase.name).collect();
        assert_eq!(names, [PhaseKind::Warmup, PhaseKind::Measure]);
        assert_eq!(
            log.0,
            [
                "start warmup",
                "warmup 0",
                "end warmup",
                "start measure",
                "measure 0",
                "measure 1",
                "end measure"
            ]
        );
        assert_eq!(Run::open(folder.path()).expect("it can be read").intervals.len(), 3);
    }

    #[test]
    fn windows_are_joined_within_their_phase() {
        let mut joint = Joint { windows_per_row: 2, windows: 0, row: None, index: 0 };
        let mut written = Vec::new();
        for (kind, start_s) in [
            (PhaseKind::Warmup, 0),
            (PhaseKind::Measure, 1),
            (PhaseKind::Measure, 2),
            (PhaseKind::Measure, 3),
        ] {
            written.extend(joint.take(&interval(kind, start_s, start_s)));
        }
        written.extend(joint.close());
        let rows: Vec<(PhaseKind, u64, u64, u64)> = written
            .iter()
            .map(|row| {
                (row.phase, row.index, row.duration_ns / 1_000_000_000, row.counts.succeeded)
            })
            .collect();
        assert_eq!(
            rows,
            [
                (PhaseKind::Warmup, 0, 1, 3),
                (PhaseKind::Measure, 0, 2, 6),
                (PhaseKind::Measure, 1, 1, 3),
            ]
        );
    }

    #[test]
    fn failed_ratio_counts_all_operations() {
        assert_eq!(Totals { succeeded: 3, failed: 1 }.failed_ratio(), 0.25);
        assert_eq!(Totals::default().failed_ratio(), 0.0);
    }
}
