//! Tuning: goal and options, all comparisons, and the answer.

use super::comparison::AbAnswer;
use super::figures::Figure;
use super::search::Objective;
use crate::named::named;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

named! {
    /// Figure to improve.
    TuneGoal {
        /// More operations per second.
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

named! {
    /// How a knob is set.
    KnobReach {
        /// By a command to the running server.
        RunTime = "run-time",
        /// By a restart of the server.
        Restart = "restart",
        /// By the kernel of the server's machine.
        Host = "host",
        /// By the clients.
        Client = "client",
    }
}

/// A key of the plan and the values to try.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knob {
    pub name: String,
    pub group: String,
    /// Key of the plan.
    pub key: String,
    /// Value of the key, with `{}` for the knob's value; absent if the key gets the knob's value alone.
    pub text: Option<String>,
    /// Values to try, in their order if they have one.
    pub values: Vec<String>,
    /// Index of the default value.
    pub default: usize,
    /// Whether the values have an order.
    pub ordered: bool,
    pub reach: KnobReach,
    /// For a setting of the machine, whether a new value requires a restart of the server.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_start: bool,
    /// For a setting of the machine, the kernel files that hold it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Server versions with this knob, such as `4.4-6.0`; absent for all.
    pub versions: Option<String>,
    /// Values that make, or may make, acknowledged writes less durable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub less_durable: Vec<String>,
    /// Possible harm.
    pub risk: Option<String>,
    /// Link to its documentation.
    pub documentation: Option<String>,
}

impl Knob {
    /// The default value.
    pub fn default_value(&self) -> &str {
        self.values.get(self.default).map_or("", String::as_str)
    }

    /// Value of the plan key for a value of the knob.
    pub fn set(&self, value: &str) -> String {
        match &self.text {
            Some(text) => text.replace("{}", value),
            None => value.to_owned(),
        }
    }
}

/// Connection string options are joined by `&` instead of commas.
const CONNECTION_OPTIONS: &str = "server.connection_options";

/// Keys of the plan for these knob values. If several knobs share a key, their texts are joined: options of the
/// connection string by `&`, others by commas.
pub fn keys_of<'a>(
    settings: impl Iterator<Item = (&'a Knob, &'a str)>,
) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::<String, String>::new();
    for (knob, value) in settings {
        let text = knob.set(value);
        let sign = if knob.key == CONNECTION_OPTIONS { '&' } else { ',' };
        keys.entry(knob.key.clone())
            .and_modify(|all| *all = format!("{all}{sign}{text}"))
            .or_insert(text);
    }
    keys
}

named! {
    /// Why a knob is not tried.
    LeftOutReason {
        /// Neither the server nor its machine has the knob.
        NotThere = "not-there",
        /// This version of the server does not have the knob.
        Version = "version",
        /// The knob affects replica sets only.
        NoReplicaSet = "no-replica-set",
        NoSwap = "no-swap",
        OneNumaNode = "one-numa-node",
        /// The machine supports only one of the values.
        OneValue = "one-value",
        /// The machine has a size set instead of this knob's share, and setting the share would lose the size.
        SizeInstead = "size-instead",
        /// The servers have different values.
        SeveralValues = "several-values",
        /// The knob makes acknowledged writes less durable, which is not allowed.
        LessDurable = "less-durable",
    }
}

/// A requested knob that is not tried.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutKnob {
    pub name: String,
    /// Key of the plan.
    pub key: String,
    /// Values that are not tried; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// Why the knob is not tried; if absent, the server does not have it.
    pub reason: Option<LeftOutReason>,
    /// If the server does not have the requested parameter, an existing parameter with a similar name.
    pub near: Option<String>,
}

impl LeftOutKnob {
    /// Name or key of the knob, with the values that are not tried if others are.
    pub fn with_values(&self, name: &str) -> String {
        match &self.values[..] {
            [] => name.to_owned(),
            [value] => format!("{name} ({value})"),
            [before @ .., last] => format!("{name} ({} and {last})", before.join(", ")),
        }
    }
}

/// Options of the search. Values that are determined by the first runs are absent before.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneOptions {
    /// Figure to improve.
    pub goal: TuneGoal,
    /// Response time limits that no setting may exceed.
    #[serde(
        default,
        alias = "p99_limit_us",
        deserialize_with = "responses",
        skip_serializing_if = "Vec::is_empty"
    )]
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
    /// Knobs; those without a known default are included only if the user requested them.
    pub knobs: Option<Vec<Knob>>,
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
    #[serde(default, deserialize_with = "pairs_of_each", skip_serializing_if = "Vec::is_empty")]
    pub confirmation_pairs: Vec<u32>,
}

/// Reads response time limits. Older records have a single number: the p99 limit.
fn responses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Objective>, D::Error> {
    let p99 = |limit_us: f64| Objective::of_percentile(99.0, limit_us);
    Ok(OneOrAll::deserialize(deserializer)?.into_all(p99))
}

/// Reads the number of pairs for each candidate. Older records have a single number for all.
fn pairs_of_each<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    Ok(OneOrAll::deserialize(deserializer)?.into_all(|pairs: u32| pairs))
}

/// Accepts a single value or a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrAll<N, T> {
    One(N),
    All(Vec<T>),
}

impl<N, T> OneOrAll<N, T> {
    fn into_all(self, of_one: impl Fn(N) -> T) -> Vec<T> {
        match self {
            OneOrAll::One(one) => vec![of_one(one)],
            OneOrAll::All(all) => all,
        }
    }
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
        /// Check whether settings are good for all workloads.
        ForAll = "for-all",
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
    /// As a share. If nothing was found, gains of at least this size are ruled out with 95 % confidence: the largest of
    /// the margin, the upper interval ends of all confirmed settings, and the gain that the search does not rule out
    /// for other settings. Otherwise, the gain that the confirmation would most likely have shown, in four of five
    /// cases.
    pub visible_ratio: f64,
    /// Runs before any change that do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_set_aside: Vec<RunsSetAside>,
    /// All comparisons in order.
    pub trials: Vec<TuneTrial>,
    /// Knobs and values that are certainly better than the defaults; empty if there is no gain.
    pub settings: BTreeMap<String, String>,
    /// The same settings as keys of the plan.
    pub keys: BTreeMap<String, String>,
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

    /// Whether gains larger than the margin are ruled out.
    pub fn shows(&self, margin_ratio: f64) -> bool {
        self.was_compared() && self.visible_ratio <= margin_ratio
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Minimal options with one more key.
    fn with(key: &str, value: serde_json::Value) -> TuneOptions {
        let mut options = json!({
            "goal": "rate", "failed_ratio": 0.001, "seed": 1, "margin_ratio": 0.05,
            "budget_s": 600.0,
        });
        options[key] = value;
        serde_json::from_value(options).unwrap()
    }

    #[test]
    fn confirmation_pairs_read_as_number_or_list() {
        let read = |pairs| with("confirmation_pairs", pairs).confirmation_pairs;
        assert_eq!(read(json!(12)), [12]);
        assert_eq!(read(json!([12, 6, 0])), [12, 6, 0]);
        let none = with("run_s", json!(6.0));
        assert!(none.confirmation_pairs.is_empty());
        let written = serde_json::to_value(none).unwrap();
        assert_eq!(written.get("confirmation_pairs"), None);
    }

    #[test]
    fn response_limits_read_as_p99_number_or_list() {
        let read = |key: &str, limits| with(key, limits).responses;
        let p99 = Objective::of_percentile(99.0, 5_000.0);
        assert_eq!(read("p99_limit_us", json!(5_000.0)), std::slice::from_ref(&p99));
        let both = [Objective::of_percentile(99.9, 9_000.0), p99];
        assert_eq!(read("responses", json!(both)), both);
        assert!(read("run_s", json!(6.0)).is_empty());
    }
}
