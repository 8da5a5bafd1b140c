//! Lines of `latency.hlog`: the HdrHistogram interval log that any HdrHistogram tool opens.
//!
//! Values are nanoseconds. Times are seconds from the start of the run with millisecond precision, the format's limit;
//! `series/intervals.csv` has the exact times.

use crate::error::RecordError;
use crate::histogram::HistogramReader;
use crate::sparse::SparseHistogram;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::time::{Duration, SystemTime};

/// One of an operation's three latencies, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    Response,
    Service,
    StartDelay,
}

impl Clock {
    pub(crate) const ALL: [Clock; 3] = [Clock::Response, Clock::Service, Clock::StartDelay];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Clock::Response => "response",
            Clock::Service => "service",
            Clock::StartDelay => "start_delay",
        }
    }
}

/// Name of an operation in tags, which cannot have spaces.
pub(crate) fn name_in_tag(operation: &str) -> String {
    operation.replace(' ', "_")
}

/// Tag of a histogram in the log.
pub(crate) fn tag(phase: &str, operation: &str, clock: Clock) -> String {
    format!("{phase}.{}.{}", name_in_tag(operation), clock.as_str())
}

/// The heading lines of a log.
///
/// Both times are given, because readers interpret interval times relative to `BaseTime`, and guess without it.
pub(crate) fn header(started_at: SystemTime) -> Vec<u8> {
    let mut text = Vec::new();
    IntervalLogWriterBuilder::new()
        .add_comment(
            "[mongodyno latency log, values in nanoseconds, tags are phase.operation.clock]",
        )
        .add_comment("[Histogram log format version 1.3]")
        .with_start_time(started_at)
        .with_base_time(started_at)
        .begin_log_with(&mut text, &mut V2DeflateSerializer::new())
        .expect("writing to a vector cannot fail");
    text.extend_from_slice(
        b"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
    );
    text
}

/// Encodes log lines; reuses its buffers.
#[derive(Default)]
pub(crate) struct Encoder {
    serializer: V2DeflateSerializer,
}

impl Encoder {
    /// Appends one tagged histogram to `text`.
    pub(crate) fn put(
        &mut self,
        text: &mut Vec<u8>,
        tag: &str,
        start: Duration,
        length: Duration,
        histogram: &Histogram<u64>,
    ) -> Result<(), RecordError> {
        let encode_error = |source: Box<dyn std::error::Error + Send + Sync>| RecordError::Encode {
            tag: tag.to_owned(),
            source,
        };
        let log_tag =
            Tag::new(tag).ok_or_else(|| encode_error("the tag has a comma or space".into()))?;
        // Without headers, a builder writes nothing itself, so each line can use a new one.
        IntervalLogWriterBuilder::new()
            .begin_log_with(text, &mut self.serializer)
            .map_err(|error| encode_error(error.into()))?
            .write_histogram(histogram, start, length, Some(log_tag))
            .map_err(|error| encode_error(error.to_string().into()))
    }
}

/// Decodes log lines; reuses its buffers.
#[derive(Default)]
pub(crate) struct Decoder {
    reader: HistogramReader,
    bytes: Vec<u8>,
}

impl Decoder {
    /// Reads the histogram of a line, which must have the expected tag.
    pub(crate) fn histogram(
        &mut self,
        line: &str,
        expected_tag: &str,
    ) -> Result<SparseHistogram, String> {
        // The tables have times and maximum with higher precision.
        let mut fields = line.rsplitn(5, ',');
        let encoded = fields.next().unwrap_or_default();
        let Some(found_tag) = fields.nth(3).and_then(|tag| tag.strip_prefix("Tag=")) else {
            return Err("not a tagged entry of an interval log".to_owned());
        };
        if found_tag != expected_tag {
            return Err(format!("found tag `{found_tag}` instead of `{expected_tag}`"));
        }
        self.bytes.clear();
        STANDARD
            .decode_vec(encoded, &mut self.bytes)
            .map_err(|error| format!("the histogram is not base64: {error}"))?;
        self.reader
            .read_sparse(&self.bytes)
            .map_err(|error| format!("the histogram cannot be decoded: {error}"))
    }
}

/// Whether a line is a comment or has column titles.
pub(crate) fn is_heading(line: &str) -> bool {
    line.starts_with('#') || line.starts_with('"')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::latency_histogram;

    fn line() -> String {
        let mut histogram = latency_histogram();
        histogram.record_n(1_500_000, 10).unwrap();
        let mut text = Vec::new();
        Encoder::default()
            .put(
                &mut text,
                "measure.read.response",
                Duration::from_millis(2_500),
                Duration::from_secs(1),
                &histogram,
            )
            .unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_line_is_read_back() {
        let line = line();
        assert!(line.starts_with("Tag=measure.read.response,2.500,1.000,"), "{line}");
        let histogram =
            Decoder::default().histogram(line.trim_end(), "measure.read.response").unwrap();
        assert_eq!(histogram.len(), 10);
        let histogram = histogram.to_histogram();
        assert!(histogram.equivalent(histogram.max(), 1_500_000));
    }

    #[test]
    fn errors_name_the_kind_of_damage() {
        let line = line();
        let line = line.trim_end();
        let decode = |text: &str, tag: &str| Decoder::default().histogram(text, tag).err().unwrap();
        assert!(decode(line, "measure.read.service").contains("instead of"));
        assert!(decode("x", "measure.read.response").contains("not a tagged entry"));
        let broken = line.replace("HISTFAAA", "!!!!");
        assert!(decode(&broken, "measure.read.response").contains("base64"), "{broken}");
        // Truncated between groups of four characters, so that it is still valid base64.
        let start = line.find("HISTFAAA").unwrap();
        let shortened = &line[..start + (line.len() - start) / 8 * 4];
        assert!(decode(shortened, "measure.read.response").contains("decoded"));
    }

    #[test]
    fn the_heading_is_made_of_heading_lines() {
        let text = String::from_utf8(header(SystemTime::UNIX_EPOCH + Duration::from_millis(1_500)))
            .unwrap();
        assert!(text.lines().all(is_heading), "{text}");
        assert!(text.contains("#[BaseTime: 1.500 "), "{text}");
    }
}
