//! Scripted servers on loopback: one that answers commands by a function, and one for DNS.

use bson::Document;
use dyno_wire::frame;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

/// Gives the reply to a command.
pub(crate) trait Script: Fn(&Document) -> Document + Send + Sync + 'static {}
impl<F: Fn(&Document) -> Document + Send + Sync + 'static> Script for F {}

/// Starts a server that answers commands by `script`; returns its port. It lives until the process ends.
pub(crate) fn serve(script: impl Script) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    serve_on(listener, script);
    port
}

/// The same on a listener that exists already.
pub(crate) fn serve_on(listener: TcpListener, script: impl Script) {
    let script = Arc::new(script);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let script = Arc::clone(&script);
            std::thread::spawn(move || answer(stream.unwrap(), &*script));
        }
    });
}

/// The same on a Unix-domain socket.
pub(crate) fn serve_unix(path: &Path, script: impl Script) {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap(), &script);
        }
    });
}

/// Starts a server that hands each connection to `treat`; returns its port.
pub(crate) fn accept(treat: impl Fn(TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        listener
            .incoming()
            .for_each(|stream| treat(stream.unwrap()))
    });
    port
}

fn answer(mut stream: impl Read + Write, script: &dyn Script) {
    let mut received = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        while let Ok(Some(frame)) = frame::parse(&received) {
            let command = Document::from_reader(frame.message().unwrap().document).unwrap();
            let reply = script(&command).to_vec().unwrap();
            let mut out = Vec::new();
            frame::write_message(&mut out, 1, frame.request_id, &reply);
            let length = frame.length;
            received.drain(..length);
            if stream.write_all(&out).is_err() {
                return;
            }
        }
        match stream.read(&mut chunk) {
            Ok(count) if count > 0 => received.extend_from_slice(&chunk[..count]),
            _ => return,
        }
    }
}

const TYPE_TXT: u16 = 16;
const TYPE_SRV: u16 = 33;

/// Starts a name server that lists `hosts` in SRV records and `texts` in TXT records, whatever the name.
pub(crate) fn name_server(hosts: Vec<(&'static str, u16)>, texts: Vec<&'static str>) -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut query = [0; 1500];
        while let Ok((length, client)) = socket.recv_from(&mut query) {
            let reply = name_reply(&query[..length], &hosts, &texts);
            let _ = socket.send_to(&reply, client);
        }
    });
    address
}

fn name_reply(query: &[u8], hosts: &[(&str, u16)], texts: &[&str]) -> Vec<u8> {
    let mut end = 12;
    while query[end] != 0 {
        end += 1 + usize::from(query[end]);
    }
    let kind = u16::from_be_bytes([query[end + 1], query[end + 2]]);
    let question = &query[12..end + 5];
    let records: Vec<Vec<u8>> = match kind {
        TYPE_SRV => hosts
            .iter()
            .map(|&(host, port)| service_data(host, port))
            .collect(),
        TYPE_TXT => texts.iter().map(|text| text_data(text)).collect(),
        _ => Vec::new(),
    };
    // Same id; a reply with recursion available and no error; one question.
    let mut reply = vec![
        query[0],
        query[1],
        0x81,
        0x80,
        0,
        1,
        0,
        records.len() as u8,
        0,
        0,
        0,
        0,
    ];
    reply.extend_from_slice(question);
    for data in records {
        // The name of the question, the type, class IN, and a minute to live.
        reply.extend_from_slice(&[0xc0, 12]);
        reply.extend_from_slice(&kind.to_be_bytes());
        reply.extend_from_slice(&[0, 1, 0, 0, 0, 60]);
        reply.extend_from_slice(&(data.len() as u16).to_be_bytes());
        reply.extend_from_slice(&data);
    }
    reply
}

fn service_data(host: &str, port: u16) -> Vec<u8> {
    let mut data = vec![0, 0, 0, 0];
    data.extend_from_slice(&port.to_be_bytes());
    for label in host.split('.') {
        data.push(label.len() as u8);
        data.extend_from_slice(label.as_bytes());
    }
    data.push(0);
    data
}

fn text_data(text: &str) -> Vec<u8> {
    [&[text.len() as u8], text.as_bytes()].concat()
}
