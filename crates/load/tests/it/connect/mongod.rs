//! A real `mongod` with custom arguments, killed on drop.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A running server.
pub(crate) struct Mongod {
    child: Child,
    /// Its port on 127.0.0.1.
    pub(crate) port: u16,
    _folder: tempfile::TempDir,
}

impl Drop for Mongod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a server; `None`, with a message, if its program is missing.
pub(crate) fn start(arguments: &[&str]) -> Option<Mongod> {
    let program = dyno_testkit::or_skip(dyno_testkit::mongod_program())?;
    let folder = tempfile::tempdir().unwrap();
    let port = dyno_testkit::free_port();
    let mut child = Command::new(program)
        .args(["--port", &port.to_string(), "--bind_ip", "127.0.0.1"])
        .args(["--wiredTigerCacheSizeGB", "0.25"])
        .args(["--setParameter", "diagnosticDataCollectionEnabled=false"])
        .arg("--dbpath")
        .arg(folder.path())
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = child.stdout.take().unwrap();
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let listens = lines.any(|line| line.contains("\"Waiting for connections\""));
    assert!(listens, "the server does not start");
    // The server ends if its output is closed.
    std::thread::spawn(move || lines.for_each(drop));
    Some(Mongod { child, port, _folder: folder })
}
