//! YCSB's histogram logs (`hdrhistogram.fileoutput`): one file per operation, in microseconds, with
//! one line per status interval.

use super::measured::Measured;
use dyno_engine::{Error, Kind};
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::time::{Duration, SystemTime};

/// Writes the logs.
#[derive(Debug)]
pub(crate) struct HdrFiles {
    /// Prefix of the file names, often a folder with a trailing slash.
    prefix: String,
    started: SystemTime,
    files: BTreeMap<String, File>,
}

impl HdrFiles {
    pub(crate) fn new(prefix: &str, started: SystemTime) -> Self {
        HdrFiles { prefix: prefix.to_owned(), started, files: BTreeMap::new() }
    }

    /// Appends the measurements of `start..start + length` of the run.
    pub(crate) fn write(
        &mut self,
        measured: &Measured,
        start: Duration,
        length: Duration,
    ) -> Result<(), Error> {
        for block in measured.blocks().iter().filter(|block| !block.histogram.is_empty()) {
            let path = format!("{}{}.hdr", self.prefix, block.name);
            let failed = |error: std::io::Error| {
                Error::from_cause(Kind::Environment, error)
                    .context(format!("cannot write the histogram log `{path}`"))
                    .with_hint("check `hdrhistogram.output.path`, permissions and free space")
            };
            if !self.files.contains_key(&block.name) {
                let mut file = File::create(&path).map_err(failed)?;
                file.write_all(&self.header(&block.name)).map_err(failed)?;
                self.files.insert(block.name.clone(), file);
            }
            let mut text = Vec::new();
            IntervalLogWriterBuilder::new()
                .begin_log_with(&mut text, &mut V2DeflateSerializer::new())
                .map_err(failed)?
                .write_histogram(&block.histogram, start, length, None)
                .map_err(|error| failed(std::io::Error::other(error.to_string())))?;
            if let Some(file) = self.files.get_mut(&block.name) {
                file.write_all(&text).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn header(&self, name: &str) -> Vec<u8> {
        let mut text = Vec::new();
        IntervalLogWriterBuilder::new()
            .add_comment(&format!("[Logging for: {name}]"))
            .add_comment("[Histogram log format version 1.3]")
            .with_start_time(self.started)
            .begin_log_with(&mut text, &mut V2DeflateSerializer::new())
            .expect("writing to a vector cannot fail");
        text.extend_from_slice(
            b"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::measured::tests::window;
    use super::*;
    use base64::Engine as _;
    use dyno_plan::ycsb::MeasurementInterval;
    use dyno_record::model::PhaseKind;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    #[test]
    fn log_has_a_readable_line_for_each_interval() {
        let folder = tempfile::tempdir().expect("a folder");
        let prefix = format!("{}/run-", folder.path().display());
        let mut files = HdrFiles::new(&prefix, SystemTime::UNIX_EPOCH);
        let mut measured = Measured::new(MeasurementInterval::Op);
        for second in 0..2 {
            measured.clear();
            measured.add(&window(PhaseKind::Measure, "read", 5, 5));
            let length = Duration::from_secs(1);
            files.write(&measured, Duration::from_secs(second), length).expect("it can be written");
        }
        let text = std::fs::read(folder.path().join("run-READ.hdr")).expect("the log exists");
        assert!(text.starts_with(b"#[Logging for: READ]\n#[Histogram log format version 1.3]\n"));
        let mut counts = Vec::new();
        for entry in IntervalLogIterator::new(&text) {
            if let Ok(LogEntry::Interval(line)) = entry {
                let bytes = base64::engine::general_purpose::STANDARD
                    .decode(line.encoded_histogram())
                    .expect("the payload is base 64");
                let histogram: Histogram<u64> = Deserializer::new()
                    .deserialize(&mut bytes.as_slice())
                    .expect("the payload is a histogram");
                counts.push((
                    line.start_timestamp().as_secs(),
                    histogram.len(),
                    histogram.max() / 10,
                ));
            }
        }
        assert_eq!(counts, [(0, 5, 200), (1, 5, 200)]);
    }

    #[test]
    fn unwritable_folder_is_an_environment_error() {
        let mut measured = Measured::new(MeasurementInterval::Op);
        measured.add(&window(PhaseKind::Measure, "read", 5, 5));
        let mut files = HdrFiles::new("/no/such/folder/", SystemTime::UNIX_EPOCH);
        let failure = files
            .write(&measured, Duration::ZERO, Duration::ZERO)
            .expect_err("the folder does not exist");
        assert_eq!(failure.kind, Kind::Environment);
    }
}
