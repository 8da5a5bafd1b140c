//! Traces with what follows from them, as they come from the analysis and as programs get them.

use dyno_analyze::access_pattern::{AccessPatterns, Activity, findings};
use dyno_record::experiment::Finding;
use dyno_record::io_trace::document::TraceDocument;
use serde::Serialize;

/// A trace with what follows from it.
#[derive(Clone, Copy, Debug)]
pub struct TraceView<'a> {
    /// How it was made.
    pub document: &'a TraceDocument,
    /// What follows from it.
    pub patterns: &'a AccessPatterns,
    /// The same of each piece of time, in order; none if nobody asked for pieces.
    pub slices: &'a [AccessPatterns],
    /// What was traced, as the subject of sentences.
    pub activity: &'a Activity,
}

/// Two traces of the same thing.
#[derive(Clone, Copy, Debug)]
pub struct TracePair<'a> {
    /// The question that they answer, as the title of the report.
    pub title: &'a str,
    /// The first one.
    pub before: TraceView<'a>,
    /// The second one.
    pub after: TraceView<'a>,
}

/// The document of a report for programs.
#[derive(Serialize)]
pub(crate) struct TraceJson<'a> {
    trace: &'a TraceDocument,
    access_patterns: &'a AccessPatterns,
    #[serde(skip_serializing_if = "<[AccessPatterns]>::is_empty")]
    slices: &'a [AccessPatterns],
    findings: Vec<Finding>,
}

impl<'a> TraceView<'a> {
    pub(crate) fn json(&self) -> TraceJson<'a> {
        TraceJson {
            trace: self.document,
            access_patterns: self.patterns,
            slices: self.slices,
            findings: findings(self.patterns, self.activity),
        }
    }
}
