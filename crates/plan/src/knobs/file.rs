//! Format of knob files, and the built-in files.

use super::versions::Versions;
use crate::file::FileError;
use crate::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The built-in knobs, with the names of their files.
const BUILT_IN: [(&str, &str); 2] = [
    ("mongod", include_str!("../../../../workloads/knobs/mongod.toml")),
    ("host", include_str!("../../../../workloads/knobs/host.toml")),
];

/// A file of knobs.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KnobFile {
    /// The knobs.
    knobs: Vec<KnobPlan>,
}

/// A knob in a file.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KnobPlan {
    /// Its name in tables and charts.
    pub(super) name: String,
    /// Group by which the knob can be selected.
    pub(super) group: String,
    /// Key of the plan that the knob sets: `server.runtime_parameters.NAME` for a parameter of a
    /// running server, `server.host_settings.NAME` for a setting of the machine, another key of
    /// `server` for a setting that needs a restart, or a key of `client`.
    pub(super) key: String,
    /// Value of the key, with `{}` as the placeholder of the knob's value; the knob's value alone
    /// when absent. Texts of several knobs for one key are joined, by `&` in `server.connection_options`
    /// and otherwise by commas.
    pub(super) text: Option<String>,
    /// Values of the knob. A switch has `false` and `true`, which have no order.
    #[serde(default)]
    pub(super) values: Vec<String>,
    /// Lowest value, instead of `values`: a number, a size such as `256MiB`, `memory` or `cores`,
    /// the latter two optionally with a factor or a divisor, such as `memory/4`.
    pub(super) from: Option<String>,
    /// Highest value, in the form of `from`.
    pub(super) to: Option<String>,
    /// Upper limit of `to`, regardless of the machine, in the form of `from`. If the servers run on
    /// another machine, it replaces a `to` that contains `memory` or `cores`.
    pub(super) most: Option<String>,
    /// Number of values at equal ratios from the lowest to the highest; 2 to 24.
    #[schemars(range(min = 2, max = 24))]
    pub(super) steps: Option<usize>,
    /// Value of the knob if it is not set, in the form of `from`. Values of server parameters and
    /// machine settings are read from there, so their default may be absent unless there is a
    /// `text`.
    pub(super) default: Option<String>,
    /// Whether the values have an order.
    #[serde(default = "yes")]
    pub(super) ordered: bool,
    /// Values that make acknowledged writes less durable.
    #[serde(default)]
    pub(super) less_durable: Vec<String>,
    /// Requirement for an effect; without it the knob is skipped with a note.
    pub(super) needs: Option<Need>,
    /// First and last server version that supports the knob: `4.4-6.0`, `7.0-` or `-6.0`. With
    /// other versions the knob is skipped with a note.
    #[schemars(with = "Option<String>", regex(pattern = r"^([0-9]+\.[0-9]+)?-([0-9]+\.[0-9]+)?$"))]
    pub(super) versions: Option<Versions>,
    /// Possible harm of the knob.
    pub(super) risk: Option<String>,
    /// Where the knob is described.
    pub(super) documentation: Option<String>,
}

fn yes() -> bool {
    true
}

/// A requirement for a knob to have an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// A replica set, or shards, which consist of replica sets.
    ReplicaSet,
    /// Swap on the machine of the server.
    Swap,
    /// Several NUMA nodes on the machine of the server.
    NumaNodes,
}

/// The JSON schema of files of knobs.
pub fn schema() -> serde_json::Value {
    serde_json::to_value(schemars::schema_for!(KnobFile)).expect("a schema is plain data")
}

/// The built-in knobs.
pub(super) fn built_in() -> Vec<KnobPlan> {
    let mut all = Vec::new();
    for (name, text) in BUILT_IN {
        let knobs = parse(text, name);
        debug_assert!(knobs.is_ok(), "{knobs:?}");
        all.extend(knobs.unwrap_or_default());
    }
    all
}

pub(super) fn parse(text: &str, origin: &str) -> Result<Vec<KnobPlan>, FileError> {
    let file = toml::from_str::<KnobFile>(text);
    file.map(|file| file.knobs).map_err(|error| FileError {
        origin: origin.to_owned(),
        kind: "file of knobs",
        problems: vec![Problem::new(error.message())],
    })
}
