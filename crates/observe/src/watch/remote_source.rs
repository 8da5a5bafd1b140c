//! A source that is read elsewhere: a host of a fleet reads itself, and its reports arrive later,
//! with their own times.

use crate::health::{Health, Reading};
use crate::watch::board::Board;
use crate::watch::intake::Intake;
use crate::watch::source::{Description, Reported};
use crate::watch::watcher::OutputOptions;
use dyno_record::metrics::MetricId;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Silence of more intervals than this at the end is reported as an outage.
const SILENT_INTERVALS: f64 = 3.0;

/// The parts of a reading other than its values, as sent between hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadingStatus {
    /// CPU time that all readings of this host have taken so far, in seconds.
    pub cpu_s: f64,
    /// Time since the first reading, in seconds.
    pub lasted_s: f64,
    /// Parts that are missing from the values, and why.
    pub missing: Vec<(String, Health)>,
    /// Why nothing could be read.
    pub failed: Option<Health>,
}

impl ReadingStatus {
    /// Splits a reading into its values and the rest.
    pub fn split(
        reading: Reading<Reported>,
        cpu_s: f64,
        lasted_s: f64,
    ) -> (Vec<(MetricId, f64)>, ReadingStatus) {
        let (reported, failed) = match reading {
            Ok(reported) => (reported, None),
            Err(health) => (Reported::default(), Some(health)),
        };
        let missing = reported.missing.into_iter();
        let status = ReadingStatus {
            cpu_s,
            lasted_s,
            missing: missing.map(|(part, health)| (part.to_owned(), health)).collect(),
            failed,
        };
        (reported.values, status)
    }
}

/// Adds the readings of one remote source to the run.
pub struct RemoteSource {
    intake: Intake,
    interval: Duration,
    /// Time of the newest reading, good or not.
    newest_s: Option<f64>,
}

impl RemoteSource {
    /// Adds a source to the board that is expected to be read each `interval`.
    pub fn new(
        board: &Board,
        description: Description,
        interval: Duration,
        output: &OutputOptions,
    ) -> RemoteSource {
        RemoteSource {
            intake: Intake::new(board, description, interval, output),
            interval,
            newest_s: None,
        }
    }

    /// Takes a reading from `at_s` after the start of the run. Ignores a reading that is not newer
    /// than the previous one.
    pub fn take(&mut self, at_s: f64, values: Vec<(MetricId, f64)>, status: ReadingStatus) {
        if self.newest_s.is_some_and(|newest_s| at_s <= newest_s) {
            return;
        }
        if let Some(newest_s) = self.newest_s {
            let intervals = (at_s - newest_s) / self.interval.as_secs_f64();
            // A reading may be a little early or late.
            let lost = (intervals.round() as u64).saturating_sub(1);
            self.intake.slot().change(|record| record.missed += lost);
        }
        self.newest_s = Some(at_s);
        match status.failed {
            Some(health) => self.intake.miss(at_s, &health),
            None => self.intake.take(at_s, values, &status.missing),
        }
        self.intake.cost(status.cpu_s, status.lasted_s);
    }

    /// Ends the source. `heard_s` is the time until which readings could arrive; `why` is the
    /// reason if the source fell silent before.
    pub fn end(mut self, heard_s: f64, why: &str) {
        let silent_since_s = self.newest_s.unwrap_or(0.0);
        let longest_s = SILENT_INTERVALS * self.interval.as_secs_f64();
        if self.newest_s.is_none() || heard_s - silent_since_s > longest_s {
            let reason = why.to_owned();
            self.intake.miss(silent_since_s, &Health::Failed { reason });
        }
        self.intake.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::metrics;
    use dyno_record::model::{SourceHealth, SourceKind, SourceRecord};

    const SECOND: Duration = Duration::from_secs(1);

    fn source(folder: &std::path::Path) -> (Board, RemoteSource) {
        let board = Board::default();
        let description = Description {
            name: "host-a".to_owned(),
            kind: SourceKind::Agent,
            subject: "a".to_owned(),
            of_server: true,
        };
        let output = OutputOptions {
            run_directory: folder.to_owned(),
            readings_per_row: 1,
            sync_every: None,
        };
        let source = RemoteSource::new(&board, description, SECOND, &output);
        (board, source)
    }

    fn record(board: &Board) -> SourceRecord {
        board.look()[0].record.clone()
    }

    /// Takes a reading through its form between hosts.
    fn report(source: &mut RemoteSource, at_s: f64, reading: Reading<Reported>) {
        let (values, status) = ReadingStatus::split(reading, 0.02 * at_s, at_s);
        let text = serde_json::to_string(&status).expect("plain data");
        let status = serde_json::from_str(&text).expect("the same");
        source.take(at_s, values, status);
    }

    fn value(value: f64) -> Reading<Reported> {
        Ok(Reported { values: vec![(MetricId::of("a", "x"), value)], missing: Vec::new() })
    }

    #[test]
    fn remote_readings_keep_their_times_and_gaps_are_counted() {
        let folder = tempfile::tempdir().expect("there is room");
        let (board, mut source) = source(folder.path());
        for at_s in [1.0, 2.01, 2.01, 5.02] {
            report(&mut source, at_s, value(at_s));
        }
        source.end(6.0, "lost");
        let record = record(&board);
        assert_eq!((record.readings, record.missed), (3, 2));
        assert_eq!(record.health, SourceHealth::Healthy);
        assert!((record.cpu_ratio - 0.02).abs() < 1e-9, "{record:?}");
        let (tables, _) = metrics::read(folder.path()).expect("they can be read");
        assert_eq!(tables[0].source, "host-a");
        assert_eq!(tables[0].at_s, [1.0, 2.01, 5.02]);
        assert_eq!(tables[0].duration_s, [0.0, 1.01, 3.01]);
    }

    #[test]
    fn remote_read_errors_are_reported_locally() {
        let folder = tempfile::tempdir().expect("there is room");
        let (board, mut source) = source(folder.path());
        let reason = "no sensor".to_owned();
        let mut reported = value(1.0).expect("it is one");
        reported.miss("temperature", Health::Unsupported { reason });
        report(&mut source, 1.0, Ok(reported));
        let reason = "the disk is gone".to_owned();
        report(&mut source, 2.0, Err(Health::Failed { reason }));
        report(&mut source, 3.0, value(1.0));
        source.end(3.5, "lost");
        let record = record(&board);
        assert_eq!(record.missing, ["temperature: no sensor"]);
        assert_eq!((record.readings, record.missed), (2, 1));
        let outage = &record.outages[0];
        assert_eq!((outage.start_s, outage.end_s), (2.0, Some(3.0)));
        assert_eq!(outage.reason, "the disk is gone");
        assert_eq!(record.health, SourceHealth::Degraded);
    }

    #[test]
    fn silent_host_is_named() {
        let folders = [(); 3].map(|()| tempfile::tempdir().expect("there is room"));
        let (board, mut one) = source(folders[0].path());
        report(&mut one, 1.0, value(1.0));
        one.end(5.0, "agent 3 was lost");
        let silent = record(&board);
        assert_eq!(silent.health, SourceHealth::Failed);
        assert_eq!(silent.reason.as_deref(), Some("agent 3 was lost"));
        assert_eq!(silent.outages[0].start_s, 1.0);
        let (board, never) = source(folders[1].path());
        never.end(0.5, "nothing came");
        assert_eq!(record(&board).health, SourceHealth::Failed);
        let (board, mut one) = source(folders[2].path());
        report(&mut one, 1.0, value(1.0));
        one.end(3.9, "lost");
        assert_eq!(record(&board).health, SourceHealth::Healthy);
    }
}
