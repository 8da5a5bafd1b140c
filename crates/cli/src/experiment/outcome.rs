//! What becomes of an experiment: its doubts and its findings, the reports in its folder, and the text on
//! standard output.

use crate::exit::Failure;
use crate::session::output::{HTML, MARKDOWN, terminal_options, write_file};
use crate::surroundings::Surroundings;
use dyno_analyze::experiment::caveats::of_runs;
use dyno_analyze::experiment::findings::findings;
use dyno_analyze::experiment::{Experiment, Point};
use dyno_record::model::{Caveat, CaveatKind, RunDocument};
use dyno_report::RenderOptions;
use dyno_report::experiment::{ExperimentFormat, render};
use std::path::Path;

/// Document of a run, inside its directory.
const RUN: &str = "run.json";

/// Gathers the doubts of all runs and finds what follows from the answer.
pub(crate) fn conclude(document: &mut Experiment, folder: &Path) {
    let done = document
        .points
        .iter()
        .filter(|point| point.figures.is_some());
    let runs: Vec<(String, Vec<Caveat>)> = done
        .map(|point| (point.directory.clone(), doubts(point, folder)))
        .collect();
    document.caveats = of_runs(&runs);
    document.findings = findings(document);
}

/// The doubts of a run; that they cannot be read is one too.
fn doubts(point: &Point, folder: &Path) -> Vec<Caveat> {
    let path = folder.join(&point.directory).join(RUN);
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
    let document = text.and_then(|text| {
        serde_json::from_str::<RunDocument>(&text).map_err(|error| error.to_string())
    });
    match document {
        Ok(document) => document.caveats,
        Err(error) => vec![Caveat {
            kind: CaveatKind::ProbeUnavailable,
            message: format!(
                "the doubts of `{}` cannot be read: {error}",
                point.directory
            ),
            hint: None,
            phase: None,
        }],
    }
}

/// Writes the reports into the folder.
pub(crate) fn write_reports(document: &Experiment, folder: &Path) -> Result<(), Failure> {
    for (name, format) in [
        (HTML, ExperimentFormat::Html),
        (MARKDOWN, ExperimentFormat::Markdown),
    ] {
        let text = render(document, format, &RenderOptions::default())?;
        write_file(&folder.join(name), &text)?;
    }
    Ok(())
}

/// The text for standard output.
pub(crate) fn text(
    document: &Experiment,
    format: ExperimentFormat,
    surroundings: &Surroundings,
) -> Result<String, Failure> {
    Ok(render(document, format, &terminal_options(surroundings))?)
}
