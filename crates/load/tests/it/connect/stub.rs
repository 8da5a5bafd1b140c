//! A scripted name server on loopback.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

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
        TYPE_SRV => hosts.iter().map(|&(host, port)| service_data(host, port)).collect(),
        TYPE_TXT => texts.iter().map(|text| text_data(text)).collect(),
        _ => Vec::new(),
    };
    // Same id; a reply with recursion available and no error; one question.
    let mut reply = vec![query[0], query[1], 0x81, 0x80, 0, 1, 0, records.len() as u8, 0, 0, 0, 0];
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
