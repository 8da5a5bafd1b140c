//! Time of the CPUs by mode, and their frequency.

use super::super::text::Scrape;
use super::numbers::{growth, instances};
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::metrics::MetricId;
use std::collections::BTreeMap;

const SECONDS: &str = "node_cpu_seconds_total";
const GUEST_SECONDS: &str = "node_cpu_guest_seconds_total";
const FREQUENCY: &str = "node_cpu_scaling_frequency_hertz";

pub(super) const NAMES: [&str; 3] = [SECONDS, GUEST_SECONDS, FREQUENCY];

/// Modes of all cores together that have a metric each.
const OF_ALL: [(&str, &str); 8] = [
    ("user", "user_ratio"),
    ("nice", "nice_ratio"),
    ("system", "system_ratio"),
    ("idle", "idle_ratio"),
    ("iowait", "iowait_ratio"),
    ("irq", "irq_ratio"),
    ("softirq", "softirq_ratio"),
    ("steal", "steal_ratio"),
];

/// Seconds by mode since the reading before.
type Modes<'s> = BTreeMap<&'s str, f64>;

/// Shares of the time of each core and of all. A counter that goes back, as the kernel's do now and then for idle
/// time, has not grown.
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
        let mut put = |name, value| reported.put_if_known(id(core, name), value);
        put("user_ratio", ratio(&["user"]));
        put("system_ratio", ratio(&["system"]));
        put("iowait_ratio", ratio(&["iowait"]));
        put("softirq_ratio", ratio(&["irq", "softirq"]));
        put("steal_ratio", ratio(&["steal"]));
        put("busy_ratio", busy(modes));
    }
    for (mode, name) in OF_ALL {
        reported.put_if_known(id("all", name), share(&all, &[mode]));
    }
    reported.put_if_known(id("all", "busy_ratio"), busy(&all));
    report_guest(scrape, rates, all.values().sum(), reported);
}

/// The time of guests is a part of `user` and `nice`.
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
    reported.put_if_known(
        id("all", "guest_ratio"),
        ratio.map(|guest_s| guest_s / whole_s),
    );
}

/// Mean and least frequency of the cores.
pub(super) fn report_frequency(scrape: &Scrape<'_>, reported: &mut Reported) {
    let cores = instances(scrape, FREQUENCY, "cpu").len();
    let least = scrape
        .named(FREQUENCY)
        .map(|sample| sample.value)
        .reduce(f64::min);
    let sum: f64 = scrape.named(FREQUENCY).map(|sample| sample.value).sum();
    if let Some(least) = least {
        reported.put(
            MetricId::of_instance("frequency", "all", "mean_hz"),
            sum / cores as f64,
        );
        reported.put(MetricId::of_instance("frequency", "all", "min_hz"), least);
    }
}

fn id(core: &str, name: &str) -> MetricId {
    MetricId::of_instance("cpu", core, name)
}

/// The share of some modes in the time of all; `None` while no time has passed.
fn share(modes: &Modes<'_>, parts: &[&str]) -> Option<f64> {
    let whole_s: f64 = modes.values().sum();
    let part_s: f64 = parts.iter().filter_map(|part| modes.get(part)).sum();
    (whole_s > 0.0).then(|| part_s / whole_s)
}

/// All but idle time and that of waiting for a disk, in which the core is idle too.
fn busy(modes: &Modes<'_>) -> Option<f64> {
    Some((1.0 - share(modes, &["idle", "iowait"])?).max(0.0))
}
