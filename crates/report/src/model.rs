//! The one model that every renderer shows: numbers with their units, facts and caveats, and
//! which caveats touch which numbers. Renderers choose the layout and nothing else.

use crate::analysis::AnalysisModel;
use crate::caveat::{CaveatBook, NumberedCaveat, Topic};
use crate::experiment::figure::interval_of;
use crate::experiment::model::Section;
use crate::facts::{self, Fact};
use crate::instances::{self, InstancesModel};
use crate::io_trace::{self, TraceView};
use crate::series::{self, Charts, MAX_POINTS};
use crate::watched::WatchedModel;
use dyno_analyze::experiment::figures;
use dyno_analyze::experiment::run::RunAnalysis;
use dyno_record::model::{
    Arrivals, KeyShares, LatencySummary, OperationRecord, PhaseKind, PhaseRecord, RunDocument,
    RunStatus,
};
use dyno_record::quantity::Quantity;
use dyno_record::reader::Run;
use serde::Serialize;

/// What a report says about a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportModel {
    /// Name of the workload.
    pub name: String,
    /// What the workload is for; empty if the plan does not say.
    pub description: String,
    /// How the run ended, in words.
    pub status: Status,
    /// Start of the run as recorded, RFC 3339 in UTC.
    pub started_at: String,
    /// Kind and version of the server.
    pub server_name: String,
    /// Version of the program that measured.
    pub dyno_version: String,
    /// The result in four to five numbers; absent if no phase was recorded.
    pub headline: Option<Headline>,
    /// What the analysis says; absent if nothing was measured.
    pub analysis: Option<AnalysisModel>,
    /// What was watched meanwhile; empty of a run that was not watched.
    pub watched: WatchedModel,
    /// What a trace of file I/O shows; empty of a run without one.
    pub io_trace: Vec<Section>,
    /// The servers one by one, if there were several.
    pub instances: Option<InstancesModel>,
    /// The hosts that the load came from, if there were several.
    pub hosts: Option<InstancesModel>,
    /// All reasons to doubt the result, most serious first.
    pub caveats: Vec<NumberedCaveat>,
    /// What was done.
    pub workload: Vec<Fact>,
    /// Phases in the order they ran.
    pub phases: Vec<PhaseModel>,
    /// What was measured against.
    pub server: Vec<Fact>,
    /// Where the client ran.
    pub machine: Vec<Fact>,
    /// Whose machine that is.
    pub machine_title: &'static str,
    /// The resolved plan as text.
    pub plan: String,
    /// What the words mean.
    pub definitions: Vec<Definition>,
    /// Data of the charts. The HTML report alone has charts; it gets them apart from the text.
    #[serde(skip)]
    pub charts: Charts,
    /// Caveats of the charts.
    pub chart_marks: ChartMarks,
}

/// Numbers of the caveats that touch a chart, whatever phase they are about: charts show all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChartMarks {
    /// Rates over time.
    pub rate: Vec<usize>,
    /// Latencies over time and percentile curves: those of the high percentiles are included.
    pub latency: Vec<usize>,
    /// Failures over time.
    pub errors: Vec<usize>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// `complete`, `partial`, `failed` or `running`.
    pub label: &'static str,
    /// Why, if it is not complete.
    pub reason: Option<String>,
    /// Numbers of the caveats that touch it.
    pub marks: Vec<usize>,
}

impl Status {
    pub(crate) fn new(status: RunStatus, reason: Option<&str>, marks: Vec<usize>) -> Self {
        Status {
            label: match status {
                RunStatus::Running => "running",
                RunStatus::Complete => "complete",
                RunStatus::Partial => "partial",
                RunStatus::Failed => "failed",
            },
            reason: reason.map(str::to_owned),
            marks,
        }
    }
}

/// The result in a few numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Headline {
    /// The phase that they are from.
    pub phase: PhaseKind,
    /// The numbers.
    pub figures: Vec<Figure>,
}

/// A number with its label.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What it is.
    pub label: String,
    /// The number.
    pub value: Quantity,
    /// What it has to be read with, such as the offered rate.
    pub note: Option<String>,
    /// Whether it is bad news by itself (errors above 0).
    pub alarming: bool,
    /// Numbers of the caveats that touch it.
    pub marks: Vec<usize>,
}

/// What a report says about a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseModel {
    /// The phase.
    pub name: PhaseKind,
    /// What the phase is, in words.
    pub purpose: &'static str,
    /// Its length.
    pub duration: Quantity,
    /// The rate that the schedule asked for; absent with a closed loop.
    pub offered: Option<Quantity>,
    /// Operations that succeeded per second.
    pub achieved: Quantity,
    /// Caveats of the rates.
    pub rate_marks: Vec<usize>,
    /// One entry per operation, most frequent first.
    pub operations: Vec<OperationModel>,
    /// Caveats of mean and percentiles up to p99.
    pub latency_marks: Vec<usize>,
    /// Caveats of the higher percentiles and the maximum.
    pub tail_marks: Vec<usize>,
    /// Failed operations by kind, most frequent first.
    pub errors: Vec<Fact>,
    /// Caveats of the numbers of failures.
    pub error_marks: Vec<usize>,
    /// Arrivals, client cost, operations in flight, keys, connections.
    pub facts: Vec<Fact>,
    /// What has to be known to read the table.
    pub notes: Vec<String>,
}

/// What a report says about an operation of a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationModel {
    /// Name as in the files.
    pub name: String,
    /// Name in words.
    pub label: String,
    /// Successful operations.
    pub count: Quantity,
    /// Successful operations per second.
    pub rate: Quantity,
    /// Failed operations.
    pub errors: Quantity,
    /// Failed operations as a share of all that ended.
    pub error_share: Quantity,
    /// Documents returned or written; absent where it is one per operation.
    pub documents: Option<Quantity>,
    /// Values above the histogram's range.
    pub clamped: u64,
    /// Response time, service time and start delay.
    pub latencies: Vec<LatencyRow>,
}

/// One of the three times of an operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencyRow {
    /// `response`, `service` or `start delay`.
    pub clock: &'static str,
    /// Arithmetic mean.
    pub mean: Quantity,
    /// Smallest value.
    pub min: Quantity,
    /// Median.
    pub p50: Quantity,
    /// 90th percentile.
    pub p90: Quantity,
    /// 95th percentile.
    pub p95: Quantity,
    /// 99th percentile.
    pub p99: Quantity,
    /// 99.9th percentile.
    pub p99_9: Quantity,
    /// 99.99th percentile.
    pub p99_99: Quantity,
    /// Largest value.
    pub max: Quantity,
}

/// The meaning of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Definition {
    /// The term.
    pub term: &'static str,
    /// Its meaning in one or two sentences.
    pub meaning: &'static str,
}

/// The terms that reports use.
pub const DEFINITIONS: &[Definition] = &[
    Definition {
        term: "response time",
        meaning: "From the moment an operation should have started, by the schedule, to its end. \
                  It includes waiting in the client and is what a user of the system would see.",
    },
    Definition {
        term: "service time",
        meaning: "From handing the first byte to the network to the end of the answer: the \
                  server and the way to it, without the wait before.",
    },
    Definition {
        term: "start delay",
        meaning: "Response time minus service time: how long an operation waited for a free \
                  connection or for the load generator.",
    },
    Definition {
        term: "closed loop",
        meaning: "Each connection starts its next operation when the last one has ended. A slow \
                  server is asked less often, so waiting that users would see stays invisible.",
    },
    Definition {
        term: "offered and achieved rate",
        meaning: "Operations per second that the schedule asked for, and those that succeeded. \
                  Failed operations are never part of a rate or of a latency.",
    },
    Definition {
        term: "percentile",
        meaning: "p99 = 2 ms: 99 of 100 operations took at most 2 ms. Percentiles are read from \
                  histograms that are added up, never averaged; the histograms keep three digits.",
    },
    Definition {
        term: "Little ratio",
        meaning: "Operations in flight divided by rate × service time, measured apart from each \
                  other. It is 1 when the measurement agrees with itself.",
    },
];

/// What one of many intervals means.
pub(crate) const INTERVAL: Definition = Definition {
    term: "95 % interval",
    meaning: "Of many such intervals, 95 in 100 hold the true value. Two values whose intervals overlap may be \
              the same.",
};

/// What an operation needs of a resource.
pub(crate) const SERVICE_DEMAND: Definition = Definition {
    term: "service demand",
    meaning: "The time that one operation keeps one unit of a resource busy: busy time divided by operations \
              (D = U / X).",
};

/// What the check of a law is.
pub(crate) const LAW_CHECK: Definition = Definition {
    term: "law check",
    meaning: "A measured value against the one that a law makes of other measurements. A difference beyond the \
              uncertainty of both is an error of measurement, not a property of the server.",
};

/// The terms that a report uses.
fn definitions(is_analysed: bool) -> Vec<Definition> {
    let of_analysis = [INTERVAL, SERVICE_DEMAND, LAW_CHECK];
    let of_analysis = of_analysis.into_iter().filter(|_| is_analysed);
    DEFINITIONS.iter().copied().chain(of_analysis).collect()
}

impl ReportModel {
    /// Adds what a trace of file I/O shows that was made during the run, with its findings and its caveats.
    pub fn add_trace(&mut self, view: &TraceView<'_>) {
        let traced = io_trace::model(view);
        let analysis = self.analysis.get_or_insert_with(|| AnalysisModel {
            findings: Vec::new(),
            sections: Vec::new(),
        });
        analysis.findings.extend(traced.findings);
        let told = self.caveats.len();
        for mut caveat in traced.caveats {
            caveat.number += told;
            self.caveats.push(caveat);
        }
        self.definitions.extend(traced.definitions);
        for section in &traced.sections {
            self.charts
                .densities
                .extend(section.densities.iter().cloned());
            self.charts
                .trace_plots
                .extend(section.plots.iter().cloned());
        }
        self.io_trace = traced.sections;
    }

    /// Makes the model of a run with its analysis.
    pub fn new(run: &Run, analysis: Option<&RunAnalysis>) -> Self {
        let document = &run.document;
        let book = CaveatBook::new(&document.caveats);
        let result = result_phase(document);
        let names = operation_names(document, result);
        let mut charts = series::charts(run, names, result.map(|phase| phase.name), MAX_POINTS);
        let (watched, charted) = WatchedModel::new(run, analysis, &charts.time);
        charts.watched = charted;
        ReportModel {
            name: document.name.clone(),
            description: description(document),
            status: status(document, &book),
            started_at: document.started_at.clone(),
            server_name: facts::server_name(&document.server),
            dyno_version: document.dyno_version.clone(),
            headline: result.map(|phase| headline(document, phase, analysis, &book)),
            analysis: analysis.map(|analysis| AnalysisModel::new(analysis, &book)),
            watched,
            io_trace: Vec::new(),
            instances: result.and_then(|phase| instances::instances(document, phase)),
            hosts: result.and_then(|phase| instances::hosts(document, phase)),
            workload: facts::workload(document, &book),
            phases: document
                .phases
                .iter()
                .map(|phase| phase_model(phase, document.server.documents, &book))
                .collect(),
            server: facts::server(&document.server, &book),
            machine: facts::machine(document, &book),
            machine_title: match document.fleet {
                Some(_) => "Machine of the controller",
                None => "Machine of the client",
            },
            plan: facts::plan_text(&document.plan),
            definitions: definitions(analysis.is_some()),
            charts,
            chart_marks: chart_marks(&book),
            caveats: book.into_entries(),
        }
    }
}

fn chart_marks(book: &CaveatBook) -> ChartMarks {
    let mut latency = book.marks(Topic::Latency, None);
    latency.extend(book.marks(Topic::Tail, None));
    latency.sort_unstable();
    latency.dedup();
    ChartMarks {
        rate: book.marks(Topic::Rate, None),
        latency,
        errors: book.marks(Topic::Errors, None),
    }
}

/// The phase that the headline is about: the measure phase, or the last one that did something.
pub(crate) fn result_phase(document: &RunDocument) -> Option<&PhaseRecord> {
    let measured = |phase: &&PhaseRecord| phase.name == PhaseKind::Measure;
    let worked = |phase: &&PhaseRecord| phase.operations.values().any(|o| o.count + o.errors > 0);
    let phases = &document.phases;
    let measure = phases.iter().find(measured);
    let last_that_worked = phases.iter().rev().find(worked);
    measure.or(last_that_worked).or(phases.last())
}

/// Names of all operations of the run: those of the result phase first, most frequent first.
fn operation_names(document: &RunDocument, result: Option<&PhaseRecord>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for phase in result.into_iter().chain(&document.phases) {
        for (name, _) in by_count(phase) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    names
}

/// Operations of a phase, most frequent first, equal ones by name.
fn by_count(phase: &PhaseRecord) -> Vec<(&String, &OperationRecord)> {
    let mut operations: Vec<_> = phase.operations.iter().collect();
    operations.sort_by_key(|(_, record)| std::cmp::Reverse(record.count + record.errors));
    operations
}

fn description(document: &RunDocument) -> String {
    let text = document.plan.pointer("/description");
    text.and_then(|text| text.as_str()).unwrap_or("").to_owned()
}

fn status(document: &RunDocument, book: &CaveatBook) -> Status {
    Status::new(
        document.status,
        document.status_reason.as_deref(),
        book.marks(Topic::Status, None),
    )
}

fn headline(
    document: &RunDocument,
    phase: &PhaseRecord,
    analysis: Option<&RunAnalysis>,
    book: &CaveatBook,
) -> Headline {
    let marks = |topic| book.marks(topic, Some(phase.name));
    // Only the measure phase is analysed.
    let analysis = analysis.filter(|_| phase.name == PhaseKind::Measure);
    let mut rate = rate_figure(document, phase, marks(Topic::Rate));
    let rate_per_s = analysis.map(|analysis| &analysis.figures.rate_per_s);
    let warm_up = analysis
        .map(|analysis| analysis.figures.warm_up_s)
        .filter(|length_s| *length_s > 0.0)
        .map(Quantity::seconds);
    rate.note = with_interval(rate.note, rate_per_s, warm_up, Quantity::per_second);
    let mut figures = vec![rate];
    if let Some((name, operation)) = by_count(phase).first() {
        let summary = &operation.response_time_us;
        let levels = [
            ("p50", "p50", summary.p50, Topic::Latency),
            ("p99", "p99", summary.p99, Topic::Latency),
            ("p99_9", "p99.9", summary.p99_9, Topic::Tail),
        ];
        let found = analysis.and_then(|analysis| analysis.operations.get(*name));
        figures.extend(levels.map(|(key, level, value, topic)| {
            let figure = found.and_then(|found| found.response_us.get(key));
            let note = Some(facts::operation_label(name));
            Figure {
                label: format!("{level} response time"),
                value: quantity_if(operation.count > 0, value),
                note: with_interval(note, figure, warm_up, Quantity::microseconds),
                alarming: false,
                marks: marks(topic),
            }
        }));
    }
    figures.push(errors_figure(phase, marks(Topic::Errors)));
    let name = phase.name;
    Headline {
        phase: name,
        figures,
    }
}

/// A note with the interval of its figure, if there is one.
fn with_interval(
    note: Option<String>,
    figure: Option<&figures::Figure>,
    warm_up: Option<Quantity>,
    quantity: fn(f64) -> Quantity,
) -> Option<String> {
    let Some(range) = figure.and_then(|figure| interval_of(figure, quantity)) else {
        return note;
    };
    // The value is that of the whole phase, the interval that of its stationary part.
    let part = warm_up.map_or(String::new(), |length| {
        format!(" without the first {length}")
    });
    Some(format!("{}, 95 % {range}{part}", note?))
}

/// The rate of a load phase is that of its documents: what one command inserts is a setting.
fn rate_figure(document: &RunDocument, phase: &PhaseRecord, marks: Vec<usize>) -> Figure {
    let documents: u64 = phase.operations.values().map(|o| o.documents).sum();
    let is_load = phase.name == PhaseKind::Load && phase.duration_s > 0.0;
    let (label, rate_per_s, note) = if is_load {
        let commands = Quantity::per_second(phase.achieved_rate_per_s);
        let note = format!("{}, {commands} commands", rate_note(document, phase));
        (
            "documents inserted",
            documents as f64 / phase.duration_s,
            note,
        )
    } else {
        let note = rate_note(document, phase);
        ("achieved rate", phase.achieved_rate_per_s, note)
    };
    Figure {
        label: label.into(),
        value: Quantity::per_second(rate_per_s),
        note: Some(note),
        alarming: false,
        marks,
    }
}

/// A time in microseconds, or no value where nothing was measured: 0 would be a claim.
fn quantity_if(measured: bool, value_us: f64) -> Quantity {
    Quantity::microseconds(if measured { value_us } else { f64::NAN })
}

fn rate_note(document: &RunDocument, phase: &PhaseRecord) -> String {
    match phase.offered_rate_per_s {
        Some(offered) if offered > 0.0 => format!(
            "{} of {} offered",
            Quantity::ratio(phase.achieved_rate_per_s / offered),
            Quantity::per_second(offered)
        ),
        _ if phase.name == PhaseKind::Load => "as fast as it goes".into(),
        _ => match facts::schedule(&document.plan) {
            schedule if schedule.is_empty() => "closed loop".into(),
            schedule => schedule,
        },
    }
}

fn errors_figure(phase: &PhaseRecord, marks: Vec<usize>) -> Figure {
    // A run of an earlier version knows the failures by kind alone.
    let failed = match phase.failed {
        0 => phase.errors.values().sum(),
        failed => failed,
    };
    let succeeded = (phase.achieved_rate_per_s * phase.duration_s).round();
    let share = failed as f64 / (succeeded + failed as f64);
    let kinds = most_frequent(phase);
    let share = Quantity::ratio(share);
    let note = match kinds.as_slice() {
        [] => "no operation failed".into(),
        [(kind, _)] => format!("{share}, all {kind}"),
        [(kind, _), ..] => format!("{share}, mostly {kind}"),
    };
    Figure {
        label: "errors".into(),
        value: Quantity::count(failed),
        note: Some(note),
        alarming: failed > 0,
        marks,
    }
}

fn most_frequent(phase: &PhaseRecord) -> Vec<(&str, u64)> {
    let all = phase.errors.iter();
    let mut errors: Vec<(&str, u64)> = all
        .map(|(kind, count)| (kind.as_str(), *count))
        .filter(|(_, count)| *count > 0)
        .collect();
    errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    errors
}

fn phase_model(phase: &PhaseRecord, documents: Option<u64>, book: &CaveatBook) -> PhaseModel {
    let marks = |topic| book.marks(topic, Some(phase.name));
    PhaseModel {
        name: phase.name,
        purpose: match phase.name {
            PhaseKind::Load => "inserts the data set",
            PhaseKind::Warmup => "same load before measuring, not part of the result",
            PhaseKind::Measure => "the result",
        },
        duration: Quantity::seconds(phase.duration_s),
        offered: phase.offered_rate_per_s.map(Quantity::per_second),
        achieved: Quantity::per_second(phase.achieved_rate_per_s),
        rate_marks: marks(Topic::Rate),
        operations: by_count(phase)
            .into_iter()
            .map(|(name, record)| operation_model(name, record))
            .collect(),
        latency_marks: marks(Topic::Latency),
        tail_marks: marks(Topic::Tail),
        errors: most_frequent(phase)
            .into_iter()
            .map(|(kind, count)| Fact::new(kind, Quantity::count(count).to_string()))
            .collect(),
        error_marks: marks(Topic::Errors),
        facts: phase_facts(phase, documents, book),
        notes: phase_notes(phase),
    }
}

fn operation_model(name: &str, record: &OperationRecord) -> OperationModel {
    let finished = record.count + record.errors;
    let one_each = record.documents == record.count || record.documents == 0;
    OperationModel {
        name: name.to_owned(),
        label: facts::operation_label(name),
        count: Quantity::count(record.count),
        rate: Quantity::per_second(record.rate_per_s),
        errors: Quantity::count(record.errors),
        error_share: Quantity::ratio(record.errors as f64 / finished.max(1) as f64),
        documents: (!one_each).then(|| Quantity::count(record.documents)),
        clamped: record.clamped,
        latencies: if record.count == 0 {
            Vec::new()
        } else {
            vec![
                latency_row("response", &record.response_time_us),
                latency_row("service", &record.service_time_us),
                latency_row("start delay", &record.start_delay_us),
            ]
        },
    }
}

fn latency_row(clock: &'static str, summary: &LatencySummary) -> LatencyRow {
    LatencyRow {
        clock,
        mean: Quantity::microseconds(summary.mean),
        min: Quantity::microseconds(summary.min),
        p50: Quantity::microseconds(summary.p50),
        p90: Quantity::microseconds(summary.p90),
        p95: Quantity::microseconds(summary.p95),
        p99: Quantity::microseconds(summary.p99),
        p99_9: Quantity::microseconds(summary.p99_9),
        p99_99: Quantity::microseconds(summary.p99_99),
        max: Quantity::microseconds(summary.max),
    }
}

fn phase_facts(phase: &PhaseRecord, documents: Option<u64>, book: &CaveatBook) -> Vec<Fact> {
    let fact = |label: &str, value: String, topic: Option<Topic>| {
        let marks = topic.map(|topic| book.marks(topic, Some(phase.name)));
        Fact {
            marks: marks.unwrap_or_default(),
            ..Fact::new(label, value)
        }
    };
    let mut facts = Vec::new();
    if let Some(arrivals) = &phase.arrivals {
        let text = arrivals_text(arrivals);
        facts.push(fact("Arrivals", text, Some(Topic::Arrivals)));
    }
    facts.push(fact("Client CPU", cpu_text(phase), Some(Topic::Client)));
    let memory = Quantity::bytes(phase.client.max_rss_bytes);
    facts.push(fact("Client memory", format!("{memory} at most"), None));
    facts.push(fact(
        "In flight",
        in_flight_text(phase),
        Some(Topic::InFlight),
    ));
    if let Some(keys) = &phase.keys {
        facts.push(fact("Keys drawn", keys_text(keys, documents), None));
    }
    let reconnects = Quantity::count(phase.reconnects).to_string();
    facts.push(fact("Connections replaced", reconnects, None));
    facts
}

fn arrivals_text(arrivals: &Arrivals) -> String {
    let share = |part: u64| match arrivals.due {
        0 => String::new(),
        due => format!(" ({})", Quantity::ratio(part as f64 / due as f64)),
    };
    format!(
        "{} due, {} started, {}{} dropped, {}{} more than 1 ms late",
        Quantity::count(arrivals.due),
        Quantity::count(arrivals.started),
        Quantity::count(arrivals.dropped),
        share(arrivals.dropped),
        Quantity::count(arrivals.late),
        share(arrivals.late),
    )
}

fn cpu_text(phase: &PhaseRecord) -> String {
    let client = &phase.client;
    let total_s = client.cpu_user_s + client.cpu_system_s;
    let mut text = format!(
        "{} per operation, {} user + {} system",
        Quantity::microseconds(client.cpu_us_per_operation),
        Quantity::seconds(client.cpu_user_s),
        Quantity::seconds(client.cpu_system_s),
    );
    if phase.duration_s > 0.0 {
        let busy = Quantity::ratio(total_s / phase.duration_s);
        text += &format!(", {busy} of one core");
    }
    text
}

fn in_flight_text(phase: &PhaseRecord) -> String {
    let mean = phase.mean_in_flight;
    match phase.little_ratio {
        Some(ratio) => format!(
            "{mean:.2} on average, Little ratio {}",
            Quantity::plain(ratio)
        ),
        None => format!("{mean:.2} on average"),
    }
}

/// Draws per document below which the share of the hottest keys says more about chance than about the
/// distribution: with one draw each, even uniform keys give a quarter of the draws to a tenth of them.
const FEW_DRAWS_PER_DOCUMENT: f64 = 10.0;

fn keys_text(keys: &KeyShares, documents: Option<u64>) -> String {
    let few = documents
        .is_some_and(|documents| (keys.draws as f64) < FEW_DRAWS_PER_DOCUMENT * documents as f64);
    let doubt = if few {
        " (few draws per document: chance makes these shares larger)"
    } else {
        ""
    };
    format!(
        "{}; the hottest 1 % of the documents got {}, the hottest 10 % got {}{doubt}",
        Quantity::count(keys.draws),
        Quantity::ratio(keys.hottest_1_percent_ratio),
        Quantity::ratio(keys.hottest_10_percent_ratio),
    )
}

fn phase_notes(phase: &PhaseRecord) -> Vec<String> {
    let mut notes = Vec::new();
    if phase.operations.contains_key("read_modify_write") {
        notes.push(
            "A read-modify-write is also counted as one read and one update; it is one operation \
             of the rate."
                .to_owned(),
        );
    }
    let clamped: u64 = phase.operations.values().map(|o| o.clamped).sum();
    if clamped > 0 {
        let clamped = Quantity::count(clamped);
        notes.push(format!(
            "{clamped} values above 60 s are recorded as 60 s: maximum and high percentiles are lower bounds."
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn the_headline_is_about_the_measure_phase_and_its_dominant_operation() {
        let model = ReportModel::new(&testdata::closed_run(), None);
        let headline = model.headline.unwrap();
        assert_eq!(headline.phase, PhaseKind::Measure);
        let labels: Vec<_> = headline.figures.iter().map(|f| f.label.as_str()).collect();
        let expected = [
            "achieved rate",
            "p50 response time",
            "p99 response time",
            "p99.9 response time",
            "errors",
        ];
        assert_eq!(labels, expected);
        assert_eq!(headline.figures[1].note.as_deref(), Some("read"));
        assert_eq!(headline.figures[0].note.as_deref(), Some("closed loop"));
    }

    #[test]
    fn an_open_loop_tells_its_offered_rate_and_arrivals() {
        let model = ReportModel::new(&testdata::open_run(), None);
        let figures = model.headline.unwrap().figures;
        let note = figures[0].note.clone().unwrap();
        assert!(note.ends_with("of 1,000/s offered"), "{note}");
        let measure = model.phases.last().unwrap();
        assert_eq!(measure.facts[0].label, "Arrivals");
        assert!(!measure.facts[0].marks.is_empty());
        assert!(figures[4].alarming);
    }

    #[test]
    fn every_caveat_marks_something_that_the_model_shows() {
        let model = ReportModel::new(&testdata::open_run(), None);
        assert!(model.caveats.len() >= 4);
        let text = serde_json::to_string(&model).unwrap();
        let mut marks: Vec<usize> = Vec::new();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        collect_marks(&value, &mut marks);
        for caveat in &model.caveats {
            assert!(marks.contains(&caveat.number), "{caveat:?}");
        }
    }

    fn collect_marks(value: &serde_json::Value, marks: &mut Vec<usize>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    if name.ends_with("marks") && value.is_array() {
                        let list: Vec<usize> = serde_json::from_value(value.clone()).unwrap();
                        marks.extend(list);
                    }
                    collect_marks(value, marks);
                }
            }
            serde_json::Value::Array(items) => {
                items.iter().for_each(|item| collect_marks(item, marks));
            }
            _ => {}
        }
    }

    #[test]
    fn a_run_without_phases_has_no_headline() {
        let model = ReportModel::new(&testdata::run(testdata::closed_document(), &[]), None);
        assert_eq!(model.headline, None);
        assert!(model.phases.is_empty());
    }

    #[test]
    fn an_operation_that_never_succeeded_has_no_latencies() {
        let intervals = [testdata::window(PhaseKind::Measure, 0, 0).failures("read", "timeout", 3)];
        let model = ReportModel::new(
            &testdata::run(testdata::closed_document(), &intervals),
            None,
        );
        assert!(model.phases[0].operations[0].latencies.is_empty());
        let figures = model.headline.unwrap().figures;
        assert_eq!(
            figures[1].value.to_string(),
            dyno_record::quantity::NO_VALUE
        );
        assert_eq!(figures[4].note.as_deref(), Some("100 %, all timeout"));
    }
}
