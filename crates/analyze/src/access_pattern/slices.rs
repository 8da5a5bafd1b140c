//! Counts over time in a bounded number of equal slices, which grow by doubling.

use serde::Serialize;

/// Most slices.
const MOST_SLICES: usize = 256;
/// First length of a slice.
const FIRST_NS: u64 = 10_000_000;

/// Counts for a slice of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Slice {
    /// Calls that began in the slice.
    pub calls: u64,
    /// Bytes that these calls moved.
    pub bytes: u64,
    /// Sum of their latencies.
    pub latency_sum_ns: u64,
    /// Calls with a known relation to streams.
    pub judged: u64,
    /// Sum of their credits; see the score.
    pub credit: f64,
}

impl Slice {
    /// The score of the slice; `None` without judged calls.
    pub fn score(&self) -> Option<f64> {
        (self.judged > 0).then(|| (self.credit / self.judged as f64).min(1.0))
    }

    fn merge(&mut self, other: &Slice) {
        self.calls += other.calls;
        self.bytes += other.bytes;
        self.latency_sum_ns += other.latency_sum_ns;
        self.judged += other.judged;
        self.credit += other.credit;
    }
}

/// Slices of equal length from an origin on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slices {
    /// Start of the first slice.
    pub start_ns: i64,
    /// Length of each slice.
    pub length_ns: u64,
    /// The slices up to the last one with a call.
    pub slices: Vec<Slice>,
}

impl Slices {
    /// An empty list of slices that starts at `start_ns`.
    pub fn new(start_ns: i64) -> Slices {
        Slices { start_ns, length_ns: FIRST_NS, slices: Vec::new() }
    }

    /// Adds counts at a time; times before the start go to the first slice.
    pub(super) fn add(&mut self, at_ns: i64, counts: &Slice) {
        let from_start = at_ns.saturating_sub(self.start_ns).max(0) as u64;
        while from_start / self.length_ns >= MOST_SLICES as u64 {
            self.halve();
        }
        let index = (from_start / self.length_ns) as usize;
        if index >= self.slices.len() {
            self.slices.resize(index + 1, Slice::default());
        }
        self.slices[index].merge(counts);
    }

    fn halve(&mut self) {
        self.length_ns *= 2;
        self.slices = self
            .slices
            .chunks(2)
            .map(|pair| {
                let mut sum = pair[0];
                pair.iter().skip(1).for_each(|other| sum.merge(other));
                sum
            })
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_stay_few_and_lose_nothing() {
        let mut slices = Slices::new(0);
        for second in 0..3600i64 {
            let counts = Slice { calls: 1, bytes: 10, ..Slice::default() };
            slices.add(second * 1_000_000_000, &counts);
        }
        assert!(slices.slices.len() <= MOST_SLICES && slices.slices.len() > MOST_SLICES / 2);
        assert_eq!(slices.slices.iter().map(|slice| slice.calls).sum::<u64>(), 3600);
        let at = 1_800_000_000_000 / slices.length_ns as usize;
        assert!(slices.slices[at].calls.abs_diff(slices.slices[0].calls) <= 1);
    }
}
