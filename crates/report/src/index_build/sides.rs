//! The builds with their traces: the first one is before the remedy, the second one after it.

use super::view::{IndexBuildView, of_index_build};
use crate::io_trace::TraceView;
use dyno_analyze::access_pattern::FilePattern;
use dyno_record::index_build::BuildRecord;
use dyno_record::io_trace::document::FileKind;
use dyno_record::io_trace::event::Operation;

/// A build with its trace; a failed build may have only a trace, and a trace may be missing.
pub(super) struct Side<'a> {
    pub(super) name: &'a str,
    pub(super) build: Option<&'a BuildRecord>,
    pub(super) trace: Option<TraceView<'a>>,
    /// The file of the collection with the most bytes read.
    pub(super) file: Option<&'a FilePattern>,
}

/// The builds in order, then builds with only a trace.
pub(super) fn sides<'a>(view: &'a IndexBuildView<'_>) -> Vec<Side<'a>> {
    let trace_of = |name: &str| {
        view.traces.iter().find(|(of, _)| of == name).map(|(_, trace)| of_index_build(trace))
    };
    let builds = &view.document.builds;
    let built =
        builds.iter().map(|build| Side::new(&build.name, Some(build), trace_of(&build.name)));
    let is_alone = |name: &str| builds.iter().all(|build| build.name != name);
    let alone = view.traces.iter().filter(|(name, _)| is_alone(name));
    let alone = alone.map(|(name, trace)| Side::new(name, None, Some(of_index_build(trace))));
    built.chain(alone).collect()
}

impl<'a> Side<'a> {
    fn new(name: &'a str, build: Option<&'a BuildRecord>, trace: Option<TraceView<'a>>) -> Self {
        Side {
            name,
            build,
            trace,
            file: trace.and_then(|trace| files_of_collection(trace).max_by_key(|file| file.bytes)),
        }
    }

    /// In seconds; absent if the build did not end.
    pub(super) fn duration_s(&self) -> Option<f64> {
        self.build.map(|build| build.duration_s)
    }

    /// The score of the file of the collection; absent with too few reads for a pattern.
    pub(super) fn score(&self) -> Option<f64> {
        self.file.filter(|file| has_pattern(file))?.score
    }
}

/// Fewer calls are not a pattern.
const FEWEST_CALLS: u64 = 64;

/// Whether enough of a file was read to determine the order.
pub(super) fn has_pattern(file: &FilePattern) -> bool {
    file.calls >= FEWEST_CALLS
}

/// The files with documents that were read.
pub(super) fn files_of_collection<'a>(
    trace: TraceView<'a>,
) -> impl Iterator<Item = &'a FilePattern> {
    trace.patterns.files.iter().filter(|file| {
        let is_read = matches!(file.operation, Operation::Read | Operation::Fault);
        let kind = file.role.as_ref().map(|role| role.kind);
        is_read && file.bytes > 0 && kind == Some(FileKind::Collection)
    })
}

/// The two builds to compare, if both ended.
pub(super) fn compared<'s, 'a>(sides: &'s [Side<'a>]) -> Option<(&'s Side<'a>, &'s Side<'a>)> {
    match sides {
        [before, after, ..] if before.build.is_some() && after.build.is_some() => {
            Some((before, after))
        }
        _ => None,
    }
}
