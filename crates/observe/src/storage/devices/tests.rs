//! Trees of `/sys` from real machines, reduced to the files that are read.

use super::*;
use crate::host::tests::Fixture;
use std::os::unix::fs::symlink;

/// Flags of the CPU of a virtual machine.
const VIRTUAL: &str = "flags\t\t: fpu hypervisor\n";

/// A machine whose folder `/data` is on a device.
pub(crate) struct Machine(Fixture);

impl Machine {
    /// `device` is the file system's device, as a path below `/sys/devices`.
    pub(crate) fn new(filesystem: &str, device: &str) -> Machine {
        let fixture = Fixture::new().with("data/x", "");
        let data = fixture.root().canonicalize().expect("it is there").join("data");
        let name = Path::new(device).file_name().and_then(|name| name.to_str());
        let mounts = format!(
            "1 0 0:1 / / rw - tmpfs tmpfs rw\n2 1 9:9 / {} rw - {filesystem} /dev/{} rw\n",
            data.display(),
            name.expect("it has a name")
        );
        let machine = Machine(fixture).with_file("proc/self/mountinfo", &mounts);
        machine.link("9:9", device);
        machine
    }

    /// Adds another folder at the root, on its own device with this number.
    pub(crate) fn with_data(self, folder: &str, number: &str, device: &str) -> Machine {
        let root = self.root().canonicalize().expect("it is there");
        let mounts = root.join("proc/self/mountinfo");
        let mut mounts = fs::read_to_string(mounts).expect("it is there");
        let folder = root.join(folder);
        fs::create_dir_all(&folder).expect("there is room");
        let name = Path::new(device).file_name().and_then(|name| name.to_str());
        let line = format!(
            "3 1 {number} / {} rw - xfs /dev/{} rw\n",
            folder.display(),
            name.expect("it has a name")
        );
        mounts.push_str(&line);
        self.link(number, device);
        self.with_file("proc/self/mountinfo", &mounts)
    }

    fn link(&self, number: &str, device: &str) {
        let links = self.root().join("sys/dev/block");
        fs::create_dir_all(&links).expect("there is room");
        symlink(self.sys(device), links.join(number)).expect("it is new");
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.root()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.root().join("data")
    }

    pub(crate) fn with_file(self, path: &str, text: &str) -> Machine {
        Machine(self.0.with(path, text))
    }

    fn sys(&self, device: &str) -> PathBuf {
        let folder = self.root().join("sys/devices").join(device);
        fs::create_dir_all(&folder).expect("there is room");
        folder
    }

    /// Adds a real disk. `own_length` is its own queue length, which SCSI and SATA have in addition
    /// to the kernel's.
    pub(crate) fn with_disk(self, disk: &str, rotational: u8, own_length: Option<u64>) -> Machine {
        let folder = format!("sys/devices/{disk}");
        let machine = self
            .with_file(&format!("{folder}/queue/rotational"), &format!("{rotational}\n"))
            .with_file(&format!("{folder}/queue/nr_requests"), "1023\n")
            .with_file(&format!("{folder}/device/model"), "X\n");
        match own_length {
            Some(length) => {
                machine.with_file(&format!("{folder}/device/queue_depth"), &format!("{length}\n"))
            }
            None => machine,
        }
    }

    /// Adds a device that the kernel makes of others.
    pub(crate) fn with_members(self, device: &str, members: &[&str]) -> Machine {
        let folder = self.sys(device);
        let slaves = folder.join("slaves");
        fs::create_dir_all(&slaves).expect("there is room");
        for member in members {
            let name = Path::new(member).file_name().expect("it has a name");
            symlink(self.sys(member), slaves.join(name)).expect("it is new");
        }
        self.with_file(&format!("sys/devices/{device}/queue/nr_requests"), "128\n")
            .with_file(&format!("sys/devices/{device}/queue/rotational"), "0\n")
    }

    /// The devices that finally serve requests, and their concurrency.
    fn ends(&self) -> Vec<(String, Option<u64>)> {
        let found = ends(self.root(), &self.data()).expect("it is on a device");
        found
            .iter()
            .map(|one| (name(one).expect("it has a name"), serves(self.root(), one)))
            .collect()
    }
}

fn named(all: &[(&str, Option<u64>)]) -> Vec<(String, Option<u64>)> {
    all.iter().map(|(name, serves)| ((*name).to_owned(), *serves)).collect()
}

#[test]
fn array_members_are_disks_or_partitions() {
    let disks = ["pci0/nvme/nvme0/nvme0n1", "pci0/nvme/nvme1/nvme1n1"];
    let two = Machine::new("xfs", "virtual/block/md0").with_members("virtual/block/md0", &disks);
    let two = disks.iter().fold(two, |machine, disk| machine.with_disk(disk, 0, None));
    assert_eq!(two.ends(), named(&[("nvme0n1", Some(1023)), ("nvme1n1", Some(1023))]));

    let parts =
        ["a", "b", "c", "d"].map(|letter| format!("pci0/ata1/block/sd{letter}/sd{letter}1"));
    let members: Vec<&str> = parts.iter().map(String::as_str).collect();
    let four =
        Machine::new("ext4", "virtual/block/md0").with_members("virtual/block/md0", &members);
    let four = members.iter().fold(four, |machine, part| {
        let disk = part.rsplit_once('/').expect("a part is below its disk").0;
        machine
            .with_disk(disk, 1, Some(32))
            .with_file(&format!("sys/devices/{part}/partition"), "1\n")
    });
    // Even with 32 sorted requests in the queue, a hard disk serves one at a time.
    let expected = ["sda1", "sdb1", "sdc1", "sdd1"].map(|name| (name, Some(1)));
    assert_eq!(four.ends(), named(&expected));
}

#[test]
fn volume_of_volumes_resolves_to_its_disks() {
    let linear = Machine::new("xfs", "virtual/block/dm-0")
        .with_members("virtual/block/dm-0", &["pci0/ata1/block/sda/sda2"])
        .with_disk("pci0/ata1/block/sda", 0, Some(1))
        .with_file("sys/devices/pci0/ata1/block/sda/sda2/partition", "2\n");
    // Without a queue of its own even a flash disk serves one at a time.
    assert_eq!(linear.ends(), named(&[("sda2", Some(1))]));

    // A striped volume over an array and a disk; a disk that is reached twice counts once.
    let disks = ["pci0/ata1/block/sda", "pci0/ata2/block/sdb", "pci0/ata3/block/sdc"];
    let striped = Machine::new("xfs", "virtual/block/dm-3")
        .with_members("virtual/block/dm-3", &["virtual/block/dm-1", "virtual/block/md7"])
        .with_members("virtual/block/dm-1", &disks[..1])
        .with_members("virtual/block/md7", &disks);
    let striped = disks.iter().fold(striped, |machine, disk| machine.with_disk(disk, 0, Some(31)));
    let expected = ["sda", "sdb", "sdc"].map(|name| (name, Some(31)));
    assert_eq!(striped.ends(), named(&expected));
}

#[test]
fn partition_has_the_queue_of_its_disk() {
    let disk = "pci0/nvme/nvme0/nvme0n1";
    let part = format!("{disk}/nvme0n1p2");
    let machine = Machine::new("xfs", &part)
        .with_disk(disk, 0, None)
        .with_file(&format!("sys/devices/{part}/partition"), "2\n");
    assert_eq!(machine.ends(), named(&[("nvme0n1p2", Some(1023))]));
}

#[test]
fn loop_device_is_separate_and_its_concurrency_is_unknown() {
    let machine = Machine::new("ext4", "virtual/block/loop0")
        .with_file("sys/devices/virtual/block/loop0/loop/backing_file", "/data/x\n")
        .with_file("sys/devices/virtual/block/loop0/queue/nr_requests", "128\n")
        .with_file("sys/devices/virtual/block/loop0/queue/rotational", "0\n");
    assert_eq!(machine.ends(), named(&[("loop0", None)]));
}

#[test]
fn btrfs_of_several_devices_has_all_of_them() {
    let loops = ["virtual/block/loop1", "virtual/block/loop0"];
    let machine = Machine::new("btrfs", loops[0]);
    for (file_system, devices) in [("0b-1", &loops[..]), ("7a-2", &["virtual/block/loop7"])] {
        let folder = machine.root().join("sys/fs/btrfs").join(file_system).join("devices");
        fs::create_dir_all(&folder).expect("there is room");
        for device in devices {
            let name = Path::new(device).file_name().expect("it has a name");
            symlink(machine.sys(device), folder.join(name)).expect("it is new");
        }
    }
    assert_eq!(machine.ends(), named(&[("loop0", None), ("loop1", None)]));
    // Any other file system is on the one device that it names.
    let other = machine.with_file("unused", "");
    let mounts = fs::read_to_string(other.root().join("proc/self/mountinfo")).expect("it is there");
    let other = other.with_file("proc/self/mountinfo", &mounts.replace("btrfs", "ext4"));
    assert_eq!(other.ends(), named(&[("loop1", None)]));
}

#[test]
fn rotational_virtual_disk_has_unknown_concurrency() {
    let of = |rotational, cpus: &str| {
        let machine = Machine::new("ext4", "pci0/virtio1/block/vda")
            .with_disk("pci0/virtio1/block/vda", rotational, None)
            .with_file("proc/cpuinfo", cpus);
        machine.ends()
    };
    assert_eq!(of(1, VIRTUAL), named(&[("vda", None)]));
    assert_eq!(of(1, ""), named(&[("vda", Some(1))]));
    assert_eq!(of(0, VIRTUAL), named(&[("vda", Some(1023))]));
}

#[test]
fn device_counters_are_read_by_their_places() {
    let text = "  10 1 16 5 20 2 32 6 0 70 80 0 0 0 0 3 4\n";
    let found = parse_counters(text).expect("it has all fields");
    let expected = DeviceCounters {
        reads: 10,
        read_bytes: 8_192,
        writes: 20,
        written_bytes: 16_384,
        busy_ms: 70,
        queued_ms: 80,
        flushes: Some(3),
    };
    assert_eq!(found, expected);
    let old = parse_counters("10 1 16 5 20 2 32 6 0 70 80").expect("older kernels have no more");
    assert_eq!(old.flushes, None);
    assert_eq!(parse_counters("1 2 3"), None);
    assert_eq!(parse_counters("10 1 16 5 x 2 32 6 0 70 80"), None);
}

#[test]
fn rotational_disk_on_bare_metal_is_a_hard_disk() {
    let disk = "pci0/ata1/block/sda";
    let machine = |rotational| Machine::new("ext4", disk).with_disk(disk, rotational, Some(32));
    let is_hard = |machine: &Machine, device: &str| {
        is_hard_disk(machine.root(), &machine.root().join("sys/devices").join(device))
    };
    assert!(is_hard(&machine(1), disk));
    assert!(!is_hard(&machine(0), disk));
    let part = format!("{disk}/sda1");
    let parted = machine(1).with_file(&format!("sys/devices/{part}/partition"), "1\n");
    assert!(is_hard(&parted, &part));
    assert!(!is_hard(&machine(1).with_file("proc/cpuinfo", VIRTUAL), disk));
    // A device made by the kernel.
    let made = "virtual/block/loop7";
    let made_over = machine(1).with_file(&format!("sys/devices/{made}/queue/rotational"), "1\n");
    assert!(!is_hard(&made_over, made));
}
