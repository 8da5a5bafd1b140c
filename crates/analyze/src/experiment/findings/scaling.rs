//! Effect of more clients: where they begin to wait for each other, and from where on more are of no use.

use super::view::{View, demand, subject};
use crate::closed_network::curve;
use crate::experiment::stations::stations;
use crate::experiment::sweep::disk_limits;
use crate::open_queue::is_extrapolated;
use crate::values::{exact, number, percent, rate, time};
use dyno_record::experiment::{ClosedSystem, Finding, Knee, Level};
use dyno_record::quantity::Unit;
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};

/// Smallest reported difference from the network of the demands: the network assumes exponential service times,
/// and real ones alone cause differences of some percent.
const RELEVANT_EXCESS_RATIO: f64 = 0.15;

/// N*, beyond which operations wait for each other, with its arithmetic.
pub(super) fn waiting(view: &View<'_>) -> Option<[Statement; 2]> {
    let saturation = view.answer.saturation_clients?;
    let system = view.answer.system.as_ref()?;
    let demand = view.answer.bottleneck.as_ref()?;
    let most = view.levels().iter().map(|level| level.clients).max();
    let is_beyond = |most: &u32| f64::from(*most) < saturation.value;
    let said = statement!(
        "operations-wait-beyond",
        clients = saturation.number(Unit::Plain),
        is_certain = saturation.low.is_some().then_some(true),
        measured = most.filter(is_beyond)
    );
    let lone = statement!(
        "lone-operation",
        lone = time(system.lone_response_s()),
        think = (system.think_time_s > 0.0).then(|| time(system.think_time_s)),
        resource = subject(&demand.name),
        each = time(demand.per_server_s()),
        clients = number(saturation.value)
    );
    Some([said, lone])
}

/// Response time beyond the waiting that the measured demands explain.
pub(super) fn unexplained(view: &View<'_>) -> Option<Finding> {
    let last = view.levels().last().filter(|_| view.is_over_clients())?;
    if view.answer.network.is_empty() {
        return None;
    }
    // The demands at exactly this level, so that more expensive operations do not count as waiting.
    let disk = disk_limits(last, view.levels());
    let system = ClosedSystem {
        demands: stations(&last.demands, last.into(), disk.as_ref()),
        ..view.answer.system.clone()?
    };
    let predicted = *curve(&system, last.clients).last()?;
    let measured_s = last.response_mean_us.value * 1e-6;
    let excess = measured_s / predicted.response_s - 1.0;
    let evidence = vec![
        statement!(
            "network-of-demands",
            at = view.at(last),
            measured = time(measured_s),
            predicted = time(predicted.response_s)
        ),
        statement!(
            "demands-there",
            demands = system.demands.iter().map(demand).collect::<Vec<_>>(),
            besides = time(system.delay_s)
        ),
    ];
    if excess <= RELEVANT_EXCESS_RATIO {
        return (excess.abs() <= RELEVANT_EXCESS_RATIO)
            .then(|| Finding::found(statement!("waiting-explained"), evidence));
    }
    let share = percent(excess / (1.0 + excess));
    let said = statement!("waiting-unexplained", share = share, at = view.at(last));
    Some(Finding::found(said, evidence))
}

/// The queue that fits the response times at offered rates.
pub(super) fn queue(view: &View<'_>) -> Option<Finding> {
    let model = view.answer.queue.as_ref()?;
    let fit = &model.fit;
    let servers = fit.queue.servers;
    let range = statement!(
        "queue-misses-by",
        lowest = rate(fit.measured_rate_min_per_s),
        highest = rate(fit.measured_rate_max_per_s),
        residual = percent(fit.residual_ratio)
    );
    if let Some(measured) = model.contradicted_by_per_s {
        let said = statement!(
            "queue-contradicted",
            servers = servers,
            capacity = rate(fit.capacity_per_s.high),
            measured = rate(measured)
        );
        return Some(Finding::found(said, vec![range]));
    }
    if !model.applies {
        let residual = percent(fit.residual_ratio);
        let said = statement!("no-simple-queue", servers = servers, residual = residual);
        return Some(Finding::found(said, vec![range]));
    }
    let parameters = statement!(
        "queue-parameters",
        service = Number::estimate(&fit.service_s.scaled(1e6), Unit::Microseconds),
        delay = Number::estimate(&fit.delay_s.scaled(1e6), Unit::Microseconds),
        capacity = Number::estimate(&fit.capacity_per_s, Unit::PerSecond),
        is_extrapolated = is_extrapolated(fit, fit.capacity_per_s.value)
    );
    let said = statement!(
        "queue-fits",
        servers = servers,
        service = time(fit.service_s.value),
        capacity = rate(fit.capacity_per_s.value)
    );
    Some(Finding::found(said, vec![range, parameters]))
}

/// The load from which more load costs more than it brings.
pub(super) fn knee(view: &View<'_>) -> Option<Statement> {
    let is_rate = view.is_over_rates();
    let at_end = |code, load| statement!(code, load = exact(load), is_rate = is_rate);
    Some(match view.answer.knee? {
        Knee::TooFewLoads => return None,
        Knee::Found { load, low, high, .. } => statement!(
            "knee",
            load = number(load),
            low = exact(low),
            high = exact(high),
            is_rate = is_rate
        ),
        Knee::AboveMeasured { highest_load } => at_end("knee-above", highest_load),
        Knee::BelowMeasured { lowest_load } => at_end("knee-below", lowest_load),
    })
}

/// The rate falls significantly beyond its best level.
pub(super) fn decline(view: &View<'_>) -> Option<Statement> {
    if !view.is_over_clients() && !view.is_over_rates() {
        return None;
    }
    let best = view.best();
    let after = &view.levels()[view.answer.best as usize + 1..];
    let low = best.rate_per_s.low?;
    let certain = |level: &&Level| level.rate_per_s.high.is_some_and(|high| high < low);
    let worst = after
        .iter()
        .filter(certain)
        .min_by(|a, b| a.rate_per_s.value.total_cmp(&b.rate_per_s.value))?;
    let loss = 1.0 - worst.rate_per_s.value / best.rate_per_s.value;
    Some(statement!(
        "more-load-is-slower",
        at = view.at(worst),
        loss = percent(loss),
        best = view.at(best)
    ))
}
