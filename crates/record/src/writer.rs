//! Writes a run directory during the run, so that everything up to the last recording window can be read if the process
//! is killed. Buffers hold one window; nothing grows with the length of the run.

use crate::append::AppendFile;
use crate::document::Document;
use crate::error::RecordError;
use crate::hlog::{self, Clock, Encoder};
use crate::interval::{FINE_NS, IntervalRecord};
use crate::model::{PhaseKind, RunDocument};
use crate::series::{ErrorRow, IntervalRow, OperationRow, Row, SubSecondRow, check_operations};
use crate::sums;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The run document.
const DOCUMENT: &str = RunDocument::FILE;
/// The resolved plan.
pub(crate) const PLAN: &str = "plan.toml";
/// The folder of the tables.
pub(crate) const SERIES: &str = "series";
/// The histograms.
pub(crate) const LATENCY: &str = "latency.hlog";
/// The rows of windows.
pub(crate) const INTERVALS: &str = "series/intervals.csv";
/// The rows of operations.
pub(crate) const OPERATIONS: &str = "series/operations.csv";
/// The rows of failures.
pub(crate) const ERRORS: &str = "series/errors.csv";
/// The rows of parts of windows, from the start of the measured time.
pub(crate) const FINE: &str = "series/sub-second.csv";

/// Maximum number of rows of window parts: a minute shows every pattern that one-second windows hide.
const MOST_FINE_ROWS: u64 = 6_000;

/// Writes one run directory.
///
/// If [`RunWriter::record`] fails, the window is removed from all files, so a later window can be tried, for example
/// when the disk has free space again.
pub struct RunWriter {
    directory: PathBuf,
    /// Files in the order of writing; the last one makes a window count.
    latency: AppendFile,
    operations: AppendFile,
    errors: AppendFile,
    sub_second: AppendFile,
    intervals: AppendFile,
    /// Number of window parts written so far.
    sub_second_rows: u64,
    encoder: Encoder,
    hlog_text: Vec<u8>,
    csv_text: String,
}

impl RunWriter {
    /// Creates the folder with its files: `plan.toml` with the given text, `run.json` with the given document (its
    /// status should be `running`), and series files without rows.
    ///
    /// An existing folder is used unless it has a run. On failure, everything that was created is removed.
    pub fn create(
        directory: &Path,
        plan_toml: &str,
        document: &RunDocument,
    ) -> Result<RunWriter, RecordError> {
        let started_at = start_time(document)?;
        check_operations(&document.operations)?;
        let all = [DOCUMENT, PLAN, LATENCY, INTERVALS, OPERATIONS, ERRORS, FINE];
        let holds = |name: &&str| directory.join(name).symlink_metadata().is_ok();
        if let Some(found) = all.into_iter().find(holds) {
            return Err(RecordError::HoldsRun { directory: directory.to_owned(), found });
        }
        let mut made = Made::default();
        made.folder(directory)?;
        made.folder(&directory.join(SERIES))?;
        made.file(&directory.join(PLAN), plan_toml.as_bytes())?;
        let latency = made.file(&directory.join(LATENCY), &hlog::header(started_at))?;
        let operations = made.table::<OperationRow>(&directory.join(OPERATIONS))?;
        let errors = made.table::<ErrorRow>(&directory.join(ERRORS))?;
        let sub_second = made.table::<SubSecondRow>(&directory.join(FINE))?;
        let intervals = made.table::<IntervalRow>(&directory.join(INTERVALS))?;
        made.paths.push(directory.join(DOCUMENT));
        document.write(directory)?;
        made.keep();
        Ok(RunWriter {
            directory: directory.to_owned(),
            latency,
            operations,
            errors,
            sub_second,
            intervals,
            sub_second_rows: 0,
            encoder: Encoder::default(),
            hlog_text: Vec::new(),
            csv_text: String::new(),
        })
    }

    /// The run directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Appends a window to all files and passes it to the kernel, so that it survives the process.
    pub fn record(&mut self, interval: &IntervalRecord) -> Result<(), RecordError> {
        for file in self.files() {
            file.check_whole()?;
        }
        let result = self.append(interval);
        if let Ok(sub_second_rows) = result {
            self.sub_second_rows += sub_second_rows;
            self.files().into_iter().for_each(AppendFile::commit);
        } else {
            self.files().into_iter().for_each(AppendFile::roll_back);
        }
        result.map(|_| ())
    }

    /// Syncs everything recorded so far, so that it survives a machine crash.
    pub fn sync(&mut self) -> Result<(), RecordError> {
        let mut result = Ok(());
        for file in self.files() {
            result = result.and(file.sync());
        }
        result
    }

    /// Replaces `run.json` atomically: a reader finds either the old document or the new one.
    pub fn set_document(&mut self, document: &RunDocument) -> Result<(), RecordError> {
        document.write(&self.directory)
    }

    /// Syncs the series, writes the last document, and then the checksums of all files. The first two steps are always
    /// tried; the first error is returned.
    pub fn finish(mut self, document: &RunDocument) -> Result<(), RecordError> {
        let result = self.sync();
        result.and(self.set_document(document))?;
        sums::write(&self.directory);
        Ok(())
    }

    fn files(&mut self) -> [&mut AppendFile; 5] {
        [
            &mut self.latency,
            &mut self.operations,
            &mut self.errors,
            &mut self.sub_second,
            &mut self.intervals,
        ]
    }

    /// Appends a window, and returns the number of rows for its parts.
    fn append(&mut self, interval: &IntervalRecord) -> Result<u64, RecordError> {
        self.hlog_text.clear();
        self.csv_text.clear();
        let start = Duration::from_nanos(interval.start_ns);
        let length = Duration::from_nanos(interval.duration_ns);
        for operation in &interval.operations {
            OperationRow::new(interval, operation)?.put(&mut self.csv_text);
            if operation.response.is_empty() {
                continue;
            }
            for clock in Clock::ALL {
                let histogram = match clock {
                    Clock::Response => &operation.response,
                    Clock::Service => &operation.service,
                    Clock::StartDelay => &operation.start_delay,
                };
                let tag = hlog::tag(interval.phase.as_str(), &operation.name, clock);
                let text = &mut self.hlog_text;
                self.encoder.put(text, &tag, start, length, histogram)?;
            }
        }
        self.latency.append(&self.hlog_text)?;
        self.operations.append(self.csv_text.as_bytes())?;
        self.csv_text.clear();
        for row in ErrorRow::all(interval)? {
            row.put(&mut self.csv_text);
        }
        self.errors.append(self.csv_text.as_bytes())?;
        self.csv_text.clear();
        let mut sub_second_rows = 0;
        for row in self.sub_second_rows_of(interval) {
            row.put(&mut self.csv_text);
            sub_second_rows += 1;
        }
        self.sub_second.append(self.csv_text.as_bytes())?;
        self.csv_text.clear();
        IntervalRow::new(interval).put(&mut self.csv_text);
        self.intervals.append(self.csv_text.as_bytes())?;
        Ok(sub_second_rows)
    }

    /// Complete parts of a window of the measure phase, up to the row limit.
    fn sub_second_rows_of(&self, interval: &IntervalRecord) -> Vec<SubSecondRow> {
        if interval.phase != PhaseKind::Measure {
            return Vec::new();
        }
        let whole = interval.duration_ns / FINE_NS;
        let room = MOST_FINE_ROWS.saturating_sub(self.sub_second_rows);
        let parts = interval.sub_second.iter().take(whole.min(room) as usize);
        let starts = (interval.start_ns..).step_by(FINE_NS as usize);
        starts
            .zip(parts)
            .map(|(start_ns, part)| SubSecondRow {
                start_ns,
                ended: part.ended,
                response_sum_ns: part.response_sum_ns,
                failed: part.failed,
            })
            .collect()
    }
}

/// Files created by [`RunWriter::create`]; removed on drop unless kept.
#[derive(Default)]
struct Made {
    paths: Vec<PathBuf>,
}

impl Made {
    fn folder(&mut self, path: &Path) -> Result<(), RecordError> {
        let mut missing: Vec<&Path> = path.ancestors().take_while(|p| is_missing(p)).collect();
        missing.reverse();
        for folder in missing {
            fs::create_dir(folder).map_err(RecordError::create(folder))?;
            self.paths.push(folder.to_owned());
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, content: &[u8]) -> Result<AppendFile, RecordError> {
        let mut file = AppendFile::create(path)?;
        self.paths.push(path.to_owned());
        file.append(content)?;
        file.commit();
        Ok(file)
    }

    fn table<R: Row>(&mut self, path: &Path) -> Result<AppendFile, RecordError> {
        self.file(path, format!("{}\n", R::HEADER).as_bytes())
    }

    fn keep(mut self) {
        self.paths.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for path in self.paths.iter().rev() {
            // A folder with other content stays; errors cannot be handled here.
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
        }
    }
}

fn is_missing(path: &Path) -> bool {
    !path.as_os_str().is_empty() && !path.exists()
}

fn start_time(document: &RunDocument) -> Result<SystemTime, RecordError> {
    let parsed: Result<jiff::Timestamp, jiff::Error> = document.started_at.parse();
    parsed
        .map(SystemTime::from)
        .map_err(|source| RecordError::StartTime { text: document.started_at.clone(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::{ErrorCount, OperationInterval, WindowCounts, latency_histogram};
    use crate::model::{
        Environment, Operations, PhaseKind, RunStatus, SCHEMA_VERSION, ServerRecord,
    };
    use crate::reader::Run;
    use std::fs::File;
    use std::fs::OpenOptions;
    use std::io::Write;

    fn document() -> RunDocument {
        RunDocument {
            schema_version: SCHEMA_VERSION,
            dyno_version: "0.1.0".to_owned(),
            name: "sample".to_owned(),
            started_at: "2026-08-22T10:15:00Z".to_owned(),
            status: RunStatus::Running,
            status_reason: None,
            plan: serde_json::Value::Null,
            operations: Operations::default(),
            environment: Environment::default(),
            server: ServerRecord::default(),
            phases: Vec::new(),
            instances: Vec::new(),
            fleet: None,
            placement: None,
            host_settings: Vec::new(),
            traces: Vec::new(),
            consumption: Vec::new(),
            resources: Vec::new(),
            sources: Vec::new(),
            collections: Vec::new(),
            secondary_indexes: None,
            checks: Vec::new(),
            dropped: Vec::new(),
            events: Vec::new(),
            caveats: Vec::new(),
            selfcheck: None,
        }
    }

    fn window(index: u64) -> IntervalRecord {
        let mut histogram = latency_histogram();
        histogram.record(1_000_000).unwrap();
        IntervalRecord {
            duration_ns: 1_000_000_000,
            operations: vec![OperationInterval {
                name: "read".into(),
                response: histogram.clone(),
                service: histogram.clone(),
                start_delay: histogram,
                response_sum_ns: 1_000_000,
                service_sum_ns: 1_000_000,
                start_delay_sum_ns: 1_000_000,
                documents: 1,
                errors: 1,
                clamped: 0,
            }],
            errors: vec![ErrorCount {
                operation: "read".into(),
                kind: "timeout".to_owned(),
                count: 1,
                example: None,
            }],
            counts: WindowCounts {
                succeeded: 1,
                failed: 1,
                busy_ns: 2_000_000,
                in_flight_ns: 2_000_000,
                ..WindowCounts::default()
            },
            ..IntervalRecord::empty(PhaseKind::Measure, index, index * 1_000_000_000)
        }
    }

    /// A device on which every write fails with "no space left".
    fn full_disk() -> File {
        OpenOptions::new().append(true).open("/dev/full").unwrap()
    }

    #[test]
    fn a_full_disk_removes_only_the_current_window() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(folder.path(), "", &document()).unwrap();
        writer.record(&window(0)).unwrap();
        // This file is written last, so the others already have the window.
        let intervals = writer.intervals.replace(full_disk());
        let error = writer.record(&window(1)).unwrap_err();
        match error {
            RecordError::Write { path, source } => {
                assert_eq!(path, folder.path().join(INTERVALS));
                assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
            }
            other => panic!("{other}"),
        }
        writer.intervals.replace(intervals);
        writer.record(&window(2)).unwrap();
        drop(writer);
        let run = Run::open(folder.path()).unwrap();
        let windows: Vec<u64> = run.intervals.iter().map(|window| window.index).collect();
        assert_eq!(windows, [0, 2]);
        assert_eq!(run.notes, Vec::<String>::new());
    }

    #[test]
    fn finish_writes_the_document_after_a_full_disk() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(folder.path(), "", &document()).unwrap();
        writer.record(&window(0)).unwrap();
        writer.latency.replace(full_disk());
        assert!(writer.record(&window(1)).is_err());
        let mut document = document();
        document.status = RunStatus::Failed;
        // The device cannot be synced, which is an error, but the document is written.
        assert!(writer.finish(&document).is_err());
        let run = Run::open(folder.path()).unwrap();
        assert_eq!(run.document.status, RunStatus::Failed);
        assert_eq!(run.intervals.len(), 1);
    }

    #[test]
    fn a_torn_line_stops_later_windows() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(folder.path(), "", &document()).unwrap();
        writer.record(&window(0)).unwrap();
        // A file that can be neither written nor truncated.
        let errors = writer.errors.path().to_owned();
        let mut file = OpenOptions::new().append(true).open(&errors).unwrap();
        file.write_all(b"half").unwrap();
        writer.errors.replace(File::open(&errors).unwrap());
        assert!(matches!(writer.record(&window(1)), Err(RecordError::Write { .. })));
        assert!(
            matches!(writer.record(&window(2)), Err(RecordError::Torn { path }) if path == errors)
        );
        // When it can be truncated again, writing resumes.
        writer.errors.replace(OpenOptions::new().append(true).open(&errors).unwrap());
        writer.record(&window(3)).unwrap();
        drop(writer);
        assert_eq!(Run::open(folder.path()).unwrap().intervals.len(), 2);
    }

    #[test]
    fn a_name_that_would_break_the_files_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(folder.path(), "", &document()).unwrap();
        let mut bad = window(0);
        bad.errors[0].kind = "a,b".to_owned();
        assert!(matches!(writer.record(&bad), Err(RecordError::Name { .. })));
        writer.record(&window(0)).unwrap();
        drop(writer);
        assert_eq!(Run::open(folder.path()).unwrap().intervals.len(), 1);
    }

    #[test]
    fn no_temporary_document_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(folder.path(), "", &document()).unwrap();
        writer.set_document(&document()).unwrap();
        let mut names: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, [LATENCY, PLAN, DOCUMENT, SERIES]);
    }
}
