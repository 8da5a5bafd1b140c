//! Reports of an index build: how long it took, in which order the documents were read for it, and what became of
//! both when something was done about their order. The parts about the traces are those of [`crate::io_trace`].

mod caveats;
mod facts;
mod figures;
mod findings;
mod sides;
mod tables;
mod words;

use crate::RenderOptions;
use crate::error::ReportError;
use crate::experiment::ExperimentFormat;
use crate::experiment::model::{ExperimentModel, FindingModel};
use crate::facts::plan_text;
use crate::io_trace::{self, TraceJson, TracePair, TraceView};
use crate::model::{Definition, Status};
use dyno_analyze::access_pattern::Activity;
use dyno_record::experiment::Finding;
use dyno_record::index_build::IndexBuildDocument;
use serde::Serialize;
use std::sync::LazyLock;

/// An index build with the traces of its builds.
#[derive(Clone, Debug)]
pub struct IndexBuildView<'a> {
    /// The experiment.
    pub document: &'a IndexBuildDocument,
    /// Traces by the name of their build, in the order of the builds. A trace may be missing, and there may be one of a
    /// build that failed. All are reported as those of an index build, whatever they say they are of.
    pub traces: Vec<(String, TraceView<'a>)>,
}

/// What is traced: an index build goes through its collection record by record.
static ACTIVITY: LazyLock<Activity> = LazyLock::new(|| Activity {
    subject: "index build".to_owned(),
    scans_records: true,
});

/// The document of a report for programs.
#[derive(Serialize)]
struct IndexBuildJson<'a> {
    index_build: &'a IndexBuildDocument,
    /// What follows from all of it; what follows from a trace stands with the trace.
    findings: Vec<Finding>,
    traces: Vec<NamedTrace<'a>>,
}

/// A trace with the name of its build.
#[derive(Serialize)]
struct NamedTrace<'a> {
    build: &'a str,
    #[serde(flatten)]
    trace: TraceJson<'a>,
}

/// Renders an index build. The text ends with a line end.
///
/// # Errors
/// [`ReportError::Template`] or [`ReportError::Json`], which no content of an index build causes.
pub fn render(
    view: &IndexBuildView<'_>,
    format: ExperimentFormat,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    if format != ExperimentFormat::Json {
        return io_trace::shown(&model(view), format, options);
    }
    let traces = view.traces.iter().map(|(name, trace)| NamedTrace {
        build: name,
        trace: of_index_build(trace).json(),
    });
    let document = IndexBuildJson {
        index_build: view.document,
        findings: findings::findings(view.document, &sides::sides(view)),
        traces: traces.collect(),
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// The model of an index build.
pub fn model(view: &IndexBuildView<'_>) -> ExperimentModel {
    let document = view.document;
    let sides = sides::sides(view);
    let book = caveats::book(document, &sides);
    let mut sections = tables::sections(document, &sides);
    let said = findings::findings(document, &sides);
    let mut findings: Vec<FindingModel> = said.iter().map(FindingModel::new).collect();
    let mut facts = facts::facts(document);
    let mut definitions = DEFINITIONS.to_vec();
    if let Some(traced) = traced(view) {
        findings.extend(traced.findings);
        sections.extend(traced.sections);
        facts.extend(traced.facts);
        definitions.extend(traced.definitions);
    }
    facts.retain(|fact| !fact.value.is_empty());
    let question = match sides.len() {
        0 | 1 => "How long does the index take, and in which order are the documents read for it?",
        _ => {
            "How long does the index take, in which order are the documents read for it, and what did the remedy change?"
        }
    };
    let base = ExperimentModel::of_runs(
        "index build",
        format!("Index build, {}", document.name),
        question.to_owned(),
        "complete",
    );
    ExperimentModel {
        status: status(document, &book),
        started_at: document.started_at.clone(),
        dyno_version: document.dyno_version.clone(),
        has_answer: !document.builds.is_empty(),
        headline: figures::figures(document, &sides, &book),
        findings,
        sections,
        facts,
        plan: plan_text(&document.plan),
        definitions,
        caveats: book.into_caveats(),
        ..base
    }
}

fn of_index_build<'a>(trace: &TraceView<'a>) -> TraceView<'a> {
    TraceView {
        activity: &ACTIVITY,
        ..*trace
    }
}

/// The report of the traces alone: of the first two side by side, or of the only one.
fn traced(view: &IndexBuildView<'_>) -> Option<ExperimentModel> {
    let mut traces = view.traces.iter().map(|(_, trace)| of_index_build(trace));
    let first = traces.next()?;
    Some(match traces.next() {
        Some(second) => io_trace::pair_model(&TracePair {
            title: "",
            before: first,
            after: second,
        }),
        None => io_trace::model(&first),
    })
}

fn status(document: &IndexBuildDocument, book: &caveats::Book<'_>) -> Status {
    Status::new(
        document.status,
        document.status_reason.as_deref(),
        book.serious(),
    )
}

/// The terms of an index build, besides those of its traces.
const DEFINITIONS: &[Definition] = &[
    Definition {
        term: "build",
        meaning: "One creation of the index on documents that are there already: from sending the command to its answer.",
    },
    Definition {
        term: "cold",
        meaning: "The server was restarted and the page cache of the machine dropped before the build, so that what is read comes from the \
                  disk. What the server read at its start may still be in its own cache; the table says how much that was.",
    },
    Definition {
        term: "remedy",
        meaning: "What was done between two builds so that the documents lie on the disk in the order in which a scan reads them.",
    },
    Definition {
        term: "content hash",
        meaning: "SHA-256 of the BSON of each document, added up, so that the order of the documents does not matter. With the same number of \
                  documents and the same content hash, every document is what it was.",
    },
];
