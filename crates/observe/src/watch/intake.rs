//! Distributes the readings of a source to its file, its record and the board.

use crate::health::Health;
use crate::watch::board::{Board, Latest};
use crate::watch::source::Description;
use crate::watch::watcher::OutputOptions;
use dyno_record::metrics::{MetricId, MetricsWriter, Reading};
use dyno_record::model::{OutageRecord, SourceHealth, SourceRecord};
use dyno_record::names::{frequency, replication, slow, temperature};
use std::time::Duration;

/// Largest number of outages kept: a source that comes and goes must not fill the record.
const MOST_OUTAGES: usize = 50;

/// Groups that are not in each reading because reading them is expensive.
const SELDOM: [&str; 4] = [frequency::GROUP, temperature::GROUP, slow::GROUP, replication::GROUP];

/// Number of readings for which a value of these groups stays on the board; otherwise occasional
/// readers of the board would rarely see it.
const SELDOM_READINGS: f64 = 15.0;
const SELDOM_S: f64 = 30.0;

/// Takes the reports of a source, in the order of time.
pub(super) struct Intake {
    slot: BoardSlot,
    /// `None` after the end was written.
    writer: Option<MetricsWriter>,
    last_s: Option<f64>,
    interval_s: f64,
    /// The last values of groups that are not in each reading, with their time.
    seldom: Vec<(f64, MetricId, f64)>,
    /// The first expected part that could not be read or stored.
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
        self.board.change(self.number, |latest| change(&mut latest.record));
    }
}

impl Intake {
    /// A new slot on the board, and a file that is created with the first reading.
    pub(super) fn new(
        board: &Board,
        description: Description,
        interval: Duration,
        output: &OutputOptions,
    ) -> Intake {
        let writer =
            MetricsWriter::new(&output.run_directory, &description.name, output.readings_per_row);
        let number = board
            .pin(Latest { record: first_record(description, interval, output), reading: None });
        Intake {
            slot: BoardSlot { board: board.clone(), number },
            writer: Some(writer.syncing(output.sync_every)),
            last_s: None,
            interval_s: interval.as_secs_f64(),
            seldom: Vec::new(),
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

    /// Records the cost of the source so far: CPU time, and the time over which it was read.
    pub(super) fn cost(&self, cpu_s: f64, lasted_s: f64) {
        self.slot.change(|record| {
            record.cpu_s = cpu_s;
            // The cost of a single reading says nothing about readings once a second.
            record.cpu_ratio = cpu_s / lasted_s.max(record.interval_s);
        });
    }

    /// Takes a good reading, and the parts that are missing from its values.
    pub(super) fn take<Part: AsRef<str>>(
        &mut self,
        at_s: f64,
        values: Vec<(MetricId, f64)>,
        missing: &[(Part, Health)],
    ) {
        let mut reading = Reading {
            at_s,
            duration_s: self.last_s.map_or(0.0, |last_s| (at_s - last_s).max(0.0)),
            values,
        };
        self.last_s = Some(at_s);
        let written = self.writer.as_mut().map(|writer| writer.record(&reading));
        let unwritten = written.and_then(Result::err);
        let unwritten = unwritten.map(|error| ("file", write_fault(&error)));
        let parts = missing.iter().map(|(part, health)| (part.as_ref(), health));
        let missing: Vec<(&str, &Health)> =
            parts.chain(unwritten.iter().map(|(part, health)| (*part, health))).collect();
        let faulty = missing
            .iter()
            .find(|(_, health)| matches!(health, Health::Degraded { .. } | Health::Failed { .. }));
        if let Some((part, health)) = faulty {
            let text = format!("{part}: {}", health.reason());
            self.fault.get_or_insert(text);
        }
        let fault = self.fault.clone();
        self.carry_over(&mut reading);
        self.slot.board.change(self.slot.number, |latest| {
            let record = &mut latest.record;
            record.readings += 1;
            if let Some(outage) = record.outages.last_mut() {
                outage.end_s.get_or_insert(at_s);
            }
            for (part, health) in &missing {
                let text = format!("{part}: {}", health.reason());
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

    /// Adds the recent values of groups that are not in this reading, for readers of the board.
    fn carry_over(&mut self, reading: &mut Reading) {
        let longest_s = SELDOM_S.max(SELDOM_READINGS * self.interval_s);
        self.seldom.retain(|(at_s, id, _)| {
            let is_read_again = reading.values.iter().any(|(new, _)| new == id);
            !is_read_again && reading.at_s - at_s <= longest_s
        });
        let is_seldom = |(id, _): &&(MetricId, f64)| SELDOM.contains(&id.group());
        let read: Vec<_> = reading.values.iter().filter(is_seldom).cloned().collect();
        reading.values.extend(self.seldom.iter().map(|(_, id, value)| (id.clone(), *value)));
        self.seldom.extend(read.into_iter().map(|(id, value)| (reading.at_s, id, value)));
    }

    /// Records a failed reading.
    pub(super) fn miss(&mut self, at_s: f64, health: &Health) {
        let reason = health.reason().to_owned();
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
            let is_under_way = record.outages.last().is_some_and(|last| last.end_s.is_none());
            if !is_under_way && record.outages.len() < MOST_OUTAGES {
                record.outages.push(OutageRecord { start_s: at_s, end_s: None, reason });
            }
        });
    }

    /// Writes the remaining data and ends.
    pub(super) fn finish(&mut self) {
        if let Some(Err(error)) = self.writer.take().map(MetricsWriter::finish) {
            let fault = write_fault(&error);
            self.slot.change(|record| {
                record.health = SourceHealth::Degraded;
                record.reason = Some(fault.reason().to_owned());
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
        machine: None,
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

/// Data that cannot be written is lost, and the run continues: its own files matter more.
fn write_fault(error: &dyn std::error::Error) -> Health {
    let cause = error.source().map(|cause| format!(": {cause}"));
    Health::Failed { reason: format!("{error}{}", cause.unwrap_or_default()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::model::SourceKind;

    #[test]
    fn rare_readings_stay_on_the_board_and_are_recorded_once() {
        let folder = tempfile::tempdir().expect("there is room");
        let board = Board::default();
        let description = Description {
            name: "host".to_owned(),
            kind: SourceKind::Host,
            subject: "a".to_owned(),
            of_server: true,
        };
        let output = OutputOptions {
            run_directory: folder.path().to_owned(),
            readings_per_row: 1,
            sync_every: None,
        };
        let mut intake = Intake::new(&board, description, Duration::from_secs(1), &output);
        let (often, seldom) = (MetricId::of("a", "x"), frequency::MEAN_HZ.id());
        let mut shown = |at_s: f64, ids: &[&MetricId]| {
            let values = ids.iter().map(|id| ((*id).clone(), at_s)).collect();
            intake.take::<&str>(at_s, values, &[]);
            let latest = board.look().remove(0).reading.expect("it was good");
            latest.values.into_iter().map(|(_, value)| value).collect::<Vec<f64>>()
        };
        assert_eq!(shown(1.0, &[&often, &seldom]), [1.0, 1.0]);
        assert_eq!(shown(2.0, &[]), [1.0], "a value in each reading is not carried over");
        assert_eq!(shown(11.0, &[&often, &seldom]), [11.0, 11.0]);
        assert_eq!(shown(41.0, &[&often]), [41.0, 11.0]);
        assert_eq!(shown(41.1, &[&often]), [41.1], "it is too old");
        intake.finish();
        let (tables, _) = dyno_record::metrics::read(folder.path()).expect("it is written");
        let values = tables[0].column(&seldom).expect("it is there");
        let recorded = values.iter().filter(|value| !value.is_nan());
        assert_eq!(recorded.count(), 2, "{values:?}");
    }
}
