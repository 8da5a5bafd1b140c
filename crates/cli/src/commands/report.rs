//! `dyno report`: renders a recorded run again.

use crate::args::{ReportArguments, ReportFormat};
use crate::exit::{Exit, Failure};
use crate::messages::print_data;
use crate::session::output;
use crate::surroundings::Surroundings;
use dyno_report::{Format, RenderOptions};
use std::path::Path;

/// See the module.
pub(crate) fn report(
    arguments: &ReportArguments,
    surroundings: &Surroundings,
) -> Result<Exit, Failure> {
    // The document in the folder is what a shell completes to.
    let folder = match arguments.run.parent() {
        Some(parent) if arguments.run.ends_with("run.json") && arguments.run.is_file() => {
            if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            }
        }
        _ => &arguments.run,
    };
    let run = output::open(folder)?;
    let format = match arguments.format {
        ReportFormat::Human => Format::Human,
        ReportFormat::Markdown => Format::Markdown,
        ReportFormat::Html => Format::Html,
        ReportFormat::Json => Format::Json,
        ReportFormat::Ycsb => Format::Ycsb,
        ReportFormat::Kpi => Format::Kpi,
    };
    match &arguments.output {
        Some(path) => output::write_file(
            path,
            &output::text(&run, format, &RenderOptions::default())?,
        )?,
        None => print_data(&output::text(
            &run,
            format,
            &output::terminal_options(surroundings),
        )?)?,
    }
    Ok(Exit::Done)
}
