//! Measurements with a known correct result: a responder that stalls, and a queue with fixed service time.

use crate::measure::{EngineLoad, MAX_START_DELAY};
use crate::{ResponderProcess, in_process};
use anyhow::{Context, Result};
use dyno_load::responder::{Behaviour, Fault, FaultRule, Service, ServiceTime, Stall};
use dyno_plan::model::Schedule;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::time::Duration;

/// A responder that stalls for a tenth of the time, under a constant rate of 1 000/s.
///
/// One arrival in ten meets the stall and waits between 0 and its length, uniformly. So 5 % of all arrivals wait longer than half
/// of it, and 1 % longer than nine tenths.
pub fn stall() -> Result<()> {
    let (every, length) = (Duration::from_secs(10), Duration::from_secs(1));
    let duration = Duration::from_secs(40);
    let behaviour = Behaviour { stall: Some(Stall::new(every, length)), ..Default::default() };
    let responder = ResponderProcess::start(&behaviour)?;
    let load = EngineLoad {
        schedule: Schedule::Constant { rate_per_s: 1000.0, max_start_delay: MAX_START_DELAY },
        // Longer than a stall, so that the measured time contains only complete stalls.
        warmup: length * 2,
        duration,
        ..Default::default()
    };
    let cost = in_process("engine", responder.address, &load)?;
    let record = cost.record.context("the engine returned no record")?;
    let read = &record.operations["read"];
    let length_ms = length.as_secs_f64() * 1e3;
    println!(
        "Stalls of {length_ms:.0} ms every {:.0} ms, 1 000 operations/s constant, {:.0} s",
        every.as_secs_f64() * 1e3,
        duration.as_secs_f64()
    );
    row("response time p95", read.response_time_us.p95 / 1e3, length_ms / 2.0);
    row("response time p99", read.response_time_us.p99 / 1e3, length_ms * 0.9);
    println!(
        "  service time p99     {:>10.3} ms   (as shown by a tool that measures from the send)",
        read.service_time_us.p99 / 1e3
    );
    println!("  Little ratio         {:>10.4}", record.little_ratio.unwrap_or(f64::NAN));
    println!();
    Ok(())
}

fn row(name: &str, measured_ms: f64, expected_ms: f64) {
    println!(
        "  {name:<20} {measured_ms:>10.3} ms, expected {expected_ms:>8.3} ms, off by {:>6.2} %",
        (measured_ms / expected_ms - 1.0) * 100.0
    );
}

/// Mean response time in milliseconds of one queue with fixed service time, for the arrivals of the engine's Poisson schedule with
/// `seed` (Lindley's recursion).
fn sample_mean_ms(seed: u64, rate_per_s: f64, service_ms: f64, duration_s: f64) -> f64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut arrival_ms, mut free_ms, mut sum_ms, mut count) = (0.0, 0.0, 0.0, 0u64);
    loop {
        let u: f64 = rng.random();
        arrival_ms += -(1.0 - u).ln() * 1e3 / rate_per_s;
        if arrival_ms >= duration_s * 1e3 {
            return sum_ms / count as f64;
        }
        free_ms = f64::max(free_ms, arrival_ms) + service_ms;
        sum_ms += free_ms - arrival_ms;
        count += 1;
    }
}

/// One queue with fixed service time under Poisson arrivals: the Pollaczek-Khinchine formula gives the mean response time `d + u d
/// / (2 (1 - u))` at utilization `u` (Kleinrock, Queueing Systems I, 5.6).
///
/// A minute at 80 % load is a small sample: its own true mean is often several percent off the formula. Therefore uses the first
/// seed with arrivals within 0.2 % of the formula's mean; the remaining error is due to the measurement, not the sample.
pub fn queue() -> Result<()> {
    // Waking both sides and the loopback add about 0.1 ms to every response, which the formula does not include. The service time
    // is long enough to make this negligible.
    let service = Duration::from_millis(5);
    let duration = Duration::from_secs(60);
    println!(
        "Single queue, service time {} ms fixed, Poisson arrivals (M/D/1), {} s each",
        service.as_millis(),
        duration.as_secs()
    );
    for utilization in [0.5, 0.8] {
        let d_ms = service.as_secs_f64() * 1e3;
        let rate_per_s = utilization / service.as_secs_f64();
        let expected_ms = d_ms + utilization * d_ms / (2.0 * (1.0 - utilization));
        let is_typical = |seed: &u64| {
            let mean_ms = sample_mean_ms(*seed, rate_per_s, d_ms, duration.as_secs_f64());
            (mean_ms / expected_ms - 1.0).abs() < 0.002
        };
        let seed = (1..1000).find(is_typical).context("no seed gives a typical sample")?;
        let behaviour = Behaviour {
            service: Service::SingleQueue { time: ServiceTime::Fixed(service) },
            ..Default::default()
        };
        let responder = ResponderProcess::start(&behaviour)?;
        let load = EngineLoad {
            schedule: Schedule::Poisson { rate_per_s, max_start_delay: MAX_START_DELAY },
            clients: 64,
            // The sample's arrivals match a run without warm-up.
            warmup: Duration::ZERO,
            duration,
            seed,
            ..Default::default()
        };
        let cost = in_process("engine", responder.address, &load)?;
        let record = cost.record.context("the engine returned no record")?;
        let read = &record.operations["read"];
        row(
            &format!("mean at {:.0} % load", utilization * 100.0),
            read.response_time_us.mean / 1e3,
            expected_ms,
        );
        println!(
            "  Little ratio         {:>10.4}   (seed {seed})",
            record.little_ratio.unwrap_or(f64::NAN)
        );
    }
    println!();
    Ok(())
}

/// A responder that fails every 50th operation in one way: failures must be counted exactly, under the right name.
pub fn faults() -> Result<()> {
    const EVERY: u64 = 50;
    const OPERATIONS: u64 = 20_000;
    println!("Faults of every {EVERY}th operation, closed loop, {OPERATIONS} operations each");
    println!(
        "  {:<14}{:>10}{:>12}  {:<32}{:>10}",
        "fault", "expected", "succeeded", "counted", "Little"
    );
    for (kind, label) in [
        (Fault::ErrorCode(8000), "error code"),
        (Fault::Drop, "drop"),
        (Fault::Truncate, "cut reply"),
        (Fault::Garbage, "garbage"),
        (Fault::WrongResponseTo, "wrong answer"),
        (Fault::Hang, "hang"),
    ] {
        let behaviour =
            Behaviour { faults: vec![FaultRule { every: EVERY, kind }], ..Default::default() };
        let responder = ResponderProcess::start(&behaviour)?;
        let load = EngineLoad {
            // Faults count from the first operation on.
            warmup: Duration::ZERO,
            duration: Duration::from_secs(60),
            operations: Some(OPERATIONS),
            timeout: Duration::from_millis(200),
            ..Default::default()
        };
        let cost = in_process("engine", responder.address, &load)?;
        let record = cost.record.context("the engine returned no record")?;
        let counted: Vec<String> =
            record.errors.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        println!(
            "  {label:<14}{:>10}{:>12}  {:<32}{:>10.4}",
            OPERATIONS / EVERY,
            record.operations["read"].count,
            counted.join(", "),
            record.little_ratio.unwrap_or(f64::NAN)
        );
    }
    println!();
    Ok(())
}
