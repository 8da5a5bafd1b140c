//! The final output of `dyno ycsb`: report options and destination.

use crate::messages::print_data;
use crate::reports::{refused, ycsb_text};
use dyno_engine::Error;
use dyno_engine::files::write_file;
use dyno_plan::ycsb::YcsbClientOptions;
use dyno_record::model::PhaseKind;
use dyno_record::reader::Run;
use dyno_report::RenderOptions;
use dyno_report::ycsb::YcsbOptions;

/// Prints the output of `phase`, or writes it to `exportfile`.
pub(crate) fn export(
    run: &Run,
    phase: PhaseKind,
    options: &YcsbClientOptions,
) -> Result<(), Error> {
    let render_options = RenderOptions {
        ycsb: YcsbOptions { phase: Some(phase), client: options.clone() },
        ..RenderOptions::default()
    };
    let text = ycsb_text(run, &render_options).map_err(refused)?;
    match &options.export_file {
        Some(path) => Ok(write_file(path, &text)?),
        None => print_data(&text),
    }
}
