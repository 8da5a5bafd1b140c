//! Knobs as a file has them, and the files that are part of the program.

use super::versions::Versions;
use crate::file::FileError;
use crate::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The knobs that are part of the program, with the names of their files.
const BUILT_IN: [(&str, &str); 2] = [
    (
        "mongod",
        include_str!("../../../../workloads/knobs/mongod.toml"),
    ),
    (
        "host",
        include_str!("../../../../workloads/knobs/host.toml"),
    ),
];

/// A file of knobs.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KnobFile {
    /// The knobs.
    knobs: Vec<KnobPlan>,
}

/// A knob as a file has it.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KnobPlan {
    /// Its name in tables and charts.
    pub(super) name: String,
    /// A group by which it can be chosen.
    pub(super) group: String,
    /// The key of the plan that it sets: `server.runtime_parameters.NAME` for what a running server takes,
    /// `server.host_settings.NAME` for a setting of the machine, another key of `server` for what needs another start of it, or
    /// one of `client`.
    pub(super) key: String,
    /// The value of the key, with `{}` where the value of the knob stands; the value alone when absent. Texts of several knobs
    /// for one key are joined, by `&` in `server.connection_options` and else by commas.
    pub(super) text: Option<String>,
    /// Its values. Those of a switch are `false` and `true`, which have no order.
    #[serde(default)]
    pub(super) values: Vec<String>,
    /// Lowest value, in place of `values`: a number, a size such as `256MiB`, `memory` or `cores`, the latter two also with a
    /// factor or a divisor, such as `memory/4`.
    pub(super) from: Option<String>,
    /// Highest value, as `from`.
    pub(super) to: Option<String>,
    /// What `to` is at most, whatever the machine has, as `from`. Where the servers run on another machine, it stands for
    /// their `to` if that names `memory` or `cores`.
    pub(super) most: Option<String>,
    /// Number of values from the lowest to the highest; 2 to 24.
    #[schemars(range(min = 2, max = 24))]
    pub(super) steps: Option<usize>,
    /// Whether the values lie at equal distances, or at equal ratios.
    #[serde(default)]
    pub(super) scale: Scale,
    /// The value that it has unless it is set, as `from`. Of a parameter of a running server and of a setting of the machine it is
    /// read there, and may be absent unless there is a `text`.
    pub(super) default: Option<String>,
    /// Whether the values have an order.
    #[serde(default = "yes")]
    pub(super) ordered: bool,
    /// Values that make acknowledged writes less durable.
    #[serde(default)]
    pub(super) less_durable: Vec<String>,
    /// What it needs to have an effect; it is left out, and named, where that is missing.
    pub(super) needs: Option<Need>,
    /// Versions of the server that have it, the first and the last one: `4.4-6.0`, `7.0-` or `-6.0`. It is left out, and named,
    /// with others.
    #[schemars(
        with = "Option<String>",
        regex(pattern = r"^([0-9]+\.[0-9]+)?-([0-9]+\.[0-9]+)?$")
    )]
    pub(super) versions: Option<Versions>,
    /// What it can break.
    pub(super) risk: Option<String>,
    /// Where it is described.
    pub(super) documentation: Option<String>,
}

fn yes() -> bool {
    true
}

/// How values lie between the lowest and the highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Scale {
    /// At equal ratios.
    #[default]
    Log,
    /// At equal distances.
    Linear,
}

/// Without what a knob has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// A replica set, or shards, which are made of some.
    ReplicaSet,
    /// Swap on the machine of the server.
    Swap,
    /// Several NUMA nodes there.
    NumaNodes,
}

/// The JSON schema of files of knobs.
pub fn schema() -> serde_json::Value {
    serde_json::to_value(schemars::schema_for!(KnobFile)).expect("a schema is plain data")
}

/// Those that are part of the program.
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
