//! Reports of a finished run.

mod analysis;
pub(crate) mod answer;
mod charts;
mod headline;
mod instances;
mod json;
mod kpi;
mod phases;
pub(crate) mod result;
mod series;

use crate::caveat::{CaveatBook, NO_INTERVAL, Topic, Trust};
use crate::costs;
use crate::error::ReportError;
use crate::facts::{self, UNKNOWN};
use crate::io_trace::{self, TraceView};
use crate::machine;
use crate::options::{Format, PageFormat, RenderOptions};
use crate::page::{Definition, Fact, FactList, Page, Section, Status};
use crate::render::show;
use crate::terms::terms;
use crate::watched::Watched;
use crate::ycsb;
use dyno_analyze::costs::of_phase;
use dyno_analyze::experiment::run::RunAnalysis;
use dyno_analyze::grouping::distinct;
use dyno_record::experiment::Figure;
use dyno_record::model::{FleetRecord, PhaseKind, PhaseRecord, RunDocument};
use dyno_record::reader::Run;
use result::{by_count, result_phase};
use series::MAX_POINTS;

/// Answer of a page without a recorded phase.
const NO_PHASE: &str = "The run recorded no phases and therefore has no result.";

/// Renders a run with its analysis, if there is one. YCSB output and key figures, which scripts read, do not include the
/// analysis. The text ends with a newline.
///
/// # Errors
/// [`ReportError`] if the run lacks data for YCSB output or key figures; the other formats accept any run.
pub fn render(
    run: &Run,
    analysis: Option<&RunAnalysis>,
    format: Format,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    render_traced(run, analysis, None, format, options)
}

/// Renders a run during which file I/O was traced.
///
/// # Errors
/// The errors of [`render`].
pub fn render_traced(
    run: &Run,
    analysis: Option<&RunAnalysis>,
    trace: Option<&TraceView<'_>>,
    format: Format,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    let format = match format {
        Format::Ycsb => return ycsb::render(run, &options.ycsb),
        Format::Kpi => return kpi::render(&run.document),
        format => PageFormat::from_format(format).ok_or(ReportError::NoTable)?,
    };
    show(format, options, || page(run, analysis, trace), || json::document(run, analysis, trace))
}

/// The page of a run.
pub fn page(run: &Run, analysis: Option<&RunAnalysis>, trace: Option<&TraceView<'_>>) -> Page {
    let document = &run.document;
    let book = CaveatBook::new(&document.caveats);
    let result = result_phase(document);
    let names = operation_names(document, result);
    let mut time = series::charts(run, names, result.map(|phase| phase.name), MAX_POINTS);
    let watched = Watched::new(run, analysis, &mut time);
    let mut sections: Vec<Section> = charts::over_time(&time, &book).into_iter().collect();
    sections.extend(watched.changes);
    sections.extend(watched.panels);
    sections.extend(charts::distribution(&time, &book));
    sections.extend(phases::sections(document, &book));
    sections.extend(result.and_then(|phase| cost(document, phase, analysis)));
    sections.extend(result.and_then(|phase| instances::instances(document, phase)));
    sections.extend(result.and_then(|phase| instances::hosts(document, phase)));
    sections.extend(
        analysis.into_iter().flat_map(|analysis| analysis::sections(document, analysis, &book)),
    );
    sections.extend(watched.tables);
    let title = format!("Workload {}", document.name);
    let mut page = Page {
        status: Status::of_run(
            document.status,
            document.status_reason.as_deref(),
            book.marks(Topic::Status, None),
        ),
        subject: facts::server_at(&document.server),
        setup: facts::setup_of_run(document),
        started_at: document.started_at.clone(),
        dashboard: facts::dashboard(document),
        dyno_version: document.dyno_version.clone(),
        no_answer: if result.is_some() { "" } else { NO_PHASE },
        verdict: watched.verdict,
        findings: analysis
            .map_or(Vec::new(), |analysis| analysis.findings.iter().map(Into::into).collect()),
        sections,
        method: method(document, &book),
        plan: facts::plan_text(&document.plan),
        definitions: definitions(analysis.is_some()),
        time: (!time.time.start_s.is_empty()).then_some(time),
        ..Page::new("run", title, description(document), "complete")
    };
    if let Some(phase) = result {
        page.headline_title = format!("Result of phase {}", phase.name.as_str()).into();
        page.headline = headline::headline(document, phase, analysis, &book);
        (page.answer, page.trust) = answered(document, phase, analysis);
    }
    page.caveats = book.into_entries();
    if let Some(view) = trace {
        add_trace(&mut page, io_trace::page(view));
    }
    page
}

/// The answer, and how far it can be trusted.
fn answered(
    document: &RunDocument,
    phase: &PhaseRecord,
    analysis: Option<&RunAnalysis>,
) -> (String, Option<Trust>) {
    let analysis = analysis.filter(|_| phase.name == PhaseKind::Measure);
    let main = by_count(document, phase).first().map(|(name, _)| name.as_str());
    let missing = analysis.is_some_and(|analysis| {
        analysis.without_interval.iter().any(|one| {
            one.figure == "rate" && one.operation.is_none()
                || one.figure == "p99" && one.operation.as_deref() == main
        })
    });
    let lack = missing.then_some(NO_INTERVAL);
    let trust = CaveatBook::new(&document.caveats).trust(1, lack);
    (answer::answer(document, phase, analysis), Some(trust))
}

/// The costs of the result, if they were counted.
fn cost(
    document: &RunDocument,
    phase: &PhaseRecord,
    analysis: Option<&RunAnalysis>,
) -> Option<Section> {
    let analysed = analysis.and_then(|analysis| analysis.figures.costs.clone());
    let rate = Figure::bare(phase.achieved_rate_per_s);
    let costs = analysed.or_else(|| of_phase(document, phase, rate))?;
    let used = document.consumption.iter().find(|used| used.phase == phase.name);
    Some(costs::section(&costs, used, phase))
}

/// Adds the page of a file I/O trace made during the run. Its caveats are numbered after the run's caveats.
fn add_trace(page: &mut Page, traced: Page) {
    let known = page.caveats.len();
    page.findings.extend(traced.findings);
    page.caveats.extend(traced.caveats.into_iter().map(|mut caveat| {
        caveat.number += known;
        caveat
    }));
    page.definitions.extend(traced.definitions);
    page.sections.extend(traced.sections);
}

fn description(document: &RunDocument) -> String {
    document.recorded_plan().description.unwrap_or_default()
}

fn method(document: &RunDocument, book: &CaveatBook) -> Vec<FactList> {
    let title = match document.fleet {
        Some(_) => machine::OF_CONTROLLER,
        None => "Machine of the client",
    };
    let mut machine = machine::facts(&document.environment, book);
    if document.environment.data_storage.is_none() {
        machine.push(Fact::new("Data folder", UNKNOWN));
    }
    let lists = [
        ("Workload", facts::workload(document, book)),
        ("Server", facts::server(&document.server, book)),
        (title, machine),
    ];
    let of_run = lists.map(|(title, facts)| FactList { title: title.into(), facts });
    let of_servers = machine::of_servers(document.server_machines().into_iter());
    of_run.into_iter().chain(of_servers).chain(hosts(document)).collect()
}

/// The machines of a fleet, each once.
fn hosts(document: &RunDocument) -> Vec<FactList> {
    let known = document.fleet.iter().flat_map(FleetRecord::machines);
    machine::of_hosts(known).collect()
}

/// Names of all operations of the run: operations of the result phase first, most frequent first.
fn operation_names(document: &RunDocument, result: Option<&PhaseRecord>) -> Vec<String> {
    let names =
        result.into_iter().chain(&document.phases).flat_map(|phase| by_count(document, phase));
    distinct(names.map(|(name, _)| name.clone()))
}

/// Terms used on the page, with or without an analysis.
fn definitions(is_analysed: bool) -> Vec<Definition> {
    match is_analysed {
        true => terms(&["load", "run", "interval", "service-demand", "law-check"]),
        false => terms(&["load", "run"]),
    }
}

#[cfg(test)]
mod tests;
