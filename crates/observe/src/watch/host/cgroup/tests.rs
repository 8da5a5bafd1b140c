use super::super::testing::{assert_values, missing, names, value};
use super::*;
use crate::host::tests::Fixture;

const ONE: &str = "1 0 0:1 / /cg/cpu rw - cgroup cgroup rw,cpu\n\
    2 0 0:2 / /cg/memory rw - cgroup cgroup rw,memory\n3 0 0:3 / /cg/blkio rw - cgroup cgroup rw,blkio\n";
const TWO: &str = "4 0 0:4 / /cg/unified rw - cgroup2 cgroup2 rw\n";

struct Watched {
    fixture: Fixture,
    groups: ControlGroups,
    hierarchies: Hierarchies,
}

impl Watched {
    fn new(mounts: &str, membership: &str) -> Watched {
        let fixture =
            Fixture::new().with("proc/self/mountinfo", mounts).with("proc/7/cgroup", membership);
        let hierarchies = Hierarchies::read(fixture.root()).unwrap();
        Watched { fixture, groups: ControlGroups::new("server"), hierarchies }
    }

    fn with(mut self, path: &str, text: &str) -> Watched {
        self.fixture = self.fixture.with(path, text);
        self
    }

    fn read(&mut self, at_s: f64) -> Reported {
        let mut reported = Reported::default();
        let process = self.fixture.root().join("proc/7");
        self.groups.read(&process, &self.hierarchies, at_s, &mut reported);
        reported
    }
}

fn stat_of_two(periods: u64, throttled: u64, throttled_us: u64) -> String {
    format!(
        "usage_usec 5\nuser_usec 4\nsystem_usec 1\nnr_periods {periods}\nnr_throttled {throttled}\n\
         throttled_usec {throttled_us}\nnr_bursts 0\n"
    )
}

#[test]
fn lowest_limit_on_the_way_up_counts_in_version_two() {
    let mut watched = Watched::new(TWO, "0::/a/b\n")
        .with("cg/unified/a/b/cpu.max", "max 100000\n")
        .with("cg/unified/a/cpu.max", "150000 100000\n")
        .with("cg/unified/a/cpu.stat", &stat_of_two(100, 10, 1_000_000))
        .with("cg/unified/a/b/memory.max", "2000000\n")
        .with("cg/unified/a/b/memory.current", "1500000\n")
        .with("cg/unified/a/memory.max", "max\n")
        .with("cg/unified/a/b/io.max", "8:16 rbps=max wbps=1048576 riops=max wiops=120\n")
        .with("cg/unified/a/io.max", "8:0 rbps=1 wbps=max riops=max wiops=max\n");
    let reported = watched.read(1.0);
    assert_eq!(value(&reported, "cgroup.server.cpu_throttled_ratio"), None);
    assert_values(
        &reported,
        &[
            ("cgroup.server.cpu_limit_count", 1.5),
            ("cgroup.server.memory_limit_bytes", 2e6),
            ("cgroup.server.memory_used_bytes", 1.5e6),
            ("cgroup.server.io_limited_count", 3.0),
        ],
    );
    assert_eq!(reported.missing, []);
    let stat = stat_of_two(120, 15, 7_000_000);
    let mut watched = watched.with("cg/unified/a/cpu.stat", &stat);
    let reported = watched.read(3.0);
    assert_values(
        &reported,
        &[
            ("cgroup.server.cpu_throttled_ratio", 3.0),
            ("cgroup.server.cpu_throttled_periods_ratio", 0.25),
        ],
    );
}

#[test]
fn version_one_limits_are_found_up_to_the_root() {
    let stat = |periods: u64, throttled: u64, ns: u64| {
        format!("nr_periods {periods}\nnr_throttled {throttled}\nthrottled_time {ns}\n")
    };
    let mut watched = Watched::new(ONE, "3:blkio:/x\n2:memory:/x/y\n1:cpu:/x\n")
        .with("cg/cpu/x/cpu.cfs_quota_us", "50000\n")
        .with("cg/cpu/x/cpu.cfs_period_us", "100000\n")
        .with("cg/cpu/x/cpu.stat", &stat(0, 0, 0))
        .with("cg/cpu/cpu.cfs_quota_us", "-1\n")
        .with("cg/memory/x/y/memory.limit_in_bytes", "9223372036854771712\n")
        .with("cg/memory/x/memory.limit_in_bytes", "4096000\n")
        .with("cg/memory/x/memory.usage_in_bytes", "1000\n")
        .with("cg/memory/memory.limit_in_bytes", "9223372036854771712\n")
        .with("cg/blkio/x/blkio.throttle.read_iops_device", "")
        .with("cg/blkio/blkio.throttle.write_iops_device", "7:0 100\n254:0 9\n");
    watched.read(1.0);
    let mut watched = watched.with("cg/cpu/x/cpu.stat", &stat(10, 9, 500_000_000));
    let reported = watched.read(2.0);
    assert_values(
        &reported,
        &[
            ("cgroup.server.cpu_limit_count", 0.5),
            ("cgroup.server.cpu_throttled_ratio", 0.5),
            ("cgroup.server.cpu_throttled_periods_ratio", 0.9),
            ("cgroup.server.memory_limit_bytes", 4_096_000.0),
            ("cgroup.server.memory_used_bytes", 1000.0),
            ("cgroup.server.io_limited_count", 2.0),
        ],
    );
    assert_eq!(reported.missing, []);
}

#[test]
fn machine_with_both_versions_has_each_controller_once() {
    let mounts = format!("{}{TWO}", ONE.lines().next().unwrap().to_owned() + "\n");
    let mut watched = Watched::new(&mounts, "1:cpu:/x\n0::/y\n")
        .with("cg/cpu/x/cpu.cfs_quota_us", "-1\n")
        .with("cg/unified/y/memory.max", "5000\n")
        .with("cg/unified/y/memory.current", "3000\n")
        .with("cg/unified/y/io.max", "");
    let reported = watched.read(1.0);
    assert_eq!(
        names(&reported, "cgroup."),
        [
            "cgroup.server.io_limited_count",
            "cgroup.server.memory_limit_bytes",
            "cgroup.server.memory_used_bytes",
        ]
    );
    assert_values(&reported, &[("cgroup.server.io_limited_count", 0.0)]);
}

#[test]
fn moved_process_has_the_limits_of_its_new_groups() {
    let mut watched = Watched::new(TWO, "0::/a\n")
        .with("cg/unified/a/cpu.max", "max 100000\n")
        .with("cg/unified/b/cpu.max", "20000 100000\n")
        .with("cg/unified/b/cpu.stat", &stat_of_two(5, 5, 5));
    assert_eq!(value(&watched.read(1.0), "cgroup.server.cpu_limit_count"), None);
    let mut watched = watched.with("proc/7/cgroup", "0::/b\n");
    let reported = watched.read(2.0);
    assert_values(&reported, &[("cgroup.server.cpu_limit_count", 0.2)]);
    assert_eq!(value(&reported, "cgroup.server.cpu_throttled_ratio"), None);
    let reported = watched.read(3.0);
    assert_values(&reported, &[("cgroup.server.cpu_throttled_ratio", 0.0)]);
    // No period passed.
    assert_eq!(value(&reported, "cgroup.server.cpu_throttled_periods_ratio"), None);
}

#[test]
fn unreadable_cgroup_files_are_reported() {
    let mut watched = Watched::new("1 0 0:1 / / rw - ext4 /dev/vda rw\n", "0::/a\n");
    let reported = watched.read(1.0);
    assert!(reported.values.is_empty());
    assert!(matches!(missing(&reported, PART), Some(Health::Unsupported { .. })));
    let mut watched = Watched::new(TWO, "0::/a\n")
        .with("cg/unified/a/cpu.max", "20000 100000\n")
        .with("cg/unified/a/cpu.stat", "usage_usec 9\n");
    assert!(matches!(missing(&watched.read(1.0), PART), Some(Health::Degraded { .. })));
}

#[test]
fn process_without_limits_reports_none() {
    let no_limit = "9223372036854771712\n";
    let mut watched = Watched::new(ONE, "3:blkio:/\n2:memory:/\n1:cpu:/\n")
        .with("cg/cpu/cpu.cfs_quota_us", "-1\n")
        .with("cg/cpu/cpu.cfs_period_us", "100000\n")
        .with("cg/memory/memory.limit_in_bytes", no_limit)
        .with("cg/memory/memory.usage_in_bytes", "1000\n")
        .with("cg/blkio/blkio.throttle.read_iops_device", "\n");
    watched.read(1.0);
    let reported = watched.read(2.0);
    assert_values(&reported, &[("cgroup.server.io_limited_count", 0.0)]);
    assert_eq!((reported.values.len(), reported.missing.len()), (1, 0));
}
