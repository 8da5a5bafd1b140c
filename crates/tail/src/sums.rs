//! Accounts for every message: sent, received, lost, duplicated, reordered.

use crate::messages::{Consumed, Fate, Produced};
use dyno_record::tail::{ConsumerSum, InFlight, Measured, ProducerSum, Settings, TailMode};

/// Counts a producer's messages.
pub fn of_producer(produced: &Produced) -> ProducerSum {
    let mut sum = ProducerSum::default();
    for entry in &produced.entries {
        match entry.fate() {
            Fate::Acknowledged => sum.acknowledged += 1,
            Fate::Failed => sum.failed += 1,
            Fate::Unanswered => sum.unanswered += 1,
        }
    }
    sum
}

/// Compares with the producer's own final counts.
///
/// # Errors
/// The numbers that differ, as a text.
pub fn producer_agrees(sum: &ProducerSum, messages: u64, failed: u64) -> Result<(), String> {
    if sum.acknowledged == messages && sum.failed == failed {
        Ok(())
    } else {
        Err(format!(
            "it reports {messages} messages acknowledged and {failed} failed, but its stamps contain {} \
             and {}",
            sum.acknowledged, sum.failed
        ))
    }
}

/// Counts the messages that a consumer received.
pub fn of_consumer(producers: &[Produced], consumed: &Consumed) -> ConsumerSum {
    let mut sum = ConsumerSum {
        duplicated: consumed.duplicated,
        reordered: consumed.reordered,
        ..ConsumerSum::default()
    };
    for (producer, produced) in producers.iter().enumerate() {
        for (n, entry) in produced.entries.iter().enumerate() {
            let received = consumed.received_ns(producer, n).is_some();
            let acknowledged = entry.fate() == Fate::Acknowledged;
            sum.received += u64::from(received);
            sum.lost += u64::from(acknowledged && !received);
            sum.received_unacknowledged += u64::from(received && !acknowledged);
        }
    }
    sum
}

/// Checks that received and lost messages add up to the sent ones, and match the consumer's own count (`said`).
///
/// # Errors
/// The numbers that differ, as a text.
pub fn consumer_agrees(
    sum: &ConsumerSum,
    producers: &[ProducerSum],
    said: Option<u64>,
) -> Result<(), String> {
    let acknowledged: u64 = producers.iter().map(|producer| producer.acknowledged).sum();
    let others: u64 = producers.iter().map(|producer| producer.failed + producer.unanswered).sum();
    if sum.received + sum.lost != acknowledged + sum.received_unacknowledged
        || sum.received_unacknowledged > others
    {
        return Err(format!(
            "{} received and {} lost do not match {acknowledged} acknowledged and {} of {others} others",
            sum.received, sum.lost, sum.received_unacknowledged
        ));
    }
    match said {
        Some(said) if said != sum.received => Err(format!(
            "it reports that it received {said} messages, but its stamps contain {}",
            sum.received
        )),
        _ => Ok(()),
    }
}

/// Why a completed experiment failed: messages were lost, duplicated, or never acknowledged. `None` for an interrupted one, which
/// is incomplete.
pub fn what_is_wrong(measured: &Measured, settings: &Settings) -> Option<String> {
    if measured.interrupted {
        return None;
    }
    let mut wrong = Vec::new();
    let failed: u64 = measured.producers.iter().map(|one| one.sum.failed).sum();
    let unanswered: u64 = measured.producers.iter().map(|one| one.sum.unanswered).sum();
    if failed > 0 {
        let mut why = measured.producers.iter();
        let why = why.find_map(|producer| producer.failure.as_deref());
        let why = why.map_or(String::new(), |why| format!(", the first with: {why}"));
        wrong.push(format!("{failed} inserts failed{why}"));
    }
    if unanswered > 0 {
        wrong.push(format!("{unanswered} messages were not sent, or not answered in time"));
    }
    for (number, consumer) in measured.consumers.iter().enumerate() {
        let sum = consumer.sum;
        let who = format!("consumer {number} ({})", consumer.driver.name);
        if sum.lost > 0 && consumer.stopped {
            wrong.push(format!(
                "{who} was stopped before it had read {} messages: it was slower than the producers",
                sum.lost
            ));
        } else if sum.lost > 0 {
            let wrapped = match consumer.position_lost.unwrap_or(0) {
                0 => "",
                _ => ": the collection wrapped before it had read them",
            };
            wrong.push(format!("{who} lost {} messages{wrapped}", sum.lost));
        }
        if sum.duplicated > 0 {
            wrong.push(format!("{who} received {} messages twice", sum.duplicated));
        }
        // Another cursor may repeat messages, and the cursor may return one that a query has found.
        let skipped = consumer.duplicates_skipped.unwrap_or(0);
        let one_cursor =
            consumer.reopened.unwrap_or(0) == 0 && consumer.caught_up.unwrap_or(0) == 0;
        if skipped > 0 && one_cursor && settings.mode != TailMode::Poll {
            wrong.push(format!("{who} received {skipped} messages again by the same cursor"));
        }
        // With one insert in flight, the collection keeps the send order. Messages of a reopened cursor, or found by a query after
        // the cursor had skipped them, may arrive late. Unacknowledged inserts on several connections have no order.
        let in_order = settings.in_flight == InFlight::Bounded(1)
            && settings.mode != TailMode::Poll
            && settings.write_concern != "0";
        let again = consumer.reopened.unwrap_or(0) > consumer.reopened_empty.unwrap_or(0);
        if in_order && !again && sum.reordered > consumer.caught_up.unwrap_or(0) {
            wrong.push(format!(
                "{who} received {} messages after a newer one, although only one was in flight",
                sum.reordered
            ));
        }
    }
    (!wrong.is_empty()).then(|| wrong.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamps::{Received, Sent};

    fn sent(n: u64, failed: bool) -> Sent {
        Sent { n, intended_ns: 1 + n as i64, send_ns: 10 + n as i64, end_ns: 20 + n as i64, failed }
    }

    fn received(producer: u32, n: u64) -> Received {
        Received { producer, n, send_ns: 10 + n as i64, received_ns: 30 + n as i64, batch: None }
    }

    /// Two producers of four messages; the second one's message 1 failed, and 3 has no stamp.
    fn producers() -> Vec<Produced> {
        let mut producers = vec![Produced::new(4), Produced::new(4)];
        for n in [0, 2, 1, 3] {
            producers[0].add(sent(n, false)).unwrap();
        }
        for n in 0..3 {
            producers[1].add(sent(n, n == 1)).unwrap();
        }
        producers
    }

    fn consume(producers: &[Produced], order: &[(u32, u64)]) -> Consumed {
        let mut consumed = Consumed::new(producers, 1);
        for &(producer, n) in order {
            consumed.add(producers, received(producer, n)).unwrap();
        }
        consumed
    }

    #[test]
    fn producers_are_counted_and_compared_with_their_reports() {
        let producers = producers();
        let second = of_producer(&producers[1]);
        let expected = ProducerSum { acknowledged: 2, failed: 1, unanswered: 1 };
        assert_eq!(second, expected);
        assert_eq!(producer_agrees(&second, 2, 1), Ok(()));
        let wrong = producer_agrees(&second, 3, 0).unwrap_err();
        assert!(wrong.contains("3 messages"), "{wrong}");
    }

    #[test]
    fn lost_duplicated_and_reordered_messages_are_counted() {
        let producers = producers();
        // Producer 0: 1 after 2, 3 twice, 0 lost. Producer 1: the failed 1 and the unanswered 3 arrived.
        let order = [(0, 2), (1, 0), (0, 1), (0, 3), (0, 3), (1, 1), (1, 2), (1, 3)];
        let sum = of_consumer(&producers, &consume(&producers, &order));
        let expected = ConsumerSum {
            received: 7,
            lost: 1,
            received_unacknowledged: 2,
            duplicated: 1,
            reordered: 1,
        };
        assert_eq!(sum, expected);
        let sums: Vec<ProducerSum> = producers.iter().map(of_producer).collect();
        assert_eq!(consumer_agrees(&sum, &sums, Some(7)), Ok(()));
        assert!(consumer_agrees(&sum, &sums, Some(8)).unwrap_err().contains("received 8 messages"));
        let short = ConsumerSum { lost: 0, ..sum };
        assert!(consumer_agrees(&short, &sums, None).is_err());
    }

    #[test]
    fn each_worker_of_a_consumer_has_its_own_order() {
        let producers = producers();
        // Worker `n % 2` received: 0 and 2, then 3 before 1.
        let order = [(0, 0), (0, 2), (0, 3), (0, 1)];
        let reordered = |workers| {
            let mut consumed = Consumed::new(&producers, workers);
            for (producer, n) in order {
                consumed.add(&producers, received(producer, n)).unwrap();
            }
            of_consumer(&producers, &consumed).reordered
        };
        assert_eq!((reordered(1), reordered(2), reordered(0)), (1, 1, 1));
        let mut consumed = Consumed::new(&producers, 2);
        for n in [0, 2, 1, 3] {
            consumed.add(&producers, received(0, n)).unwrap();
        }
        assert_eq!(of_consumer(&producers, &consumed).reordered, 0);
    }

    #[test]
    fn impossible_stamps_are_refused() {
        let mut producers = producers();
        assert!(producers[0].add(sent(1, false)).unwrap_err().contains("stamped twice"));
        assert!(producers[0].add(sent(4, false)).unwrap_err().contains("message 4 "));
        let mut consumed = Consumed::new(&producers, 1);
        for (producer, n) in [(2, 0), (0, 4)] {
            let unknown = consumed.add(&producers, received(producer, n)).unwrap_err();
            assert!(unknown.contains(&format!("message {n} ")), "{unknown}");
        }
        let other = Received { send_ns: 11, ..received(0, 0) };
        assert!(consumed.add(&producers, other).unwrap_err().contains("time 11,"));
    }
}
