//! The server of an experiment that is no run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is known of it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentServer {
    /// Name of the program or product, such as `secantusd-rs`.
    pub product: String,
    /// Version; absent if it does not tell.
    pub version: Option<String>,
    /// Address.
    pub address: String,
    /// Whether it was started for the experiment.
    pub started: bool,
    /// Its settings by name, as far as they are known.
    pub settings: BTreeMap<String, String>,
}
