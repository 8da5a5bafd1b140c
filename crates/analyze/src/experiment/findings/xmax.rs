//! Findings of a search for the highest rate.

use super::disks;
use super::saturation::{self, AtRate};
use crate::experiment::xmax::CONFIRMATION_RATIOS;
use crate::robust::mean;
use crate::values::{exact, percent, rate, rate_of, us};
use dyno_record::experiment::{ClientsEnd, Confirmation, Figure, Finding, XmaxAnswer};
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};

/// All rules.
pub(super) fn all(answer: &XmaxAnswer) -> Vec<Finding> {
    let rules = [
        generator_bound(answer),
        x_max(answer),
        sustained(answer),
        bottleneck(answer),
        disk_without_bound(answer),
        unfinished(answer),
    ];
    rules.into_iter().flatten().collect()
}

/// A disk that may limit before the reported bottleneck.
fn disk_without_bound(answer: &XmaxAnswer) -> Option<Finding> {
    let is_reported = answer.bottleneck.is_some() && answer.generator_bound.is_empty();
    disks::without_bound(answer.disk.as_ref().filter(|_| is_reported), &with_clients(answer))
}

/// The client was the limit, so there is no X_max.
fn generator_bound(answer: &XmaxAnswer) -> Option<Finding> {
    (!answer.generator_bound.is_empty()).then(|| {
        let measured = rate(answer.search.rate_per_s);
        let maximum = answer.client_maximum_per_s;
        let rate = maximum
            .map_or(measured, |maximum| Number { value: measured.value, ..rate_of(&maximum) });
        Finding::warning(
            statement!("client-maximum", rate = rate, is_estimated = maximum.is_some()),
            answer.generator_bound.clone(),
        )
    })
}

/// X_max with its level.
fn x_max(answer: &XmaxAnswer) -> Option<Finding> {
    let x_max = answer.x_max_per_s?;
    let tried = answer.search.tried.iter().map(|tried| {
        let rate = rate(mean(&tried.rates_per_s));
        statement!("rate-with-clients", rate = rate, clients = tried.clients)
    });
    let tried: Vec<Statement> = tried.collect();
    Some(Finding::found(
        statement!("x-max", x_max = rate_of(&x_max), clients = answer.search.clients),
        vec![statement!("rates-by-clients", rates = tried)],
    ))
}

/// The achieved offered rate just below X_max.
fn sustained(answer: &XmaxAnswer) -> Option<Finding> {
    if answer.confirmations.is_empty() {
        return None;
    }
    let mut evidence: Vec<Statement> = answer.confirmations.iter().map(confirmation).collect();
    if answer.sustained_rate_per_s.is_some() {
        evidence.push(statement!("each-rate-in-one-run"));
    }
    Some(match answer.sustained_rate_per_s {
        Some(kept) => Finding::found(statement!("sustained", rate = rate(kept)), evidence),
        None => {
            let is_client = answer.confirmations.iter().any(|one| one.generator_bound);
            let all_tried = answer.confirmations.len() >= CONFIRMATION_RATIOS.len();
            let code = match (all_tried, is_client) {
                (false, _) => "none-sustained-yet",
                (true, true) => "none-sustained-by-client",
                (true, false) => "none-sustained",
            };
            Finding::warning(statement!(code), evidence)
        }
    })
}

fn confirmation(one: &Confirmation) -> Statement {
    statement!(
        "confirmation",
        offered = rate(one.offered_rate_per_s),
        share = percent(one.ratio),
        achieved = rate_of(&one.rate_per_s),
        p99 = one.p99_us.map(|p99| us(p99.value)),
        kept = one.kept,
        generator_bound = one.generator_bound
    )
}

/// The resource that saturates first; `None` if the client was the limit.
fn bottleneck(answer: &XmaxAnswer) -> Option<Finding> {
    let of_server = answer.bottleneck.as_ref();
    let value = answer.search.rate_per_s;
    let known = answer.search.estimate_per_s.map(Figure::from);
    Some(saturation::bottleneck(&AtRate {
        bottleneck: of_server.filter(|_| answer.generator_bound.is_empty())?,
        stations: &answer.demands,
        demands: &answer.demands,
        disk: answer.disk.as_ref(),
        rate_per_s: Figure { value, ..known.unwrap_or(Figure::bare(value)) },
        is_of_sweep: true,
        at: with_clients(answer),
        busy: None,
        used_up: Vec::new(),
    }))
}

fn with_clients(answer: &XmaxAnswer) -> Statement {
    let clients = exact(f64::from(answer.search.clients));
    statement!("with-clients", clients = vec![clients])
}

/// The search did not reach the end of the growth.
fn unfinished(answer: &XmaxAnswer) -> Option<Finding> {
    let tried = &answer.search.tried;
    let evidence = statement!(
        "runs-with-clients",
        runs = tried.iter().map(|one| one.rates_per_s.len()).sum::<usize>(),
        clients = tried.last()?.clients
    );
    let code = match answer.search.end {
        ClientsEnd::Plateau => return None,
        ClientsEnd::StillGrowing => "rate-still-grew",
        ClientsEnd::LimitReached => "most-clients-reached",
        ClientsEnd::OutOfMeasurements => "clients-search-ended-early",
    };
    Some(Finding::warning(statement!(code), vec![evidence]))
}

#[cfg(test)]
pub(super) mod tests;
