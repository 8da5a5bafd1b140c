//! The disk of a machine that holds the data.

use super::*;
use dyno_record::names::storage;

/// Three disks and a volume on the third, with file systems on their parts.
const MACHINE: &str = "\
node_disk_io_time_seconds_total{device=\"vda\"} 1\n\
node_disk_io_time_seconds_total{device=\"nvme0n1\"} 1\n\
node_disk_io_time_seconds_total{device=\"sdb\"} 1\n\
node_disk_io_time_seconds_total{device=\"dm-0\"} 1\n\
node_disk_device_mapper_info{device=\"dm-0\",name=\"vg-data\",uuid=\"LVM-x\"} 1\n\
node_filesystem_avail_bytes{device=\"/dev/vda1\",fstype=\"ext4\",mountpoint=\"/\"} 1\n\
node_filesystem_avail_bytes{device=\"/dev/nvme0n1p2\",fstype=\"xfs\",mountpoint=\"/var/lib/mongodb\"} 1\n\
node_filesystem_avail_bytes{device=\"/dev/mapper/vg-data\",fstype=\"xfs\",mountpoint=\"/srv\"} 1\n\
node_filesystem_avail_bytes{device=\"/dev/sdb\",fstype=\"xfs\",mountpoint=\"/mnt\"} 1\n\
node_filesystem_avail_bytes{device=\"tmpfs\",fstype=\"tmpfs\",mountpoint=\"/run\"} 1\n";

fn reported(place: DataPlace) -> Reported {
    let mut reader = ExporterReader::new("x".to_owned()).with_data_in(place);
    reader.read(0.0, 0.0, MACHINE).expect("it is a text of metrics")
}

/// The marked disks, with the number of folders on each.
fn marked(place: DataPlace) -> Vec<(String, f64)> {
    let marks =
        reported(place).values.into_iter().filter(|(id, _)| storage::HOLDS_DATA_COUNT.is(id));
    marks.map(|(id, count)| (id.instance().unwrap_or_default().to_owned(), count)).collect()
}

fn folders(all: &[&str]) -> DataPlace {
    DataPlace {
        disks: Vec::new(),
        folders: all.iter().map(|folder| (*folder).to_owned()).collect(),
    }
}

#[test]
fn disk_is_below_the_file_system_of_the_folder() {
    for (folder, disk) in [
        ("/var/lib/mongodb", "nvme0n1"),
        ("/var/lib/mongodb/db", "nvme0n1"),
        ("/var/lib/mongodb2", "vda"),
        ("/data/db", "vda"),
        ("/srv/db", "dm-0"),
        ("/mnt/x", "sdb"),
    ] {
        assert_eq!(marked(folders(&[folder])), [(disk.to_owned(), 1.0)], "{folder}");
    }
    let both = marked(folders(&["/srv/a", "/data", "/srv/b"]));
    assert_eq!(both, [("dm-0".to_owned(), 2.0), ("vda".to_owned(), 1.0)]);
}

#[test]
fn folder_without_a_disk_leaves_it_unknown() {
    assert_eq!(marked(folders(&["/run/db"])), []);
    assert_eq!(marked(folders(&["/srv/a", "/run/db"])), []);
    assert_eq!(marked(DataPlace::default()), []);
}

#[test]
fn named_disks_override_folders_and_must_exist() {
    let named = |disks: &[&str]| DataPlace {
        disks: disks.iter().map(|disk| (*disk).to_owned()).collect(),
        ..folders(&["/srv/db"])
    };
    assert_eq!(marked(named(&["sdb"])), [("sdb".to_owned(), 1.0)]);
    let both = marked(named(&["sdb", "vda"]));
    assert_eq!(both, [("sdb".to_owned(), 1.0), ("vda".to_owned(), 1.0)]);
    // If one member of an array is unknown, nothing is marked.
    assert_eq!(marked(named(&["sdb", "sdc"])), []);
    let missing = reported(named(&["sdb", "sdc"])).missing;
    let (_, health) = missing.iter().find(|(part, _)| *part == "storage").expect("it is told");
    assert!(matches!(health, Health::Failed { .. }));
    let reason = health.reason();
    for part in ["`sdc`", "vda, nvme0n1, sdb, dm-0"] {
        assert!(reason.contains(part), "{reason}");
    }
}
