//! Scripted servers on loopback, for behaviour that no real server can be made to show. They live until the process
//! ends.

use crate::wire;
use bson::Document;
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
    accept_on(listener, move |stream| wire::answer(stream, &script));
}

/// Like [`serve`], on a Unix-domain socket, and with one connection after the other.
///
/// # Panics
/// The socket cannot be created.
pub fn serve_unix(path: &Path, script: impl Script) {
    let listener = UnixListener::bind(path).expect("a socket can be made");
    thread::spawn(move || {
        listener.incoming().flatten().for_each(|stream| wire::answer(stream, &script));
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
    accept(move |stream| {
        let Ok(mut beyond) = TcpStream::connect(address) else {
            return;
        };
        wire::answer(stream, |command| {
            let own = script(command);
            own.unwrap_or_else(|| wire::exchange(&mut beyond, command).unwrap_or_default())
        });
    })
}

/// Starts a server that passes each connection to `treat`, on its own thread; returns its port.
///
/// # Panics
/// No port is free.
pub fn accept(treat: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let (listener, port) = listen();
    accept_on(listener, treat);
    port
}

fn accept_on(listener: TcpListener, treat: impl Fn(TcpStream) + Send + Sync + 'static) {
    let treat = Arc::new(treat);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let treat = Arc::clone(&treat);
            thread::spawn(move || treat(stream));
        }
    });
}

fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    (listener, address.port())
}
