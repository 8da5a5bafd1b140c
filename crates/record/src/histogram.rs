//! Histograms as bytes: the compressed V2 form of HdrHistogram, in `latency.hlog` and on the way from an agent.

use crate::interval::SIGNIFICANT_DIGITS;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use std::io::Read;

/// What compressed histograms begin with, and uncompressed ones.
const COMPRESSED: u32 = 0x1c84_9314;
const UNCOMPRESSED: u32 = 0x1c84_9313;
/// Most bytes of counts: a histogram over all 64-bit values with our digits has 55 × 1024 counters of at most 9 bytes.
const MOST_BYTES: u32 = 55 * 1024 * 9;

/// Reads histograms; keeps its buffer between them.
#[derive(Default)]
pub struct HistogramReader(Deserializer);

impl HistogramReader {
    /// The histogram in these bytes. Memory is bounded: a header may announce gigabytes, and the library would take them
    /// before it has read one byte of them.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn read(&mut self, mut bytes: &[u8]) -> Result<Histogram<u64>, String> {
        let header = header(bytes).map_err(|error| format!("it has no header: {error}"))?;
        let [cookie, inner_cookie, length, _, digits] = header;
        if cookie != COMPRESSED || inner_cookie != UNCOMPRESSED {
            return Err("it does not begin like a compressed histogram".into());
        }
        if length > MOST_BYTES || digits > SIGNIFICANT_DIGITS.into() {
            return Err(format!(
                "it announces {length} bytes with {digits} significant digits, but at most {MOST_BYTES} with {SIGNIFICANT_DIGITS} are possible"
            ));
        }
        let histogram = self.0.deserialize(&mut bytes);
        histogram.map_err(|error| error.to_string())
    }
}

/// Outer cookie; then, compressed: cookie, length of the counts, normalizing offset, significant digits.
fn header(bytes: &[u8]) -> std::io::Result<[u32; 5]> {
    let mut outer = [0; 8];
    let mut rest = bytes;
    rest.read_exact(&mut outer)?;
    let mut inner = [0; 16];
    ZlibDecoder::new(rest).read_exact(&mut inner)?;
    let number = |bytes: &[u8], place: usize| {
        bytes[place..place + 4]
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte))
    };
    Ok([
        number(&outer, 0),
        number(&inner, 0),
        number(&inner, 4),
        number(&inner, 8),
        number(&inner, 12),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::latency_histogram;
    use flate2::Compression;
    use flate2::read::ZlibEncoder;
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

    fn crafted(length: u32, digits: u32) -> Vec<u8> {
        let mut inner = Vec::new();
        for number in [UNCOMPRESSED, length, 0, digits] {
            inner.extend(number.to_be_bytes());
        }
        inner.extend(1_u64.to_be_bytes());
        inner.extend(u64::MAX.to_be_bytes());
        inner.extend(1_f64.to_be_bytes());
        let mut compressed = Vec::new();
        ZlibEncoder::new(inner.as_slice(), Compression::fast())
            .read_to_end(&mut compressed)
            .unwrap();
        let length = u32::try_from(compressed.len()).unwrap();
        [
            &COMPRESSED.to_be_bytes()[..],
            &length.to_be_bytes(),
            &compressed,
        ]
        .concat()
    }

    #[test]
    fn a_histogram_is_read_back() {
        let mut histogram = latency_histogram();
        // Each counter of its own takes the most bytes.
        for value in (0..60).map(|power| 1_u64 << power) {
            histogram.saturating_record_n(value, u64::MAX >> 9);
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&histogram, &mut bytes)
            .unwrap();
        assert_eq!(HistogramReader::default().read(&bytes).unwrap(), histogram);
    }

    #[test]
    fn what_announces_too_much_is_refused_before_it_takes_memory() {
        for (length, digits) in [(u32::MAX, 3), (MOST_BYTES + 1, 3), (0, 5)] {
            let read = HistogramReader::default().read(&crafted(length, digits));
            assert!(read.unwrap_err().contains("announces"));
        }
        // A length that is possible and not there.
        assert!(HistogramReader::default().read(&crafted(1000, 3)).is_err());
        assert!(HistogramReader::default().read(b"abc").is_err());
        assert!(HistogramReader::default().read(&[0; 40]).is_err());
    }
}
