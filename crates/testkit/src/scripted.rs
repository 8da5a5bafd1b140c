//! Scripted servers on loopback, for behaviour that no real server can be made to show. They live until the process
//! ends.

use crate::wire;
use bson::Document;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// Returns the reply to a command; an empty one closes the connection.
pub trait Script: Fn(&Document) -> Document + Send + Sync + 'static {}
impl<F: Fn(&Document) -> Document + Send + Sync + 'static> Script for F {}

/// Starts a server that answers commands by `script`; returns its port.
///
/// # Panics
/// No port is free.
pub fn serve(script: impl Script) -> u16 {
    let (listener, port) = listen();
    serve_on(listener, script);
    port
}

/// Like [`serve`], on an existing listener.
pub fn serve_on(listener: TcpListener, script: impl Script) {
    let script = Arc::new(script);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let script = Arc::clone(&script);
            thread::spawn(move || answer(stream, &*script));
        }
    });
}

/// Like [`serve`], on a Unix-domain socket.
///
/// # Panics
/// The socket cannot be created.
pub fn serve_unix(path: &Path, script: impl Script) {
    let listener = UnixListener::bind(path).expect("a socket can be made");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream, &script);
        }
    });
}

/// Acts as a proxy: commands for which `script` has a reply are answered by it, all others by the server at `address`.
/// Returns its port.
///
/// # Panics
/// No port is free.
pub fn serve_before(
    address: SocketAddr,
    script: impl Fn(&Document) -> Option<Document> + Send + Sync + 'static,
) -> u16 {
    let (listener, port) = listen();
    let script = Arc::new(script);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let script = Arc::clone(&script);
            thread::spawn(move || {
                let Ok(mut beyond) = TcpStream::connect(address) else {
                    return;
                };
                while let Ok(message) = wire::read(&mut stream) {
                    let reply = match script(&message.body) {
                        Some(reply) => Ok(reply),
                        None => wire::exchange(&mut beyond, &message.body),
                    };
                    let written = reply.and_then(|it| wire::write(&mut stream, &it, message.id));
                    if written.is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

/// Starts a server that passes each connection to `treat`; returns its port.
///
/// # Panics
/// No port is free.
pub fn accept(treat: impl Fn(TcpStream) + Send + 'static) -> u16 {
    let (listener, port) = listen();
    thread::spawn(move || listener.incoming().flatten().for_each(treat));
    port
}

fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    (listener, address.port())
}

fn answer(mut stream: impl Read + Write, script: &dyn Script) {
    while let Ok(message) = wire::read(&mut stream) {
        let reply = script(&message.body);
        if reply.is_empty() || wire::write(&mut stream, &reply, message.id).is_err() {
            return;
        }
    }
}
