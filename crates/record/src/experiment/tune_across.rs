//! Tuning for several workloads, and the effect of each workload's settings on the others.

use super::figures::Figure;
use super::tune::{TuneAnswer, TuneOptions};
use dyno_plan::named;
use dyno_plan::request::Keys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Options of the search for one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadOptions {
    pub workload: String,
    /// Options; the knobs have the same values for all workloads, but this workload's defaults.
    pub options: TuneOptions,
}

named! {
    /// Whether the best settings depend on the workload, judged by the settings that were found.
    Dependence {
        /// One workload's settings are as good for each workload as its own settings, within the margin.
        Same = "same",
        /// Each workload's settings are certainly worse than the own settings of some other workload.
        Depends = "depends",
        /// Undecided.
        Undecided = "undecided",
    }
}

/// Answer of a search for several workloads.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneAcrossAnswer {
    /// One search for each workload, in the given order.
    pub searches: Vec<WorkloadSearch>,
    /// Settings found for each workload, in the same order, measured on all workloads. Empty settings if nothing was
    /// found.
    pub winners: Vec<AcrossSettings>,
    /// The settings of all workloads together, without knobs whose values differ; absent if they were found for one.
    pub together: Option<AcrossSettings>,
    /// The best of these settings that is good for all workloads: certainly on no workload worse than before by more
    /// than the margin, and better in the geometric mean. Absent if there are none.
    pub for_all: Option<AcrossSettings>,
    /// Whether the best settings depend on the workload.
    pub dependence: Dependence,
    /// With [`Dependence::Same`], the settings that are as good for each workload as its own.
    pub same: Option<BTreeMap<String, String>>,
    /// Smallest difference between two workloads' settings, as a share, that the least precise comparison shows in four
    /// of five cases.
    pub visible_ratio: f64,
}

/// The search for one of several workloads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadSearch {
    pub workload: String,
    pub options: TuneOptions,
    /// Answer; its comparisons include those with the settings of other workloads.
    pub answer: TuneAnswer,
}

/// Settings measured on several workloads.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AcrossSettings {
    /// Workloads for which the settings were found; several if their searches confirmed the same settings.
    pub found_for: Vec<String>,
    /// Knobs with their values, without unchanged ones.
    pub settings: BTreeMap<String, String>,
    /// The same settings as keys of the plan.
    pub keys: Keys,
    /// Effect on each workload, in the order of the searches; only for workloads with a comparison.
    pub on: Vec<OnWorkload>,
    /// Geometric mean over all workloads of the goal with the settings, divided by the goal before; absent if one is
    /// unknown.
    pub mean_ratio: Option<Figure>,
}

/// Effect of settings on one workload.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnWorkload {
    pub workload: String,
    /// Goal with the settings, divided by the goal before: 1 without an interval if they change nothing, absent if they
    /// did harm.
    pub ratio: Option<Figure>,
    /// Goal with the settings, divided by the goal with this workload's own settings; absent for its own settings, and
    /// if one of the goals is unknown.
    pub beside_own: Option<Figure>,
    /// Pairs of runs in the comparison.
    pub pairs: u32,
    /// Problem with these settings.
    pub problem: Option<String>,
}

impl TuneAcrossAnswer {
    /// Names of the workloads.
    pub fn workloads(&self) -> impl Iterator<Item = &str> + Clone {
        self.searches.iter().map(|search| search.workload.as_str())
    }

    /// Whether no search found anything to change.
    pub fn is_empty(&self) -> bool {
        self.winners.iter().all(|winner| winner.settings.is_empty())
    }
}

impl AcrossSettings {
    /// Effect on a workload, if it was measured.
    pub fn on(&self, workload: &str) -> Option<&OnWorkload> {
        self.on.iter().find(|on| on.workload == workload)
    }
}
