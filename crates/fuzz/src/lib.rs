//! Fuzz targets for every part of `dyno` that reads foreign bytes: from a server, an agent, an exporter, or a file.
//!
//! Each target accepts any bytes. It may reject them, but must not panic, hang, or use more memory than they announce; accepted
//! input must have the asserted properties. scripts/fuzz.sh runs a target under libFuzzer, guided by coverage; the tests run the
//! inputs in `corpus/` and mutations of them.

mod directory;

use dyno_fleet::protocol::{Announcement, Down, Registration, Up};
use dyno_fleet::window::WindowDecoder;
use dyno_observe::watch::{DataPlace, ExporterReader};
use dyno_plan::model::OperationWeights;
use dyno_plan::operation::Operations;
use dyno_plan::ycsb::Properties;
use dyno_plan::{axis, file, uri};
use dyno_record::histogram::HistogramReader;
use dyno_record::interval::IntervalRecord;
use dyno_wire::bson::Document;
use dyno_wire::compress::Scratch;
use dyno_wire::frame::{self, HEADER_BYTES, Opcode};
use dyno_wire::handshake::{Hello, SaslReply};
use dyno_wire::reply;
use dyno_wire::scram::{Client, Mechanism, SaltedPasswords};

/// A function that processes bytes.
pub type Target = fn(&[u8]);

/// The targets, by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("wire-reply", wire_reply),
    ("bson", bson),
    ("scram", scram),
    ("run-directory", directory::of_any_file),
    ("hlog", hlog),
    ("fleet-message", fleet_message),
    ("exporter-text", exporter_text),
    ("plan-file", plan_file),
];

/// Depth to which nested documents are read; the reader itself does not recurse.
const DEEPEST: usize = 50;

fn wire_reply(data: &[u8]) {
    read_reply(data);
}

/// A server message from its header on, possibly compressed. Returns whether it is a complete and valid reply.
pub fn read_reply(data: &[u8]) -> bool {
    let _ = frame::needed(data);
    let Ok(Some(frame)) = frame::parse(data) else {
        return false;
    };
    assert!(frame.length <= data.len() && frame.length >= HEADER_BYTES);
    match frame.opcode {
        Opcode::Compressed => {
            Scratch::default().decompress(frame.body).is_ok_and(|(_, body)| read_reply_body(body))
        }
        _ => read_reply_body(frame.body),
    }
}

fn read_reply_body(body: &[u8]) -> bool {
    let Ok(message) = frame::message(body) else {
        return false;
    };
    for sequence in message.sequences() {
        let _ = Document::split(sequence.documents);
    }
    if let Ok(document) = Document::new(message.document) {
        walk(document, 0);
        let _ = Hello::read(document);
        let _ = SaslReply::read(document);
    }
    let Ok(reply) = reply::read(body) else {
        return false;
    };
    if let Some(cursor) = reply.cursor {
        // The number counted while reading must match the documents.
        assert_eq!(cursor.documents().count(), cursor.count as usize);
        cursor.documents().for_each(|document| walk(document, 0));
    }
    true
}

/// A single document.
pub fn bson(data: &[u8]) {
    if let Ok((document, rest)) = Document::split(data) {
        assert_eq!(document.as_bytes().len() + rest.len(), data.len());
        walk(document, 0);
        let _ = Hello::read(document);
        let _ = SaslReply::read(document);
        let _ = reply::read_document(document.as_bytes());
    }
}

fn walk(document: Document<'_>, depth: usize) {
    for element in document.elements() {
        let Ok(element) = element else { return };
        let _ = element.value();
        let _ = element.number();
        if let (Ok(Some(inner)), true) = (element.document(), depth < DEEPEST) {
            walk(inner, depth + 1);
        }
    }
}

/// The server's two messages of a SCRAM authentication, one per line.
fn scram(data: &[u8]) {
    let mut lines = data.splitn(2, |byte| *byte == b'\n');
    let (first, last) = (lines.next().unwrap_or_default(), lines.next());
    // Skip large iteration counts: hashing would take all of the fuzzer's time.
    let text = String::from_utf8_lossy(first);
    let rounds = text.split(',').find_map(|part| part.strip_prefix("i="));
    if rounds.is_some_and(|digits| digits.len() > 4) {
        return;
    }
    let cache = SaltedPasswords::new();
    for mechanism in [Mechanism::ScramSha1, Mechanism::ScramSha256] {
        let Ok(mut client) = Client::new(mechanism, "user", "password", "nonce") else {
            return;
        };
        let _ = client.server_first(first, &cache);
        // Without the password, the signature cannot be known.
        let is_proven = client.server_final(last.unwrap_or_default()).is_ok();
        assert!(!is_proven, "a guess was accepted as the server's signature");
    }
}

/// The latencies of a run, as a file and as the compressed counts of one of its lines.
fn hlog(data: &[u8]) {
    if let Ok(histogram) = HistogramReader::default().read(data) {
        assert!(histogram.distinct_values() < 1 << 28);
    }
    directory::with("latency.hlog", data);
}

/// A message over Redis: any message, or a window with its header in one line and its counts below.
fn fleet_message(data: &[u8]) {
    let _ = serde_json::from_slice::<Up>(data);
    let _ = serde_json::from_slice::<Down>(data);
    let _ = serde_json::from_slice::<Registration>(data);
    let _ = serde_json::from_slice::<Announcement>(data);
    let mut parts = data.splitn(2, |byte| *byte == b'\n');
    let (head, counts) = (parts.next().unwrap_or_default(), parts.next());
    if let Ok(header) = serde_json::from_slice::<IntervalRecord>(head) {
        let all = OperationWeights { read: 1.0, update: 1.0, ..OperationWeights::default() };
        let mut decoder = WindowDecoder::new(Operations::of_weights(&all, 1));
        let _ = decoder.decode(header, counts.unwrap_or_default(), "agent");
    }
}

/// The output of an exporter, twice, so that totals become rates.
fn exporter_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let half = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at));
    let (first, second) = text.split_at(half.unwrap_or(0));
    let place = DataPlace { disks: Vec::new(), folders: vec!["/data/db".to_owned()] };
    let mut reader = ExporterReader::new("node".to_owned()).with_data_in(place);
    for (at_s, text) in [(0.0, first), (1.0, second), (2.0, second)] {
        if let Ok(reported) = reader.read(at_s, 0.0, text) {
            let is_named = |(id, _): &(dyno_record::metrics::MetricId, f64)| {
                let name = id.to_string();
                !name.contains(['\n', '\r'])
            };
            assert!(reported.values.iter().all(is_named), "a name contains a line break");
        }
    }
}

/// Input written by people: plans, YCSB properties, connection strings, lists of values.
fn plan_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(plan) = file::parse(text, "plan.toml") {
        let written = file::to_toml(&plan);
        let again = file::parse(&written, "plan.toml");
        // The recorded form of a plan gives the same plan, except for its secrets.
        let again = again.unwrap_or_else(|error| panic!("{error}: {written}"));
        assert_eq!(file::to_toml(&again), written);
    }
    let _ = Properties::parse(text, "workload");
    let _ = axis::numbers(text);
    let _ = axis::whole_numbers(text);
    let _ = uri::redact(text);
    if let Ok((target, Some(credentials))) = uri::parse(text) {
        // The driver gets credentials separately.
        let shown = target.to_driver_uri();
        let password = credentials.password();
        // A password that is also part of an option is shown there.
        let is_repeated = text.matches(password).count() > 1;
        let is_secret = password.len() >= 8 && !is_repeated;
        assert!(!is_secret || !shown.contains(password), "{shown}");
    }
}
