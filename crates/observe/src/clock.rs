//! Cost of reading the clock. Every latency contains one or two readings.

use std::hint::black_box;
use std::time::Instant;

/// Readings per batch: enough that the two readings that time the batch do not matter.
const READINGS: u32 = 500;
/// Batches: enough that the median ignores the few interrupted ones. About 1 ms in total.
const BATCHES: usize = 51;

/// Median cost of one reading of the clock in nanoseconds.
pub fn read_cost_ns() -> f64 {
    let mut costs_ns: Vec<f64> = (0..BATCHES).map(|_| batch_cost_ns()).collect();
    costs_ns.sort_by(f64::total_cmp);
    costs_ns[BATCHES / 2]
}

fn batch_cost_ns() -> f64 {
    let start = Instant::now();
    for _ in 0..READINGS {
        black_box(Instant::now());
    }
    start.elapsed().as_nanos() as f64 / f64::from(READINGS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_the_clock_costs_something_and_not_a_millisecond() {
        let cost_ns = read_cost_ns();
        assert!(cost_ns > 0.5 && cost_ns < 1e6, "{cost_ns}");
    }
}
