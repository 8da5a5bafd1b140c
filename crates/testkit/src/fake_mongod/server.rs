//! The process of the fake `mongod`, from its command line to its end.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;

use super::arguments::Arguments;
use super::cluster::Cluster;
use super::dealer::Dealer;
use super::node::{Node, Session, ask_members, mark_data_folder, stored_configuration};
use super::store::Store;
use super::{ARGUMENTS, FOLDER, PROGRAM, VERSION, note, wire};

/// Exit codes of `mongod`: bad options, and a port that is in use.
const BAD_OPTIONS: i32 = 2;
const NO_PORT: i32 = 48;

/// Runs the fake `mongod` that the environment describes; never returns.
///
/// # Panics
/// If it was not started by one of the programs of [`FakeMongod`](super::FakeMongod).
pub fn serve() {
    let variable = |name: &str| std::env::var(name).expect("started as `mongod` or `mongos`");
    let folder = PathBuf::from(variable(FOLDER));
    let (program, version_text) = (variable(PROGRAM), variable(VERSION));
    let version = major_minor(&version_text);
    let text = variable(ARGUMENTS);
    let words: Vec<_> = text.lines().collect();
    let arguments = Arguments::parse(&program, version, &words).unwrap_or_else(|why| {
        note(&folder, "violations", &format!("{program}: {why}"));
        end(&format!("Error parsing command line: {why}"), BAD_OPTIONS)
    });
    let data = arguments.get("dbpath").map(Path::new);
    let configuration = data.and_then(stored_configuration);
    let name = match data {
        Some(data) => {
            mark_data_folder(data);
            let name = data.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        }
        // A router has no data, and must not mark its working folder.
        None => "router".to_owned(),
    };
    let port = arguments.get("port").unwrap_or_default().to_owned();
    let Ok(listener) = TcpListener::bind(format!("127.0.0.1:{port}")) else {
        end("SocketException: Address already in use", NO_PORT)
    };
    let node = Node {
        router: program == "mongos",
        name,
        version,
        version_text,
        folder,
        arguments,
        configuration,
        questions: 0,
        cluster: Cluster::default(),
        store: Store::default(),
        tally: Arc::default(),
        shard: None,
        dealer: Dealer::default(),
    };
    if node.router {
        await_config_servers(&node);
    }
    obey_signals(&node);
    note(&node.folder, "events", &format!("{} started", node.name));
    say(&format!(
        r#"{{"s":"I",  "c":"NETWORK",  "id":23016,   "ctx":"listener","msg":"Waiting for connections","attr":{{"port":{port},"ssl":"off"}}}}"#
    ));
    let node = Arc::new(Mutex::new(node));
    for (number, stream) in (1..).zip(listener.incoming().flatten()) {
        let node = Arc::clone(&node);
        let session = Session::new(number);
        thread::spawn(move || converse(&node, stream, session));
    }
}

fn major_minor(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// Prints a last line and ends the process.
#[allow(clippy::exit, reason = "the fake `mongod` is a process of its own")]
pub(super) fn end(message: &str, code: i32) -> ! {
    say(message);
    std::process::exit(code)
}

fn say(line: &str) {
    let mut output = std::io::stdout();
    // Errors have no other recipient.
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

/// A router without reachable config servers never listens.
fn await_config_servers(node: &Node) {
    let config = node.arguments.get("configdb").unwrap_or_default();
    let (set, hosts) = config.split_once('/').unwrap_or_default();
    for host in hosts.split(',') {
        let address = host.parse().ok();
        let state = address.and_then(|address| wire::state(address).ok());
        let fits = state.is_some_and(|state| {
            state.get_bool("config").unwrap_or(false)
                && state.get_str("set").is_ok_and(|found| found == set)
                && state.get_i32("state").is_ok_and(|state| state == 1 || state == 2)
        });
        if !fits {
            note(
                &node.folder,
                "violations",
                &format!("mongos: {host} is no config server of {set}"),
            );
            end("no config server", BAD_OPTIONS);
        }
    }
}

fn obey_signals(node: &Node) {
    let (folder, name) = (node.folder.clone(), node.name.clone());
    let tally = Arc::clone(&node.tally);
    let mut signals = Signals::new([SIGTERM]).expect("signals can be waited for");
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            for line in tally.lines() {
                note(&folder, "operations", &format!("{name} {line}"));
            }
            note(&folder, "events", &format!("{name} stopped"));
            end("shutting down", 0);
        }
    });
}

fn converse(node: &Mutex<Node>, stream: TcpStream, mut session: Session) {
    // An answer is one small write, and clients measure its latency. A failure only makes it slower.
    let _ = stream.set_nodelay(true);
    wire::answer(stream, |command| {
        let mut reply =
            node.lock().unwrap_or_else(PoisonError::into_inner).reply(command, &mut session);
        if command.contains_key("replSetGetStatus") {
            ask_members(&mut reply);
        }
        reply
    });
}
