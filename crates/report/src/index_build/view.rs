//! An index build with its traces, as it comes from the records.

use crate::io_trace::TraceView;
use dyno_analyze::access_pattern::Activity;
use dyno_record::index_build::IndexBuildDocument;
use std::sync::LazyLock;

/// An index build with the traces of its builds.
#[derive(Clone, Debug)]
pub struct IndexBuildView<'a> {
    /// The experiment.
    pub document: &'a IndexBuildDocument,
    /// Traces by the name of their build, in the order of the builds. A trace may be missing, and there may be one of a
    /// build that failed. All are reported as those of an index build, whatever they say they are of.
    pub traces: Vec<(String, TraceView<'a>)>,
}

/// What is traced: an index build goes through its collection record by record.
static ACTIVITY: LazyLock<Activity> = LazyLock::new(|| Activity {
    subject: "index build".to_owned(),
    scans_records: true,
});

/// The trace as one of an index build.
pub(super) fn of_index_build<'a>(trace: &TraceView<'a>) -> TraceView<'a> {
    TraceView {
        activity: &ACTIVITY,
        ..*trace
    }
}
