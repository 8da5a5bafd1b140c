//! The cost of a result per operation, as one table for a run, for several levels, or for a comparison. Index builds have
//! the same costs per document, and messages per message.

mod work;

use crate::experiment::difference::{change, changes};
use crate::experiment::figure::interval;
use crate::page::Section;
use crate::page::table::{Cell, Column, Table, Tone};
use dyno_record::consumption::{Consumption, Counted, CountedBy, DeviceUse, ReadTime, Unknown};
use dyno_record::experiment::{
    ChangedDocuments, Cost, CostBasis, CostKind, CostRatio, Costs, Experiment, Figure,
};
use dyno_record::model::PhaseRecord;
use dyno_record::quantity::{NO_VALUE, Quantity, Unit};

pub(crate) use work::{of_builds, of_cells};

/// An interval within this share of its value to each side is not shown.
const NARROW_RATIO: f64 = 0.005;

/// An interval whose ends differ by this factor is meaningless.
const VAGUE: f64 = 100.0;

/// Name of a kind of cost outside of a table about operations.
pub(crate) fn label_of_one(kind: CostKind) -> String {
    match kind.is_per_operation() {
        true => format!("{} / operation", label(kind)),
        false => label(kind).to_owned(),
    }
}

/// How a kind of cost is shown.
struct Shown {
    label: &'static str,
    unit: Unit,
    /// After the number; a price has its currency instead.
    suffix: &'static str,
    /// Rank of its column on a narrow terminal; lower ranks are left out first.
    rank: u8,
}

fn shown(kind: CostKind) -> Shown {
    use Unit::{Bytes, Microseconds, Parameter};
    let (label, unit, suffix, rank) = match kind {
        CostKind::ServerCpu => ("server CPU", Microseconds, "", 200),
        CostKind::ClientCpu => ("client CPU", Microseconds, "", 160),
        CostKind::ContextSwitches => ("context switches", Parameter, "", 120),
        CostKind::ReadBytes => ("device reads", Bytes, "", 160),
        CostKind::ReadRequests => ("read requests", Parameter, "", 100),
        CostKind::WrittenBytes => ("device writes", Bytes, "", 180),
        CostKind::WriteRequests => ("write requests", Parameter, "", 100),
        CostKind::Flushes => ("flushes", Parameter, "", 140),
        CostKind::CacheMisses => ("cache misses", Parameter, "", 140),
        CostKind::JournalSyncs => ("journal syncs", Microseconds, "", 140),
        CostKind::ReceivedBytes => ("server received", Bytes, "", 120),
        CostKind::SentBytes => ("server sent", Bytes, "", 120),
        CostKind::WriteAmplification => ("write amplification", Parameter, " ×", 180),
        CostKind::SpaceAmplification => ("space amplification", Parameter, " ×", 140),
        CostKind::ResidentBytes => ("server memory", Bytes, "", 80),
        CostKind::PeakBytes => ("server memory, peak", Bytes, "", 80),
        CostKind::Energy => ("energy of a million", Parameter, " J", 140),
        CostKind::Price => ("price of a million", Parameter, "", 200),
    };
    Shown { label, unit, suffix, rank }
}

/// Name of a kind of cost in a table.
pub(crate) fn label(kind: CostKind) -> &'static str {
    shown(kind).label
}

/// Name of an unreadable value in a sentence.
fn counted(what: Counted) -> &'static str {
    match what {
        Counted::ServerCpu => "CPU time of the servers",
        Counted::ClientCpu => "CPU time of the drivers",
        Counted::ContextSwitches => "context switches of the servers",
        Counted::Memory => "memory of the servers",
        Counted::Device => "bytes that the device read and wrote",
        Counted::DeviceReads => "reads of the device for the servers",
        Counted::DeviceWrites => "writes and flushes of the device for the servers",
        Counted::WriteAmplification => "write amplification",
        Counted::SpaceAmplification => "space amplification",
        Counted::Flushes => "flushes of the device",
        Counted::CacheMisses => "cache misses of the servers",
        Counted::JournalSyncs => "time of the servers' journal syncs",
        Counted::Deferred => "data written after the phase",
        Counted::Network => "bytes on the servers' connections",
        Counted::Energy => "energy",
        Counted::Documents => "document size, and therefore write amplification",
        Counted::Files => "file size, and therefore space amplification",
        Counted::Price => "price",
    }
}

/// A number in the unit of its kind.
fn quantity(kind: CostKind, value: f64) -> Quantity {
    Quantity::new(value, shown(kind).unit)
}

fn amount(kind: CostKind, value: f64, currency: Option<&str>) -> String {
    let number = quantity(kind, value);
    match currency.filter(|_| kind == CostKind::Price) {
        Some(currency) => format!("{number} {currency}"),
        None => format!("{number}{}", shown(kind).suffix),
    }
}

/// The total of a kind; requests and the like are whole numbers.
fn whole(kind: CostKind, sum: f64, currency: Option<&str>) -> String {
    match shown(kind).unit {
        Unit::Parameter if kind.is_per_operation() => {
            Quantity::count(sum.round() as u64).to_string()
        }
        _ => amount(kind, sum, currency),
    }
}

fn cell(cost: &Cost, currency: Option<&str>) -> Cell {
    let Cost { kind, value } = *cost;
    let is_wide = |&(low, high): &(f64, f64)| {
        (high - value.value).max(value.value - low) > value.value * NARROW_RATIO
    };
    let ends = value.low.zip(value.high).filter(is_wide);
    let range = ends.map(|(low, high)| interval(quantity(kind, low), quantity(kind, high)));
    Cell::from(amount(kind, value.value, currency)).with_detail(range)
}

/// The unit of work by which costs are divided.
fn noun(basis: CostBasis) -> &'static str {
    match basis {
        CostBasis::Operation => "operation",
        CostBasis::Document => "document",
        CostBasis::Message => "message",
    }
}

/// The section of a run's page.
pub(crate) fn section(costs: &Costs, used: Option<&Consumption>, phase: &PhaseRecord) -> Section {
    let each = noun(costs.basis);
    Section {
        title: format!("Cost per {each}").into(),
        lead: format!(
            "Resources used by phase {}, divided by its {} finished {each}s; counters were read at its start and end.",
            phase.name.as_str(),
            Quantity::count(costs.basis_count)
        ),
        tables: vec![of_one(costs, used, "whole phase", "getrusage")],
        notes: notes(costs, used, phase),
        ..Section::default()
    }
}

/// The table of one phase or piece of work, with the source of each number.
fn of_one(costs: &Costs, used: Option<&Consumption>, all: &str, client: &str) -> Table {
    let currency = costs.currency.as_deref();
    let total = |cost: &Cost| {
        let each = cost.value.value / cost.kind.operations()?;
        Some(whole(cost.kind, each * costs.basis_count as f64, currency))
    };
    Table::of(&costs.values)
        .text("cost", |cost| Cell::new(label(cost.kind), Tone::Strong))
        .number("amount", 200, |cost| cell(cost, currency))
        .number(all, 100, |cost| Cell::known(total(cost)))
        .text("by", |cost| Cell::new(source(cost.kind, used, client), Tone::Soft))
        .table("Costs")
}

/// Source of a number.
fn source(kind: CostKind, used: Option<&Consumption>, client: &str) -> String {
    let device = |used: &Consumption| {
        let device = used.device.as_ref()?;
        Some(format!("counters of {}", device.names.join(", ")))
    };
    let processes = used.is_some_and(|used| used.processes > 0);
    match kind {
        CostKind::ServerCpu | CostKind::ResidentBytes | CostKind::PeakBytes if processes => {
            "/proc of the servers".to_owned()
        }
        CostKind::ContextSwitches if used.is_some_and(is_of_threads) => {
            "/proc of the servers' threads".to_owned()
        }
        CostKind::ServerCpu
        | CostKind::ContextSwitches
        | CostKind::ResidentBytes
        | CostKind::PeakBytes
        | CostKind::CacheMisses
        | CostKind::JournalSyncs
        | CostKind::ReceivedBytes
        | CostKind::SentBytes => "serverStatus".to_owned(),
        CostKind::ClientCpu => client.to_owned(),
        CostKind::ReadBytes
        | CostKind::ReadRequests
        | CostKind::WrittenBytes
        | CostKind::WriteRequests
        | CostKind::Flushes => used.and_then(device).unwrap_or_default(),
        CostKind::WriteAmplification => "device writes / changed documents".to_owned(),
        CostKind::SpaceAmplification => "files / documents, by collStats".to_owned(),
        CostKind::Energy => match used.and_then(|used| used.energy.as_ref()) {
            Some(energy) => format!("RAPL {}", energy.domains.join(", ")),
            None => String::new(),
        },
        CostKind::Price => "price of an hour / rate".to_owned(),
    }
}

fn notes(costs: &Costs, used: Option<&Consumption>, phase: &PhaseRecord) -> Vec<String> {
    let mut notes = vec![
        "Intervals include the resolution of CPU times, the time between the ends of the phase and the readings of the counters, \
         warm-up operations that ended in the phase, and for a price the interval of the rate; intervals within ±0.5 % are not \
         shown. Repeat the run to see the variation between runs."
            .to_owned(),
    ];
    if let Some(used) = used {
        notes.extend(of_readings(used, phase));
        notes.extend(of_used(used));
    }
    if let (Some(changed), Some(used)) = (&costs.changed, used) {
        notes.extend(of_changes(changed, used));
    }
    notes.extend(costs.unknown.iter().map(not_known));
    notes
}

/// Notes about servers, devices and energy.
fn of_used(used: &Consumption) -> Vec<String> {
    let energy = used.energy.as_ref().map(|_| {
        "Energy covers all processors and their memory, whoever they work for, including the client if it is on this \
         machine."
            .to_owned()
    });
    let device = used.device.as_ref().map(|device| of_device(device, used));
    of_servers(used).into_iter().chain(device).chain(energy).collect()
}

fn not_known(one: &Unknown) -> String {
    format!("Not known: {} ({}).", counted(one.what), one.reason)
}

fn is_of_threads(used: &Consumption) -> bool {
    used.context_switches_by == Some(CountedBy::Threads)
}

/// The distance of the readings from the ends of the phase, if it is worth a note.
fn of_readings(used: &Consumption, phase: &PhaseRecord) -> Option<String> {
    let end_s = phase.start_s + phase.duration_s;
    let away_s = |read: ReadTime, end_s: f64| {
        let away = |at_s: f64| (at_s - end_s).abs();
        away(read.from_s).max(away(read.until_s))
    };
    let read = used.read?;
    let all = [
        away_s(read.kernel_at_start, phase.start_s),
        away_s(read.servers_at_start, phase.start_s),
        away_s(read.kernel_at_end, end_s),
        away_s(read.servers_at_end, end_s),
    ];
    let most_s = all.into_iter().fold(0.0, f64::max);
    (most_s > phase.duration_s * NARROW_RATIO).then(|| {
        format!(
            "Counters were read up to {} from the start or end of the phase: they are scaled to its length, and their \
             intervals include the possible error.",
            Quantity::seconds(most_s)
        )
    })
}

fn of_servers(used: &Consumption) -> Option<String> {
    let servers = used.processes.max(used.servers);
    (servers > 1).then(|| {
        format!(
            "Costs of servers are sums over the {servers} servers that hold data; traffic between servers is part of the \
             bytes on their connections."
        )
    })
}

fn of_device(device: &DeviceUse, used: &Consumption) -> String {
    let own = match (used.server_read_bytes, used.server_written_bytes) {
        (Some(read), Some(written)) => format!(
            " The servers themselves had {} read and {} written, by /proc/PID/io.",
            Quantity::bytes(read),
            Quantity::bytes(written)
        ),
        _ => String::new(),
    };
    format!(
        "The counters of {} include all use of the device, including other programs and the file system.{own}",
        device.names.join(", ")
    )
}

/// Components of write amplification, and missing parts.
fn of_changes(changed: &ChangedDocuments, used: &Consumption) -> Vec<String> {
    let mut notes = vec![format!(
        "Write amplification: {} written to the device, divided by {} inserted or updated documents times {} each, \
         their mean size as BSON by collStats. An update counts as its whole document, a delete as nothing.",
        Quantity::bytes(changed.written_bytes),
        Quantity::count(changed.documents),
        Quantity::new(changed.mean_document_bytes, Unit::Bytes)
    )];
    let deferred = used.device.as_ref().and_then(|device| device.deferred_bytes);
    match deferred {
        Some(deferred) => notes.push(format!(
            "This includes {} that the servers wrote after the phase, when `fsync` flushed all data of the phase \
             from memory.",
            Quantity::bytes(deferred)
        )),
        None => notes.push(
            "Data that the servers wrote only after the end of the phase is missing.".to_owned(),
        ),
    }
    notes
}

/// The costs of runs with the same settings, and the cells that identify the settings.
pub(crate) type Row<'a> = (Vec<Cell>, &'a [Cost]);

/// Largest number of loads that are columns. More loads are rows, where a narrow terminal has no room for all kinds.
const MOST_ACROSS: usize = 8;

/// The costs of operations under several loads; `None` if nothing is known.
pub(crate) fn of_rows(
    keys: &[Column],
    rows: &[Row<'_>],
    currency: Option<&str>,
) -> Option<Section> {
    let table = table(keys, rows, currency)?;
    Some(of_tables(vec![table]))
}

/// The section with such tables.
pub(crate) fn of_tables(tables: Vec<Table>) -> Section {
    Section {
        title: "Cost per operation".into(),
        lead: "Resources used in the measure phase, divided by the finished operations.".to_owned(),
        tables,
        notes: vec![
            "The 95 % interval over the runs of a load is below each value; for a single run it is the uncertainty of its counters, if \
             larger than ±0.5 %. The page of a run lists the source of each number and the reasons for missing ones, such as energy \
             without processor counters."
                .to_owned(),
        ],
        ..Section::default()
    }
}

/// A table of the known kinds of costs and the loads; the smaller group makes the columns.
pub(crate) fn table(keys: &[Column], rows: &[Row<'_>], currency: Option<&str>) -> Option<Table> {
    let of_kind = |costs: &[Cost], kind: CostKind| {
        let found = costs.iter().find(|cost| cost.kind == kind);
        found.map(|cost| cell(cost, currency))
    };
    let is_known = |kind: &CostKind| rows.iter().any(|row| of_kind(row.1, *kind).is_some());
    let kinds: Vec<CostKind> = CostKind::ALL.into_iter().filter(is_known).collect();
    let cell = |costs: &[Cost], kind: CostKind| {
        of_kind(costs, kind).unwrap_or_else(|| Cell::from(NO_VALUE))
    };
    let joined = |texts: Vec<&str>| texts.join(", ");
    let (columns, cells): (Vec<Column>, Vec<Vec<Cell>>) = if rows.len() > MOST_ACROSS {
        let of_kinds = kinds.iter().map(|kind| Column::number(label(*kind), shown(*kind).rank));
        let of_row = |(keys, costs): &Row<'_>| {
            let of_kinds = kinds.iter().map(|kind| cell(costs, *kind));
            keys.iter().cloned().chain(of_kinds).collect()
        };
        let columns = keys.iter().cloned().chain(of_kinds).collect();
        (columns, rows.iter().map(of_row).collect())
    } else {
        let names = keys.iter().map(|key| key.title.as_str()).collect();
        let of_load = |(place, (keys, _)): (usize, &Row<'_>)| {
            let texts = keys.iter().map(|key| key.text.as_str());
            let title = joined(texts.filter(|text| !text.is_empty()).collect());
            // A narrow terminal keeps the smallest and the largest load.
            let from_end = place.min(rows.len() - 1 - place);
            Column::number(title, 200 - from_end as u8)
        };
        let of_kind = |kind: &CostKind| {
            let name = Cell::new(label(*kind), Tone::Strong);
            let of_loads = rows.iter().map(|(_, costs)| cell(costs, *kind));
            std::iter::once(name).chain(of_loads).collect()
        };
        let first = Column::text(joined(names));
        let of_loads = rows.iter().enumerate().map(of_load);
        let columns = std::iter::once(first).chain(of_loads).collect();
        (columns, kinds.iter().map(of_kind).collect())
    };
    (!kinds.is_empty()).then(|| Table::new("Costs", columns, cells))
}

/// Costs of two sides; `None` if no kind is known for both.
pub(crate) fn comparison(ratios: &[CostRatio], [a, b]: &[String; 2]) -> Option<Table> {
    let ratio = |one: &CostRatio| {
        let Figure { value, low, high } = one.ratio;
        let range = low.zip(high).map(|(low, high)| match high > low * VAGUE {
            true => "too few pairs".to_owned(),
            false => changes(low, high),
        });
        Cell::from(change(value)).with_detail(range)
    };
    Table::of(ratios)
        .text("cost per operation", |one| Cell::new(label(one.kind), Tone::Strong))
        .number(a, 120, |one| both(one)[0].clone())
        .number(b, 130, |one| both(one)[1].clone())
        .number("change", 200, ratio)
        .known("Cost per operation")
}

/// The costs of both sides of a comparison.
pub(crate) fn both(one: &CostRatio) -> [String; 2] {
    let currency = one.currency.as_deref();
    [one.baseline, one.candidate].map(|value| amount(one.kind, value, currency))
}

/// The currency of the prices of an experiment.
pub(crate) fn currency(experiment: &Experiment) -> Option<&str> {
    let figures = experiment.points.iter().flat_map(|point| &point.figures);
    let costs = figures.flat_map(|figures| &figures.costs);
    costs.into_iter().find_map(|costs| costs.currency.as_deref())
}

/// A cost in a table of runs over time.
pub(crate) fn in_short(cost: Option<Figure>, kind: CostKind, currency: Option<&str>) -> String {
    cost.map_or_else(|| NO_VALUE.to_owned(), |cost| amount(kind, cost.value, currency))
}
