//! The encoding of a recording window: counters as JSON, and each operation's histograms in the compressed V2 format of
//! HdrHistogram. Only the rounding of the histogram itself is lost.

use crate::error::FleetError;
use dyno_record::error_example::ErrorExample;
use dyno_record::histogram::HistogramReader;
use dyno_record::interval::{
    ErrorCount, IntervalRecord, OperationInterval, SubSecondPart, WindowCounts,
};
use dyno_record::interval::{HIGHEST_NS, LOWEST_NS, SIGNIFICANT_DIGITS};
use dyno_record::model::PhaseKind;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// Operation names that windows can have.
const OPERATIONS: [&str; 7] =
    ["read", "update", "insert", "scan", "read_modify_write", "delete", "insert_batch"];
/// Most parts of a hundredth of a second in a window: one minute.
const MOST_PARTS: usize = 6_000;
/// Most kinds of errors in a window.
const MOST_ERRORS: usize = 1_000;

/// A window without its histograms. See [`IntervalRecord`] for the fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowHeader {
    pub phase: PhaseKind,
    pub index: u64,
    pub start_ns: u64,
    pub duration_ns: u64,
    pub operations: Vec<OperationHeader>,
    pub errors: Vec<ErrorHeader>,
    pub counts: WindowCounts,
    pub sub_second_parts: usize,
}

/// An operation without its histograms. See [`OperationInterval`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationHeader {
    pub name: String,
    pub response_sum_ns: u128,
    pub service_sum_ns: u128,
    pub start_delay_sum_ns: u128,
    pub documents: u64,
    pub errors: u64,
    pub clamped: u64,
}

/// See [`ErrorCount`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorHeader {
    pub operation: String,
    pub kind: String,
    pub count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<ErrorExample>,
}

/// Encodes windows; reuses its buffers.
#[derive(Default)]
pub struct WindowEncoder {
    serializer: V2DeflateSerializer,
    buffer: Vec<u8>,
}

impl WindowEncoder {
    /// Returns a window's counters and histograms.
    pub fn encode(&mut self, window: &IntervalRecord) -> (WindowHeader, Vec<u8>) {
        let mut blob = Vec::new();
        for operation in &window.operations {
            for histogram in [&operation.response, &operation.service, &operation.start_delay] {
                self.buffer.clear();
                self.serializer
                    .serialize(histogram, &mut self.buffer)
                    .expect("writing to memory cannot fail");
                blob.extend_from_slice(&(self.buffer.len() as u32).to_le_bytes());
                blob.extend_from_slice(&self.buffer);
            }
        }
        for part in &window.sub_second {
            for count in [part.ended, part.failed] {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                blob.extend_from_slice(&count.to_le_bytes());
            }
            blob.extend_from_slice(&part.response_sum_ns.to_le_bytes());
        }
        (header(window), blob)
    }
}

fn header(window: &IntervalRecord) -> WindowHeader {
    WindowHeader {
        phase: window.phase,
        index: window.index,
        start_ns: window.start_ns,
        duration_ns: window.duration_ns,
        operations: window.operations.iter().map(operation_header).collect(),
        errors: window
            .errors
            .iter()
            .map(|error| ErrorHeader {
                operation: error.operation.into(),
                kind: error.kind.clone(),
                count: error.count,
                example: error.example.clone(),
            })
            .collect(),
        counts: window.counts,
        sub_second_parts: window.sub_second.len(),
    }
}

fn operation_header(operation: &OperationInterval) -> OperationHeader {
    OperationHeader {
        name: operation.name.into(),
        response_sum_ns: operation.response_sum_ns,
        service_sum_ns: operation.service_sum_ns,
        start_delay_sum_ns: operation.start_delay_sum_ns,
        documents: operation.documents,
        errors: operation.errors,
        clamped: operation.clamped,
    }
}

/// Decodes windows; reuses its buffers.
#[derive(Default)]
pub struct WindowDecoder {
    reader: HistogramReader,
}

impl WindowDecoder {
    /// Decodes the counters and histograms of [`WindowEncoder::encode`]. `from` names the sender.
    ///
    /// # Errors
    /// [`FleetError::Message`] if they contradict each other, or if histograms have other bounds.
    pub fn decode(
        &mut self,
        header: &WindowHeader,
        blob: &[u8],
        from: &str,
    ) -> Result<IntervalRecord, FleetError> {
        self.read(header, blob).map_err(|reason| FleetError::Message { from: from.into(), reason })
    }

    fn read(&mut self, header: &WindowHeader, blob: &[u8]) -> Result<IntervalRecord, String> {
        if header.operations.len() > OPERATIONS.len()
            || header.errors.len() > MOST_ERRORS
            || header.sub_second_parts > MOST_PARTS
        {
            return Err("the window has too many parts or errors".into());
        }
        let mut rest = blob;
        let mut operations = Vec::with_capacity(header.operations.len());
        for operation in &header.operations {
            operations.push(OperationInterval {
                name: operation_name(&operation.name)?,
                response: self.histogram(&mut rest)?,
                service: self.histogram(&mut rest)?,
                start_delay: self.histogram(&mut rest)?,
                response_sum_ns: operation.response_sum_ns,
                service_sum_ns: operation.service_sum_ns,
                start_delay_sum_ns: operation.start_delay_sum_ns,
                documents: operation.documents,
                errors: operation.errors,
                clamped: operation.clamped,
            });
        }
        let mut sub_second = Vec::with_capacity(header.sub_second_parts);
        for _ in 0..header.sub_second_parts {
            sub_second.push(SubSecondPart {
                ended: short_number(&mut rest)?.into(),
                failed: short_number(&mut rest)?.into(),
                response_sum_ns: number(&mut rest)?,
            });
        }
        if !rest.is_empty() {
            return Err(format!("{} unexpected bytes after the window", rest.len()));
        }
        let mut errors = Vec::with_capacity(header.errors.len());
        for error in &header.errors {
            errors.push(ErrorCount {
                operation: operation_name(&error.operation)?,
                kind: error.kind.clone(),
                count: error.count,
                example: error.example.clone().map(ErrorExample::bounded),
            });
        }
        Ok(IntervalRecord {
            duration_ns: header.duration_ns,
            operations,
            errors,
            counts: header.counts,
            sub_second,
            ..IntervalRecord::empty(header.phase, header.index, header.start_ns)
        })
    }

    fn histogram(&mut self, rest: &mut &[u8]) -> Result<Histogram<u64>, String> {
        let length = short_number(rest)?;
        let bytes = take(rest, length as usize)?;
        let histogram = self
            .reader
            .read(bytes)
            .map_err(|error| format!("cannot decode a histogram: {error}"))?;
        let is_usual = histogram.low() == LOWEST_NS
            && histogram.high() == HIGHEST_NS
            && histogram.sigfig() == SIGNIFICANT_DIGITS;
        if !is_usual {
            return Err("a histogram has unexpected bounds".into());
        }
        Ok(histogram)
    }
}

fn operation_name(name: &str) -> Result<&'static str, String> {
    let known = OPERATIONS.iter().find(|known| **known == name);
    known.copied().ok_or_else(|| format!("unknown operation `{name}`"))
}

fn number(rest: &mut &[u8]) -> Result<u64, String> {
    Ok(u64::from_le_bytes(array(rest)?))
}

fn short_number(rest: &mut &[u8]) -> Result<u32, String> {
    Ok(u32::from_le_bytes(array(rest)?))
}

fn array<const LENGTH: usize>(rest: &mut &[u8]) -> Result<[u8; LENGTH], String> {
    let bytes = take(rest, LENGTH)?;
    Ok(bytes.try_into().map_err(|_| "no number")?)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (taken, left) = rest.split_at_checked(length).ok_or("the histograms end too early")?;
    *rest = left;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::interval::latency_histogram;

    fn window() -> IntervalRecord {
        let mut response = latency_histogram();
        response.record_n(1_234_567, 1000).expect("in bounds");
        response.record(59_999_999_999).expect("in bounds");
        IntervalRecord {
            duration_ns: 1_000_000_000,
            operations: vec![OperationInterval {
                name: "read",
                service: response.clone(),
                start_delay: latency_histogram(),
                response,
                response_sum_ns: u128::from(u64::MAX) * 3,
                service_sum_ns: 7,
                start_delay_sum_ns: 0,
                documents: 1001,
                errors: 2,
                clamped: 1,
            }],
            errors: vec![ErrorCount {
                operation: "read",
                kind: "server_11000".into(),
                count: 2,
                example: Some(ErrorExample::new(Some(11000), "DuplicateKey", "E11000")),
            }],
            counts: WindowCounts { succeeded: 1001, failed: 2, ..WindowCounts::default() },
            sub_second: vec![SubSecondPart { ended: 10, failed: 2, response_sum_ns: 99 }; 100],
            ..IntervalRecord::empty(PhaseKind::Measure, 4, 4_000_000_000)
        }
    }

    fn decode(header: &WindowHeader, blob: &[u8]) -> Result<IntervalRecord, FleetError> {
        WindowDecoder::default().decode(header, blob, "agent 1")
    }

    #[test]
    fn window_survives_encoding_and_decoding() {
        let (header, blob) = WindowEncoder::default().encode(&window());
        let json = serde_json::to_string(&header).expect("serializable");
        let header: WindowHeader = serde_json::from_str(&json).expect("the same");
        let arrived = decode(&header, &blob).expect("valid");
        let (sent, got) = (&window().operations[0], &arrived.operations[0]);
        assert!(sent.response == got.response && sent.start_delay == got.start_delay);
        // Encoding the result gives the same message, so nothing else is lost.
        assert!(WindowEncoder::default().encode(&arrived) == (header, blob.clone()));
        assert!(blob.len() < 2_500, "{}", blob.len());
    }

    #[test]
    fn damaged_message_is_reported_with_its_sender() {
        let (header, blob) = WindowEncoder::default().encode(&window());
        for length in 0..blob.len() {
            assert!(decode(&header, &blob[..length]).is_err(), "{length}");
        }
        let longer = [blob.as_slice(), &[0]].concat();
        let error = decode(&header, &longer).expect_err("too long").to_string();
        assert!(error.contains("agent 1") && error.contains("1 unexpected bytes"), "{error}");
        let mut unknown = header.clone();
        unknown.operations[0].name = "dance".into();
        assert!(decode(&unknown, &blob).expect_err("unknown").to_string().contains("`dance`"));
        let mut many = header;
        many.sub_second_parts = usize::MAX;
        assert!(decode(&many, &blob).is_err());
    }

    #[test]
    fn all_histograms_have_the_same_bounds() {
        let mut other = window();
        other.operations[0].response = Histogram::new_with_bounds(1, 1_000, 2).expect("bounds");
        let (header, blob) = WindowEncoder::default().encode(&other);
        let error = decode(&header, &blob).expect_err("other bounds").to_string();
        assert!(error.contains("bounds"), "{error}");
    }
}
