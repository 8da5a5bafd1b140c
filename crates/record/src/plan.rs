//! Reads the plan in a record, with the fields that results need. Records keep the plan as it was written, so that
//! rewriting a record loses nothing.
//!
//! Records of any version are read: missing fields, and fields with another type, are absent.

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Fields of a resolved plan that results need. Absent fields were not recorded.
#[serde_with::apply(_ => #[serde(deserialize_with = "lenient")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecordedPlan {
    /// Purpose of the plan.
    pub description: Option<String>,
    pub server: RecordedServer,
    pub data: RecordedData,
    /// Weights of the operations, by name; empty if not recorded. They need not add up to 1.
    #[serde_with(skip_apply)]
    #[serde(deserialize_with = "numbers")]
    pub operations: BTreeMap<String, f64>,
    /// Key distribution.
    pub keys: Option<RecordedKeys>,
    pub client: RecordedClient,
    pub schedule: RecordedSchedule,
    pub phases: RecordedPhases,
    pub observe: RecordedObserve,
    /// Price of the test bench; absent if the plan does not name one.
    pub price: Option<RecordedPrice>,
    /// Index build; absent in other experiments.
    pub index_build: Option<RecordedIndexBuild>,
}

/// Price of a test bench.
#[serde_with::apply(_ => #[serde(deserialize_with = "lenient")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecordedPrice {
    /// Price per hour.
    pub per_h: Option<f64>,
    pub currency: Option<String>,
}

/// Servers of a plan.
#[serde_with::apply(_ => #[serde(deserialize_with = "lenient")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecordedServer {
    /// `mongod`, `embedded` or `uri`.
    pub kind: Option<String>,
    /// Connection string without secrets, if the server was already running.
    pub uri: Option<String>,
    /// Number of servers side by side, each with its own client.
    pub pairs: Option<u64>,
    /// Cache size, with its unit.
    pub cache: Option<String>,
    /// Block compressor of the data files.
    pub block_compressor: Option<String>,
    /// Whether a write is on disk before it is acknowledged.
    pub durable_writes: Option<bool>,
}

/// Documents of a plan.
#[serde_with::apply(_ => #[serde(deserialize_with = "lenient")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecordedData {
    pub records: Option<u64>,
    /// Fields per document.
    pub field_count: Option<u64>,
    /// Length of each field.
    pub field_length: Option<RecordedFieldLength>,
    /// `hashed` or `ordered`.
    pub key_order: Option<String>,
    /// Whether the values of reads are checked.
    pub integrity: Option<bool>,
}

/// Distribution of field lengths.
#[serde_with::apply(_ => #[serde(deserialize_with = "lenient")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecordedFieldLength {
    /// `constant`, `uniform`, `zipfian` or `histogram`.
    pub distribution: Option<String>,
    /// The constant length.
    pub bytes: Option<u64>,
    pub min_bytes: Option<u64>,
    pub max_bytes: Option<u64>,
}

/// Key distribution of a plan.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecordedKeys {
    /// Name of the distribution.
    #[serde(deserialize_with = "lenient")]
    pub distribution: Option<String>,
    /// Parameters by name, such as `exponent`.
    #[serde(flatten)]
    pub parameters: Map<String, Value>,
}

/// Load generator of a plan.
#[serde_with::apply(_ => #[serde(deserialize_with = "lenient")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecordedClient {
    /// Concurrent clients of each server.
    pub clients: Option<u64>,
    /// Worker threads of each client process.
    pub threads: Option<u64>,
    /// `wire` or `driver`.
    pub backend: Option<String>,
    pub seed: Option<u64>,
    /// Documents per insert command of the load phase.
    pub batch: Option<u64>,
    /// Mean think time of a closed loop, with its unit.
    pub think_time: Option<String>,
    /// `constant` or `exponential`.
    pub think_time_distribution: Option<String>,
}

/// Schedule of a plan.
#[serde_with::apply(_ => #[serde(deserialize_with = "lenient")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecordedSchedule {
    /// Name, such as `closed`, `constant`, `poisson` or `throttled`.
    pub kind: Option<String>,
    /// Operations per second; absent in a closed loop.
    pub rate_per_s: Option<f64>,
}

impl RecordedSchedule {
    /// Whether each client starts its next operation after its last one has ended and its think time is over.
    pub fn is_closed(&self) -> bool {
        self.kind.as_deref() == Some("closed")
    }

    /// Whether each client has its share of the rate, and waits for its own answers.
    pub fn is_throttled(&self) -> bool {
        self.kind.as_deref() == Some("throttled")
    }

    /// Whether the times between starts are exponentially distributed.
    pub fn is_poisson(&self) -> bool {
        self.kind.as_deref() == Some("poisson")
    }
}

/// Phases of a plan.
#[serde_with::apply(_ => #[serde(deserialize_with = "lenient")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecordedPhases {
    /// Time under load before measuring starts, with its unit.
    pub warmup: Option<String>,
    /// Measuring time, with its unit.
    pub duration: Option<String>,
    /// Number of operations after which measuring ends, if limited.
    pub operations: Option<u64>,
}

impl RecordedPhases {
    /// Measuring time in seconds; `None` if unknown.
    pub fn duration_s(&self) -> Option<f64> {
        seconds(self.duration.as_deref()?)
    }
}

/// Parses a duration such as `1m30s`.
fn seconds(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 7] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("d", 86_400.0),
    ];
    let (mut rest, mut sum_s) = (text, 0.0);
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let (number, after) = rest.split_at(end);
        let end = after.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, after) = after.split_at(end.unwrap_or(after.len()));
        let (_, factor_s) = UNITS.iter().find(|(name, _)| *name == unit)?;
        sum_s += number.trim().parse::<f64>().ok()? * factor_s;
        rest = after;
    }
    (!text.is_empty()).then_some(sum_s)
}

/// Observation settings of a plan.
#[serde_with::apply(_ => #[serde(deserialize_with = "lenient")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecordedObserve {
    /// Grafana server that was notified of the run.
    pub grafana: RecordedGrafana,
}

/// Grafana server of a plan.
#[serde_with::apply(_ => #[serde(deserialize_with = "lenient")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecordedGrafana {
    /// Base URL.
    pub url: Option<String>,
}

/// Index build of a plan.
#[serde_with::apply(_ => #[serde(deserialize_with = "lenient")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecordedIndexBuild {
    /// Name of the data layout.
    pub layout: Option<String>,
    /// Keys of the index, as passed to `createIndexes`.
    pub keys: Option<String>,
    /// Name of the remedy; absent without one.
    pub remedy: Option<String>,
}

impl RecordedPlan {
    /// Reads the plan of a record.
    pub fn new(plan: &Value) -> RecordedPlan {
        RecordedPlan::deserialize(plan).unwrap_or_default()
    }
}

/// Deserializes a value, or returns the default if it has another type.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Numbers by name; other values are left out.
fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, f64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let numbers = value
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
    Ok(numbers.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_of_several_units_are_read() {
        let all = ["30s", "1m30s", "500ms", "1h", "", "soon", "5"];
        let expected = [Some(30.0), Some(90.0), Some(0.5), Some(3600.0), None, None, None];
        assert_eq!(all.map(seconds), expected);
    }

    #[test]
    fn a_plan_is_read_by_its_fields() {
        let plan = RecordedPlan::new(&json!({
            "name": "a",
            "server": {"kind": "mongod", "pairs": 2, "durable_writes": true, "cache": "1 GiB"},
            "data": {"records": 1000, "field_length": {"distribution": "constant", "bytes": 100}},
            "operations": {"read": 0.5, "update": 1},
            "keys": {"distribution": "zipfian", "exponent": 1.1},
            "client": {"clients": 16, "threads": 2, "seed": 42},
            "schedule": {"kind": "poisson", "rate_per_s": 500},
            "observe": {"grafana": {"url": "http://h:3000", "token_file": "t"}},
            "index_build": {"keys": "{\"a\": 1}", "remedy": null},
        }));
        assert_eq!(plan.server.pairs, Some(2));
        assert_eq!(plan.data.field_length.unwrap().bytes, Some(100));
        assert_eq!(plan.operations["update"], 1.0);
        let keys = plan.keys.unwrap();
        assert_eq!(keys.distribution.as_deref(), Some("zipfian"));
        assert_eq!(keys.parameters["exponent"], 1.1);
        assert_eq!(plan.schedule.rate_per_s, Some(500.0));
        assert!(plan.schedule.is_poisson() && !plan.schedule.is_closed());
        assert_eq!(plan.observe.grafana.url.as_deref(), Some("http://h:3000"));
        assert_eq!(plan.index_build.unwrap().remedy, None);
    }

    #[test]
    fn missing_and_mistyped_fields_are_absent() {
        let plan = RecordedPlan::new(&json!({
            "server": "none",
            "client": {"clients": "many", "threads": 2},
            "operations": {"read": 1.0, "update": "often"},
        }));
        assert_eq!(plan.server, RecordedServer::default());
        assert_eq!((plan.client.clients, plan.client.threads), (None, Some(2)));
        assert_eq!(plan.operations.len(), 1);
        assert_eq!(plan.index_build, None);
        assert_eq!(RecordedPlan::new(&Value::Null), RecordedPlan::default());
    }
}
