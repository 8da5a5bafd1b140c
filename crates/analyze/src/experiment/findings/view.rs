//! A sweep as the rules see it, and the names of its levels.

use super::saturation::AtRate;
use crate::experiment::figures::resource_name;
use crate::experiment::saturation::{self, UsedUp, is_of_machine};
use crate::experiment::sweep::version;
use crate::values::{exact, number, percent, rate, time};
use dyno_record::experiment::{CLIENTS, Demand, Experiment, Level, PROGRAM, RATE, SweepAnswer};
use dyno_record::model::{Caveat, CaveatKind, ResourceKind};
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};
use std::collections::BTreeMap;

/// A sweep with its names.
pub(super) struct View<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) answer: &'a SweepAnswer,
}

impl<'a> View<'a> {
    pub(super) fn levels(&self) -> &'a [Level] {
        &self.answer.levels
    }

    /// The level with the highest rate.
    pub(super) fn best(&self) -> &'a Level {
        &self.answer.levels[self.answer.best as usize]
    }

    /// Whether numbers of clients are compared, in a closed loop.
    pub(super) fn is_over_clients(&self) -> bool {
        self.answer.axis.as_deref() == Some(CLIENTS) && self.is_closed()
    }

    /// Whether offered rates are compared.
    pub(super) fn is_over_rates(&self) -> bool {
        self.answer.axis.as_deref() == Some(RATE)
    }

    fn is_closed(&self) -> bool {
        self.levels().iter().all(|level| level.offered_rate_per_s.is_none())
    }

    /// Levels that satisfy a condition.
    pub(super) fn levels_where(&self, holds: impl Fn(&Level) -> bool) -> Vec<&'a Level> {
        self.levels().iter().filter(|level| holds(level)).collect()
    }

    /// `with 8 clients`, `at 5,000/s offered`, ``with `server.cache` = `1GiB` ``.
    pub(super) fn at(&self, level: &Level) -> Statement {
        self.at_all(&[level])
    }

    /// The same for several levels: `with 4, 8 and 16 clients`.
    pub(super) fn at_all(&self, levels: &[&Level]) -> Statement {
        if levels.len() > 2 && levels.len() == self.levels().len() {
            return statement!("at-all-levels", levels = levels.len());
        }
        let levels = levels.iter();
        match self.answer.axis.as_deref() {
            Some(CLIENTS) => {
                let numbers = levels.map(|level| exact(f64::from(level.clients)));
                statement!("with-clients", clients = numbers.collect::<Vec<Number>>())
            }
            Some(_) => {
                let rates = levels.map(|level| rate(level.offered_rate_per_s.unwrap_or(0.0)));
                statement!("at-offered-rates", rates = rates.collect::<Vec<Number>>())
            }
            None => {
                let settings = levels.map(|level| self.settings(level));
                statement!("with-settings", settings = settings.collect::<Vec<String>>())
            }
        }
    }

    /// A level by its settings, even if they are numbers of clients or rates: ``with `server.cache=1GiB` ``,
    /// `with mongod 6.0.27`.
    pub(super) fn with_settings(&self, level: &Level) -> Statement {
        statement!("with-settings", settings = vec![self.settings(level)])
    }

    /// The settings that distinguish a level from the others. If programs are swept, a server's own name and
    /// version replace the program, if they distinguish all of them.
    fn settings(&self, level: &Level) -> String {
        let axes = || self.experiment.axes_of(self.answer.block);
        // Without any variation, the set values are all there is to say.
        let has_several = axes().any(|axis| axis.values.len() > 1);
        let settings: Vec<String> = axes()
            .filter(|axis| axis.values.len() > 1 || !has_several)
            .filter_map(|axis| {
                let value = level.settings.get(&axis.key)?;
                Some(match (axis.key.as_str(), version(self.levels().iter(), level)) {
                    (PROGRAM, Some(version)) => version.to_owned(),
                    (key, _) => format!("`{key}={value}`"),
                })
            })
            .collect();
        settings.join(" ")
    }

    /// Utilization of all resources at a level.
    pub(super) fn busy(&self, level: &Level) -> Statement {
        busy(self.at(level), &level.busy_ratio)
    }

    /// Measurements at the best level, if the resource that saturates first is known.
    pub(super) fn at_best(&self) -> Option<AtRate<'a>> {
        let best = self.best();
        Some(AtRate {
            bottleneck: self.answer.bottleneck.as_ref()?,
            stations: &self.answer.system.as_ref()?.demands,
            demands: &best.demands,
            disk: self.answer.disk.as_ref(),
            rate_per_s: best.rate_per_s,
            is_of_sweep: true,
            at: self.at(best),
            busy: Some(self.busy(best)),
            used_up: saturation::of_level(best, &self.answer.system.as_ref()?.demands),
        })
    }
}

/// Utilization of all resources, by their names.
pub(super) fn busy(at: Statement, busy_ratio: &BTreeMap<String, f64>) -> Statement {
    let kinds = [
        ResourceKind::ServerCpu,
        ResourceKind::ClientCpu,
        ResourceKind::Disk,
        ResourceKind::HostCpu,
        ResourceKind::ServerHostCpu,
    ];
    let known = kinds
        .into_iter()
        .filter_map(|kind| Some((resource_name(kind), busy_ratio.get(resource_name(kind))?)));
    let resources = known.enumerate().map(|(place, (name, ratio))| {
        statement!(
            "resource-busy",
            resource = subject(name),
            share = percent(*ratio),
            is_first = place == 0
        )
    });
    let resources: Vec<Statement> = resources.collect();
    statement!("busy", at = at, resources = resources)
}

/// Statements of the caveats of a kind.
pub(super) fn statements_of(caveats: &[Caveat], kind: CaveatKind) -> Vec<Statement> {
    let of_kind = caveats.iter().filter(|caveat| caveat.kind == kind);
    of_kind.map(|caveat| caveat.statement.clone()).collect()
}

/// Utilization of a resource at a level, 0 to 1.
pub(super) fn busy_of(level: &Level, kind: ResourceKind) -> Option<f64> {
    level.busy_ratio.get(resource_name(kind)).copied()
}

/// Number of servers of a resource at a level, such as CPUs.
pub(super) fn servers_of(level: &Level, kind: ResourceKind) -> Option<u32> {
    let found = level.demands.iter().find(|demand| demand.name == resource_name(kind));
    found.map(|demand| demand.servers)
}

/// A resource.
pub(super) fn subject(name: &str) -> Statement {
    statement!("resource", name = name)
}

/// Demand of an operation for a resource.
pub(super) fn demand(demand: &Demand) -> Statement {
    let needed = time(demand.demand_s);
    statement!("demand", resource = subject(&demand.name), demand = needed)
}

/// The units of a resource that has several.
pub(super) fn units(demand: &Demand) -> Statement {
    let is_disk = demand.name == resource_name(ResourceKind::Disk);
    let code = if is_disk { "devices" } else { "cpus" };
    statement!(code, number = demand.servers, quota = demand.quota.map(number))
}

/// The resources close to saturation; `None` without any.
pub(super) fn used_up(all: &[UsedUp]) -> Option<Vec<Statement>> {
    let used = all.iter().map(|used| {
        statement!(
            "resource-used-up",
            resource = subject(&used.name),
            share = percent(used.busy_ratio),
            is_of_machine = is_of_machine(used)
        )
    });
    (!all.is_empty()).then(|| used.collect())
}
