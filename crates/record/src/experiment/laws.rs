//! Checks of the operational laws, as they are recorded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A law, or a bound that follows from the laws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// U = X · D: busy servers are the rate times the service demand. In busy servers.
    Utilization,
    /// N = X · R: operations in flight are the rate times the time each takes. In operations.
    Little,
    /// R = N / X − Z, in a closed loop of N clients that wait for Z before each send; R is from send to answer. In seconds.
    ResponseTime,
    /// Xₖ = Vₖ · X: a part of the system works at the rate of the whole times its visits. Per second.
    ForcedFlow,
    /// X(N) ≤ min(N / (D + Z), 1 / D_max). Per second.
    RateBound,
    /// R(N) ≥ max(D, N · D_max − Z). In seconds.
    ResponseBound,
}

/// How measurement and law agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LawVerdict {
    /// The difference is within the uncertainty or the tolerance of the law.
    Holds,
    /// The difference is beyond both.
    Broken,
    /// The uncertainty is above a third of the value, so that agreement would mean nothing.
    TooUncertain,
}

/// A measured value beside the one that a law predicts, in the unit that [`Law`] says.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LawCheck {
    /// The law.
    pub law: Law,
    /// Resource or part of the system that it was applied to; absent for the system as a whole.
    pub subject: Option<String>,
    /// What was measured.
    pub measured: f64,
    /// What the law makes of the other measurements.
    pub predicted: f64,
    /// `measured / predicted − 1`.
    pub difference_ratio: f64,
    /// Half-width of the confidence interval of `difference_ratio`, from the errors of both sides.
    pub uncertainty_ratio: f64,
    /// Whether the two agree.
    pub verdict: LawVerdict,
}
