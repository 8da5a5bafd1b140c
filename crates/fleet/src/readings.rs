//! Readings of hosts on their way to the controller, in a separate stream: old readings may be dropped if they are not read,
//! without a loss of windows. They are compressed, because the names of metrics are long and alike.

use crate::endpoint::{Endpoint, Reply};
use crate::error::FleetError;
use crate::names::RunName;
use crate::protocol::{decode, encode};
use dyno_record::metrics::MetricId;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use redis::{Connection, RedisError};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::time::Duration;

/// Readings fetched from Redis at once.
const BATCH: u64 = 256;
/// Largest size of a reading before compression.
const MOST_BYTES: u64 = 4 << 20;

/// One reading of an agent's host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostReading {
    pub agent: u32,
    /// Instant on the clock of Redis, in nanoseconds since 1970.
    pub at_ns: i64,
    /// The values that were read.
    pub values: Vec<(MetricId, f64)>,
    /// Further data from the agent about the reading.
    pub account: serde_json::Value,
}

/// A reading as sent.
#[derive(Debug, Serialize, Deserialize)]
struct Message {
    at_ns: i64,
    values: Vec<(String, f64)>,
    account: serde_json::Value,
}

/// Encodes a reading with its instant on the clock of Redis.
pub fn encode_reading(
    at_ns: i64,
    values: &[(MetricId, f64)],
    account: serde_json::Value,
) -> Vec<u8> {
    let values = values.iter().filter(|(_, value)| value.is_finite());
    let values = values.map(|(id, value)| (id.to_string(), *value)).collect();
    let message = encode(&Message { at_ns, values, account });
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(message.as_bytes()).and_then(|()| encoder.finish());
    written.expect("writing to memory cannot fail")
}

fn decode_reading(agent: u32, bytes: &[u8]) -> Result<HostReading, FleetError> {
    let from = format!("agent {agent}");
    let wrong = |reason: String| FleetError::Message { from: from.clone(), reason };
    let mut text = Vec::new();
    let inflated = ZlibDecoder::new(bytes).take(MOST_BYTES).read_to_end(&mut text);
    inflated.map_err(|error| wrong(error.to_string()))?;
    let Message { at_ns, values, account } = decode(&text, &from)?;
    let values = values.into_iter().map(|(name, value)| Some((MetricId::parse(&name)?, value)));
    let values: Option<Vec<_>> = values.collect();
    let values = values.ok_or_else(|| wrong("a reading with an unnamed metric".to_owned()))?;
    Ok(HostReading { agent, at_ns, values, account })
}

/// Destination of an agent's readings.
#[derive(Clone, Debug)]
pub(crate) struct Outlet {
    pub(crate) endpoint: Endpoint,
    pub(crate) run: RunName,
    pub(crate) index: u32,
    /// Bound on readings of all agents in Redis.
    pub(crate) unread: u64,
    /// Longest time that they stay in Redis.
    pub(crate) keep: Duration,
}

impl Outlet {
    /// Sends an encoded reading over a separate connection.
    pub(crate) fn send(
        &self,
        connection: &mut Option<Connection>,
        reading: &[u8],
    ) -> Result<(), FleetError> {
        let kept = self.endpoint.kept(connection, Duration::ZERO);
        let sent = kept.and_then(|connection| self.put(connection, reading));
        sent.map_err(|error| {
            *connection = None;
            self.endpoint.error(&error)
        })
    }

    fn put(&self, connection: &mut Connection, reading: &[u8]) -> Result<(), RedisError> {
        let stream = self.run.readings();
        let mut pipe = redis::pipe();
        let add = pipe.cmd("XADD").arg(&stream);
        add.arg("MAXLEN").arg("~").arg(self.unread);
        add.arg("*").arg("i").arg(self.index).arg("r").arg(reading).ignore();
        pipe.cmd("PEXPIRE").arg(&stream).arg(self.keep.as_millis() as u64).ignore();
        pipe.query::<()>(connection)
    }
}

/// Fetches the readings of all agents from Redis.
#[derive(Debug)]
pub(crate) struct Inlet {
    stream: String,
    position: String,
}

impl Inlet {
    pub(crate) fn new(run: &RunName) -> Self {
        Inlet { stream: run.readings(), position: "0-0".into() }
    }

    /// Query for the next entries, without waiting.
    pub(crate) fn question(&self) -> redis::Cmd {
        let mut read = redis::cmd("XREAD");
        read.arg("COUNT").arg(BATCH).arg("STREAMS");
        read.arg(&self.stream).arg(&self.position);
        read
    }

    /// Takes the entries of an answer; returns whether there may be more.
    pub(crate) fn take(&mut self, reply: Reply, into: &mut Vec<HostReading>) -> bool {
        let mut count = 0;
        for (_, entries) in reply.into_iter().flatten() {
            count += entries.len() as u64;
            if let Some((last, _)) = entries.last() {
                self.position.clone_from(last);
            }
            // A malformed reading counts as lost; the others are good.
            into.extend(entries.iter().filter_map(|(_, fields)| read(fields)));
        }
        count >= BATCH
    }

    /// Command that removes read entries from Redis.
    pub(crate) fn trim(&self) -> redis::Cmd {
        let mut trim = redis::cmd("XTRIM");
        trim.arg(&self.stream).arg("MINID").arg(&self.position);
        trim
    }
}

/// Decodes one entry.
fn read(fields: &[Vec<u8>]) -> Option<HostReading> {
    let [_, agent, _, reading] = fields else {
        return None;
    };
    let agent = std::str::from_utf8(agent).ok()?.parse().ok()?;
    decode_reading(agent, reading).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn malformed_readings_are_refused() {
        let sent = |text: &serde_json::Value| {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(text.to_string().as_bytes()).expect("in memory");
            encoder.finish().expect("in memory")
        };
        let message = |name: &str| json!({"at_ns": 1, "values": [[name, 1.5]], "account": null});
        let fields =
            |agent: &str, reading: Vec<u8>| [b"i".to_vec(), agent.into(), b"r".to_vec(), reading];
        let good = sent(&message("a.x"));
        let found = read(&fields("3", good.clone())).expect("valid");
        assert_eq!((found.agent, found.values), (3, vec![(MetricId::of("a", "x"), 1.5)]));
        for wrong in [
            fields("3", sent(&message("x"))),
            fields("3", sent(&json!({}))),
            fields("3", good[..good.len() / 2].to_vec()),
            fields("three", good.clone()),
        ] {
            assert!(read(&wrong).is_none(), "{wrong:?}");
        }
        assert!(read(&fields("3", good)[..2]).is_none());
    }

    #[test]
    fn unknown_values_are_not_sent() {
        let id = |name| MetricId::of("a", name);
        let values = [(id("x"), f64::NAN), (id("y"), 0.1)];
        let found = decode_reading(0, &encode_reading(7, &values, json!({"b": 1})));
        let found = found.expect("valid");
        assert_eq!((found.at_ns, found.values), (7, vec![(id("y"), 0.1)]));
        assert_eq!(found.account, json!({"b": 1}));
    }
}
