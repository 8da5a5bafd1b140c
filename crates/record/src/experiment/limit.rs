//! Limits of a comparison: how much worse B may be in a figure, and whether it is.

use super::comparison::Statistic;
use super::costs::CostKind;
use super::figures::Figure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A figure of a comparison by its name: `rate`, `mean`, `p99` or a cost such as `server-cpu`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum ComparedFigure {
    /// The rate, the mean response time or a percentile.
    Statistic(Statistic),
    Cost(CostKind),
}

/// Statistics that are compared; the p99.9 only for a limit.
const STATISTICS: [Statistic; 6] = [
    Statistic::Rate,
    Statistic::MeanTime,
    Statistic::Percentile { percent: 50.0 },
    Statistic::Percentile { percent: 95.0 },
    Statistic::Percentile { percent: 99.0 },
    Statistic::Percentile { percent: 99.9 },
];

/// Units at the ends of the names of costs.
const UNITS: [&str; 5] = ["_us", "_count", "_bytes", "_ratio", "_joules"];

impl ComparedFigure {
    /// All figures.
    pub fn all() -> impl Iterator<Item = ComparedFigure> {
        let statistics = STATISTICS.into_iter().map(ComparedFigure::Statistic);
        statistics.chain(CostKind::ALL.into_iter().map(ComparedFigure::Cost))
    }

    /// Whether a larger value is better.
    pub fn larger_is_better(self) -> bool {
        self == ComparedFigure::Statistic(Statistic::Rate)
    }
}

impl fmt::Display for ComparedFigure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ComparedFigure::Statistic(Statistic::Percentile { percent }) => {
                write!(formatter, "p{percent}")
            }
            ComparedFigure::Statistic(Statistic::Rate) => formatter.write_str("rate"),
            ComparedFigure::Statistic(Statistic::MeanTime) => formatter.write_str("mean"),
            ComparedFigure::Cost(kind) => {
                let name = kind.as_str();
                let bare = UNITS.iter().find_map(|unit| name.strip_suffix(unit));
                formatter.write_str(&bare.unwrap_or(name).replace('_', "-"))
            }
        }
    }
}

impl From<ComparedFigure> for String {
    fn from(figure: ComparedFigure) -> String {
        figure.to_string()
    }
}

impl FromStr for ComparedFigure {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::all().find(|one| one.to_string() == name).ok_or_else(|| {
            let names: Vec<String> = Self::all().map(|one| one.to_string()).collect();
            format!("`{name}` is not a figure of a comparison; they are {}", names.join(", "))
        })
    }
}

impl TryFrom<String> for ComparedFigure {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

/// How much worse B may be in a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    pub figure: ComparedFigure,
    /// Largest accepted change for the worse, as a share of the value of A.
    pub margin_ratio: f64,
}

impl fmt::Display for Limit {
    /// `p99=10%`, without digits from binary fractions.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = (self.margin_ratio * 1e8).round() / 1e6;
        write!(formatter, "{}={percent}%", self.figure)
    }
}

/// Whether a limit is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// B is certainly not worse by more than the margin.
    Kept,
    /// B is certainly worse by more than the margin.
    Exceeded,
    /// The data do not show either.
    Undecided,
}

/// A limit with its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    #[serde(flatten)]
    pub limit: Limit,
    /// B divided by A, with its 95 % interval; absent if the figure was not compared.
    pub ratio: Option<Figure>,
    pub outcome: Outcome,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn figures_have_distinct_names_that_are_parsed_back() {
        let names: BTreeSet<String> = ComparedFigure::all().map(|one| one.to_string()).collect();
        assert_eq!(names.len(), ComparedFigure::all().count());
        for figure in ComparedFigure::all() {
            assert_eq!(figure.to_string().parse(), Ok(figure));
        }
        for name in ["rate", "mean", "p99", "p99.9", "server-cpu", "space-amplification"] {
            assert!(names.contains(name), "{names:?}");
        }
        assert!("p98".parse::<ComparedFigure>().unwrap_err().contains("p99"));
    }

    #[test]
    fn limit_is_written_as_in_the_option() {
        let limit = Limit { figure: "p99".parse().unwrap(), margin_ratio: 0.07 };
        assert_eq!(limit.to_string(), "p99=7%");
        let json = serde_json::to_value(limit).unwrap();
        assert_eq!(json["figure"], "p99");
        assert_eq!(serde_json::from_value::<Limit>(json).unwrap(), limit);
    }
}
