//! Commands and replies as documents, on blocking connections.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bson::{Bson, Document, doc};
use dyno_wire::frame::{self, FLAG_MORE_TO_COME, HEADER_BYTES};

/// Server code for an unknown command.
const COMMAND_NOT_FOUND: i32 = 59;

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
    let mut message = Vec::new();
    let body = body.to_vec().map_err(io::Error::other)?;
    frame::write_message(&mut message, 1, response_to, &body);
    stream.write_all(&message)
}

/// Reads a message.
pub(crate) fn read(stream: &mut impl Read) -> io::Result<Message> {
    let mut bytes = vec![0; HEADER_BYTES];
    stream.read_exact(&mut bytes)?;
    bytes.resize(frame::needed(&bytes).map_err(io::Error::other)?, 0);
    stream.read_exact(&mut bytes[HEADER_BYTES..])?;
    let frame = frame::parse(&bytes).map_err(io::Error::other)?;
    let frame = frame.ok_or_else(|| io::Error::other("the message is cut short"))?;
    let message = frame.message().map_err(io::Error::other)?;
    if message.flags & FLAG_MORE_TO_COME != 0 {
        return Err(io::Error::other("the fake `mongod` always replies"));
    }
    let mut body = document(message.document)?;
    for sequence in message.sequences() {
        let (mut documents, mut rest) = (Vec::new(), sequence.documents);
        while !rest.is_empty() {
            let (one, after) = dyno_wire::bson::Document::split(rest).map_err(io::Error::other)?;
            documents.push(Bson::Document(document(one.as_bytes())?));
            rest = after;
        }
        let name = String::from_utf8_lossy(sequence.name).into_owned();
        if body.insert(name, documents).is_some() {
            return Err(io::Error::other("a sequence has the name of a field"));
        }
    }
    Ok(Message { id: frame.request_id, body })
}

fn document(bytes: &[u8]) -> io::Result<Document> {
    Document::from_reader(bytes).map_err(io::Error::other)
}

/// Answers the commands on a connection until it ends or a reply is empty: the loop of all servers for tests.
pub(crate) fn answer(mut stream: impl Read + Write, mut reply: impl FnMut(&Document) -> Document) {
    while let Ok(message) = read(&mut stream) {
        let reply = reply(&message.body);
        if reply.is_empty() || write(&mut stream, &reply, message.id).is_err() {
            return;
        }
    }
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

    #[test]
    fn sequences_become_arrays_of_the_body() {
        let body = doc! { "insert": "c", "$db": "d" }.to_vec().unwrap();
        let one = doc! { "_id": 1 }.to_vec().unwrap();
        let mut bytes = Vec::new();
        frame::write_message_with_sequence(&mut bytes, 7, &body, "documents", [&*one, &*one]);
        let message = read(&mut &*bytes).unwrap();
        assert_eq!(message.id, 7);
        assert_eq!(message.body.get_array("documents").unwrap().len(), 2);
        for end in 0..bytes.len() {
            assert!(read(&mut &bytes[..end]).is_err(), "cut at {end}");
        }
    }
}
