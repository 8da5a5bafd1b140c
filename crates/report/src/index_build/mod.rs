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

use crate::caveat::{CaveatBook, TrustJson};
use crate::costs;
use crate::error::ReportError;
use crate::facts::{DASHBOARD_OF_MACHINES, dashboard_between, plan_text};
use crate::io_trace::{self, TraceJson, TraceView};
use crate::machine;
use crate::options::{PageFormat, RenderOptions};
use crate::page::{Finding as Shown, NO_ANSWER, Page, Section, Status, sentence};
use crate::render::show;
use crate::terms::terms;
use crate::texts::text;
use dyno_analyze::access_pattern::{FilePattern, findings, order_statement};
use dyno_analyze::costs::work::{NamedCosts, of_builds};
use dyno_record::experiment::Finding;
use dyno_record::index_build::IndexBuildDocument;
use serde::Serialize;
use sides::Side;
use view::of_index_build;

pub use servers::{BuiltOn, ServerInBuild, built_on};
pub use view::IndexBuildView;

/// The JSON document of an index build.
#[derive(Serialize)]
struct IndexBuildJson<'a> {
    index_build: &'a IndexBuildDocument,
    /// How far the answer can be trusted; absent without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    trust: Option<TrustJson>,
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
    let document = || {
        let sides = sides::sides(view);
        let findings = self::findings::findings(view.document, &sides);
        let answer = answer(&sides, &findings);
        let trust = caveats::book(view.document, &sides).trust(view.document.builds.len());
        IndexBuildJson {
            index_build: view.document,
            trust: (!answer.is_empty()).then(|| trust.into()),
            findings,
            traces: view
                .traces
                .iter()
                .map(|(name, trace)| NamedTrace {
                    build: name,
                    trace: of_index_build(trace).json(),
                })
                .collect(),
            costs: of_builds(view.document),
        }
    };
    show(format, options, || page(view), document)
}

/// The page of an index build.
pub fn page(view: &IndexBuildView<'_>) -> Page {
    let document = view.document;
    let sides = sides::sides(view);
    let book = caveats::book(document, &sides);
    let rows = configurations::rows(document, &sides);
    let said = self::findings::findings(document, &sides);
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
    let traced = traced(&sides);
    definitions.extend(traced.iter().take(1).flat_map(|traced| traced.definitions.clone()));
    if rows.is_empty() {
        sections.extend(beside(&sides));
        for traced in traced {
            findings.extend(traced.findings);
            sections.extend(traced.sections);
            facts.extend(traced.method.into_iter().flat_map(|list| list.facts));
        }
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
    let answer = answer(&sides, &said);
    Page {
        status: status(document, &book),
        trust: (!answer.is_empty()).then(|| book.trust(document.builds.len())),
        started_at: document.started_at.clone(),
        setup: facts::setup(document),
        dashboard: dashboard_between(
            DASHBOARD_OF_MACHINES,
            &document.recorded_plan(),
            (&document.started_at, document.ended_at.as_deref()),
        ),
        dyno_version: document.dyno_version.clone(),
        no_answer: if document.builds.is_empty() { NO_ANSWER } else { "" },
        answer,
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

/// Codes of the findings that compare builds.
const ANSWERS: [&str; 3] =
    ["second-build-took", "configuration-took", "remedy-without-second-build"];

/// The sentence that answers the question: how builds compare, or how long the only one took.
fn answer(sides: &[Side<'_>], said: &[Finding]) -> String {
    let compared = said.iter().find(|one| ANSWERS.contains(&one.statement.code.as_str()));
    if let Some(found) = compared {
        return sentence(&text(&found.statement));
    }
    let Some((side, duration_s)) = sides.first().and_then(|side| Some((side, side.duration_s()?)))
    else {
        return String::new();
    };
    let order = side.file.zip(side.score()).map(|(file, score)| {
        let order = text(&order_statement(score));
        format!(
            "; `{}` was read {order} (score {score:.2}, 0 random to 1 sequential)",
            file.label()
        )
    });
    let took = words::took(duration_s);
    sentence(&format!("the index build took {took}{}", order.unwrap_or_default()))
}

/// The pages of the traces. Of several, findings, sections and facts name their build.
fn traced(sides: &[Side<'_>]) -> Vec<Page> {
    let traces: Vec<(&str, TraceView<'_>)> =
        sides.iter().filter_map(|side| Some((side.name, side.trace?))).collect();
    let is_one = traces.len() == 1;
    let pages = traces.iter().map(|(name, trace)| match is_one {
        true => io_trace::page(trace),
        false => named(name, trace),
    });
    pages.collect()
}

fn named(name: &str, trace: &TraceView<'_>) -> Page {
    let mut page = io_trace::page(trace);
    let said = findings(trace.patterns, trace.activity);
    for (shown, said) in page.findings.iter_mut().zip(said) {
        shown.text = sentence(&format!("{name}: {}", text(&said.statement)));
    }
    for section in &mut page.sections {
        section.title = format!("{}, {name}", section.title).into();
        section.charts.iter_mut().for_each(|chart| chart.set_apart(name));
    }
    page.method.truncate(1);
    for fact in page.method.iter_mut().flat_map(|list| &mut list.facts) {
        fact.label = format!("{}, {name}", fact.label);
    }
    page
}

/// The reads of the collection in all builds, each from its own first call, on the same axes.
fn beside(sides: &[Side<'_>]) -> Option<Section> {
    let read = sides.iter().filter_map(|side| {
        Some((side.name, side.file?, side.trace?.patterns.first_ns.unwrap_or(0)))
    });
    let read: Vec<(&str, &FilePattern, i64)> = read.collect();
    let charts = io_trace::offsets_beside("builds", &read).into_iter();
    io_trace::where_and_when(charts.filter(|_| read.len() > 1).collect())
}

fn status(document: &IndexBuildDocument, book: &caveats::Book<'_>) -> Status {
    Status::of_run(document.status, document.status_reason.as_deref(), book.serious())
}
