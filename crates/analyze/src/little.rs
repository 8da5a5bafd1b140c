//! Little's law: the mean number in a system is the arrival rate times the mean time in it.
//!
//! J. D. C. Little, "A Proof for the Queuing Formula: L = λW", *Operations Research* 9 (1961). It holds for any
//! schedule and any server, so a run that breaks it has measured its rate, its service times or its operations
//! in flight wrongly. All three are counted independently.

/// Largest distance of the ratio from 1 in a sound run. Operations in flight at the edges of a phase are
/// counted on one side only; 2 % allows for them in phases of some seconds.
pub const LITTLE_TOLERANCE_RATIO: f64 = 0.02;

/// Whether a ratio of `mean in flight / (rate × mean service time)` agrees with Little's law.
pub fn holds(little_ratio: f64) -> bool {
    (little_ratio - 1.0).abs() <= LITTLE_TOLERANCE_RATIO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_percent_to_either_side_are_tolerated() {
        for ratio in [0.981, 1.0, 1.019] {
            assert!(holds(ratio), "{ratio}");
        }
        for ratio in [0.979, 1.021, 0.0, f64::INFINITY, f64::NAN] {
            assert!(!holds(ratio), "{ratio}");
        }
    }
}
