//! How far the answer can be trusted.

use super::view::{View, busy_of, doubts, servers_of};
use super::warning;
use crate::experiment::words::{number, percent, rate};
use dyno_record::experiment::{Finding, Level};
use dyno_record::model::{CaveatKind, ResourceKind};

/// Use of the CPUs by others from which on it is told.
pub(super) const OTHERS_RATIO: f64 = 0.05;

/// Half-width of the interval of a rate, as a share of it, from which on the rate is poorly known.
pub(super) const WIDE_RATIO: f64 = 0.1;

/// The client was the limit: such rates say nothing about the server.
pub(super) fn generator_bound(view: &View<'_>) -> Option<Finding> {
    let levels = view.levels_where(|level| level.generator_bound);
    if levels.is_empty() {
        return None;
    }
    let includes_best = levels.iter().any(|level| std::ptr::eq(*level, view.best()));
    let best = match includes_best {
        true => "; the highest rate is among them and is no limit of the server",
        false => "",
    };
    let text = format!(
        "{} the load generator was the limit and not the server: the rates there are those of the client{best}",
        view.at_all(&levels)
    );
    let said = doubts(&view.experiment.caveats, CaveatKind::GeneratorBottleneck);
    let mut evidence: Vec<String> = said.iter().map(|(text, _)| (*text).to_owned()).collect();
    evidence.extend(levels.iter().map(|level| {
        let busy = busy_of(level, ResourceKind::ClientCpu);
        let busy = busy.map_or(String::new(), |busy| {
            format!(", with {} of all its CPUs busy", percent(busy))
        });
        format!(
            "{} a run says that the client was too busy at {}{busy}",
            view.at(level),
            rate(level.rate_per_s.value)
        )
    }));
    Some(warning(text, evidence))
}

/// Operations failed; they are part of no rate and of no response time.
pub(super) fn failed_operations(view: &View<'_>) -> Option<Finding> {
    share(
        view,
        |level| level.failed_ratio,
        "operations failed",
        |at| format!("operations failed {at}: rates and response times are those of the others"),
    )
}

/// Arrivals were never sent.
pub(super) fn dropped_arrivals(view: &View<'_>) -> Option<Finding> {
    share(
        view,
        |level| level.dropped_ratio,
        "arrivals were never sent",
        |at| format!("arrivals were dropped {at}: response times there are those of the others"),
    )
}

fn share(
    view: &View<'_>,
    of: fn(&Level) -> f64,
    what: &str,
    text: impl Fn(&str) -> String,
) -> Option<Finding> {
    let levels = view.levels_where(|level| of(level) > 0.0);
    let evidence: Vec<String> = levels
        .iter()
        .map(|level| format!("{} {} of the {what}", view.at(level), percent(of(level))))
        .collect();
    (!levels.is_empty()).then(|| warning(text(&view.at_all(&levels)), evidence))
}

/// How many CPUs the machine has, and how many of them were busy in all, for the server and for the client at a level.
/// The use of a whole machine is known only if the client runs on it too.
struct Uses {
    cpus: u32,
    all: f64,
    server: f64,
    client: f64,
}

impl Uses {
    fn of(level: &Level) -> Option<Uses> {
        // The client can use as many CPUs as it has threads: shares of different wholes cannot be subtracted.
        let busy = |kind| Some(busy_of(level, kind)? * f64::from(servers_of(level, kind)?));
        Some(Uses {
            cpus: servers_of(level, ResourceKind::HostCpu)?,
            all: busy(ResourceKind::HostCpu)?,
            server: busy(ResourceKind::ServerCpu)?,
            client: busy(ResourceKind::ClientCpu)?,
        })
    }

    fn others(&self) -> f64 {
        self.all - self.server - self.client
    }

    fn others_ratio(&self) -> f64 {
        self.others() / f64::from(self.cpus)
    }
}

/// Other processes used the machine of the server.
pub(super) fn other_processes(view: &View<'_>) -> Option<Finding> {
    let uses: Vec<(&Level, Uses)> = view
        .levels()
        .iter()
        .filter_map(|level| Some((level, Uses::of(level)?)))
        .filter(|(_, uses)| uses.others_ratio() > OTHERS_RATIO)
        .collect();
    let shares = uses.iter().map(|(_, uses)| uses.others_ratio());
    let most = shares.reduce(f64::max)?;
    let levels: Vec<&Level> = uses.iter().map(|(level, _)| *level).collect();
    let text = format!(
        "the machine was not idle: neither server nor client used up to {} of its CPUs, {}",
        percent(most),
        view.at_all(&levels)
    );
    let evidence = uses.iter().map(|(level, uses)| {
        format!(
            "{} of {} CPUs {} were busy, {} for the server and {} for the client, which leaves {} for others and the kernel",
            view.at(level),
            uses.cpus,
            number(uses.all),
            number(uses.server),
            number(uses.client),
            number(uses.others())
        )
    });
    Some(warning(text, evidence.collect()))
}

/// A run had no steady state.
pub(super) fn unsteady(view: &View<'_>) -> Option<Finding> {
    let levels = view.levels_where(|level| level.unsteady);
    if levels.is_empty() {
        return None;
    }
    let runs = |level: &Level| -> Vec<String> {
        let points = level.runs.iter();
        points
            .filter_map(|place| view.experiment.points.get(*place as usize))
            .filter(|point| {
                point
                    .figures
                    .as_ref()
                    .is_some_and(|f| f.steady == Some(false))
            })
            .map(|point| format!("`{}`", point.directory))
            .collect()
    };
    let evidence = levels.iter().map(|level| {
        format!(
            "{} the rate drifted in {}",
            view.at(level),
            runs(level).join(" and ")
        )
    });
    Some(warning(
        format!(
            "there was no steady state {}: the figures there depend on when they were taken",
            view.at_all(&levels)
        ),
        evidence.collect(),
    ))
}

/// Rates whose intervals are too wide for small differences, or that have none.
pub(super) fn wide_intervals(view: &View<'_>) -> Option<Finding> {
    let levels = view.levels_where(|level| {
        let quantity = level.rate_per_s.quantity();
        quantity.uncertainty_ratio > WIDE_RATIO
    });
    if levels.is_empty() {
        return None;
    }
    let intervals: Vec<String> = levels
        .iter()
        .map(
            |level| match level.rate_per_s.low.zip(level.rate_per_s.high) {
                Some((low, high)) => format!("{} to {} {}", rate(low), rate(high), view.at(level)),
                None => format!("none {}, as the runs are too short", view.at(level)),
            },
        )
        .collect();
    Some(warning(
        format!(
            "the rate is known to no better than ± {} {}; a longer `--duration` or a `--repeat` would tell more",
            percent(WIDE_RATIO),
            view.at_all(&levels)
        ),
        vec![format!("95 % intervals: {}", intervals.join(", "))],
    ))
}
