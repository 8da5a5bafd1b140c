//! Connecting to scripted servers and, if its program is available, the embedded server.

#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod embedded;
mod members;
mod mongod;
mod outside;
mod secured;
mod stub;

use bson::{Document, doc};
use dyno_load::connect::{
    CancelCheck, Compressor, ConnectError, Connected, Connector, ControlError, TopologyKind,
    Transport, with_known_hosts,
};
use dyno_load::responder::{Behaviour, Responder, Stall};
use dyno_plan::uri::{self, Credentials, Target};
use dyno_testkit::scripted;
use dyno_wire::command::{CommandOptions, CommandSet, Projection};
use dyno_wire::compress::Scratch;
use dyno_wire::frame::{self, Opcode};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

fn parse(text: &str) -> (Target, Option<Credentials>) {
    uri::parse(text).unwrap()
}

fn connector(text: &str) -> Connector {
    let (target, credentials) = parse(text);
    Connector::new(&target, credentials).unwrap()
}

fn failure(text: &str) -> ConnectError {
    connector(text).connect().unwrap_err()
}

fn hello() -> Document {
    doc! { "isWritablePrimary": true, "maxWireVersion": 21, "ok": 1 }
}

fn find(key: &str) -> Vec<u8> {
    let commands = CommandSet::new(&CommandOptions {
        database: "test".into(),
        collection: "c".into(),
        ..CommandOptions::default()
    });
    let mut out = Vec::new();
    commands.unwrap().find_by_id(&mut out, 71, key.as_bytes(), Projection::All);
    out
}

/// Sends and receives one message like the event loop: non-blocking, reading until `WouldBlock`.
fn exchange(transport: &mut Transport, request: &[u8]) -> Vec<u8> {
    transport.set_nonblocking(true).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let (mut sent, mut received, mut chunk) = (0, Vec::new(), [0; 1000]);
    loop {
        assert!(Instant::now() < deadline, "no reply");
        if sent < request.len() {
            match transport.write(&request[sent..]) {
                Ok(count) => sent += count,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        transport.flush_pending().unwrap();
        match transport.read(&mut chunk) {
            Ok(0) => panic!("the server closed the connection"),
            Ok(count) => received.extend_from_slice(&chunk[..count]),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                std::thread::yield_now();
            }
        }
        if let Some(frame) = frame::parse(&received).unwrap() {
            assert_eq!(frame.response_to, 71);
            assert_eq!(frame.length, received.len());
            return received;
        }
    }
}

/// Number of documents that a find by this key returns, with the agreed compression.
fn count_found(connected: &mut Connected, key: &str) -> u32 {
    let mut scratch = Scratch::default();
    let request = match connected.compressor {
        Some(compressor) => scratch.compress(compressor, &find(key)).unwrap().to_vec(),
        None => find(key),
    };
    let received = exchange(&mut connected.transport, &request);
    let frame = frame::parse(&received).unwrap().unwrap();
    assert_eq!(frame.opcode == Opcode::Compressed, connected.compressor.is_some());
    let body = match frame.opcode {
        Opcode::Compressed => scratch.decompress(frame.body).unwrap().1,
        _ => frame.body,
    };
    let reply = dyno_wire::reply::read(body).unwrap();
    assert!(reply.ok, "{}", reply.message);
    reply.cursor.unwrap().count
}

fn insert(connector: &Connector, key: &str, bytes: usize) {
    let mut control = connector.control().unwrap();
    let document = doc! { "_id": key, "value": "x".repeat(bytes) };
    let reply = control.run("test", doc! { "insert": "c", "documents": [document] }).unwrap();
    assert_eq!(reply.get_i32("n").unwrap(), 1);
}

#[test]
fn a_cancelled_caller_does_not_wait_for_a_hanging_server() {
    let behaviour = Behaviour {
        // It answers briefly, and then not at all for a minute.
        stall: Some(Stall {
            every: Duration::from_secs(62),
            length: Duration::from_secs(60),
            first: Duration::from_millis(500),
        }),
        ..Behaviour::default()
    };
    let responder = Responder::start(behaviour).unwrap();
    let connector = connector(&format!("mongodb://{}/", responder.address()));
    let mut control = connector.control().unwrap();
    let given_up = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&given_up);
    control.set_cancel_check(CancelCheck::new(move || asked.fetch_add(1, Ordering::Relaxed) >= 2));
    let begin = Instant::now();
    let error = loop {
        match control.run("admin", doc! { "ping": 1 }) {
            Ok(_) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => break error,
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "it does not stall");
    };
    assert!(matches!(error, ControlError::Io { .. }), "{error:?}");
    assert_eq!(given_up.load(Ordering::Relaxed), 3);
    // The answer to the first command may still arrive, so the connection does not wait for another one.
    control.set_cancel_check(CancelCheck::new(|| false));
    let error = control.run("admin", doc! { "ping": 1 }).unwrap_err();
    let ControlError::Io { source, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(source.kind(), ErrorKind::NotConnected);
}

#[test]
fn a_port_without_a_listener_refuses() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = failure(&format!("mongodb://127.0.0.1:{port}/"));
    assert!(matches!(error, ConnectError::Refused { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains(&port.to_string()));
    let error = failure("mongodb://%2Fnowhere%2Fmongodb.sock/");
    assert!(matches!(error, ConnectError::Refused { .. }), "{error:?}");
}

#[test]
fn a_name_without_an_address_is_named() {
    let error = failure("mongodb://no-such-host.invalid/");
    let ConnectError::Resolve { host, .. } = error else { panic!("{error:?}") };
    assert_eq!(host, "no-such-host.invalid");
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let kept = std::sync::Mutex::new(Vec::new());
    let port = scripted::accept(move |stream| kept.lock().unwrap().push(stream));
    let started = Instant::now();
    for more in ["", "&tls=true&tlsInsecure=true"] {
        let error = failure(&format!("mongodb://127.0.0.1:{port}/?connectTimeoutMS=100{more}"));
        let timed_out = matches!(error, ConnectError::TimedOut { limit_ms: 100, .. });
        assert!(timed_out, "{error:?}");
    }
    assert!(started.elapsed() >= Duration::from_millis(200));
    assert!(started.elapsed() < PATIENCE);
}

#[test]
fn a_server_of_another_kind_is_recognised() {
    let port = scripted::accept(|mut stream| {
        let _ = stream.read(&mut [0; 1000]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let error = failure(&format!("mongodb://127.0.0.1:{port}/"));
    assert!(matches!(error, ConnectError::Protocol { .. }), "{error:?}");
    let error = failure(&format!("mongodb://127.0.0.1:{port}/?tls=true&tlsInsecure=true"));
    assert!(matches!(error, ConnectError::Tls { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("remove `tls=true`"));
}

#[test]
fn a_server_that_hangs_up_gets_a_hint_about_tls() {
    let port = scripted::accept(|mut stream| {
        let _ = stream.read(&mut [0; 1000]);
    });
    let error = failure(&format!("mongodb://127.0.0.1:{port}/"));
    assert!(matches!(error, ConnectError::Closed { tls: false, .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("tls=true"));
}

#[test]
fn an_old_server_is_refused() {
    let port = scripted::serve(|_| doc! { "ismaster": true, "maxWireVersion": 5, "ok": 1 });
    let error = failure(&format!("mongodb://127.0.0.1:{port}/"));
    assert!(matches!(error, ConnectError::TooOld { found: 5, .. }), "{error:?}");
}

#[test]
fn a_server_without_hello_is_asked_by_the_old_name() {
    let port = scripted::serve(|command| match command.keys().next().unwrap().as_str() {
        "isMaster" => doc! { "ismaster": true, "maxWireVersion": 6, "ok": 1 },
        _ => doc! { "ok": 0, "code": 59, "errmsg": "no such command" },
    });
    let connected = connector(&format!("mongodb://127.0.0.1:{port}/")).connect().unwrap();
    assert_eq!(connected.hello.max_wire_version, 6);
    assert!(!connected.transport.is_tls());
}

#[test]
fn a_refused_hello_shows_the_reason() {
    let port = scripted::serve(|_| doc! { "ok": 0, "code": 14, "errmsg": "wrong type" });
    let error = failure(&format!("mongodb://127.0.0.1:{port}/"));
    let text = format!("`127.0.0.1:{port}` refused `hello`: wrong type (code 14, TypeMismatch)");
    assert_eq!(error.to_string(), text);
}

#[test]
fn the_server_learns_the_name_of_the_application() {
    let port = scripted::serve(|command| {
        let name = command.get_document("client").unwrap().get_document("application");
        assert_eq!(name.unwrap(), &doc! { "name": "bench" });
        hello()
    });
    connector(&format!("mongodb://127.0.0.1:{port}/?appName=bench")).connect().unwrap();
}

#[test]
fn a_unix_domain_socket_works() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mongodb.sock");
    scripted::serve_unix(&path, |command| match command.get("ping") {
        Some(_) => doc! { "ok": 1 },
        None => hello(),
    });
    let path = path.to_str().unwrap().replace('/', "%2F");
    let connector = connector(&format!("mongodb://{path}/"));
    // The script serves one connection after the other.
    drop(connector.connect().unwrap());
    connector.control().unwrap().run("admin", doc! { "ping": 1 }).unwrap();
}

#[test]
fn live_routers_are_used_in_turn() {
    let counts: [Arc<AtomicUsize>; 2] = Default::default();
    let ports = counts.clone().map(|count| {
        scripted::serve(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            let mut hello = hello();
            hello.insert("msg", "isdbgrid");
            hello
        })
    });
    let [a, b] = ports;
    let connector = connector(&format!("mongodb://127.0.0.1:{a},127.0.0.1:{b}/"));
    assert_eq!(connector.discover().unwrap().kind, TopologyKind::Sharded);
    for _ in 0..6 {
        connector.connect().unwrap();
    }
    let counts = counts.map(|count| count.load(Ordering::SeqCst));
    assert_eq!(counts, [1 + 3, 1 + 3]);
}

#[test]
fn router_gets_the_mode_of_a_read_preference() {
    let port = scripted::serve(|_| {
        let mut hello = hello();
        hello.insert("msg", "isdbgrid");
        hello
    });
    let direct =
        |more: &str| connector(&format!("mongodb://127.0.0.1:{port}/?directConnection=true{more}"));
    let options = ["", "&readPreference=primary", "&readPreference=secondary"];
    let modes = options.map(|more| direct(more).read_preference());
    assert_eq!(modes, [None, None, Some("secondary".to_owned())]);
    direct("&readPreference=secondary").connect().unwrap();
    let tagged = direct("&readPreference=secondary&readPreferenceTags=dc:ny");
    let error = tagged.connect().unwrap_err();
    let ConnectError::Unsupported { options } = &error else { panic!("{error:?}") };
    let names: Vec<_> = options.iter().map(|option| option.name.as_str()).collect();
    assert_eq!(names, ["readPreferenceTags"]);
    tagged.control().unwrap();
}

/// Two members of a replica set; the one with the port in `primary` is the primary.
fn two_members(primary: &Arc<AtomicU16>) -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let ports = [0, 1].map(|index| listeners[index].local_addr().unwrap().port());
    for (listener, own) in listeners.into_iter().zip(ports) {
        let primary = Arc::clone(primary);
        scripted::serve_on(listener, move |_| {
            let is_primary = primary.load(Ordering::SeqCst) == own;
            let mut hello = doc! {
                "setName": "rs0", "isWritablePrimary": is_primary, "secondary": !is_primary,
                "hosts": ports.map(|port| format!("127.0.0.1:{port}")).to_vec(),
                "me": format!("127.0.0.1:{own}"), "maxWireVersion": 21, "ok": 1,
            };
            if is_primary {
                hello.insert("primary", format!("127.0.0.1:{own}"));
            }
            hello
        });
    }
    ports
}

#[test]
fn connections_follow_the_primary_after_an_election() {
    let primary = Arc::new(AtomicU16::new(0));
    let [a, b] = two_members(&primary);
    primary.store(b, Ordering::SeqCst);
    let connector = connector(&format!("mongodb://127.0.0.1:{a}/?replicaSet=rs0"));
    let me = |port: u16| Some(format!("127.0.0.1:{port}"));
    assert_eq!(connector.connect().unwrap().hello.me, me(b));
    primary.store(a, Ordering::SeqCst);
    assert_eq!(connector.connect().unwrap().hello.me, me(a));
}

#[test]
fn a_set_without_a_primary_is_described_after_waiting() {
    let [a, b] = two_members(&Arc::new(AtomicU16::new(0)));
    let started = Instant::now();
    let error = failure(&format!("mongodb://127.0.0.1:{a}/?serverSelectionTimeoutMS=600"));
    let ConnectError::NoPrimary { members } = &error else { panic!("{error:?}") };
    assert_eq!(members.len(), 2);
    let b = format!("127.0.0.1:{b}");
    let state = members.iter().find(|(host, _)| host.to_string() == b);
    assert!(state.is_some_and(|(_, state)| state.contains("secondary")), "{error}");
    assert!(started.elapsed() >= Duration::from_millis(250));
    let direct = connector(&format!("mongodb://127.0.0.1:{a}/?directConnection=true"));
    assert!(direct.connect().unwrap().hello.secondary);
}

/// Looks a service name up at a scripted name server.
fn look_up(
    text: &str,
    hosts: Vec<(&'static str, u16)>,
    texts: Vec<&'static str>,
) -> Result<(Target, Option<Credentials>), ConnectError> {
    let (target, credentials) = parse(text);
    with_known_hosts(target, credentials, Some(stub::name_server(hosts, texts)))
}

// In the domain `0.0.1`, the host `127.0.0.1` needs no name server.
const SERVICE: &str = "mongodb+srv://db.0.0.1/?tls=false";

#[test]
fn hosts_and_options_of_a_service_name_are_looked_up() {
    let primary = Arc::new(AtomicU16::new(0));
    let [a, _] = two_members(&primary);
    primary.store(a, Ordering::SeqCst);
    let found = |texts| {
        let (target, credentials) = look_up(SERVICE, vec![("127.0.0.1", a)], texts).unwrap();
        assert_eq!(target.hosts.len(), 1);
        Connector::new(&target, credentials).unwrap()
    };
    let kind = found(vec!["replicaSet=rs0"]).discover().unwrap().kind;
    assert_eq!(kind, TopologyKind::ReplicaSet { name: "rs0".into() });
    let error = found(vec!["replicaSet=other"]).discover().unwrap_err();
    assert!(matches!(error, ConnectError::ReplicaSetName { .. }), "{error:?}");
    found(vec![]).connect().unwrap();
}

#[test]
fn service_records_that_cannot_be_trusted_are_refused() {
    let refused = |hosts, texts| look_up(SERVICE, hosts, texts).unwrap_err();
    let error = refused(vec![("evil.example", 1)], vec![]);
    assert!(matches!(error, ConnectError::ForeignHost { .. }), "{error:?}");
    let error = refused(vec![("127.0.0.1", 1)], vec!["tls=false"]);
    assert!(matches!(error, ConnectError::ServiceOptions { .. }), "{error:?}");
    let error = refused(vec![("127.0.0.1", 1)], vec!["replicaSet=a", "replicaSet=b"]);
    assert!(matches!(error, ConnectError::ResolveService { .. }), "{error:?}");
    let error = refused(vec![], vec![]);
    assert!(matches!(error, ConnectError::ResolveService { .. }), "{error:?}");
    let (target, _) = look_up(SERVICE, vec![("127.0.0.1", 1)], vec!["loadBalanced=true"]).unwrap();
    let error = Connector::new(&target, None).unwrap_err();
    assert!(matches!(error, ConnectError::Unsupported { .. }), "{error:?}");
}

#[test]
fn the_embedded_server_is_found_and_answers() {
    let Some(server) = embedded::start(&["--standalone"]) else {
        return;
    };
    let connector = connector(&format!("mongodb://127.0.0.1:{}/", server.port));
    assert_eq!(connector.discover().unwrap().kind, TopologyKind::Standalone);
    insert(&connector, "user1", 100);
    let mut connected = connector.connect().unwrap();
    assert_eq!(connected.compressor, None);
    assert_eq!(count_found(&mut connected, "user1"), 1);
    assert_eq!(count_found(&mut connected, "user2"), 0);

    let mut control = connector.control().unwrap();
    let duplicate = doc! { "insert": "c", "documents": [{"_id": "user1"}] };
    assert_eq!(control.run("test", duplicate).unwrap_err().code(), Some(11000));
    let error = control.run("test", doc! { "noSuchCommand": 1 }).unwrap_err();
    assert!(matches!(&error, ControlError::Server { command, .. } if command == "noSuchCommand"));
    control.run("admin", doc! { "ping": 1 }).unwrap();
}

/// Compressors that a server agrees to, each verified by an insert and a find.
fn compressors(address: &str) -> Vec<&'static str> {
    insert(&connector(&format!("mongodb://{address}/")), "user1", 50_000);
    let agreed = ["snappy", "zlib", "zstd"].into_iter().filter(|name| {
        let offered = connector(&format!("mongodb://{address}/?compressors={name}"));
        let mut connected = offered.connect().unwrap();
        let compressor = connected.compressor.map(|compressor| compressor.name());
        assert!(compressor.is_none() || compressor == Some(*name), "{compressor:?}");
        assert_eq!(count_found(&mut connected, "user1"), 1);
        compressor.is_some()
    });
    agreed.collect()
}

/// The server's choice between two compressors.
fn preferred(address: &str) -> Option<Compressor> {
    let offered = connector(&format!("mongodb://{address}/?compressors=zlib,snappy"));
    offered.connect().unwrap().compressor
}

#[test]
fn compression_is_agreed_on_with_the_embedded_server() {
    let Some(server) = embedded::start(&["--standalone"]) else {
        return;
    };
    let address = format!("127.0.0.1:{}", server.port);
    compressors(&address);
    let known = [None, Some(Compressor::Snappy), Some(Compressor::Zlib { level: -1 })];
    let agreed = preferred(&address);
    assert!(known.contains(&agreed), "{agreed:?}");
}

#[test]
fn every_compressor_is_agreed_on_with_a_mongod() {
    let Some(server) = dyno_testkit::or_skip(dyno_testkit::mongod()) else {
        return;
    };
    let address = server.address().to_string();
    assert_eq!(compressors(&address), ["snappy", "zlib", "zstd"]);
    assert_eq!(preferred(&address), Some(Compressor::Zlib { level: -1 }));
}

#[test]
fn a_replica_set_is_checked_by_name() {
    let Some(server) = embedded::start(&[]) else {
        return;
    };
    let port = server.port;
    let found = connector(&format!("mongodb://127.0.0.1:{port}/")).discover().unwrap();
    let TopologyKind::ReplicaSet { name } = found.kind else { panic!("{found:?}") };
    let named = connector(&format!("mongodb://127.0.0.1:{port}/?replicaSet={name}"));
    named.connect().unwrap();
    let error = failure(&format!("mongodb://127.0.0.1:{port}/?replicaSet=other"));
    let ConnectError::ReplicaSetName { found, .. } = &error else { panic!("{error:?}") };
    assert_eq!(found.as_deref(), Some(name.as_str()));
    assert!(error.hint().unwrap().contains(&name));
}

#[test]
fn both_kinds_of_scram_are_spoken_with_a_mongod() {
    let server = dyno_testkit::mongod_with(|options| options.plan.auth = true);
    let Some(server) = dyno_testkit::or_skip(server) else {
        return;
    };
    let address = server.address();
    let add = |connector: &Connector, user: &str, mechanism: &str| {
        let command = doc! {
            "createUser": user, "pwd": "geheim", "roles": ["root"], "mechanisms": [mechanism],
        };
        connector.control().unwrap().run("admin", command).unwrap();
    };
    let of = |user: &str, option: &str| {
        connector(&format!("mongodb://{user}:geheim@{address}/?{option}"))
    };
    let anonymous = connector(&format!("mongodb://{address}/"));
    add(&anonymous, "old", "SCRAM-SHA-1");
    add(&of("old", ""), "new", "SCRAM-SHA-256");
    for (user, mechanism, other) in
        [("old", "SCRAM-SHA-1", "SCRAM-SHA-256"), ("new", "SCRAM-SHA-256", "SCRAM-SHA-1")]
    {
        // Given, or negotiated with the server.
        for option in [&format!("authMechanism={mechanism}"), ""] {
            insert(&of(user, option), &format!("{user} {option}"), 10);
        }
        let wrong = format!("mongodb://{user}:geheim@{address}/?authMechanism={other}");
        let error = failure(&wrong);
        assert!(matches!(error, ConnectError::Credentials { .. }), "{error:?}");
    }
}

#[test]
fn users_authenticate_and_others_are_refused() {
    let Some(server) = embedded::start(&["--standalone", "--auth"]) else {
        return;
    };
    let port = server.port;
    let anonymous = connector(&format!("mongodb://127.0.0.1:{port}/"));
    // Without users, the localhost exception allows creating one.
    let user = doc! { "createUser": "me", "pwd": "pass:word/ß", "roles": ["root"] };
    anonymous.control().unwrap().run("admin", user).unwrap();

    let known = connector(&format!("mongodb://me:pass%3Aword%2F%C3%9F@127.0.0.1:{port}/"));
    for _ in 0..3 {
        known.connect().unwrap();
    }
    insert(&known, "user1", 10);
    assert_eq!(known.password_derivations(), 1);

    let error = anonymous.control().unwrap().run("test", doc! { "find": "c" }).unwrap_err();
    assert_eq!(error.code(), Some(13));
    for (user, source) in [("me:wrong", "admin"), ("you:secret", "admin"), ("me:wrong", "other")] {
        let error = failure(&format!("mongodb://{user}@127.0.0.1:{port}/?authSource={source}"));
        let ConnectError::Credentials { username, source_database, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(Some(username.as_str()), user.split(':').next());
        assert_eq!(source_database, source);
        let texts = format!("{error} {error:?} {:?}", error.hint());
        assert!(!texts.contains("wrong") && !texts.contains("secret"), "{texts}");
    }
}

/// A certificate authority and certificates signed by it, as PEM files.
struct Certificates {
    folder: tempfile::TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(params, key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
        Certificates { folder, authority }
    }

    /// Writes `<name>.crt`, `<name>.key`, and both in `<name>.pem`.
    fn issue(&self, name: &str, host: &str) {
        self.issue_of(name, CertificateParams::new(vec![host.to_owned()]).unwrap());
    }

    fn issue_of(&self, name: &str, params: CertificateParams) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        let (certificate, key) = (certificate.pem(), key.serialize_pem());
        let write = |ending, text: &str| {
            std::fs::write(self.path(&format!("{name}.{ending}")), text).unwrap();
        };
        write("crt", &certificate);
        write("key", &key);
        write("pem", &format!("{certificate}{key}"));
    }

    fn path(&self, file: &str) -> String {
        let path: &Path = self.folder.path();
        path.join(file).to_str().unwrap().to_owned()
    }

    fn start(&self, name: &str, more: &[&str]) -> Option<embedded::Embedded> {
        let (certificate, key) =
            (self.path(&format!("{name}.crt")), self.path(&format!("{name}.key")));
        let arguments = ["--standalone", "--tls-cert-file", &certificate, "--tls-key-file", &key];
        embedded::start(&[&arguments, more].concat())
    }
}

#[test]
fn encrypted_connections_work_without_blocking() {
    let certificates = Certificates::new();
    certificates.issue("server", "localhost");
    let Some(server) = certificates.start("server", &[]) else {
        return;
    };
    let authority = certificates.path("ca.pem");
    let connector =
        connector(&format!("mongodb://localhost:{}/?tlsCAFile={authority}", server.port));
    insert(&connector, "large", 2_000_000);
    let mut connected = connector.connect().unwrap();
    assert!(connected.transport.is_tls());
    for _ in 0..3 {
        assert_eq!(count_found(&mut connected, "large"), 1);
        assert_eq!(count_found(&mut connected, "small"), 0);
    }
    assert!(!connected.transport.wants_write());
}

#[test]
fn certificates_are_verified_by_default() {
    let certificates = Certificates::new();
    certificates.issue("server", "other.example");
    let Some(server) = certificates.start("server", &[]) else {
        return;
    };
    let uri = |options: String| format!("mongodb://localhost:{}/?{options}", server.port);
    let authority = certificates.path("ca.pem");
    let error = failure(&uri(format!("tlsCAFile={authority}")));
    assert!(error.hint().unwrap().contains("tlsAllowInvalidHostnames"), "{error:?}");
    for options in [
        format!("tlsCAFile={authority}&tlsAllowInvalidHostnames=true"),
        "tlsInsecure=true".to_owned(),
        "tlsAllowInvalidCertificates=true".to_owned(),
    ] {
        connector(&uri(options)).connect().unwrap();
    }
    let stranger = Certificates::new().folder.keep().join("ca.pem");
    for more in ["", "&tlsAllowInvalidHostnames=true"] {
        let error = failure(&uri(format!("tlsCAFile={}{more}", stranger.display())));
        assert!(error.hint().unwrap().contains("tlsCAFile"), "{error:?}");
    }
    std::fs::remove_dir_all(stranger.parent().unwrap()).unwrap();
    let error = failure(&uri("tls=false".to_owned()));
    assert!(error.hint().unwrap().contains("tls=true"), "{error:?}");
}

#[test]
fn an_expired_certificate_is_reported() {
    let certificates = Certificates::new();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    certificates.issue_of("server", params);
    let Some(server) = certificates.start("server", &[]) else {
        return;
    };
    let authority = certificates.path("ca.pem");
    let uri = format!("mongodb://localhost:{}/?tlsCAFile={authority}", server.port);
    let error = failure(&uri);
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("certificate expired"), "{cause}");
    let hint = error.hint().unwrap();
    assert!(
        hint.contains("replace") && hint.contains("`tlsAllowInvalidCertificates=true`"),
        "{hint}"
    );
}

#[test]
fn a_client_certificate_is_sent_when_there_is_one() {
    let certificates = Certificates::new();
    certificates.issue("server", "localhost");
    certificates.issue("client", "client.example");
    let authority = certificates.path("ca.pem");
    let demand = ["--tls-ca-file", &authority, "--tls-require-client-cert"];
    let Some(server) = certificates.start("server", &demand) else {
        return;
    };
    let uri = format!("mongodb://localhost:{}/?tlsCAFile={authority}", server.port);
    let identity = certificates.path("client.pem");
    connector(&format!("{uri}&tlsCertificateKeyFile={identity}")).connect().unwrap();
    let error = failure(&uri);
    let refused = matches!(error, ConnectError::Tls { .. } | ConnectError::Closed { .. });
    assert!(refused, "{error:?}");
}
