//! Recorded checks of the operational laws.

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

/// Agreement of measurement and law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LawVerdict {
    /// The difference is within the uncertainty or the law's tolerance.
    Holds,
    /// The difference exceeds both.
    Broken,
    /// The uncertainty is above a third of the value, so agreement would be meaningless.
    TooUncertain,
}

/// A measured value and the value that a law predicts, in the unit of the [`Law`].
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LawCheck {
    pub law: Law,
    /// Resource or part of the system; absent for the whole system.
    pub subject: Option<String>,
    pub measured: f64,
    /// Value that the law gives from the other measurements.
    pub predicted: f64,
    /// `measured / predicted − 1`.
    pub difference_ratio: f64,
    /// Half-width of the confidence interval of `difference_ratio`, from the errors of both sides.
    pub uncertainty_ratio: f64,
    pub verdict: LawVerdict,
}
