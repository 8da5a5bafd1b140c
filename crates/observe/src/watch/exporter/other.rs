//! The metrics of an exporter that have no name of ours, as they are.

use super::text::{Role, Sample, Scrape};
use crate::health::Health;
use crate::watch::rates::Rates;
use crate::watch::source::Told;
use dyno_record::metrics::MetricId;
use std::collections::HashSet;

/// Most metrics that are kept.
const MOST: usize = 2_000;

/// Metrics about the exporter itself begin with one of these.
const OF_ITSELF: [&str; 3] = ["go_", "process_", "promhttp_"];

/// Longest values of labels, joined: a text of a query is no name.
const LONGEST: usize = 300;

const GROUP: &str = "exporter";

/// Which metrics were told; these are told again, and no others once there are too many.
#[derive(Debug, Default)]
pub(super) struct Others {
    told: HashSet<MetricId>,
}

impl Others {
    /// Tells the numbers that are not told under other names: a gauge as it is, a total per second.
    pub(super) fn tell<'a>(
        &mut self,
        scrape: &Scrape<'_>,
        samples: impl Iterator<Item = &'a Sample<'a>>,
        rates: &mut Rates,
        told: &mut Told,
    ) {
        let (mut beyond, mut unnamed) = (0, 0);
        let mut seen = HashSet::new();
        for sample in samples {
            let role = scrape.role(sample.name);
            let is_of_itself = OF_ITSELF.iter().any(|start| sample.name.starts_with(start));
            if role == Role::Other || is_of_itself || !sample.value.is_finite() {
                continue;
            }
            // Two may differ in the names of their labels alone.
            let Some(id) = id(sample, role).filter(|id| seen.insert(id.clone())) else {
                unnamed += 1;
                continue;
            };
            if !self.told.contains(&id) {
                if self.told.len() >= MOST {
                    beyond += 1;
                    continue;
                }
                self.told.insert(id.clone());
            }
            let value = match role {
                Role::Counter => rates.per_s(&id, sample.value),
                _ => Some(sample.value),
            };
            told.put_if_known(id, value);
        }
        if beyond > 0 {
            let reason = format!("{beyond} metrics beyond the first {MOST} are left out");
            told.miss("others", Health::Unsupported { reason });
        }
        if unnamed > 0 {
            let reason = format!(
                "{unnamed} metrics are left out, whose labels are too long or no different from others"
            );
            told.miss("labels", Health::Unsupported { reason });
        }
    }
}

/// The name of a metric; `None` if its labels are too long for one.
fn id(sample: &Sample<'_>, role: Role) -> Option<MetricId> {
    let name = match role {
        Role::Counter => {
            let stem = sample.name.strip_suffix("_total").unwrap_or(sample.name);
            format!("{stem}_per_s")
        }
        _ => sample.name.to_owned(),
    };
    let labels = sample.labels.iter();
    let values: Vec<&str> = labels.map(|(_, value)| value.as_ref()).collect();
    let values = values.join("/");
    match (sample.labels.is_empty(), values.len()) {
        (true, _) => Some(MetricId::of(GROUP, &name)),
        (false, 0..=LONGEST) => Some(MetricId::of_instance(GROUP, &values, &name)),
        _ => None,
    }
}
