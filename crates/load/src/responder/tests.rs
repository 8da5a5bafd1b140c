//! The responder from a client's perspective, over plain blocking sockets.

mod parameters;

use super::*;
use bson::{Document, doc};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than anything a test waits for; only a fault gets that far.
const PATIENCE: Duration = Duration::from_secs(20);
const HEADER: usize = 16;

struct Client {
    stream: TcpStream,
    request_id: i32,
}

/// Header fields and document of a reply.
struct Reply {
    response_to: i32,
    opcode: i32,
    document: Document,
}

fn connect(responder: &Responder) -> Client {
    let stream = TcpStream::connect(responder.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    Client { stream, request_id: 0 }
}

fn message(request_id: i32, flags: u32, command: &Document) -> Vec<u8> {
    let body = command.to_vec().unwrap();
    let mut out = Vec::new();
    for number in [(HEADER + 5 + body.len()) as i32, request_id, 0, 2013, flags as i32] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.push(0);
    out.extend_from_slice(&body);
    out
}

impl Client {
    fn send(&mut self, command: &Document) {
        self.request_id += 1;
        self.stream.write_all(&message(self.request_id, 0, command)).unwrap();
    }

    fn receive(&mut self) -> io::Result<Reply> {
        let mut header = [0; HEADER];
        self.stream.read_exact(&mut header)?;
        let number = |at: usize| i32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        let length =
            usize::try_from(number(0)).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        let mut body = vec![0; length - HEADER];
        self.stream.read_exact(&mut body)?;
        let start = if number(12) == 1 { 20 } else { 5 };
        Ok(Reply {
            response_to: number(8),
            opcode: number(12),
            document: Document::from_reader(&body[start..]).unwrap(),
        })
    }

    /// Sends a command and returns the document of its reply.
    fn call(&mut self, command: &Document) -> Document {
        self.send(command);
        let reply = self.receive().unwrap();
        assert_eq!(reply.response_to, self.request_id);
        reply.document
    }

    fn documents(&mut self) -> i32 {
        self.call(&doc! {"count": "usertable", "$db": "ycsb"}).get_i32("n").unwrap()
    }
}

fn find() -> Document {
    doc! {"find": "usertable", "filter": {"_id": "user1"}, "limit": 1, "singleBatch": true, "$db": "ycsb"}
}

fn insert() -> Document {
    doc! {"insert": "usertable", "documents": [{"_id": "a"}, {"_id": "b"}], "$db": "ycsb"}
}

fn batch(document: &Document, name: &str) -> usize {
    document.get_document("cursor").unwrap().get_array(name).unwrap().len()
}

#[test]
fn a_handshake_finds_a_writable_server() {
    let responder = Responder::start(Behaviour::default()).unwrap();
    let mut client = connect(&responder);
    let hello = client.call(&doc! {"hello": 1, "$db": "admin"});
    assert!(hello.get_bool("isWritablePrimary").unwrap());
    assert!(hello.get_i32("maxWireVersion").unwrap() >= 13);
    let info = client.call(&doc! {"buildInfo": 1, "$db": "admin"});
    assert_eq!(info.get_str("gitVersion").unwrap(), "dyno-responder");
    assert_eq!(client.call(&doc! {"ping": 1, "$db": "admin"}), doc! {"ok": 1.0});
}

#[test]
fn a_responder_reports_the_configured_version() {
    let given = |version: &str| Behaviour { version: version.to_owned(), ..Behaviour::default() };
    for (version, wire) in [("7.0.0", 21), ("8.0.17", 25), ("8.2.1", 27), ("9.0.4", 29)] {
        let responder = Responder::start(given(version)).unwrap();
        let mut client = connect(&responder);
        let hello = client.call(&doc! {"hello": 1, "$db": "admin"});
        assert_eq!(hello.get_i32("maxWireVersion").unwrap(), wire, "{version}");
        let info = client.call(&doc! {"buildInfo": 1, "$db": "admin"});
        assert_eq!(info.get_str("version").unwrap(), version);
    }
    assert!(given("new").check().is_err());
}

#[test]
fn the_handshake_of_old_drivers_is_answered_in_kind() {
    let responder = Responder::start(Behaviour::default()).unwrap();
    let mut client = connect(&responder);
    let body = doc! {"isMaster": 1}.to_vec().unwrap();
    let mut query = Vec::new();
    let collection = b"admin.$cmd\0";
    for number in [(HEADER + 12 + collection.len() + body.len()) as i32, 9, 0, 2004, 0] {
        query.extend_from_slice(&number.to_le_bytes());
    }
    query.extend_from_slice(collection);
    query.extend_from_slice(&[0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]);
    query.extend_from_slice(&body);
    client.stream.write_all(&query).unwrap();
    let reply = client.receive().unwrap();
    assert_eq!((reply.response_to, reply.opcode), (9, 1));
    assert!(reply.document.get_bool("ismaster").unwrap());
}

#[test]
fn finds_return_the_canned_document_and_scans_many() {
    let empty = Responder::start(Behaviour::default()).unwrap();
    let mut client_of_empty = connect(&empty);
    let any = doc! {"find": "usertable", "$db": "ycsb"};
    assert_eq!(batch(&client_of_empty.call(&any), "firstBatch"), 0);
    let responder =
        Responder::start(Behaviour { documents: 1000, ..Behaviour::default() }).unwrap();
    let mut client = connect(&responder);
    assert_eq!(batch(&client.call(&find()), "firstBatch"), 1);
    let first = client.call(&doc! {"find": "usertable", "limit": 150, "$db": "ycsb"});
    assert_eq!(batch(&first, "firstBatch"), 101);
    let id = first.get_document("cursor").unwrap().get_i64("id").unwrap();
    let rest = client.call(&doc! {"getMore": id, "collection": "usertable", "$db": "ycsb"});
    assert_eq!(batch(&rest, "nextBatch"), 49);
    assert_eq!(rest.get_document("cursor").unwrap().get_i64("id").unwrap(), 0);
}

#[test]
fn inserts_and_deletes_change_the_count() {
    let behaviour = Behaviour { documents: 10, ..Behaviour::default() };
    let responder = Responder::start(behaviour).unwrap();
    let mut client = connect(&responder);
    assert_eq!(client.documents(), 10);
    assert_eq!(client.call(&insert()).get_i32("n").unwrap(), 2);
    assert_eq!(client.documents(), 12);
    client.call(&doc! {"delete": "usertable", "deletes": [{"q": {}, "limit": 1}], "$db": "ycsb"});
    assert_eq!(client.documents(), 11);
    let counters = responder.stop().unwrap();
    assert_eq!((counters.inserted, counters.documents, counters.data_commands), (2, 11, 2));
}

#[test]
fn a_command_that_arrives_byte_by_byte_is_answered_once() {
    let responder = Responder::start(Behaviour::default()).unwrap();
    let mut client = connect(&responder);
    for byte in message(5, 0, &find()) {
        client.stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(client.receive().unwrap().response_to, 5);
    assert_eq!(client.documents(), 0);
    assert_eq!(responder.counters().commands, 2);
}

#[test]
fn pipelined_commands_are_answered_in_order_across_buffer_ends() {
    let responder = Responder::start(Behaviour::default()).unwrap();
    let mut client = connect(&responder);
    let n = 3000;
    let bytes: Vec<u8> = (1..=n).flat_map(|id| message(id, 0, &find())).collect();
    let mut writer = client.stream.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || writer.write_all(&bytes).unwrap());
        for id in 1..=n {
            assert_eq!(client.receive().unwrap().response_to, id);
        }
    });
    assert_eq!(responder.counters().replies, n as u64);
}

#[test]
fn a_client_that_reads_late_gets_every_reply() {
    // 30 MB of replies do not fit into the sockets' buffers.
    let behaviour = Behaviour { document_bytes: 100_000, ..Behaviour::default() };
    let responder = Responder::start(behaviour).unwrap();
    let mut client = connect(&responder);
    for _ in 0..300 {
        client.send(&find());
    }
    let mut other = connect(&responder);
    assert_eq!(other.documents(), 0, "other clients are still served");
    for id in 1..=300 {
        assert_eq!(client.receive().unwrap().response_to, id);
    }
}

#[test]
fn many_connections_are_served_and_their_ends_noticed() {
    let responder = Responder::start(Behaviour::default()).unwrap();
    let mut clients: Vec<_> = (0..200).map(|_| connect(&responder)).collect();
    for client in &mut clients {
        client.send(&find());
    }
    for client in &mut clients {
        client.receive().unwrap();
    }
    let counters = responder.counters();
    assert_eq!(
        (counters.connections, counters.open_connections, counters.replies),
        (200, 200, 200)
    );
    clients.truncate(50);
    wait_until(|| responder.counters().open_connections == 50);
    // Freed places are taken again, and the old connections are not disturbed.
    clients.extend((0..100).map(|_| connect(&responder)));
    for client in &mut clients {
        assert_eq!(batch(&client.call(&find()), "firstBatch"), 1);
    }
}

/// Waits for a condition, and panics if it does not become true.
fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "the condition did not come");
        std::thread::yield_now();
    }
}

#[test]
fn a_command_with_its_end_in_one_packet_is_still_answered() {
    let responder = Responder::start(Behaviour::default()).unwrap();
    let mut client = connect(&responder);
    client.send(&find());
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.receive().unwrap().response_to, 1);
    assert_eq!(client.stream.read(&mut [0]).unwrap(), 0, "and the connection closed");
}

#[test]
fn unacknowledged_writes_get_no_reply_but_count() {
    let responder = Responder::start(Behaviour::default()).unwrap();
    let mut client = connect(&responder);
    client.stream.write_all(&message(100, 1 << 1, &insert())).unwrap();
    assert_eq!(client.documents(), 2);
    let counters = responder.counters();
    assert_eq!((counters.unacknowledged, counters.replies), (1, 1));
}

#[test]
fn invalid_commands_close_only_their_connection() {
    let responder = Responder::start(Behaviour::default()).unwrap();
    let mut good = connect(&responder);
    let mut bad = connect(&responder);
    bad.stream.write_all(&[0xEE; 64]).unwrap();
    assert!(bad.receive().is_err());
    assert_eq!(good.documents(), 0);
    assert_eq!(responder.counters().malformed, 1);
}

#[test]
fn unknown_commands_are_refused_as_servers_do_it() {
    let responder = Responder::start(Behaviour::default()).unwrap();
    let reply = connect(&responder).call(&doc! {"frobnicate": 1, "$db": "admin"});
    assert_eq!(reply.get_str("codeName").unwrap(), "CommandNotFound");
    assert_eq!(reply.get_f64("ok").unwrap(), 0.0);
}

/// A responder with `kind` for every third data command.
fn faulty(kind: Fault) -> Responder {
    let behaviour =
        Behaviour { faults: vec![FaultRule { every: 3, kind }], ..Behaviour::default() };
    Responder::start(behaviour).unwrap()
}

#[test]
fn every_third_command_gets_the_error_and_no_effect() {
    let responder = faulty(Fault::ErrorCode(112));
    let mut client = connect(&responder);
    let codes: Vec<Option<i32>> =
        (0..7).map(|_| client.call(&insert()).get_i32("code").ok()).collect();
    assert_eq!(codes, [None, None, Some(112), None, None, Some(112), None]);
    // Other commands than data commands are neither counted nor affected.
    assert_eq!(client.documents(), 10);
    assert_eq!(responder.counters().faults, 2);
}

#[test]
fn a_write_error_is_inside_an_ok_reply() {
    let responder = faulty(Fault::WriteError(11_000));
    let mut client = connect(&responder);
    client.call(&find());
    client.call(&find());
    let reply = client.call(&insert());
    assert_eq!((reply.get_f64("ok").unwrap(), reply.get_i32("n").unwrap()), (1.0, 0));
    let errors = reply.get_array("writeErrors").unwrap();
    assert_eq!(errors[0].as_document().unwrap().get_i32("code").unwrap(), 11_000);
    assert_eq!(responder.counters().faults, 1);
}

#[test]
fn not_found_gives_an_empty_batch_and_writes_nothing() {
    let responder = faulty(Fault::NotFound);
    let mut client = connect(&responder);
    let sizes: Vec<usize> = (0..3).map(|_| batch(&client.call(&find()), "firstBatch")).collect();
    assert_eq!(sizes, [1, 1, 0]);
    client.call(&find());
    client.call(&find());
    let update = doc! {"update": "usertable", "updates": [{"q": {}, "u": {}}], "$db": "ycsb"};
    let missed = client.call(&update);
    assert_eq!((missed.get_i32("n").unwrap(), missed.get_i32("nModified").unwrap()), (0, 0));
    assert_eq!(client.call(&update).get_i32("nModified").unwrap(), 1);
    assert_eq!(responder.counters().faults, 2);
}

#[test]
fn a_dropped_command_ends_its_connection() {
    let responder = faulty(Fault::Drop);
    let mut client = connect(&responder);
    client.call(&find());
    client.call(&find());
    client.send(&find());
    assert!(client.receive().is_err());
    connect(&responder).call(&find());
    let counters = responder.counters();
    assert_eq!((counters.faults, counters.replies, counters.connections), (1, 3, 2));
}

#[test]
fn a_hung_command_is_never_answered_but_later_ones_are() {
    let responder = faulty(Fault::Hang);
    let mut client = connect(&responder);
    for _ in 0..4 {
        client.send(&find());
    }
    let answered: Vec<i32> = (0..3).map(|_| client.receive().unwrap().response_to).collect();
    assert_eq!(answered, [1, 2, 4]);
    assert_eq!(responder.counters().faults, 1);
}

#[test]
fn garbage_is_no_message() {
    let responder = faulty(Fault::Garbage);
    let mut client = connect(&responder);
    client.call(&find());
    client.call(&find());
    client.send(&find());
    let error = client.receive().err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    let counters = responder.counters();
    assert_eq!((counters.faults, counters.open_connections), (1, 1));
}

#[test]
fn a_truncated_reply_is_half_of_it_and_then_the_end() {
    let responder = faulty(Fault::Truncate);
    let mut client = connect(&responder);
    client.call(&find());
    client.call(&find());
    client.send(&find());
    let mut half = Vec::new();
    client.stream.read_to_end(&mut half).unwrap();
    let length = i32::from_le_bytes(half[..4].try_into().unwrap()) as usize;
    assert_eq!(half.len(), length / 2);
    assert_eq!(responder.counters().faults, 1);
}

#[test]
fn a_reply_can_name_the_wrong_request() {
    let responder = faulty(Fault::WrongResponseTo);
    let mut client = connect(&responder);
    client.call(&find());
    client.call(&find());
    client.send(&find());
    assert_eq!(client.receive().unwrap().response_to, !3);
    assert_eq!(responder.counters().faults, 1);
}

#[test]
fn faults_count_over_all_connections_and_the_first_rule_wins() {
    let behaviour = Behaviour {
        faults: vec![
            FaultRule { every: 10, kind: Fault::ErrorCode(1) },
            FaultRule { every: 5, kind: Fault::NotFound },
        ],
        ..Behaviour::default()
    };
    let responder = Responder::start(behaviour).unwrap();
    let mut clients: Vec<_> = (0..4).map(|_| connect(&responder)).collect();
    let (mut errors, mut empty) = (0, 0);
    for turn in 0..1000 {
        let reply = clients[turn % 4].call(&find());
        match reply.get_i32("code") {
            Ok(code) => errors += code,
            Err(_) => empty += usize::from(batch(&reply, "firstBatch") == 0),
        }
    }
    let counters = responder.stop().unwrap();
    assert_eq!((errors, empty, counters.faults), (100, 100, 200));
    assert_eq!((counters.data_commands, counters.replies), (1000, 1000));
}

#[test]
fn nothing_is_answered_during_a_stall_and_everything_at_its_end() {
    let (first, length) = (Duration::from_millis(200), Duration::from_millis(1500));
    let behaviour = Behaviour {
        stall: Some(Stall { every: Duration::from_secs(1000), length, first }),
        ..Behaviour::default()
    };
    let responder = Responder::start(behaviour).unwrap();
    let mut clients: Vec<_> = (0..3).map(|_| connect(&responder)).collect();
    let ping = doc! {"ping": 1, "$db": "admin"};
    let begin = responder.started() + first;
    assert_eq!(clients[0].call(&ping), doc! {"ok": 1.0}, "before the stall");
    wait_until(|| Instant::now() >= begin);
    for command in [&ping, &find()] {
        clients.iter_mut().for_each(|client| client.send(command));
    }
    assert!(Instant::now() < begin + length, "the machine is too slow for this test");
    for client in &mut clients {
        client.receive().unwrap();
        assert!(Instant::now() >= begin + length, "answered in the middle of the stall");
        client.receive().unwrap();
    }
    assert_eq!(clients[0].call(&ping), doc! {"ok": 1.0}, "after the stall");
}

#[test]
fn the_single_queue_makes_connections_wait_for_each_other() {
    let time = ServiceTime::Fixed(Duration::from_millis(20));
    let behaviour = Behaviour { service: Service::SingleQueue { time }, ..Behaviour::default() };
    let responder = Responder::start(behaviour).unwrap();
    let mut clients: Vec<_> = (0..5).map(|_| connect(&responder)).collect();
    let begin = Instant::now();
    for client in &mut clients {
        client.send(&find());
    }
    // Set-up commands do not queue.
    let mut other = connect(&responder);
    other.documents();
    for client in &mut clients {
        client.receive().unwrap();
    }
    assert!(begin.elapsed() >= Duration::from_millis(100));
}

#[test]
fn parallel_service_delays_each_command_by_itself() {
    let time = ServiceTime::Fixed(Duration::from_millis(200));
    let behaviour = Behaviour { service: Service::Parallel { time }, ..Behaviour::default() };
    let responder = Responder::start(behaviour).unwrap();
    let mut clients: Vec<_> = (0..50).map(|_| connect(&responder)).collect();
    let begin = Instant::now();
    for client in &mut clients {
        client.send(&find());
    }
    for client in &mut clients {
        client.receive().unwrap();
    }
    assert!(begin.elapsed() >= Duration::from_millis(200));
    // One after the other would take 10 s.
    assert!(begin.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_delayed_reply_to_a_closed_connection_reaches_nobody_else() {
    let time = ServiceTime::Fixed(Duration::from_millis(50));
    let behaviour = Behaviour { service: Service::Parallel { time }, ..Behaviour::default() };
    let responder = Responder::start(behaviour).unwrap();
    let mut gone = connect(&responder);
    gone.request_id = 1000;
    gone.send(&find());
    wait_until(|| responder.counters().data_commands == 1);
    drop(gone);
    wait_until(|| responder.counters().open_connections == 0);
    let mut client = connect(&responder);
    // Answered after the other's reply was due.
    assert_eq!(batch(&client.call(&find()), "firstBatch"), 1);
    assert_eq!(responder.counters().replies, 1);
}

#[test]
fn serving_on_the_own_thread_ends_with_its_flag() {
    let listener = TcpListener::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = listener.local_addr().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(listener, Behaviour::default(), &stop));
        let stream = TcpStream::connect(address).unwrap();
        let mut client = Client { stream, request_id: 0 };
        client.call(&find());
        stop.store(true, Ordering::Release);
        assert_eq!(server.join().unwrap().unwrap().replies, 1);
    });
}

#[test]
fn impossible_behaviour_is_refused_at_the_start() {
    let behaviour = Behaviour {
        faults: vec![FaultRule { every: 0, kind: Fault::Hang }],
        ..Behaviour::default()
    };
    let error = Responder::start(behaviour).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}
