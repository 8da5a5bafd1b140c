//! Whether the share of some operations among all is above a limit for certain, from one window after the other.
//!
//! Operations of one window have much in common, such as a stall, and do not count as so many observations. The windows do: by how
//! many operations each is above what the limit allows. Student's t test says whether the sum of these is above 0, as for a ratio
//! (W. G. Cochran, *Sampling Techniques*, 1977, chapter 6). The variance is never taken to be less than that of independent
//! operations, as few windows may agree by chance. The level is that of three standard deviations of a normal variable, since the
//! question is asked again after each window.

use crate::student::two_sided;

/// Fewest windows that say something.
const LEAST_WINDOWS: f64 = 3.0;

/// Confidence of three standard deviations, both sides.
const CONFIDENCE_RATIO: f64 = 0.9973;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct OnlineShare {
    limit_ratio: f64,
    windows: f64,
    all: f64,
    /// Sum over the windows of the operations beyond what the limit allows, and of their squares.
    excess: f64,
    squares: f64,
}

impl OnlineShare {
    /// Before the first window, for a limit between 0 and 1.
    pub fn new(limit_ratio: f64) -> OnlineShare {
        OnlineShare {
            limit_ratio,
            windows: 0.0,
            all: 0.0,
            excess: 0.0,
            squares: 0.0,
        }
    }

    /// Takes a window with so many operations of `all` that count; the share in all windows so far, if it is above the limit for
    /// certain.
    pub fn push(&mut self, part: f64, all: f64) -> Option<f64> {
        let excess = part - self.limit_ratio * all;
        self.windows += 1.0;
        self.all += all;
        self.excess += excess;
        self.squares += excess * excess;
        if self.windows < LEAST_WINDOWS || self.excess <= 0.0 {
            return None;
        }
        let freedom = self.windows - 1.0;
        let mean = self.excess / self.windows;
        let between = (self.squares - self.excess * mean).max(0.0) / freedom * self.windows;
        let independent = self.all * self.limit_ratio * (1.0 - self.limit_ratio);
        let error = between.max(independent).sqrt();
        let is_certain = self.excess > two_sided(CONFIDENCE_RATIO, freedom) * error;
        is_certain.then(|| self.limit_ratio + self.excess / self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_testkit::simulate::normal;

    const LIMIT: f64 = 0.01;
    const OPERATIONS: f64 = 1_000.0;

    /// After how many windows a run is above the limit for certain, if it ever is.
    fn certain_after(parts: impl IntoIterator<Item = f64>) -> Option<usize> {
        let mut share = OnlineShare::new(LIMIT);
        let mut parts = parts.into_iter();
        let place = parts.position(|part| share.push(part, OPERATIONS).is_some());
        place.map(|place| place + 1)
    }

    /// A minute whose share is so many times the limit, with windows that vary by more than chance.
    fn minute(factor: f64, seed: u64) -> Vec<f64> {
        let level = normal(seed, 60);
        let chance = normal(seed + 10_000, 60);
        let mean = factor * LIMIT * OPERATIONS;
        let windows = level.into_iter().zip(chance);
        let part = |(level, chance)| mean * (1.0 + 0.15 * level) + mean.sqrt() * chance;
        windows.map(part).map(|part| part.max(0.0)).collect()
    }

    #[test]
    fn nine_tenths_of_the_limit_are_never_above_it_and_twice_as_much_is_within_seconds() {
        for seed in 0..100 {
            assert_eq!(certain_after(minute(0.9, seed)), None, "{seed}");
            let twice = certain_after(minute(2.0, seed)).unwrap();
            assert!(twice <= 20, "{seed}: {twice}");
        }
    }

    #[test]
    fn windows_that_agree_are_as_certain_as_their_operations_allow() {
        // 20 of 1,000 each: t is 5.5 after three windows and 7.1 after five, which 19.2 and 6.6 are asked of.
        assert_eq!(certain_after([20.0; 60]), Some(5));
        assert_eq!(certain_after([500.0; 60]), Some(3));
        assert_eq!(certain_after([10.0; 60]), None);
    }

    #[test]
    fn a_stall_is_one_window_however_many_operations_it_delays() {
        let stall = |window: u32| if window == 4 { 400.0 } else { 9.0 };
        assert_eq!(certain_after((0..30).map(stall)), None);
        let mut share = OnlineShare::new(LIMIT);
        assert_eq!(share.push(0.0, 0.0), None);
    }

    #[test]
    fn what_is_certain_is_told_as_the_share_of_all_windows() {
        let mut share = OnlineShare::new(LIMIT);
        let parts = [100.0, 110.0, 90.0, 100.0];
        let ratio = parts.map(|part| share.push(part, OPERATIONS))[3].unwrap();
        assert!((ratio - 0.1).abs() < 1e-12, "{ratio}");
    }
}
