//! Accumulates busy time from readings of the busy share since the previous reading.

use dyno_record::disk::DISK_FIGURES;
use dyno_record::names::{Metric, disk};

/// The metrics of a device in the argument order of
/// [`DiskUse::of`](dyno_record::disk::DiskUse::of). A rate summed over time gives a count, as a
/// share summed over time gives a duration.
pub const OF_DISK: [Metric; DISK_FIGURES] = [
    disk::UTILIZATION_RATIO,
    disk::QUEUE_COUNT,
    disk::READ_PER_S,
    disk::WRITE_PER_S,
    disk::FLUSH_PER_S,
    disk::READ_BYTES_PER_S,
    disk::WRITE_BYTES_PER_S,
];

/// Busy time, accumulated reading by reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Busy {
    /// Instants with the busy time accumulated until then, both in seconds.
    readings: Vec<(f64, f64)>,
}

impl Busy {
    /// Adds a reading, which is `None` if it could not be read. The next value then covers this
    /// reading's time as well, unless the last value is more than `longest_s` old: then everything
    /// before the gap is dropped.
    pub fn take(&mut self, at_s: f64, busy: Option<f64>, longest_s: f64) {
        match (self.readings.last(), busy) {
            (Some((last_s, _)), Some(_)) if at_s <= *last_s => {}
            (Some((last_s, busy_s)), Some(busy)) if at_s - last_s <= longest_s => {
                self.readings.push((at_s, busy_s + busy * (at_s - last_s)));
            }
            (_, Some(_)) => self.readings = vec![(at_s, 0.0)],
            _ if self.readings.len() <= 1 => self.readings = vec![(at_s, 0.0)],
            _ => {}
        }
    }

    /// Instants with the busy time accumulated until then, as
    /// [`busy_between`](crate::usage::busy_between) expects them.
    pub fn readings(&self) -> &[(f64, f64)] {
        &self.readings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_figure_equals_the_next_one() {
        let take = |all: &[(f64, Option<f64>)]| {
            let mut busy = Busy::default();
            for (at_s, share) in all {
                busy.take(*at_s, *share, 3.5);
            }
            busy.readings
        };
        let found = take(&[
            (0.0, None),
            (1.0, None),
            (2.0, Some(1.0)),
            (3.0, None),
            (4.0, Some(0.5)),
            (4.0, Some(9.0)),
        ]);
        assert_eq!(found, [(1.0, 0.0), (2.0, 1.0), (4.0, 2.0)]);
        let late = take(&[(5.0, Some(1.0))]);
        assert_eq!(late, [(5.0, 0.0)], "the start is unknown");
        let hole =
            take(&[(0.0, None), (1.0, Some(1.0)), (3.0, None), (6.0, Some(1.0)), (7.0, Some(0.5))]);
        assert_eq!(hole, [(6.0, 0.0), (7.0, 0.5)], "five seconds are too long");
    }
}
