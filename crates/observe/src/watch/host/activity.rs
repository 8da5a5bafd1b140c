//! Counters of `/proc/stat` other than CPU time (running and waiting tasks, context switches, new
//! processes, interrupts), and the load average.

use super::file::{first_numbers, numbers};
use super::part::Part;
use crate::health::{Health, Reading};
use crate::host;
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::names::{Metric, interrupts, load, softirq};
use std::path::{Path, PathBuf};

/// The kinds of soft interrupts, in the kernel's order. Source: `include/linux/interrupt.h` of
/// Linux.
const SOFTIRQS: [Metric; 10] = [
    softirq::HI_PER_S,
    softirq::TIMER_PER_S,
    softirq::NET_TX_PER_S,
    softirq::NET_RX_PER_S,
    softirq::BLOCK_PER_S,
    softirq::IRQ_POLL_PER_S,
    softirq::TASKLET_PER_S,
    softirq::SCHED_PER_S,
    softirq::HRTIMER_PER_S,
    softirq::RCU_PER_S,
];

/// Reports the values in the text of `/proc/stat` other than the CPU times.
pub(super) fn report(text: &str, rates: &mut Rates, reported: &mut Reported) {
    let line = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap_or("")
    };
    let first = |name: &str| numbers(line(name)).next().flatten();
    let (switches, forks) = (first("ctxt"), first("processes"));
    let (runnable, blocked) = (first("procs_running"), first("procs_blocked"));
    // The total comes first, then one number per kind.
    let interrupts = first("intr");
    let softirqs = line("softirq").trim_start().split_once(' ');
    let softirqs: [_; SOFTIRQS.len()] = first_numbers(softirqs.map_or("", |(_, kinds)| kinds));
    for (metric, count) in [(load::RUNNABLE_COUNT, runnable), (load::BLOCKED_COUNT, blocked)] {
        reported.put_if_known(metric.id(), count.map(|count| count as f64));
    }
    let totals = [
        (load::CONTEXT_SWITCHES_PER_S, switches),
        (load::FORKS_PER_S, forks),
        (interrupts::TOTAL_PER_S, interrupts),
    ];
    for (metric, total) in totals.into_iter().chain(SOFTIRQS.into_iter().zip(softirqs)) {
        reported.put_rate(rates, metric.id(), total, 1.0);
    }
    let parts = [
        ("load", switches.and(forks).and(runnable).and(blocked)),
        ("interrupts", interrupts),
        ("softirq", softirqs[0]),
    ];
    for (part, value) in parts {
        if value.is_none() {
            let reason = format!("`/proc/stat` does not report {part}");
            reported.miss(part, Health::Degraded { reason });
        }
    }
}

/// The load average of one minute.
pub(super) struct LoadAverage {
    root: PathBuf,
}

impl LoadAverage {
    pub(super) fn new(root: &Path) -> LoadAverage {
        LoadAverage { root: root.to_owned() }
    }
}

impl Part for LoadAverage {
    fn read(&mut self, _: f64, reported: &mut Reported) -> Reading<()> {
        reported.put(load::AVERAGE_1M_COUNT.id(), host::load_average(&self.root)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::cpu::Cpus;
    use super::super::testing::{WHOLE, assert_values, missing, names, read, value};
    use super::*;
    use crate::host::tests::Fixture;

    fn stat(interrupts: u64, switches: u64, forks: u64, softirqs: &str) -> String {
        format!(
            "cpu0 1 0 0 1\nintr {interrupts} 0 0 17 4\nctxt {switches}\nbtime 1795254639\n\
             processes {forks}\nprocs_running 3\nprocs_blocked 2\nsoftirq {softirqs}\n"
        )
    }

    #[test]
    fn counters_become_rates_and_gauges_are_reported_at_once() {
        let first = stat(1000, 50, 7, "99 1 2 3 4 5 6 7 8 9 10");
        let fixture = Fixture::new().with("proc/stat", &first);
        let mut cpus = Cpus::new(fixture.root());
        let reported = read(&mut cpus, 10.0);
        assert_values(&reported, &[("load.runnable_count", 3.0), ("load.blocked_count", 2.0)]);
        assert_eq!(reported.values.len(), 2);
        let second = stat(1500, 250, 9, "199 1 12 3 24 5 6 7 8 9 30");
        let _fixture = fixture.with("proc/stat", &second);
        let reported = read(&mut cpus, 12.0);
        assert_values(
            &reported,
            &[
                ("load.context_switches_per_s", 100.0),
                ("load.forks_per_s", 1.0),
                ("interrupts.total_per_s", 250.0),
                ("softirq.hi_per_s", 0.0),
                ("softirq.timer_per_s", 5.0),
                ("softirq.net_rx_per_s", 10.0),
                ("softirq.rcu_per_s", 10.0),
            ],
        );
        assert_eq!(names(&reported, "softirq.").len(), 10);
        assert_eq!(reported.missing, []);
    }

    #[test]
    fn decreased_counter_is_skipped_and_absent_one_is_missing() {
        let fixture = Fixture::new().with("proc/stat", &stat(1000, 50, 7, "9 1 2 3"));
        let mut cpus = Cpus::new(fixture.root());
        read(&mut cpus, 1.0);
        let text = stat(10, 60, 8, "9 1 2 3").replace("ctxt", "none");
        let _fixture = fixture.with("proc/stat", &text);
        let reported = read(&mut cpus, 2.0);
        assert_eq!(value(&reported, "interrupts.total_per_s"), None);
        assert_eq!(value(&reported, "load.context_switches_per_s"), None);
        assert_values(&reported, &[("load.forks_per_s", 1.0)]);
        assert_eq!(names(&reported, "softirq.").len(), 3);
        assert!(matches!(missing(&reported, "load"), Some(Health::Degraded { .. })));
        assert_eq!(missing(&reported, "interrupts"), None);
    }

    #[test]
    fn load_average_covers_one_minute() {
        let fixture = Fixture::new().with("proc/loadavg", "0.42 0.30 0.25 1/234 5678\n");
        let reported = read(&mut LoadAverage::new(fixture.root()), 1.0);
        assert_values(&reported, &[("load.average_1m_count", 0.42)]);
        let reported = read(&mut LoadAverage::new(Path::new("/no-such-folder")), 1.0);
        assert!(missing(&reported, WHOLE).is_some());
    }
}
