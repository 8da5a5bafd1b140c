//! Reports of an index build: its duration, the order in which it read the documents, and the effect of a remedy on both.
//! [`crate::io_trace`] makes the parts about traces.

mod between;
mod caveats;
mod configurations;
mod facts;
mod figures;
mod findings;
mod servers;
mod sides;
mod tables;
mod view;
mod words;

use crate::caveat::CaveatBook;
use crate::costs;
use crate::error::ReportError;
use crate::facts::{DASHBOARD_OF_MACHINES, dashboard_between, plan_text};
use crate::io_trace::{self, TraceJson, TracePair};
use crate::machine;
use crate::options::{PageFormat, RenderOptions};
use crate::page::{Finding as Shown, NO_ANSWER, Page, Status};
use crate::render::show;
use crate::terms::terms;
use dyno_analyze::costs::work::{NamedCosts, of_builds};
use dyno_record::experiment::Finding;
use dyno_record::index_build::IndexBuildDocument;
use serde::Serialize;
use view::of_index_build;

pub use servers::{BuiltOn, ServerInBuild, built_on};
pub use view::IndexBuildView;

/// The JSON document of an index build.
#[derive(Serialize)]
struct IndexBuildJson<'a> {
    index_build: &'a IndexBuildDocument,
    /// Findings about all builds; findings about a trace are in the trace.
    findings: Vec<Finding>,
    traces: Vec<NamedTrace<'a>>,
    /// Costs of each build per document; absent if none are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    costs: Vec<NamedCosts>,
}

/// A trace with the name of its build.
#[derive(Serialize)]
struct NamedTrace<'a> {
    build: &'a str,
    #[serde(flatten)]
    trace: TraceJson<'a>,
}

/// Renders an index build. The text ends with a newline.
///
/// # Errors
/// [`ReportError::Template`] or [`ReportError::Json`]; no content of an index build causes them.
pub fn render(
    view: &IndexBuildView<'_>,
    format: PageFormat,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    let document = || IndexBuildJson {
        index_build: view.document,
        findings: findings::findings(view.document, &sides::sides(view)),
        traces: view
            .traces
            .iter()
            .map(|(name, trace)| NamedTrace { build: name, trace: of_index_build(trace).json() })
            .collect(),
        costs: of_builds(view.document),
    };
    show(format, options, || page(view), document)
}

/// The page of an index build.
pub fn page(view: &IndexBuildView<'_>) -> Page {
    let document = view.document;
    let sides = sides::sides(view);
    let book = caveats::book(document, &sides);
    let rows = configurations::rows(document, &sides);
    let said = findings::findings(document, &sides);
    let mut findings: Vec<Shown> = said.iter().map(Into::into).collect();
    let mut facts = facts::facts(document);
    let mut definitions = terms(&["index-build"]);
    let (headline, mut sections) = match rows.is_empty() {
        true => (figures::figures(document, &sides, &book), tables::sections(document, &sides)),
        false => (
            configurations::figures(document, &rows, &book),
            configurations::sections(document, &rows),
        ),
    };
    sections.extend(costs::of_builds(document));
    // With several configurations, each trace has a folder and a report of its own.
    let traced = traced(view);
    definitions.extend(traced.iter().flat_map(|traced| traced.definitions.clone()));
    if let Some(traced) = traced.filter(|_| rows.is_empty()) {
        findings.extend(traced.findings);
        sections.extend(traced.sections);
        facts.extend(traced.method.into_iter().flat_map(|list| list.facts));
    }
    facts.retain(|fact| !fact.value.is_empty());
    let machine = machine::list(document.environment.as_ref(), &CaveatBook::new(&[]));
    let question = match sides.len() {
        _ if !rows.is_empty() => {
            "How long does the index take on each configuration, and in which order does each server read its documents for it?"
        }
        0 | 1 => "How long does the index take, and in which order are the documents read for it?",
        _ => {
            "How long does the index take, in which order are the documents read for it, and what did the remedy change?"
        }
    };
    let base = Page::new(
        "index build",
        format!("Index build, {}", document.name),
        question.to_owned(),
        "complete",
    );
    Page {
        status: status(document, &book),
        started_at: document.started_at.clone(),
        dashboard: dashboard_between(
            DASHBOARD_OF_MACHINES,
            &document.recorded_plan(),
            (&document.started_at, document.ended_at.as_deref()),
        ),
        dyno_version: document.dyno_version.clone(),
        no_answer: if document.builds.is_empty() { NO_ANSWER } else { "" },
        headline,
        findings,
        sections,
        method: Page::method_of(facts).into_iter().chain(machine).collect(),
        plan: plan_text(&document.plan),
        definitions,
        caveats: book.into_caveats(),
        ..base
    }
}

/// The page of the traces: the first two side by side, or the only one.
fn traced(view: &IndexBuildView<'_>) -> Option<Page> {
    let mut traces = view.traces.iter().map(|(_, trace)| of_index_build(trace));
    let first = traces.next()?;
    Some(match traces.next() {
        Some(second) => io_trace::pair_page(&TracePair { title: "", before: first, after: second }),
        None => io_trace::page(&first),
    })
}

fn status(document: &IndexBuildDocument, book: &caveats::Book<'_>) -> Status {
    Status::of_run(document.status, document.status_reason.as_deref(), book.serious())
}
