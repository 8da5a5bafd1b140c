//! The storage that was made for the servers of an experiment, with what it can do beside what the servers did on it.

use super::figure::cell;
use crate::page::Section;
use crate::page::table::{Cell, Column, Table, Tone};
use dyno_analyze::experiment::sweep::disk_limits_of;
use dyno_record::experiment::{
    DiskLimits, Experiment, Figure, Figures, LimitBasis, NoLimit, Point,
};
use dyno_record::quantity::Quantity;
use dyno_record::storage::PreparedStorageRecord;

/// The section; `None` where the data lay on storage that was there.
pub(super) fn section(experiment: &Experiment) -> Option<Section> {
    let mut groups: Vec<(&PreparedStorageRecord, Vec<&Point>)> = Vec::new();
    for point in &experiment.points {
        let Some(storage) = &point.storage else {
            continue;
        };
        let known = groups.iter_mut().find(|(known, points)| {
            known.setting == storage.setting && points[0].side == point.side
        });
        match known {
            Some((_, points)) => points.push(point),
            None => groups.push((storage, vec![point])),
        }
    }
    if groups.is_empty() {
        return None;
    }
    let columns = vec![
        Column::text("storage"),
        Column::number("random reads", 130),
        Column::number("synced writes", 120),
        Column::number("rate", 110),
        Column::number("the disk allows", 170),
        Column::number("runs", 60),
        Column::text("notes"),
    ];
    let mut notes = vec![
        "Random reads (4 KiB, 16 at once, past the page cache) and synced writes (4 KiB, one after the other, each with `fdatasync`) are what `fio` reached on the new file system before the first run on it. The rate is the mean over the runs on it: operations of the database, of which one can need several requests or none. What the disk allows is the rate at which its operations would take all that its devices can do, measured by `fio` with a deep queue, or may do.".to_owned(),
    ];
    let on_loop =
        |(storage, _): &(&PreparedStorageRecord, Vec<&Point>)| storage.setting.contains("loop:");
    if groups.iter().any(on_loop) {
        notes.push("Files behind loop devices lie on one disk of this machine: they compare file systems and their settings, and not devices.".to_owned());
    }
    let rows = groups.iter().map(|(storage, points)| row(storage, points));
    let table = Table::new("Storage", columns, rows.collect());
    Some(Section {
        title: "Storage".into(),
        lead: "What the storage can do without a server, beside what the servers did on it.".into(),
        tables: vec![table],
        notes,
        ..Section::default()
    })
}

fn row(storage: &PreparedStorageRecord, points: &[&Point]) -> Vec<Cell> {
    let side = points[0].side.map(|side| format!("{}: ", side.label()));
    let name = format!("{}{}", side.unwrap_or_default(), storage.setting);
    let limits = storage.limits.as_ref();
    let per_s = |value: Option<f64>| match value {
        Some(value) => Quantity::per_second(value).to_string().into(),
        None => Cell::default(),
    };
    let rates = points.iter().filter_map(|point| point.figures.as_ref());
    let runs: Vec<&Figures> = rates.collect();
    let rates: Vec<f64> = runs.iter().map(|run| run.rate_per_s.value).collect();
    let mean = (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64);
    let allowed = disk_limits_of(&runs);
    let known = allowed.as_ref().and_then(|limits| limits.known.as_ref());
    let bound = known.map(|limit| Figure::bound_by(&limit.demand));
    vec![
        Cell::new(name, Tone::Strong),
        per_s(limits.map(|limits| limits.random_reads_per_s)),
        per_s(limits.map(|limits| limits.synced_writes_per_s)),
        per_s(mean),
        cell(bound.as_ref(), Quantity::per_second),
        rates.len().to_string().into(),
        note(storage, allowed.as_ref()).into(),
    ]
}

/// What the bound of the disk rests on, or why there is none.
fn note(storage: &PreparedStorageRecord, allowed: Option<&DiskLimits>) -> String {
    if let Some(reason) = &storage.not_measured {
        return format!("not measured: {reason}");
    }
    let basis = allowed.and_then(|limits| limits.known.as_ref());
    let basis = basis.map(|limit| match limit.basis {
        LimitBasis::OneAtATime => "one request at a time",
        LimitBasis::Measured => "by its capacity",
        LimitBasis::Limited => "by its limit of reads",
        LimitBasis::Saturated => "by its saturation",
    });
    let unknown = allowed.and_then(|limits| limits.unknown.as_ref());
    let is_open = unknown.is_some_and(|one| one.reason == NoLimit::WritesLimited);
    let open = is_open.then_some("its limit of writes may be nearer");
    let reason = storage.no_capacity.as_deref();
    let parts = [basis, open, reason];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}
