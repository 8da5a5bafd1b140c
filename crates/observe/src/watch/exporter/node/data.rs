//! Disks of a machine that hold the data of servers: the named disks, or the disks below the file
//! systems of their data folders. `node_exporter` counts the work of whole disks, and names file
//! systems by their partitions and volumes.

use super::super::DataPlace;
use super::super::text::Scrape;
use super::disk::BUSY_SECONDS;
use super::numbers::instances;
use crate::health::Health;
use crate::watch::source::Reported;
use dyno_record::names::storage;
use std::path::Path;

/// One per file system, with its device and mount point.
const FILE_SYSTEM: &str = "node_filesystem_avail_bytes";
/// One per volume of the device mapper, with its device, such as `dm-0`, and its name below
/// `/dev/mapper`.
const MAPPER: &str = "node_disk_device_mapper_info";

/// Marks the disks that hold data. A named disk that does not exist is reported as missing. If the
/// disk of a folder cannot be determined, nothing is marked.
pub(super) fn report(scrape: &Scrape<'_>, place: &DataPlace, reported: &mut Reported) {
    let disks = instances(scrape, BUSY_SECONDS, "device");
    if !place.disks.is_empty() {
        report_named(&place.disks, &disks, reported);
        return;
    }
    let found = place.folders.iter().map(|folder| {
        let device = device_of(scrape, folder)?;
        disk_of(scrape, &disks, device)
    });
    // If the disk of one of several folders is unknown, the others are incomplete.
    let Some(mut found) = found.collect::<Option<Vec<&str>>>() else {
        return;
    };
    found.sort_unstable();
    for of_disk in found.chunk_by(|a, b| a == b) {
        let id = storage::HOLDS_DATA_COUNT.of(of_disk[0]);
        reported.put(id, of_disk.len() as f64);
    }
}

/// Marks the named disks if all of them exist: some members of an array would not show all of its
/// work.
fn report_named(named: &[String], disks: &[&str], reported: &mut Reported) {
    let mut named_texts = named.iter().map(String::as_str);
    match named_texts.find(|name| !disks.contains(name)) {
        None => {
            for name in named {
                reported.put(storage::HOLDS_DATA_COUNT.of(name), 1.0);
            }
        }
        Some(absent) if !disks.is_empty() => {
            let reason = format!("no disk `{absent}` among {}", disks.join(", "));
            reported.miss("storage", Health::Failed { reason });
        }
        Some(_) => {}
    }
}

/// The device of the file system of a folder, as the exporter names it.
fn device_of<'s>(scrape: &'s Scrape<'_>, folder: &str) -> Option<&'s str> {
    let depth = |mounted: &str| Path::new(mounted).components().count();
    let mounts = scrape.named(FILE_SYSTEM).filter_map(|sample| {
        let (mounted, device) = (sample.label("mountpoint")?, sample.label("device")?);
        let holds = Path::new(folder).starts_with(mounted);
        holds.then_some((depth(mounted), device))
    });
    let nearest = mounts.max_by_key(|(depth, _)| *depth);
    nearest.map(|(_, device)| device)
}

/// The counted disk that a device is or belongs to.
fn disk_of<'s>(scrape: &'s Scrape<'_>, disks: &[&'s str], device: &str) -> Option<&'s str> {
    let name = device.strip_prefix("/dev/")?;
    let among = |name: &str| disks.iter().find(|disk| **disk == name).copied();
    if let Some(volume) = name.strip_prefix("mapper/") {
        let is_it = |sample: &&super::super::text::Sample<'_>| sample.label("name") == Some(volume);
        let sample = scrape.named(MAPPER).find(is_it)?;
        return among(sample.label("device")?);
    }
    let whole = name.trim_end_matches(|c: char| c.is_ascii_digit());
    // `nvme0n1p2` is a part of `nvme0n1`, and `sda2` of `sda`.
    let before_p =
        whole.strip_suffix('p').filter(|disk| disk.ends_with(|c: char| c.is_ascii_digit()));
    among(name).or_else(|| among(before_p.unwrap_or(whole)))
}
