//! The JSON schemas of `run.json`, `experiment.json`, `tail.json`, `trace.json` and `index-build.json`.

use crate::experiment::Experiment;
use crate::index_build::IndexBuildDocument;
use crate::io_trace::document::TraceDocument;
use crate::model::RunDocument;
use crate::tail::TailDocument;

/// The schema of [`RunDocument`] as it is committed in `crates/record/schema/run.schema.json`.
pub fn run_schema() -> serde_json::Value {
    schemars::schema_for!(RunDocument).into()
}

/// The schema of [`Experiment`] as it is committed in `crates/record/schema/experiment.schema.json`.
pub fn experiment_schema() -> serde_json::Value {
    schemars::schema_for!(Experiment).into()
}

/// The schema of [`TailDocument`] as it is committed in `crates/record/schema/tail.schema.json`.
pub fn tail_schema() -> serde_json::Value {
    schemars::schema_for!(TailDocument).into()
}

/// The schema of [`TraceDocument`] as it is committed in `crates/record/schema/trace.schema.json`.
pub fn trace_schema() -> serde_json::Value {
    schemars::schema_for!(TraceDocument).into()
}

/// The schema of [`IndexBuildDocument`] as it is committed in `crates/record/schema/index-build.schema.json`.
pub fn index_build_schema() -> serde_json::Value {
    schemars::schema_for!(IndexBuildDocument).into()
}
