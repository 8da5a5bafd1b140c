//! The part of BSON that a load generator needs: writes elements directly into a byte buffer, and reads documents in
//! place. Neither builds a tree; unread elements are only measured and skipped.

use thiserror::Error;

/// Type bytes of elements that are written or decoded here.
pub mod kind {
    /// 64-bit floating point.
    pub const DOUBLE: u8 = 0x01;
    /// UTF-8 string.
    pub const STRING: u8 = 0x02;
    /// Embedded document.
    pub const DOCUMENT: u8 = 0x03;
    /// Array.
    pub const ARRAY: u8 = 0x04;
    /// Binary data.
    pub const BINARY: u8 = 0x05;
    /// Object id.
    pub const OBJECT_ID: u8 = 0x07;
    /// Boolean.
    pub const BOOLEAN: u8 = 0x08;
    /// Milliseconds since 1970.
    pub const DATE_TIME: u8 = 0x09;
    /// Null.
    pub const NULL: u8 = 0x0a;
    /// 32-bit integer.
    pub const INT32: u8 = 0x10;
    /// Internal time stamp.
    pub const TIMESTAMP: u8 = 0x11;
    /// 64-bit integer.
    pub const INT64: u8 = 0x12;
}

/// Size of the shortest document: its length and the final zero.
const EMPTY_DOCUMENT_BYTES: usize = 5;

/// Why bytes are not BSON. `offset` counts from the start of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BsonError {
    /// The length at the start of a document is not the number of its bytes.
    #[error("document declares `{declared}` bytes but has {found}")]
    Length {
        /// Declared length; -1 if it is missing.
        declared: i32,
        found: usize,
    },
    /// The document does not end with a zero byte, or ends too early.
    #[error("document is not terminated")]
    Terminator,
    /// The name of an element has no end.
    #[error("name of the element at byte {offset} is not terminated")]
    Name { offset: usize },
    /// The type byte of an element is unknown.
    #[error("element at byte {offset} has unknown type `{kind:#04x}`")]
    Kind { offset: usize, kind: u8 },
    /// The value of an element is longer than the document, or has an impossible length.
    #[error("value of the element at byte {offset} does not fit its document")]
    Value { offset: usize },
    /// A string is not UTF-8 or not terminated.
    #[error("string is not valid")]
    Utf8,
    /// A boolean is neither 0 nor 1.
    #[error("boolean is `{byte}`")]
    Boolean { byte: u8 },
}

/// Reads a little-endian `i32` at `offset`; `None` if the buffer is too short.
#[inline]
pub fn read_i32(bytes: &[u8], offset: usize) -> Option<i32> {
    let part = bytes.get(offset..)?.first_chunk()?;
    Some(i32::from_le_bytes(*part))
}

/// A document in place. Its length and last byte have been checked; elements are checked when they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    bytes: &'a [u8],
}

impl<'a> Document<'a> {
    /// Reads a document that covers all of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, BsonError> {
        let declared = read_i32(bytes, 0).unwrap_or(-1);
        let found = bytes.len();
        if usize::try_from(declared) != Ok(found) || found < EMPTY_DOCUMENT_BYTES {
            return Err(BsonError::Length { declared, found });
        }
        if bytes.last() != Some(&0) {
            return Err(BsonError::Terminator);
        }
        Ok(Document { bytes })
    }

    /// Splits the document at the front of `bytes` from the rest.
    pub fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), BsonError> {
        let declared = read_i32(bytes, 0).unwrap_or(-1);
        let found = bytes.len();
        let length = usize::try_from(declared).unwrap_or(usize::MAX);
        let (document, rest) =
            bytes.split_at_checked(length).ok_or(BsonError::Length { declared, found })?;
        Ok((Document::new(document)?, rest))
    }

    /// All bytes of the document.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Elements in order. An error ends the iteration.
    #[inline]
    pub fn elements(&self) -> Elements<'a> {
        Elements { bytes: self.bytes, offset: 4 }
    }

    /// The first element with this name.
    pub fn find(&self, name: &str) -> Result<Option<Element<'a>>, BsonError> {
        for element in self.elements() {
            let element = element?;
            if element.name == name.as_bytes() {
                return Ok(Some(element));
            }
        }
        Ok(None)
    }
}

/// Iterator over the elements of a document.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Element<'a>, BsonError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.offset;
        let kind = *self.bytes.get(offset)?;
        let end = self.bytes.len() - 1;
        if kind == 0 {
            self.offset = self.bytes.len();
            // A zero before the last byte would hide the rest.
            return (offset != end).then_some(Err(BsonError::Terminator));
        }
        let element = split_element(&self.bytes[..end], offset, kind);
        match element {
            Ok((element, next)) => {
                self.offset = next;
                Some(Ok(element))
            }
            Err(error) => {
                self.offset = self.bytes.len();
                Some(Err(error))
            }
        }
    }
}

#[inline]
fn split_element(bytes: &[u8], offset: usize, kind: u8) -> Result<(Element<'_>, usize), BsonError> {
    // `get`, because the element may be a lone type byte where the final zero should be.
    let rest = bytes.get(offset + 1..).ok_or(BsonError::Terminator)?;
    let name_end = rest.iter().position(|&byte| byte == 0).ok_or(BsonError::Name { offset })?;
    let (name, rest) = (&rest[..name_end], &rest[name_end + 1..]);
    let length = match value_length(kind, rest) {
        ValueLength::Known(length) => length,
        ValueLength::Impossible => return Err(BsonError::Value { offset }),
        ValueLength::UnknownKind => return Err(BsonError::Kind { offset, kind }),
    };
    let bytes = rest.get(..length).ok_or(BsonError::Value { offset })?;
    let next = offset + 1 + name_end + 1 + length;
    Ok((Element { name, kind, bytes }, next))
}

enum ValueLength {
    Known(usize),
    Impossible,
    UnknownKind,
}

/// Length of a value of this kind at the front of `rest`. It may exceed `rest`.
#[inline]
fn value_length(kind: u8, rest: &[u8]) -> ValueLength {
    let prefixed = |extra: usize, least: usize| {
        let declared = read_i32(rest, 0).and_then(|length| usize::try_from(length).ok());
        declared.filter(|&declared| declared >= least).map(|declared| declared + extra)
    };
    let length = match kind {
        kind::DOUBLE | kind::DATE_TIME | kind::TIMESTAMP | kind::INT64 => Some(8),
        kind::STRING | 0x0d | 0x0e => prefixed(4, 1),
        kind::DOCUMENT | kind::ARRAY => prefixed(0, EMPTY_DOCUMENT_BYTES),
        kind::BINARY => prefixed(5, 0),
        0x06 | kind::NULL | 0x7f | 0xff => Some(0),
        kind::OBJECT_ID => Some(12),
        kind::BOOLEAN => Some(1),
        0x0b => regular_expression_length(rest),
        0x0c => prefixed(4 + 12, 1),
        0x0f => prefixed(0, 4 + 5 + EMPTY_DOCUMENT_BYTES),
        kind::INT32 => Some(4),
        0x13 => Some(16),
        _ => return ValueLength::UnknownKind,
    };
    length.map_or(ValueLength::Impossible, ValueLength::Known)
}

/// Two zero-terminated strings.
fn regular_expression_length(rest: &[u8]) -> Option<usize> {
    let mut zeros = rest.iter().enumerate().filter(|(_, byte)| **byte == 0);
    zeros.nth(1).map(|(index, _)| index + 1)
}

/// One element of a document. The value is inside the document, and is decoded by [`value`](Element::value).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// Name, without the final zero. Not checked to be UTF-8.
    pub name: &'a [u8],
    /// Type byte, see [`kind`].
    pub kind: u8,
    bytes: &'a [u8],
}

/// A decoded value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Double(f64),
    String(&'a str),
    Document(Document<'a>),
    /// Array: a document whose names are `0`, `1`, …
    Array(Document<'a>),
    /// Binary data.
    Binary {
        /// Subtype; 0 is the generic one.
        subtype: u8,
        bytes: &'a [u8],
    },
    Boolean(bool),
    Null,
    Int32(i32),
    Int64(i64),
    /// A type that is not decoded here.
    Other {
        kind: u8,
        /// The undecoded value.
        bytes: &'a [u8],
    },
}

impl<'a> Element<'a> {
    /// Decodes the value.
    pub fn value(&self) -> Result<Value<'a>, BsonError> {
        Ok(match self.kind {
            kind::DOUBLE => Value::Double(f64::from_le_bytes(self.fixed()?)),
            kind::STRING => Value::String(self.string()?),
            kind::DOCUMENT => Value::Document(Document::new(self.bytes)?),
            kind::ARRAY => Value::Array(Document::new(self.bytes)?),
            kind::BINARY => Value::Binary { subtype: self.bytes[4], bytes: &self.bytes[5..] },
            kind::BOOLEAN => match self.bytes[0] {
                byte @ (0 | 1) => Value::Boolean(byte == 1),
                byte => return Err(BsonError::Boolean { byte }),
            },
            kind::NULL => Value::Null,
            kind::INT32 => Value::Int32(i32::from_le_bytes(self.fixed()?)),
            kind::INT64 => Value::Int64(i64::from_le_bytes(self.fixed()?)),
            kind => Value::Other { kind, bytes: self.bytes },
        })
    }

    /// The value as a number, from any numeric type or boolean. A double is rounded toward zero.
    pub fn number(&self) -> Result<Option<i64>, BsonError> {
        Ok(match self.kind {
            kind::INT32 => Some(i64::from(i32::from_le_bytes(self.fixed()?))),
            kind::INT64 => Some(i64::from_le_bytes(self.fixed()?)),
            // `as` saturates, and converts NaN to 0.
            kind::DOUBLE => Some(f64::from_le_bytes(self.fixed()?) as i64),
            kind::BOOLEAN => match self.value()? {
                Value::Boolean(value) => Some(i64::from(value)),
                _ => None,
            },
            _ => None,
        })
    }

    /// The undecoded value.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The value if it is an embedded document or an array.
    pub fn document(&self) -> Result<Option<Document<'a>>, BsonError> {
        match self.kind {
            kind::DOCUMENT | kind::ARRAY => Document::new(self.bytes).map(Some),
            _ => Ok(None),
        }
    }

    fn string(&self) -> Result<&'a str, BsonError> {
        match self.bytes[4..].split_last() {
            Some((0, text)) => std::str::from_utf8(text).map_err(|_| BsonError::Utf8),
            _ => Err(BsonError::Utf8),
        }
    }

    fn fixed<const N: usize>(&self) -> Result<[u8; N], BsonError> {
        // `split_element` set the length of the value by its kind.
        self.bytes.try_into().map_err(|_| BsonError::Value { offset: 0 })
    }
}

/// Appends a document to `out`; `elements` writes its elements.
pub fn write_document(out: &mut Vec<u8>, elements: impl FnOnce(&mut ElementWriter<'_>)) {
    let start = begin_document(out);
    elements(&mut ElementWriter { out });
    end_document(out, start);
}

/// Appends elements to a document that is open at the end of a buffer.
///
/// Names must not contain a zero byte, which would end them.
#[derive(Debug)]
pub struct ElementWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl ElementWriter<'_> {
    /// Appends a string.
    pub fn string(&mut self, name: &str, value: &str) -> &mut Self {
        self.header(kind::STRING, name);
        write_string(self.out, value.as_bytes());
        self
    }

    /// Appends binary data of the generic subtype.
    pub fn binary(&mut self, name: &str, value: &[u8]) -> &mut Self {
        self.header(kind::BINARY, name);
        binary_header(self.out, value.len());
        self.out.extend_from_slice(value);
        self
    }

    /// Appends a UUID.
    pub fn uuid(&mut self, name: &str, value: &[u8; 16]) -> &mut Self {
        const UUID_SUBTYPE: u8 = 4;
        self.binary(name, value);
        let subtype = self.out.len() - value.len() - 1;
        self.out[subtype] = UUID_SUBTYPE;
        self
    }

    /// Appends a 32-bit integer.
    pub fn i32(&mut self, name: &str, value: i32) -> &mut Self {
        self.fixed(kind::INT32, name, &value.to_le_bytes())
    }

    /// Appends a 64-bit integer.
    pub fn i64(&mut self, name: &str, value: i64) -> &mut Self {
        self.fixed(kind::INT64, name, &value.to_le_bytes())
    }

    /// Appends a floating-point number.
    pub fn f64(&mut self, name: &str, value: f64) -> &mut Self {
        self.fixed(kind::DOUBLE, name, &value.to_le_bytes())
    }

    /// Appends a boolean.
    pub fn boolean(&mut self, name: &str, value: bool) -> &mut Self {
        self.fixed(kind::BOOLEAN, name, &[u8::from(value)])
    }

    /// Appends an embedded document.
    pub fn document(
        &mut self,
        name: &str,
        elements: impl FnOnce(&mut ElementWriter<'_>),
    ) -> &mut Self {
        self.header(kind::DOCUMENT, name);
        write_document(self.out, elements);
        self
    }

    /// Appends an array; the names of its elements must be `0`, `1`, …
    pub fn array(
        &mut self,
        name: &str,
        elements: impl FnOnce(&mut ElementWriter<'_>),
    ) -> &mut Self {
        self.header(kind::ARRAY, name);
        write_document(self.out, elements);
        self
    }

    fn fixed(&mut self, kind: u8, name: &str, value: &[u8]) -> &mut Self {
        self.header(kind, name);
        self.out.extend_from_slice(value);
        self
    }

    fn header(&mut self, kind: u8, name: &str) {
        debug_assert!(!name.contains('\0'), "a name ends at its first zero");
        self.out.push(kind);
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(0);
    }
}

/// Appends the value of a string element: length, text, final zero.
#[inline]
pub(crate) fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&length_bytes(text.len() + 1));
    out.extend_from_slice(text);
    out.push(0);
}

/// Appends the header of a binary value of the generic subtype.
#[inline]
pub(crate) fn binary_header(out: &mut Vec<u8>, length: usize) {
    let [a, b, c, d] = length_bytes(length);
    out.extend_from_slice(&[a, b, c, d, 0]);
}

/// Opens a document of unknown length; returns its offset.
#[inline]
pub fn begin_document(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    start
}

/// Ends the document that was opened at `start`.
#[inline]
pub fn end_document(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    patch_length(out, start);
}

/// Writes the number of bytes from `start` to the end of `out` at `start`.
#[inline]
pub fn patch_length(out: &mut [u8], start: usize) {
    let length = length_bytes(out.len() - start);
    out[start..start + 4].copy_from_slice(&length);
}

#[inline]
fn length_bytes(length: usize) -> [u8; 4] {
    i32::try_from(length).expect("a message is far below 2 GiB").to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn sample() -> Vec<u8> {
        let mut out = b"earlier".to_vec();
        write_document(&mut out, |writer| {
            writer
                .string("s", "grüße")
                .binary("b", &[1, 0, 2])
                .i32("i", -5)
                .i64("l", i64::MAX)
                .f64("d", 1.5)
                .boolean("t", true)
                .document("o", |inner| {
                    inner.array("a", |array| {
                        array.i32("0", 7);
                    });
                });
        });
        out.split_off(7)
    }

    #[test]
    fn written_bytes_are_the_literal_ones() {
        let mut out = Vec::new();
        write_document(&mut out, |writer| {
            writer.string("a", "b").binary("c", b"\xff").i32("d", 1);
        });
        let expected = b"\x1e\0\0\0\x02a\0\x02\0\0\0b\0\x05c\0\x01\0\0\0\0\xff\x10d\0\x01\0\0\0\0";
        assert_eq!(out, expected);
    }

    #[test]
    fn a_written_document_equals_the_bson_crate_s() {
        let binary =
            bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 0, 2] };
        let expected = doc! {
            "s": "grüße", "b": binary, "i": -5, "l": i64::MAX, "d": 1.5, "t": true,
            "o": { "a": [7] },
        };
        let bytes = expected.to_vec().unwrap();
        assert_eq!(sample(), bytes);
    }

    #[test]
    fn values_are_read_back_in_order() {
        let bytes = sample();
        let document = Document::new(&bytes).unwrap();
        let values: Vec<_> =
            document.elements().map(|element| element.unwrap().value().unwrap()).take(6).collect();
        let binary = Value::Binary { subtype: 0, bytes: &[1, 0, 2] };
        let expected = [
            Value::String("grüße"),
            binary,
            Value::Int32(-5),
            Value::Int64(i64::MAX),
            Value::Double(1.5),
            Value::Boolean(true),
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn every_type_of_the_specification_is_measured() {
        use bson::{Bson, JavaScriptCodeWithScope, Regex, Timestamp, oid::ObjectId};
        let expected = doc! {
            "double": 0.5, "string": "x", "document": {"a": 1}, "array": [1, 2],
            "undefined": Bson::Undefined, "id": ObjectId::from_bytes([1; 12]), "true": true,
            "date": bson::DateTime::from_millis(5), "null": Bson::Null,
            "regex": Regex { pattern: bson::cstr!("a.c").into(), options: bson::cstr!("i").into() },
            "code": Bson::JavaScriptCode("f()".into()), "symbol": Bson::Symbol("s".into()),
            "scope": JavaScriptCodeWithScope { code: "g()".into(), scope: doc! {"x": 1} },
            "int": 1, "time": Timestamp { time: 1, increment: 2 }, "long": 1i64,
            "decimal": bson::Decimal128::from_bytes([3; 16]), "least": Bson::MinKey,
            "most": Bson::MaxKey,
        };
        let bytes = expected.to_vec().unwrap();
        let document = Document::new(&bytes).unwrap();
        let names: Vec<_> = document
            .elements()
            .map(|element| String::from_utf8(element.unwrap().name.to_vec()).unwrap())
            .collect();
        let expected: Vec<_> = expected.keys().cloned().collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn the_deprecated_pointer_is_measured() {
        let bytes = b"\x1e\0\0\0\x0cp\0\x02\0\0\0c\0abcdefghijkl\x08a\0\x01\0";
        let document = Document::new(bytes).unwrap();
        let last = document.elements().last().unwrap().unwrap();
        assert_eq!((last.name, last.number()), (&b"a"[..], Ok(Some(1))));
    }

    #[test]
    fn every_truncation_of_a_document_is_an_error() {
        let bytes = sample();
        for end in 0..bytes.len() {
            assert!(Document::new(&bytes[..end]).is_err(), "{end} bytes");
            assert!(Document::split(&bytes[..end]).is_err(), "{end} bytes");
            // With its length corrected, the truncation must show in the elements.
            let mut shortened = bytes[..end].to_vec();
            if end >= 5 {
                patch_length(&mut shortened, 0);
                let broken = Document::new(&shortened)
                    .map(|document| document.elements().any(|element| element.is_err()));
                assert!(broken.unwrap_or(true), "{end} bytes");
            }
        }
    }

    #[test]
    fn malformed_elements_are_errors() {
        let document = |elements: &[u8]| {
            let mut out = vec![0; 4];
            out.extend_from_slice(elements);
            end_document(&mut out, 0);
            out
        };
        let value = BsonError::Value { offset: 4 };
        for (elements, expected) in [
            (&b"\x10a"[..], BsonError::Name { offset: 4 }),
            (b"\x10a\0\x01\0\0", value),
            (b"\x02a\0\0\0\0\0\0", value),
            (b"\x02a\0\xff\xff\xff\xff\0", value),
            (b"\x02a\0\x7f\0\0\0\0", value),
            (b"\x03a\0\x04\0\0\0", value),
            (b"\x05a\0\xff\xff\xff\x7f\0", value),
            (b"\x0ba\0x", value),
            (b"\x0fa\0\x05\0\0\0\0", value),
            (b"\x14a\0", BsonError::Kind { offset: 4, kind: 0x14 }),
            (b"\0\x0aa\0", BsonError::Terminator),
            (b"\x10", BsonError::Name { offset: 4 }),
        ] {
            let bytes = document(elements);
            let found = Document::new(&bytes).unwrap().elements().next();
            assert_eq!(found, Some(Err(expected)), "{elements:?}");
        }
    }

    #[test]
    fn malformed_values_are_errors_when_decoded() {
        for (bytes, expected) in [
            (&b"\x0e\0\0\0\x02a\0\x02\0\0\0\xff\0\0"[..], BsonError::Utf8),
            (b"\x0e\0\0\0\x02a\0\x02\0\0\0bb\0", BsonError::Utf8),
            (b"\x09\0\0\0\x08a\0\x02\0", BsonError::Boolean { byte: 2 }),
        ] {
            let document = Document::new(bytes).unwrap();
            let element = document.find("a").unwrap().unwrap();
            assert_eq!(element.value(), Err(expected));
        }
    }

    #[test]
    fn numbers_of_every_type_are_one_number() {
        let mut bytes = Vec::new();
        write_document(&mut bytes, |writer| {
            writer.i32("a", 1).i64("b", 1).f64("c", 1.0);
            writer.boolean("d", true).string("e", "1");
        });
        let document = Document::new(&bytes).unwrap();
        for name in ["a", "b", "c", "d"] {
            let element = document.find(name).unwrap().unwrap();
            assert_eq!(element.number(), Ok(Some(1)), "{name}");
        }
        let element = document.find("e").unwrap().unwrap();
        assert_eq!(element.number(), Ok(None));
    }
}
