//! The JSON schemas of `run.json`, `trace.json` and `index-build.json`.

use crate::index_build::IndexBuildDocument;
use crate::io_trace::document::TraceDocument;
use crate::model::RunDocument;

/// The schema of [`RunDocument`] as it is committed in `crates/record/schema/run.schema.json`.
pub fn run_schema() -> serde_json::Value {
    schemars::schema_for!(RunDocument).into()
}

/// The schema of [`TraceDocument`] as it is committed in `crates/record/schema/trace.schema.json`.
pub fn trace_schema() -> serde_json::Value {
    schemars::schema_for!(TraceDocument).into()
}

/// The schema of [`IndexBuildDocument`] as it is committed in `crates/record/schema/index-build.schema.json`.
pub fn index_build_schema() -> serde_json::Value {
    schemars::schema_for!(IndexBuildDocument).into()
}
