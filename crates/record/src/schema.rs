//! The JSON schema of `run.json`.

use crate::model::RunDocument;

/// The schema of [`RunDocument`] as it is committed in `crates/record/schema/run.schema.json`.
pub fn run_schema() -> serde_json::Value {
    schemars::schema_for!(RunDocument).into()
}
