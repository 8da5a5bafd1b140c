use super::super::UsageSampler;
use super::*;
use crate::storage::devices::tests::Machine;
use dyno_record::model::{PhaseKind, ResourceKind};

const MD: &str = "virtual/block/md0";
const DISKS: [&str; 2] = ["pci0/ata1/block/sda", "pci0/ata2/block/sdb"];
const LVM: &str = "virtual/block/dm-0";
const PARTITIONS: [&str; 2] = ["pci0/ata1/block/sda/sda3", "pci0/ata2/block/sdb/sdb3"];

fn array() -> Machine {
    let machine = Machine::new("xfs", MD).with_members(MD, &DISKS);
    DISKS.iter().fold(machine, |machine, disk| machine.with_disk(disk, 0, Some(32)))
}

/// A striped volume of LVM over a partition of each disk.
fn volume() -> Machine {
    let machine = Machine::new("xfs", LVM).with_members(LVM, &PARTITIONS);
    DISKS.iter().zip(PARTITIONS).fold(machine, |machine, (disk, partition)| {
        machine
            .with_disk(disk, 0, Some(32))
            .with_file(&format!("sys/devices/{partition}/partition"), "3\n")
    })
}

/// Counters as kernels since 5.5 write them.
fn stat([reads, writes, busy_ms, queued_ms, flushes]: [u64; 5]) -> String {
    let (read_sectors, written_sectors) = (reads * 8, writes * 16);
    format!(
        "{reads:8} 7 {read_sectors} 9 {writes} 7 {written_sectors} 9 3 {busy_ms} {queued_ms} 0 0 0 0 {flushes} 5\n"
    )
}

fn put(machine: Machine, disk: &str, counters: [u64; 5]) -> Machine {
    machine.with_file(&format!("sys/devices/{disk}/stat"), &stat(counters))
}

/// The file system's device counts the same requests again.
const OF_ALL: [u64; 5] = [9000, 9000, 9000, 9000, 9000];

#[track_caller]
fn assert_each_is_counted(machine: Machine, device: &str, members: [&str; 2]) {
    let machine = put(put(machine, device, [0; 5]), members[0], [0; 5]);
    let mut machine = put(machine, members[1], [100, 100, 0, 100, 100]);
    let data = machine.data();
    let mut sampler = UsageSampler::new(machine.root(), &[], &[data]);
    sampler.sample(0.0);
    machine = put(machine, device, OF_ALL);
    machine = put(machine, members[0], [1000, 400, 2000, 8000, 10]);
    machine = put(machine, members[1], [300, 200, 500, 900, 100]);
    sampler.sample(4.0);
    drop(machine);
    let found = sampler.between(PhaseKind::Measure, 0.0, 2.0);
    let [disk] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((disk.resource, disk.units, disk.busy_s), (ResourceKind::Disk, 2, 1.25));
    let of = |member: &str, values: [f64; 7]| DiskUse {
        host: None,
        device: devices::name(Path::new(member)).expect("it has a name"),
        serves_several: Some(true),
        busy_s: values[0],
        queued_s: Some(values[1]),
        reads: Some(values[2]),
        writes: Some(values[3]),
        flushes: Some(values[4]),
        read_bytes: Some(values[5]),
        write_bytes: Some(values[6]),
    };
    let first = of(members[0], [1.0, 4.0, 500.0, 200.0, 5.0, 2_048_000.0, 1_638_400.0]);
    let second = of(members[1], [0.25, 0.4, 100.0, 50.0, 0.0, 409_600.0, 409_600.0]);
    assert_eq!(disk.disks, [first, second]);
}

#[test]
fn each_member_of_an_array_or_volume_is_counted() {
    assert_each_is_counted(array(), MD, DISKS);
    assert_each_is_counted(volume(), LVM, PARTITIONS);
}

#[test]
fn wrapped_request_time_continues() {
    let end = MILLISECONDS - 1000;
    let mut machine = put(array(), DISKS[0], [0, 0, 10, end, 0]);
    machine = put(machine, DISKS[1], [0; 5]);
    let mut sampler = DiskSampler::new(machine.root(), &[machine.data()]);
    sampler.sample(0.0);
    machine = put(machine, DISKS[0], [5, 0, 20, 500, 0]);
    sampler.sample(1.0);
    machine = put(machine, DISKS[0], [9, 0, 30, 2500, 0]);
    sampler.sample(2.0);
    drop(machine);
    let found = sampler.between(0.0, 2.0);
    assert_eq!((found[0].queued_s, found[0].reads), (Some(3.5), Some(9.0)));
}

#[test]
fn kernel_without_flushes_has_the_other_counters() {
    let old = "1 2 3 4 5 6 7 8 9 1000 2000\n";
    let mut machine = array();
    for disk in DISKS {
        machine = machine.with_file(&format!("sys/devices/{disk}/stat"), old);
    }
    let mut sampler = DiskSampler::new(machine.root(), &[machine.data()]);
    for second in [0.0, 1.0] {
        sampler.sample(second);
    }
    let found = sampler.between(0.0, 1.0);
    assert_eq!((found.len(), found[0].flushes, found[0].reads), (2, None, Some(0.0)));
}

#[test]
fn disk_use_is_unknown_when_one_member_is_missing() {
    let machine = put(array(), DISKS[0], [0; 5]);
    let mut sampler = DiskSampler::new(machine.root(), &[machine.data()]);
    for second in [0.0, 1.0] {
        sampler.sample(second);
    }
    assert_eq!(sampler.between(0.0, 1.0), []);
}

#[test]
fn disks_of_all_folders_are_counted_once_each() {
    let mut machine = Machine::new("xfs", DISKS[0]).with_data("second", "9:8", DISKS[1]);
    for disk in DISKS {
        machine = put(machine.with_disk(disk, 0, Some(32)), disk, [0; 5]);
    }
    let folders = [machine.data(), machine.root().join("second"), machine.data().join("below")];
    let mut sampler = DiskSampler::new(machine.root(), &folders);
    sampler.sample(0.0);
    machine = put(machine, DISKS[1], [50, 0, 500, 500, 0]);
    sampler.sample(1.0);
    drop(machine);
    let found = sampler.between(0.0, 1.0);
    let found: Vec<(&str, f64)> =
        found.iter().map(|disk| (disk.device.as_str(), disk.busy_s)).collect();
    assert_eq!(found, [("sda", 0.0), ("sdb", 0.5)]);
}

#[test]
fn disk_use_is_unknown_when_a_folder_is_in_memory() {
    let machine =
        put(Machine::new("xfs", DISKS[0]).with_disk(DISKS[0], 0, Some(32)), DISKS[0], [0; 5]);
    let memory = machine.root().join("elsewhere");
    let mut sampler = DiskSampler::new(machine.root(), &[machine.data(), memory]);
    for second in [0.0, 1.0] {
        sampler.sample(second);
    }
    assert_eq!(sampler.between(0.0, 1.0), []);
}
