//! Growth of totals that are read together, each identified by its index.
//! [`Rates`](crate::watch::rates) identifies totals by name, which fits documents with hundreds of
//! names. A machine has the same few totals per disk, and each disk comes and goes with its own
//! time.

/// The totals of one thing at the previous reading.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counters<const N: usize> {
    last: Option<(f64, [Option<u64>; N])>,
}

impl<const N: usize> Default for Counters<N> {
    fn default() -> Self {
        Counters { last: None }
    }
}

impl<const N: usize> Counters<N> {
    /// Growth of each total since the previous reading. `None` at the first reading.
    pub(super) fn growth(&mut self, at_s: f64, totals: [Option<u64>; N]) -> Option<Growth<N>> {
        let (before_s, before) = self.last.replace((at_s, totals))?;
        let grew = |index: usize| totals[index]?.checked_sub(before[index]?);
        Growth::over(at_s - before_s, std::array::from_fn(grew))
    }

    /// Makes the next reading a first one.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }
}

/// Growth of totals over a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth<const N: usize> {
    duration_s: f64,
    by: [Option<u64>; N],
}

impl<const N: usize> Growth<N> {
    /// `None` if no time has passed.
    pub(super) fn over(duration_s: f64, by: [Option<u64>; N]) -> Option<Growth<N>> {
        (duration_s > 0.0).then_some(Growth { duration_s, by })
    }

    /// Growth of the total at an index; `None` if it is absent, or if it decreased because its
    /// owner was restarted.
    pub(super) fn delta(&self, index: usize) -> Option<f64> {
        self.by[index].map(|growth| growth as f64)
    }

    /// Growth of the total at an index per second.
    pub(super) fn per_s(&self, index: usize) -> Option<f64> {
        Some(self.delta(index)? / self.duration_s)
    }

    /// Growth of one total per unit of another, such as bytes per read; `None` if the other did not
    /// grow.
    pub(super) fn mean(&self, sum: usize, count: usize) -> Option<f64> {
        let count = self.delta(count).filter(|count| *count > 0.0)?;
        Some(self.delta(sum)? / count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_known_per_total_from_the_second_reading() {
        let mut counters = Counters::default();
        assert!(counters.growth(1.0, [Some(10), Some(7), None]).is_none());
        let growth =
            counters.growth(3.0, [Some(16), Some(6), Some(5)]).expect("it is the second reading");
        assert_eq!((growth.delta(0), growth.per_s(0)), (Some(6.0), Some(3.0)));
        assert_eq!((growth.delta(1), growth.delta(2)), (None, None));
        let growth = counters.growth(4.0, [Some(16), Some(8), Some(9)]);
        let growth = growth.expect("it is the third reading");
        assert_eq!(growth.mean(2, 1), Some(2.0));
        assert_eq!(growth.mean(2, 0), None);
        assert!(counters.growth(4.0, [None; 3]).is_none());
        counters.forget();
        assert!(counters.growth(5.0, [Some(1); 3]).is_none());
    }
}
