//! The runs of a search before any change. Those from which the hypervisor took CPU time do not count, by the rule of `dyno ab`.

use crate::experiment::ab::{is_disturbed, most_set_aside};
use dyno_record::experiment::{Figures, RunsSetAside, TuneOptions};

/// Runs with the defaults at the beginning, from which the noise is known.
pub const BASELINE_RUNS: usize = 4;

/// The runs with the defaults at the beginning of a search.
#[derive(Clone, Debug)]
pub struct Baseline {
    max_steal_ratio: Option<f64>,
    first: usize,
    counted: Vec<Figures>,
    set_aside: Vec<RunsSetAside>,
}

impl Baseline {
    /// Before the first of them, which has this place in the experiment.
    pub fn new(options: &TuneOptions, first: usize) -> Baseline {
        Baseline {
            max_steal_ratio: options.max_steal_ratio,
            first,
            counted: Vec::new(),
            set_aside: Vec::new(),
        }
    }

    /// Whether enough of them count.
    pub fn is_complete(&self) -> bool {
        self.counted.len() >= BASELINE_RUNS
    }

    /// Takes the run that was made; the share of the CPU time that the hypervisor took, if that is why it does not count.
    pub fn take(&mut self, figures: Figures) -> Option<f64> {
        let is_left = self.set_aside.len() < most_set_aside(BASELINE_RUNS);
        let is_one = |stolen: &f64| is_left && is_disturbed(*stolen, self.max_steal_ratio);
        let stolen_ratio = figures.stolen_ratio.filter(is_one);
        match stolen_ratio {
            None => self.counted.push(figures),
            Some(_) => {
                let runs = vec![self.end()];
                self.set_aside.push(RunsSetAside { runs, stolen_ratio });
            }
        }
        stolen_ratio
    }

    /// The runs that count.
    pub fn counted(&self) -> &[Figures] {
        &self.counted
    }

    /// Places of the runs that count in the experiment.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        let set_aside = self.set_aside.iter();
        let set_aside: Vec<usize> = set_aside.flat_map(|one| one.runs.clone()).collect();
        let all = self.first..self.end();
        all.filter(move |place| !set_aside.contains(place))
    }

    /// Place of the first run in the experiment.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Place of the run that follows.
    pub fn end(&self) -> usize {
        self.first + self.counted.len() + self.set_aside.len()
    }

    pub(super) fn set_aside(&self) -> &[RunsSetAside] {
        &self.set_aside
    }
}
