//! Tuning: goal and options, all comparisons, and the answer.

use super::comparison::AbAnswer;
use super::figures::Figure;
use super::search::Objective;
use dyno_plan::knobs::Knob;
use dyno_plan::named;
use dyno_plan::request::Keys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

named! {
    /// Figure to improve.
    #[derive(Default)]
    TuneGoal {
        /// More operations per second.
        #[default]
        Rate = "rate",
        /// Lower 99th percentile of the response time.
        P99 = "p99",
        /// Less CPU time of the servers per operation.
        Cpu = "cpu",
    }
}

impl TuneGoal {
    /// Whether a larger value is better.
    pub fn larger_is_better(self) -> bool {
        self == TuneGoal::Rate
    }
}

/// A requested knob, or some of its values, that is not tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutKnob {
    /// Name of the knob, with the values if the others are tried.
    pub name: String,
    /// Why it is not tried.
    pub reason: String,
}

/// Options of the search. Values that are determined by the first runs are absent before.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneOptions {
    /// Figure to improve.
    pub goal: TuneGoal,
    /// Response time limits that no setting may exceed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<Objective>,
    /// Share of operations that may fail with any setting.
    pub failed_ratio: f64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Gains below this share are ignored.
    pub margin_ratio: f64,
    /// Runs do not count if the hypervisor took more than this share of the CPU time; if absent, all runs count.
    pub max_steal_ratio: Option<f64>,
    /// Time for all runs.
    pub budget_s: f64,
    /// Whether the search may try settings that can lose acknowledged writes.
    #[serde(default)]
    pub allows_less_durable: bool,
    /// The requested knobs; once the first runs were made, those that are tried, with their defaults.
    #[serde(default)]
    pub knobs: Vec<Knob>,
    /// Knobs that are not tried because they do not exist, have no effect or are not allowed.
    #[serde(default)]
    pub left_out: Vec<LeftOutKnob>,
    /// Time of a run, including its overhead.
    pub run_s: Option<f64>,
    /// Additional time to start the servers and load the documents.
    pub start_s: Option<f64>,
    /// Whether the servers stall with their current settings, so stalls do not end runs early.
    pub may_stall: Option<bool>,
    /// Maximum number of comparisons in the search.
    pub trials: Option<u32>,
    /// Number of comparisons after which the search ran out of time; absent if it did not.
    pub ended_after: Option<u32>,
    /// Maximum number of pairs in a comparison that supports an answer.
    pub max_pairs: Option<u32>,
    /// Maximum number of pairs for each candidate's confirmation and ablation, by the time left at its start; 0 for a
    /// candidate that was not started. The last number also applies to later candidates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirmation_pairs: Vec<u32>,
}

named! {
    /// Purpose of a comparison.
    TunePurpose {
        /// Learn the effect of settings.
        Search = "search",
        /// Check whether the best settings are better than the original ones.
        Confirm = "confirm",
        /// Check whether a change matters, by reverting it.
        Ablate = "ablate",
        /// Measure the settings of another workload on this one.
        Across = "across",
    }
}

/// Runs that do not count and were repeated.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunsSetAside {
    /// Indices of the runs in the experiment, from 0: the finished runs of a pair, or a run before any change.
    pub runs: Vec<usize>,
    /// Share of CPU time that the hypervisor took during the last of these runs. Absent if they were set aside because
    /// one run did harm, which may be chance, or did not report the goal.
    pub stolen_ratio: Option<f64>,
}

/// Two settings measured in pairs of runs.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneTrial {
    pub purpose: TunePurpose,
    /// Name of the knob that is reverted.
    pub knob: Option<String>,
    /// Candidate: knobs and their values, without defaults.
    pub settings: BTreeMap<String, String>,
    /// Reference: knobs and their values, without defaults.
    pub beside: BTreeMap<String, String>,
    /// Indices of the runs in the experiment, from 0: each pair has the candidate's run, then the reference's. An
    /// unfinished pair has one run.
    pub runs: Vec<Vec<usize>>,
    /// Pairs that do not count; they are not in `runs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<RunsSetAside>,
    /// Goal of the candidate divided by the goal of the reference: absent if one of them did harm.
    pub ratio: Option<Figure>,
    /// Problem of the candidate or the reference.
    pub problem: Option<String>,
    /// Whether the problem is the reference's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_beside: bool,
    /// Whether the server refused to set the candidate, which is not harm.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_refused: bool,
    /// Whether the comparison was stopped early because the candidate is certainly worse.
    #[serde(default)]
    pub is_dropped: bool,
    /// Estimate at that time of the best settings so far, divided by the defaults.
    pub best_ratio: Option<Figure>,
}

/// Value of a change: the goal without it, divided by the goal with it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ablation {
    pub knob: String,
    /// The reverted value.
    pub value: String,
    /// Absent if reverting the change failed.
    pub ratio: Option<Figure>,
    /// Problem without the change.
    pub problem: Option<String>,
    /// Whether the change is part of the answer.
    pub stays: bool,
    /// Whether the change stays without a proven effect of its own, because reverting all such changes together would
    /// lose the gain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_only_together: bool,
}

/// Estimated effect of a knob: the goal with each value, with the other knobs as in the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnobEffect {
    pub knob: String,
    /// For each value, the goal divided by the goal with the defaults, as modelled, with its 95 % interval.
    pub ratios: Vec<Figure>,
}

/// Answer of a search.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneAnswer {
    /// Goal before any change, over the first runs: operations per second, or microseconds.
    pub baseline: Figure,
    /// Standard deviation of a run, as a share.
    pub noise_ratio: f64,
    /// As a share. If there is a candidate, gains of at least this size are ruled out with 95 % confidence: the largest of
    /// the margin, the upper interval ends of all confirmed settings, and the gain that the search does not rule out
    /// for other settings. Otherwise, the gain that the comparisons would most likely have shown, in four of five cases.
    pub visible_ratio: f64,
    /// Runs before any change that do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_set_aside: Vec<RunsSetAside>,
    /// All comparisons in order.
    pub trials: Vec<TuneTrial>,
    /// Knobs and values that are certainly better than the defaults; empty if there is no gain.
    pub settings: BTreeMap<String, String>,
    /// The same settings as keys of the plan.
    pub keys: Keys,
    /// Confirmed goal with the settings, divided by the goal with the defaults; for the best candidate if it is not
    /// certainly better.
    pub ratio: Option<Figure>,
    /// Value of each change of the candidate.
    pub ablation: Vec<Ablation>,
    /// The candidate that was not confirmed, if any.
    pub candidate: Option<BTreeMap<String, String>>,
    /// Estimated effect of each knob.
    pub effects: Vec<KnobEffect>,
    /// Comparison of the confirmation's runs as by `dyno ab`, with the defaults as A; explains the gain.
    pub comparison: Option<Box<AbAnswer>>,
}

impl TuneAnswer {
    /// Comparisons that [`ratio`](Self::ratio) is based on: the last one of the answer's settings, or all of the
    /// unconfirmed candidate's.
    pub fn confirmations(&self) -> impl Iterator<Item = &TuneTrial> {
        let settings = self.candidate.as_ref().unwrap_or(&self.settings);
        let of_them = self.trials.iter().rev().filter(move |trial| {
            let is_confirmation = trial.purpose == TunePurpose::Confirm;
            is_confirmation && trial.ratio.is_some() && trial.settings == *settings
        });
        let most = match self.candidate {
            Some(_) => self.trials.len(),
            None => 1,
        };
        of_them.take(most)
    }

    /// Whether gains larger than the margin are ruled out. Without a candidate, nothing was confirmed.
    pub fn shows(&self, margin_ratio: f64) -> bool {
        let is_confirmed = self.candidate.is_some() && self.was_compared();
        is_confirmed && self.visible_ratio <= margin_ratio
    }

    /// Whether settings were compared with the original ones: the candidate, if there is one. A candidate that did harm
    /// says nothing about gains.
    pub fn was_compared(&self) -> bool {
        match &self.candidate {
            Some(_) => self.ratio.is_some(),
            None => self.trials.iter().any(|trial| trial.ratio.is_some()),
        }
    }

    /// All runs that do not count.
    pub fn set_aside(&self) -> impl Iterator<Item = &RunsSetAside> {
        let of_trials = self.trials.iter().flat_map(|trial| &trial.set_aside);
        self.first_set_aside.iter().chain(of_trials)
    }
}

impl TuneTrial {
    /// The settings that the comparison is about: the candidate, or the reference if it failed.
    pub fn subject(&self) -> &BTreeMap<String, String> {
        match self.is_beside {
            true => &self.beside,
            false => &self.settings,
        }
    }

    /// The complete pairs: candidate and reference.
    pub fn pairs(&self) -> impl Iterator<Item = [usize; 2]> {
        self.runs.iter().filter_map(|pair| Some([*pair.first()?, *pair.get(1)?]))
    }
}
