//! Differences of counters: converts totals since the start of a machine or server to values since
//! the previous reading.

use dyno_record::metrics::MetricId;
use std::collections::HashMap;

/// The totals of the previous reading, keyed by metric.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    before_s: Option<f64>,
    now_s: f64,
    before: HashMap<MetricId, f64>,
    now: HashMap<MetricId, f64>,
}

impl Rates {
    /// Begins a reading. Totals that the previous one did not have count as first ones.
    pub(crate) fn begin(&mut self, at_s: f64) {
        if !self.now.is_empty() {
            self.before_s = Some(self.now_s);
        }
        self.before = std::mem::take(&mut self.now);
        self.now_s = at_s;
    }

    /// Seconds since the previous reading; `None` at the first.
    pub(crate) fn duration_s(&self) -> Option<f64> {
        let duration_s = self.now_s - self.before_s?;
        (duration_s > 0.0).then_some(duration_s)
    }

    /// Growth of a total since the previous reading. `None` at the first reading, and if the total
    /// decreased because its owner was restarted.
    pub(crate) fn growth(&mut self, id: &MetricId, total: f64) -> Option<f64> {
        self.now.insert(id.clone(), total);
        let before = *self.before.get(id)?;
        (total >= before).then_some(total - before)
    }

    /// Growth of a total per second.
    pub(crate) fn per_s(&mut self, id: &MetricId, total: f64) -> Option<f64> {
        let growth = self.growth(id, total);
        Some(growth? / self.duration_s()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_becomes_a_rate_from_the_second_reading() {
        let id = MetricId::of("a", "x_per_s");
        let mut rates = Rates::default();
        rates.begin(10.0);
        assert_eq!(rates.per_s(&id, 100.0), None);
        rates.begin(12.0);
        assert_eq!(rates.per_s(&id, 110.0), Some(5.0));
        // Restarted.
        rates.begin(13.0);
        assert_eq!(rates.per_s(&id, 3.0), None);
        rates.begin(14.0);
        assert_eq!(rates.per_s(&id, 4.0), Some(1.0));
    }

    #[test]
    fn returning_total_is_new() {
        let (here, there) = (MetricId::of("a", "x_per_s"), MetricId::of("a", "y_per_s"));
        let mut rates = Rates::default();
        for (at_s, has_it) in [(1.0, true), (2.0, false), (3.0, true)] {
            rates.begin(at_s);
            rates.per_s(&there, at_s);
            if has_it {
                assert_eq!(rates.per_s(&here, at_s), None);
            }
        }
        rates.begin(4.0);
        assert_eq!(rates.per_s(&here, 5.0), Some(2.0));
    }
}
