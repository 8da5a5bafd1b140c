//! Readings of hosts on their way to the controller, in a separate stream: old readings may be dropped if they are not read,
//! without a loss of windows.
//!
//! Metric names are long and seldom change. They are sent with the first reading, with each reading that has new ones, and
//! periodically for receivers that missed some. Values are an array of 64-bit floats, in the order of the names.

use crate::endpoint::{Endpoint, Reply};
use crate::error::FleetError;
use crate::names::RunName;
use crate::protocol::{decode, encode};
use dyno_record::metrics::{MOST_COLUMNS, MetricId};
use redis::{Connection, RedisError};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::Duration;

/// Names are repeated every this many readings.
const NAMES_EVERY: u64 = 30;
/// Readings fetched from Redis at once.
const BATCH: u64 = 256;

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

/// A reading without its values.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    at_ns: i64,
    /// Number of the list of names; readings of an agent with the same number have the same names.
    names_number: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    names: Option<Vec<String>>,
    account: serde_json::Value,
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

/// Metric names of an agent so far, each with its index.
#[derive(Debug, Default)]
struct Names {
    all: Vec<MetricId>,
    places: HashMap<MetricId, usize>,
}

impl Names {
    /// Values in the order of the names, new names at the end; missing values are NaN.
    fn place(&mut self, values: &[(MetricId, f64)]) -> Vec<f64> {
        let mut placed = vec![f64::NAN; self.all.len()];
        for (id, value) in values {
            let place = match self.places.get(id) {
                Some(place) => *place,
                None if self.all.len() >= MOST_COLUMNS => continue,
                None => {
                    self.places.insert(id.clone(), self.all.len());
                    self.all.push(id.clone());
                    placed.push(f64::NAN);
                    self.all.len() - 1
                }
            };
            placed[place] = *value;
        }
        placed
    }
}

/// Encodes the readings of one agent.
#[derive(Debug)]
pub struct ReadingEncoder {
    names: Names,
    /// Number of the current list of names.
    number: u64,
    /// Readings since the names were sent.
    since_names: u64,
}

impl ReadingEncoder {
    /// An encoder that numbers its lists of names from `first`; each encoder of an agent needs a different number.
    pub fn new(first: u64) -> Self {
        ReadingEncoder { names: Names::default(), number: first, since_names: NAMES_EVERY }
    }

    /// Encodes a reading with its instant on the clock of Redis, as JSON and values.
    pub fn encode(
        &mut self,
        at_ns: i64,
        values: &[(MetricId, f64)],
        account: serde_json::Value,
    ) -> (String, Vec<u8>) {
        let before = self.names.all.len();
        let placed = self.names.place(values);
        if placed.len() > before {
            self.number += 1;
            self.repeat_names();
        }
        let has_names = self.since_names >= NAMES_EVERY;
        self.since_names = if has_names { 1 } else { self.since_names + 1 };
        let names = self.names.all.iter().map(ToString::to_string);
        let header = Header {
            at_ns,
            names_number: self.number,
            names: has_names.then(|| names.collect()),
            account,
        };
        let values = placed.iter().flat_map(|value| value.to_le_bytes());
        (encode(&header), values.collect())
    }

    /// Sends the names with the next reading, because the last one may be lost.
    fn repeat_names(&mut self) {
        self.since_names = NAMES_EVERY;
    }
}

/// Sends the readings of one agent over a separate connection.
pub(crate) struct Sender {
    outlet: Outlet,
    connection: Option<Connection>,
    encoder: ReadingEncoder,
}

impl Sender {
    pub(crate) fn new(outlet: Outlet, encoder: ReadingEncoder) -> Self {
        Sender { outlet, connection: None, encoder }
    }

    /// Sends a reading.
    pub(crate) fn send(
        &mut self,
        at_ns: i64,
        values: &[(MetricId, f64)],
        account: serde_json::Value,
    ) -> Result<(), FleetError> {
        let (header, values) = self.encoder.encode(at_ns, values, account);
        self.put(&header, &values).map_err(|error| {
            self.connection = None;
            self.encoder.repeat_names();
            self.outlet.endpoint.error(&error)
        })
    }

    fn put(&mut self, header: &str, values: &[u8]) -> Result<(), RedisError> {
        let outlet = &self.outlet;
        let connection = outlet.endpoint.kept(&mut self.connection, Duration::ZERO)?;
        let stream = outlet.run.readings();
        let mut pipe = redis::pipe();
        let add = pipe.cmd("XADD").arg(&stream);
        add.arg("MAXLEN").arg("~").arg(outlet.unread);
        add.arg("*").arg("i").arg(outlet.index);
        add.arg("j").arg(header).arg("v").arg(values).ignore();
        pipe.cmd("PEXPIRE").arg(&stream).arg(outlet.keep.as_millis() as u64).ignore();
        pipe.query::<()>(connection)
    }
}

/// Fetches the readings of all agents from Redis.
#[derive(Debug)]
pub(crate) struct Inlet {
    stream: String,
    position: String,
    /// The newest names of each agent, with their number.
    names: HashMap<u32, (u64, Vec<MetricId>)>,
}

impl Inlet {
    pub(crate) fn new(run: &RunName) -> Self {
        Inlet { stream: run.readings(), position: "0-0".into(), names: HashMap::new() }
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
            for (_, fields) in &entries {
                // A malformed reading counts as lost; the others are good.
                into.extend(self.read(fields).ok().flatten());
            }
        }
        count >= BATCH
    }

    /// Command that removes read entries from Redis.
    pub(crate) fn trim(&self) -> redis::Cmd {
        let mut trim = redis::cmd("XTRIM");
        trim.arg(&self.stream).arg("MINID").arg(&self.position);
        trim
    }

    /// Decodes one entry; `None` if its names were missed.
    fn read(&mut self, fields: &[Vec<u8>]) -> Result<Option<HostReading>, FleetError> {
        let field = |name: &[u8]| {
            let mut pairs = fields.chunks_exact(2);
            pairs.find(|pair| pair[0] == name).map(|pair| &*pair[1])
        };
        let wrong =
            |reason: &str| FleetError::Message { from: "an agent".into(), reason: reason.into() };
        let index = field(b"i").and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        let (Some(agent), Some(header), Some(values)) = (index, field(b"j"), field(b"v")) else {
            return Err(wrong("a reading without sender or values"));
        };
        let header: Header = decode(header, &format!("agent {agent}"))?;
        if let Some(names) = header.names {
            let names: Option<Vec<MetricId>> =
                names.iter().map(|name| MetricId::parse(name)).collect();
            let names = names.ok_or_else(|| wrong("a reading with an unnamed metric"))?;
            self.names.insert(agent, (header.names_number, names));
        }
        let names = match self.names.get(&agent) {
            Some((number, names)) if *number == header.names_number => names,
            _ => return Ok(None),
        };
        let values: Vec<f64> =
            values.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        if values.len() != names.len() {
            return Err(wrong("a reading with different numbers of values and names"));
        }
        Ok(Some(HostReading {
            agent,
            at_ns: header.at_ns,
            values: names
                .iter()
                .cloned()
                .zip(values)
                .filter(|(_, value)| value.is_finite())
                .collect(),
            account: header.account,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(list: &[(&str, f64)]) -> Vec<(MetricId, f64)> {
        let one = |(name, value): &(&str, f64)| (MetricId::of("a", name), *value);
        list.iter().map(one).collect()
    }

    #[test]
    fn encoder_appends_new_names_and_keeps_their_order() {
        let mut names = Names::default();
        assert_eq!(names.place(&values(&[("x", 1.0), ("y", 2.0)])), [1.0, 2.0]);
        let placed = names.place(&values(&[("z", 5.0), ("y", 4.0)]));
        assert!(placed[0].is_nan());
        assert_eq!(placed[1..], [4.0, 5.0]);
        assert_eq!(names.all.len(), 3);
    }

    #[test]
    fn inlet_refuses_malformed_readings() {
        let header = |names: &str| {
            format!(r#"{{"at_ns":1,"names_number":7,"names":{names},"account":null}}"#).into_bytes()
        };
        let entry = |header: Vec<u8>, values: &[u8]| {
            [b"i".to_vec(), b"3".to_vec(), b"j".to_vec(), header]
                .into_iter()
                .chain([b"v".to_vec(), values.to_vec()])
                .collect::<Vec<_>>()
        };
        let mut inlet = Inlet::new(&RunName::new("r").expect("valid"));
        let one = 1.5_f64.to_le_bytes();
        let found = inlet.read(&entry(header(r#"["a.x"]"#), &one));
        let found = found.expect("valid").expect("with its names");
        assert_eq!((found.agent, found.values), (3, values(&[("x", 1.5)])));
        for wrong in [
            entry(header(r#"["a.x","a.y"]"#), &one),
            entry(header(r#"["x"]"#), &one),
            entry(b"{}".to_vec(), &one),
            entry(header(r#"["a.x"]"#), &one)[..4].to_vec(),
        ] {
            assert!(inlet.read(&wrong).is_err());
        }
    }
}
