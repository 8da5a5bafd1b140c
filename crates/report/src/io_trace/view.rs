//! A trace with its analysis, as input of reports and as JSON.

use dyno_analyze::access_pattern::{AccessPatterns, Activity, findings};
use dyno_record::experiment::Finding;
use dyno_record::io_trace::document::TraceDocument;
use serde::Serialize;

/// A trace with its analysis.
#[derive(Clone, Copy, Debug)]
pub struct TraceView<'a> {
    pub document: &'a TraceDocument,
    /// The access patterns of the whole trace.
    pub patterns: &'a AccessPatterns,
    /// The access patterns of each time slice, in order; empty unless slices were requested.
    pub slices: &'a [AccessPatterns],
    /// The traced activity, as the subject of sentences.
    pub activity: &'a Activity,
}

/// The JSON document of a trace.
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
