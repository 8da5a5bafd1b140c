//! What is asked for, as plain data: what a command line, a service or a program fills in, and [`crate::resolve::resolve`]
//! turns into a [`crate::Task`].

use crate::model::{Backend, ServerKind};
use crate::names::choices;
use crate::units::Span;
use crate::wsf::Parameters;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use std::str::FromStr;

/// What is asked for. It has no `Debug`, because `uri` and `properties` may hold credentials; whoever stores it keeps a
/// secret.
///
/// Of several values of one key the later one of this list counts: the plan, `wsf`, `properties`, `settings`, `overrides`,
/// and the rest.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// What is done.
    pub work: Work,
    /// Name of a built-in plan, or path of a plan or property file; the usual one of the work when absent.
    pub source: Option<String>,
    /// Connection string of a server that is already running. Credentials in it go to [`crate::task::Remote`].
    pub uri: Option<String>,
    /// The embedded server to start; a usual place when absent.
    pub embedded_server: Option<PathBuf>,
    /// Data folder of the server that is started, in place of the one of the plan.
    pub data_dir: Option<String>,
    /// Single values of the plan that have an option of their own.
    pub overrides: Overrides,
    /// Any keys of the plan. Of a key that comes twice the last value counts.
    pub settings: Vec<Setting>,
    /// YCSB properties, by name.
    pub properties: Vec<(String, String)>,
    /// Accept unknown YCSB property names, with a warning.
    pub lenient: bool,
    /// Parameters of the Workload Services Framework; they are not looked at when absent.
    pub wsf: Option<Parameters>,
    /// A shell command that runs in the trace windows of the plan, or while measuring if it has none.
    pub trace: Option<String>,
    /// What is watched while the load runs.
    pub observe: Observing,
    /// Load nothing; the collection must hold the documents already.
    pub no_load: bool,
}

/// What is done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// One run of a load.
    #[default]
    Run,
    /// A run for hours: by default for one, and it survives that its server is away.
    Soak {
        /// The run ends when no connection could be had for this time; that of the plan, or 5 minutes, when absent.
        give_up: Option<Span>,
    },
    /// The load phase alone; the data stays.
    Load,
    /// The runs of an experiment with a load.
    Experiment,
    /// An index build on documents that exist.
    IndexBuild {
        /// Database and collection of these documents; they are loaded first when absent.
        collection: Option<(String, String)>,
    },
    /// Messages through a capped collection.
    Tail,
    /// Servers that are started and stay.
    Servers,
}

choices! {
    /// Name of a schedule, as an option gives it.
    ScheduleKind {
        /// See [`crate::model::Schedule::Closed`].
        Closed = "closed", "Each client starts its next operation when its last one has ended";
        /// See [`crate::model::Schedule::Constant`].
        Constant = "constant", "Operations start at equal distances, whatever the server does";
        /// See [`crate::model::Schedule::Poisson`].
        Poisson = "poisson",
            "Operations start at random, exponentially distributed distances, whatever the server does";
        /// See [`crate::model::Schedule::Throttled`].
        Throttled = "throttled",
            "Each client starts its share of the rate at equal distances, or when its last operation has ended (YCSB's target)";
    }
}

/// Single values of a plan; `None` leaves the plan as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    /// Independent servers, each with a client of its own.
    pub pairs: Option<u32>,
    /// CPUs and memory of the servers and their clients.
    pub placement: Option<String>,
    /// Start this kind of server.
    pub server: Option<ServerKind>,
    /// Path of the `mongod` program, or the version of an installed one.
    pub mongod: Option<String>,
    /// Documents of the data set.
    pub records: Option<u64>,
    /// Operations to measure. Alone it ends the phase in place of a time.
    pub operations: Option<u64>,
    /// Measuring time. Alone it ends the phase in place of a number of operations.
    pub duration: Option<Span>,
    /// Warm-up time.
    pub warmup: Option<Span>,
    /// Concurrent connections.
    pub clients: Option<u32>,
    /// Worker threads.
    pub threads: Option<u32>,
    /// Offered rate in operations per second. Without `schedule` it makes a closed loop a constant schedule.
    pub rate_per_s: Option<f64>,
    /// When operations start.
    pub schedule: Option<ScheduleKind>,
    /// Who speaks the protocol.
    pub backend: Option<Backend>,
    /// Seed of all random sequences.
    pub seed: Option<u64>,
    /// Longest wait for an answer.
    pub timeout: Option<Span>,
    /// Largest share of failed operations that is not a failure, 0 to 1.
    pub tolerated_error_ratio: Option<f64>,
    /// Documents per insert command of the load phase.
    pub batch: Option<u32>,
}

/// A value for a key of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The key with dots between its tables, such as `server.cache`.
    pub key: String,
    /// Its value.
    pub value: SettingValue,
}

/// The value of a [`Setting`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SettingValue {
    /// As a person types it: TOML, or a text without its quotes; which of both is meant follows from the key.
    Text(String),
    /// A value of the type that the key has.
    Typed(Value),
}

impl Setting {
    /// A value of the type that the key has.
    pub fn new(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Setting {
            key: key.into(),
            value: SettingValue::Typed(value.into()),
        }
    }

    /// A value as a person types it.
    pub fn from_text(key: impl Into<String>, text: impl Into<String>) -> Self {
        Setting {
            key: key.into(),
            value: SettingValue::Text(text.into()),
        }
    }
}

/// What is watched while the load runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Observing {
    /// Time from one look to the next; that of the plan when absent.
    pub interval: Option<Span>,
    /// Watch neither this machine nor the servers.
    pub off: bool,
    /// Prometheus exporters that are read besides those of the plan.
    pub exporters: Vec<Exporter>,
}

/// A Prometheus exporter as an option names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exporter {
    /// Name of its metrics; `exporter-N` when absent.
    pub name: Option<String>,
    /// Its address.
    pub url: String,
}

impl FromStr for Exporter {
    type Err = String;

    /// Reads `[NAME=]URL`.
    fn from_str(text: &str) -> Result<Self, String> {
        // A name comes before the address, and an address may hold `=` only after its scheme.
        let named = text
            .split_once('=')
            .filter(|(name, _)| !name.contains("://"));
        let (name, url) = match named {
            Some((name, url)) => (Some(name.to_owned()), url),
            None => (None, text),
        };
        if url.is_empty() {
            return Err("it must be an address, such as `http://db1:9100/metrics`".into());
        }
        Ok(Exporter {
            name,
            url: url.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_plain_data_and_most_of_it_can_be_left_out() {
        let text = r#"{
            "work": {"soak": {"give_up": "7s"}},
            "source": "a",
            "overrides": {"rate_per_s": 500.0, "schedule": "poisson"},
            "settings": [
                {"key": "server.cache", "value": {"text": "1GiB"}},
                {"key": "client.seed", "value": {"typed": 7}}
            ]
        }"#;
        let request: Request = serde_json::from_str(text).expect("it is one");
        let give_up = Some(Span::from_secs(7));
        assert_eq!(request.work, Work::Soak { give_up });
        assert_eq!(request.overrides.schedule, Some(ScheduleKind::Poisson));
        let settings = [
            Setting::from_text("server.cache", "1GiB"),
            Setting::new("client.seed", 7),
        ];
        assert_eq!(request.settings, settings);
        let again = serde_json::to_string(&request).expect("it is plain data");
        assert!(serde_json::from_str::<Request>(&again).expect("it is one") == request);
    }

    #[test]
    fn an_exporter_has_a_name_or_gets_one() {
        let read = |text: &str| text.parse::<Exporter>().map(|one| (one.name, one.url));
        let named = (Some("db".to_owned()), "http://h:1/m?a=b".to_owned());
        assert_eq!(read("db=http://h:1/m?a=b"), Ok(named));
        let plain = (None, "http://h:1/m?a=b".to_owned());
        assert_eq!(read("http://h:1/m?a=b"), Ok(plain));
        assert!(read("").is_err() && read("db=").is_err());
    }
}
