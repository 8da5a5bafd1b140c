//! Service demands over repeated runs, with an error that covers the next run as well.
//!
//! A run counts busy time and operations in the same phase, so its own error is the resolution of the counters;
//! demands vary from run to run beyond that. Repeated runs show this variation: Student's interval over their
//! demands. A few runs may agree by chance, so each run's own uncertainty is the lower limit.
//!
//! A single run shows only the variation within it. If a resource is the limit, its busy time per second is
//! fixed, and a demand varies with the rate: `D = U / X`. An offered rate that was achieved says nothing about
//! the demand; then the time that an operation occupies a resource is a part of its response time, so the
//! demand's error is at most the response time's uncertainty in seconds.

use super::disks::is_one_server;
use super::figures::resource_name;
use super::machines::is_of_kind;
use super::queueing::is_sustained;
use crate::estimate::{Spread, combined};
use crate::robust::mean;
use crate::uncertainty::mean::of_repetitions;
use crate::uncertainty::runs::with_pooled;
use dyno_record::estimate::Quantity;
use dyno_record::experiment::{Demand, DemandRatio, Figure, Figures};
use dyno_record::model::ResourceKind;

/// Error of an unknown value, as a share: the error of a figure without an interval.
const UNKNOWN: f64 = 1.0;

/// Demands of candidates relative to baselines, for pairs of runs: the geometric mean over the pairs with
/// Student's interval of its logarithm, never narrower than the runs' own uncertainty. Excluded are
/// whole-machine figures, which include other processes, resources that one side does not need, and the busy
/// time of disks that serve several requests at once: if they always have a request it is the inverse of the
/// rate, and would explain any difference.
pub(super) fn ratios(pairs: &[[&Figures; 2]]) -> Vec<DemandRatio> {
    let whole = resource_name(ResourceKind::HostCpu);
    let known = pairs.first().map_or(&[][..], |[first, _]| &first.demands);
    let of_processes = resource_name(ResourceKind::ServerCpu);
    let knows_processes = known.iter().any(|demand| demand.name == of_processes);
    // For a remote server without process data, the whole machine is all there is.
    let is_whole = |name: &str| {
        name == whole || knows_processes && is_of_kind(name, ResourceKind::ServerHostCpu)
    };
    let disk = resource_name(ResourceKind::Disk);
    let is_demand = pairs.iter().flatten().all(|run| is_one_server(&run.disks));
    let known = known.iter().filter(|demand| !is_whole(&demand.name));
    known
        .filter(|demand| demand.name != disk || is_demand)
        .filter_map(|demand| ratio(&demand.name, pairs))
        .collect()
}

fn ratio(name: &str, pairs: &[[&Figures; 2]]) -> Option<DemandRatio> {
    let of_pair = |pair: &[&Figures; 2]| -> Option<[Demand; 2]> {
        let [one, other] = pair.map(|run| demand_of(run, name).cloned());
        let both = [one?, other?];
        both.iter().all(|demand| demand.demand_s > 0.0).then_some(both)
    };
    let all: Vec<_> = pairs.iter().filter_map(|pair| Some((pair, of_pair(pair)?))).collect();
    let count = all.len() as f64;
    let mean_log = |side: usize| {
        let logs = all.iter().map(|(_, both)| both[side].demand_s.ln());
        logs.sum::<f64>() / count
    };
    let differences: Vec<f64> =
        all.iter().map(|(_, [one, other])| (other.demand_s / one.demand_s).ln()).collect();
    let between = of_repetitions(&differences);
    let own = match between {
        Some(_) => least,
        None => alone,
    };
    let errors: Vec<f64> = all
        .iter()
        .flat_map(|(pair, both)| [own(pair[0], &both[0]), own(pair[1], &both[1])])
        .collect();
    let within = combined(&errors) / count;
    let width = between.map_or(within, |found| within.max(found.high - found.value));
    let (_, [_, last]) = all.last()?;
    let value = (mean_log(1) - mean_log(0)).exp();
    let is_known = width < UNKNOWN || between.is_some();
    Some(DemandRatio {
        name: name.to_owned(),
        servers: last.servers,
        baseline_s: mean_log(0).exp(),
        candidate_s: mean_log(1).exp(),
        ratio: Figure {
            value,
            low: is_known.then(|| value / width.exp()),
            high: is_known.then(|| value * width.exp()),
        },
    })
}

/// The mean demands over runs with the same settings, for the resources of the first run.
pub(super) fn of_runs(runs: &[&Figures]) -> Vec<Demand> {
    of_levels(&[runs.to_vec()]).remove(0)
}

/// The mean demands of each level of a sweep. All levels together give the variation from run to run
/// ([`with_pooled`]).
pub(super) fn of_levels(levels: &[Vec<&Figures>]) -> Vec<Vec<Demand>> {
    let resources =
        |runs: &Vec<&Figures>| runs.first().map_or(Vec::new(), |run| run.demands.clone());
    let of_level = |(place, runs): (usize, &Vec<&Figures>)| {
        let of_one = |demand: Demand| {
            let own = levels.iter().map(|runs| spread(&demand.name, runs));
            let run_to_run = with_pooled(&own.collect::<Vec<_>>())[place];
            of_resource(demand, runs, run_to_run)
        };
        resources(runs).into_iter().map(of_one).collect()
    };
    levels.iter().enumerate().map(of_level).collect()
}

/// Relative variation of a demand from run to run; `None` unless there are several runs.
fn spread(name: &str, runs: &[&Figures]) -> Option<Spread> {
    let found = runs.iter().filter_map(|run| demand_of(run, name));
    let values: Vec<f64> = found.map(|demand| demand.demand_s).collect();
    let mean = mean(&values);
    let own = Spread::of(&values).filter(|_| mean > 0.0)?;
    Some(Spread { deviation: own.deviation / mean, ..own })
}

fn of_resource(first: Demand, runs: &[&Figures], run_to_run: Option<Spread>) -> Demand {
    let all: Vec<(&Figures, &Demand)> =
        runs.iter().filter_map(|run| Some((*run, demand_of(run, &first.name)?))).collect();
    let demand_s = all.iter().map(|(_, demand)| demand.demand_s).sum::<f64>() / all.len() as f64;
    let uncertainty_ratio = match run_to_run {
        Some(run_to_run) => {
            let between = run_to_run.of_mean(all.len());
            let within: Vec<f64> = all.iter().map(|(run, demand)| least(run, demand)).collect();
            let within = combined(&within) / all.len() as f64;
            between.half_width().max(within)
        }
        None => alone(all[0].0, all[0].1),
    };
    Demand { demand_s, uncertainty_ratio, ..first }
}

fn demand_of<'a>(run: &'a Figures, name: &str) -> Option<&'a Demand> {
    run.demands.iter().find(|demand| demand.name == name)
}

/// Minimum uncertainty of one of several runs: the resolution of its counters and the known part of its rate's
/// uncertainty.
fn least(run: &Figures, demand: &Demand) -> f64 {
    let rate = Some(run.rate_per_s.quantity().uncertainty_ratio);
    let rate = rate.filter(|rate| *rate < UNKNOWN).unwrap_or(0.0);
    combined(&[demand.uncertainty_ratio, rate])
}

/// Uncertainty of a run without repetitions; unknown from 1 on.
fn alone(run: &Figures, demand: &Demand) -> f64 {
    let of_rate = run.rate_per_s.quantity().uncertainty_ratio;
    let is_kept = run
        .offered_rate_per_s
        .is_some_and(|offered| is_sustained(run.rate_per_s.value, offered, run.succeeded));
    let spread = if is_kept { of_response(run, demand) } else { of_rate };
    combined(&[demand.uncertainty_ratio, spread])
}

/// The error of the mean response time as a share of a demand within it.
fn of_response(run: &Figures, demand: &Demand) -> f64 {
    let response: Quantity = run.response_mean_us.quantity();
    if response.uncertainty_ratio < UNKNOWN && demand.demand_s > 0.0 {
        response.uncertainty() * 1e-6 / demand.demand_s
    } else {
        UNKNOWN
    }
}

#[cfg(test)]
mod tests;
