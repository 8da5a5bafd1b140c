//! Limits that searches apply to runs, their texts, and the percentiles that they need.

use super::runner::ExperimentRunner;
use crate::error::{Error, refuse};
use dyno_analyze::experiment::slo::{complete, need_more};
use dyno_record::experiment::{Figures, Objective};

/// Requested limits.
#[derive(Clone, Debug, Default)]
pub struct ObjectiveRequest {
    /// Limits of response times.
    pub responses: Vec<Objective>,
    /// Largest share of failed operations, 0 to 1; `None` for the search's default, which alone is
    /// not a limit.
    pub failed_ratio: Option<f64>,
}

impl ObjectiveRequest {
    /// Whether no limit was requested.
    pub(super) fn is_empty(&self) -> bool {
        self.responses.is_empty() && self.failed_ratio.is_none()
    }

    /// Refuses impossible limits, and two limits of the same figure.
    pub(super) fn check(&self) -> Result<(), Error> {
        let responses = &self.responses;
        for (place, one) in responses.iter().enumerate() {
            let is_same = |other: &Objective| other.statistic == one.statistic;
            if responses[..place].iter().any(is_same) {
                let text = format!("`{}` has two limits", one.name());
                return refuse(text, "give the smaller one");
            }
        }
        let failed_ratio = self.failed_ratio.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&failed_ratio) {
            let text = format!("`--errors` is `{failed_ratio}`, but must be 0 to 1");
            return refuse(text, "such as `--errors 0.001`");
        }
        Ok(())
    }
}

/// Limits as part of a question.
pub(super) fn in_words(responses: &[Objective], failed_ratio: Option<f64>) -> String {
    let responses =
        responses.iter().map(|one| format!("{} at or below {} ms", one.name(), one.limit_us / 1e3));
    let failed = failed_ratio.map(|ratio| {
        // Rounded: a product of binary fractions has too many digits.
        let percent = (ratio * 1e8).round() / 1e6;
        format!("failed operations at or below {percent} %")
    });
    let limits: Vec<String> = responses.chain(failed).collect();
    limits.join(" and ")
}

/// The figures of a run with all percentiles that have limits.
pub(super) fn completed(
    runner: &ExperimentRunner<'_>,
    responses: &[Objective],
    mut figures: Figures,
    number: usize,
) -> Result<Figures, Error> {
    if need_more(responses, &figures)
        && let Some(samples) = runner.windows_of(&[number])?.get(&0)
    {
        complete(responses, &mut figures, samples);
    }
    Ok(figures)
}
