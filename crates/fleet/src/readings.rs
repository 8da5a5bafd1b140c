//! What agents read of their hosts, on its way to the controller, in a stream of its own: readings may be dropped when nobody
//! takes them for long, and windows never are for their sake.
//!
//! Names of metrics are long and seldom change. They go with the first reading, with each that has new ones, and now and then,
//! so that who has missed some learns them again; values go as an array of 64-bit floats, in the order of the names.

use crate::endpoint::{Endpoint, Reply};
use crate::error::FleetError;
use crate::names::RunName;
use crate::protocol::{decode, encode};
use dyno_record::metrics::{MOST_COLUMNS, MetricId};
use redis::{Connection, RedisError};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::Duration;

/// Names go again with each of so many readings.
const NAMES_EVERY: u64 = 30;
/// Readings that are taken from Redis at once.
const BATCH: u64 = 256;

/// What an agent read of its host at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct HostReading {
    /// Number of the agent.
    pub agent: u32,
    /// When, on the clock of Redis, in nanoseconds from 1970.
    pub at_ns: i64,
    /// The values that were there.
    pub values: Vec<(MetricId, f64)>,
    /// What else the agent tells of the reading.
    pub account: serde_json::Value,
}

/// A reading without its values.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    at_ns: i64,
    /// Which names the values have: all readings with this number of an agent have the same.
    names_number: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    names: Option<Vec<String>>,
    account: serde_json::Value,
}

/// Where readings of an agent go.
#[derive(Clone, Debug)]
pub(crate) struct Outlet {
    pub(crate) endpoint: Endpoint,
    pub(crate) run: RunName,
    pub(crate) index: u32,
    /// Readings of all agents that stay in Redis.
    pub(crate) unread: u64,
    /// How long they stay at most.
    pub(crate) keep: Duration,
}

/// Names that readings of an agent have had so far, each with its place.
#[derive(Debug, Default)]
struct Names {
    all: Vec<MetricId>,
    places: HashMap<MetricId, usize>,
}

impl Names {
    /// Values in the order of the names, with those that are new at the end; what is not there is not a number.
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

/// Makes messages of the readings of one agent.
#[derive(Debug)]
pub struct ReadingEncoder {
    names: Names,
    /// Number of the names as they are now.
    number: u64,
    /// Readings since the names went.
    since_names: u64,
}

impl ReadingEncoder {
    /// An encoder whose names have numbers from `first` on: another one of the same agent begins with another number.
    pub fn new(first: u64) -> Self {
        ReadingEncoder {
            names: Names::default(),
            number: first,
            since_names: NAMES_EVERY,
        }
    }

    /// A reading, taken at an instant of the clock of Redis: its JSON and its values.
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

    /// Names go with the next reading: the last one may not have arrived.
    fn repeat_names(&mut self) {
        self.since_names = NAMES_EVERY;
    }
}

/// Sends the readings of one agent. It has a connection of its own.
pub(crate) struct Sender {
    outlet: Outlet,
    connection: Option<Connection>,
    encoder: ReadingEncoder,
}

impl Sender {
    pub(crate) fn new(outlet: Outlet, encoder: ReadingEncoder) -> Self {
        Sender {
            outlet,
            connection: None,
            encoder,
        }
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
        pipe.cmd("PEXPIRE")
            .arg(&stream)
            .arg(outlet.keep.as_millis() as u64)
            .ignore();
        pipe.query::<()>(connection)
    }
}

/// Takes the readings of all agents from Redis.
#[derive(Debug)]
pub(crate) struct Inlet {
    stream: String,
    position: String,
    /// The newest names of each agent, with their number.
    names: HashMap<u32, (u64, Vec<MetricId>)>,
}

impl Inlet {
    pub(crate) fn new(run: &RunName) -> Self {
        Inlet {
            stream: run.readings(),
            position: "0-0".into(),
            names: HashMap::new(),
        }
    }

    /// A question for the next entries, which does not wait.
    pub(crate) fn question(&self) -> redis::Cmd {
        let mut read = redis::cmd("XREAD");
        read.arg("COUNT").arg(BATCH).arg("STREAMS");
        read.arg(&self.stream).arg(&self.position);
        read
    }

    /// Takes what the answer brought; whether there may be more.
    pub(crate) fn take(&mut self, reply: Reply, into: &mut Vec<HostReading>) -> bool {
        let mut count = 0;
        for (_, entries) in reply.into_iter().flatten() {
            count += entries.len() as u64;
            if let Some((last, _)) = entries.last() {
                self.position.clone_from(last);
            }
            for (_, fields) in &entries {
                // What is no reading is one that did not come; the others are good.
                into.extend(self.read(fields).ok().flatten());
            }
        }
        count >= BATCH
    }

    /// What is read takes no memory in Redis any more.
    pub(crate) fn trim(&self) -> redis::Cmd {
        let mut trim = redis::cmd("XTRIM");
        trim.arg(&self.stream).arg("MINID").arg(&self.position);
        trim
    }

    /// One entry; `None` if its names were missed.
    fn read(&mut self, fields: &[Vec<u8>]) -> Result<Option<HostReading>, FleetError> {
        let field = |name: &[u8]| {
            let mut pairs = fields.chunks_exact(2);
            pairs.find(|pair| pair[0] == name).map(|pair| &*pair[1])
        };
        let wrong = |reason: &str| FleetError::Message {
            from: "an agent".into(),
            reason: reason.into(),
        };
        let index = field(b"i").and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        let (Some(agent), Some(header), Some(values)) = (index, field(b"j"), field(b"v")) else {
            return Err(wrong("a reading has no sender or no values"));
        };
        let header: Header = decode(header, &format!("agent {agent}"))?;
        if let Some(names) = header.names {
            let names: Option<Vec<MetricId>> =
                names.iter().map(|name| MetricId::parse(name)).collect();
            let names = names.ok_or_else(|| wrong("a reading has a metric without a name"))?;
            self.names.insert(agent, (header.names_number, names));
        }
        let names = match self.names.get(&agent) {
            Some((number, names)) if *number == header.names_number => names,
            _ => return Ok(None),
        };
        let values: Vec<f64> = values
            .as_chunks()
            .0
            .iter()
            .map(|bytes| f64::from_le_bytes(*bytes))
            .collect();
        if values.len() != names.len() {
            return Err(wrong("a reading has not as many values as names"));
        }
        let pairs = names.iter().cloned().zip(values);
        Ok(Some(HostReading {
            agent,
            at_ns: header.at_ns,
            values: pairs.filter(|(_, value)| value.is_finite()).collect(),
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
    fn names_keep_their_places_and_new_ones_come_behind() {
        let mut names = Names::default();
        assert_eq!(names.place(&values(&[("x", 1.0), ("y", 2.0)])), [1.0, 2.0]);
        let placed = names.place(&values(&[("z", 5.0), ("y", 4.0)]));
        assert!(placed[0].is_nan());
        assert_eq!(placed[1..], [4.0, 5.0]);
        assert_eq!(names.all.len(), 3);
    }

    #[test]
    fn entries_that_cannot_be_readings_are_refused() {
        let header = |names: &str| {
            format!(r#"{{"at_ns":1,"names_number":7,"names":{names},"account":null}}"#).into_bytes()
        };
        let entry = |header: Vec<u8>, values: &[u8]| {
            [b"i".to_vec(), b"3".to_vec(), b"j".to_vec(), header]
                .into_iter()
                .chain([b"v".to_vec(), values.to_vec()])
                .collect::<Vec<_>>()
        };
        let mut inlet = Inlet::new(&RunName::new("r").expect("it is one"));
        let one = 1.5_f64.to_le_bytes();
        let found = inlet.read(&entry(header(r#"["a.x"]"#), &one));
        let found = found.expect("it is one").expect("with its names");
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
