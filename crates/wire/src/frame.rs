//! Messages in a byte stream: finds message boundaries, checks headers, and splits an `OP_MSG` into its sections.
//! Callers interpret the documents inside.

use crate::bson::read_i32;
use thiserror::Error;

/// Length of the header that starts every message.
pub const HEADER_BYTES: usize = 16;
/// Longest message that servers send or accept.
pub const MAX_MESSAGE_BYTES: usize = 48_000_000;

/// Flag bit of `OP_MSG`: the message ends with a checksum.
const FLAG_CHECKSUM_PRESENT: u32 = 1;
/// Flag bit of `OP_MSG`: another message follows without a request for it.
pub const FLAG_MORE_TO_COME: u32 = 1 << 1;
/// Flag bits that a receiver must know, or reject the message.
const REQUIRED_FLAGS: u32 = 0xffff;

const FLAGS_BYTES: usize = 4;
const CHECKSUM_BYTES: usize = 4;

/// Supported message types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// `OP_REPLY`: the answer to `OP_QUERY`.
    Reply,
    /// `OP_QUERY`: only used for the first message of old clients.
    Query,
    /// `OP_COMPRESSED`: another message in compressed form.
    Compressed,
    /// `OP_MSG`: every command and reply since MongoDB 3.6.
    Message,
}

impl Opcode {
    /// The number on the wire.
    pub const fn number(self) -> i32 {
        match self {
            Opcode::Reply => 1,
            Opcode::Query => 2004,
            Opcode::Compressed => 2012,
            Opcode::Message => 2013,
        }
    }

    /// The opcode with this number; `None` if it is not supported.
    pub const fn from_number(number: i32) -> Option<Opcode> {
        match number {
            1 => Some(Opcode::Reply),
            2004 => Some(Opcode::Query),
            2012 => Some(Opcode::Compressed),
            2013 => Some(Opcode::Message),
            _ => None,
        }
    }
}

/// One complete message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Length of the whole message with its header, to be removed from the front of the buffer.
    pub length: usize,
    /// Request ID that the sender assigned.
    pub request_id: i32,
    /// `request_id` of the request; 0 in a request.
    pub response_to: i32,
    pub opcode: Opcode,
    /// Content after the header.
    pub body: &'a [u8],
}

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The length in the header is negative, shorter than a header, or above [`MAX_MESSAGE_BYTES`].
    #[error("message length `{length}` is outside {HEADER_BYTES} to {MAX_MESSAGE_BYTES}")]
    Length { length: i32 },
    /// The opcode is not supported.
    #[error("unknown opcode `{opcode}`")]
    Opcode { opcode: i32 },
    /// The message ends before a required part.
    #[error("message of {length} bytes is too short")]
    Truncated { length: usize },
    /// An unknown required flag bit is set.
    #[error("unknown required flag in `{flags:#x}`")]
    Flags { flags: u32 },
    /// A section has an unknown kind.
    #[error("unknown section kind `{kind}`")]
    SectionKind { kind: u8 },
    /// The length of a section does not fit into the message.
    #[error("section length `{length}` does not fit the message")]
    SectionLength { length: i32 },
    /// The name of a document sequence has no end.
    #[error("name of a document sequence is not terminated")]
    SequenceName,
    /// An `OP_MSG` has no body section, or more than one.
    #[error("message has {count} body sections instead of one")]
    BodySections { count: usize },
    /// The frame is not an `OP_MSG`.
    #[error("expected an `OP_MSG`, found opcode `{}`", opcode.number())]
    NotMessage { opcode: Opcode },
}

/// Number of bytes that `buffer` must have before [`parse`] makes progress: a header, then the whole message.
///
/// A caller with a growing buffer reserves up to this length.
pub fn needed(buffer: &[u8]) -> Result<usize, FrameError> {
    let Some(length) = read_i32(buffer, 0) else {
        return Ok(HEADER_BYTES);
    };
    match usize::try_from(length) {
        Ok(bytes) if (HEADER_BYTES..=MAX_MESSAGE_BYTES).contains(&bytes) => Ok(bytes),
        _ => Err(FrameError::Length { length }),
    }
}

/// Parses the message at the front of `buffer`; `None` while it is incomplete.
///
/// An invalid length or opcode is reported as soon as it has arrived, even if the message is incomplete.
#[inline]
pub fn parse(buffer: &[u8]) -> Result<Option<Frame<'_>>, FrameError> {
    let length = needed(buffer)?;
    let Some(opcode) = read_i32(buffer, 12) else {
        return Ok(None);
    };
    let opcode = Opcode::from_number(opcode).ok_or(FrameError::Opcode { opcode })?;
    let Some(message) = buffer.get(..length) else {
        return Ok(None);
    };
    let (Some(request_id), Some(response_to)) = (read_i32(message, 4), read_i32(message, 8)) else {
        return Ok(None);
    };
    let body = &message[HEADER_BYTES..];
    Ok(Some(Frame { length, request_id, response_to, opcode, body }))
}

impl<'a> Frame<'a> {
    /// The sections of an `OP_MSG`. An `OP_COMPRESSED` must be decompressed first.
    #[inline]
    pub fn message(&self) -> Result<Message<'a>, FrameError> {
        if self.opcode != Opcode::Message {
            return Err(FrameError::NotMessage { opcode: self.opcode });
        }
        message(self.body)
    }
}

/// The parts of an `OP_MSG`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Flag bits (`FLAG_*`); no unknown required one is set.
    pub flags: u32,
    /// The document of the body section, unchecked.
    pub document: &'a [u8],
    sections: &'a [u8],
}

impl<'a> Message<'a> {
    /// The document sequences outside the body section, in the order of the message.
    pub fn sequences(&self) -> impl Iterator<Item = Sequence<'a>> + use<'a> {
        // `message` has checked all sections, so no error is possible here.
        Sections { rest: self.sections }.map_while(Result::ok).filter_map(|section| match section {
            Section::Body(_) => None,
            Section::Sequence(sequence) => Some(sequence),
        })
    }
}

/// A named sequence of documents (section kind 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence<'a> {
    /// Name of the command argument, such as `documents`.
    pub name: &'a [u8],
    /// Consecutive documents, unchecked.
    pub documents: &'a [u8],
}

/// Splits the body of an `OP_MSG` (flags and sections) into its parts. A checksum is removed without verifying it: TCP has
/// its own, and TLS finds any change.
///
/// There must be exactly one body section. The documents themselves are not decoded.
#[inline]
pub fn message(body: &[u8]) -> Result<Message<'_>, FrameError> {
    let flags = flags(body)?;
    let checksum_bytes = if flags & FLAG_CHECKSUM_PRESENT == 0 { 0 } else { CHECKSUM_BYTES };
    let sections = body.get(FLAGS_BYTES..body.len() - checksum_bytes);
    let sections = sections.ok_or(FrameError::Truncated { length: body.len() })?;
    let mut document = None;
    let mut count = 0;
    for section in (Sections { rest: sections }) {
        if let Section::Body(bytes) = section? {
            document = Some(bytes);
            count += 1;
        }
    }
    match document {
        Some(document) if count == 1 => Ok(Message { flags, document, sections }),
        _ => Err(FrameError::BodySections { count }),
    }
}

fn flags(body: &[u8]) -> Result<u32, FrameError> {
    let Some(flags) = read_i32(body, 0) else {
        return Err(FrameError::Truncated { length: body.len() });
    };
    let flags = flags.cast_unsigned();
    if flags & REQUIRED_FLAGS & !(FLAG_CHECKSUM_PRESENT | FLAG_MORE_TO_COME) != 0 {
        return Err(FrameError::Flags { flags });
    }
    Ok(flags)
}

enum Section<'a> {
    Body(&'a [u8]),
    Sequence(Sequence<'a>),
}

struct Sections<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Sections<'a> {
    type Item = Result<Section<'a>, FrameError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, rest) = self.rest.split_first()?;
        let section = split_section(kind, rest);
        self.rest = match &section {
            Ok((_, rest)) => rest,
            Err(_) => &[],
        };
        Some(section.map(|(section, _)| section))
    }
}

fn split_section(kind: u8, bytes: &[u8]) -> Result<(Section<'_>, &[u8]), FrameError> {
    if kind > 1 {
        return Err(FrameError::SectionKind { kind });
    }
    let Some(length) = read_i32(bytes, 0) else {
        return Err(FrameError::Truncated { length: bytes.len() });
    };
    let end = usize::try_from(length).ok().filter(|&end| end >= 4);
    let Some((section, rest)) = end.and_then(|end| bytes.split_at_checked(end)) else {
        return Err(FrameError::SectionLength { length });
    };
    if kind == 0 {
        return Ok((Section::Body(section), rest));
    }
    let named = &section[4..];
    let end = named.iter().position(|&byte| byte == 0).ok_or(FrameError::SequenceName)?;
    let sequence = Sequence { name: &named[..end], documents: &named[end + 1..] };
    Ok((Section::Sequence(sequence), rest))
}

/// Appends the header of an `OP_MSG` with an unknown length; returns its offset for [`finish_message`].
pub(crate) fn begin_message(out: &mut Vec<u8>, request_id: i32, response_to: i32) -> usize {
    let start = out.len();
    let mut header = [0; HEADER_BYTES];
    header[4..8].copy_from_slice(&request_id.to_le_bytes());
    header[8..12].copy_from_slice(&response_to.to_le_bytes());
    header[12..].copy_from_slice(&Opcode::Message.number().to_le_bytes());
    out.extend_from_slice(&header);
    start
}

/// Writes the length of the message that begins at `start` and ends with `out`.
#[inline]
pub(crate) fn finish_message(out: &mut [u8], start: usize) {
    crate::bson::patch_length(out, start);
}

/// Appends an `OP_MSG` with one body section: a command (`response_to` 0) or a reply.
///
/// `document` must be a valid BSON document; it is copied unchanged.
pub fn write_message(out: &mut Vec<u8>, request_id: i32, response_to: i32, document: &[u8]) {
    let start = begin_message(out, request_id, response_to);
    out.extend_from_slice(&[0; FLAGS_BYTES + 1]);
    out.extend_from_slice(document);
    finish_message(out, start);
}

/// Appends an `OP_MSG` with a command in its body section, and one of its arguments, such as `documents`, as a separate
/// document sequence. A server reads these unchanged.
///
/// `command` and `documents` must be valid BSON documents, and `name` must not contain a zero byte; they are copied
/// unchanged.
pub fn write_message_with_sequence<'a>(
    out: &mut Vec<u8>,
    request_id: i32,
    command: &[u8],
    name: &str,
    documents: impl IntoIterator<Item = &'a [u8]>,
) {
    let start = out.len();
    write_message(out, request_id, 0, command);
    out.push(1);
    let sequence = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    for document in documents {
        out.extend_from_slice(document);
    }
    crate::bson::patch_length(out, sequence);
    finish_message(out, start);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{ok: 1.0}`
    const DOCUMENT: &[u8] = b"\x11\0\0\0\x01ok\0\0\0\0\0\0\0\xf0\x3f\0";

    fn reply() -> Vec<u8> {
        let mut out = Vec::new();
        write_message(&mut out, 7, 5, DOCUMENT);
        out
    }

    fn with_flags(flags: u32) -> Vec<u8> {
        let mut bytes = reply();
        bytes[16..20].copy_from_slice(&flags.to_le_bytes());
        bytes
    }

    #[test]
    fn a_message_has_these_bytes() {
        let expected = b"\x26\0\0\0\x07\0\0\0\x05\0\0\0\xdd\x07\0\0\0\0\0\0\0\
                         \x11\0\0\0\x01ok\0\0\0\0\0\0\0\xf0\x3f\0";
        assert_eq!(reply(), expected);
    }

    #[test]
    fn a_message_is_parsed_from_the_front_of_the_buffer() {
        let mut bytes = reply();
        bytes.extend_from_slice(b"next");
        let frame = parse(&bytes).unwrap().unwrap();
        assert_eq!((frame.length, frame.request_id, frame.response_to), (38, 7, 5));
        let message = frame.message().unwrap();
        assert_eq!(message.document, DOCUMENT);
        assert_eq!(message.flags, 0);
        assert_eq!(message.sequences().count(), 0);
    }

    #[test]
    fn every_truncation_is_incomplete() {
        let bytes = reply();
        for end in 0..bytes.len() {
            assert_eq!(parse(&bytes[..end]).unwrap(), None, "{end} bytes");
            let expected = if end < 4 { HEADER_BYTES } else { bytes.len() };
            assert_eq!(needed(&bytes[..end]).unwrap(), expected);
        }
    }

    #[test]
    fn message_lengths_are_checked_before_the_message_arrives() {
        for length in [-1, 0, 15, 48_000_001, i32::MAX, i32::MIN] {
            let error = parse(&length.to_le_bytes()).unwrap_err();
            assert_eq!(error, FrameError::Length { length });
        }
        for length in [16i32, 48_000_000] {
            assert_eq!(parse(&length.to_le_bytes()).unwrap(), None);
        }
    }

    #[test]
    fn an_unknown_opcode_is_refused_with_the_header() {
        let mut bytes = reply();
        bytes[12..16].copy_from_slice(&2001i32.to_le_bytes());
        let error = FrameError::Opcode { opcode: 2001 };
        assert_eq!(parse(&bytes[..16]), Err(error));
    }

    #[test]
    fn opcodes_have_their_numbers() {
        for number in [1, 2004, 2012, 2013] {
            assert_eq!(Opcode::from_number(number).unwrap().number(), number);
        }
    }

    #[test]
    fn only_unknown_required_flags_are_refused() {
        for flags in [4, 1 << 15] {
            let bytes = with_flags(flags);
            let refused = parse(&bytes).unwrap().unwrap().message();
            assert_eq!(refused, Err(FrameError::Flags { flags }));
        }
        let bytes = with_flags(1 << 16 | 1 << 30 | FLAG_MORE_TO_COME);
        let message = parse(&bytes).unwrap().unwrap().message().unwrap();
        assert_ne!(message.flags & FLAG_MORE_TO_COME, 0);
    }

    #[test]
    fn a_checksum_is_removed() {
        let mut bytes = with_flags(FLAG_CHECKSUM_PRESENT);
        bytes[0] += 4;
        bytes.extend_from_slice(b"\0\x01\xff\0");
        let frame = parse(&bytes).unwrap().unwrap();
        assert_eq!(frame.length, bytes.len());
        let message = frame.message().unwrap();
        assert_eq!((message.document, message.sequences().count()), (DOCUMENT, 0));
        for length in 4..8 {
            let refused = super::message(&frame.body[..length]);
            assert_eq!(refused, Err(FrameError::Truncated { length }));
        }
        assert_eq!(super::message(&frame.body[..8]), Err(FrameError::BodySections { count: 0 }));
    }

    #[test]
    fn document_sequences_are_found_on_both_sides_of_the_body() {
        let mut body = vec![0; 4];
        for name in [b"first\0", b"other\0"] {
            body.push(1);
            let length = 4 + name.len() + DOCUMENT.len();
            body.extend_from_slice(&(length as u32).to_le_bytes());
            body.extend_from_slice(name);
            body.extend_from_slice(DOCUMENT);
            if name == b"first\0" {
                body.push(0);
                body.extend_from_slice(DOCUMENT);
            }
        }
        let message = message(&body).unwrap();
        let names: Vec<_> = message.sequences().map(|sequence| sequence.name).collect();
        assert_eq!(names, [&b"first"[..], b"other"]);
        assert!(message.sequences().all(|s| s.documents == DOCUMENT));
        assert_eq!(message.document, DOCUMENT);
    }

    #[test]
    fn a_sequence_that_is_written_is_found() {
        let mut bytes = b"before".to_vec();
        write_message_with_sequence(&mut bytes, 7, DOCUMENT, "documents", [DOCUMENT, DOCUMENT]);
        let frame = parse(&bytes[6..]).unwrap().unwrap();
        assert_eq!((frame.length, frame.request_id), (bytes.len() - 6, 7));
        let message = message(frame.body).unwrap();
        assert_eq!(message.document, DOCUMENT);
        let sequences: Vec<_> = message.sequences().collect();
        assert_eq!(sequences.len(), 1);
        assert_eq!(sequences[0].name, b"documents");
        assert_eq!(sequences[0].documents, [DOCUMENT, DOCUMENT].concat());
    }

    #[test]
    fn malformed_sections_are_errors() {
        let body = |sections: &[u8]| [&[0; 4], sections].concat();
        let two_bodies = [b"\0", DOCUMENT, b"\0", DOCUMENT].concat();
        for (sections, expected) in [
            (&b""[..], FrameError::BodySections { count: 0 }),
            (&two_bodies, FrameError::BodySections { count: 2 }),
            (b"\x02\0\0\0\0", FrameError::SectionKind { kind: 2 }),
            (b"\0\x05\0\0", FrameError::Truncated { length: 3 }),
            (b"\0\x06\0\0\0\0", FrameError::SectionLength { length: 6 }),
            (b"\0\xff\xff\xff\xff", FrameError::SectionLength { length: -1 }),
            (b"\x01\x06\0\0\0ab", FrameError::SequenceName),
        ] {
            assert_eq!(message(&body(sections)), Err(expected), "{sections:?}");
        }
        assert_eq!(message(&[0; 3]), Err(FrameError::Truncated { length: 3 }));
    }

    #[test]
    fn a_frame_of_another_kind_has_no_sections() {
        let mut bytes = reply();
        bytes[12..16].copy_from_slice(&2012i32.to_le_bytes());
        let frame = parse(&bytes).unwrap().unwrap();
        let opcode = Opcode::Compressed;
        assert_eq!(frame.message(), Err(FrameError::NotMessage { opcode }));
    }
}
