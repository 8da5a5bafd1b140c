//! Reports of a file I/O trace, or of two traces side by side.

mod caveats;
mod facts;
mod histograms;
mod pairs;
mod pictures;
mod tables;
mod view;

use crate::caveat::{CaveatBook, NumberedCaveat};
use crate::error::ReportError;
use crate::machine;
use crate::options::{PageFormat, RenderOptions};
use crate::page::density::DensityChart;
use crate::page::{Figure, Finding as Shown, Page, Section};
use crate::render::show;
use crate::terms::terms;
use crate::texts::text;
use dyno_analyze::access_pattern::{
    AccessPatterns, FilePattern, compared, findings, order_statement,
};
use dyno_record::experiment::Finding;
use dyno_record::io_trace::event::Operation;
use dyno_record::quantity::{Quantity, Unit};
use dyno_record::statement;
use pairs::Pair;
use serde::Serialize;

pub(crate) use view::TraceJson;
pub use view::{TracePair, TraceView};

/// The JSON document of two traces.
#[derive(Serialize)]
struct PairJson<'a> {
    before: TraceJson<'a>,
    after: TraceJson<'a>,
    findings: Vec<Finding>,
}

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

/// Renders two traces side by side. The text ends with a newline.
///
/// # Errors
/// The errors of [`render`].
pub fn render_pair(
    pair: &TracePair<'_>,
    format: PageFormat,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    show(
        format,
        options,
        || pair_page(pair),
        || PairJson {
            before: pair.before.json(),
            after: pair.after.json(),
            findings: pair_findings(pair),
        },
    )
}

/// The page of a trace.
pub fn page(view: &TraceView<'_>) -> Page {
    let document = view.document;
    let caveats = caveats::numbered(&[("", document)], &[view.patterns]);
    let title = format!("File I/O of {}", view.activity.subject);
    let question = "In which order and how often were the files read and written, and from where?";
    let base = Page::new("trace", title, question.to_owned(), "complete");
    Page {
        status: caveats::status(&[document], &caveats),
        started_at: document.started_at.clone(),
        dyno_version: document.dyno_version.clone(),
        headline: figures(view),
        findings: sentences(&findings(view.patterns, view.activity)),
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

/// The page of two traces side by side.
pub fn pair_page(pair: &TracePair<'_>) -> Page {
    let (before, after) = (pair.before.document, pair.after.document);
    let patterns = [pair.before.patterns, pair.after.patterns];
    let caveats = caveats::numbered(&[("before", before), ("after", after)], &patterns);
    let question = "How did the order of reading and writing change?";
    let base = Page::new("trace", pair.title.to_owned(), question.to_owned(), "complete");
    let mut facts = facts::labelled(&pair.before, "Before");
    facts.extend(facts::labelled(&pair.after, "After"));
    Page {
        status: caveats::status(&[before, after], &caveats),
        started_at: before.started_at.clone(),
        dyno_version: after.dyno_version.clone(),
        findings: sentences(&pair_findings(pair)),
        sections: pair_sections(pair),
        method: Page::method_of(facts),
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
    let drawn = pictures::drawn(&shown);
    sections.extend(pictures::offsets(&drawn));
    sections.extend(pictures::latencies(&drawn));
    sections.extend(histograms::of_files(&shown).into_iter().flatten());
    sections.extend(histograms::scores(&shown));
    sections.extend(tables::block(view));
    sections
}

/// Tables and pictures of two traces side by side, for use in another report.
pub fn pair_sections(pair: &TracePair<'_>) -> Vec<Section> {
    let pairs = pairs::pairs(pair.before.patterns, pair.after.patterns);
    let mut sections = vec![tables::pairs(&pairs)];
    let drawn = pictures::drawn_pairs(pair, &pairs);
    sections.extend(pictures::offsets(&drawn));
    sections.extend(pictures::latencies(&drawn));
    sections.extend(histograms::of_pairs(&pairs).into_iter().flatten());
    sections.extend(tables::block_pair(pair));
    sections
}

/// Read offsets over time for the documents of each server of a deployment, side by side.
pub(crate) fn offsets_of_servers(
    id: &str,
    servers: &[(&str, &FilePattern)],
    view: &TraceView<'_>,
) -> Option<DensityChart> {
    let zero_ns = view.patterns.first_ns.unwrap_or(0);
    pictures::offsets_of_servers(id, servers, zero_ns)
}

/// Caveats of a trace, numbered from 1, for use in another report.
pub(crate) fn caveats_of(view: &TraceView<'_>) -> Vec<NumberedCaveat> {
    caveats::numbered(&[("", view.document)], &[view.patterns])
}

/// Changes between two traces, and findings about each.
pub fn pair_findings(pair: &TracePair<'_>) -> Vec<Finding> {
    let pairs = pairs::pairs(pair.before.patterns, pair.after.patterns);
    let mut found: Vec<Finding> =
        pairs.iter().filter_map(|Pair { before, after }| compared((*before)?, (*after)?)).collect();
    for (when, view) in [("before", &pair.before), ("after", &pair.after)] {
        let said = findings(view.patterns, view.activity);
        found.extend(said.into_iter().map(|finding| Finding {
            statement: statement!("in-one-trace", when = when, said = finding.statement),
            ..finding
        }));
    }
    found
}

fn sentences(findings: &[Finding]) -> Vec<Shown> {
    findings.iter().map(Into::into).collect()
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
