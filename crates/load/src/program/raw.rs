//! Values as BSON type and bytes: numbers, elements of arrays, and values at a path.

use dyno_wire::bson::{Document, Element, Elements, kind};
use std::io::Write;

/// Type byte of Decimal128.
pub(super) const DECIMAL128: u8 = 0x13;

/// Type and bytes of a value.
pub(super) type RawValue<'a> = (u8, &'a [u8]);

/// A number, or a date as its milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Int32(i32),
    Int64(i64),
    Double(f64),
    Date(i64),
}

impl Number {
    /// `None` if the value is of another type.
    #[inline]
    pub(super) fn read((kind, bytes): RawValue<'_>) -> Option<Self> {
        Some(match kind {
            kind::INT32 => Number::Int32(i32::from_le_bytes(bytes.try_into().ok()?)),
            kind::INT64 => Number::Int64(i64::from_le_bytes(bytes.try_into().ok()?)),
            kind::DOUBLE => Number::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
            kind::DATE_TIME => Number::Date(i64::from_le_bytes(bytes.try_into().ok()?)),
            _ => return None,
        })
    }

    /// Appends its bytes; returns its type.
    #[inline]
    pub(super) fn write(self, out: &mut Vec<u8>) -> u8 {
        match self {
            Number::Int32(value) => out.extend_from_slice(&value.to_le_bytes()),
            Number::Int64(value) | Number::Date(value) => {
                out.extend_from_slice(&value.to_le_bytes());
            }
            Number::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
        }
        match self {
            Number::Int32(_) => kind::INT32,
            Number::Int64(_) => kind::INT64,
            Number::Double(_) => kind::DOUBLE,
            Number::Date(_) => kind::DATE_TIME,
        }
    }

    /// The integer, or the double rounded toward zero; saturates.
    #[inline]
    pub(super) fn integer(self) -> i64 {
        match self {
            Number::Int32(value) => i64::from(value),
            Number::Int64(value) | Number::Date(value) => value,
            Number::Double(value) => value as i64,
        }
    }

    pub(super) fn double(self) -> f64 {
        match self {
            Number::Double(value) => value,
            _ => self.integer() as f64,
        }
    }
}

/// Appends a string whose characters `text` appends; returns its type.
#[inline]
pub(super) fn write_text(out: &mut Vec<u8>, text: impl FnOnce(&mut Vec<u8>)) -> u8 {
    let start = begin_text(out);
    text(out);
    end_text(out, start)
}

/// Begins a string; the characters follow. Returns its start, for [`end_text`].
#[inline]
pub(super) fn begin_text(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    start
}

/// Ends a string; returns its type.
#[inline]
pub(super) fn end_text(out: &mut Vec<u8>, start: usize) -> u8 {
    out.push(0);
    let bytes = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&bytes.to_le_bytes());
    kind::STRING
}

/// The text of a string.
pub(super) fn text((kind, bytes): RawValue<'_>) -> Option<&[u8]> {
    if kind == kind::STRING { bytes.get(4..bytes.len() - 1) } else { None }
}

/// Appends the name of an array's element.
#[inline]
fn write_index(out: &mut Vec<u8>, index: u32) {
    if index < 10 {
        out.push(b'0' + index as u8);
    } else {
        // Writing to a vector cannot fail.
        let _ = write!(out, "{index}");
    }
}

/// Appends a value; returns its type.
pub(super) fn copy((kind, bytes): RawValue<'_>, out: &mut Vec<u8>) -> u8 {
    out.extend_from_slice(bytes);
    kind
}

/// The elements of an array.
fn elements((kind, bytes): RawValue<'_>) -> Option<Elements<'_>> {
    if kind != kind::ARRAY {
        return None;
    }
    Document::new(bytes).ok().map(|document| document.elements())
}

pub(super) fn count(array: RawValue<'_>) -> Option<usize> {
    elements(array).map(Iterator::count)
}

pub(super) fn nth(array: RawValue<'_>, index: usize) -> Option<RawValue<'_>> {
    elements(array)?.nth(index)?.ok().map(value_of)
}

fn value_of(element: Element<'_>) -> RawValue<'_> {
    (element.kind, element.bytes())
}

/// The value at a path. Where the path meets an array, and at its end, it continues with one element: the one with the index in
/// the path, otherwise the one that `choose` picks by the number of elements. `None` if the path leads to no value.
pub(super) fn one_at<'a>(
    value: RawValue<'a>,
    path: &[String],
    choose: &mut impl FnMut(usize) -> usize,
) -> Option<RawValue<'a>> {
    let name = path.first();
    if value.0 == kind::ARRAY {
        if let Some(index) = name.and_then(|name| name.parse().ok()) {
            return one_at_end_or_below(nth(value, index)?, &path[1..], choose);
        }
        let count = count(value).filter(|&count| count > 0)?;
        return one_at_end_or_below(nth(value, choose(count))?, path, choose);
    }
    match name {
        None => Some(value),
        Some(name) => one_at(field(value, name)?, &path[1..], choose),
    }
}

/// As [`one_at`], for an element: an array inside of an array is a value of its own at the end of the path.
fn one_at_end_or_below<'a>(
    element: RawValue<'a>,
    path: &[String],
    choose: &mut impl FnMut(usize) -> usize,
) -> Option<RawValue<'a>> {
    if path.is_empty() { Some(element) } else { one_at(element, path, choose) }
}

/// Appends the value at a path, as MongoDB's aggregation does it: a path through an array without an index yields the array of
/// the values in its elements. Returns the type; `None`, with nothing appended, if the path leads to no value.
pub(super) fn write_all_at(value: RawValue<'_>, path: &[String], out: &mut Vec<u8>) -> Option<u8> {
    let Some((name, rest)) = path.split_first() else {
        return Some(copy(value, out));
    };
    if value.0 != kind::ARRAY {
        return write_all_at(field(value, name)?, rest, out);
    }
    if let Ok(index) = name.parse() {
        return write_all_at(nth(value, index)?, rest, out);
    }
    let mut array = ArrayWriter::begin(out);
    for element in elements(value)?.flatten() {
        array.element(out, |out| write_all_at(value_of(element), path, out));
    }
    Some(array.end(out))
}

fn field<'a>((kind, bytes): RawValue<'a>, name: &str) -> Option<RawValue<'a>> {
    if kind != kind::DOCUMENT {
        return None;
    }
    Document::new(bytes).ok()?.find(name).ok()?.map(value_of)
}

/// Appends an array whose elements may turn out to be absent.
#[derive(Debug)]
pub(super) struct ArrayWriter {
    start: usize,
    count: u32,
}

impl ArrayWriter {
    #[inline]
    pub(super) fn begin(out: &mut Vec<u8>) -> Self {
        ArrayWriter { start: dyno_wire::bson::begin_document(out), count: 0 }
    }

    /// Appends the element that `value` writes, unless it is absent.
    #[inline]
    pub(super) fn element(
        &mut self,
        out: &mut Vec<u8>,
        value: impl FnOnce(&mut Vec<u8>) -> Option<u8>,
    ) {
        let header = out.len();
        out.push(kind::NULL);
        write_index(out, self.count);
        out.push(0);
        match value(out) {
            Some(kind) => {
                out[header] = kind;
                self.count += 1;
            }
            None => out.truncate(header),
        }
    }

    /// Ends the array; returns its type.
    #[inline]
    pub(super) fn end(self, out: &mut Vec<u8>) -> u8 {
        dyno_wire::bson::end_document(out, self.start);
        kind::ARRAY
    }
}
