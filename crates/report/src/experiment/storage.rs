//! The storage prepared for the servers of an experiment: its measured limits, and its use by the servers.

use super::figure::cell;
use super::runs::is_set_aside;
use crate::page::Section;
use crate::page::table::{Cell, Table, Tone};
use dyno_analyze::experiment::sweep::disk_limits_of;
use dyno_record::experiment::{Experiment, Figure, Figures, Point};
use dyno_record::quantity::Quantity;
use dyno_record::storage::PreparedStorageRecord;

/// The section about prepared storage; `None` if the data was on existing storage.
pub(super) fn section(experiment: &Experiment) -> Option<Section> {
    let mut groups: Vec<(&PreparedStorageRecord, Vec<&Point>)> = Vec::new();
    let mut set_aside = 0;
    for (place, point) in experiment.points.iter().enumerate() {
        let Some(storage) = &point.storage else {
            continue;
        };
        if is_set_aside(experiment, place) {
            set_aside += 1;
            continue;
        }
        let known = groups.iter_mut().find(|(known, points)| {
            known.setting == storage.setting
                && points[0].side == point.side
                && points[0].workload == point.workload
        });
        match known {
            Some((_, points)) => points.push(point),
            None => groups.push((storage, vec![point])),
        }
    }
    if groups.is_empty() {
        return None;
    }
    let mut notes = vec![
        "Random reads (4 KiB, 16 at once, bypassing the page cache) and synced writes (4 KiB, one after the other, each with `fdatasync`) were measured by `fio` on the new file system before its first run. The rate is the mean over its runs, in database operations, which need any number of requests each. The disk allows the rate at which operations would use the whole capacity of its devices, as measured by `fio` with a deep queue or as configured.".to_owned(),
    ];
    let on_loop =
        |(storage, _): &(&PreparedStorageRecord, Vec<&Point>)| storage.setting.contains("loop:");
    if groups.iter().any(on_loop) {
        notes.push("Files behind loop devices are on one disk of this machine: they compare file systems and their settings, not devices.".to_owned());
    }
    if set_aside > 0 {
        let runs = if set_aside == 1 { "run" } else { "runs" };
        notes.push(format!("Without {set_aside} {runs} that were set aside."));
    }
    notes.extend(unknown(&groups));
    Some(Section {
        title: "Storage".into(),
        lead: "The limits of the storage without a server, and its use by the servers.".into(),
        tables: vec![table(&groups)],
        notes,
        ..Section::default()
    })
}

fn table(groups: &[(&PreparedStorageRecord, Vec<&Point>)]) -> Table {
    let per_s = |value: Option<f64>| Cell::known(value.map(Quantity::per_second));
    Table::of(groups)
        .text("storage", |(storage, points)| {
            let side = points[0].side.map(|side| side.label().to_owned());
            let words = [side, points[0].workload.clone()].into_iter().flatten();
            let words: String = words.map(|word| format!("{word}: ")).collect();
            Cell::new(format!("{words}{}", storage.setting), Tone::Strong)
        })
        .number("random reads", 130, |(storage, _)| {
            per_s(storage.limits.as_ref().map(|limits| limits.random_reads_per_s))
        })
        .number("synced writes", 120, |(storage, _)| {
            per_s(storage.limits.as_ref().map(|limits| limits.synced_writes_per_s))
        })
        .number("rate", 110, |(_, points)| {
            let rates: Vec<f64> = runs(points).iter().map(|run| run.rate_per_s.value).collect();
            per_s((!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64))
        })
        .number("the disk allows", 170, |(_, points)| {
            let known = disk_limits_of(&runs(points)).and_then(|limits| limits.known);
            let bound = known.map(|limit| Figure::bound_by(&limit.demand));
            cell(bound.as_ref(), Quantity::per_second)
        })
        .number("runs", 60, |(_, points)| runs(points).len())
        .table("Storage")
}

fn runs<'a>(points: &[&'a Point]) -> Vec<&'a Figures> {
    points.iter().filter_map(|point| point.figures.as_ref()).collect()
}

/// Reasons for missing values of a storage, each with the storages that it applies to.
fn unknown(groups: &[(&PreparedStorageRecord, Vec<&Point>)]) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for (storage, _) in groups {
        let reason = match (&storage.not_measured, &storage.no_capacity) {
            (Some(reason), _) => format!("not measured: {reason}"),
            (None, Some(reason)) => reason.clone(),
            (None, None) => continue,
        };
        let setting = storage.setting.as_str();
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, settings)) if settings.contains(&setting) => {}
            Some((_, settings)) => settings.push(setting),
            None => reasons.push((reason, vec![setting])),
        }
    }
    let of = |(reason, settings): (String, Vec<&str>)| {
        format!("Of `{}`: {reason}.", settings.join("`, `"))
    };
    reasons.into_iter().map(of).collect()
}
