//! Analysis of a single run: figures with their intervals, service demands, bounds from them, laws, and
//! findings.

pub use super::figures::OperationFigures;
use super::figures::{Measured, NothingMeasured, is_open, measured, of_measured, samples, whole};
use super::findings::{conclusion, single_run};
use super::saturation::{self, SHOWN_RATIO, UsedUp};
use super::stations::{knows_server, stations};
use super::sweep::disk_limits_of_runs;
use crate::experiment::outages::{Outage, with_outages};
use crate::laws;
use crate::laws::demand;
use crate::resampling::Resampling;
use crate::timeline::Timeline;
pub use crate::uncertainty::series::NoInterval;
use crate::uncertainty::series::{IntervalSample, Series};
use crate::verdict::Verdict;
use dyno_record::estimate::Quantity;
use dyno_record::experiment::{Demand, DiskLimits, Figures, Finding, PERCENTILES, Statistic};
use dyno_record::model::RunDocument;
use dyno_record::responses::PhaseResponses;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Analysis of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunAnalysis {
    /// Recording windows of the measure phase that the intervals are based on.
    pub windows: u32,
    /// All operations together.
    pub figures: Figures,
    pub operations: BTreeMap<String, OperationFigures>,
    /// Figures without an interval, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_interval: Vec<WithoutInterval>,
    /// Demands of this run's operations for each resource that they wait for. As in `figures`, the uncertainty
    /// is the counters'.
    pub stations: Vec<Demand>,
    /// Limits by the data devices; absent if no disk was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskLimits>,
    /// The resource that saturates first, among the known limits; absent if the server was not watched, as it
    /// may be any other then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<Bottleneck>,
    /// Times without a successful operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Changes over the measured time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// Causes that limited the run, among the watched ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    pub findings: Vec<Finding>,
}

/// A figure without an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WithoutInterval {
    /// The operation; absent for all operations together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// `rate`, `mean` or the name of a percentile.
    pub figure: String,
    pub reason: NoInterval,
    /// Effective number of independent windows.
    pub independent_windows: f64,
    /// Measured time that would probably give it an interval of ±10 %; absent if the windows do not allow an estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_s: Option<f64>,
}

/// The resource that saturates first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bottleneck {
    /// Demand of an operation for this resource.
    pub demand: Demand,
    /// The rate at which it would always be busy with this demand.
    pub bound_per_s: f64,
    /// The measured rate as a share of the bound.
    pub reached_ratio: f64,
}

impl Bottleneck {
    /// Whether the load was large enough to show the bound.
    pub fn is_shown(&self) -> bool {
        self.reached_ratio >= SHOWN_RATIO
    }
}

impl RunAnalysis {
    /// Whether the servers' CPU time is known, without which their limits are unknown.
    pub fn knows_server(&self) -> bool {
        knows_server(&self.figures.demands)
    }

    /// The resources close to saturation.
    pub(super) fn used_up(&self) -> Vec<UsedUp> {
        saturation::of_run(&self.figures, &self.stations)
    }

    /// The analysis with the observations over the run's time. No finding contradicts the verdict.
    pub fn concluded(
        self,
        document: &RunDocument,
        timeline: Timeline,
        verdict: Option<Verdict>,
        outages: Vec<Outage>,
    ) -> RunAnalysis {
        let used_up = self.used_up();
        let verdict = verdict.map(|verdict| conclusion::with_used_up(verdict, &used_up));
        let findings = match &verdict {
            Some(verdict) => conclusion::beside(verdict, self.findings),
            None => self.findings,
        };
        let (findings, verdict) = with_outages(document, &outages, findings, verdict);
        RunAnalysis { outages, timeline: Some(timeline), verdict, findings, ..self }
    }
}

/// Analyses a run. `responses` are the responses of its measure phase. The same `seed` gives the same
/// intervals.
///
/// # Errors
/// [`NothingMeasured`] if no operation succeeded in the measure phase.
pub fn analyze(
    document: &RunDocument,
    responses: &PhaseResponses,
    seed: u64,
) -> Result<RunAnalysis, NothingMeasured> {
    let measured = measured(&responses.all, is_open(document));
    let whole = whole(&responses.all);
    let mut figures = of_measured(document, &measured, &whole, seed)?;
    let Measured { samples: windows, warm_up_windows, .. } = measured;
    let resampling = Resampling::seeded(seed);
    let mut without_interval = reasons(None, &windows, resampling);
    let mut operations = BTreeMap::new();
    for (name, of_one) in &responses.operations {
        // The same part of the phase as for all operations together.
        let windows: Vec<IntervalSample> =
            samples(of_one).into_iter().skip(warm_up_windows).collect();
        let Some(found) = OperationFigures::of(&windows, resampling) else {
            continue;
        };
        without_interval.extend(reasons(Some(name), &windows, resampling));
        operations.insert(name.clone(), found);
    }
    let rate_per_s = whole.value(Statistic::Rate).ok_or(NothingMeasured)?;
    let disk = disk_limits_of_runs(&[&figures], &figures.demands, &[]);
    let stations = stations(&figures.demands, (&figures).into(), disk.as_ref());
    figures.laws.extend(within_bound(&stations, rate_per_s));
    let mut analysis = RunAnalysis {
        windows: u32::try_from(windows.len()).unwrap_or(u32::MAX),
        figures,
        operations,
        without_interval,
        stations,
        disk,
        bottleneck: None,
        outages: Vec::new(),
        timeline: None,
        verdict: None,
        findings: Vec::new(),
    };
    if analysis.knows_server() {
        analysis.bottleneck = bottleneck(&analysis.stations, rate_per_s);
    }
    analysis.findings = single_run::all(document, &analysis);
    Ok(analysis)
}

fn bottleneck(stations: &[Demand], rate_per_s: f64) -> Option<Bottleneck> {
    let demand = demand::bottleneck(stations)?;
    let bound_per_s = demand.saturation_rate_per_s().value;
    Some(Bottleneck {
        demand: demand.clone(),
        bound_per_s,
        reached_ratio: rate_per_s / bound_per_s,
    })
}

/// Busy times longer than the phase mean that the counters do not belong together.
fn within_bound(stations: &[Demand], rate_per_s: f64) -> Option<dyno_record::experiment::LawCheck> {
    let demand = demand::bottleneck(stations)?;
    laws::rate_within_bound(Quantity::exact(rate_per_s), demand.saturation_rate_per_s())
}

/// Measured time that would probably give all these figures an interval, in rounded steps; `None` if it is
/// unknown for one of them.
pub fn longest_needed_s<'a>(missing: impl Iterator<Item = &'a WithoutInterval>) -> Option<f64> {
    let needed: Option<Vec<f64>> = missing.map(|one| one.needed_s).collect();
    let longest_s = needed?.into_iter().reduce(f64::max)?;
    let step_s = if longest_s < 60.0 { 5.0 } else { 60.0 };
    Some((longest_s / step_s).ceil() * step_s)
}

/// Reasons for the figures without an interval.
fn reasons(
    operation: Option<&String>,
    windows: &[IntervalSample],
    resampling: Resampling,
) -> Vec<WithoutInterval> {
    let series = Series::new(windows);
    let percentiles = PERCENTILES
        .iter()
        .map(|(name, percent)| (*name, Statistic::Percentile { percent: *percent }));
    [("rate", Statistic::Rate), ("mean", Statistic::MeanTime)]
        .into_iter()
        .chain(percentiles)
        .filter_map(|(name, statistic)| {
            let shortage = series.shortage(statistic, resampling)?;
            Some(WithoutInterval {
                operation: operation.cloned(),
                figure: name.to_owned(),
                reason: shortage.reason,
                independent_windows: shortage.independent_windows,
                needed_s: shortage.needed_s,
            })
        })
        .collect()
}

#[cfg(test)]
pub(super) mod tests;
