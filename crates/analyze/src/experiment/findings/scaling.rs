//! What more clients bring: where they begin to wait for each other, and what the scalability law says.

use super::view::{View, subject};
use super::{finding, warning};
use crate::closed_network::curve;
use crate::experiment::sweep::stations;
use crate::experiment::words::{
    count, exact, interval, interval_or_none, list, number, percent, rate, time, times,
};
use crate::open_queue::is_extrapolated;
use dyno_record::estimate::Estimate;
use dyno_record::experiment::{ClosedSystem, Finding, Knee, Level, OpenEstimate, UslFit, UslPeak};

/// A difference from the network of the demands that is told: the network assumes service times that vary as
/// exponential ones do, and real ones differ from it by some percent for that alone.
const RELEVANT_EXCESS_RATIO: f64 = 0.15;

/// N*: beyond it operations certainly wait for each other.
pub(super) fn waiting(view: &View<'_>) -> Option<Finding> {
    let saturation = view.answer.saturation_clients?;
    let system = view.answer.system.as_ref()?;
    let demand = view.answer.bottleneck.as_ref()?;
    let lone_s = system.lone_response_s();
    let text = format!(
        "beyond N* = {} clients{} operations certainly wait for each other",
        number(saturation.value),
        interval_or_none(&saturation, number)
    );
    let mut evidence = vec![format!(
        "an operation without others takes {}, and {} serves one every {}: {} / {} = {}",
        time(lone_s),
        subject(&demand.name),
        time(demand.per_server_s()),
        time(lone_s),
        time(demand.per_server_s()),
        number(saturation.value)
    )];
    let beyond = view
        .levels()
        .iter()
        .find(|level| f64::from(level.clients) > saturation.value);
    evidence.push(match beyond {
        Some(level) => format!(
            "{} operations took {} on average, {} times as long as one without others",
            view.at(level),
            time(level.response_mean_us.value * 1e-6),
            times(level.response_mean_us.value * 1e-6 / lone_s)
        ),
        None => "no level has more clients than that".to_owned(),
    });
    Some(finding(text, evidence))
}

/// What a response time has beyond the waiting that the measured demands explain.
pub(super) fn unexplained(view: &View<'_>) -> Option<Finding> {
    let last = view.levels().last().filter(|_| view.is_over_clients())?;
    if view.answer.network.is_empty() {
        return None;
    }
    // The demands of this very level, so that an operation that costs more there is not called waiting.
    let system = ClosedSystem {
        demands: stations(&last.demands, last.shares_cpus),
        ..view.answer.system.clone()?
    };
    let predicted = *curve(&system, last.clients).last()?;
    let measured_s = last.response_mean_us.value * 1e-6;
    let excess = measured_s / predicted.response_s - 1.0;
    let stations: Vec<String> = system
        .demands
        .iter()
        .map(|demand| format!("{} {}", subject(&demand.name), time(demand.demand_s)))
        .collect();
    let evidence = vec![
        format!(
            "{} operations took {}; a network of the demands measured there has {}",
            view.at(last),
            time(measured_s),
            time(predicted.response_s)
        ),
        format!(
            "demands there: {}, and {} that a lone operation takes besides",
            list(&stations),
            time(system.delay_s)
        ),
    ];
    if excess <= RELEVANT_EXCESS_RATIO {
        return (excess.abs() <= RELEVANT_EXCESS_RATIO).then(|| {
            finding(
                "waiting for the measured resources explains the response times".to_owned(),
                evidence,
            )
        });
    }
    Some(finding(
        format!(
            "{} of the response time {} is waiting for something that is not in the measured demands, such as locks, \
             tickets or commits",
            percent(excess / (1.0 + excess)),
            view.at(last)
        ),
        evidence,
    ))
}

/// What the queue says that fits the response times at offered rates.
pub(super) fn queue(view: &View<'_>) -> Option<Finding> {
    let model = view.answer.queue.as_ref()?;
    let fit = &model.fit;
    let name = match fit.queue.servers {
        1 => "M/M/1".to_owned(),
        servers => format!("M/M/{servers}"),
    };
    let range = format!(
        "the curve misses the mean response times from {} to {} by {} on average",
        rate(fit.measured_rate_min_per_s),
        rate(fit.measured_rate_max_per_s),
        percent(fit.residual_ratio)
    );
    if let Some(measured) = model.contradicted_by_per_s {
        let text = format!(
            "no simple queue describes the response times: the closest one, {name}, could not do more than {}, and {} \
             were measured",
            rate(fit.capacity_per_s.high),
            rate(measured)
        );
        return Some(finding(text, vec![range]));
    }
    if !model.applies {
        let text = format!(
            "no simple queue describes the response times: the closest one, {name}, is {} off",
            percent(fit.residual_ratio)
        );
        return Some(finding(text, vec![range]));
    }
    Some(finding(
        format!(
            "the mean response time is that of an {name} queue with a service time of {} and a capacity of {}",
            time(fit.service_s.value),
            rate(fit.capacity_per_s.value)
        ),
        vec![
            range,
            format!(
                "service time {}, delay that does not depend on the load {}, capacity {}{}",
                with_interval(&fit.service_s, time),
                with_interval(&fit.delay_s, time),
                with_interval(&fit.capacity_per_s, rate),
                match is_extrapolated(fit, fit.capacity_per_s.value) {
                    true => ", which is beyond the rates that were measured",
                    false => "",
                }
            ),
        ],
    ))
}

/// The load from which on more of it costs more than it brings.
pub(super) fn knee(view: &View<'_>) -> Option<Finding> {
    let unit = |load: f64| match view.is_over_rates() {
        true => "/s offered",
        false if load == 1.0 => " client",
        false => " clients",
    };
    let load = |load: f64| format!("{}{}", number(load), unit(load));
    let measured = |load: f64| format!("{}{}", exact(load), unit(load));
    let (text, evidence) = match view.answer.knee? {
        Knee::TooFewLoads => return None,
        Knee::Found {
            load: at,
            low,
            high,
            rate_per_s,
            response_s,
        } => (
            format!(
                "the knee is at {}: beyond it more load costs more response time than it brings rate",
                load(at)
            ),
            vec![
                format!(
                    "there the rate divided by the mean response time is highest, with {} at {}",
                    rate(rate_per_s),
                    time(response_s)
                ),
                format!(
                    "the intervals place it between {} and {}",
                    exact(low),
                    measured(high)
                ),
            ],
        ),
        Knee::AboveMeasured { highest_load } => (
            format!(
                "the knee is above the highest load, {}",
                measured(highest_load)
            ),
            vec![
                "the rate divided by the mean response time is highest at the highest load"
                    .to_owned(),
            ],
        ),
        Knee::BelowMeasured { lowest_load } => (
            format!(
                "the knee is at the lowest load or below it, {}",
                measured(lowest_load)
            ),
            vec![
                "the rate divided by the mean response time is highest at the lowest load"
                    .to_owned(),
            ],
        ),
    };
    Some(finding(text, evidence))
}

/// The rate falls beyond its best level, by more than chance.
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
    let text = format!(
        "more load than that makes it slower: {} the rate is {} lower than {}",
        view.at(worst),
        percent(loss),
        view.at(best)
    );
    let evidence = [best, worst].map(|level| {
        format!(
            "rate {}: {}{}",
            view.at(level),
            rate(level.rate_per_s.value),
            interval(&level.rate_per_s, rate)
        )
    });
    Some(finding(text, evidence.to_vec()))
}

/// The parameters of the scalability law, or why there are none.
pub(super) fn scalability_law(view: &View<'_>) -> Option<Finding> {
    let Some(fit) = &view.answer.usl else {
        let problem = view.answer.usl_problem.as_ref()?;
        let levels = view.levels().len();
        return Some(warning(
            "there is no fit of the scalability law".to_owned(),
            vec![format!(
                "{problem} ({})",
                count(levels, "level was measured", "levels were measured")
            )],
        ));
    };
    let text = format!(
        "the scalability law has {} and {}; {}",
        parameter("contention σ", &fit.sigma_ratio),
        parameter("coherency κ", &fit.kappa_ratio),
        peak(fit)
    );
    let mut evidence = vec![
        format!(
            "the parameters are σ = {}, κ = {} and λ = {}, the rate of a lone client{}",
            with_interval(&fit.sigma_ratio, number),
            with_interval(&fit.kappa_ratio, number),
            rate(fit.lambda_per_s.value),
            format_args!(
                " ({} to {})",
                rate(fit.lambda_per_s.low),
                rate(fit.lambda_per_s.high)
            )
        ),
        format!(
            "the curve misses the rates of {} to {} clients by {} on average",
            fit.measured_clients_min,
            fit.measured_clients_max,
            percent(fit.residual_ratio)
        ),
    ];
    evidence.extend(fit.peak.as_ref().map(peak_evidence));
    Some(finding(text, evidence))
}

/// A parameter whose interval reaches 0 cannot be told from nothing.
fn parameter(name: &str, estimate: &Estimate) -> String {
    match estimate.low > 0.0 {
        true => format!("{name} = {}", number(estimate.value)),
        false => format!(
            "a {name} that cannot be told from 0 (at most {})",
            number(estimate.high)
        ),
    }
}

fn with_interval(estimate: &Estimate, write: fn(f64) -> String) -> String {
    format!(
        "{} ({} to {})",
        write(estimate.value),
        write(estimate.low),
        write(estimate.high)
    )
}

fn peak(fit: &UslFit) -> String {
    match &fit.peak {
        None => "its curve has no peak: more clients never lower the rate".to_owned(),
        Some(peak) => format!(
            "its curve peaks at {} with {} clients{}",
            rate(peak.rate_per_s.value),
            number(peak.clients.value),
            match peak.extrapolated {
                true => format!(
                    ", which is beyond the {} that were measured: a guess, not a finding",
                    fit.measured_clients_max
                ),
                false => String::new(),
            }
        ),
    }
}

fn peak_evidence(peak: &UslPeak) -> String {
    format!(
        "the interval of the peak is {} clients, and its rate {}",
        open_interval(&peak.clients, number),
        open_interval(&peak.rate_per_s, rate)
    )
}

fn open_interval(estimate: &OpenEstimate, write: fn(f64) -> String) -> String {
    match estimate.high {
        Some(high) => format!("{} to {}", write(estimate.low), write(high)),
        None => format!("{} and above", write(estimate.low)),
    }
}
