//! CPU time by kind of work, of each core and of all online cores; and the other counters of
//! `/proc/stat`, so that the file is read once for both.

use super::activity;
use super::file::KeptFile;
use super::part::Part;
use crate::health::Reading;
use crate::stat::{CpuTimes, cores};
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::metrics::MetricId;
use dyno_record::names::{Metric, cpu};
use std::collections::BTreeMap;
use std::path::Path;

/// A kind of work: its metric and its time.
type Kind = (Metric, fn(&CpuTimes) -> u64);

const OF_ALL: [Kind; 10] = [
    (cpu::ALL_USER_RATIO, |times| times.user),
    (cpu::ALL_NICE_RATIO, |times| times.nice),
    (cpu::ALL_SYSTEM_RATIO, |times| times.system),
    (cpu::ALL_IDLE_RATIO, |times| times.idle),
    (cpu::ALL_IOWAIT_RATIO, |times| times.iowait),
    (cpu::ALL_IRQ_RATIO, |times| times.irq),
    (cpu::ALL_SOFTIRQ_RATIO, |times| times.softirq),
    (cpu::ALL_STEAL_RATIO, |times| times.steal),
    (cpu::ALL_GUEST_RATIO, |times| times.guest),
    (cpu::ALL_BUSY_RATIO, CpuTimes::busy),
];

/// Fewer kinds per core, because a machine may have hundreds of cores.
const OF_CORE: [Kind; 6] = [
    (cpu::USER_RATIO, |times| times.user),
    (cpu::SYSTEM_RATIO, |times| times.system),
    (cpu::IOWAIT_RATIO, |times| times.iowait),
    (cpu::SOFTIRQ_RATIO, |times| times.irq.saturating_add(times.softirq)),
    (cpu::STEAL_RATIO, |times| times.steal),
    (cpu::BUSY_RATIO, CpuTimes::busy),
];

/// The CPUs.
pub(super) struct Cpus {
    file: KeptFile,
    /// The cores at the previous reading.
    before: BTreeMap<u64, CpuTimes>,
    rates: Rates,
}

impl Cpus {
    pub(super) fn new(root: &Path) -> Cpus {
        Cpus {
            file: KeptFile::new(root, "proc/stat"),
            before: BTreeMap::new(),
            rates: Rates::default(),
        }
    }
}

impl Part for Cpus {
    fn read(&mut self, at_s: f64, reported: &mut Reported) -> Reading<()> {
        let text = self.file.read()?;
        let now: BTreeMap<u64, CpuTimes> = cores(text).collect();
        // Uses the sum of the cores instead of the line of all CPUs: that line includes offline
        // cores, and jumps when one comes or goes.
        let mut all = CpuTimes::default();
        for (number, times) in &now {
            let Some(before) = self.before.get(number) else {
                continue;
            };
            let growth = times.growth_since(before);
            all = all.plus(&growth);
            let core = number.to_string();
            report_ratios(reported, &OF_CORE, |metric| metric.of(&core), &growth);
        }
        report_ratios(reported, &OF_ALL, Metric::id, &all);
        self.rates.begin(at_s);
        activity::report(text, &mut self.rates, reported);
        self.before = now;
        if self.before.is_empty() { Err(self.file.not_understood("CPU")) } else { Ok(()) }
    }
}

/// Shares of the counted time; reports nothing if less than a tick passed.
fn report_ratios(
    reported: &mut Reported,
    kinds: &[Kind],
    id: impl Fn(Metric) -> MetricId,
    growth: &CpuTimes,
) {
    let total = growth.total();
    if total == 0 {
        return;
    }
    for (metric, time) in kinds {
        reported.put(id(*metric), time(growth) as f64 / total as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{WHOLE, assert_values, missing, names, read, value};
    use super::*;
    use crate::health::Health;
    use crate::host::tests::Fixture;

    #[test]
    fn shares_of_each_core_and_of_all_cores_add_up() {
        // The line of all CPUs is ignored because it includes offline cores.
        let fixture = Fixture::new().with(
            "proc/stat",
            "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 100 10 50 800 20 1 9 10 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n",
        );
        let mut cpus = Cpus::new(fixture.root());
        assert_eq!(names(&read(&mut cpus, 1.0), "cpu"), [""; 0]);
        let fixture = fixture.with(
            "proc/stat",
            "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 140 20 70 810 25 2 13 20 5 2\ncpu1 0 0 0 90 10 0 0 0 0 0\n",
        );
        let reported = read(&mut cpus, 2.0);
        assert_values(
            &reported,
            &[
                ("cpu.0.user_ratio", 0.4),
                ("cpu.0.system_ratio", 0.2),
                ("cpu.0.iowait_ratio", 0.05),
                ("cpu.0.softirq_ratio", 0.05),
                ("cpu.0.steal_ratio", 0.1),
                ("cpu.0.busy_ratio", 0.85),
                ("cpu.1.busy_ratio", 0.0),
                ("cpu.all.user_ratio", 0.2),
                ("cpu.all.nice_ratio", 0.05),
                ("cpu.all.system_ratio", 0.1),
                ("cpu.all.idle_ratio", 0.5),
                ("cpu.all.iowait_ratio", 0.075),
                ("cpu.all.irq_ratio", 0.005),
                ("cpu.all.softirq_ratio", 0.02),
                ("cpu.all.steal_ratio", 0.05),
                ("cpu.all.guest_ratio", 0.035),
                ("cpu.all.busy_ratio", 0.425),
            ],
        );
        assert_eq!(names(&reported, "cpu.").len(), 22);
        // Less than a tick later.
        let reported = read(&mut cpus, 2.001);
        assert_eq!(names(&reported, "cpu."), [""; 0]);
        drop(fixture);
    }

    #[test]
    fn decreased_idle_time_and_iowait_have_not_grown() {
        let fixture = Fixture::new().with("proc/stat", "cpu0 100 0 0 500 50 0 0 0\n");
        let mut cpus = Cpus::new(fixture.root());
        read(&mut cpus, 1.0);
        let _fixture = fixture.with("proc/stat", "cpu0 130 0 0 510 48 0 0 0\n");
        let reported = read(&mut cpus, 2.0);
        assert_values(&reported, &[("cpu.0.iowait_ratio", 0.0), ("cpu.0.busy_ratio", 0.75)]);
    }

    #[test]
    fn returning_core_starts_anew() {
        let fixture = Fixture::new().with("proc/stat", "cpu0 0 0 0 0\ncpu1 0 0 0 0\n");
        let mut cpus = Cpus::new(fixture.root());
        read(&mut cpus, 1.0);
        let fixture = fixture.with("proc/stat", "cpu0 50 0 0 50\n");
        let reported = read(&mut cpus, 2.0);
        assert_values(&reported, &[("cpu.all.busy_ratio", 0.5)]);
        assert_eq!(value(&reported, "cpu.1.busy_ratio"), None);
        let fixture = fixture.with("proc/stat", "cpu0 100 0 0 100\ncpu1 500 0 0 0\n");
        let reported = read(&mut cpus, 3.0);
        assert_values(&reported, &[("cpu.all.busy_ratio", 0.5)]);
        assert_eq!(value(&reported, "cpu.1.busy_ratio"), None);
        let _fixture = fixture.with("proc/stat", "cpu0 100 0 0 200\ncpu1 600 0 0 0\n");
        let reported = read(&mut cpus, 4.0);
        assert_values(&reported, &[("cpu.1.busy_ratio", 1.0), ("cpu.all.busy_ratio", 0.5)]);
    }

    #[test]
    fn garbage_and_a_missing_file_are_reported() {
        let fixture = Fixture::new();
        let mut cpus = Cpus::new(fixture.root());
        let reported = read(&mut cpus, 1.0);
        assert!(matches!(missing(&reported, WHOLE), Some(Health::Unsupported { .. })));
        let _fixture = fixture.with("proc/stat", "cpu one two\nintr\n");
        let reported = read(&mut cpus, 2.0);
        assert!(matches!(missing(&reported, WHOLE), Some(Health::Degraded { .. })));
    }
}
