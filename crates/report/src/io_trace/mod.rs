//! Reports of a file I/O trace.

mod caveats;
mod facts;
mod histograms;
mod pictures;
mod tables;
mod view;

use crate::caveat::{CaveatBook, NumberedCaveat};
use crate::error::ReportError;
use crate::machine;
use crate::options::{PageFormat, RenderOptions};
use crate::page::{Figure, Page, Section};
use crate::render::show;
use crate::terms::terms;
use crate::texts::text;
use dyno_analyze::access_pattern::{AccessPatterns, FilePattern, findings, order_statement};
use dyno_record::io_trace::event::Operation;
use dyno_record::quantity::{Quantity, Unit};

pub(crate) use pictures::{offsets_beside, where_and_when};
pub(crate) use view::TraceJson;
pub use view::TraceView;

/// Renders a trace. The text ends with a newline.
///
/// # Errors
/// [`ReportError::Template`] or [`ReportError::Json`]; no content of a trace causes them.
pub fn render(
    view: &TraceView<'_>,
    format: PageFormat,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    show(format, options, || page(view), || view.json())
}

/// The page of a trace.
pub fn page(view: &TraceView<'_>) -> Page {
    let document = view.document;
    let caveats = caveats_of(view);
    let title = format!("File I/O of {}", view.activity.subject);
    let question = "In which order and how often were the files read and written, and from where?";
    let base = Page::new("trace", title, question.to_owned(), "complete");
    Page {
        status: caveats::status(document, &caveats),
        started_at: document.started_at.clone(),
        dyno_version: document.dyno_version.clone(),
        headline: figures(view),
        findings: findings(view.patterns, view.activity).iter().map(Into::into).collect(),
        sections: sections(view),
        method: Page::method_of(facts::facts(view))
            .into_iter()
            .chain(machine::list(document.environment.as_ref(), &CaveatBook::new(&[])))
            .collect(),
        definitions: terms(&["trace"]),
        caveats,
        ..base
    }
}

/// Tables and pictures of a trace, for use in another report.
pub fn sections(view: &TraceView<'_>) -> Vec<Section> {
    let shown = tables::worth_showing(view.patterns);
    let mut sections = vec![tables::files(&shown, view.patterns)];
    sections.extend(tables::slices(&shown, view));
    sections.extend(pictures::of_files(&shown));
    sections.extend(histograms::of_files(&shown).into_iter().flatten());
    sections.extend(tables::block(view));
    sections
}

/// Caveats of a trace, numbered from 1, for use in another report.
pub(crate) fn caveats_of(view: &TraceView<'_>) -> Vec<NumberedCaveat> {
    caveats::numbered(view.document, view.patterns)
}

/// The result in a few numbers: for the file with the most bytes read, or else written.
fn figures(view: &TraceView<'_>) -> Vec<Figure> {
    let patterns = view.patterns;
    let span = patterns.first_ns.zip(patterns.last_ns);
    let seconds =
        span.map_or(view.document.duration_s, |(first, last)| (last - first) as f64 * 1e-9);
    let mut figures = vec![figure(
        "calls",
        Quantity::count(patterns.calls),
        format!("in {}", Quantity::seconds(seconds)),
    )];
    figures.push(figure("moved", Quantity::bytes(patterns.bytes), String::new()));
    let Some(main) = main_file(patterns) else {
        return figures;
    };
    let verb = tables::verb(main.operation);
    if let Some(score) = main.score {
        let note = format!("{} {verb} {}", main.label(), text(&order_statement(score)));
        figures.push(figure("score", Quantity::new(score, Unit::Plain), note));
    }
    if let Some(latency) = main.latency {
        let median = Quantity::microseconds(latency.p50_ns / 1e3);
        figures.push(figure("median latency", median, main.label()));
    }
    if let Some(device) = &main.device {
        let note = format!("of reads of {}", main.label());
        let waited = Quantity::ratio(device.waiting_ratio);
        figures.push(figure("waited for the device", waited, note));
    }
    figures
}

fn figure(label: &str, value: Quantity, note: String) -> Figure {
    Figure::new(label, value).with_note(note)
}

fn main_file(patterns: &AccessPatterns) -> Option<&FilePattern> {
    let most = |operation| {
        let of_operation =
            patterns.files.iter().filter(|file| file.operation == operation && file.bytes > 0);
        of_operation.max_by_key(|file| file.bytes)
    };
    let operations = [Operation::Read, Operation::Fault, Operation::Write];
    operations.into_iter().find_map(most)
}
