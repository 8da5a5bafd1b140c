//! Reliability of the answer.

use super::view::{View, busy_of, servers_of, statements_of};
use super::watched::{self, OF_LEVELS};
use crate::caveats::CpuUses;
use crate::experiment::stations::knows_server;
use crate::values::{number, percent, rate, rate_of};
use dyno_record::experiment::{Finding, Level};
use dyno_record::model::{CaveatKind, ResourceKind};
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};

/// Half-width of a rate's interval, as a share, from which the rate is poorly known.
pub(super) const WIDE_RATIO: f64 = 0.1;

/// The client was the limit: such rates say nothing about the server.
pub(super) fn generator_bound(view: &View<'_>) -> Option<Finding> {
    let levels = view.levels_where(|level| level.generator_bound);
    if levels.is_empty() {
        return None;
    }
    let includes_best = levels.iter().any(|level| std::ptr::eq(*level, view.best()));
    let said = statement!(
        "generator-bound-at-levels",
        at = view.at_all(&levels),
        includes_best = includes_best
    );
    let mut evidence = statements_of(&view.experiment.caveats, CaveatKind::GeneratorBottleneck);
    evidence.extend(levels.iter().map(|level| {
        statement!(
            "client-too-busy-at-rate",
            at = view.at(level),
            rate = rate(level.rate_per_s.value),
            busy = busy_of(level, ResourceKind::ClientCpu).map(percent)
        )
    }));
    Some(Finding::warning(said, evidence))
}

/// Failed operations, which are excluded from rates and response times.
pub(super) fn failed_operations(view: &View<'_>) -> Option<Finding> {
    let of = |level: &Level| level.failed_ratio;
    share(view, of, ["failed-at-levels", "failed-share"])
}

/// Arrivals were never sent.
pub(super) fn dropped_arrivals(view: &View<'_>) -> Option<Finding> {
    let of = |level: &Level| level.dropped_ratio;
    share(view, of, ["dropped-at-levels", "dropped-share"])
}

fn share(view: &View<'_>, of: fn(&Level) -> f64, codes: [&str; 2]) -> Option<Finding> {
    let levels = view.levels_where(|level| of(level) > 0.0);
    let said = statement!(codes[0], at = view.at_all(&levels));
    let evidence = levels
        .iter()
        .map(|level| statement!(codes[1], at = view.at(level), share = percent(of(level))));
    let evidence: Vec<Statement> = evidence.collect();
    (!levels.is_empty()).then(|| Finding::warning(said, evidence))
}

/// Other processes used the machine of the server.
pub(super) fn other_processes(view: &View<'_>) -> Option<Finding> {
    let uses: Vec<(&Level, CpuUses)> = view
        .levels()
        .iter()
        .filter_map(|level| {
            // The client can use as many CPUs as it has threads: shares of different totals cannot be subtracted.
            let busy = |kind| Some(busy_of(level, kind)? * f64::from(servers_of(level, kind)?));
            let uses = CpuUses {
                cpus: servers_of(level, ResourceKind::HostCpu)?,
                all: busy(ResourceKind::HostCpu)?,
                server: busy(ResourceKind::ServerCpu)?,
                client: busy(ResourceKind::ClientCpu)?,
            };
            uses.relevant_ratio().map(|_| (level, uses))
        })
        .collect();
    let shares = uses.iter().filter_map(|(_, uses)| uses.relevant_ratio());
    let most = shares.reduce(f64::max)?;
    let levels: Vec<&Level> = uses.iter().map(|(level, _)| *level).collect();
    let said =
        statement!("others-use-machine-at-levels", most = percent(most), at = view.at_all(&levels));
    let evidence = uses.iter().map(|(level, uses)| {
        statement!(
            "cpus-busy-for-others",
            at = view.at(level),
            cpus = uses.cpus,
            all = number(uses.all),
            server = number(uses.server),
            client = number(uses.client),
            others = number(uses.others())
        )
    });
    Some(Finding::warning(said, evidence.collect()))
}

/// A run had no steady state.
pub(super) fn unsteady(view: &View<'_>) -> Option<Finding> {
    let levels = view.levels_where(|level| level.unsteady);
    if levels.is_empty() {
        return None;
    }
    let runs = |level: &Level| -> Vec<String> {
        level
            .runs
            .iter()
            .filter_map(|place| view.experiment.points.get(*place as usize))
            .filter(|point| point.figures.as_ref().is_some_and(|f| f.steady == Some(false)))
            .map(|point| point.directory.clone())
            .collect()
    };
    let mut evidence = statements_of(&view.experiment.caveats, CaveatKind::NotSteady);
    evidence.extend(
        levels.iter().map(|level| {
            statement!("rate-drifted-in-runs", at = view.at(level), runs = runs(level))
        }),
    );
    let said = statement!("unsteady-at-levels", at = view.at_all(&levels));
    Some(Finding::warning(said, evidence))
}

/// Rates whose intervals are too wide for small differences, or that have none.
pub(super) fn wide_intervals(view: &View<'_>) -> Option<Finding> {
    poorly_known(view.levels().iter(), |levels| view.at_all(levels))
}

/// Poorly known rates of any levels; `at` names the levels.
pub(super) fn poorly_known<'a>(
    levels: impl Iterator<Item = &'a Level>,
    at: impl Fn(&[&Level]) -> Statement,
) -> Option<Finding> {
    let is_wide = |level: &&Level| level.rate_per_s.quantity().uncertainty_ratio > WIDE_RATIO;
    let levels: Vec<&Level> = levels.filter(is_wide).collect();
    if levels.is_empty() {
        return None;
    }
    let is_known = |level: &&Level| level.rate_per_s.low.is_some();
    let (known, unknown): (Vec<&Level>, Vec<&Level>) = levels.iter().copied().partition(is_known);
    let intervals = known.iter().map(|level| {
        let rate = rate_of(&level.rate_per_s);
        let at = at(&[level]);
        statement!("interval-of-rate", at = at, is_known = true, rate = rate)
    });
    let none = (!unknown.is_empty()).then(|| {
        let rates = unknown.iter().map(|level| rate_of(&level.rate_per_s));
        statement!(
            "no-interval-of-rates",
            at = at(&unknown),
            rates = rates.collect::<Vec<Number>>()
        )
    });
    let intervals: Vec<Statement> = intervals.chain(none).collect();
    Some(Finding::warning(
        statement!("rate-poorly-known-at-levels", limit = percent(WIDE_RATIO), at = at(&levels)),
        vec![statement!("intervals-of-rates", intervals = intervals)],
    ))
}

/// Unwatched figures, and the unknown limits of an unwatched server.
pub(super) fn not_watched(view: &View<'_>) -> Option<Finding> {
    let knows_server = knows_server(&view.best().demands);
    watched::not_watched(&watched::runs(view.experiment), &OF_LEVELS, !knows_server)
}
