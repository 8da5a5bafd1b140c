//! Reports of an experiment: the question, what was found, and the tables and charts behind it. All forms
//! show one [`model::ExperimentModel`], which is made of sections; each kind of answer makes its own sections,
//! in a file of its own.

mod ab;
mod blocks;
pub mod comparison;
pub(crate) mod demands;
pub mod density;
pub(crate) mod figure;
pub mod history;
pub(crate) mod html;
pub(crate) mod law_words;
pub(crate) mod markdown;
pub mod model;
pub mod picture;
pub mod plot;
mod relative;
pub mod rows;
mod runs;
pub mod scatter;
mod slo;
mod slo_charts;
mod sweep;
mod sweep_charts;
pub mod table;
pub(crate) mod terminal;
mod xmax;

use crate::error::ReportError;
use crate::{Format, RenderOptions};
use dyno_analyze::experiment::Experiment;
use model::ExperimentModel;

/// What an experiment is rendered as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExperimentFormat {
    /// Text for a terminal.
    Human,
    /// Markdown with GitHub's tables.
    Markdown,
    /// One self-contained page with charts.
    Html,
    /// The document.
    Json,
}

impl ExperimentFormat {
    /// All of them, each with its name and a line of help.
    pub const NAMES: &[(ExperimentFormat, &'static str, &'static str)] = &[
        (
            ExperimentFormat::Human,
            "human",
            "Text and tables for people",
        ),
        (ExperimentFormat::Markdown, "markdown", "Markdown"),
        (
            ExperimentFormat::Html,
            "html",
            "One self-contained page with charts",
        ),
        (ExperimentFormat::Json, "json", "One JSON document"),
    ];

    /// The format of an experiment that is called as one of a run; `None` if experiments have none of this name.
    pub fn from_format(format: Format) -> Option<Self> {
        match format {
            Format::Human => Some(ExperimentFormat::Human),
            Format::Markdown => Some(ExperimentFormat::Markdown),
            Format::Html => Some(ExperimentFormat::Html),
            Format::Json => Some(ExperimentFormat::Json),
            Format::Ycsb | Format::Kpi => None,
        }
    }
}

/// Renders an experiment. The text ends with a line end.
///
/// # Errors
/// [`ReportError::Template`] or [`ReportError::Json`] if the page or the document cannot be written, which no
/// content of an experiment causes.
pub fn render(
    experiment: &Experiment,
    format: ExperimentFormat,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    match format {
        ExperimentFormat::Human => {
            let model = ExperimentModel::new(experiment);
            Ok(terminal::render(&model, options.width, options.colours))
        }
        ExperimentFormat::Markdown => Ok(markdown::render(&ExperimentModel::new(experiment))),
        ExperimentFormat::Html => html::render(&ExperimentModel::new(experiment)),
        ExperimentFormat::Json => Ok(serde_json::to_string_pretty(experiment)? + "\n"),
    }
}
