//! An index build with its traces, as read from the records.

use crate::io_trace::TraceView;
use dyno_analyze::access_pattern::Activity;
use dyno_record::index_build::IndexBuildDocument;
use std::sync::LazyLock;

/// An index build with the traces of its builds.
#[derive(Clone, Debug)]
pub struct IndexBuildView<'a> {
    pub document: &'a IndexBuildDocument,
    /// Traces by build name, in the order of the builds. A trace may be missing, and a failed build may have one. All are
    /// reported as traces of an index build, whatever activity they name.
    pub traces: Vec<(String, TraceView<'a>)>,
}

/// The traced activity: an index build scans its collection record by record.
static ACTIVITY: LazyLock<Activity> =
    LazyLock::new(|| Activity { subject: "index build".to_owned(), scans_records: true });

/// The trace with the activity of an index build.
pub(super) fn of_index_build<'a>(trace: &TraceView<'a>) -> TraceView<'a> {
    TraceView { activity: &ACTIVITY, ..*trace }
}
