//! Settings of the kernel and of devices that a run changes on the machine of its servers: their
//! names, which match the checks of `dyno doctor`, and their valid values.

use crate::names::choices;
use crate::units::Bytes;

choices! {
    /// A setting of the machine.
    HostSetting {
        /// Tendency to swap out memory of programs.
        Swappiness = "swappiness", "`vm.swappiness`: how readily memory of programs goes to swap, 0 to 200";
        /// Share of unwritten memory above which writing programs wait for the disk.
        DirtyRatio = "dirty_ratio", "`vm.dirty_ratio`: unwritten share of the memory, in percent, from which on writers wait for the disk";
        /// Share of unwritten memory above which the kernel starts to write to the disk.
        DirtyBackgroundRatio = "dirty_background_ratio", "`vm.dirty_background_ratio`: unwritten share of the memory, in percent, from which on the kernel writes";
        /// Whether a NUMA node reclaims its own memory before it uses other nodes' memory.
        ZoneReclaim = "zone_reclaim", "`vm.zone_reclaim_mode`: whether a NUMA node takes back its own memory first, 0 to 7";
        /// Whether the kernel moves memory between NUMA nodes.
        NumaBalancing = "numa_balancing", "`kernel.numa_balancing`: whether the kernel moves memory between NUMA nodes, 0 to 2";
        /// Transparent huge pages.
        HugePages = "huge_pages", "transparent huge pages: `always`, `madvise` or `never`";
        /// How the kernel obtains huge pages.
        HugePagesDefrag = "huge_pages_defrag", "how hard the kernel tries to get huge pages: `always`, `defer`, `defer+madvise`, `madvise` or `never`";
        /// Frequency governor of all CPUs.
        CpuGovernor = "cpu_governor", "frequency governor of all CPUs, such as `performance`";
        /// Read-ahead on the disk with the data.
        Readahead = "readahead", "how far the kernel reads ahead on the disk of the data, such as `16KiB`";
        /// Order of the requests to the disk with the data.
        IoScheduler = "io_scheduler", "scheduler of the disk of the data, such as `none` or `mq-deadline`";
    }
}

/// Location of a setting in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// One file for the machine.
    Machine(&'static str),
    /// A file for each CPU, below its folder in `/sys/devices/system/cpu`.
    EachCpu(&'static str),
    /// A file of the queue of the disk with the data.
    DataDisk(&'static str),
}

impl HostSetting {
    /// Location of this setting in the kernel.
    pub const fn place(self) -> Place {
        match self {
            HostSetting::Swappiness => Place::Machine("/proc/sys/vm/swappiness"),
            HostSetting::DirtyRatio => Place::Machine("/proc/sys/vm/dirty_ratio"),
            HostSetting::DirtyBackgroundRatio => {
                Place::Machine("/proc/sys/vm/dirty_background_ratio")
            }
            HostSetting::ZoneReclaim => Place::Machine("/proc/sys/vm/zone_reclaim_mode"),
            HostSetting::NumaBalancing => Place::Machine("/proc/sys/kernel/numa_balancing"),
            HostSetting::HugePages => Place::Machine("/sys/kernel/mm/transparent_hugepage/enabled"),
            HostSetting::HugePagesDefrag => {
                Place::Machine("/sys/kernel/mm/transparent_hugepage/defrag")
            }
            HostSetting::CpuGovernor => Place::EachCpu("cpufreq/scaling_governor"),
            HostSetting::Readahead => Place::DataDisk("read_ahead_kb"),
            HostSetting::IoScheduler => Place::DataDisk("scheduler"),
        }
    }

    /// A file whose number, unless 0, overrides this setting and is lost when the setting is
    /// written.
    pub const fn instead(self) -> Option<&'static str> {
        match self {
            HostSetting::DirtyRatio => Some("/proc/sys/vm/dirty_bytes"),
            HostSetting::DirtyBackgroundRatio => Some("/proc/sys/vm/dirty_background_bytes"),
            _ => None,
        }
    }

    /// Whether a server must be restarted for it: allocated memory keeps its pages, and the kernel
    /// copies the read-ahead of a disk to a file when the file is opened.
    pub const fn needs_start(self) -> bool {
        matches!(
            self,
            HostSetting::HugePages | HostSetting::HugePagesDefrag | HostSetting::Readahead
        )
    }

    /// Description of the valid values.
    pub const fn values(self) -> &'static str {
        match self {
            HostSetting::Swappiness => "a whole number from 0 to 200",
            HostSetting::DirtyRatio | HostSetting::DirtyBackgroundRatio => {
                "a percentage from 1 to 100, without its sign"
            }
            HostSetting::ZoneReclaim => "a whole number from 0 to 7",
            HostSetting::NumaBalancing => "0, 1 or 2",
            HostSetting::HugePages => "`always`, `madvise` or `never`",
            HostSetting::HugePagesDefrag => {
                "`always`, `defer`, `defer+madvise`, `madvise` or `never`"
            }
            HostSetting::CpuGovernor => "a governor of this machine, such as `performance`",
            HostSetting::Readahead => "a size in steps of 4 KiB up to 1 GiB, such as `16KiB`",
            HostSetting::IoScheduler => "a scheduler of this kernel, such as `none`",
        }
    }

    /// The content of the setting's file for a value in a plan; `None` for an invalid value.
    pub fn written(self, value: &str) -> Option<String> {
        let value = value.trim();
        let number = |least: u32, most: u32| {
            let number = value.parse::<u32>().ok();
            let number = number.filter(|number| (least..=most).contains(number));
            number.map(|number| number.to_string())
        };
        let one_of = |all: &[&str]| all.contains(&value).then(|| value.to_owned());
        match self {
            HostSetting::Swappiness => number(0, 200),
            HostSetting::DirtyRatio | HostSetting::DirtyBackgroundRatio => number(1, 100),
            HostSetting::ZoneReclaim => number(0, 7),
            HostSetting::NumaBalancing => number(0, 2),
            HostSetting::HugePages => one_of(&["always", "madvise", "never"]),
            HostSetting::HugePagesDefrag => {
                one_of(&["always", "defer", "defer+madvise", "madvise", "never"])
            }
            HostSetting::CpuGovernor | HostSetting::IoScheduler => {
                let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                let is_name = !value.is_empty() && value.chars().all(is_of_name);
                is_name.then(|| value.to_owned())
            }
            HostSetting::Readahead => {
                let bytes = value.parse::<Bytes>().ok()?.0;
                let is_one = bytes.is_multiple_of(PAGE_BYTES) && bytes <= MOST_READAHEAD_BYTES;
                is_one.then(|| (bytes / KIBIBYTE).to_string())
            }
        }
    }

    /// The value in a plan for the content of the setting's file.
    pub fn read(self, content: &str) -> String {
        match (self, content.parse::<u64>()) {
            (HostSetting::Readahead, Ok(kibibytes)) => {
                Bytes(kibibytes.saturating_mul(KIBIBYTE)).to_string()
            }
            _ => content.to_owned(),
        }
    }
}

const KIBIBYTE: u64 = 1 << 10;

/// The kernel reads ahead whole pages, and rounds down.
const PAGE_BYTES: u64 = 4 << 10;

/// A larger value is probably a typing error.
const MOST_READAHEAD_BYTES: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_the_kernel_accepts_them() {
        let cases = [
            (HostSetting::Swappiness, "1", Some("1")),
            (HostSetting::Swappiness, "201", None),
            (HostSetting::Swappiness, "-1", None),
            (HostSetting::DirtyRatio, "0", None),
            (HostSetting::DirtyBackgroundRatio, "100", Some("100")),
            (HostSetting::HugePages, "madvise", Some("madvise")),
            (HostSetting::HugePages, "defer", None),
            (HostSetting::HugePagesDefrag, "defer+madvise", Some("defer+madvise")),
            (HostSetting::IoScheduler, "mq-deadline", Some("mq-deadline")),
            (HostSetting::IoScheduler, "none; reboot", None),
            (HostSetting::CpuGovernor, "", None),
            (HostSetting::Readahead, "16KiB", Some("16")),
            (HostSetting::Readahead, "0", Some("0")),
            (HostSetting::Readahead, "6KiB", None),
            (HostSetting::Readahead, "2GiB", None),
        ];
        for (setting, value, expected) in cases {
            let found = setting.written(value);
            assert_eq!(found.as_deref(), expected, "{} {value}", setting.as_str());
        }
    }

    #[test]
    fn kernel_values_are_read_as_plan_values() {
        assert_eq!(HostSetting::Readahead.read("128"), "128KiB");
        assert_eq!(HostSetting::Readahead.read("4096"), "4MiB");
        assert_eq!(HostSetting::Swappiness.read("60"), "60");
        for (setting, name, help) in HostSetting::NAMES {
            assert_eq!(HostSetting::from_name(name), Some(*setting));
            assert!(!help.ends_with('.'), "{help}");
        }
        assert_eq!(HostSetting::from_name("vm.swappiness"), None);
    }
}
