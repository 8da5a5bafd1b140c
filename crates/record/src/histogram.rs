//! Histograms in the compressed V2 format of HdrHistogram, used in `latency.hlog` and by agents.

use crate::interval::{HIGHEST_NS, LOWEST_NS, SIGNIFICANT_DIGITS};
use crate::sparse::SparseHistogram;
use flate2::read::ZlibDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use std::io::Read;

/// First bytes of compressed and uncompressed histograms.
const COMPRESSED: u32 = 0x1c84_9314;
const UNCOMPRESSED: u32 = 0x1c84_9313;
/// Maximum size of the counts: a histogram over all 64-bit values with our digits has 55 × 1024 counters of at most 9
/// bytes.
const MOST_BYTES: u32 = 55 * 1024 * 9;

/// Bytes before the counts: cookie, length, normalizing offset, digits, bounds, ratio.
const HEADER_BYTES: usize = 40;

/// Reads histograms; reuses its buffers.
#[derive(Default)]
pub struct HistogramReader {
    library: Deserializer,
    inflated: Vec<u8>,
    inflater: Option<Decompress>,
}

impl HistogramReader {
    /// Decodes a histogram. Memory is bounded: a header may claim gigabytes, and the library would allocate them before
    /// it reads the first byte.
    ///
    /// # Errors
    /// A description of the problem.
    pub fn read(&mut self, mut bytes: &[u8]) -> Result<Histogram<u64>, String> {
        let header = header(bytes).map_err(|error| format!("cannot read the header: {error}"))?;
        let [cookie, inner_cookie, length, _, digits] = header;
        if cookie != COMPRESSED || inner_cookie != UNCOMPRESSED {
            return Err("not a compressed histogram".into());
        }
        if length > MOST_BYTES || digits > SIGNIFICANT_DIGITS.into() {
            return Err(format!(
                "the header claims {length} bytes with {digits} significant digits, but at most {MOST_BYTES} with {SIGNIFICANT_DIGITS} are possible"
            ));
        }
        let histogram = self.library.deserialize(&mut bytes);
        histogram.map_err(|error| error.to_string())
    }

    /// Like [`HistogramReader::read`], but returns only the nonzero counters.
    pub(crate) fn read_sparse(&mut self, bytes: &[u8]) -> Result<SparseHistogram, String> {
        match self.own_counts(bytes) {
            Some(histogram) => Ok(histogram),
            // Other bounds, or invalid data.
            None => {
                let other = self.read(bytes)?;
                SparseHistogram::of_other(&other).map_err(|error| error.to_string())
            }
        }
    }

    /// Decodes valid data with the bounds of a latency histogram.
    fn own_counts(&mut self, bytes: &[u8]) -> Option<SparseHistogram> {
        let (outer, compressed) = bytes.split_at_checked(8)?;
        let length = usize::try_from(number(outer, 4)).ok()?;
        let compressed = compressed.get(..length)?;
        // Allocate the maximum once: filling it with zeros each time took longer than reading most histograms.
        self.inflated.resize(HEADER_BYTES + MOST_BYTES as usize, 0);
        let inflater = self.inflater.get_or_insert_with(|| Decompress::new(true));
        inflater.reset(true);
        let status = inflater.decompress(compressed, &mut self.inflated, FlushDecompress::Finish);
        let inflated = usize::try_from(inflater.total_out()).ok()?;
        let (inner, counts) = self.inflated.get(..inflated)?.split_at_checked(HEADER_BYTES)?;
        let own = own_header(u32::try_from(counts.len()).ok()?);
        let is_own = number(outer, 0) == COMPRESSED && inner == own.as_slice();
        let is_whole = matches!(status, Ok(Status::StreamEnd));
        (is_own && is_whole).then(|| of_counts(counts)).flatten()
    }
}

/// Header of a histogram with the bounds of all latency histograms and `length` bytes of counts.
fn own_header(length: u32) -> Vec<u8> {
    let numbers = [UNCOMPRESSED, length, 0, u32::from(SIGNIFICANT_DIGITS)];
    let mut header: Vec<u8> = numbers.into_iter().flat_map(u32::to_be_bytes).collect();
    header.extend(LOWEST_NS.to_be_bytes());
    header.extend(HIGHEST_NS.to_be_bytes());
    header.extend(1_f64.to_be_bytes());
    header
}

/// ZigZag LEB128 numbers: groups of seven bits, the least significant first, the ninth byte whole; the sign is in the
/// lowest bit. A negative number skips that many zero counters; other numbers are one counter.
fn of_counts(bytes: &[u8]) -> Option<SparseHistogram> {
    let mut found = SparseHistogram::with_capacity(bytes.len());
    let mut bytes = bytes.iter();
    let (mut counter, mut total) = (0_u64, 0_u64);
    while let Some(mut byte) = bytes.next() {
        let mut encoded = u64::from(byte & 0x7f);
        let mut shift = 7;
        while byte & 0x80 != 0 && shift <= 56 {
            byte = bytes.next()?;
            let bits = if shift == 56 { *byte } else { byte & 0x7f };
            encoded |= u64::from(bits) << shift;
            shift += 7;
        }
        let number = (encoded >> 1) as i64 ^ -((encoded & 1) as i64);
        if number < 0 {
            counter = counter.checked_add(number.unsigned_abs())?;
            continue;
        }
        if number > 0 {
            found.push(counter, number as u64)?;
            total = total.checked_add(number as u64)?;
        }
        counter = counter.checked_add(1)?;
    }
    Some(found)
}

fn number(bytes: &[u8], place: usize) -> u32 {
    bytes.iter().skip(place).take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Outer cookie; then, compressed: cookie, length of the counts, normalizing offset, significant digits.
fn header(bytes: &[u8]) -> std::io::Result<[u32; 5]> {
    let mut outer = [0; 8];
    let mut rest = bytes;
    rest.read_exact(&mut outer)?;
    let mut inner = [0; 16];
    ZlibDecoder::new(rest).read_exact(&mut inner)?;
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
        [&COMPRESSED.to_be_bytes()[..], &length.to_be_bytes(), &compressed].concat()
    }

    #[test]
    fn a_histogram_is_read_back() {
        let mut histogram = latency_histogram();
        // Separate counters need the most bytes.
        for value in (0..60).map(|power| 1_u64 << power) {
            histogram.saturating_record_n(value, u64::MAX >> 9);
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&histogram, &mut bytes).unwrap();
        assert_eq!(HistogramReader::default().read(&bytes).unwrap(), histogram);
    }

    #[test]
    fn nonzero_counters_equal_the_library_s() {
        let mut reader = HistogramReader::default();
        let mut histogram = latency_histogram();
        for round in 0..40_u64 {
            // Counts of one byte and of nine, adjacent and far apart.
            for value in (0..36).map(|power| (1_u64 << power) + 7_000 * round) {
                let count = 1_u64 << ((value + round) % 50);
                histogram.record_n(value.min(HIGHEST_NS), count).unwrap();
            }
            let mut bytes = Vec::new();
            let mut serializer = V2DeflateSerializer::new();
            serializer.serialize(&histogram, &mut bytes).unwrap();
            assert!(reader.own_counts(&bytes).is_some(), "it is read without the library");
            assert_eq!(reader.read_sparse(&bytes).unwrap().to_histogram(), histogram);
            // Truncated data is rejected, as by the library.
            assert!(reader.read_sparse(&bytes[..bytes.len() / 2]).is_err());
        }
        let empty = latency_histogram();
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&empty, &mut bytes).unwrap();
        assert_eq!(reader.read_sparse(&bytes).unwrap().len(), 0);
    }

    #[test]
    fn histograms_with_other_bounds_are_read_by_the_library() {
        let mut other = Histogram::<u64>::new_with_bounds(1, 1 << 40, 2).unwrap();
        other.record_n(5_000_000, 3).unwrap();
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&other, &mut bytes).unwrap();
        let mut reader = HistogramReader::default();
        assert_eq!(reader.read_sparse(&bytes).unwrap().len(), 3);
        other.record(1 << 39).unwrap();
        bytes.clear();
        V2DeflateSerializer::new().serialize(&other, &mut bytes).unwrap();
        assert!(reader.read_sparse(&bytes).is_err(), "beyond 60 s");
    }

    #[test]
    fn oversized_headers_are_rejected_before_allocation() {
        for (length, digits) in [(u32::MAX, 3), (MOST_BYTES + 1, 3), (0, 5)] {
            let read = HistogramReader::default().read(&crafted(length, digits));
            let reason = read.unwrap_err();
            assert!(reason.contains(&MOST_BYTES.to_string()), "{reason}");
        }
        // A valid length without the data.
        assert!(HistogramReader::default().read(&crafted(1000, 3)).is_err());
        assert!(HistogramReader::default().read(b"abc").is_err());
        assert!(HistogramReader::default().read(&[0; 40]).is_err());
    }
}
