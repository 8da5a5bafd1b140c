//! OP_MSG with one body, both ways. Source: MongoDB manual, "MongoDB Wire Protocol".

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bson::Document;

const OP_MSG: i32 = 2013;
const HEADER_BYTES: usize = 16;
/// Flags and the kind of the only section.
const PREFIX_BYTES: usize = 5;
const LARGEST_BYTES: usize = 48_000_000;

/// Writes a message with `body`.
pub(super) fn write(stream: &mut TcpStream, body: &Document) -> io::Result<()> {
    let mut bytes = Vec::new();
    body.to_writer(&mut bytes).map_err(io::Error::other)?;
    let length =
        i32::try_from(HEADER_BYTES + PREFIX_BYTES + bytes.len()).map_err(io::Error::other)?;
    let mut message = Vec::with_capacity(bytes.len() + HEADER_BYTES + PREFIX_BYTES);
    for number in [length, 1, 0, OP_MSG, 0] {
        message.extend_from_slice(&number.to_le_bytes());
    }
    message.push(0);
    message.extend_from_slice(&bytes);
    stream.write_all(&message)
}

/// Reads a message and returns its body.
pub(super) fn read(stream: &mut TcpStream) -> io::Result<Document> {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header)?;
    let word = |at: usize| {
        let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        i32::from_le_bytes(bytes)
    };
    let length = usize::try_from(word(0)).unwrap_or(0);
    if word(12) != OP_MSG || !(HEADER_BYTES + PREFIX_BYTES..LARGEST_BYTES).contains(&length) {
        return Err(io::Error::other("not an OP_MSG"));
    }
    let mut rest = vec![0; length - HEADER_BYTES];
    stream.read_exact(&mut rest)?;
    if rest[4] != 0 {
        return Err(io::Error::other("the first section is no body"));
    }
    Document::from_reader(&rest[PREFIX_BYTES..]).map_err(io::Error::other)
}

/// Asks another process one question.
pub(super) fn ask(address: SocketAddr, command: &Document) -> io::Result<Document> {
    let limit = Duration::from_secs(10);
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    write(&mut stream, command)?;
    read(&mut stream)
}
