//! What an index build means: its traces analysed, and put into words, tables and pictures.

use crate::exit::Failure;
use crate::io_trace::reports::{Analysed, Asked};
use dyno_record::index_build::IndexBuildDocument;
use dyno_record::io_trace;
use dyno_report::RenderOptions;
use dyno_report::experiment::ExperimentFormat;
use dyno_report::index_build::{IndexBuildView, render};
use std::path::Path;

/// An index build with what follows from its traces.
pub(crate) struct AnalysedBuilds {
    document: IndexBuildDocument,
    /// By name of the build.
    traces: Vec<(String, Analysed)>,
}

impl AnalysedBuilds {
    /// Reads and analyses the one in a folder.
    pub(crate) fn of(folder: &Path) -> Result<AnalysedBuilds, Failure> {
        let document = IndexBuildDocument::read(folder)?;
        let mut traces = Vec::new();
        for build in &document.builds {
            let folder = folder.join(&build.name);
            if !folder.join(io_trace::DOCUMENT).is_file() {
                continue;
            }
            let analysed = Analysed::of(&folder, &Asked::default())?;
            traces.push((build.name.clone(), analysed));
        }
        Ok(AnalysedBuilds { document, traces })
    }

    /// In one of the forms.
    pub(crate) fn render(
        &self,
        format: ExperimentFormat,
        options: &RenderOptions,
    ) -> Result<String, Failure> {
        let view = IndexBuildView {
            document: &self.document,
            traces: self
                .traces
                .iter()
                .map(|(name, trace)| (name.clone(), trace.view()))
                .collect(),
        };
        Ok(render(&view, format, options)?)
    }
}
