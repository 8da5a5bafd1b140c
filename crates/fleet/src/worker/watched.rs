//! Watched servers on this machine, which the agent did not start: process and data folder of each.

use super::settings;
use crate::options::WatchedServer;
use dyno_engine::doctor::subject::of_port;
use dyno_observe::doctor::{ServerFacts, Subject, network};
use dyno_observe::environment::storage_of;
use dyno_observe::health::{Health, Reading};
use dyno_observe::watch::HostSubject;
use dyno_record::model::StorageRecord;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Interval of the checks whether a server listens.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Program with a known command line, and with a default data folder.
const MONGOD: &str = "mongod";
const DEFAULT_FOLDER: &str = "/data/db";

/// Returns what to read of this machine and its servers, and texts for what cannot be read. Waits for servers that do not listen
/// yet.
pub(super) fn subject(
    root: &Path,
    watched: &[WatchedServer],
    within: Duration,
) -> (HostSubject, Vec<String>) {
    let mut subject = HostSubject { of_server: true, ..HostSubject::default() };
    let mut unread = Vec::new();
    let mut say = |what: &str, health: &Health| {
        unread.push(format!("{what}: {}", health.reason()));
    };
    let until = Instant::now() + within;
    for (number, server) in watched.iter().enumerate() {
        let name = format!("server-{number}");
        let process = listener(root, server.port, until);
        match data_folder(root, server, process.as_ref().ok().copied()) {
            Ok(folder) => subject.data_folders.push(folder),
            Err(health) => {
                say("unknown disk", &health);
                subject.unknown_folder = Some(health);
            }
        }
        match process {
            Ok(process) => subject.processes.push((name.clone(), process)),
            Err(health) => {
                say("cannot read the server process", &health);
                subject.unknown_process = Some(health);
            }
        }
        subject.ports.push((name, server.port));
    }
    // Totals of some servers would pass for totals of all.
    if subject.unknown_process.is_some() {
        subject.processes.clear();
    }
    if subject.unknown_folder.is_some() {
        subject.data_folders.clear();
    }
    (subject, unread)
}

/// Subjects to check on this machine; asks the servers for their version.
pub(super) fn subjects(root: &Path, watched: &[WatchedServer]) -> Vec<Subject> {
    let mut asked = watched.iter().map(|server| of_port(server.port, root));
    let facts = asked.next().map(|first| {
        let instances = watched.len() as u64;
        // Different versions need different settings.
        let are_alike = asked.all(|other| other.version == first.version);
        ServerFacts { version: first.version.clone().filter(|_| are_alike), instances, ..first }
    });
    settings::subjects(facts.as_ref(), &folders(root, watched))
}

/// Data folders of the servers that are known now.
pub(super) fn folders(root: &Path, watched: &[WatchedServer]) -> Vec<PathBuf> {
    let folder = |server: &WatchedServer| {
        let process = network::listener_pid(root, server.port).ok();
        data_folder(root, server, process).ok()
    };
    watched.iter().filter_map(folder).collect()
}

/// The storage of all these folders; empty if one is unknown.
pub(super) fn storage(folders: &[PathBuf]) -> Vec<StorageRecord> {
    let all: Option<Vec<StorageRecord>> = folders.iter().map(|one| storage_of(one)).collect();
    all.unwrap_or_default()
}

/// The process that listens on a port, which may be about to start.
fn listener(root: &Path, port: u16, until: Instant) -> Reading<u32> {
    while network::listening(root, port).is_err() && Instant::now() < until {
        std::thread::sleep(LOOK_EVERY);
    }
    network::listening(root, port).map_err(degraded)?;
    network::listener_pid(root, port).map_err(|health| {
        let reason = health.reason();
        let reason = match network::holder(root, port) {
            Ok(_) => reason.to_owned(),
            Err(_) => format!("{reason}; the agent must run as its user, or as root"),
        };
        Health::Degraded { reason }
    })
}

/// Reading was requested, so `Unsupported` becomes a fault.
fn degraded(health: Health) -> Health {
    match health {
        Health::Unsupported { reason } => Health::Degraded { reason },
        other => other,
    }
}

/// A server's data folder: the configured one, otherwise the one from its command line.
fn data_folder(root: &Path, server: &WatchedServer, process: Option<u32>) -> Reading<PathBuf> {
    let unknown = |reason: String| Health::Degraded { reason };
    let process = process.map(|process| root.join(format!("proc/{process}")));
    let own = || process.as_deref().and_then(of_command_line);
    let named = server.folder.clone().or_else(own).ok_or_else(|| {
        unknown(format!("unknown data folder of the server on port {}", server.port))
    })?;
    let Some(process) = process else {
        return Ok(named);
    };
    let folder = match fs::read_link(process.join("cwd")) {
        Ok(current) => current.join(named),
        Err(_) => named,
    };
    let below = folder.strip_prefix("/").unwrap_or(&folder);
    let identity = |path: &Path| {
        let data = path.metadata().ok()?;
        Some((data.dev(), data.ino()))
    };
    let seen_by_it = identity(&process.join("root").join(below));
    if seen_by_it.is_some() && seen_by_it != identity(&folder) {
        return Err(unknown(format!(
            "`{}` is a folder inside the container of the server on port {}",
            folder.display(),
            server.port
        )));
    }
    Ok(folder)
}

/// The `dbPath` from a `mongod` command line, or the default.
fn of_command_line(process: &Path) -> Option<PathBuf> {
    let name = fs::read_to_string(process.join("comm")).ok()?;
    if name.trim_end() != MONGOD {
        return None;
    }
    let line = fs::read(process.join("cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line).into_owned();
    let mut words = line.split('\0');
    let is_file = |word: &str| word == "-f" || word.starts_with("--config");
    let has_file = words.clone().any(is_file);
    let reported = words.find_map(|word| match word.strip_prefix("--dbpath") {
        Some("") => Some(None),
        Some(rest) => rest.strip_prefix('=').map(Some),
        None => None,
    });
    match reported {
        Some(Some(folder)) => Some(folder.into()),
        // The value is the next argument.
        Some(None) => words.next().map(Into::into),
        None if has_file => None,
        None => Some(DEFAULT_FOLDER.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const PROCESS: u32 = 7;

    /// A machine with one process, with working folder `work` and the machine's root.
    fn machine(name: &str, line: &[&str]) -> tempfile::TempDir {
        let machine = tempfile::tempdir().expect("can write");
        let process = machine.path().join(format!("proc/{PROCESS}"));
        fs::create_dir_all(&process).expect("can write");
        fs::create_dir_all(machine.path().join("work/data")).expect("can write");
        fs::write(process.join("comm"), format!("{name}\n")).expect("can write");
        fs::write(process.join("cmdline"), line.join("\0")).expect("can write");
        symlink(machine.path().join("work"), process.join("cwd")).expect("can write");
        symlink("/", process.join("root")).expect("can write");
        machine
    }

    fn folder_of(machine: &Path, given: Option<&str>, process: Option<u32>) -> Reading<PathBuf> {
        let server = WatchedServer { port: 27017, folder: given.map(Into::into) };
        data_folder(machine, &server, process)
    }

    #[test]
    fn folder_comes_from_the_option_or_the_command_line() {
        let of = |name: &str, line: &[&str], given: Option<&str>| {
            let machine = machine(name, line);
            let found = folder_of(machine.path(), given, Some(PROCESS)).ok()?;
            let below = found.strip_prefix(machine.path());
            Some(below.unwrap_or(&found).display().to_string())
        };
        let some = |text: &str| Some(text.to_owned());
        let reported = ["mongod", "--dbpath", "/var/db", "--port", "1"];
        assert_eq!(of("mongod", &reported, None), some("/var/db"));
        assert_eq!(of("mongod", &reported, Some("/mnt/a")), some("/mnt/a"));
        let one_word = ["mongod", "--dbpath=data"];
        assert_eq!(
            of("mongod", &one_word, None),
            some("work/data"),
            "relative to its working folder"
        );
        assert_eq!(of("mongod", &["mongod"], None), some(DEFAULT_FOLDER));
        let by_file = ["mongod", "--config", "/etc/mongod.conf"];
        assert_eq!(of("mongod", &by_file, None), None);
        assert_eq!(of("secantusd-rs", &reported, None), None, "the default folder");
        let hidden = folder_of(Path::new("/no-such"), Some("/var/db"), None);
        assert_eq!(hidden, Ok("/var/db".into()), "a process of another user");
    }

    #[test]
    fn container_folder_is_not_a_folder_of_this_machine() {
        let machine = machine("mongod", &["mongod"]);
        let container = machine.path().join("container");
        let own = container.join("data/db");
        fs::create_dir_all(&own).expect("can write");
        let root = machine.path().join(format!("proc/{PROCESS}/root"));
        fs::remove_file(&root).expect("a link");
        symlink(&container, &root).expect("can write");
        let found = folder_of(machine.path(), None, Some(PROCESS))
            .expect_err("the folder is in a container");
        let reason = found.reason();
        for part in ["`/data/db`", "container", "27017"] {
            assert!(reason.contains(part), "{reason}");
        }
    }

    /// Opens ports on a machine, each with its socket number.
    fn open_ports(machine: &Path, ports: &[(u16, u32)]) {
        let net = machine.join("proc/net");
        fs::create_dir_all(&net).expect("can write");
        let line = |(port, socket): &(u16, u32)| {
            format!("0: 00000000:{port:04X} 00000000:0000 0A 0:0 00:0 0 999 0 {socket}\n")
        };
        let lines: String = ports.iter().map(line).collect();
        fs::write(net.join("tcp"), format!("head\n{lines}")).expect("can write");
    }

    #[test]
    fn one_unknown_server_is_reported_and_totals_are_withheld() {
        let watched = |ports: &[u16]| -> Vec<WatchedServer> {
            let server = |port: &u16| WatchedServer { port: *port, folder: None };
            ports.iter().map(server).collect()
        };
        let machine = machine("mongod", &["mongod"]);
        // The holder of socket 56 is unknown.
        open_ports(machine.path(), &[(27017, 55), (27018, 56)]);
        let files = machine.path().join(format!("proc/{PROCESS}/fd"));
        fs::create_dir_all(&files).expect("can write");
        symlink("socket:[55]", files.join("3")).expect("can write");

        let (known, unread) = subject(machine.path(), &watched(&[27017]), Duration::ZERO);
        assert_eq!(known.processes, [("server-0".to_owned(), PROCESS)]);
        assert_eq!(known.ports, [("server-0".to_owned(), 27017)]);
        assert_eq!(known.data_folders, [PathBuf::from(DEFAULT_FOLDER)]);
        assert!(known.of_server && known.unknown_process.is_none());
        assert_eq!(unread, [""; 0]);

        let all = watched(&[27017, 27018, 27019]);
        let (in_part, unread) = subject(machine.path(), &all, Duration::ZERO);
        assert_eq!((in_part.processes.len(), in_part.data_folders.len()), (0, 0));
        assert_eq!(unread.len(), 4, "{unread:?}");
        assert!(unread[1].contains("as root"), "{unread:?}");
        assert!(unread[3].contains("27019"), "{unread:?}");
        let health = [in_part.unknown_process, in_part.unknown_folder];
        let is_caveat = |health: &Option<Health>| matches!(health, Some(Health::Degraded { .. }));
        assert!(health.iter().all(is_caveat), "{health:?}");
    }
}
