//! Where the readings of a source go: its file, its record, and the board.

use crate::health::Health;
use crate::watch::board::{Board, Latest};
use crate::watch::source::Description;
use crate::watch::watcher::OutputOptions;
use dyno_record::metrics::{MetricId, MetricsWriter, Reading};
use dyno_record::model::{OutageRecord, SourceHealth, SourceRecord};
use std::time::Duration;

/// Outages that are kept; a source that comes and goes must not fill the record.
const MOST_OUTAGES: usize = 50;

/// Takes what a source reports, in the order of time.
pub(super) struct Intake {
    slot: BoardSlot,
    /// Gone once the end was written.
    writer: Option<MetricsWriter>,
    last_s: Option<f64>,
    /// The first part that should be there and could not be read or kept.
    fault: Option<String>,
}

/// The slot of a source on a board.
#[derive(Clone)]
pub(super) struct BoardSlot {
    board: Board,
    number: usize,
}

impl BoardSlot {
    pub(super) fn change(&self, change: impl FnOnce(&mut SourceRecord)) {
        self.board
            .change(self.number, |latest| change(&mut latest.record));
    }
}

impl Intake {
    /// A new slot on the board, and a file that is made with the first reading.
    pub(super) fn new(
        board: &Board,
        description: Description,
        interval: Duration,
        output: &OutputOptions,
    ) -> Intake {
        let writer = MetricsWriter::new(
            &output.run_directory,
            &description.name,
            output.readings_per_row,
        );
        let number = board.pin(Latest {
            record: first_record(description, interval, output),
            reading: None,
        });
        Intake {
            slot: BoardSlot {
                board: board.clone(),
                number,
            },
            writer: Some(writer.syncing(output.sync_every)),
            last_s: None,
            fault: None,
        }
    }

    pub(super) fn slot(&self) -> &BoardSlot {
        &self.slot
    }

    /// Time of the last good reading.
    pub(super) fn last_s(&self) -> Option<f64> {
        self.last_s
    }

    /// What the source has cost so far: CPU time, and the time that it was read for.
    pub(super) fn cost(&self, cpu_s: f64, lasted_s: f64) {
        self.slot.change(|record| {
            record.cpu_s = cpu_s;
            // The cost of one reading alone says nothing about that of one a second.
            record.cpu_ratio = cpu_s / lasted_s.max(record.interval_s);
        });
    }

    /// A good reading, and the parts that are not among its values.
    pub(super) fn take<Part: AsRef<str>>(
        &mut self,
        at_s: f64,
        values: Vec<(MetricId, f64)>,
        missing: &[(Part, Health)],
    ) {
        let reading = Reading {
            at_s,
            duration_s: self.last_s.map_or(0.0, |last_s| (at_s - last_s).max(0.0)),
            values,
        };
        self.last_s = Some(at_s);
        let written = self.writer.as_mut().map(|writer| writer.record(&reading));
        let unwritten = written.and_then(Result::err);
        let unwritten = unwritten.map(|error| ("file", write_fault(&error)));
        let parts = missing.iter().map(|(part, health)| (part.as_ref(), health));
        let missing: Vec<(&str, &Health)> = parts
            .chain(unwritten.iter().map(|(part, health)| (*part, health)))
            .collect();
        let faulty = missing
            .iter()
            .find(|(_, health)| matches!(health, Health::Degraded { .. } | Health::Failed { .. }));
        if let Some((part, health)) = faulty {
            let text = format!("{part}: {}", health.reason().unwrap_or("not reported"));
            self.fault.get_or_insert(text);
        }
        let fault = self.fault.clone();
        self.slot.board.change(self.slot.number, |latest| {
            let record = &mut latest.record;
            record.readings += 1;
            if let Some(outage) = record.outages.last_mut() {
                outage.end_s.get_or_insert(at_s);
            }
            for (part, health) in &missing {
                let text = format!("{part}: {}", health.reason().unwrap_or("not reported"));
                let is_known = |known: &String| known.starts_with(&format!("{part}: "));
                if !record.missing.iter().any(is_known) {
                    record.missing.push(text);
                }
            }
            let for_a_time = || "it could not be read for some time".to_owned();
            record.reason = fault.or_else(|| (!record.outages.is_empty()).then(for_a_time));
            record.health = match record.reason {
                Some(_) => SourceHealth::Degraded,
                None => SourceHealth::Healthy,
            };
            latest.reading = Some(reading);
        });
    }

    /// A reading that failed.
    pub(super) fn miss(&mut self, at_s: f64, health: &Health) {
        let reason = health.reason().unwrap_or("not reported").to_owned();
        let is_unsupported = matches!(health, Health::Unsupported { .. });
        self.slot.board.change(self.slot.number, |latest| {
            latest.reading = None;
            let record = &mut latest.record;
            record.missed += 1;
            record.health = if is_unsupported && record.readings == 0 {
                SourceHealth::Unsupported
            } else {
                SourceHealth::Failed
            };
            record.reason = Some(reason.clone());
            let is_under_way = record
                .outages
                .last()
                .is_some_and(|last| last.end_s.is_none());
            if !is_under_way && record.outages.len() < MOST_OUTAGES {
                record.outages.push(OutageRecord {
                    start_s: at_s,
                    end_s: None,
                    reason,
                });
            }
        });
    }

    /// Writes what is not written yet; no more comes.
    pub(super) fn finish(&mut self) {
        if let Some(Err(error)) = self.writer.take().map(MetricsWriter::finish) {
            let fault = write_fault(&error);
            self.slot.change(|record| {
                record.health = SourceHealth::Degraded;
                record.reason = fault.reason().map(str::to_owned);
            });
        }
    }
}

fn first_record(
    description: Description,
    interval: Duration,
    output: &OutputOptions,
) -> SourceRecord {
    SourceRecord {
        name: description.name,
        kind: description.kind,
        subject: description.subject,
        of_server: description.of_server,
        interval_s: interval.as_secs_f64(),
        readings_per_row: output.readings_per_row.max(1),
        health: SourceHealth::Healthy,
        reason: None,
        missing: Vec::new(),
        readings: 0,
        missed: 0,
        outages: Vec::new(),
        cpu_s: 0.0,
        cpu_ratio: 0.0,
    }
}

/// What cannot be written is lost, and the run goes on: its own files matter more.
fn write_fault(error: &dyn std::error::Error) -> Health {
    let cause = error.source().map(|cause| format!(": {cause}"));
    Health::Failed {
        reason: format!("{error}{}", cause.unwrap_or_default()),
    }
}
