//! Reports of messages through a database: their latency, its growth and the causes, for each driver.

mod charts;
mod repeated;
mod tables;
mod view;

use crate::caveat::{CaveatBook, NumberedCaveat, Severity, numbered};
use crate::costs;
use crate::error::ReportError;
use crate::experiment::figure::interval_or_why;
use crate::facts::{
    DASHBOARD_OF_MACHINES, dashboard_between, plan_text, server_of, settings_of, setup,
};
use crate::machine;
use crate::options::{PageFormat, RenderOptions};
use crate::page::{Fact, Figure, NO_ANSWER, Page, Status};
use crate::render::show;
use crate::terms::terms;
use dyno_analyze::costs::work::{NamedCosts, of_cells};
use dyno_analyze::messages::across;
use dyno_analyze::messages::lines::{self, Line};
use dyno_analyze::messages::repeated::{Repeated, is_repeated, repeated};
use dyno_plan::tail::MESSAGE_BYTES;
use dyno_record::experiment::Finding;
use dyno_record::quantity::Quantity;
use dyno_record::tail::{
    CellStatus, ConsumerRecord, DriverRecord, EMBEDDED_PRODUCT, HostClock, MOST_OF_EMBEDDED,
    Measured, TailDocument,
};
use serde::Serialize;
use std::collections::BTreeMap;

pub use view::TailView;

/// The JSON document of an experiment.
#[derive(Serialize)]
struct TailJson<'a> {
    tail: &'a TailDocument,
    /// Each combination over its repetitions; absent if each was measured once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repeated: Vec<Repeated>,
    /// Costs of each cell per received message; absent if none are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    costs: Vec<NamedCosts>,
    /// Findings about all cells.
    findings: Vec<Finding>,
}

/// Renders an experiment. The text ends with a newline.
///
/// # Errors
/// [`ReportError::Template`] or [`ReportError::Json`]; no content of an experiment causes them.
pub fn render(
    view: &TailView<'_>,
    format: PageFormat,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    let document = || TailJson {
        tail: view.document,
        repeated: over_repetitions(view.document),
        costs: of_cells(view.document),
        findings: across::findings(view.document),
    };
    show(format, options, || page(view), document)
}

/// The combinations with their intervals as a table for a spreadsheet, including combinations measured once.
pub fn csv(document: &TailDocument) -> String {
    repeated::csv(&repeated(document))
}

/// The combinations over their repetitions; empty if each was measured once.
fn over_repetitions(document: &TailDocument) -> Vec<Repeated> {
    if is_repeated(document) { repeated(document) } else { Vec::new() }
}

/// The page of an experiment.
pub fn page(view: &TailView<'_>) -> Page {
    let document = view.document;
    let lines = lines::lines(document);
    let findings = across::findings(document);
    let repeated = over_repetitions(document);
    let mut sections: Vec<_> = repeated::section(&repeated).into_iter().collect();
    sections.extend(charts::sections(view, &lines));
    sections.extend(tables::sections(document, &lines));
    sections.extend(costs::of_cells(document));
    let mut facts = facts(document);
    facts.retain(|fact| !fact.value.is_empty());
    let machine = machine::list(document.environment.as_ref(), &CaveatBook::new(&[]));
    let hosts = document.hosts.iter();
    let hosts = machine::of_hosts(hosts.map(|one| (one.host.as_str(), &one.environment)));
    let base = Page::new(
        "messages",
        format!("Messages through the database, {}", document.name),
        "How long does a message take from its producer to its consumer, does its latency grow over the run, and where is the time spent?"
            .to_owned(),
        "complete",
    );
    Page {
        status: status(document),
        setup: setup([
            messages(document),
            server_of(&document.server),
            document.environment.as_ref().map(machine::in_short).unwrap_or_default(),
        ]),
        started_at: document.started_at.clone(),
        dashboard: dashboard_between(
            DASHBOARD_OF_MACHINES,
            &document.recorded_plan(),
            (&document.started_at, document.ended_at.as_deref()),
        ),
        dyno_version: document.dyno_version.clone(),
        no_answer: if lines.is_empty() { NO_ANSWER } else { "" },
        answer: answer(document, &lines, &repeated),
        headline: figures(document, &lines, &repeated),
        findings: findings.iter().map(Into::into).collect(),
        caveats: caveats(document),
        sections,
        method: Page::method_of(facts).into_iter().chain(machine).chain(hosts).collect(),
        plan: plan_text(&document.plan),
        definitions: terms(&["messages"]),
        ..base
    }
}

fn messages(document: &TailDocument) -> String {
    let settings = document.cells.first().map(|cell| &cell.settings);
    settings.map_or(String::new(), |settings| {
        format!("{} messages per producer", Quantity::count(settings.messages))
    })
}

fn caveats(document: &TailDocument) -> Vec<NumberedCaveat> {
    let said = document.caveats.iter();
    numbered(said.map(|said| NumberedCaveat::said(said, ("doubt", Severity::Serious))).collect())
}

fn status(document: &TailDocument) -> Status {
    let serious = caveats(document).into_iter();
    let serious = serious.filter(|caveat| caveat.severity == Severity::Serious);
    let marks = serious.map(|caveat| caveat.number).collect();
    Status::of_run(document.status, document.status_reason.as_deref(), marks)
}

/// The sentence that answers the question: the lowest latency, whether it grows, and lost messages.
fn answer(document: &TailDocument, lines: &[Line<'_>], repeated: &[Repeated]) -> String {
    let Some(fastest) = fastest(document, lines, repeated) else {
        return String::new();
    };
    let (grows, all) = (growing(lines), lines.len());
    let trend = match (grows, all) {
        (0, _) => "latency does not grow over the run".to_owned(),
        (_, 1) => "latency grows over the run".to_owned(),
        (grows, all) => format!("latency grows over the run with {grows} of {all} producers"),
    };
    let lost = match lost(document) {
        0 => "no message was lost".to_owned(),
        1 => "1 message was lost".to_owned(),
        lost => format!("{} messages were lost", Quantity::count(lost)),
    };
    let with = fastest.note.unwrap_or_default();
    format!("The lowest median latency is {} ({with}); {trend}; {lost}.", fastest.value)
}

/// Producers with a latency that grows over the run.
fn growing(lines: &[Line<'_>]) -> usize {
    use dyno_record::tail::Cause::{Stationary, TooFew};
    let grows = |line: &&Line<'_>| !matches!(line.producer.verdict.cause, Stationary | TooFew);
    lines.iter().filter(grows).count()
}

fn lost(document: &TailDocument) -> u64 {
    consumers(document).map(|consumer| consumer.sum.lost).sum()
}

fn consumers(document: &TailDocument) -> impl Iterator<Item = &ConsumerRecord> {
    measured(document).flat_map(|measured| &measured.consumers)
}

/// Total messages sent, lost and received twice, and the fastest median.
fn figures(document: &TailDocument, lines: &[Line<'_>], repeated: &[Repeated]) -> Vec<Figure> {
    if lines.is_empty() {
        return Vec::new();
    }

    let acknowledged: u64 = lines.iter().map(|line| line.producer.sum.acknowledged).sum();
    let lost = lost(document);
    let twice: u64 = consumers(document).map(|consumer| consumer.sum.duplicated).sum();
    let partial = document.cells.iter().any(|cell| cell.status == CellStatus::Partial);
    let note = partial.then(|| "some were in flight when it was interrupted".to_owned());
    let grows = growing(lines);
    let mut figures = vec![
        Figure::new("messages acknowledged", Quantity::count(acknowledged)),
        Figure {
            alarming: lost > 0 && !partial,
            ..Figure::new("lost", Quantity::count(lost)).with_note(note)
        },
        Figure { alarming: twice > 0, ..Figure::new("received twice", Quantity::count(twice)) },
        Figure::new("latency grows with", Quantity::count(grows as u64))
            .with_note(format!("of {} producers", lines.len())),
    ];
    figures.extend(fastest(document, lines, repeated));
    figures.extend(small_collection(document));
    figures
}

/// The lowest median, over the repetitions if there are any.
fn fastest(document: &TailDocument, lines: &[Line<'_>], repeated: &[Repeated]) -> Option<Figure> {
    let medians = repeated.iter().filter_map(|one| Some((one, one.median_us?)));
    let least = medians.min_by(|left, right| left.1.value.total_cmp(&right.1.value));
    let (median_us, note) = if let Some((one, median)) = least {
        let why = "too few repetitions";
        let range = interval_or_why(&median, Quantity::microseconds, why);
        (median.value, format!("{}, {range}", one.label))
    } else {
        let medians = lines.iter().filter_map(|line| Some((line, line.total()?.p50_us)));
        let (line, median_us) = medians.min_by(|left, right| left.1.total_cmp(&right.1))?;
        (median_us, lines::label(document, line.cell))
    };
    let median = Quantity::microseconds(median_us);
    Some(Figure::new("lowest median latency", median).with_note(note))
}

/// A note that the collection has no room for all messages because of the server.
fn small_collection(document: &TailDocument) -> Option<Figure> {
    let settings = &document.cells.first()?.settings;
    let plan = document.plan.get("tail");
    let is_chosen = plan.is_some_and(|plan| plan.get("capped_size").is_some());
    let is_embedded = document.server.product.starts_with(EMBEDDED_PRODUCT);
    let capped_bytes = settings.capped_bytes;
    let messages = settings.messages * settings.producers.len() as u64;
    // The same limit as the plan, which gives all messages room.
    let is_small = messages * (settings.size_bytes + MESSAGE_BYTES) > capped_bytes;
    (is_embedded && !is_chosen && is_small && capped_bytes == MOST_OF_EMBEDDED).then(|| {
        Figure::new("capped collection", Quantity::bytes(capped_bytes)).with_note(
            "limits the measurement: the embedded server is slow with a larger collection; `mongod` has room for all messages"
                .to_owned(),
        )
    })
}

fn facts(document: &TailDocument) -> Vec<Fact> {
    let Some(cell) = document.cells.first() else {
        return Vec::new();
    };
    let settings = &cell.settings;
    let messages = format!(
        "{} per producer, with {} added to each",
        Quantity::count(settings.messages),
        Quantity::bytes(settings.size_bytes)
    );
    let schedule = match settings.schedule {
        None => "each as soon as possible".to_owned(),
        Some(schedule) => format!("{} due", Quantity::per_second(schedule.rate_per_s)),
    };
    let work = match settings.delay_us {
        0 => String::new(),
        us => format!("{} per message", Quantity::microseconds(us as f64)),
    };
    vec![
        Fact::new("Messages", messages),
        Fact::new("Schedule", schedule),
        Fact::new("At once", at_once(settings.producers.len(), settings.consumers.len())),
        Fact::new("Consumers read by", settings.mode.as_str()),
        Fact::new("Work of the consumer", work),
        Fact::new(
            "Collection",
            format!(
                "{}.{}, capped at {}",
                settings.database,
                settings.collection,
                Quantity::bytes(settings.capped_bytes)
            ),
        ),
        Fact::new(
            "Write concern",
            if settings.journal {
                format!("{}, journal=true", settings.write_concern)
            } else {
                settings.write_concern.clone()
            },
        ),
        Fact::new("Server", server_of(&document.server)),
        Fact::new("Settings of the server", settings_of(&document.server, &[])),
        Fact::new("Heartbeats", heartbeats(document)),
        Fact::new("Clock", document.clock.clone()),
        Fact::new("Clocks of other hosts", clocks(document)),
        Fact::new("CPUs", Quantity::count(document.cpus)),
        Fact::new("Drivers", drivers(document)),
        Fact::new("Left out", left_out(document)),
    ]
}

/// The measured cells.
fn measured(document: &TailDocument) -> impl Iterator<Item = &Measured> {
    document.cells.iter().filter_map(|cell| cell.measured.as_ref())
}

/// The drivers of all producers and consumers.
fn drivers_of(document: &TailDocument) -> impl Iterator<Item = &DriverRecord> {
    measured(document).flat_map(|measured| {
        let producers = measured.producers.iter().map(|one| &one.driver);
        producers.chain(measured.consumers.iter().map(|one| &one.driver))
    })
}

fn heartbeats(document: &TailDocument) -> String {
    let monitors = drivers_of(document).any(|driver| driver.version.monitors);
    if document.polls_heartbeats && monitors {
        "drivers with monitoring are configured to poll: some refuse this server's streamed replies"
            .to_owned()
    } else {
        String::new()
    }
}

fn at_once(producers: usize, consumers: usize) -> String {
    let plural = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    };
    format!(
        "{} and {}; the cells run one after the other",
        plural(producers, "producer"),
        plural(consumers, "consumer")
    )
}

/// Offsets of the clocks of other hosts over all cells.
fn clocks(document: &TailDocument) -> String {
    let mut hosts: BTreeMap<&str, Vec<&HostClock>> = BTreeMap::new();
    for clock in measured(document).flat_map(|measured| &measured.clocks) {
        hosts.entry(&clock.host).or_default().push(clock);
    }
    let said = hosts.into_iter().map(|(host, clocks)| {
        let offsets = clocks.iter().flat_map(|clock| [clock.offset_start_ns, clock.offset_end_ns]);
        let ms = |ns: i64| format!("{:+.3} ms", ns as f64 / 1e6);
        let (least, most) = offsets.fold((i64::MAX, i64::MIN), |(least, most), offset| {
            (least.min(offset), most.max(offset))
        });
        let uncertainty_ns = clocks.iter().map(|clock| clock.uncertainty_ns).max().unwrap_or(0);
        format!(
            "{host}: {} to {} ahead of this one, ± {:.3} ms",
            ms(least),
            ms(most),
            uncertainty_ns as f64 / 1e6
        )
    });
    said.collect::<Vec<_>>().join("; ")
}

fn drivers(document: &TailDocument) -> String {
    let texts: BTreeMap<&str, String> = drivers_of(document)
        .map(|driver| {
            let version = &driver.version;
            let text = format!(
                "{}: {} {} on {} {}",
                driver.name,
                version.driver,
                version.driver_version,
                version.runtime,
                version.runtime_version
            );
            (driver.name.as_str(), text)
        })
        .collect();
    texts.into_values().collect::<Vec<_>>().join("; ")
}

fn left_out(document: &TailDocument) -> String {
    let texts: Vec<String> = document
        .skipped
        .iter()
        .map(|driver| format!("{} ({})", driver.name, driver.reason))
        .collect();
    texts.join("; ")
}
