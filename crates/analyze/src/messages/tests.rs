//! Simulated producers with known causes.

use super::*;
use dyno_record::tail::{Cause, InFlight, Judgement, Point, QueuePlace, Rates, Timeline};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

const MS: f64 = 1e6;
const MESSAGES: u64 = 100_000;
const POINTS: u64 = 50;

/// Times of message `k` at the position `share` of the run.
#[derive(Clone, Copy)]
struct Message {
    wait_ns: f64,
    acknowledged_ns: f64,
    after_ns: f64,
    in_flight: f64,
}

const QUIET: Message =
    Message { wait_ns: 0.02 * MS, acknowledged_ns: 0.8 * MS, after_ns: 0.1 * MS, in_flight: 1.0 };

fn timeline(in_flight: InFlight, mut message: impl FnMut(f64) -> Message) -> Timeline {
    let points = (0..POINTS).map(|place| {
        let share = (place as f64 + 0.5) / POINTS as f64;
        let found = message(share);
        Point {
            message: share * MESSAGES as f64,
            wait_ns: found.wait_ns,
            acknowledged_ns: found.acknowledged_ns,
            after_ns: Some(found.after_ns),
            total_ns: Some(found.wait_ns + found.acknowledged_ns + found.after_ns),
            in_flight: found.in_flight,
            batch_messages: Some(1.0 + 99.0 * share),
        }
    });
    Timeline {
        messages: MESSAGES,
        in_flight,
        place: QueuePlace::Driver,
        pool: Some(100),
        points: points.collect(),
        rates: Rates {
            offered_per_s: None,
            sent_per_s: 10_000.0,
            acknowledged_per_s: 10_000.0,
            acknowledged_first_half_per_s: 10_000.0,
            acknowledged_second_half_per_s: 10_000.0,
            handed_over_s: 10.0,
            all_s: 10.0,
        },
    }
}

fn has(judgement: &Judgement, parts: &[&str]) {
    for part in parts {
        assert!(
            judgement.statement.to_string().contains(part),
            "`{part}` in: {}",
            judgement.statement
        );
    }
}

#[test]
fn flat_latency_is_stationary() {
    let found = judge(&timeline(InFlight::Bounded(1), |_| QUIET));
    assert_eq!(found.cause, Cause::Stationary);
    has(&found, &["latency-does-not-grow (median: 920 µs, messages: 100,000"]);
}

/// Medians that spread over a factor of three, with similar neighbours.
#[test]
fn noisy_flat_latency_is_not_called_growing() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut stationary = 0;
    for _ in 0..200 {
        let mut drift = 0.0;
        let found = judge(&timeline(InFlight::Bounded(8), |_| {
            drift = 0.5 * drift + rng.random::<f64>() - 0.5;
            Message {
                acknowledged_ns: (2.0 + drift) * MS,
                wait_ns: (0.5 + rng.random::<f64>()) * MS,
                after_ns: (rng.random::<f64>() - 0.3) * MS,
                in_flight: 8.0,
            }
        }));
        stationary += usize::from(found.cause == Cause::Stationary);
    }
    assert!(stationary >= 196, "{stationary} of 200");
}

#[test]
fn schedule_beyond_the_driver_offers_more_than_is_sent() {
    let mut late =
        timeline(InFlight::Bounded(1), |share| Message { wait_ns: share * 5_000.0 * MS, ..QUIET });
    late.rates.offered_per_s = Some(20_000.0);
    let found = judge(&late);
    assert_eq!(found.cause, Cause::MoreOfferedThanSent);
    has(
        &found,
        &[
            "more-offered-than-sent",
            "growth: 50.0 ms",
            "part-beside (direction: flat, growth: 0 µs, median: 800 µs, part: acknowledged)",
            "offered: 20,000/s, sent: 10,000/s",
        ],
    );
}

/// The riddle: everything is handed over at once, and message k waits for the k before it.
fn riddle() -> Timeline {
    let mut all_at_once = timeline(InFlight::Unbounded, |share| {
        let before = share * MESSAGES as f64;
        Message { acknowledged_ns: before / 10_000.0 * 1e9, in_flight: before, ..QUIET }
    });
    all_at_once.rates.handed_over_s = 0.4;
    all_at_once.rates.sent_per_s = 250_000.0;
    all_at_once
}

#[test]
fn unawaited_inserts_are_unbounded_in_flight() {
    let found = judge(&riddle());
    assert_eq!(found.cause, Cause::UnboundedInFlight);
    assert!((found.little_ratio.unwrap() - 1.0).abs() < 1e-9);
    has(
        &found,
        &[
            "in-flight-unbounded (all: 10.0 s, growth: 100 ms, handed_over: 400 ms, messages: 100,000)",
            "littles-law-of-inserts (agrees: true, in_flight: 99,000, rate: 10,000/s, ratio: 1.00, time: 9.90 s)",
            "inserts-wait-for-connection (connections: 100",
        ],
    );
    // The median number in flight is half of the messages: 5 s. The 100 connections take 10 ms of it.
    assert!((found.connection_wait_ns.unwrap() - 4_990.0 * MS).abs() < 1.0);
}

#[test]
fn blocking_driver_without_bound_queues_in_the_program() {
    let mut blocking = timeline(InFlight::Unbounded, |share| Message {
        wait_ns: share * 10_000.0 * MS,
        in_flight: 100.0,
        ..QUIET
    });
    blocking.place = QueuePlace::Program;
    let found = judge(&blocking);
    assert_eq!(found.cause, Cause::UnboundedInFlight);
    has(&found, &["due-messages-unbounded", "growth: 100 ms"]);
}

#[test]
fn longer_inserts_at_equal_in_flight_blame_the_server() {
    for bound in [InFlight::Bounded(4), InFlight::Unbounded] {
        let mut slower = timeline(bound, |share| Message {
            acknowledged_ns: (1.0 + 4.0 * share) * MS,
            in_flight: 4.0,
            ..QUIET
        });
        slower.rates.acknowledged_second_half_per_s = 5_000.0;
        let found = judge(&slower);
        assert_eq!(found.cause, Cause::Server, "{}", found.statement);
        has(
            &found,
            &[
                "inserts-take-longer",
                "growth: 40.0 µs",
                "second-half-slower (first: 10,000/s, second: 5,000/s)",
            ],
        );
    }
}

#[test]
fn increasingly_late_messages_blame_the_delivery() {
    let found = judge(&timeline(InFlight::Bounded(1), |share| Message {
        after_ns: share * 300.0 * MS,
        ..QUIET
    }));
    assert_eq!(found.cause, Cause::Delivery);
    has(
        &found,
        &["delivery-falls-behind", "growth: 3.00 ms", "first_batch: 1.99", "last_batch: 99.0"],
    );
}

#[test]
fn time_moving_between_parts_is_not_growth() {
    let found = judge(&timeline(InFlight::Bounded(1), |share| Message {
        acknowledged_ns: (5.0 - 4.0 * share) * MS,
        after_ns: 4.0 * share * MS,
        ..QUIET
    }));
    assert_eq!(found.cause, Cause::Stationary, "{}", found.statement);
}

#[test]
fn the_part_that_grows_most_names_the_cause() {
    let found = judge(&timeline(InFlight::Bounded(1), |share| Message {
        acknowledged_ns: (1.0 + share) * MS,
        after_ns: share * 50.0 * MS,
        ..QUIET
    }));
    assert_eq!(found.cause, Cause::Delivery);
    has(&found, &["part-beside (direction: growing"]);
}

#[test]
fn without_received_messages_inserts_are_judged_alone() {
    let mut unseen = riddle();
    for point in &mut unseen.points {
        (point.after_ns, point.total_ns) = (None, None);
    }
    assert_eq!(judge(&unseen).cause, Cause::UnboundedInFlight);
    unseen.points.truncate(LEAST_POINTS - 1);
    let found = judge(&unseen);
    assert_eq!(found.cause, Cause::TooFew);
    has(&found, &["too-few-messages (least: 10, points: 9)"]);
}
