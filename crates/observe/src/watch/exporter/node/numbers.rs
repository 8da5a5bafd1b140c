//! Looks up the numbers of a scrape by metric and instance.

use super::super::text::{Sample, Scrape};
use crate::watch::rates::Rates;
use dyno_record::metrics::MetricId;

/// The values of a label among the samples of a metric, each once, in the order of the text.
pub(super) fn instances<'s>(scrape: &'s Scrape<'_>, name: &str, label: &str) -> Vec<&'s str> {
    let mut instances = Vec::new();
    for instance in scrape.named(name).filter_map(|sample| sample.label(label)) {
        if instances.last() != Some(&instance) && !instances.contains(&instance) {
            instances.push(instance);
        }
    }
    instances
}

/// The number of a metric for one instance.
pub(super) fn of_instance(
    scrape: &Scrape<'_>,
    name: &str,
    label: &str,
    instance: &str,
) -> Option<f64> {
    let is_it = |sample: &&Sample<'_>| sample.label(label) == Some(instance);
    scrape.named(name).find(is_it).map(|sample| sample.value)
}

/// Growth of a total since the previous reading.
pub(super) fn growth(rates: &mut Rates, name: &str, instance: &str, total: f64) -> Option<f64> {
    rates.growth(&MetricId::of_instance("node", instance, name), total)
}
