//! What can go wrong when a run is rendered.

use dyno_record::model::PhaseKind;

/// A run could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A document could not be written as JSON.
    #[error("cannot write the document as JSON")]
    Json {
        /// What could not be expressed.
        #[from]
        source: serde_json::Error,
    },
    /// The template of the HTML report failed.
    #[error("cannot fill in the HTML report")]
    Template {
        /// Where and why.
        #[from]
        source: minijinja::Error,
    },
    /// The output is about a phase that the run does not have.
    #[error("the run has no phase `{}`", .phase.as_str())]
    NoSuchPhase {
        /// The phase that was asked for.
        phase: PhaseKind,
    },
    /// The run has no phase at all.
    #[error("the run recorded no phase")]
    NoPhase,
    /// An instance has no figures of the measured phase.
    #[error("instance {number} has no figures of the measured phase")]
    MissingInstance {
        /// Its number, from 0.
        number: usize,
    },
    /// The time series is asked for in steps shorter than the recording windows.
    #[error(
        "a time series in steps of `{granularity_ms}` ms is finer than the recording windows of `{window_ms}` ms"
    )]
    GranularityTooFine {
        /// The step that was asked for.
        granularity_ms: u64,
        /// Length of the recording windows.
        window_ms: u64,
    },
    /// The output is a table for a spreadsheet, and there is none.
    #[error(
        "only a suite of several workloads and messages of `dyno tail` have a table in this form"
    )]
    NoTable,
    /// A percentile is not between 0 and 100.
    #[error("`{percentile}` is no percentile between 0 and 100")]
    Percentile {
        /// The percentile that was asked for.
        percentile: f64,
    },
}
