//! Storage that is prepared and removed, on files behind loop devices; and devices that stay
//! untouched.

use dyno_plan::storage::Storage;
use dyno_record::disk::DeviceCounters;
use dyno_servers::storage::{
    MEASURING, PreparedStorage, StorageError, StorageLimits, can_measure, check,
};
use dyno_testkit::fault::is_root;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Slightly more than XFS needs.
const DISK_BYTES: u64 = 320 << 20;

/// Whether file systems can be made here.
fn can_prepare() -> bool {
    let lacks = |program: &&str| {
        let is_there = |folder: &str| Path::new(folder).join(program).exists();
        !["/usr/sbin", "/sbin", "/usr/bin", "/bin"].iter().any(|folder| is_there(folder))
    };
    let programs = ["losetup", "wipefs", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"];
    if !is_root() {
        dyno_testkit::skip("no root to make file systems");
        return false;
    }
    if let Some(program) = programs.iter().find(|program| lacks(program)) {
        dyno_testkit::skip(&format!("no `{program}` to make file systems"));
        return false;
    }
    true
}

/// Whether `fio` can measure them as well.
fn can_prepare_and_measure() -> bool {
    if !can_prepare() {
        return false;
    }
    if !can_measure() {
        dyno_testkit::skip("no `fio` to measure with");
        return false;
    }
    true
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {text}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A device with another owner: a file behind a loop device.
struct Disk {
    device: String,
    image: PathBuf,
    folder: TempDir,
}

impl Disk {
    fn new() -> Disk {
        let folder = TempDir::new().unwrap();
        let image = folder.path().join("disk");
        File::create(&image).unwrap().set_len(DISK_BYTES).unwrap();
        let device = run("losetup", &["--find", "--show", image.to_str().unwrap()]);
        Disk { device, image, folder }
    }

    fn setting(&self, file_system: &str) -> Storage {
        format!("{file_system} on {}", self.device).parse().unwrap()
    }

    /// The reason why it is refused. Asserts that the device stays unchanged.
    fn refusal(&self) -> String {
        let content = || {
            run("blockdev", &["--flushbufs", &self.device]);
            run("sha256sum", &[self.image.to_str().unwrap()])
        };
        let before = content();
        let setting = self.setting("ext4");
        let error = check(&setting, self.folder.path()).unwrap_err();
        let text = error.to_string();
        let tried = PreparedStorage::prepare(&setting, &self.folder.path().join("s"), &|| false);
        assert_eq!(tried.unwrap_err().to_string(), text);
        assert!(!self.folder.path().join("s").exists());
        assert_eq!(content(), before);
        assert!(error.hint().is_some());
        text
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

/// Lines about loop devices with a file in a folder.
fn loop_devices(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let text = run("losetup", &["--list"]);
    let lines = text.lines().filter(|line| line.contains(&folder));
    lines.map(str::to_owned).collect()
}

#[test]
fn occupied_devices_are_refused_and_stay_unchanged() {
    if !can_prepare() {
        return;
    }
    let disk = Disk::new();
    let device = disk.device.as_str();
    assert!(check(&disk.setting("xfs"), disk.folder.path()).is_ok());
    for (program, arguments, text) in [
        ("mkfs.ext4", &["-q", "-L", "mine"][..], "`mine`"),
        ("mkfs.xfs", &["-q", "-f"], "`xfs`"),
        ("mkfs.btrfs", &["-q", "-f"], "`btrfs`"),
        ("mkswap", &["-q"], "`swap`"),
    ] {
        run(program, &[arguments, &[device]].concat());
        let refusal = disk.refusal();
        assert!(refusal.contains(text), "{program}: {refusal}");
        run("wipefs", &["--quiet", "--all", device]);
    }
    let claimed = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(device).unwrap();
    let refusal = disk.refusal();
    assert!(refusal.contains("in use"), "{refusal}");
    drop(claimed);
    run("mkfs.ext4", &["-q", device]);
    let place = disk.folder.path().join("mounted");
    fs::create_dir(&place).unwrap();
    // Mounted for writing, its content would change.
    run("mount", &["-o", "ro", device, place.to_str().unwrap()]);
    let refusal = disk.refusal();
    run("umount", &[place.to_str().unwrap()]);
    assert!(refusal.contains(&format!("`{}`", place.display())), "{refusal}");
}

#[test]
fn partition_tables_and_volume_members_are_refused() {
    if !can_prepare() {
        return;
    }
    // The first and the second entry of a table: Linux, from sector 2048 on.
    let entry = [0_u8, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0, 4, 0];
    // The superblock of `md` (version 1.2) at 4096.
    let mut md = [0_u8; 256];
    md[..4].copy_from_slice(&0xa92b_4efc_u32.to_le_bytes());
    md[4..8].copy_from_slice(&1_u32.to_le_bytes());
    md[144..152].copy_from_slice(&8_u64.to_le_bytes());
    // A label of LVM in sector 1, without the checksum, which only LVM checks.
    let mut lvm = [0_u8; 64];
    lvm[..8].copy_from_slice(b"LABELONE");
    lvm[8..16].copy_from_slice(&1_u64.to_le_bytes());
    lvm[20..24].copy_from_slice(&32_u32.to_le_bytes());
    lvm[24..32].copy_from_slice(b"LVM2 001");
    for (name, blocks) in [
        ("`dos`", vec![(446, &entry[..]), (510, &[0x55, 0xaa])]),
        ("`linux_raid_member`", vec![(4096, &md[..])]),
        ("`LVM2_member`", vec![(512, &lvm[..])]),
    ] {
        let disk = Disk::new();
        let file = OpenOptions::new().write(true).open(&disk.device).unwrap();
        for (offset, bytes) in blocks {
            file.write_all_at(bytes, offset).unwrap();
        }
        drop(file);
        run("blockdev", &["--flushbufs", &disk.device]);
        let refusal = disk.refusal();
        assert!(refusal.contains(name), "{refusal}");
    }
}

#[test]
fn leftovers_of_a_killed_run_have_their_own_hint() {
    if !can_prepare() {
        return;
    }
    let disk = Disk::new();
    run("mkfs.ext4", &["-q", "-L", "dyno-storage", &disk.device]);
    let error = check(&disk.setting("xfs"), disk.folder.path()).unwrap_err();
    assert!(matches!(error, StorageError::Refused { is_ours: true, .. }));
    let hint = error.hint().unwrap();
    assert!(hint.contains(&format!("wipefs --all {}", disk.device)), "{hint}");
}

#[test]
fn device_with_two_names_is_refused() {
    if !can_prepare() {
        return;
    }
    let disk = Disk::new();
    // A link like those below `/dev/disk`.
    let links = TempDir::new_in("/dev").unwrap();
    let other = links.path().join("other-name");
    symlink(&disk.device, &other).unwrap();
    let setting = format!("btrfs-raid0 on {},{}", disk.device, other.display());
    let error = check(&setting.parse().unwrap(), disk.folder.path()).unwrap_err();
    let StorageError::Refused { device, reason, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*device, other.display().to_string());
    assert!(reason.contains("another name"), "{reason}");
}

#[test]
fn file_systems_are_private_and_leave_nothing() {
    if !can_prepare() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let place = folder.path().join("storage");
    // A thread that existed before.
    let (ask, asked) = mpsc::channel::<PathBuf>();
    let (answer, answered) = mpsc::channel();
    std::thread::spawn(move || {
        for path in asked {
            answer.send(path.exists()).unwrap();
        }
    });
    for (text, kind, devices) in [
        ("ext4 on loop:512MiB", "ext4", 1),
        ("xfs on loop:512MiB", "xfs", 1),
        ("btrfs on loop:512MiB", "btrfs", 1),
        ("btrfs-raid0 on loop:512MiB,loop:512MiB", "btrfs", 2),
    ] {
        let storage = PreparedStorage::prepare(&text.parse().unwrap(), &place, &|| false).unwrap();
        assert_eq!(storage.member_paths().len(), devices);
        fs::create_dir(storage.data()).unwrap();
        let file = storage.data().join("x");
        fs::write(&file, "x").unwrap();
        let mounts = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
        let ours = mounts.lines().find(|line| line.contains(place.to_str().unwrap()));
        assert!(ours.unwrap().contains(&format!(" - {kind} /dev/loop")), "{ours:?}");
        ask.send(file.clone()).unwrap();
        assert!(!answered.recv().unwrap(), "others see it");
        let seen = std::thread::spawn(move || file.exists());
        assert!(seen.join().unwrap(), "our own thread does not see it");
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert_eq!(names.len(), 1, "the file has a name: {names:?}");
        storage.remove().unwrap();
        assert!(!place.exists());
        // The kernel detaches it after its last user has ended.
        let began = Instant::now();
        while !loop_devices(folder.path()).is_empty() {
            assert!(began.elapsed() < Duration::from_secs(30), "{text} stays");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn kernel_raid_needs_md() {
    if !can_prepare() {
        return;
    }
    if Path::new("/proc/mdstat").exists() {
        dyno_testkit::skip("this kernel has `md`");
        return;
    }
    let folder = TempDir::new().unwrap();
    let setting = "raid0 xfs on loop:512MiB,loop:512MiB".parse().unwrap();
    let error = check(&setting, folder.path()).unwrap_err();
    assert!(matches!(error, StorageError::NoMd), "{error}");
    assert!(error.hint().unwrap().contains("btrfs-raid0"));
}

#[test]
fn named_device_is_empty_again() {
    if !can_prepare() {
        return;
    }
    let disk = Disk::new();
    let place = disk.folder.path().join("storage");
    for file_system in ["xfs", "ext4", "btrfs"] {
        let setting = disk.setting(file_system);
        let storage = PreparedStorage::prepare(&setting, &place, &|| false).unwrap();
        assert_eq!(storage.bytes(), DISK_BYTES);
        fs::create_dir(storage.data()).unwrap();
        fs::write(storage.data().join("x"), "x").unwrap();
        drop(storage);
        assert_eq!(run("wipefs", &["--parsable", &disk.device]), "");
        assert!(!place.exists());
    }
}

#[test]
fn interrupted_preparation_leaves_nothing() {
    if !can_prepare() {
        return;
    }
    let disk = Disk::new();
    let place = disk.folder.path().join("storage");
    let error = PreparedStorage::prepare(&disk.setting("ext4"), &place, &|| true).unwrap_err();
    assert!(matches!(error, StorageError::Interrupted), "{error}");
    assert_eq!(run("wipefs", &["--parsable", &disk.device]), "");
    assert!(!place.exists());
}

/// Our control group that contains a process: its folder, on version 1 or 2.
fn group_of(process: u32) -> Option<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap();
    let ours = format!("/dyno-storage-{}-", std::process::id());
    let line = text.lines().find(|line| line.contains(&ours))?;
    let group = line.rsplit_once(":/").unwrap().1;
    let roots = ["/sys/fs/cgroup/blkio", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let mut folders = roots.iter().map(|root| Path::new(root).join(group));
    folders.find(|folder| folder.is_dir())
}

/// An idle process that ends when dropped.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn limit_takes_processes_and_gives_them_back() {
    if !can_prepare() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let place = folder.path().join("storage");
    let setting = "ext4 on loop:512MiB at 200 iops".parse().unwrap();
    let storage = match PreparedStorage::prepare(&setting, &place, &|| false) {
        Err(StorageError::NoLimits) => {
            dyno_testkit::skip("control groups cannot limit devices here");
            return;
        }
        prepared => prepared.unwrap(),
    };
    let sleeper = Sleeper(Command::new("sleep").arg("600").spawn().unwrap());
    let process = sleeper.0.id();
    assert_eq!(group_of(process), None);
    let limit = storage.throttle(&[process]).unwrap().unwrap();
    let group = group_of(process).expect("it was put there");
    let device = fs::read_to_string(format!("/sys/class/block/{}/dev", {
        let path = storage.member_paths().remove(0);
        path.trim_start_matches("/dev/").to_owned()
    }));
    let device = device.unwrap().trim().to_owned();
    let rules = |name: &str| fs::read_to_string(group.join(name)).unwrap_or_default();
    let v1 = ["read", "write"].map(|what| rules(&format!("blkio.throttle.{what}_iops_device")));
    let is_v1 = v1.iter().all(|rule| *rule == format!("{device} 200\n"));
    let v2 = rules("io.max");
    let is_v2 = v2.starts_with(&device) && v2.contains("riops=200 wiops=200");
    assert!(is_v1 || is_v2, "{v1:?} {v2}");
    drop(limit);
    assert_eq!(group_of(process), None);
    assert!(!group.exists());
    storage.remove().unwrap();
}

/// Measures storage by the counters of the devices below it.
fn measure(storage: &PreparedStorage) -> StorageLimits {
    let members = storage.member_paths();
    let counters = |path: &String| {
        let name = path.trim_start_matches("/dev/").to_owned();
        let text = fs::read_to_string(format!("/sys/class/block/{name}/stat"));
        let text = text.map_err(|error| error.to_string())?;
        let fields: Vec<u64> =
            text.split_whitespace().map(|field| field.parse().unwrap()).collect();
        let counters = DeviceCounters {
            reads: fields[0],
            read_bytes: fields[2] * 512,
            writes: fields[4],
            written_bytes: fields[6] * 512,
            flushes: fields.get(15).copied(),
            ..DeviceCounters::default()
        };
        Ok((name, counters))
    };
    let counted = || members.iter().map(counters).collect();
    storage.measure(&counted, &|| false).unwrap()
}

#[test]
fn each_member_of_a_volume_has_its_capacity() {
    if !can_prepare_and_measure() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let place = folder.path().join("storage");
    let setting = "btrfs-raid0 on loop:512MiB,loop:512MiB".parse().unwrap();
    let storage = PreparedStorage::prepare(&setting, &place, &|| false).unwrap();
    let limits = measure(&storage);
    let names = limits.capacities.keys();
    let members = storage.member_paths();
    let paths: Vec<String> = names.map(|name| format!("/dev/{name}")).collect();
    // On a busy machine, a reason is as valid as a capacity.
    let is_reported = paths.is_empty() && limits.no_capacity.is_some();
    assert!(is_reported || paths == members, "{limits:?}");
    // The stripe distributes requests evenly.
    if let [a, b] = limits.capacities.values().collect::<Vec<_>>()[..] {
        for [a, b] in [[a.read_per_s, b.read_per_s], [a.write_per_s, b.write_per_s]] {
            let ratio = a.zip(b).map_or(1.0, |(a, b)| a / b);
            assert!((0.7..1.4).contains(&ratio), "{limits:?}");
        }
    }
    let left = fs::read_dir(storage.data().parent().unwrap()).unwrap();
    assert_eq!(left.flatten().count(), 0);
    storage.remove().unwrap();
}

#[test]
fn measured_rates_respect_the_limit() {
    if !can_prepare_and_measure() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let place = folder.path().join("storage");
    let setting = "ext4 on loop:512MiB at 200 iops".parse().unwrap();
    let storage = match PreparedStorage::prepare(&setting, &place, &|| false) {
        Err(StorageError::NoLimits) => {
            dyno_testkit::skip("control groups cannot limit devices here");
            return;
        }
        prepared => prepared.unwrap(),
    };
    let began = Instant::now();
    let limits = measure(&storage);
    // A busy machine needs longer.
    assert!(began.elapsed() < MEASURING * 2, "{:?}", began.elapsed());
    // The device of a loaded machine may be slower, and the first requests of a group are free.
    let performance = &limits.performance;
    let reads = performance.random_reads_per_s;
    assert!((50.0..260.0).contains(&reads), "{limits:?}");
    assert!(performance.synced_writes_per_s < 260.0, "{limits:?}");
    assert!(performance.measured_by.starts_with("fio"), "{limits:?}");
    // The capacity is independent of the limit.
    if let [(name, capacity)] = limits.capacities.iter().collect::<Vec<_>>()[..] {
        assert_eq!(format!("/dev/{name}"), storage.member_paths()[0]);
        let all = [
            capacity.read_per_s,
            capacity.write_per_s,
            capacity.read_bytes_per_s.map(|bytes| bytes / 4096.0),
            capacity.write_bytes_per_s.map(|bytes| bytes / 4096.0),
        ];
        assert!(all.iter().flatten().all(|most| *most > 300.0), "{limits:?}");
        assert!(capacity.flush_per_s.is_none_or(|most| most > 0.0));
        let is_open = all.contains(&None) || capacity.flush_per_s.is_none();
        assert_eq!(is_open, limits.no_capacity.is_some());
    } else {
        assert!(limits.no_capacity.is_some(), "{limits:?}");
    }
    assert_eq!(storage.limit_per_s(), Some(200));
    let left = fs::read_dir(storage.data().parent().unwrap()).unwrap();
    let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["lost+found"]);
    storage.remove().unwrap();
}
