//! Input of the latency analysis of a run: medians of consecutive messages.

use crate::messages::{Consumed, Entry, Fate, Produced};
use dyno_record::tail::{InFlight, Point, QueuePlace, Rates, Timeline};

/// Number of points: more would find no more, fewer would miss changes in between.
const POINTS: usize = 50;
/// Fewest messages of a point, so that its median is meaningful.
const LEAST_MESSAGES: usize = 10;

/// A producer's settings.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Largest number in flight.
    pub in_flight: InFlight,
    /// Where messages wait without bound.
    pub place: QueuePlace,
    /// Connections of the pool.
    pub pool: Option<u64>,
    /// Messages of this producer that the schedule offers per second; `None` in a closed loop.
    pub offered_per_s: Option<f64>,
}

/// Timeline of one producer, with one consumer of its messages if there is one.
pub fn timeline(
    producers: &[Produced],
    producer: usize,
    consumed: Option<&Consumed>,
    asked: Asked,
) -> Timeline {
    let entries = &producers[producer].entries;
    let answered: Vec<(usize, Entry)> = entries
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, entry)| entry.fate() != Fate::Unanswered)
        .collect();
    let in_flight = InFlightCounter::new(&answered);
    let acknowledged: Vec<(usize, Entry)> =
        answered.iter().copied().filter(|(_, entry)| entry.fate() == Fate::Acknowledged).collect();
    let width = acknowledged.len().div_ceil(POINTS).max(LEAST_MESSAGES);
    let parts = acknowledged.chunks(width);
    // The last part may be too small for a median.
    let parts = parts.filter(|part| part.len() * 2 >= width);
    let points = parts.filter_map(|part| point(part, producer, consumed, &in_flight));
    Timeline {
        messages: answered.len() as u64,
        in_flight: asked.in_flight,
        place: asked.place,
        pool: asked.pool,
        points: points.collect(),
        rates: rates(&acknowledged, &in_flight, asked.offered_per_s),
    }
}

fn point(
    part: &[(usize, Entry)],
    producer: usize,
    consumed: Option<&Consumed>,
    in_flight: &InFlightCounter,
) -> Option<Point> {
    let received = |n: usize| consumed.and_then(|consumed| consumed.received_ns(producer, n));
    let of = |value: &dyn Fn(usize, &Entry) -> Option<i64>| {
        median(part.iter().filter_map(|(n, entry)| value(*n, entry)))
    };
    Some(Point {
        message: (part[0].0 + part[part.len() - 1].0) as f64 / 2.0,
        wait_ns: of(&|_, entry| Some(entry.send_ns - entry.intended_ns))?,
        acknowledged_ns: of(&|_, entry| Some(entry.end_ns() - entry.send_ns))?,
        after_ns: of(&|n, entry| Some(received(n)? - entry.end_ns())),
        total_ns: of(&|n, entry| Some(received(n)? - entry.intended_ns)),
        in_flight: of(&|_, entry| Some(in_flight.at(entry.send_ns)))?,
        batch_messages: of(&|n, _| consumed?.batch_messages(producer, n).map(i64::from)),
    })
}

fn median(values: impl Iterator<Item = i64>) -> Option<f64> {
    let mut values: Vec<i64> = values.collect();
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1 as f64)
}

/// Counts the inserts without an answer at an instant.
struct InFlightCounter {
    sends: Vec<i64>,
    ends: Vec<i64>,
}

impl InFlightCounter {
    fn new(answered: &[(usize, Entry)]) -> Self {
        let sorted = |value: fn(&Entry) -> i64| {
            let mut values: Vec<i64> = answered.iter().map(|(_, entry)| value(entry)).collect();
            values.sort_unstable();
            values
        };
        InFlightCounter { sends: sorted(|entry| entry.send_ns), ends: sorted(Entry::end_ns) }
    }

    /// Inserts sent at `at_ns` or before, and answered after it.
    fn at(&self, at_ns: i64) -> i64 {
        let until = |values: &[i64]| values.partition_point(|value| *value <= at_ns) as i64;
        until(&self.sends) - until(&self.ends)
    }
}

fn rates(
    acknowledged: &[(usize, Entry)],
    in_flight: &InFlightCounter,
    offered_per_s: Option<f64>,
) -> Rates {
    let mut ends: Vec<i64> = acknowledged.iter().map(|(_, entry)| entry.end_ns()).collect();
    ends.sort_unstable();
    let sends = &in_flight.sends;
    let (Some(&first), Some(&last_send), Some(&last)) = (sends.first(), sends.last(), ends.last())
    else {
        return Rates { offered_per_s, ..Rates::default() };
    };
    let half = ends.len() / 2;
    let middle = if half == 0 { first } else { ends[half - 1] };
    let rate = |count: usize, from: i64, to: i64| {
        if to > from { count as f64 / ((to - from) as f64 / 1e9) } else { 0.0 }
    };
    Rates {
        offered_per_s,
        sent_per_s: rate(sends.len() - 1, first, last_send),
        acknowledged_per_s: rate(ends.len(), first, last),
        acknowledged_first_half_per_s: rate(half, first, middle),
        acknowledged_second_half_per_s: rate(ends.len() - half, middle, last),
        handed_over_s: (last_send - first) as f64 / 1e9,
        all_s: (last - first) as f64 / 1e9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamps::{Received, Sent};
    use dyno_analyze::messages::judge;
    use dyno_record::tail::Cause;

    const MS: i64 = 1_000_000;

    /// All messages are sent within 1,000 x 10 us, and answered one per millisecond.
    fn all_at_once() -> (Vec<Produced>, Consumed) {
        let mut producers = vec![Produced::new(1000)];
        let mut receipts = Vec::new();
        for n in 0..1000u64 {
            let send_ns = MS + n as i64 * 10_000;
            let end_ns = 2 * MS + n as i64 * MS;
            let sent = Sent { n, intended_ns: send_ns, send_ns, end_ns, failed: false };
            producers[0].add(sent).unwrap();
            receipts.push(Received {
                producer: 0,
                n,
                send_ns,
                received_ns: end_ns + 50_000,
                batch: Some((n / 2) as u32),
            });
        }
        let mut consumed = Consumed::new(&producers, 1);
        for receipt in receipts {
            consumed.add(&producers, receipt).unwrap();
        }
        (producers, consumed)
    }

    fn asked() -> Asked {
        Asked {
            in_flight: InFlight::Unbounded,
            place: QueuePlace::Driver,
            pool: Some(10),
            offered_per_s: None,
        }
    }

    #[test]
    fn points_hold_times_numbers_in_flight_and_batches() {
        let (producers, consumed) = all_at_once();
        let found = timeline(&producers, 0, Some(&consumed), asked());
        assert_eq!(found.points.len(), 50);
        let last = found.points[49];
        assert_eq!(last.message, 989.5);
        assert_eq!(last.wait_ns, 0.0);
        assert_eq!(last.after_ns, Some(50_000.0));
        assert_eq!(last.batch_messages, Some(2.0));
        // Message 989 is sent 9.89 ms after the first; 9 have been answered by then.
        assert_eq!(last.in_flight, 981.0);
        assert!((found.rates.acknowledged_per_s - 999.0).abs() < 2.0, "{:?}", found.rates);
        assert!((found.rates.handed_over_s - 0.00999).abs() < 1e-9);
        assert_eq!(found.rates.all_s, 1.0);
    }

    #[test]
    fn cause_of_growing_latency_is_found_from_stamps() {
        let (producers, consumed) = all_at_once();
        for consumed in [Some(&consumed), None] {
            let found = judge(&timeline(&producers, 0, consumed, asked()));
            assert_eq!(found.cause, Cause::UnboundedInFlight, "{}", found.statement);
        }
    }

    #[test]
    fn nothing_sent_is_too_few() {
        let found = timeline(&[Produced::new(5)], 0, None, asked());
        assert_eq!((found.messages, found.points.len()), (0, 0));
        assert_eq!(judge(&found).cause, Cause::TooFew);
    }
}
