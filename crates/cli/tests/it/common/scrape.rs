//! Reads the metrics of a running program.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A program that serves metrics, ended when this value is dropped.
pub(crate) struct Endpoint {
    pub(crate) child: Child,
    pub(crate) port: u16,
    errors: Arc<Mutex<String>>,
}

impl Endpoint {
    /// Starts the program, and waits until it prints the address of its metrics.
    pub(crate) fn spawn(command: &mut Command) -> Endpoint {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut reader = BufReader::new(child.stderr.take().unwrap());
        let errors = Arc::new(Mutex::new(String::new()));
        let port = loop {
            let mut line = String::new();
            let length = reader.read_line(&mut line).unwrap();
            errors.lock().unwrap().push_str(&line);
            assert!(length > 0, "it has ended:\n{}", errors.lock().unwrap());
            if let Some(address) = line.strip_prefix("metrics: http://") {
                let address = address.trim_end().strip_suffix("/metrics").unwrap();
                break address.rsplit_once(':').unwrap().1.parse().unwrap();
            }
        };
        let collected = Arc::clone(&errors);
        // The pipe must be read, or the program would block when it is full.
        std::thread::spawn(move || {
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
                collected.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        Endpoint { child, port, errors }
    }

    /// Standard error output so far.
    pub(crate) fn errors(&self) -> String {
        self.errors.lock().unwrap().clone()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            super::signal(&self.child, "INT");
        }
        let _ = self.child.wait();
    }
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    /// 0 if there was no answer.
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Sends a request to a server on this machine.
pub(crate) fn get(port: u16, path: &str) -> Answer {
    get_with(port, path, &[])
}

/// The same with more headers. This HTTP version has no chunked encoding.
pub(crate) fn get_with(port: u16, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    let mut answer = Vec::new();
    if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
        let limit = Some(Duration::from_secs(30));
        stream.set_read_timeout(limit).unwrap();
        // A server that refuses an overlong request does not read it to the end.
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.read_to_end(&mut answer);
    }
    let text = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or(("", ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Answer { status: status.unwrap_or(0), head: head.to_owned(), body: body.to_owned() }
}
