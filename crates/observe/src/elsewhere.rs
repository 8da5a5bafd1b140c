//! Describes another machine on which a shell can run, with the same readers as this machine: a
//! script prints the files there, and they are recreated below a temporary root here.

use crate::doctor::{self, Subject};
use crate::environment;
use dyno_record::model::Environment;
use std::fs;
use std::io::{self, Write};
use std::path::{Component, Path};

/// Script for `sh` that prints each line of the files that describe a machine, after the file's
/// name and a colon. Skips CPU registers and files that the shell may not read.
pub const SCRIPT: &str = r#"cd / && export LC_ALL=C || exit 1
cpu=sys/devices/system/cpu
grep -sH '' proc/cpuinfo proc/meminfo proc/loadavg proc/self/status proc/self/cgroup proc/net/route proc/mounts \
    proc/sys/kernel/hostname proc/sys/kernel/ostype proc/sys/kernel/osrelease proc/sys/kernel/numa_balancing \
    proc/sys/vm/swappiness proc/sys/vm/zone_reclaim_mode proc/sys/vm/max_map_count \
    etc/os-release usr/lib/os-release run/systemd/container sys/hypervisor/type \
    sys/class/dmi/id/sys_vendor sys/class/dmi/id/bios_vendor sys/class/dmi/id/bios_version sys/class/dmi/id/bios_date \
    sys/kernel/mm/transparent_hugepage/enabled sys/kernel/mm/transparent_hugepage/defrag \
    sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none \
    sys/devices/system/clocksource/clocksource0/current_clocksource \
    sys/devices/system/clocksource/clocksource0/available_clocksource \
    sys/devices/system/node/online sys/devices/system/node/node[0-9]*/cpulist \
    $cpu/online $cpu/smt/control $cpu/intel_pstate/* $cpu/cpufreq/boost $cpu/cpuidle/current_driver \
    $cpu/cpu[0-9]*/cpufreq/scaling_governor $cpu/cpu[0-9]*/topology/physical_package_id \
    $cpu/cpu0/cpufreq/scaling_driver $cpu/cpu0/cpufreq/energy_performance_preference $cpu/cpu0/power/energy_perf_bias $cpu/cpu0/microcode/version \
    $cpu/cpu0/cpuidle/state[0-9]*/name $cpu/cpu0/cpuidle/state[0-9]*/latency $cpu/cpu0/cpuidle/state[0-9]*/disable
grep -sHx irqbalance proc/[0-9]*/comm
for mark in .dockerenv run/.containerenv proc/1/comm; do [ -e $mark ] && echo "$mark:"; done
true
"#;

/// Folders whose files [`SCRIPT`] prints, in addition to [`MARK`].
const FOLDERS: [&str; 5] = ["proc", "sys", "etc", "usr", "run"];
const MARK: &str = ".dockerenv";

/// The environment of a machine from the output of [`SCRIPT`]. The cost of reading its clock is
/// unknown.
///
/// # Errors
/// The files cannot be written.
pub fn environment(printed: &str) -> io::Result<Environment> {
    let folder = tempfile::tempdir()?;
    let root = folder.path();
    for line in printed.lines() {
        let Some((file, text)) = line.split_once(':') else {
            continue;
        };
        // Output of a `.bashrc` may come first.
        if is_printed(file) {
            append(&root.join(file), text)?;
        }
    }
    Ok(Environment {
        clock_read_ns: None,
        doctor: doctor::examine(&doctor::observe(root, &Subject::default())),
        ..environment::observe_root(root, None).0
    })
}

/// Whether the script prints a file of this name. The output of another host must not choose where
/// files are written here.
fn is_printed(file: &str) -> bool {
    let mut parts = Path::new(file).components();
    let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
    let is_below = FOLDERS.iter().any(|folder| {
        let below = file.strip_prefix(folder).and_then(|file| file.strip_prefix('/'));
        below.is_some_and(|file| !file.is_empty() && !file.ends_with('/'))
    });
    file == MARK || is_below && parts.all(is_name)
}

fn append(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file)?;
    writeln!(file, "{text}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::verdict::Level;
    use std::process::Command;

    #[test]
    fn shell_output_describes_the_same_machine_as_its_files() {
        let output = Command::new("sh").args(["-c", SCRIPT]).output();
        let output = output.expect("there is a shell");
        assert!(output.status.success(), "{output:?}");
        let printed = String::from_utf8(output.stdout).expect("it is text");
        let elsewhere = environment(&printed).expect("it can be written");
        let facts = doctor::observe(Path::new("/"), &Subject::default());
        let here = Environment { doctor: doctor::examine(&facts), ..environment::capture(None) };
        let expected = Environment {
            clock_read_ns: None,
            load_average: elsewhere.load_average,
            doctor: elsewhere.doctor.clone(),
            ..here.clone()
        };
        assert_eq!(elsewhere, expected);
        assert!(elsewhere.cpu_model.is_some() && elsewhere.memory_bytes.is_some());
        for (there, here) in elsewhere.doctor.iter().zip(&here.doctor) {
            let is_known = there.level != Level::Unknown;
            // Texts also contain the current use of a process or the machine.
            let is_same = (there.check, there.level) == (here.check, here.level);
            assert!(!is_known || is_same, "{there:?}, here {here:?}");
        }
        let known = elsewhere.doctor.iter();
        let known = known.filter(|one| one.level != Level::Unknown);
        assert!(known.count() >= 5, "{:?}", elsewhere.doctor);
    }

    #[test]
    fn other_host_cannot_write_files_outside_the_root() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("mine");
        let printed = format!(
            "{}:theirs\n../../../../../../../../tmp/mine:theirs\nproc/sys/kernel/hostname:db7\nno file\n",
            file.display()
        );
        let environment = environment(&printed).expect("it can be written");
        assert_eq!(environment.hostname.as_deref(), Some("db7"));
        assert!(!file.exists());
    }

    #[test]
    fn shell_greeting_is_not_taken_for_file_names() {
        let said = ": hello\nproc: mounted\nproc/: mounted\nsys:\n./proc:\nproc//: x\nmotd: welcome\netc/../mark: x\n.dockerenv:\n";
        let printed = format!("{said}proc/sys/kernel/hostname:db7\n");
        let environment = environment(&printed).expect("it can be written");
        assert_eq!(environment.hostname.as_deref(), Some("db7"));
        let named = ["", "proc", "proc/", "proc//", "sys", "motd", "etc/../mark", "/proc/cpuinfo"];
        assert!(!named.into_iter().any(is_printed));
        assert!(["proc/1/comm", "run/.containerenv", MARK].into_iter().all(is_printed));
    }
}
