//! `dyno report`: renders a recorded run or an experiment again.

use crate::args::{ReportArguments, ReportFormat};
use crate::exit::{Exit, Failure};
use crate::experiment::folder::{self, DOCUMENT};
use crate::messages::print_data;
use crate::session::{analysis, output};
use crate::surroundings::Surroundings;
use dyno_report::experiment::{self, ExperimentFormat};
use dyno_report::{Format, RenderOptions};
use std::path::Path;

/// See the module.
pub(crate) fn report(
    arguments: &ReportArguments,
    surroundings: &Surroundings,
) -> Result<Exit, Failure> {
    let options = match &arguments.output {
        Some(_) => RenderOptions::default(),
        None => output::terminal_options(surroundings),
    };
    let folder = folder_of(&arguments.run);
    let text = match folder.join(DOCUMENT).is_file() {
        true => of_experiment(folder, arguments.format, &options)?,
        false => of_run(folder, arguments.format, &options)?,
    };
    match &arguments.output {
        Some(path) => output::write_file(path, &text)?,
        None => print_data(&text)?,
    }
    Ok(Exit::Done)
}

/// The folder that is meant: the document in it is what a shell completes to.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let is_document = path.ends_with("run.json") || path.ends_with(DOCUMENT);
    match path.parent() {
        Some(parent) if is_document && path.is_file() => {
            if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            }
        }
        _ => path,
    }
}

fn of_run(folder: &Path, format: ReportFormat, options: &RenderOptions) -> Result<String, Failure> {
    let run = output::open(folder)?;
    let format = match format {
        ReportFormat::Human => Format::Human,
        ReportFormat::Markdown => Format::Markdown,
        ReportFormat::Html => Format::Html,
        ReportFormat::Json => Format::Json,
        ReportFormat::Ycsb => Format::Ycsb,
        ReportFormat::Kpi => Format::Kpi,
    };
    let analysis = match format {
        // What scripts read has none of it.
        Format::Ycsb | Format::Kpi => None,
        _ => analysis::of(&run)?,
    };
    let text = output::text(&run, analysis.as_ref(), format, options)?;
    Ok(match format {
        // What `dyno ycsb` prints is for programs; this is for people.
        Format::Ycsb => dyno_report::incomplete(&run.document) + &text,
        _ => text,
    })
}

fn of_experiment(
    folder: &Path,
    format: ReportFormat,
    options: &RenderOptions,
) -> Result<String, Failure> {
    let document = folder::read(folder)?;
    let format = match format {
        ReportFormat::Human => ExperimentFormat::Human,
        ReportFormat::Markdown => ExperimentFormat::Markdown,
        ReportFormat::Html => ExperimentFormat::Html,
        ReportFormat::Json => ExperimentFormat::Json,
        ReportFormat::Ycsb | ReportFormat::Kpi => {
            let text = "this format has one run, and the folder holds an experiment";
            let hint = "give the folder of one of its runs, below `runs`";
            return Err(Failure::new(Exit::BadInput, text).with_hint(hint));
        }
    };
    Ok(experiment::render(&document, format, options)?)
}
