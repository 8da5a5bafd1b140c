//! The embedded server as a child process for tests, if its program is available.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A running server; killed on drop.
pub(crate) struct Embedded {
    child: Child,
    /// Its port on 127.0.0.1.
    pub(crate) port: u16,
    _folder: tempfile::TempDir,
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // SIGTERM would write a checkpoint, but the folder is deleted anyway.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a server; `None`, with a message, if its program is missing.
pub(crate) fn start(arguments: &[&str]) -> Option<Embedded> {
    let program = dyno_testkit::or_skip(dyno_testkit::embedded_program())?;
    let folder = tempfile::tempdir().unwrap();
    let configuration = folder.path().join("empty.toml");
    std::fs::write(&configuration, "").unwrap();
    let mut child = Command::new(program)
        .args(["--port", "0", "--cache-size", "64M", "--log-level", "ERROR"])
        .arg("--config")
        .arg(&configuration)
        .arg("--storage-path")
        .arg(folder.path().join("data"))
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let port = output.lines().map_while(Result::ok).find_map(|line| {
        line.split_once("listening on 127.0.0.1:").map(|(_, port)| port.to_owned())
    });
    let port = port.expect("the server prints its address");
    Some(Embedded { child, port: port.trim().parse().unwrap(), _folder: folder })
}
