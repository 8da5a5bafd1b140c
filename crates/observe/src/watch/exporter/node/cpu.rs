//! CPU time by mode, and frequency.

use super::super::text::Scrape;
use super::numbers::{growth, instances};
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::names::{Metric, cpu, frequency};
use std::collections::BTreeMap;

const SECONDS: &str = "node_cpu_seconds_total";
const GUEST_SECONDS: &str = "node_cpu_guest_seconds_total";
const FREQUENCY: &str = "node_cpu_scaling_frequency_hertz";

pub(super) const NAMES: [&str; 3] = [SECONDS, GUEST_SECONDS, FREQUENCY];

/// Modes of all cores together with a metric each.
const OF_ALL: [(&str, Metric); 8] = [
    ("user", cpu::ALL_USER_RATIO),
    ("nice", cpu::ALL_NICE_RATIO),
    ("system", cpu::ALL_SYSTEM_RATIO),
    ("idle", cpu::ALL_IDLE_RATIO),
    ("iowait", cpu::ALL_IOWAIT_RATIO),
    ("irq", cpu::ALL_IRQ_RATIO),
    ("softirq", cpu::ALL_SOFTIRQ_RATIO),
    ("steal", cpu::ALL_STEAL_RATIO),
];

/// Seconds by mode since the previous reading.
type Modes<'s> = BTreeMap<&'s str, f64>;

/// Shares of the time of each core and of all cores. A decreased counter has not grown; the
/// kernel's idle time decreases now and then.
pub(super) fn report(scrape: &Scrape<'_>, rates: &mut Rates, reported: &mut Reported) {
    let mut by_core: BTreeMap<&str, Modes<'_>> = BTreeMap::new();
    for sample in scrape.named(SECONDS) {
        let (Some(core), Some(mode)) = (sample.label("cpu"), sample.label("mode")) else {
            continue;
        };
        let grown_s = growth(rates, mode, core, sample.value).unwrap_or(0.0);
        by_core.entry(core).or_default().insert(mode, grown_s);
    }
    let mut all = Modes::new();
    for (core, modes) in &by_core {
        for (mode, grown_s) in modes {
            *all.entry(mode).or_default() += grown_s;
        }
        let ratio = |parts: &[&str]| share(modes, parts);
        let mut put = |metric: Metric, value| reported.put_if_known(metric.of(core), value);
        put(cpu::USER_RATIO, ratio(&["user"]));
        put(cpu::SYSTEM_RATIO, ratio(&["system"]));
        put(cpu::IOWAIT_RATIO, ratio(&["iowait"]));
        put(cpu::SOFTIRQ_RATIO, ratio(&["irq", "softirq"]));
        put(cpu::STEAL_RATIO, ratio(&["steal"]));
        put(cpu::BUSY_RATIO, busy(modes));
    }
    for (mode, metric) in OF_ALL {
        reported.put_if_known(metric.id(), share(&all, &[mode]));
    }
    reported.put_if_known(cpu::ALL_BUSY_RATIO.id(), busy(&all));
    report_guest(scrape, rates, all.values().sum(), reported);
}

/// Reports the time of guests, which is included in `user` and `nice`.
fn report_guest(scrape: &Scrape<'_>, rates: &mut Rates, whole_s: f64, reported: &mut Reported) {
    let mut guest_s = None;
    for sample in scrape.named(GUEST_SECONDS) {
        let (Some(core), Some(mode)) = (sample.label("cpu"), sample.label("mode")) else {
            continue;
        };
        let name = format!("guest {mode}");
        let grown_s = growth(rates, &name, core, sample.value).unwrap_or(0.0);
        *guest_s.get_or_insert(0.0) += grown_s;
    }
    let ratio = guest_s.filter(|_| whole_s > 0.0);
    let ratio = ratio.map(|guest_s| guest_s / whole_s);
    reported.put_if_known(cpu::ALL_GUEST_RATIO.id(), ratio);
}

/// Mean and lowest frequency of the cores.
pub(super) fn report_frequency(scrape: &Scrape<'_>, reported: &mut Reported) {
    let cores = instances(scrape, FREQUENCY, "cpu").len();
    let least = scrape.named(FREQUENCY).map(|sample| sample.value).reduce(f64::min);
    let sum: f64 = scrape.named(FREQUENCY).map(|sample| sample.value).sum();
    if let Some(least) = least {
        reported.put(frequency::MEAN_HZ.id(), sum / cores as f64);
        reported.put(frequency::MIN_HZ.id(), least);
    }
}

/// Share of some modes in the total time; `None` if no time has passed.
fn share(modes: &Modes<'_>, parts: &[&str]) -> Option<f64> {
    let whole_s: f64 = modes.values().sum();
    let part_s: f64 = parts.iter().filter_map(|part| modes.get(part)).sum();
    (whole_s > 0.0).then(|| part_s / whole_s)
}

/// The total time except idle time and iowait, in which the core is idle as well.
fn busy(modes: &Modes<'_>) -> Option<f64> {
    Some((1.0 - share(modes, &["idle", "iowait"])?).max(0.0))
}
