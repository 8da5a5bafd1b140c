//! A request as plain data: a command line, a service or a program creates it, and
//! [`crate::resolve::resolve`] turns it into a [`crate::Task`].

use crate::model::{ScheduleKind, ServerKind};
use crate::units::Span;
use crate::wsf::Parameters;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

/// A request for a task. It has no `Debug`, because `uri` and `properties` may contain credentials;
/// a stored request is a secret.
///
/// If a key has several values, the last one in this order counts: the plan, `wsf`, `properties`,
/// `settings`, `overrides`, other fields.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    pub work: Work,
    /// Name of a built-in plan, or path of a plan or property file; the default of the work if
    /// absent.
    pub source: Option<String>,
    /// Connection string of a running server. Credentials in it become part of
    /// [`crate::task::Remote`].
    pub uri: Option<String>,
    /// The embedded server to start; searched for if absent.
    pub embedded_server: Option<PathBuf>,
    /// Data folder of the server to start, instead of the plan's.
    pub data_dir: Option<String>,
    /// Values that decide about more than one key.
    pub overrides: Overrides,
    /// Any keys of the plan. If a key occurs twice, the last value counts.
    pub settings: Vec<Setting>,
    /// YCSB properties by name.
    pub properties: Vec<(String, String)>,
    /// Whether to accept unknown YCSB property names with a warning.
    pub lenient: bool,
    /// Parameters of the Workload Services Framework; ignored if absent.
    pub wsf: Option<Parameters>,
    /// A shell command that runs in the plan's trace windows, or while measuring if it has none.
    pub trace: Option<String>,
    /// Changes to what is observed while the load runs.
    pub observe: Observing,
    /// Whether to skip loading; the collection must contain the documents already.
    pub no_load: bool,
}

/// Kind of work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// One run of a load.
    #[default]
    Run,
    /// A run for hours: by default for one hour, and it survives a temporary loss of its server.
    Soak {
        /// The run ends if no connection is available for this time. If absent: the plan's value,
        /// or 5 minutes.
        give_up: Option<Span>,
    },
    /// Only the load phase; the data stays.
    Load,
    /// The runs of an experiment with a load.
    Experiment,
    /// An index build on existing documents.
    IndexBuild {
        /// Database and collection of these documents; if absent, they are loaded first.
        collection: Option<(String, String)>,
    },
    /// Messages through a capped collection.
    Tail,
    /// Servers that are started and keep running.
    Servers,
}

/// Values that decide about more than one key of a plan; `None` leaves the plan as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    /// Number of independent servers, each with its own client.
    pub pairs: Option<u32>,
    /// Kind of server to start.
    pub server: Option<ServerKind>,
    /// Path of the `mongod` program, or the version of an installed one.
    pub mongod: Option<String>,
    /// Documents of the data set.
    pub records: Option<u64>,
    /// Operations to measure. Without `duration` it is the only limit of the phase.
    pub operations: Option<u64>,
    /// Measuring time. Without `operations` it is the only limit of the phase.
    pub duration: Option<Span>,
    /// Worker threads.
    pub threads: Option<u32>,
    /// Offered rate in operations per second. Without `schedule` it makes a closed loop a constant schedule.
    pub rate_per_s: Option<f64>,
    pub schedule: Option<ScheduleKind>,
}

/// Plan keys, each with the text of its value.
pub type Keys = BTreeMap<String, String>;

/// A value for a key of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The key with dots between its tables, such as `server.cache`.
    pub key: String,
    pub value: SettingValue,
}

/// The value of a [`Setting`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SettingValue {
    /// Typed text: TOML, or a text without its quotes; the key decides which.
    Text(String),
    /// A value of the key's type.
    Typed(Value),
}

impl Setting {
    /// Creates a setting with a value of the key's type.
    pub fn new(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Setting { key: key.into(), value: SettingValue::Typed(value.into()) }
    }

    /// Creates a setting from typed text.
    pub fn from_text(key: impl Into<String>, text: impl Into<String>) -> Self {
        Setting { key: key.into(), value: SettingValue::Text(text.into()) }
    }
}

/// Changes to what is observed while the load runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Observing {
    /// Time between two readings; the plan's value if absent.
    pub interval: Option<Span>,
    /// Whether to observe neither this machine nor the servers.
    pub off: bool,
    /// Prometheus exporters to read in addition to the plan's.
    pub exporters: Vec<Exporter>,
}

/// A Prometheus exporter given by an option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exporter {
    /// Name of its metrics; `exporter-N` if absent.
    pub name: Option<String>,
    pub url: String,
}

impl FromStr for Exporter {
    type Err = String;

    /// Parses `[NAME=]URL`.
    fn from_str(text: &str) -> Result<Self, String> {
        // A name comes before the address, and an address may contain `=` only after its scheme.
        let named = text.split_once('=').filter(|(name, _)| !name.contains("://"));
        let (name, url) = match named {
            Some((name, url)) => (Some(name.to_owned()), url),
            None => (None, text),
        };
        if url.is_empty() {
            return Err("it must be an address, such as `http://db1:9100/metrics`".into());
        }
        Ok(Exporter { name, url: url.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_plain_data_and_mostly_optional() {
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
        let settings = [Setting::from_text("server.cache", "1GiB"), Setting::new("client.seed", 7)];
        assert_eq!(request.settings, settings);
        let again = serde_json::to_string(&request).expect("it is plain data");
        assert!(serde_json::from_str::<Request>(&again).expect("it is one") == request);
    }

    #[test]
    fn exporter_has_a_name_or_gets_one() {
        let read = |text: &str| text.parse::<Exporter>().map(|one| (one.name, one.url));
        let named = (Some("db".to_owned()), "http://h:1/m?a=b".to_owned());
        assert_eq!(read("db=http://h:1/m?a=b"), Ok(named));
        let plain = (None, "http://h:1/m?a=b".to_owned());
        assert_eq!(read("http://h:1/m?a=b"), Ok(plain));
        assert!(read("").is_err() && read("db=").is_err());
    }
}
