//! Reads and writes OP_MSG. Source: MongoDB manual, "MongoDB Wire Protocol".

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bson::{Bson, Document, doc};

const OP_MSG: i32 = 2013;
const HEADER_BYTES: usize = 16;
const FLAG_BYTES: usize = 4;
/// Flags and the kind of the only section.
const PREFIX_BYTES: usize = 5;
const LARGEST_BYTES: usize = 48_000_000;

/// Server code for an unknown command.
const COMMAND_NOT_FOUND: i32 = 59;

/// Flags for no reply or a checksum, which clients of the fake `mongod` do not use.
const REFUSED_FLAGS: i32 = 0b11;

/// A received message.
#[derive(Debug)]
pub(crate) struct Message {
    /// Request ID, which the answer refers to.
    pub(crate) id: i32,
    /// The body, with each document sequence as an array in it.
    pub(crate) body: Document,
}

/// Writes a message with `body` that answers `response_to`; 0 for a request.
pub(crate) fn write(stream: &mut impl Write, body: &Document, response_to: i32) -> io::Result<()> {
    let mut bytes = Vec::new();
    body.to_writer(&mut bytes).map_err(io::Error::other)?;
    let length =
        i32::try_from(HEADER_BYTES + PREFIX_BYTES + bytes.len()).map_err(io::Error::other)?;
    let mut message = Vec::with_capacity(bytes.len() + HEADER_BYTES + PREFIX_BYTES);
    for number in [length, 1, response_to, OP_MSG, 0] {
        message.extend_from_slice(&number.to_le_bytes());
    }
    message.push(0);
    message.extend_from_slice(&bytes);
    stream.write_all(&message)
}

/// Reads a message.
pub(crate) fn read(stream: &mut impl Read) -> io::Result<Message> {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header)?;
    let length = usize::try_from(word(&header, 0)?).unwrap_or(0);
    if word(&header, 12)? != OP_MSG
        || !(HEADER_BYTES + PREFIX_BYTES..LARGEST_BYTES).contains(&length)
    {
        return Err(io::Error::other("not an OP_MSG"));
    }
    let mut rest = vec![0; length - HEADER_BYTES];
    stream.read_exact(&mut rest)?;
    if word(&rest, 0)? & REFUSED_FLAGS != 0 {
        return Err(io::Error::other("flags that the fake `mongod` does not know"));
    }
    Ok(Message { id: word(&header, 4)?, body: sections(&rest[FLAG_BYTES..])? })
}

/// The body section, with the sequences inserted as arrays.
fn sections(mut bytes: &[u8]) -> io::Result<Document> {
    let mut body = None;
    let mut sequences = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        let length = usize::try_from(word(rest, 0)?).unwrap_or(0);
        let section =
            rest.get(..length).ok_or_else(|| io::Error::other("a section is cut short"))?;
        match kind {
            0 if body.is_none() => body = Some(document(section)?),
            1 => sequences.push(sequence(&section[4..])?),
            _ => return Err(io::Error::other("a section of unknown kind")),
        }
        bytes = &rest[length..];
    }
    let mut body = body.ok_or_else(|| io::Error::other("there is no body"))?;
    for (name, documents) in sequences {
        if body.insert(name, documents).is_some() {
            return Err(io::Error::other("a sequence has the name of a field"));
        }
    }
    Ok(body)
}

/// Name and documents of a sequence, after its length.
fn sequence(bytes: &[u8]) -> io::Result<(String, Bson)> {
    let end = bytes.iter().position(|byte| *byte == 0);
    let end = end.ok_or_else(|| io::Error::other("a sequence has no name"))?;
    let name = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut rest = &bytes[end + 1..];
    let mut documents = Vec::new();
    while !rest.is_empty() {
        let length = usize::try_from(word(rest, 0)?).unwrap_or(0);
        let one = rest.get(..length).ok_or_else(|| io::Error::other("a document is cut short"))?;
        documents.push(Bson::Document(document(one)?));
        rest = &rest[length..];
    }
    Ok((name, Bson::Array(documents)))
}

fn document(bytes: &[u8]) -> io::Result<Document> {
    Document::from_reader(bytes).map_err(io::Error::other)
}

fn word(bytes: &[u8], at: usize) -> io::Result<i32> {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map(i32::from_le_bytes).ok_or_else(|| io::Error::other("the message is cut short"))
}

/// Sends one request to another process.
pub(crate) fn ask(address: SocketAddr, command: &Document) -> io::Result<Document> {
    exchange(&mut connect(address)?, command)
}

/// Asks another fake `mongod` for its state. For a real server, which does not know the request, the state follows from
/// its `hello`.
pub(crate) fn state(address: SocketAddr) -> io::Result<Document> {
    let mut stream = connect(address)?;
    let state = exchange(&mut stream, &doc! { "fakeMongodState": 1, "$db": "admin" })?;
    let is_unknown = state.get_i32("code").is_ok_and(|code| code == COMMAND_NOT_FOUND);
    if !is_unknown {
        return Ok(state);
    }
    let hello = exchange(&mut stream, &doc! { "hello": 1, "$db": "admin" })?;
    let says = |name: &str| hello.get_bool(name).unwrap_or(false);
    let state = match (says("isWritablePrimary"), says("secondary")) {
        (true, _) => 1,
        (false, true) => 2,
        (false, false) => 0,
    };
    Ok(doc! {
        "state": state,
        "set": hello.get_str("setName").unwrap_or_default(),
        "config": hello.contains_key("configsvr"),
        // A shard does not report its role.
        "shard": true,
        "real": true,
    })
}

/// Opens a connection for [`exchange`].
pub(crate) fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let limit = Duration::from_secs(10);
    let stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends a request over a persistent connection.
pub(crate) fn exchange(stream: &mut TcpStream, command: &Document) -> io::Result<Document> {
    write(stream, command, 0)?;
    Ok(read(stream)?.body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
        let mut bytes = vec![kind];
        for part in parts {
            bytes.extend_from_slice(part);
        }
        bytes
    }

    #[test]
    fn sequences_become_arrays_of_the_body() {
        let body = doc! { "insert": "c", "$db": "d" };
        let one = doc! { "_id": 1 }.to_vec().unwrap();
        let length = i32::try_from(4 + 10 + 2 * one.len()).unwrap();
        let sequence = section(1, &[&length.to_le_bytes(), b"documents\0", &one, &one]);
        let bytes = [section(0, &[&body.to_vec().unwrap()]), sequence].concat();
        let read = sections(&bytes).unwrap();
        assert_eq!(read.get_array("documents").unwrap().len(), 2);
        for end in 1..bytes.len() {
            assert!(
                sections(&bytes[..end]).is_err() || end == 1 + body.to_vec().unwrap().len(),
                "cut at {end}"
            );
        }
        let twice =
            [section(0, &[&body.to_vec().unwrap()]), section(0, &[&body.to_vec().unwrap()])];
        assert!(sections(&twice.concat()).is_err());
    }
}
