//! A comparison that goes on: which run is next, and what its pairs have said so far.

use crate::comparison::{MeanOfPairs, mean_of_pairs};
use crate::search::tuning::space::Setting;
use dyno_record::experiment::{RunsSetAside, TunePurpose};

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct UnderWay {
    pub(super) purpose: TunePurpose,
    /// Place of the knob that is taken back, if one is.
    pub(super) knob: Option<usize>,
    pub(super) one: Setting,
    pub(super) other: Setting,
    /// Places of the runs: for each pair that of `one`, then that of `other`, as far as they are done.
    pub(super) runs: Vec<Vec<usize>>,
    /// Logarithms of the goals of the pair that is not complete: of `one` and of `other`.
    pub(super) half: [Option<f64>; 2],
    /// Logarithms of the ratios of the pairs; above 0 if `one` is better.
    pub(super) ratios: Vec<f64>,
    /// Pairs that were made again.
    pub(super) set_aside: Vec<RunsSetAside>,
}

impl UnderWay {
    pub(super) fn new(purpose: TunePurpose, one: Setting, other: Setting) -> UnderWay {
        UnderWay {
            purpose,
            knob: None,
            one,
            other,
            runs: Vec::new(),
            half: [None; 2],
            ratios: Vec::new(),
            set_aside: Vec::new(),
        }
    }

    /// AB, BA, AB and so on: what is tried first in every second pair.
    pub(super) fn is_tried_next(&self) -> bool {
        match self.half {
            [None, None] => self.ratios.len() % 2 == 1,
            [one, _] => one.is_none(),
        }
    }

    pub(super) fn note_run(&mut self, run: usize) {
        let is_tried = self.is_tried_next();
        match self.runs.last_mut().filter(|_| self.half != [None; 2]) {
            Some(pair) if is_tried => pair.insert(0, run),
            Some(pair) => pair.push(run),
            None => self.runs.push(vec![run]),
        }
    }

    /// The pair that goes on does not count, and is made again in the same order.
    pub(super) fn begin_pair_again(&mut self, stolen_ratio: Option<f64>) {
        let runs = self.runs.pop().unwrap_or_default();
        self.half = [None; 2];
        self.set_aside.push(RunsSetAside { runs, stolen_ratio });
    }

    /// How many pairs are made again because CPU time was taken.
    pub(super) fn disturbed(&self) -> usize {
        let all = self.set_aside.iter();
        all.filter(|pair| pair.stolen_ratio.is_some()).count()
    }

    /// Whether harm may be chance of what did none before: all but what the search tries for the first time.
    pub(super) fn may_be_chance(&self, is_tried: bool) -> bool {
        !is_tried || self.purpose != TunePurpose::Search
    }

    /// How many are made again by what went wrong in them.
    pub(super) fn forgiven(&self) -> usize {
        self.set_aside.len() - self.disturbed()
    }

    /// The mean of the pairs so far, as `dyno ab` has it: a pair begins on new servers in a confirmation, so that its second run
    /// may find warm what the first one did not.
    pub(super) fn mean(&self) -> Option<MeanOfPairs> {
        let other_first: Vec<bool> = (0..self.ratios.len()).map(|pair| pair % 2 == 0).collect();
        mean_of_pairs(&self.ratios, &other_first)
    }
}
