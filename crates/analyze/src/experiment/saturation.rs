//! Resources close to saturation, including use by other processes. Findings, opportunities and the verdict's
//! headline all use this judgement.

use super::figures::resource_name;
use super::machines::is_of_kind;
use dyno_record::experiment::{Demand, Figures, Level};
use dyno_record::model::ResourceKind;

/// Utilization, or share of its bound, from which a resource is close to saturation.
pub(super) const NEAR_RATIO: f64 = 0.7;

/// Share of its bound from which a run shows the bound. At a low rate an operation needs more CPU time than at a high one,
/// because wake-ups and background work are shared by few operations: extrapolated further, the bound may be too low by a
/// factor of two and more.
pub(super) const SHOWN_RATIO: f64 = 0.5;

/// A resource close to saturation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UsedUp {
    pub(super) name: String,
    /// Used share of its capacity.
    pub(super) busy_ratio: f64,
}

/// Resources in use during a measure phase.
struct Used<'a> {
    /// Name, share, and the number of servers that the share refers to.
    resources: Vec<(&'a str, f64, f64)>,
    /// Whether the client polls the clock until an operation is due: other work takes precedence over that CPU
    /// time.
    spins: bool,
}

/// The resources of a run close to saturation: CPUs by their busy times, a disk by its known limit.
pub(super) fn of_run(figures: &Figures, stations: &[Demand]) -> Vec<UsedUp> {
    let resources = figures.resources.iter().map(|resource| {
        let servers = resource.quota.unwrap_or(f64::from(resource.servers));
        (resource.name.as_str(), resource.busy_ratio, servers)
    });
    let is_paced = figures.offered_rate_per_s.is_some() || figures.think_mean_us.is_some();
    let used =
        Used { resources: resources.collect(), spins: is_paced && !figures.is_generator_bound() };
    used.up(figures.rate_per_s.value, stations)
}

/// The resources close to saturation at a level of a sweep.
pub(super) fn of_level(level: &Level, stations: &[Demand]) -> Vec<UsedUp> {
    let resources = level.demands.iter().filter_map(|demand| {
        let busy_ratio = level.busy_ratio.get(&demand.name)?;
        Some((demand.name.as_str(), *busy_ratio, demand.usable()))
    });
    let is_paced = level.offered_rate_per_s.is_some() || level.think_mean_us.is_some();
    let used = Used { resources: resources.collect(), spins: is_paced && !level.generator_bound };
    used.up(level.rate_per_s.value, stations)
}

impl Used<'_> {
    fn up(&self, rate_per_s: f64, stations: &[Demand]) -> Vec<UsedUp> {
        let [disk, client, machine] =
            [ResourceKind::Disk, ResourceKind::ClientCpu, ResourceKind::HostCpu].map(resource_name);
        let spinning = self.resources.iter().find(|(name, _, _)| *name == client && self.spins);
        let spinning = spinning.map_or(0.0, |(_, busy_ratio, servers)| busy_ratio * servers);
        let of_cpus = self.resources.iter().filter_map(|(name, busy_ratio, servers)| {
            let used_ratio = match *name {
                // Busy time is not a limit for a disk that serves several requests at once.
                name if name == disk => return None,
                name if name == client && self.spins => return None,
                name if name == machine => busy_ratio - spinning / servers,
                _ => *busy_ratio,
            };
            Some(((*name).to_owned(), used_ratio, *busy_ratio))
        });
        let limited = stations.iter().filter(|demand| demand.name == disk);
        let limited = limited.map(|demand| {
            let busy_ratio = rate_per_s * demand.per_server_s();
            (demand.name.clone(), busy_ratio, busy_ratio)
        });
        of_cpus
            .chain(limited)
            .filter(|(_, used_ratio, _)| *used_ratio >= NEAR_RATIO)
            .map(|(name, _, busy_ratio)| UsedUp { name, busy_ratio: busy_ratio.min(1.0) })
            .collect()
    }
}

/// Whether it is the CPUs of a whole machine, which others also use.
pub(super) fn is_of_machine(used: &UsedUp) -> bool {
    let kinds = [ResourceKind::HostCpu, ResourceKind::ServerHostCpu];
    kinds.iter().any(|kind| is_of_kind(&used.name, *kind))
}
