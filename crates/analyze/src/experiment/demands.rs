//! What an operation needs of each resource over repeated runs, with an error that holds the next run as well.
//!
//! A run counts busy time and operations in the same phase, so that its own error is the resolution of the counters; how
//! much an operation needs differs from run to run beyond that. Runs that were repeated show it: Student's interval over
//! their demands ([`of_repetitions`]). A few runs may agree by chance, so that what each leaves open by itself is the least.
//!
//! A run alone shows the variation inside of it only. Where a resource is the limit its busy time per second is given, and a
//! demand varies as the rate does: `D = U / X`. A rate that was offered and kept says nothing of the demand; there the time
//! that an operation occupies a resource is a part of its response time, so that no more than what this one is unsure of, in
//! seconds, can be wrong with it.

use super::figures::Figures;
use super::queueing::is_sustained;
use crate::estimate::{DEFAULT_CONFIDENCE_RATIO, Quantity, combined};
use crate::laws::demand::Demand;
use crate::uncertainty::mean::of_repetitions;

/// Error of what is not known, as a share: that of a figure without an interval.
const UNKNOWN: f64 = 1.0;

/// The mean demands over runs with the same settings; of resources that the first of them has.
pub(super) fn of_runs(runs: &[&Figures]) -> Vec<Demand> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let known = first.demands.iter();
    known.map(|demand| of_resource(demand, runs)).collect()
}

fn of_resource(first: &Demand, runs: &[&Figures]) -> Demand {
    let all: Vec<(&Figures, &Demand)> = runs
        .iter()
        .filter_map(|run| Some((*run, demand_of(run, &first.name)?)))
        .collect();
    let values: Vec<f64> = all.iter().map(|(_, demand)| demand.demand_s).collect();
    let count = all.len() as f64;
    let demand_s = values.iter().sum::<f64>() / count;
    let repeated = of_repetitions(&values, DEFAULT_CONFIDENCE_RATIO);
    let uncertainty_ratio = match repeated.filter(|_| demand_s > 0.0) {
        Some(between) => {
            let within: Vec<f64> = all.iter().map(|(run, demand)| least(run, demand)).collect();
            let within = combined(&within) / count;
            between.half_width_ratio().max(within)
        }
        None => alone(all[0].0, all[0].1),
    };
    Demand {
        demand_s,
        uncertainty_ratio,
        ..first.clone()
    }
}

fn demand_of<'a>(run: &'a Figures, name: &str) -> Option<&'a Demand> {
    run.demands.iter().find(|demand| demand.name == name)
}

/// What one of several runs leaves open at least: the resolution of its counters, and its rate as far as that is known.
fn least(run: &Figures, demand: &Demand) -> f64 {
    let rate = Some(run.rate_per_s.quantity().uncertainty_ratio);
    let rate = rate.filter(|rate| *rate < UNKNOWN).unwrap_or(0.0);
    combined(&[demand.uncertainty_ratio, rate])
}

/// What a run that was not repeated leaves open; from 1 on it is not known.
fn alone(run: &Figures, demand: &Demand) -> f64 {
    let of_rate = run.rate_per_s.quantity().uncertainty_ratio;
    let is_kept = run
        .offered_rate_per_s
        .is_some_and(|offered| is_sustained(run.rate_per_s.value, offered, run.succeeded));
    let spread = match is_kept {
        true => of_response(run, demand),
        false => of_rate,
    };
    combined(&[demand.uncertainty_ratio, spread])
}

/// The error of the mean response time as a share of a demand that is a part of it.
fn of_response(run: &Figures, demand: &Demand) -> f64 {
    let response: Quantity = run.response_mean_us.quantity();
    match response.uncertainty_ratio < UNKNOWN && demand.demand_s > 0.0 {
        true => response.uncertainty() * 1e-6 / demand.demand_s,
        false => UNKNOWN,
    }
}

#[cfg(test)]
mod tests;
