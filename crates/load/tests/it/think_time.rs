//! Clients with waits between their operations, with responders of known service times.

use crate::truth::{in_a_quiet_moment, near, trial};
use dyno_load::responder::{Behaviour, Service, ServiceTime, Stall};
use dyno_plan::model::{Schedule, ThinkTime};
use dyno_plan::units::Span;
use dyno_record::model::PhaseRecord;
use std::time::Duration;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// N / X − Z, in microseconds.
fn predicted_us(record: &PhaseRecord, clients: usize, think_us: f64) -> f64 {
    let finished = (record.succeeded + record.failed) as f64;
    clients as f64 * record.duration_s * 1e6 / finished - think_us
}

/// A closed loop of clients that think for 20 ms against a server that takes 5 ms and has no queue.
fn thinking(distribution: ThinkTime, threads: usize) -> PhaseRecord {
    let mut trial = trial(Behaviour {
        service: Service::Parallel { time: ServiceTime::Fixed(ms(5)) },
        ..Behaviour::default()
    });
    trial.plan.client.think_time = Some(Span(ms(20)));
    trial.plan.client.think_time_distribution = Some(distribution);
    trial.clients = 64;
    trial.threads = threads;
    trial.warmup = Some(ms(200));
    trial.duration = Some(Duration::from_secs(4));
    trial.run().0
}

#[test]
fn clients_that_think_have_the_rate_of_their_cycle() {
    for distribution in [ThinkTime::Constant, ThinkTime::Exponential] {
        in_a_quiet_moment(|| {
            let record = thinking(distribution, 1);
            let what = |what: &str| format!("{distribution:?}: {what}");
            let read = &record.operations["read"];
            let service_us = read.service_time_us.mean;
            near(service_us, 5_000.0, 0.04, &what("service time"))?;
            // No time of an operation includes the think time.
            near(read.response_time_us.mean, 5_000.0, 0.06, &what("response time"))?;
            let think_us = record.mean_think_time_us.unwrap();
            near(think_us, 20_000.0, 0.025, &what("think time"))?;
            let cycle_s = 0.025;
            near(record.achieved_rate_per_s, 64.0 / cycle_s, 0.025, &what("rate"))
        });
    }
}

#[test]
fn think_times_of_several_workers_are_counted_together() {
    in_a_quiet_moment(|| {
        let record = thinking(ThinkTime::Exponential, 2);
        let think_us = record.mean_think_time_us.unwrap();
        let service_us = record.operations["read"].service_time_us.mean;
        let predicted_us = predicted_us(&record, 64, think_us);
        near(service_us, predicted_us, 0.02, "response time law")
    });
}

/// Variance of the operations in parts of `hundredths` of a second divided by their mean, for four clients that think
/// for 10 ms.
fn dispersion(distribution: ThinkTime, hundredths: usize) -> f64 {
    let mut trial = trial(Behaviour::default());
    trial.plan.client.think_time = Some(Span(ms(10)));
    trial.plan.client.think_time_distribution = Some(distribution);
    trial.clients = 4;
    trial.duration = Some(Duration::from_secs(4));
    let ended = trial.ended_in_parts();
    let counts: Vec<f64> =
        ended[10..].chunks_exact(hundredths).map(|part| part.iter().sum::<u64>() as f64).collect();
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let squares = counts.iter().map(|count| (count - mean).powi(2));
    squares.sum::<f64>() / counts.len() as f64 / mean
}

#[test]
fn exponential_think_times_make_arrivals_random() {
    in_a_quiet_moment(|| {
        // Clients with exponential think times that hardly wait for the server send a Poisson stream: the variance of a
        // count equals its mean.
        near(dispersion(ThinkTime::Exponential, 1), 1.0, 0.25, "exponential")?;
        // Counts of one client in a part of length W with a cycle of length C differ by at most one. The variance of
        // the counts of N clients is therefore at most N² / 4, whatever their phases, and the mean is N W / C: the
        // dispersion is at most 4 · 10 / (4 · 100).
        let constant = dispersion(ThinkTime::Constant, 10);
        if constant < 0.12 { Ok(()) } else { Err(format!("constant: {constant}")) }
    });
}

/// A throttled loop of 16 clients with a queue that serves 500/s.
fn at_target_rate(rate_per_s: f64) -> PhaseRecord {
    let mut trial = trial(Behaviour {
        service: Service::SingleQueue { time: ServiceTime::Exponential { mean: ms(2) } },
        ..Behaviour::default()
    });
    trial.plan.schedule = Schedule::Throttled { rate_per_s };
    trial.warmup = Some(ms(300));
    trial.duration = Some(Duration::from_secs(2));
    trial.run().0
}

#[test]
fn the_response_time_law_holds_at_every_target_rate() {
    in_a_quiet_moment(|| {
        for rate in [50.0, 100.0, 150.0, 200.0, 250.0, 300.0, 350.0, 400.0] {
            let record = at_target_rate(rate);
            let what = |what: &str| format!("{what} at {rate}/s");
            near(record.achieved_rate_per_s, rate, 0.05, &what("rate"))?;
            assert_eq!(record.offered_rate_per_s, Some(rate));
            assert_eq!(record.arrivals, None);
            let measured_us = record.operations["read"].service_time_us.mean;
            let think_us = record.mean_think_time_us.unwrap();
            let predicted = predicted_us(&record, 16, think_us);
            near(measured_us, predicted, 0.02, &what("response time law"))?;
            // Without the think time, the law predicts something else.
            let without = near(measured_us, predicted_us(&record, 16, 0.0), 0.5, "Z = 0");
            assert!(without.is_err(), "at {rate}/s clients wait {think_us} µs");
        }
        Ok(())
    });
}

#[test]
fn a_throttled_loop_beyond_the_capacity_is_a_closed_loop() {
    let record = at_target_rate(2000.0);
    let read = &record.operations["read"];
    assert!(record.achieved_rate_per_s < 700.0, "{record:?}");
    // No client waits, and Little's law applies.
    let think_us = record.mean_think_time_us.unwrap();
    assert!(think_us < 0.02 * read.service_time_us.mean, "{think_us}");
    // An operation waits ever longer from its slot, which only the response time includes.
    assert!(read.response_time_us.max > 10.0 * read.service_time_us.max);
}

#[test]
fn a_throttled_loop_catches_up_after_a_stall() {
    in_a_quiet_moment(|| {
        let mut trial =
            trial(Behaviour { stall: Some(Stall::new(ms(2500), ms(200))), ..Behaviour::default() });
        trial.plan.schedule = Schedule::Throttled { rate_per_s: 1000.0 };
        trial.clients = 8;
        trial.duration = Some(Duration::from_secs(4));
        let (record, _) = trial.run();
        let read = &record.operations["read"];
        // All slots of the four seconds, except at the edges.
        near(read.count as f64, 4000.0, 0.005, "operations")?;
        // One operation in twenty was due in the stall, and eight were in flight.
        near(read.response_time_us.p99, 160_000.0, 0.1, "p99 from the slot")?;
        if read.service_time_us.p99 < 20_000.0 {
            Ok(())
        } else {
            Err(format!("p99 from the send: {}", read.service_time_us.p99))
        }
    });
}
