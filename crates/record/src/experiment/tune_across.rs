//! A search for settings for each of several workloads, and what the settings of one do to the others.

use super::figures::Figure;
use super::tune::{TuneAnswer, TuneOptions};
use crate::named::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the option that holds the [`WorkloadOptions`] of all workloads, in the order in which they are searched for.
pub const TUNE_ACROSS: &str = "tune_across";

/// How the search for one of several workloads is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadOptions {
    /// Name of the workload.
    pub workload: String,
    /// Its knobs have the same values as those of the others, and the defaults of this workload.
    pub options: TuneOptions,
}

impl WorkloadOptions {
    /// Those among the options of an experiment; empty if it is no search for several workloads.
    pub fn among(options: &BTreeMap<String, serde_json::Value>) -> Vec<WorkloadOptions> {
        let known = options.get(TUNE_ACROSS).cloned();
        known
            .and_then(|known| serde_json::from_value(known).ok())
            .unwrap_or_default()
    }
}

named! {
    /// Whether the best settings depend on the workload, as far as the settings that were found tell.
    Dependence {
        /// One of them is for each workload as good as what was found for it, within the margin.
        Same = "same",
        /// Each of them is on some workload certainly worse than what was found for that one.
        Depends = "depends",
        /// Neither can be told.
        Undecided = "undecided",
    }
}

/// The answer of a search for each of several workloads.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneAcrossAnswer {
    /// The search for each workload, in the order in which they were given.
    pub searches: Vec<WorkloadSearch>,
    /// What was found for each workload, in that order, on all of them. Where nothing was found the settings are empty.
    pub winners: Vec<AcrossSettings>,
    /// The settings that are good for all workloads, by pairs of runs that were made to confirm it: certainly not worse than
    /// those before by more than the margin on any workload, and certainly better in the geometric mean. Absent if none are.
    pub for_all: Option<AcrossSettings>,
    /// Settings that were compared for that, and did not prove it.
    pub not_for_all: Vec<AcrossSettings>,
    /// Whether the best settings depend on the workload.
    pub dependence: Dependence,
    /// With [`Dependence::Same`] the settings that are as good for each workload as its own.
    pub same: Option<BTreeMap<String, String>>,
    /// Smallest difference between the settings of two workloads that the comparisons show in four of five cases, as a share,
    /// where they show least.
    pub visible_ratio: f64,
}

/// The search for one of several workloads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadSearch {
    /// Name of the workload.
    pub workload: String,
    /// How the search was done.
    pub options: TuneOptions,
    /// What it found; its comparisons also have those of what was found for other workloads.
    pub answer: TuneAnswer,
}

/// Settings on several workloads.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcrossSettings {
    /// The workloads for which they were found; of settings that several searches have proven, all of these.
    pub found_for: Vec<String>,
    /// Knobs and their values, without those that stay as they were.
    pub settings: BTreeMap<String, String>,
    /// The same as keys of the plan.
    pub keys: BTreeMap<String, String>,
    /// What they do to each workload, in the order of the searches; those of which a comparison was not made are missing.
    pub on: Vec<OnWorkload>,
    /// Geometric mean over all workloads of the goal with them, divided by that before; absent if it is not known of one.
    pub mean_ratio: Option<Figure>,
}

/// What settings do to one workload.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnWorkload {
    /// Name of the workload.
    pub workload: String,
    /// The goal with them, divided by that before: 1 without an interval where they change nothing, absent if they did harm.
    pub ratio: Option<Figure>,
    /// The goal with them, divided by that with the settings that were found for this workload; absent for these themselves, and
    /// where one of both is not known.
    pub beside_own: Option<Figure>,
    /// Pairs of runs that tell it.
    pub pairs: u32,
    /// What went wrong.
    pub problem: Option<String>,
}

impl TuneAcrossAnswer {
    /// Names of the workloads.
    pub fn workloads(&self) -> impl Iterator<Item = &str> + Clone {
        let searches = self.searches.iter();
        searches.map(|search| search.workload.as_str())
    }

    /// Whether the search for every workload found nothing to change.
    pub fn is_empty(&self) -> bool {
        self.winners.iter().all(|winner| winner.settings.is_empty())
    }
}

impl AcrossSettings {
    /// What they do to a workload, if that was measured.
    pub fn on(&self, workload: &str) -> Option<&OnWorkload> {
        self.on.iter().find(|on| on.workload == workload)
    }
}
