//! The baseline runs of a search. Runs with too much stolen CPU time do not count, by the rule of `dyno ab`.

use crate::experiment::ab::{is_disturbed, most_set_aside};
use dyno_record::experiment::{Figures, RunsSetAside, TuneOptions};

/// Number of initial runs with the defaults, which give the noise.
pub const BASELINE_RUNS: usize = 4;

/// The initial runs with the defaults of a search.
#[derive(Clone, Debug)]
pub struct Baseline {
    max_steal_ratio: Option<f64>,
    first: usize,
    counted: Vec<Figures>,
    set_aside: Vec<RunsSetAside>,
}

impl Baseline {
    /// A baseline without runs; the first one has the number `first` in the experiment.
    pub fn new(options: &TuneOptions, first: usize) -> Baseline {
        Baseline {
            max_steal_ratio: options.max_steal_ratio,
            first,
            counted: Vec::new(),
            set_aside: Vec::new(),
        }
    }

    /// Whether enough runs count.
    pub fn is_complete(&self) -> bool {
        self.counted.len() >= BASELINE_RUNS
    }

    /// Adds a run. Returns the stolen share of CPU time if the run does not count because of it.
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

    /// The counted runs.
    pub fn counted(&self) -> &[Figures] {
        &self.counted
    }

    /// Numbers of the counted runs in the experiment.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        let set_aside = self.set_aside.iter();
        let set_aside: Vec<usize> = set_aside.flat_map(|one| one.runs.clone()).collect();
        let all = self.first..self.end();
        all.filter(move |place| !set_aside.contains(place))
    }

    /// Number of the first run in the experiment.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Number of the next run in the experiment.
    pub fn end(&self) -> usize {
        self.first + self.counted.len() + self.set_aside.len()
    }

    pub(super) fn set_aside(&self) -> &[RunsSetAside] {
        &self.set_aside
    }
}
