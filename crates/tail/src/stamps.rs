//! Reads the stamp files of producers and consumers, record by record.

use crate::error::TailError;
use dyno_record::plain_file;
use std::io::{BufReader, Read};
use std::path::Path;

/// Bytes of a record of either kind.
pub const RECORD_BYTES: usize = 32;
/// Reply number if the driver does not report one.
const NO_BATCH: u32 = u32::MAX;

/// A type that is decoded from one record.
pub trait Stamp: Sized {
    /// Decodes the stamp.
    ///
    /// # Errors
    /// The reason why values are not valid.
    fn decode(record: &[u8; RECORD_BYTES]) -> Result<Self, String>;
}

/// A producer's stamp of one message, in nanoseconds of the chosen clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub n: u64,
    pub intended_ns: i64,
    pub send_ns: i64,
    /// End of the insert, successful or not.
    pub end_ns: i64,
    pub failed: bool,
}

impl Sent {
    /// The same message on another clock.
    pub(crate) fn mapped(self, clock: impl Fn(i64) -> i64) -> Sent {
        Sent {
            intended_ns: clock(self.intended_ns),
            send_ns: clock(self.send_ns),
            end_ns: clock(self.end_ns),
            ..self
        }
    }
}

/// A consumer's stamp of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Number of the producer.
    pub producer: u32,
    pub n: u64,
    /// Start of the send, as contained in the message.
    pub send_ns: i64,
    pub received_ns: i64,
    /// Number of the reply, if the driver reports it.
    pub batch: Option<u32>,
}

fn word(record: &[u8; RECORD_BYTES], place: usize) -> [u8; 8] {
    let mut word = [0; 8];
    word.copy_from_slice(&record[8 * place..8 * place + 8]);
    word
}

fn signed(record: &[u8; RECORD_BYTES], place: usize) -> i64 {
    i64::from_le_bytes(word(record, place))
}

impl Stamp for Sent {
    fn decode(record: &[u8; RECORD_BYTES]) -> Result<Self, String> {
        let end = signed(record, 3);
        let sent = Sent {
            n: u64::from_le_bytes(word(record, 0)),
            intended_ns: signed(record, 1),
            send_ns: signed(record, 2),
            end_ns: end.saturating_abs(),
            failed: end < 0,
        };
        if sent.intended_ns <= 0 || sent.send_ns < sent.intended_ns || sent.end_ns < sent.send_ns {
            return Err(format!(
                "message {} was intended at {}, sent at {} and answered at {}",
                sent.n, sent.intended_ns, sent.send_ns, sent.end_ns
            ));
        }
        Ok(sent)
    }
}

impl Stamp for Received {
    fn decode(record: &[u8; RECORD_BYTES]) -> Result<Self, String> {
        // The last word is two 32-bit numbers: producer, then reply.
        let last = u64::from_le_bytes(word(record, 3));
        let (producer, batch) = (last as u32, (last >> 32) as u32);
        let received = Received {
            producer,
            n: u64::from_le_bytes(word(record, 0)),
            send_ns: signed(record, 1),
            received_ns: signed(record, 2),
            batch: (batch != NO_BATCH).then_some(batch),
        };
        // With diverging clocks, the receipt may precede the send; this is counted elsewhere.
        if received.send_ns <= 0 || received.received_ns <= 0 {
            return Err(format!(
                "message {} of producer {producer} was sent at {} and received at {}",
                received.n, received.send_ns, received.received_ns
            ));
        }
        Ok(received)
    }
}

/// Passes on the stamps of a file, one after the other.
///
/// # Errors
/// The first error of `take`, [`TailError::File`], or [`TailError::Stamps`] for a record that is not valid.
pub fn read<T: Stamp>(
    path: &Path,
    mut take: impl FnMut(T) -> Result<(), TailError>,
) -> Result<(), TailError> {
    let file = plain_file::open(path).map_err(TailError::file(path))?;
    let mut file = BufReader::with_capacity(1 << 16, file);
    let mut record = Vec::with_capacity(RECORD_BYTES);
    for number in 0_u64.. {
        record.clear();
        let next = file.by_ref().take(RECORD_BYTES as u64).read_to_end(&mut record);
        if next.map_err(TailError::file(path))? == 0 {
            break;
        }
        let wrong = |reason: String| TailError::Stamps {
            path: path.to_owned(),
            reason: format!("record {number}: {reason}"),
        };
        let whole = record
            .as_slice()
            .try_into()
            .map_err(|_| wrong(format!("truncated to {} of {RECORD_BYTES} bytes", record.len())))?;
        take(T::decode(whole).map_err(wrong)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: [u64; 4]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn read<T: Stamp>(bytes: &[u8]) -> Vec<Result<T, String>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stamps");
        std::fs::write(&path, bytes).unwrap();
        let mut found = Vec::new();
        let result = super::read(&path, |stamp| {
            found.push(Ok(stamp));
            Ok(())
        });
        found.extend(result.err().map(|error| Err(error.to_string())));
        found
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let sent = [bytes([7, 100, 110, 150]), bytes([8, 100, 111, (-160i64) as u64])];
        let found = read::<Sent>(&sent.concat());
        assert_eq!(
            found[0],
            Ok(Sent { n: 7, intended_ns: 100, send_ns: 110, end_ns: 150, failed: false })
        );
        assert_eq!(
            found[1],
            Ok(Sent { n: 8, intended_ns: 100, send_ns: 111, end_ns: 160, failed: true })
        );
        let both = [bytes([7, 110, 170, 5 << 32 | 3]), bytes([8, 111, 171, u64::MAX << 32 | 3])];
        let found = read::<Received>(&both.concat());
        let first = Received { producer: 3, n: 7, send_ns: 110, received_ns: 170, batch: Some(5) };
        assert_eq!(found[0], Ok(first));
        assert_eq!(found[1].as_ref().unwrap().batch, None);
    }

    #[test]
    fn torn_last_record_is_reported_after_the_whole_ones() {
        let mut torn = bytes([7, 100, 110, 150]);
        torn.extend(&bytes([8, 100, 110, 150])[..31]);
        let found = read::<Sent>(&torn);
        assert_eq!(found.len(), 2);
        assert!(found[0].is_ok());
        let reported = found[1].as_ref().unwrap_err();
        for part in ["record 1", "31 of 32 bytes"] {
            assert!(reported.contains(part), "{reported}");
        }
    }

    #[test]
    fn decreasing_times_are_an_error_and_end_the_reading() {
        for words in [[1, 0, 5, 9], [1, 10, 9, 20], [1, 10, 11, 10]] {
            let mut stamps = bytes(words);
            stamps.extend(bytes([2, 10, 11, 12]));
            let found = read::<Sent>(&stamps);
            assert_eq!(found.len(), 1, "{words:?}");
            assert!(found[0].as_ref().unwrap_err().contains("message 1"));
        }
        let early = read::<Received>(&bytes([1, 10, 0, 0]));
        let reported = early[0].as_ref().unwrap_err();
        assert!(reported.contains("message 1 ") && reported.contains("producer 0"));
        assert!(read::<Sent>(&[]).is_empty());
    }
}
