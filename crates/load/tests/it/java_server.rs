//! An independent server for compatibility tests: mongo-java-server, which shares no code with the embedded one. The
//! set-up script builds it, and it keeps its data in memory.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use dyno_testkit::{Skip, or_skip, project_dir};

/// Folder of the built server below the project.
const BUILT: &str = ".cache/mongo-java-server";
const REMEDY: &str = "run `scripts/setup.sh test`";

/// A running mongo-java-server. It ends on drop, and when this process dies.
#[derive(Debug)]
pub(crate) struct JavaServer {
    process: Child,
    /// Held open and never written to: the server ends when it closes, even if this process dies.
    _input: Option<ChildStdin>,
    address: SocketAddr,
}

impl JavaServer {
    /// Starts it on a free port of 127.0.0.1 and waits until it accepts connections.
    ///
    /// # Errors
    /// A [`Skip`] if Java or the server is not installed.
    ///
    /// # Panics
    /// If both are installed and the server does not start.
    pub(crate) fn start() -> Result<JavaServer, Skip> {
        let built = project_dir().join(BUILT);
        if !built.join("complete").is_file() {
            return Err(Skip::new("mongo-java-server is not built", REMEDY));
        }
        let mut process = match Command::new("java")
            .args(arguments(&built))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
        {
            Ok(process) => process,
            Err(error) => return Err(Skip::new(format!("cannot run `java`: {error}"), REMEDY)),
        };
        let input = process.stdin.take();
        let output = process.stdout.take().expect("standard output is piped");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("the output of the server can be read");
        let port =
            line.trim().strip_prefix("listening on port ").and_then(|port| port.parse().ok());
        let Some(port) = port else {
            panic!("mongo-java-server does not start: its first line is `{}`", line.trim());
        };
        Ok(JavaServer { process, _input: input, address: (Ipv4Addr::LOCALHOST, port).into() })
    }

    /// Connection string with only the address.
    pub(crate) fn uri(&self) -> String {
        format!("mongodb://{}/", self.address)
    }
}

impl Drop for JavaServer {
    fn drop(&mut self) {
        // A graceful shutdown would save nothing; both calls fail only if the process is gone.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn arguments(built: &Path) -> Vec<OsString> {
    // One garbage collector thread and the fast compiler: it is started often and runs briefly.
    let mut arguments: Vec<OsString> =
        ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"].map(OsString::from).into();
    arguments.push(built.join("jars/*").into_os_string());
    arguments.push("MemoryServer".into());
    arguments
}

#[test]
fn the_java_server_accepts_connections_until_it_is_dropped() {
    let Some(server) = or_skip(JavaServer::start()) else {
        return;
    };
    let (address, process) = (server.address, server.process.id());
    drop(TcpStream::connect(address).unwrap());
    drop(server);
    let refused = TcpStream::connect(address).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert!(!Path::new(&format!("/proc/{process}")).exists());
}
