//! Effect of more clients: where they begin to wait for each other, and the scalability law.

use super::view::{View, demand, subject};
use crate::closed_network::curve;
use crate::experiment::stations::stations;
use crate::experiment::sweep::disk_limits;
use crate::open_queue::is_extrapolated;
use crate::values::{exact, number, percent, rate, rate_of, time, times, us};
use dyno_record::experiment::{ClosedSystem, Finding, Knee, Level, OpenEstimate, UslFit, UslPeak};
use dyno_record::quantity::Unit;
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};

/// Smallest reported difference from the network of the demands: the network assumes exponential service times,
/// and real ones alone cause differences of some percent.
const RELEVANT_EXCESS_RATIO: f64 = 0.15;

/// N*: beyond it operations certainly wait for each other.
pub(super) fn waiting(view: &View<'_>) -> Option<Finding> {
    let saturation = view.answer.saturation_clients?;
    let system = view.answer.system.as_ref()?;
    let demand = view.answer.bottleneck.as_ref()?;
    let lone_s = system.lone_response_s();
    let most = view.levels().iter().map(|level| level.clients).max();
    let is_beyond = |most: &u32| f64::from(*most) < saturation.value;
    let said = statement!(
        "operations-wait-beyond",
        clients = saturation.number(Unit::Plain),
        is_certain = saturation.low.is_some().then_some(true),
        measured = most.filter(is_beyond)
    );
    let mut evidence = vec![statement!(
        "lone-operation",
        lone = time(lone_s),
        think = (system.think_time_s > 0.0).then(|| time(system.think_time_s)),
        resource = subject(&demand.name),
        each = time(demand.per_server_s()),
        clients = number(saturation.value)
    )];
    let beyond = view.levels().iter().find(|level| f64::from(level.clients) > saturation.value);
    evidence.push(match beyond {
        Some(level) => statement!(
            "response-times-beyond",
            at = view.at(level),
            mean = us(level.response_mean_us.value),
            growth = times(level.response_mean_us.value * 1e-6 / lone_s)
        ),
        None => statement!("no-level-beyond"),
    });
    Some(Finding::found(said, evidence))
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
pub(super) fn knee(view: &View<'_>) -> Option<Finding> {
    let is_rate = view.is_over_rates();
    let at_end = |code, load, level: &Level| {
        let (rate_per_s, mean_us) = (level.rate_per_s.value, level.response_mean_us.value);
        let said = statement!(code, load = exact(load), is_rate = is_rate);
        (said, vec![highest_power(rate_per_s, mean_us * 1e-6)])
    };
    let (said, evidence) = match view.answer.knee? {
        Knee::TooFewLoads => return None,
        Knee::Found { load, low, high, rate_per_s, response_s } => (
            statement!("knee", load = number(load), is_rate = is_rate),
            vec![
                highest_power(rate_per_s, response_s),
                statement!("knee-between", low = exact(low), high = exact(high), is_rate = is_rate),
            ],
        ),
        Knee::AboveMeasured { highest_load } => {
            at_end("knee-above", highest_load, view.levels().last()?)
        }
        Knee::BelowMeasured { lowest_load } => {
            at_end("knee-below", lowest_load, view.levels().first()?)
        }
    };
    Some(Finding::found(said, evidence))
}

fn highest_power(rate_per_s: f64, response_s: f64) -> Statement {
    statement!("knee-is-highest-power", rate = rate(rate_per_s), response = time(response_s))
}

/// The rate falls significantly beyond its best level.
pub(super) fn decline(view: &View<'_>) -> Option<Finding> {
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
    let said = statement!(
        "more-load-is-slower",
        at = view.at(worst),
        loss = percent(loss),
        best = view.at(best)
    );
    let evidence = [best, worst].map(|level| {
        let rate = rate_of(&level.rate_per_s);
        statement!("rate-at", at = view.at(level), rate = rate)
    });
    Some(Finding::found(said, evidence.to_vec()))
}

/// The parameters of the scalability law, or why there are none.
pub(super) fn scalability_law(view: &View<'_>) -> Option<Finding> {
    let Some(fit) = &view.answer.usl else {
        let problem = view.answer.usl_problem.as_ref()?;
        let levels = view.levels().len();
        return Some(Finding::warning(
            statement!("no-scalability-law"),
            vec![statement!("no-scalability-law-because", problem = problem, levels = levels)],
        ));
    };
    let peak = fit.peak.as_ref();
    let said = statement!(
        "scalability-law",
        sigma = Number::estimate(&fit.sigma_ratio, Unit::Plain),
        is_sigma_known = fit.sigma_ratio.low > 0.0,
        kappa = Number::estimate(&fit.kappa_ratio, Unit::Plain),
        is_kappa_known = fit.kappa_ratio.low > 0.0,
        peak = peak.map(|peak| self::peak(peak, fit))
    );
    let mut evidence = vec![
        statement!(
            "scalability-law-parameters",
            sigma = Number::estimate(&fit.sigma_ratio, Unit::Plain),
            kappa = Number::estimate(&fit.kappa_ratio, Unit::Plain),
            lambda = Number::estimate(&fit.lambda_per_s, Unit::PerSecond)
        ),
        statement!(
            "scalability-law-misses-by",
            fewest = fit.measured_clients_min,
            most = fit.measured_clients_max,
            residual = percent(fit.residual_ratio)
        ),
    ];
    evidence.extend(peak.map(|peak| {
        statement!(
            "interval-of-peak",
            clients = open(&peak.clients, Unit::Plain),
            rate = open(&peak.rate_per_s, Unit::PerSecond)
        )
    }));
    Some(Finding::found(said, evidence))
}

fn peak(peak: &UslPeak, fit: &UslFit) -> Statement {
    statement!(
        "peak",
        rate = rate(peak.rate_per_s.value),
        clients = number(peak.clients.value),
        beyond = peak.extrapolated.then_some(fit.measured_clients_max)
    )
}

/// An estimate whose interval may have no upper end.
fn open(estimate: &OpenEstimate, unit: Unit) -> Number {
    Number::new(estimate.value, unit).between(estimate.low, estimate.high.unwrap_or(f64::INFINITY))
}
