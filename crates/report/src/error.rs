//! Errors of rendering a report.

use dyno_record::model::PhaseKind;

/// A report could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A document could not be written as JSON.
    #[error("cannot write the document as JSON")]
    Json {
        #[from]
        source: serde_json::Error,
    },
    /// The template of the HTML report failed.
    #[error("cannot fill in the HTML report")]
    Template {
        #[from]
        source: minijinja::Error,
    },
    /// The run does not have the requested phase.
    #[error("the run has no phase `{}`", .phase.as_str())]
    NoSuchPhase { phase: PhaseKind },
    /// The run has no phases.
    #[error("the run recorded no phase")]
    NoPhase,
    /// An instance has no figures of the measured phase.
    #[error("instance {number} has no figures of the measured phase")]
    MissingInstance {
        /// From 0.
        number: usize,
    },
    /// The requested time series has shorter steps than the recording windows.
    #[error(
        "a time series in steps of `{granularity_ms}` ms is finer than the recording windows of `{window_ms}` ms"
    )]
    GranularityTooFine { granularity_ms: u64, window_ms: u64 },
    /// The document has no table for a spreadsheet.
    #[error(
        "only a suite of several workloads and messages of `dyno tail` have a table in this form"
    )]
    NoTable,
    /// A percentile is not between 0 and 100.
    #[error("`{percentile}` is not a percentile between 0 and 100")]
    Percentile { percentile: f64 },
}
