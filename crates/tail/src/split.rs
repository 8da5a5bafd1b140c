//! Parts of each message's time, as histograms and as series for charts.

use crate::downsample::downsample;
use crate::messages::{Consumed, Fate, Produced};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dyno_record::interval::{HIGHEST_NS, latency_histogram};
use dyno_record::tail::{DeliverySplit, Latency, ProducerSplit};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

/// Recorded percentiles of latency, for curves.
const PERCENTS: [f64; 23] = [
    0.0, 1.0, 5.0, 10.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 95.0,
    97.5, 99.0, 99.5, 99.9, 99.99, 99.999, 100.0,
];

/// Splits the acknowledged messages of a producer; series have at most `points` points.
pub fn of_producer(produced: &Produced, points: usize) -> ProducerSplit {
    let part = |value: fn(i64, i64, i64) -> i64| {
        let values = produced.entries.iter().map(|entry| {
            (entry.fate() == Fate::Acknowledged)
                .then(|| value(entry.intended_ns, entry.send_ns, entry.end_ns()))
        });
        latency(&values.collect::<Vec<_>>(), points)
    };
    ProducerSplit {
        wait: part(|intended, send, _| send - intended),
        acknowledged: part(|_, send, end| end - send),
    }
}

/// Splits producer `producer`'s messages that a consumer received and that have a stamp.
pub fn of_delivery(
    producers: &[Produced],
    producer: usize,
    consumed: &Consumed,
    points: usize,
) -> DeliverySplit {
    let part = |from: fn(i64, i64) -> i64| {
        let values = producers[producer].entries.iter().enumerate().map(|(n, entry)| {
            let received = consumed.received_ns(producer, n)?;
            (entry.fate() != Fate::Unanswered)
                .then(|| received - from(entry.intended_ns, entry.send_ns))
        });
        latency(&values.collect::<Vec<_>>(), points)
    };
    DeliverySplit { delivery: part(|_, send| send), total: part(|intended, _| intended) }
}

fn latency(values: &[Option<i64>], points: usize) -> Latency {
    let mut histogram = latency_histogram();
    let (mut sum, mut clamped, mut below_zero) = (0i128, 0, 0);
    let mut longest = 0;
    for &value in values.iter().flatten() {
        sum += i128::from(value);
        longest = longest.max(value);
        below_zero += u64::from(value < 0);
        let value = value.max(0) as u64;
        clamped += u64::from(value > HIGHEST_NS);
        histogram.saturating_record(value.min(HIGHEST_NS));
    }
    // Exact, including values beyond the histogram.
    let mut sorted: Vec<i64> = values.iter().flatten().copied().collect();
    sorted.sort_unstable();
    let count = sorted.len() as u64;
    let at = |quantile: f64| {
        let rank = (quantile * sorted.len() as f64).ceil() as usize;
        let value = sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0);
        value.max(0) as f64 / 1e3
    };
    Latency {
        count,
        mean_us: sum as f64 / count.max(1) as f64 / 1e3,
        p50_us: at(0.5),
        p99_us: at(0.99),
        p99_9_us: at(0.999),
        max_us: longest as f64 / 1e3,
        clamped,
        below_zero,
        percentiles: PERCENTS.iter().map(|percent| (*percent, at(percent / 100.0))).collect(),
        histogram: encode(&histogram),
        series: downsample(values, points),
    }
}

fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("writing to memory cannot fail");
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamps::{Received, Sent};
    use hdrhistogram::serialization::Deserializer;

    #[test]
    fn message_is_split_at_its_send_and_its_answer() {
        let mut produced = Produced::new(4);
        for (n, failed) in [(0, false), (1, false), (2, true)] {
            let stamp = Sent {
                n,
                intended_ns: 1_000_000,
                send_ns: 1_000_000 + 10_000 * (n as i64 + 1),
                end_ns: 2_000_000,
                failed,
            };
            produced.add(stamp).unwrap();
        }
        let producers = [produced];
        let mut consumed = Consumed::new(&producers, 1);
        for n in [1, 2] {
            let send_ns = 1_000_000 + 10_000 * (n as i64 + 1);
            let receipt = Received {
                producer: 0,
                n,
                send_ns,
                received_ns: send_ns + 500_000,
                batch: Some(0),
            };
            consumed.add(&producers, receipt).unwrap();
        }
        let sent = of_producer(&producers[0], 10);
        // The failed message is omitted.
        assert_eq!((sent.wait.count, sent.wait.max_us), (2, 20.0));
        assert_eq!(sent.wait.mean_us, 15.0);
        assert_eq!(sent.acknowledged.max_us, 990.0);
        let both = of_delivery(&producers, 0, &consumed, 10);
        assert_eq!((both.delivery.count, both.delivery.mean_us), (2, 500.0));
        assert_eq!(both.total.mean_us, 525.0);
        assert_eq!(both.total.series[0].message, 1);
        assert_eq!(consumed.batch_messages(0, 1), Some(2));
    }

    #[test]
    fn histogram_round_trip_keeps_values_beyond_its_bounds() {
        let second = 1_000_000_000;
        let found = latency(&[Some(second), None, Some(90 * second), Some(-5)], 10);
        assert_eq!((found.count, found.clamped, found.below_zero), (3, 1, 1));
        assert_eq!(found.max_us, 90e6);
        let bytes = STANDARD.decode(&found.histogram).unwrap();
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(read.len(), 3);
        assert_eq!(read.count_at(0), 1);
        // Half of them exceed the histogram's range.
        let slow = latency(&[70, 80, 90].map(|seconds| Some(seconds * second)), 10);
        assert_eq!((slow.p50_us, slow.p99_us, slow.clamped), (80e6, 90e6, 3));
        let none = latency(&[None], 10);
        assert_eq!((none.count, none.mean_us), (0, 0.0));
    }
}
