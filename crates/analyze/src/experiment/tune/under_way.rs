//! A comparison in progress: its next run and the results of its pairs so far.

use crate::comparison::{MeanOfPairs, mean_of_pairs};
use crate::search::tuning::space::Setting;
use dyno_record::experiment::{RunsSetAside, TunePurpose};

/// A comparison in progress.
#[derive(Clone, Debug)]
pub(super) struct UnderWay {
    pub(super) purpose: TunePurpose,
    /// Position of the reverted knob, if any.
    pub(super) knob: Option<usize>,
    pub(super) one: Setting,
    pub(super) other: Setting,
    /// Numbers of the finished runs: for each pair the run of `one`, then the run of `other`.
    pub(super) runs: Vec<Vec<usize>>,
    /// Logarithms of the goals in the incomplete pair, of `one` and of `other`.
    pub(super) half: [Option<f64>; 2],
    /// Logarithms of the pairs' ratios; above 0 if `one` is better.
    pub(super) ratios: Vec<f64>,
    /// The limit that the candidate broke in the incomplete pair.
    pub(super) harm: Option<String>,
    /// The broken limits of the complete pairs.
    pub(super) harms: Vec<String>,
    /// Repeated pairs.
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
            harm: None,
            harms: Vec::new(),
            set_aside: Vec::new(),
        }
    }

    /// AB, BA, AB and so on: the candidate comes first in every second pair.
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

    /// Discards the current pair, which is repeated in the same order.
    pub(super) fn begin_pair_again(&mut self, stolen_ratio: Option<f64>) {
        let runs = self.runs.pop().unwrap_or_default();
        self.half = [None; 2];
        self.harm = None;
        self.set_aside.push(RunsSetAside { runs, stolen_ratio });
    }

    /// Number of pairs that are repeated because CPU time was stolen.
    pub(super) fn disturbed(&self) -> usize {
        self.set_aside.iter().filter(|pair| pair.stolen_ratio.is_some()).count()
    }

    /// Whether harm may be chance because the settings were harmless before: always, except for a candidate's
    /// first search trial.
    pub(super) fn may_be_chance(&self, is_tried: bool) -> bool {
        !is_tried || self.purpose != TunePurpose::Search
    }

    /// Number of pairs that are repeated because of a failure.
    pub(super) fn forgiven(&self) -> usize {
        self.set_aside.len() - self.disturbed()
    }

    /// Why the candidate does not keep the limits: it broke one in more than half of its runs. A few runs
    /// beyond a limit near the settings are chance, and more likely with more pairs. An ablation is decided by
    /// the goal: the settings that remain are compared once more, and must keep the limits then.
    pub(super) fn violation(&self) -> Option<String> {
        let (broken, all) = (self.harms.len(), self.ratios.len());
        let is_decisive = self.purpose != TunePurpose::Ablate;
        let reason = self.harms.last().filter(|_| is_decisive && 2 * broken > all)?;
        Some(format!("{reason}; {broken} of {all} runs broke a limit"))
    }

    /// The mean of the pairs so far, as in `dyno ab`: a pair begins on fresh servers in a confirmation, so its
    /// second run may find warm caches.
    pub(super) fn mean(&self) -> Option<MeanOfPairs> {
        let other_first: Vec<bool> = (0..self.ratios.len()).map(|pair| pair % 2 == 0).collect();
        mean_of_pairs(&self.ratios, &other_first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether this many broken limits among all runs count as a violation.
    fn is_violated(purpose: TunePurpose, broken: usize, all: usize) -> bool {
        let now = UnderWay {
            harms: vec!["p99 was 25.000 ms".to_owned(); broken],
            ratios: vec![0.0; all],
            ..UnderWay::new(purpose, Setting::new(), Setting::new())
        };
        now.violation().is_some()
    }

    #[test]
    fn limits_are_judged_by_most_runs_and_never_in_an_ablation() {
        use TunePurpose::{Ablate, Across, Confirm};
        for purpose in [Confirm, Across] {
            for (broken, all) in [(0, 4), (2, 4), (7, 24), (12, 24)] {
                assert!(!is_violated(purpose, broken, all), "{broken} of {all}");
            }
            assert!(is_violated(purpose, 3, 4) && is_violated(purpose, 13, 24));
        }
        assert!(!is_violated(Ablate, 4, 4) && !is_violated(Ablate, 24, 24));
    }
}
