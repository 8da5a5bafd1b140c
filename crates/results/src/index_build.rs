//! Opens index builds and analyses their traces.

use crate::ResultsError;
use crate::trace::{AnalysedTrace, TraceOptions};
use dyno_analyze::caveats::failed_checks;
use dyno_record::Document;
use dyno_record::index_build::{IndexBuildCaveat, IndexBuildDocument};
use dyno_record::io_trace;
use dyno_record::sums;
use std::path::Path;

/// Files of each server that get access pictures.
const FILES_OF_SERVER: usize = 8;

/// An index build with its analysed traces.
pub struct AnalysedIndexBuild {
    pub document: IndexBuildDocument,
    /// Traces by the name of their build.
    pub traces: Vec<(String, AnalysedTrace)>,
}

impl AnalysedIndexBuild {
    /// Reads and analyses an index-build folder. Adds a caveat if it was changed after it finished.
    ///
    /// # Errors
    /// [`ResultsError::Record`] if the document or a trace cannot be read.
    pub fn open(folder: &Path) -> Result<Self, ResultsError> {
        let mut document = IndexBuildDocument::read(folder)?;
        let changed = sums::check(folder)?.statement();
        let statements = changed
            .into_iter()
            .chain(document.environment.iter().flat_map(failed_checks).map(|one| one.statement));
        let caveats: Vec<IndexBuildCaveat> =
            statements.map(|statement| IndexBuildCaveat { statement, build: None }).collect();
        document.caveats.extend(caveats);
        let servers = document.configurations.iter().map(|one| one.members.len());
        let options = TraceOptions {
            // Each server has one file of documents, and other files with as many reads and writes.
            pictures: servers.max().map(|servers| servers.max(1) * FILES_OF_SERVER),
            ..TraceOptions::default()
        };
        let mut traces = Vec::new();
        for build in &document.builds {
            let folder = folder.join(&build.name);
            if folder.join(io_trace::DOCUMENT).is_file() {
                let trace = AnalysedTrace::of_checked(&folder, &options)?;
                traces.push((build.name.clone(), trace));
            }
        }
        Ok(AnalysedIndexBuild { document, traces })
    }
}
