//! Generated values that depend on nothing but their stream and place.

use super::law::{IntegerLaw, Sampler};
use super::raw::{self, DECIMAL128, Number};
use super::stream::{Place, Stream};
use super::text::{Binary, Mask, Text, Words};
use dyno_wire::bson::kind;
use rand::{Rng, RngExt};

#[derive(Debug)]
pub(super) enum Scalar {
    Integer { law: IntegerLaw, form: IntegerForm },
    Double { min: f64, max: f64, law: Sampler },
    Boolean { probability: f64 },
    ObjectId,
    Uuid,
    Binary(Binary),
    Text(Text),
    Mask(Mask),
    Words(Box<Words>),
}

impl Scalar {
    /// Appends the bytes of the value and returns its type.
    #[inline]
    pub(super) fn write(&self, stream: Stream, place: Place, out: &mut Vec<u8>) -> u8 {
        let (number, mut draws) = (place.number, stream.at(place));
        match self {
            Scalar::Integer { law, form } => form.write(law.draw(number, &mut draws), out),
            Scalar::Double { min, max, law } => {
                Number::Double(law.real(*min, *max, &mut draws)).write(out)
            }
            Scalar::Boolean { probability } => {
                out.push(u8::from(draws.happens(*probability)));
                kind::BOOLEAN
            }
            Scalar::ObjectId => write_object_id(stream, place, out),
            Scalar::Uuid => {
                let mut bytes = [0; 16];
                draws.fill_bytes(&mut bytes);
                write_uuid(bytes, out)
            }
            Scalar::Binary(binary) => {
                let start = out.len();
                out.extend_from_slice(&[0; 5]);
                binary.write(number, &mut draws, out);
                let bytes = (out.len() - start - 5) as u32;
                out[start..start + 4].copy_from_slice(&bytes.to_le_bytes());
                kind::BINARY
            }
            Scalar::Text(text) => raw::write_text(out, |out| text.write(number, &mut draws, out)),
            Scalar::Mask(mask) => raw::write_text(out, |out| mask.write(&mut draws, out)),
            Scalar::Words(words) => {
                raw::write_text(out, |out| words.write(number, &mut draws, out))
            }
        }
    }
}

/// How an integer is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum IntegerForm {
    Int32,
    Int64,
    /// Milliseconds since 1970.
    Date,
    /// Decimal128 with this number of digits after the point.
    Decimal(u8),
}

impl IntegerForm {
    /// The form of all integers between two ends.
    pub(super) fn between(min: i64, max: i64) -> Self {
        let is_short = i32::try_from(min).is_ok() && i32::try_from(max).is_ok();
        if is_short { IntegerForm::Int32 } else { IntegerForm::Int64 }
    }

    #[inline]
    fn write(self, value: i64, out: &mut Vec<u8>) -> u8 {
        match self {
            IntegerForm::Int32 => Number::Int32(value as i32).write(out),
            IntegerForm::Int64 => Number::Int64(value).write(out),
            IntegerForm::Date => Number::Date(value).write(out),
            IntegerForm::Decimal(digits) => {
                out.extend_from_slice(&decimal(value, digits));
                DECIMAL128
            }
        }
    }
}

/// `value` × 10^-digits as Decimal128 in binary integer decimal (IEEE 754-2008): 113 bits of coefficient, above them the exponent
/// plus 6176, and the sign.
fn decimal(value: i64, digits: u8) -> [u8; 16] {
    let sign = u128::from(value < 0) << 127;
    let exponent = (6176 - u128::from(digits)) << 113;
    (sign | exponent | u128::from(value.unsigned_abs())).to_le_bytes()
}

/// `%series`, in milliseconds.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) stream: Stream,
    pub(super) start_ms: i64,
    pub(super) step_ms: i64,
    pub(super) jitter_ms: u64,
}

impl Series {
    /// Time after a number of steps; saturates.
    pub(super) fn time_ms(&self, steps: i64, place: Place) -> i64 {
        let time = i128::from(self.start_ms) + i128::from(self.step_ms) * i128::from(steps);
        let jitter = if self.jitter_ms == 0 {
            0
        } else {
            let width = 2 * u128::from(self.jitter_ms);
            let drawn = self.stream.at(place).random_range(0..=width);
            drawn as i128 - i128::from(self.jitter_ms)
        };
        (time + jitter).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// Seconds from 1970 to 2026.
const OBJECT_ID_EPOCH_S: u64 = 1_767_225_600;

/// An ObjectId as one client makes them: ascending with the number, 1,024 per second from 2026 on. The five bytes that differ
/// between clients differ between the places of templates here. Unique up to number 2^42.
fn write_object_id(stream: Stream, place: Place, out: &mut Vec<u8>) -> u8 {
    let seconds = (OBJECT_ID_EPOCH_S + (place.number >> 10)) as u32;
    let client = stream.shared_bits(place).to_be_bytes();
    let counter = (place.number as u32).to_be_bytes();
    out.extend_from_slice(&seconds.to_be_bytes());
    out.extend_from_slice(&client[3..]);
    out.extend_from_slice(&counter[1..]);
    kind::OBJECT_ID
}

/// RFC 9562, version 4: 122 random bits.
fn write_uuid(mut bytes: [u8; 16], out: &mut Vec<u8>) -> u8 {
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    out.extend_from_slice(&[16, 0, 0, 0, 4]);
    out.extend_from_slice(&bytes);
    kind::BINARY
}
