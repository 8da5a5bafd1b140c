//! Reports of a finished run: terminal, Markdown, one self-contained HTML file, JSON, and the text
//! that YCSB prints. The first three show one [`model::ReportModel`]. Reports of an experiment, which
//! has several runs, are made by [`experiment`], those of a trace of file I/O by [`io_trace`], and those of an index
//! build by [`index_build`], those of messages by [`tail`].
//!
//! Nothing is printed or written here; every renderer returns text. Caveats are found by the
//! analysis and arrive with the run.

pub mod analysis;
pub mod caveat;
mod error;
pub mod experiment;
pub mod facts;
mod html;
pub mod index_build;
pub mod instances;
pub mod io_trace;
mod json;
mod kpi;
mod layout;
mod markdown;
pub mod model;
pub mod series;
pub mod tail;
mod terminal;
pub mod watched;
pub mod ycsb;

#[cfg(test)]
#[path = "../tests/it/support/mod.rs"]
mod testdata;

use dyno_analyze::experiment::run::RunAnalysis;
use dyno_record::model::{RunDocument, RunStatus};
use dyno_record::reader::Run;
use io_trace::TraceView;
use model::ReportModel;
use ycsb::YcsbOptions;

pub use error::ReportError;

/// What a run is rendered as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text for a terminal.
    Human,
    /// Markdown with GitHub's tables.
    Markdown,
    /// One self-contained page with charts.
    Html,
    /// The run document.
    Json,
    /// What YCSB prints at the end of a run.
    Ycsb,
    /// The key figures of the multi-instance benchmark, by its labels.
    Kpi,
}

impl Format {
    /// All of them, each with its name and a line of help.
    pub const NAMES: &[(Format, &'static str, &'static str)] = &[
        (Format::Human, "human", "Text and tables for people"),
        (Format::Markdown, "markdown", "Markdown"),
        (Format::Html, "html", "One self-contained page with charts"),
        (Format::Json, "json", "One JSON document"),
        (Format::Ycsb, "ycsb", "The text that YCSB prints"),
        (
            Format::Kpi,
            "kpi",
            "The key figures of the multi-instance benchmark, by its labels",
        ),
    ];
}

/// How a run is rendered. Each format looks only at what concerns it.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderOptions {
    /// Columns of the terminal; used by [`Format::Human`].
    pub width: usize,
    /// Whether to write ANSI colours; used by [`Format::Human`].
    pub colours: bool,
    /// Used by [`Format::Ycsb`].
    pub ycsb: YcsbOptions,
}

impl Default for RenderOptions {
    fn default() -> Self {
        RenderOptions {
            width: 100,
            colours: false,
            ycsb: YcsbOptions::default(),
        }
    }
}

/// Renders a run with its analysis, if it has one. What scripts read as YCSB's text or as key figures has none of
/// it. The text ends with a line end.
///
/// # Errors
/// [`ReportError`] if the run has not what YCSB's text or the key figures need; the other formats show any run.
pub fn render(
    run: &Run,
    analysis: Option<&RunAnalysis>,
    format: Format,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    render_traced(run, analysis, None, format, options)
}

/// The same of a run during which file I/O was traced.
///
/// # Errors
/// As those of [`render`].
pub fn render_traced(
    run: &Run,
    analysis: Option<&RunAnalysis>,
    trace: Option<&TraceView<'_>>,
    format: Format,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    let model = || {
        let mut model = ReportModel::new(run, analysis);
        if let Some(view) = trace {
            model.add_trace(view);
        }
        model
    };
    match format {
        Format::Human => Ok(terminal::render(&model(), options.width, options.colours)),
        Format::Markdown => Ok(markdown::render(&model())),
        Format::Html => html::render(&model()),
        Format::Json => json::render(run, analysis, trace),
        Format::Ycsb => ycsb::render(run, &options.ycsb),
        Format::Kpi => kpi::render(&run.document),
    }
}

/// The first line of the lists that scripts read, if the run did not end as planned: they have no
/// other place for it. Scripts look for labels, and skip it.
pub fn incomplete(document: &RunDocument) -> String {
    let status = match document.status {
        RunStatus::Complete => return String::new(),
        RunStatus::Running => "the run still goes on, or was killed",
        RunStatus::Partial => "the run was stopped early",
        RunStatus::Failed => "the run failed",
    };
    let reason = document.status_reason.as_deref().unwrap_or(status);
    // A reason may hold the last lines of a log.
    let line: Vec<&str> = reason.lines().map(str::trim).collect();
    format!("INCOMPLETE: {}\n", line.join(" "))
}
