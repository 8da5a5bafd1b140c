//! Overhead of the driver on the project's own wire code over the minimum for a message: `make bench-tail`.
//!
//! The minimum is an insert on one connection and a getMore on another, written by hand on plain sockets: one message after the
//! other, from just before the insert is sent until the reply with the message has been read. The driver does the same, as run by
//! `dyno tail`. Both are measured in turns on the same embedded server, and the medians of all rounds are compared. Exits with code
//! 1 if the driver takes more than 1.3 times as long.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench panics on errors, and prints its result"
)]

use bson::{Document, doc, spec::BinarySubtype};
use dyno_engine::Cancel;
use dyno_record::tail::{InFlight, Settings, TailMode};
use dyno_tail::driver::{Found, find};
use dyno_tail::run::{Bench, run};
use dyno_testkit::{embedded, or_skip, project_dir};
use nix::time::{ClockId, clock_gettime};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::ExitCode;

const MESSAGES: u64 = 20_000;
const ROUNDS: usize = 5;
const SIZE: usize = 100;
const MOST_RATIO: f64 = 1.3;
const DATABASE: &str = "floor";
const COLLECTION: &str = "messages";
/// Small, because inserts into the embedded server get slower with each document.
const CAPPED: i64 = 128 << 10;
const OP_MSG: i32 = 2013;

fn main() -> ExitCode {
    let (Some(server), true) = (or_skip(embedded()), has_driver()) else {
        println!("skipped: the embedded server or the driver `wire` is missing (`make drivers`)");
        return ExitCode::SUCCESS;
    };
    let found =
        find(Some(&project_dir().join("drivers")), None, |name| name == "wire", &Cancel::new())
            .unwrap();
    let build = found.drivers["wire"].version.build.clone();
    println!(
        "{MESSAGES} messages, one in flight, {ROUNDS} rounds in turns; driver built as {}",
        build.unwrap_or_default()
    );
    let (mut bare, mut wire) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (least, driver) =
            (by_hand(&server.address().to_string()), by_driver(&server.uri(), &found));
        println!(
            "round {round}: by hand {:.1} us, driver {:.1} us, {:.3} times",
            least / 1e3,
            driver / 1e3,
            driver / least
        );
        bare.push(least);
        wire.push(driver);
    }
    let ratio = median(&mut wire) / median(&mut bare);
    println!("median delivery: driver over by hand {ratio:.3} (at most {MOST_RATIO})");
    if ratio <= MOST_RATIO { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn has_driver() -> bool {
    find(Some(&project_dir().join("drivers")), None, |name| name == "wire", &Cancel::new())
        .is_ok_and(|found| found.drivers.contains_key("wire"))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    now.tv_sec() * 1_000_000_000 + now.tv_nsec()
}

/// One connection with one command at a time.
struct Wire {
    socket: TcpStream,
    buffer: Vec<u8>,
    request: i32,
}

impl Wire {
    fn connect(address: &str) -> Wire {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_nodelay(true).unwrap();
        Wire { socket, buffer: Vec::new(), request: 0 }
    }

    fn run(&mut self, command: &Document) -> Document {
        self.request += 1;
        let body = command.to_vec().unwrap();
        self.buffer.clear();
        for word in [16 + 5 + body.len() as i32, self.request, 0, OP_MSG, 0] {
            self.buffer.extend(word.to_le_bytes());
        }
        self.buffer.push(0);
        self.buffer.extend(body);
        self.socket.write_all(&self.buffer).unwrap();
        let mut length = [0; 4];
        self.socket.read_exact(&mut length).unwrap();
        let length = i32::from_le_bytes(length) as usize;
        self.buffer.resize(length - 4, 0);
        self.socket.read_exact(&mut self.buffer).unwrap();
        // Header, flags and the kind of the only section.
        let reply = Document::from_reader(&self.buffer[17..]).unwrap();
        let is_good = reply.get_f64("ok").is_ok_and(|ok| ok == 1.0)
            || reply.get_i32("ok").is_ok_and(|ok| ok == 1);
        assert!(is_good && !reply.contains_key("writeErrors"), "{reply}");
        reply
    }
}

/// Median time from just before the insert until the message is received, in nanoseconds.
fn by_hand(address: &str) -> f64 {
    let mut producer = Wire::connect(address);
    producer.run(&doc! { "create": COLLECTION, "capped": true, "size": CAPPED, "$db": DATABASE });
    let pad = bson::Binary { subtype: BinarySubtype::Generic, bytes: vec![7; SIZE] };
    let message = |n: i64| {
        let now = now_ns();
        doc! { "_id": n, "p": 0, "n": n, "i": now, "s": now, "pad": pad.clone() }
    };
    let insert = |message: Document| doc! { "insert": COLLECTION, "documents": [message], "ordered": true, "$db": DATABASE };
    // A tailable cursor on an empty collection dies.
    producer.run(&insert(message(-1)));
    let mut consumer = Wire::connect(address);
    let find = doc! { "find": COLLECTION, "tailable": true, "awaitData": true, "$db": DATABASE };
    let opened = consumer.run(&find);
    let cursor = opened.get_document("cursor").unwrap().get_i64("id").unwrap();
    let consuming = std::thread::spawn(move || {
        let more = doc! { "getMore": cursor, "collection": COLLECTION, "maxTimeMS": 1000, "$db": DATABASE };
        let mut times = Vec::new();
        while (times.len() as u64) < MESSAGES {
            let reply = consumer.run(&more);
            let now = now_ns();
            let batch = reply.get_document("cursor").unwrap();
            for message in batch.get_array("nextBatch").unwrap() {
                let sent = message.as_document().unwrap().get_i64("s").unwrap();
                times.push((now - sent) as f64);
            }
        }
        times
    });
    for n in 0..MESSAGES as i64 {
        producer.run(&insert(message(n)));
    }
    let mut times = consuming.join().unwrap();
    producer.run(&doc! { "drop": COLLECTION, "$db": DATABASE });
    median(&mut times)
}

fn by_driver(uri: &str, found: &Found) -> f64 {
    let settings = Settings {
        database: DATABASE.to_owned(),
        collection: COLLECTION.to_owned(),
        producers: vec!["wire".to_owned()],
        consumers: vec!["wire".to_owned()],
        messages: MESSAGES,
        in_flight: InFlight::Bounded(1),
        pool: 10,
        size_bytes: SIZE as u64,
        capped_bytes: CAPPED as u64,
        write_concern: "1".to_owned(),
        journal: false,
        mode: TailMode::Tailable,
        schedule: None,
        idle_s: 10,
        delay_us: 0,
        limit_s: 300,
        points: 10,
        producer_host: None,
        consumer_host: None,
    };
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench {
        uri,
        found,
        server: &[],
        meter: None,
        machines: None,
        interrupted: &|| false,
        host_drivers: Path::new("."),
        polls_heartbeats: true,
    };
    let measured = run(&bench, &settings, folder.path()).unwrap();
    let consumer = &measured.consumers[0];
    assert_eq!((consumer.sum.lost, consumer.sum.duplicated), (0, 0));
    consumer.deliveries[0].delivery.p50_us * 1e3
}
