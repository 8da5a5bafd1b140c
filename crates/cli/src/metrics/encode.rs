//! Encodes families with the client library of the Prometheus project, for a comparison with our own text.

use crate::metrics::buckets::bounds_s;
use crate::metrics::family::{Family, Kind, Labels, Value};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

/// Writes families as OpenMetrics text.
pub(crate) fn by_the_library(families: Vec<Family>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Collected(families)));
    let mut output = String::new();
    text::encode(&mut output, &registry).expect("writing to a string cannot fail");
    output
}

#[derive(Debug)]
struct Collected(Vec<Family>);

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for family in &self.0 {
            let unit = family.unit.clone().map(Unit::Other);
            let stem = match &family.unit {
                Some(unit) => family.name.trim_end_matches(unit).trim_end_matches('_'),
                None => &family.name,
            };
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
                Kind::Info => MetricType::Info,
            };
            let mut metric = encoder.encode_descriptor(stem, &family.help, unit.as_ref(), kind)?;
            for (labels, value) in &family.points {
                put(&mut metric, family.kind, labels, value)?;
            }
        }
        Ok(())
    }
}

fn put(metric: &mut MetricEncoder, kind: Kind, labels: &Labels, value: &Value) -> fmt::Result {
    if let Value::Info = value {
        return metric.encode_info(labels);
    }
    let mut point = metric.encode_family(labels)?;
    match (value, kind) {
        (Value::Info, _) => Ok(()),
        (Value::Count(count), Kind::Counter) => {
            point.encode_counter::<NoLabelSet, _, f64>(count, None)
        }
        (Value::Number(number), Kind::Counter) => {
            point.encode_counter::<NoLabelSet, _, f64>(number, None)
        }
        (Value::Count(count), _) => point.encode_gauge(count),
        (Value::Number(number), _) => point.encode_gauge(number),
        (Value::Buckets(buckets), _) => {
            let counted: Vec<(f64, u64)> = bounds_s()
                .into_iter()
                .chain([f64::INFINITY])
                .zip(buckets.counts().iter().copied())
                .collect();
            point.encode_histogram::<NoLabelSet>(buckets.sum_s(), buckets.count(), &counted, None)
        }
    }
}
