//! Prometheus names of source metrics: `dyno_GROUP_NAME` with base units, and the instance as a label.

use crate::export::table::UNITS;
use crate::metrics::family::{Family, Kind, Labels, Value};
use dyno_record::metrics::MetricId;
use dyno_record::names::{
    self, cgroup, cpu, disk, frequency, network, pressure, process, replication, storage,
    temperature,
};
use std::collections::BTreeMap;

/// Prometheus name, labels and factor of a metric.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Exposed {
    pub(crate) name: String,
    pub(crate) labels: Labels,
    /// Factor for the values.
    pub(crate) factor: f64,
}

/// Converts the name of a source metric.
pub(crate) fn exposed(source: &str, id: &MetricId) -> Exposed {
    let (name, factor) = base_unit(id.name());
    let mut labels = vec![("source".to_owned(), source.to_owned())];
    if let Some(instance) = id.instance() {
        labels.push((label(id.group()).to_owned(), instance.to_owned()));
    }
    let name = format!("dyno_{}_{}", plain(id.group()), plain(&name));
    Exposed { name: apart(name), labels, factor }
}

fn base_unit(name: &str) -> (String, f64) {
    let fitting = UNITS
        .iter()
        .find_map(|(end, _, unit, factor)| Some((name.strip_suffix(end)?, unit, factor)));
    match fitting {
        Some((stem, unit, factor)) if !stem.is_empty() => (format!("{stem}{unit}"), *factor),
        _ => (name.to_owned(), 1.0),
    }
}

/// Label that distinguishes the instances of a group.
fn label(group: &str) -> &'static str {
    match group {
        cpu::GROUP | frequency::GROUP => "cpu",
        disk::GROUP | storage::GROUP => "device",
        network::GROUP => "interface",
        process::GROUP | cgroup::GROUP => "process",
        temperature::GROUP => "zone",
        pressure::GROUP => "resource",
        replication::GROUP => "member",
        of_server if names::is_of_servers(of_server) => "server",
        _ => "instance",
    }
}

/// Replaces all characters except letters, digits and underscores by underscores.
fn plain(text: &str) -> String {
    let replace = |character: char| {
        if character.is_ascii_alphanumeric() { character } else { '_' }
    };
    text.chars().map(replace).collect()
}

/// Renames gauges with a suffix that OpenMetrics reserves for other types.
fn apart(name: String) -> String {
    const TAKEN: [&str; 6] = ["_total", "_count", "_sum", "_bucket", "_created", "_info"];
    if TAKEN.iter().any(|end| name.ends_with(end)) { name + "_value" } else { name }
}

/// Help text of a metric that another program defines.
pub(crate) fn help(id: &MetricId) -> String {
    let (group, name) = (id.group(), id.name());
    format!("{name} of {group}, as the source last reported it")
}

/// Adds the values of a source to gauge families by name.
pub(crate) fn add<'a>(
    families: &mut BTreeMap<String, Family>,
    source: &str,
    values: impl Iterator<Item = (&'a MetricId, f64)>,
) {
    for (id, value) in values.filter(|(_, value)| value.is_finite()) {
        let exposed = exposed(source, id);
        let family = families
            .entry(exposed.name)
            .or_insert_with_key(|name| Family::new(Kind::Gauge, name, &help(id)));
        let value = Value::Number(value * exposed.factor);
        // Names that differ only in replaced characters would repeat a point.
        if !family.points.iter().any(|(labels, _)| *labels == exposed.labels) {
            family.points.push((exposed.labels, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> MetricId {
        MetricId::parse(text).expect("the name is valid")
    }

    #[test]
    fn exposed_names_have_base_units_and_labels() {
        for (text, name, labels, factor) in [
            ("memory.available_bytes", "dyno_memory_available_bytes", "", 1.0),
            ("cpu.all.user_ratio", "dyno_cpu_user_ratio", "cpu=all", 1.0),
            ("disk.vda.read_per_s", "dyno_disk_read_per_second", "device=vda", 1.0),
            ("disk.dm-0.read_await_ms", "dyno_disk_read_await_seconds", "device=dm-0", 1e-3),
            (
                "network.eth0.100.sent_bytes_per_s",
                "dyno_network_sent_bytes_per_second",
                "interface=eth0.100",
                1.0,
            ),
            ("load.runnable_count", "dyno_load_runnable", "", 1.0),
            (
                "operation_latency.pair-0.reads_us",
                "dyno_operation_latency_reads_seconds",
                "server=pair-0",
                1e-6,
            ),
            (
                "replication.db1:27017.lag_s",
                "dyno_replication_lag_seconds",
                "member=db1:27017",
                1.0,
            ),
            ("frequency.all.mean_hz", "dyno_frequency_mean_hertz", "cpu=all", 1.0),
            (
                "exporter.a/b.some:thing_total",
                "dyno_exporter_some_thing_total_value",
                "instance=a/b",
                1.0,
            ),
        ] {
            let exposed = exposed("host", &id(text));
            assert_eq!((exposed.name.as_str(), exposed.factor), (name, factor));
            let reported: Vec<String> =
                exposed.labels[1..].iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(reported.join(","), labels);
            assert_eq!(exposed.labels[0], ("source".into(), "host".into()));
        }
    }

    #[test]
    fn every_metric_group_has_its_own_instance_label() {
        for metric in names::all().filter(|metric| metric.has_instances()) {
            assert_ne!(label(metric.group()), "instance", "{metric}");
        }
    }

    #[test]
    fn family_holds_each_point_of_all_sources_once() {
        let mut families = BTreeMap::new();
        let (a, b) = (id("disk.a.read_per_s"), id("disk.b.read_per_s"));
        add(&mut families, "host", [(&a, 1.0), (&b, f64::NAN), (&a, 3.0)].into_iter());
        add(&mut families, "db1", [(&a, 2.0)].into_iter());
        assert_eq!(families.len(), 1);
        let family = &families["dyno_disk_read_per_second"];
        let values: Vec<_> = family.points.iter().map(|(_, value)| value.clone()).collect();
        assert_eq!(values, [Value::Number(1.0), Value::Number(2.0)]);
    }
}
