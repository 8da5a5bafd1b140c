//! Metrics of an exporter that this program does not name itself, under their own names.

use super::text::{MetricKind, Sample, Scrape};
use crate::health::Health;
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::metrics::MetricId;
use std::collections::HashSet;

/// Largest number of metrics that are kept.
const MOST: usize = 2_000;

/// Prefixes of metrics about the exporter itself.
const OF_ITSELF: [&str; 3] = ["go_", "process_", "promhttp_"];

/// Longest joined label values: the text of a query is not a name.
const LONGEST: usize = 300;

const GROUP: &str = "exporter";

/// The metrics that were reported; they are reported again, and no others once there are too many.
#[derive(Debug, Default)]
pub(super) struct Others {
    reported: HashSet<MetricId>,
}

impl Others {
    /// Reports the numbers that have no other name: a gauge as it is, a total per second.
    pub(super) fn report<'a>(
        &mut self,
        scrape: &Scrape<'_>,
        samples: impl Iterator<Item = &'a Sample<'a>>,
        rates: &mut Rates,
        reported: &mut Reported,
    ) {
        let (mut beyond, mut unnamed) = (0, 0);
        let mut seen = HashSet::new();
        for sample in samples {
            let kind = scrape.kind(sample.name);
            let is_of_itself = OF_ITSELF.iter().any(|start| sample.name.starts_with(start));
            if kind == MetricKind::Other || is_of_itself || !sample.value.is_finite() {
                continue;
            }
            // Two samples may differ only in the names of their labels.
            let Some(id) = id(sample, kind).filter(|id| seen.insert(id.clone())) else {
                unnamed += 1;
                continue;
            };
            if !self.reported.contains(&id) {
                if self.reported.len() >= MOST {
                    beyond += 1;
                    continue;
                }
                self.reported.insert(id.clone());
            }
            let value = match kind {
                MetricKind::Counter => rates.per_s(&id, sample.value),
                _ => Some(sample.value),
            };
            reported.put_if_known(id, value);
        }
        if beyond > 0 {
            let reason = format!("{beyond} metrics beyond the first {MOST} are omitted");
            reported.miss("others", Health::Unsupported { reason });
        }
        if unnamed > 0 {
            let reason = format!(
                "{unnamed} metrics are omitted because their labels are too long or not unique"
            );
            reported.miss("labels", Health::Unsupported { reason });
        }
    }
}

/// The name of a metric; `None` if its labels are too long.
fn id(sample: &Sample<'_>, kind: MetricKind) -> Option<MetricId> {
    let name = match kind {
        MetricKind::Counter => {
            let stem = sample.name.strip_suffix("_total").unwrap_or(sample.name);
            format!("{stem}_per_s")
        }
        _ => sample.name.to_owned(),
    };
    let values: Vec<&str> = sample.labels.iter().map(|(_, value)| value.as_ref()).collect();
    let values = values.join("/");
    match (sample.labels.is_empty(), values.len()) {
        (true, _) => Some(MetricId::of(GROUP, &name)),
        (false, 0..=LONGEST) => Some(MetricId::of_instance(GROUP, &values, &name)),
        _ => None,
    }
}
