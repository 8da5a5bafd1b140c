//! A comparison that goes on: which run is next, and what its pairs have said so far.

use super::CONFIDENCE_RATIO;
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
    /// Which limit what was tried did not keep in the pair that is not complete, by the figures of that run.
    pub(super) harm: Option<String>,
    /// The same of those of the pairs in which it did not.
    pub(super) harms: Vec<String>,
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
            harm: None,
            harms: Vec::new(),
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
        self.harm = None;
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

    /// Why what was tried does not keep the limits by the figures of its runs: it broke one in more than half of them. That a few
    /// are beyond a limit near which the settings are is chance, and the more likely the more pairs there are. As the proof of one of
    /// so many changes, without which it is, it has to be certain (sign test, over all of them at once). That adds its own probability
    /// of an error to the equal one of [`proven`](crate::search::tuning::proven).
    pub(super) fn violation(&self, changes: usize) -> Option<String> {
        let (broken, all) = (self.harms.len(), self.ratios.len());
        let is_proof = self.purpose == TunePurpose::Ablate;
        let certain = (1.0 - CONFIDENCE_RATIO) / 2.0 / changes.max(1) as f64;
        let is_enough = 2 * broken > all && (!is_proof || chance_of_more(broken, all) < certain);
        let reason = self.harms.last().filter(|_| is_enough)?;
        Some(format!("{reason}; {broken} of {all} runs broke a limit"))
    }

    /// The mean of the pairs so far, as `dyno ab` has it: a pair begins on new servers in a confirmation, so that its second run
    /// may find warm what the first one did not.
    pub(super) fn mean(&self) -> Option<MeanOfPairs> {
        let other_first: Vec<bool> = (0..self.ratios.len()).map(|pair| pair % 2 == 0).collect();
        mean_of_pairs(&self.ratios, &other_first)
    }
}

/// The probability of as many heads of so many coins, or more.
fn chance_of_more(heads: usize, coins: usize) -> f64 {
    let (mut ways, mut all) = (1.0, 0.0);
    for count in (heads..=coins).rev() {
        all += ways;
        ways *= count as f64 / (coins - count + 1) as f64;
    }
    all / 2_f64.powi(coins as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether what broke a limit in so many runs of all does not keep it.
    fn is_violated(purpose: TunePurpose, broken: usize, all: usize) -> bool {
        let now = UnderWay {
            harms: vec!["p99 was 25.000 ms".to_owned(); broken],
            ratios: vec![0.0; all],
            ..UnderWay::new(purpose, Setting::new(), Setting::new())
        };
        now.violation(2).is_some()
    }

    #[test]
    fn limits_are_judged_by_most_runs_and_ablation_needs_certainty() {
        use TunePurpose::{Ablate, Across, Confirm};
        for purpose in [Confirm, Across] {
            for (broken, all) in [(0, 4), (2, 4), (7, 24), (12, 24)] {
                assert!(!is_violated(purpose, broken, all), "{broken} of {all}");
            }
            assert!(is_violated(purpose, 3, 4) && is_violated(purpose, 13, 24));
        }
        // One change of two: less than 1.25 %.
        assert!(!is_violated(Ablate, 6, 6) && is_violated(Ablate, 7, 7));
        assert!(!is_violated(Ablate, 17, 24) && is_violated(Ablate, 18, 24));
        assert!((chance_of_more(18, 24) - 0.011_328).abs() < 1e-6);
        assert!((chance_of_more(0, 6) - 1.0).abs() < 1e-12);
    }
}
