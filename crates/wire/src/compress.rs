//! `OP_COMPRESSED`: wraps messages and unwraps them again, with snappy, zlib or zstd.
//!
//! Both directions reuse their state and buffers. A message's uncompressed size is checked before memory is allocated
//! for it, and memory grows only with the actual output.

use crate::bson::read_i32;
use crate::frame::{self, HEADER_BYTES, MAX_MESSAGE_BYTES, Opcode};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::error::Error as StdError;
use std::fmt;
use thiserror::Error;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Original opcode, uncompressed size, compressor id.
const COMPRESSED_HEADER_BYTES: usize = 9;
/// Initial allocation for a body that claims a large size.
const FIRST_CHUNK_BYTES: usize = 64 * 1024;
/// Snappy's best compression: 3 bytes for at most 64.
const SNAPPY_BEST_RATIO: usize = 22;
/// Zlib, for error messages.
const ZLIB: Compressor = Compressor::Zlib { level: -1 };
/// ID of the compressor that does not compress.
const NOOP_ID: u8 = 0;

/// Compression algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compressor {
    /// Fast, moderate ratio.
    Snappy,
    /// Slow, good ratio.
    Zlib {
        /// 0 (none) to 9 (best), or negative for the default.
        level: i8,
    },
    /// Fast, good ratio.
    Zstd,
}

impl Compressor {
    /// All compressors, with their default levels.
    pub const ALL: [Compressor; 3] =
        [Compressor::Snappy, Compressor::Zlib { level: -1 }, Compressor::Zstd];

    /// Name in the handshake and in connection strings.
    pub const fn name(self) -> &'static str {
        match self {
            Compressor::Snappy => "snappy",
            Compressor::Zlib { .. } => "zlib",
            Compressor::Zstd => "zstd",
        }
    }

    /// The compressor with this name.
    pub fn from_name(name: &str) -> Option<Compressor> {
        Compressor::ALL.into_iter().find(|compressor| compressor.name() == name)
    }

    /// Number on the wire.
    pub const fn id(self) -> u8 {
        match self {
            Compressor::Snappy => 1,
            Compressor::Zlib { .. } => 2,
            Compressor::Zstd => 3,
        }
    }
}

/// Error of a compression library.
type Source = Box<dyn StdError + Send + Sync>;

/// Why compressing or decompressing a message failed.
#[derive(Debug, Error)]
pub enum CompressError {
    /// The message ends before its compressed part.
    #[error("compressed message of {length} bytes is too short")]
    Truncated { length: usize },
    /// The inner opcode is unknown, or is `OP_COMPRESSED` again.
    #[error("compressed message contains opcode `{opcode}`")]
    Opcode { opcode: i32 },
    /// The compressor is unknown.
    #[error("unknown compressor id `{id}`")]
    UnknownCompressor { id: u8 },
    /// The uncompressed size is negative, or above the message limit.
    #[error("uncompressed size `{declared}` is outside the limits of a message")]
    Size { declared: i32 },
    /// The uncompressed size differs from the actual one.
    #[error("compressed message declares `{declared}` bytes but has {found}")]
    SizeMismatch {
        declared: usize,
        /// Actual size, or a lower bound.
        found: usize,
    },
    /// The compressed bytes are invalid.
    #[error("invalid {} data", compressor.name())]
    Corrupt {
        compressor: Compressor,
        #[source]
        source: Source,
    },
    /// The compressor cannot be set up, or failed.
    #[error("cannot compress with {}", compressor.name())]
    Compressor {
        compressor: Compressor,
        #[source]
        source: Source,
    },
    /// The bytes to compress are not a complete message.
    #[error("cannot compress bytes that are not a complete message")]
    NotMessage,
}

impl CompressError {
    fn corrupt(compressor: Compressor) -> impl FnOnce(Source) -> CompressError {
        move |source| CompressError::Corrupt { compressor, source }
    }
}

/// State and buffers of both directions. One instance serves all connections of a thread.
#[derive(Debug, Default)]
pub struct Scratch {
    packers: Vec<Packer>,
    unpacker: Unpacker,
    packed: Vec<u8>,
    unpacked: Vec<u8>,
}

impl Scratch {
    /// The complete `message` in compressed form. Messages of the handshake and with credentials must not be compressed;
    /// the caller sends them as they are.
    pub fn compress(
        &mut self,
        compressor: Compressor,
        message: &[u8],
    ) -> Result<&[u8], CompressError> {
        let known = self.packers.iter().position(|packer| packer.compressor == compressor);
        let index = match known {
            Some(index) => index,
            None => {
                self.packers.push(Packer::new(compressor)?);
                self.packers.len() - 1
            }
        };
        self.packed.clear();
        self.packers[index].pack(message, &mut self.packed)?;
        Ok(&self.packed)
    }

    /// Opcode and body of the message in an `OP_COMPRESSED`, given its body.
    pub fn decompress(&mut self, body: &[u8]) -> Result<(Opcode, &[u8]), CompressError> {
        let opcode = self.unpacker.unpack(body, &mut self.unpacked)?;
        Ok((opcode, &self.unpacked))
    }
}

/// Compresses messages by one compressor.
struct Packer {
    compressor: Compressor,
    state: PackerState,
}

enum PackerState {
    Snappy(Box<snap::raw::Encoder>),
    Zlib(Box<Compress>),
    Zstd(Box<zstd::bulk::Compressor<'static>>),
}

impl fmt::Debug for Packer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Packer");
        debug.field("compressor", &self.compressor);
        debug.finish_non_exhaustive()
    }
}

impl Packer {
    fn new(compressor: Compressor) -> Result<Self, CompressError> {
        let state = match compressor {
            Compressor::Snappy => PackerState::Snappy(Box::new(snap::raw::Encoder::new())),
            Compressor::Zlib { level } => {
                let level = u32::try_from(level).map_or_else(
                    |_| Compression::default(),
                    |level| Compression::new(level.min(9)),
                );
                PackerState::Zlib(Box::new(Compress::new(level, true)))
            }
            Compressor::Zstd => {
                let state = zstd::bulk::Compressor::new(zstd::DEFAULT_COMPRESSION_LEVEL).map_err(
                    |error| CompressError::Compressor { compressor, source: error.into() },
                )?;
                PackerState::Zstd(Box::new(state))
            }
        };
        Ok(Packer { compressor, state })
    }

    /// Appends the complete `message` to `out`.
    fn pack(&mut self, message: &[u8], out: &mut Vec<u8>) -> Result<(), CompressError> {
        let frame = frame::parse(message)
            .ok()
            .flatten()
            .filter(|frame| frame.length == message.len())
            .ok_or(CompressError::NotMessage)?;
        let start = out.len();
        out.extend_from_slice(&message[..12]);
        out.extend_from_slice(&Opcode::Compressed.number().to_le_bytes());
        out.extend_from_slice(&frame.opcode.number().to_le_bytes());
        let uncompressed_bytes =
            i32::try_from(frame.body.len()).map_err(|_| CompressError::NotMessage)?;
        out.extend_from_slice(&uncompressed_bytes.to_le_bytes());
        out.push(self.compressor.id());
        let compressor = self.compressor;
        self.append(frame.body, out)
            .map_err(|source| CompressError::Compressor { compressor, source })?;
        frame::finish_message(out, start);
        Ok(())
    }

    fn append(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), Source> {
        let start = out.len();
        match &mut self.state {
            PackerState::Snappy(encoder) => {
                out.resize(start + snap::raw::max_compress_len(body.len()), 0);
                let written = encoder.compress(body, &mut out[start..])?;
                out.truncate(start + written);
            }
            PackerState::Zstd(encoder) => {
                let bound = zstd::zstd_safe::compress_bound(body.len());
                out.resize(start + bound, 0);
                let written = encoder.compress_to_buffer(body, &mut out[start..])?;
                out.truncate(start + written);
            }
            PackerState::Zlib(encoder) => {
                encoder.reset();
                loop {
                    out.reserve(body.len() / 2 + 128);
                    let rest = &body[encoder.total_in() as usize..];
                    let status = encoder.compress_vec(rest, out, FlushCompress::Finish)?;
                    if status == Status::StreamEnd {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Decompresses messages of any compressor.
struct Unpacker {
    snappy: snap::raw::Decoder,
    zlib: Decompress,
    zstd: Option<Decoder<'static>>,
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Unpacker").finish_non_exhaustive()
    }
}

impl Default for Unpacker {
    fn default() -> Self {
        Unpacker { snappy: snap::raw::Decoder::new(), zlib: Decompress::new(true), zstd: None }
    }
}

impl Unpacker {
    /// Replaces `out` by the body of the message in an `OP_COMPRESSED` body; returns its opcode.
    ///
    /// After an error, the content of `out` is undefined.
    fn unpack(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<Opcode, CompressError> {
        let length = body.len();
        let (Some(opcode), Some(declared), Some(&id)) =
            (read_i32(body, 0), read_i32(body, 4), body.get(8))
        else {
            return Err(CompressError::Truncated { length });
        };
        let opcode = Opcode::from_number(opcode)
            .filter(|inner| *inner != Opcode::Compressed)
            .ok_or(CompressError::Opcode { opcode })?;
        let size = usize::try_from(declared)
            .ok()
            .filter(|size| *size <= MAX_MESSAGE_BYTES - HEADER_BYTES)
            .ok_or(CompressError::Size { declared })?;
        let data = &body[COMPRESSED_HEADER_BYTES..];
        out.clear();
        if id == NOOP_ID {
            check_size(size, data.len())?;
            out.extend_from_slice(data);
            return Ok(opcode);
        }
        let compressor = Compressor::ALL
            .into_iter()
            .find(|compressor| compressor.id() == id)
            .ok_or(CompressError::UnknownCompressor { id })?;
        match compressor {
            Compressor::Snappy => self.unpack_snappy(data, size, out)?,
            Compressor::Zlib { .. } => self.unpack_zlib(data, size, out)?,
            Compressor::Zstd => self.unpack_zstd(data, size, out)?,
        }
        check_size(size, out.len())?;
        Ok(opcode)
    }

    fn unpack_snappy(
        &mut self,
        data: &[u8],
        size: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), CompressError> {
        let corrupt = CompressError::corrupt(Compressor::Snappy);
        let found = match snap::raw::decompress_len(data) {
            Ok(found) => found,
            Err(error) => return Err(corrupt(error.into())),
        };
        // Its header may also lie, but not beyond the best compression of its length.
        check_size(size, found.min(data.len().saturating_mul(SNAPPY_BEST_RATIO)))?;
        out.resize(size, 0);
        self.snappy.decompress(data, out).map_err(|error| corrupt(error.into()))?;
        Ok(())
    }

    fn unpack_zlib(
        &mut self,
        data: &[u8],
        size: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), CompressError> {
        self.zlib.reset(true);
        let mut done = 0;
        let mut finished = false;
        grow_until_done(size, out, |out| {
            let status = self.zlib.decompress_vec(&data[done..], out, FlushDecompress::None);
            done = self.zlib.total_in() as usize;
            finished = status.map_err(Box::new)? == Status::StreamEnd;
            Ok(finished || done == data.len() && out.len() < out.capacity())
        })
        .map_err(CompressError::corrupt(ZLIB))?;
        require_end(ZLIB, finished && done == data.len(), size, out)
    }

    fn unpack_zstd(
        &mut self,
        data: &[u8],
        size: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), CompressError> {
        let corrupt = |error: std::io::Error| CompressError::Corrupt {
            compressor: Compressor::Zstd,
            source: error.into(),
        };
        let decoder = match &mut self.zstd {
            Some(decoder) => {
                decoder.reinit().map_err(corrupt)?;
                decoder
            }
            None => self.zstd.insert(Decoder::new().map_err(corrupt)?),
        };
        let mut input = InBuffer::around(data);
        let mut finished = false;
        grow_until_done(size, out, |out| {
            let written = out.len();
            let mut output = OutBuffer::around_pos(out, written);
            let hint = decoder.run(&mut input, &mut output)?;
            finished = hint == 0;
            let exhausted = input.pos() == data.len();
            Ok(finished || exhausted && out.len() < out.capacity())
        })
        .map_err(CompressError::corrupt(Compressor::Zstd))?;
        let complete = finished && input.pos() == data.len();
        require_end(Compressor::Zstd, complete, size, out)
    }
}

/// Calls `step`, which fills the spare capacity of `out`, until it is done or `out` exceeds `size`.
///
/// The capacity starts small and doubles, so that a wrong `size` costs no more than the actual output.
fn grow_until_done(
    size: usize,
    out: &mut Vec<u8>,
    mut step: impl FnMut(&mut Vec<u8>) -> Result<bool, Source>,
) -> Result<(), Source> {
    loop {
        if out.len() == out.capacity() || out.capacity() == 0 {
            // One additional byte shows whether the output ends, or exceeds the declared size.
            let wanted = (out.len() * 2).clamp(FIRST_CHUNK_BYTES, MAX_MESSAGE_BYTES);
            let wanted = wanted.min(size + 1).max(out.len() + 1);
            out.reserve_exact(wanted - out.len());
        }
        if step(out)? || out.len() > size {
            return Ok(());
        }
    }
}

fn require_end(
    compressor: Compressor,
    complete: bool,
    size: usize,
    out: &[u8],
) -> Result<(), CompressError> {
    check_size(size, out.len())?;
    if complete {
        return Ok(());
    }
    let source = "compressed data does not end with the message".into();
    Err(CompressError::Corrupt { compressor, source })
}

fn check_size(declared: usize, found: usize) -> Result<(), CompressError> {
    if declared == found { Ok(()) } else { Err(CompressError::SizeMismatch { declared, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bson::write_document;
    use crate::frame::write_message;
    use proptest::prelude::*;

    fn message(command: &str, payload: &[u8]) -> Vec<u8> {
        let mut document = Vec::new();
        write_document(&mut document, |writer| {
            writer.i32(command, 1).binary("payload", payload);
        });
        let mut out = Vec::new();
        write_message(&mut out, 9, 3, &document);
        out
    }

    fn pack(compressor: Compressor, message: &[u8]) -> Vec<u8> {
        let mut out = b"earlier".to_vec();
        let mut packer = Packer::new(compressor).unwrap();
        packer.pack(message, &mut out).unwrap();
        out.split_off(7)
    }

    fn unpack(body: &[u8]) -> Result<Vec<u8>, CompressError> {
        let mut out = Vec::new();
        let opcode = Unpacker::default().unpack(body, &mut out)?;
        assert_eq!(opcode, Opcode::Message);
        Ok(out)
    }

    fn wrap(declared: i32, id: u8, data: &[u8]) -> Vec<u8> {
        let mut body = 2013i32.to_le_bytes().to_vec();
        body.extend_from_slice(&declared.to_le_bytes());
        body.push(id);
        body.extend_from_slice(data);
        body
    }

    #[test]
    fn packed_messages_keep_their_numbers_and_are_smaller() {
        let original = message("insert", &[7; 5000]);
        for compressor in Compressor::ALL {
            let packed = pack(compressor, &original);
            assert!(packed.len() < 1000, "{compressor:?}: {}", packed.len());
            let frame = frame::parse(&packed).unwrap().unwrap();
            assert_eq!((frame.request_id, frame.response_to), (9, 3));
            assert_eq!(frame.opcode, Opcode::Compressed);
            assert_eq!(frame.body[8], compressor.id());
            assert_eq!(unpack(frame.body).unwrap(), &original[16..]);
        }
    }

    #[test]
    fn one_scratch_serves_many_messages_in_all_ways() {
        let mut scratch = Scratch::default();
        for size in [0, 1, 100_000, 10, 3_000_000] {
            let original = message("find", &vec![3; size]);
            for compressor in Compressor::ALL {
                let packed = scratch.compress(compressor, &original).unwrap().to_vec();
                let (opcode, body) = scratch.decompress(&packed[16..]).unwrap();
                assert_eq!(opcode, Opcode::Message);
                assert!(body == &original[16..], "{compressor:?} {size}");
            }
        }
        assert_eq!(scratch.packers.len(), 3);
    }

    #[test]
    fn a_truncated_message_does_not_spoil_the_next_one() {
        let original = message("find", &(0..=255).cycle().take(9000).collect::<Vec<u8>>());
        for compressor in Compressor::ALL {
            let packed = pack(compressor, &original);
            let mut scratch = Scratch::default();
            for end in [30, packed.len() / 2, packed.len() - 1] {
                assert!(scratch.decompress(&packed[16..end]).is_err());
                let (_, body) = scratch.decompress(&packed[16..]).unwrap();
                assert!(body == &original[16..], "{compressor:?}");
            }
        }
    }

    #[test]
    fn the_level_of_zlib_changes_the_size() {
        let text: Vec<u8> = (0..20_000u32).flat_map(|n| (n / 7).to_string().into_bytes()).collect();
        let original = message("find", &text);
        let size = |level| pack(Compressor::Zlib { level }, &original).len();
        assert!(size(0) > original.len() && size(9) < size(1) && size(-1) < size(1));
    }

    #[test]
    fn incomplete_message_is_refused() {
        let mut packer = Packer::new(Compressor::Snappy).unwrap();
        let error = packer.pack(b"incomplete", &mut Vec::new()).unwrap_err();
        assert!(matches!(error, CompressError::NotMessage));
    }

    #[test]
    fn a_lying_size_is_refused_without_taking_the_memory() {
        let original = message("find", &[0; 100_000]);
        for compressor in Compressor::ALL {
            let packed = pack(compressor, &original);
            for declared in [40_000_000i32, 0, 50_000] {
                let mut body = packed[16..].to_vec();
                body[4..8].copy_from_slice(&declared.to_le_bytes());
                let mut out = Vec::new();
                let error = Unpacker::default().unpack(&body, &mut out).unwrap_err();
                let expected = matches!(error, CompressError::SizeMismatch { .. });
                assert!(expected, "{compressor:?} {declared}: {error:?}");
                assert!(out.capacity() < 300_000, "{compressor:?}: {}", out.capacity());
            }
        }
        for declared in [-1, 48_000_000, i32::MAX] {
            let error = unpack(&wrap(declared, 1, b"")).unwrap_err();
            assert!(matches!(error, CompressError::Size { .. }));
        }
    }

    #[test]
    fn a_matching_false_snappy_size_allocates_no_memory() {
        // 40 000 000 as a snappy varint, then data that cannot expand to that size.
        let body = wrap(40_000_000, 1, b"\x80\xb4\x89\x13\x00a");
        let mut out = Vec::new();
        let error = Unpacker::default().unpack(&body, &mut out).unwrap_err();
        assert!(matches!(error, CompressError::SizeMismatch { .. }), "{error:?}");
        assert_eq!(out.capacity(), 0);
    }

    #[test]
    fn every_truncation_is_an_error() {
        let original = message("find", b"some bytes that are hardly compressible");
        for compressor in Compressor::ALL {
            let packed = pack(compressor, &original);
            for end in 16..packed.len() {
                assert!(unpack(&packed[16..end]).is_err(), "{compressor:?} {end}");
            }
            let longer = [&packed[16..], &b"x"[..]].concat();
            assert!(unpack(&longer).is_err(), "{compressor:?} with an extra byte");
        }
    }

    #[test]
    fn uncompressed_content_is_accepted_but_invalid_data_is_not() {
        assert_eq!(unpack(&wrap(3, 0, b"abc")).unwrap(), b"abc");
        let error = unpack(&wrap(4, 0, b"abc")).unwrap_err();
        assert!(matches!(error, CompressError::SizeMismatch { declared: 4, found: 3 }));
        let error = unpack(&wrap(3, 9, b"abc")).unwrap_err();
        assert!(matches!(error, CompressError::UnknownCompressor { id: 9 }));
        let mut nested = wrap(3, 0, b"abc");
        nested[..4].copy_from_slice(&2012i32.to_le_bytes());
        let error = unpack(&nested).unwrap_err();
        assert!(matches!(error, CompressError::Opcode { opcode: 2012 }));
    }

    proptest! {
        #[test]
        fn any_payload_survives(payload: Vec<u8>) {
            let original = message("update", &payload);
            for compressor in Compressor::ALL {
                let packed = pack(compressor, &original);
                prop_assert_eq!(&unpack(&packed[16..]).unwrap(), &original[16..]);
            }
        }

        #[test]
        fn mutated_messages_take_little_memory(
            compressor in prop::sample::select(&Compressor::ALL[..]),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        ) {
            let mut body = pack(compressor, &message("find", &[5; 3000])).split_off(16);
            for (place, value) in changes {
                let place = place.index(body.len());
                body[place] = value;
            }
            let mut out = Vec::new();
            let _ = Unpacker::default().unpack(&body, &mut out);
            prop_assert!(out.capacity() <= 1 << 20, "{} bytes", out.capacity());
        }

        #[test]
        fn random_bytes_never_panic(id in 0u8..4, declared in 0i32..1000, data: Vec<u8>) {
            let _ = unpack(&wrap(declared, id, &data));
        }
    }
}
