//! Parts that the serialized form of a recording window omits: each operation's histograms in the compressed V2 format of
//! HdrHistogram, and the parts below a second. Only the rounding of the histogram itself is lost.

use crate::error::FleetError;
use dyno_plan::operation::Operations;
use dyno_record::error_example::ErrorExample;
use dyno_record::histogram::HistogramReader;
use dyno_record::interval::{
    HIGHEST_NS, IntervalRecord, LOWEST_NS, SIGNIFICANT_DIGITS, SubSecondPart,
};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

/// Most parts of a hundredth of a second in a window: one minute.
const MOST_PARTS: u32 = 6_000;
/// Most kinds of errors in a window.
const MOST_ERRORS: usize = 1_000;

/// Encodes windows; reuses its buffers.
#[derive(Default)]
pub struct WindowEncoder {
    serializer: V2DeflateSerializer,
    buffer: Vec<u8>,
}

impl WindowEncoder {
    /// Returns what the serialized form of a window omits.
    pub fn encode(&mut self, window: &IntervalRecord) -> Vec<u8> {
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
        blob.extend_from_slice(&(window.sub_second.len() as u32).to_le_bytes());
        for part in &window.sub_second {
            for count in [part.ended, part.failed] {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                blob.extend_from_slice(&count.to_le_bytes());
            }
            blob.extend_from_slice(&part.response_sum_ns.to_le_bytes());
        }
        blob
    }
}

/// Decodes windows; reuses its buffers.
#[derive(Default)]
pub struct WindowDecoder {
    reader: HistogramReader,
    operations: Operations,
}

impl WindowDecoder {
    /// Accepts windows with these operations only, each of which takes half a megabyte.
    pub fn new(operations: Operations) -> Self {
        WindowDecoder { reader: HistogramReader::default(), operations }
    }

    /// Completes a window by the result of [`WindowEncoder::encode`]. `from` names the sender.
    ///
    /// # Errors
    /// [`FleetError::Message`] if they contradict each other, if an operation is unknown, or if histograms have other
    /// bounds.
    pub fn decode(
        &mut self,
        mut window: IntervalRecord,
        blob: &[u8],
        from: &str,
    ) -> Result<IntervalRecord, FleetError> {
        self.read(&mut window, blob)
            .map_err(|reason| FleetError::Message { from: from.into(), reason })?;
        Ok(window)
    }

    fn read(&mut self, window: &mut IntervalRecord, mut rest: &[u8]) -> Result<(), String> {
        if window.operations.len() > self.operations.len() || window.errors.len() > MOST_ERRORS {
            return Err("the window has too many operations or errors".into());
        }
        let names = window.operations.iter().map(|operation| &operation.name);
        let mut names = names.chain(window.errors.iter().map(|error| &error.operation));
        if let Some(unknown) = names.find(|name| self.operations.find(name).is_none()) {
            return Err(format!("unknown operation `{unknown}`"));
        }
        for operation in &mut window.operations {
            operation.response = self.histogram(&mut rest)?;
            operation.service = self.histogram(&mut rest)?;
            operation.start_delay = self.histogram(&mut rest)?;
        }
        let parts = short_number(&mut rest)?;
        if parts > MOST_PARTS {
            return Err("the window has too many parts".into());
        }
        for _ in 0..parts {
            window.sub_second.push(SubSecondPart {
                ended: short_number(&mut rest)?.into(),
                failed: short_number(&mut rest)?.into(),
                response_sum_ns: u64::from_le_bytes(array(&mut rest)?),
            });
        }
        if !rest.is_empty() {
            return Err(format!("{} unexpected bytes after the window", rest.len()));
        }
        for error in &mut window.errors {
            error.example = error.example.take().map(ErrorExample::bounded);
        }
        Ok(())
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
    use dyno_record::interval::{ErrorCount, OperationInterval, WindowCounts, latency_histogram};
    use dyno_record::model::PhaseKind;

    fn window() -> IntervalRecord {
        let mut response = latency_histogram();
        response.record_n(1_234_567, 1000).expect("in bounds");
        response.record(59_999_999_999).expect("in bounds");
        IntervalRecord {
            duration_ns: 1_000_000_000,
            operations: vec![OperationInterval {
                name: "read".into(),
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
                operation: "read".into(),
                kind: "server_11000".into(),
                count: 2,
                example: Some(ErrorExample::new(Some(11000), "DuplicateKey", "E11000")),
            }],
            counts: WindowCounts { succeeded: 1001, failed: 2, ..WindowCounts::default() },
            sub_second: vec![SubSecondPart { ended: 10, failed: 2, response_sum_ns: 99 }; 100],
            ..IntervalRecord::empty(PhaseKind::Measure, 4, 4_000_000_000)
        }
    }

    /// The window after its way through JSON, with these bytes.
    fn arrive(json: &str, blob: &[u8]) -> Result<IntervalRecord, String> {
        let window = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let plan = dyno_plan::builtin::find("a").expect("built in");
        let mut decoder = WindowDecoder::new(plan.counted_operations());
        let decoded = decoder.decode(window, blob, "agent 1");
        decoded.map_err(|error| error.to_string())
    }

    fn sent(window: &IntervalRecord) -> (String, Vec<u8>) {
        let json = serde_json::to_string(window).expect("serializable");
        (json, WindowEncoder::default().encode(window))
    }

    #[test]
    fn window_survives_encoding_and_decoding() {
        let (json, blob) = sent(&window());
        assert!(arrive(&json, &blob).expect("valid") == window());
        assert!(blob.len() < 2_500, "{}", blob.len());
        assert!(!json.contains("response\""), "{json}");
    }

    #[test]
    fn damaged_message_is_reported_with_its_sender() {
        let (json, blob) = sent(&window());
        for length in 0..blob.len() {
            assert!(arrive(&json, &blob[..length]).is_err(), "{length}");
        }
        let longer = [blob.as_slice(), &[0]].concat();
        let error = arrive(&json, &longer).expect_err("too long");
        assert!(error.contains("agent 1") && error.contains("1 unexpected bytes"), "{error}");
        let unknown = json.replace("\"read\"", "\"dance\"");
        assert!(arrive(&unknown, &blob).expect_err("unknown").contains("`dance`"));
        let mut many = sent(&IntervalRecord { sub_second: Vec::new(), ..window() }).1;
        let count = many.len() - 4;
        many[count..].fill(u8::MAX);
        assert!(arrive(&json, &many).expect_err("more than a minute").contains("too many"));
    }

    #[test]
    fn all_histograms_have_the_same_bounds() {
        let mut other = window();
        other.operations[0].response = Histogram::new_with_bounds(1, 1_000, 2).expect("bounds");
        let (json, blob) = sent(&other);
        let error = arrive(&json, &blob).expect_err("other bounds");
        assert!(error.contains("bounds"), "{error}");
    }
}
