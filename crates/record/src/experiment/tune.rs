//! A search for the settings that make a server better at its work: what was asked for, every comparison, and the answer.

use super::comparison::AbAnswer;
use super::figures::Figure;
use super::search::Objective;
use crate::named::named;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// Name of the option that holds the [`TuneOptions`].
pub const TUNE: &str = "tune";

named! {
    /// What is to become better.
    TuneGoal {
        /// More operations per second.
        Rate = "rate",
        /// A shorter 99th percentile of the response time.
        P99 = "p99",
        /// Less CPU time of the servers per operation.
        Cpu = "cpu",
    }
}

impl TuneGoal {
    /// Whether more of it is better.
    pub fn larger_is_better(self) -> bool {
        self == TuneGoal::Rate
    }
}

named! {
    /// How a knob is set.
    KnobReach {
        /// By a command to a server that runs.
        RunTime = "run-time",
        /// By a start of the server.
        Restart = "restart",
        /// By the kernel of the machine of the server.
        Host = "host",
        /// By what clients do.
        Client = "client",
    }
}

/// A key of the plan with the values that are tried.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knob {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// The key of the plan that it sets.
    pub key: String,
    /// The value of the key, with `{}` where the value of the knob stands; the value alone when absent.
    pub text: Option<String>,
    /// The values, in their order if they have one.
    pub values: Vec<String>,
    /// Number of the value that it has unless it is set, from 0.
    pub default: usize,
    /// Whether the values have an order.
    pub ordered: bool,
    /// How it is set.
    pub reach: KnobReach,
    /// Whether another value needs another start of the server, of a setting of the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_start: bool,
    /// The files of the kernel that hold it, of a setting of the machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Versions of the server that have it, such as `4.4-6.0`; all when absent.
    pub versions: Option<String>,
    /// Values that make acknowledged writes less durable, or may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub less_durable: Vec<String>,
    /// What it can break.
    pub risk: Option<String>,
    /// Where it is described.
    pub documentation: Option<String>,
}

impl Knob {
    /// The value that it has unless it is set.
    pub fn default_value(&self) -> &str {
        self.values.get(self.default).map_or("", String::as_str)
    }

    /// The value of its key for one of its values.
    pub fn set(&self, value: &str) -> String {
        match &self.text {
            Some(text) => text.replace("{}", value),
            None => value.to_owned(),
        }
    }
}

/// Key with the options of the connection string, which are joined in their own way.
const CONNECTION_OPTIONS: &str = "server.connection_options";

/// The keys of the plan that knobs set to these values. Texts of several knobs for one key are joined, options of the connection
/// string by `&`, others by commas.
pub fn keys_of<'a>(
    settings: impl Iterator<Item = (&'a Knob, &'a str)>,
) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::<String, String>::new();
    for (knob, value) in settings {
        let text = knob.set(value);
        let sign = if knob.key == CONNECTION_OPTIONS {
            '&'
        } else {
            ','
        };
        keys.entry(knob.key.clone())
            .and_modify(|all| *all = format!("{all}{sign}{text}"))
            .or_insert(text);
    }
    keys
}

named! {
    /// Why a knob is not tried.
    LeftOutReason {
        /// Neither the server nor its machine has it.
        NotThere = "not-there",
        /// This version of the server does not have it.
        Version = "version",
        /// It has an effect in replica sets only.
        NoReplicaSet = "no-replica-set",
        /// The machine has no swap.
        NoSwap = "no-swap",
        /// The machine has one NUMA node.
        OneNumaNode = "one-numa-node",
        /// The machine has one of its values only.
        OneValue = "one-value",
        /// The machine has a size in place of the share that it sets, which would be lost.
        SizeInstead = "size-instead",
        /// The server has different values where the knob has one.
        SeveralValues = "several-values",
        /// It makes acknowledged writes less durable than they are on the server, which is not allowed.
        LessDurable = "less-durable",
    }
}

/// A knob that was asked for and not tried.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutKnob {
    /// Its name.
    pub name: String,
    /// The key of the plan that it would have set.
    pub key: String,
    /// The values that are not tried; none is when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// Why it is not tried; the server does not have it when absent.
    pub reason: Option<LeftOutReason>,
    /// A parameter that the server has and whose name is nearly the same, if it does not have the one asked for.
    pub near: Option<String>,
}

impl LeftOutKnob {
    /// Its name or its key, with the values that are not tried if others are.
    pub fn with_values(&self, name: &str) -> String {
        match &self.values[..] {
            [] => name.to_owned(),
            [value] => format!("{name} ({value})"),
            [before @ .., last] => format!("{name} ({} and {last})", before.join(", ")),
        }
    }
}

/// How the search is done. What is not known before the first runs is absent until they are done.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneOptions {
    /// What is to become better.
    pub goal: TuneGoal,
    /// Limits of response times that no setting may exceed.
    #[serde(
        default,
        alias = "p99_limit_us",
        deserialize_with = "responses",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub responses: Vec<Objective>,
    /// Share of the operations that may fail with any setting.
    pub failed_ratio: f64,
    /// Start of all that is drawn at random.
    pub seed: u64,
    /// Gains below are of no interest, as a share.
    pub margin_ratio: f64,
    /// A run from which the hypervisor took more than this share of the CPU time does not count; all count when absent.
    pub max_steal_ratio: Option<f64>,
    /// Time for all runs.
    pub budget_s: f64,
    /// Whether settings were tried with which acknowledged writes may be lost.
    #[serde(default)]
    pub allows_less_durable: bool,
    /// The knobs; those without a known default are among the wanted ones only.
    pub knobs: Option<Vec<Knob>>,
    /// Knobs that were not tried: the server or its machine does not have them, they have no effect there, or they are not allowed.
    #[serde(default)]
    pub left_out: Vec<LeftOutKnob>,
    /// Time that a run takes with all that belongs to it.
    pub run_s: Option<f64>,
    /// Time that the start of the servers and the load of the documents take besides.
    pub start_s: Option<f64>,
    /// Whether the servers stall without any change, so that no run is ended because they do.
    pub may_stall: Option<bool>,
    /// Comparisons of the search, at most.
    pub trials: Option<u32>,
    /// Comparisons after which the time of the search was over, if it was before all were made.
    pub ended_after: Option<u32>,
    /// Pairs of runs of a comparison that an answer rests on, at most.
    pub max_pairs: Option<u32>,
    /// The same for each candidate in order, for its confirmation and the changes that are taken back, by the time that was left when
    /// it was begun; 0 for the one that was not begun any more. A candidate beyond the last number has that one.
    #[serde(
        default,
        deserialize_with = "pairs_of_each",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub confirmation_pairs: Vec<u32>,
}

/// Reads limits of response times. A number is that of the p99, which was the only one at first.
fn responses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Objective>, D::Error> {
    let p99 = |limit_us: f64| Objective::of_percentile(99.0, limit_us);
    Ok(OneOrAll::deserialize(deserializer)?.into_all(p99))
}

/// Reads the pairs of each candidate. One number is that of all, which was the only one at first.
fn pairs_of_each<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    Ok(OneOrAll::deserialize(deserializer)?.into_all(|pairs: u32| pairs))
}

/// What was a number at first, and is a list now.
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
    /// What a comparison was made for.
    TunePurpose {
        /// To learn what settings do.
        Search = "search",
        /// To know whether the settings that were found are better than those before.
        Confirm = "confirm",
        /// To know whether one of the changes counts: it is taken back.
        Ablate = "ablate",
        /// To know what the settings that were found for another workload do to this one.
        Across = "across",
        /// To know whether settings are good for all workloads.
        ForAll = "for-all",
    }
}

/// Runs that do not count, and were made again.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunsSetAside {
    /// By their places in the experiment, from 0: those of a pair that were done until then, or one before any change.
    pub runs: Vec<usize>,
    /// Share of the CPU time that the hypervisor took during the last of them. Absent where that is not why: one run did
    /// harm, which may be chance, or did not tell the goal.
    pub stolen_ratio: Option<f64>,
}

/// Two settings, measured one beside the other.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneTrial {
    /// What for.
    pub purpose: TunePurpose,
    /// Name of the knob that is taken back, if one is.
    pub knob: Option<String>,
    /// What was tried: knobs and their values, without those at their defaults.
    pub settings: BTreeMap<String, String>,
    /// What it was measured beside, likewise.
    pub beside: BTreeMap<String, String>,
    /// Runs by their places in the experiment, from 0: in each pair that of what was tried, then the other one. A pair that was
    /// not finished has one.
    pub runs: Vec<Vec<usize>>,
    /// Pairs that were set aside; they are not among those runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<RunsSetAside>,
    /// The goal of what was tried, divided by that of the other one: absent if one of them did harm.
    pub ratio: Option<Figure>,
    /// What went wrong with what was tried, or with what it was measured beside.
    pub problem: Option<String>,
    /// Whether that was what it was measured beside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_beside: bool,
    /// Whether the server refused to set it, which is no harm.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_refused: bool,
    /// Whether it was given up early, as certainly worse.
    #[serde(default)]
    pub is_dropped: bool,
    /// The best settings so far by what was known then, divided by the defaults.
    pub best_ratio: Option<Figure>,
}

/// What a change is worth: the goal without it, divided by the goal with it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ablation {
    /// Name of the knob.
    pub knob: String,
    /// The value that was taken back.
    pub value: String,
    /// Absent if it went wrong without the change.
    pub ratio: Option<Figure>,
    /// What went wrong without it.
    pub problem: Option<String>,
    /// Whether the change is among the settings of the answer.
    pub stays: bool,
    /// Whether it stays although no effect of its own is proven: without all such changes no gain was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_only_together: bool,
}

/// What the search has learned of a knob: the goal with each value, the others as in the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnobEffect {
    /// Name of the knob.
    pub knob: String,
    /// For each of its values the goal divided by that of the defaults, as the model has it, with its 95 % interval.
    pub ratios: Vec<Figure>,
}

/// The answer.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneAnswer {
    /// The goal before any change, over the first runs: operations per second, or microseconds.
    pub baseline: Figure,
    /// Standard deviation of a run, as a share.
    pub noise_ratio: f64,
    /// As a share. If nothing was found, a gain of this or more is ruled out with 95 % confidence: the largest of the margin, of the
    /// upper ends of the intervals of all settings that were confirmed, and of what the search leaves possible of others. Else the
    /// gain that the pairs of the confirmation would most likely have shown, in four of five cases.
    pub visible_ratio: f64,
    /// Runs before any change that were set aside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_set_aside: Vec<RunsSetAside>,
    /// All comparisons in their order.
    pub trials: Vec<TuneTrial>,
    /// Knobs and their values that are certainly better than the defaults, and no others; empty if nothing is to be gained.
    pub settings: BTreeMap<String, String>,
    /// The same as keys of the plan.
    pub keys: BTreeMap<String, String>,
    /// The goal with them, divided by that of the defaults, as it was confirmed; of the best candidate if that is not certainly
    /// better.
    pub ratio: Option<Figure>,
    /// What each change of the candidate is worth.
    pub ablation: Vec<Ablation>,
    /// The candidate that was not confirmed, if there was one.
    pub candidate: Option<BTreeMap<String, String>>,
    /// What the search has learned of each knob.
    pub effects: Vec<KnobEffect>,
    /// The runs of the confirmation compared as `dyno ab` does, defaults as A: what explains the gain.
    pub comparison: Option<Box<AbAnswer>>,
}

impl TuneOptions {
    /// Those among the options of an experiment; `None` if it is no search for settings.
    pub fn among(options: &BTreeMap<String, serde_json::Value>) -> Option<TuneOptions> {
        serde_json::from_value(options.get(TUNE)?.clone()).ok()
    }
}

impl TuneAnswer {
    /// The comparisons with the settings before that [`ratio`](Self::ratio) is of: the last one of the settings of the answer, or
    /// all of the candidate that was not confirmed.
    pub fn confirmations(&self) -> impl Iterator<Item = &TuneTrial> {
        let settings = self.candidate.as_ref().unwrap_or(&self.settings);
        let all = self.trials.iter().rev();
        let of_them = all.filter(move |trial| {
            let is_confirmation = trial.purpose == TunePurpose::Confirm;
            is_confirmation && trial.ratio.is_some() && trial.settings == *settings
        });
        let most = match self.candidate {
            Some(_) => self.trials.len(),
            None => 1,
        };
        of_them.take(most)
    }

    /// Whether there is nothing to gain but what is of no interest: a gain larger than this share is ruled out.
    pub fn shows(&self, margin_ratio: f64) -> bool {
        self.was_compared() && self.visible_ratio <= margin_ratio
    }

    /// Whether settings were compared with those before: the candidate, if there is one. One that did harm tells of no gain.
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
    /// The settings that it says something about: what was tried, or what that was measured beside if it failed.
    pub fn subject(&self) -> &BTreeMap<String, String> {
        match self.is_beside {
            true => &self.beside,
            false => &self.settings,
        }
    }

    /// The pairs whose runs are both done: of what was tried, and of what that was measured beside.
    pub fn pairs(&self) -> impl Iterator<Item = [usize; 2]> {
        let pairs = self.runs.iter();
        pairs.filter_map(|pair| Some([*pair.first()?, *pair.get(1)?]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Options with one more.
    fn with(key: &str, value: serde_json::Value) -> TuneOptions {
        let mut options = json!({
            "goal": "rate", "failed_ratio": 0.001, "seed": 1, "margin_ratio": 0.05,
            "budget_s": 600.0,
        });
        options[key] = value;
        serde_json::from_value(options).unwrap()
    }

    #[test]
    fn the_pairs_that_were_those_of_all_candidates_are_read_as_those_of_each() {
        let read = |pairs| with("confirmation_pairs", pairs).confirmation_pairs;
        assert_eq!(read(json!(12)), [12]);
        assert_eq!(read(json!([12, 6, 0])), [12, 6, 0]);
        let none = with("run_s", json!(6.0));
        assert!(none.confirmation_pairs.is_empty());
        let written = serde_json::to_value(none).unwrap();
        assert_eq!(written.get("confirmation_pairs"), None);
    }

    #[test]
    fn the_limit_of_the_p99_that_was_the_only_one_is_read_as_one_of_several() {
        let read = |key: &str, limits| with(key, limits).responses;
        let p99 = Objective::of_percentile(99.0, 5_000.0);
        assert_eq!(
            read("p99_limit_us", json!(5_000.0)),
            std::slice::from_ref(&p99)
        );
        let both = [Objective::of_percentile(99.9, 9_000.0), p99];
        assert_eq!(read("responses", json!(both)), both);
        assert!(read("run_s", json!(6.0)).is_empty());
    }
}
