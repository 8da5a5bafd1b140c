//! What a search for the highest rate means.

use super::saturation::{above_bound, error_of};
use super::view::{demand, spread, subject, units};
use crate::experiment::xmax::CONFIRMATION_RATIOS;
use crate::values::{percent, rate, rate_of, time, us};
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
        unfinished(answer),
        enough_clients(answer),
    ];
    rules.into_iter().flatten().collect()
}

/// The client was the limit: there is no X_max then.
fn generator_bound(answer: &XmaxAnswer) -> Option<Finding> {
    (!answer.generator_bound.is_empty()).then(|| {
        let measured = rate(answer.search.rate_per_s);
        let maximum = answer.client_maximum_per_s;
        let rate = maximum.map_or(measured, |maximum| Number {
            value: measured.value,
            ..rate_of(&maximum)
        });
        Finding::warning(
            statement!(
                "client-maximum",
                rate = rate,
                is_estimated = maximum.is_some()
            ),
            answer.generator_bound.clone(),
        )
    })
}

/// X_max, and where it was found.
fn x_max(answer: &XmaxAnswer) -> Option<Finding> {
    let x_max = answer.x_max_per_s?;
    let tried = answer.search.tried.iter().map(|tried| {
        let rate = rate(mean(&tried.rates_per_s));
        statement!("rate-with-clients", rate = rate, clients = tried.clients)
    });
    let tried: Vec<Statement> = tried.collect();
    Some(Finding::found(
        statement!(
            "x-max",
            x_max = rate_of(&x_max),
            clients = answer.search.clients
        ),
        vec![statement!("rates-by-clients", rates = tried)],
    ))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The offered rate that was kept just below it.
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

/// The resource that saturates first; where the client was the limit, nothing saturated that could be told.
fn bottleneck(answer: &XmaxAnswer) -> Option<Finding> {
    let of_server = answer.bottleneck.as_ref();
    let first = of_server.filter(|_| answer.generator_bound.is_empty())?;
    let bound = first.saturation_rate_per_s().value;
    let error = error_of(first);
    let mut evidence = vec![
        statement!(
            "demands-of-operation",
            clients = answer.search.clients,
            demands = answer.demands.iter().map(demand).collect::<Vec<_>>()
        ),
        statement!(
            "demand-known-to",
            error = error,
            bound = error.and(answer.bound_per_s.as_ref().map(rate_of))
        ),
    ];
    let value = answer.search.rate_per_s;
    let known = answer.search.estimate_per_s.map(Figure::from);
    let reached = Figure {
        value,
        ..known.unwrap_or(Figure::bare(value))
    };
    evidence.extend(above_bound(&reached, first));
    evidence.extend(spread(first));
    Some(Finding::found(
        statement!(
            "saturates-first",
            resource = subject(&first.name),
            demand = time(first.demand_s),
            units = units(&first.name, first.servers),
            bound = rate(bound),
            share = percent(answer.search.rate_per_s / bound)
        ),
        evidence,
    ))
}

/// The search did not see the end of the growth.
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

/// More clients than needed only wait.
fn enough_clients(answer: &XmaxAnswer) -> Option<Finding> {
    let search = &answer.search;
    let enough = search
        .tried
        .iter()
        .find(|tried| tried.clients == search.enough_clients)?;
    (search.enough_clients < search.clients).then(|| {
        let reached = mean(&enough.rates_per_s);
        Finding::opportunity(
            statement!("enough-clients", clients = search.enough_clients),
            vec![statement!(
                "rate-with-enough-clients",
                rate = rate(reached),
                clients = enough.clients,
                share = percent(reached / search.rate_per_s),
                most = search.clients
            )],
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::told;
    use dyno_record::experiment::{ClientsResult, Demand, Figure, TriedClients};

    fn answer() -> XmaxAnswer {
        let tried = [(1, 8_000.0), (2, 14_000.0), (4, 18_300.0), (8, 18_800.0)];
        let cpu = Demand {
            name: "server CPU".into(),
            servers: 2,
            demand_s: 100e-6,
            uncertainty_ratio: 0.02,
        };
        XmaxAnswer {
            x_max_per_s: Some(Figure {
                value: 18_800.0,
                low: Some(18_500.0),
                high: Some(19_100.0),
            }),
            client_maximum_per_s: None,
            search: ClientsResult {
                clients: 8,
                rate_per_s: 18_800.0,
                counted_runs: 1,
                estimate_per_s: None,
                enough_clients: 4,
                end: ClientsEnd::Plateau,
                tried: tried
                    .iter()
                    .map(|(clients, rate)| TriedClients {
                        clients: *clients,
                        rates_per_s: vec![*rate],
                    })
                    .collect(),
            },
            generator_bound: Vec::new(),
            confirmations: vec![Confirmation {
                ratio: 0.98,
                offered_rate_per_s: 18_424.0,
                rate_per_s: Figure::bare(18_420.0),
                p99_us: Some(Figure::bare(2_500.0)),
                kept: true,
                generator_bound: false,
            }],
            sustained_rate_per_s: Some(18_424.0),
            demands: vec![cpu.clone()],
            bound_per_s: Some(Figure::bound_by(&cpu)),
            bottleneck: Some(cpu),
        }
    }

    fn texts(answer: &XmaxAnswer) -> Vec<String> {
        all(answer)
            .into_iter()
            .map(|finding| finding.statement.to_string())
            .collect()
    }

    #[test]
    fn the_maximum_is_told_with_its_bound_and_what_was_sustained() {
        assert_eq!(
            texts(&answer()),
            [
                "x-max (clients: 8, x_max: 18,800/s in 18,500/s to 19,100/s)",
                "sustained (rate: 18,400/s)",
                "saturates-first (bound: 20,000/s, demand: 100 µs, resource: resource (name: server CPU), share: 94 %, \
                 units: cpus (number: 2))",
                "enough-clients (clients: 4)",
            ]
        );
        let evidence = &all(&answer())[1].evidence[0].to_string();
        let expected = "confirmation (achieved: 18,400/s, generator_bound: false, kept: true, offered: 18,400/s, p99: 2.50 ms, share: 98 %)";
        assert_eq!(evidence, expected);
    }

    #[test]
    fn a_maximum_of_the_client_is_not_called_x_max() {
        let mut answer = answer();
        answer.x_max_per_s = None;
        answer.generator_bound = vec![Statement::recorded("3 of 3 runs say so")];
        let texts = texts(&answer);
        assert!(texts[0].starts_with("client-maximum (is_estimated: false, rate: 18,800/s)"));
        assert!(!texts.iter().any(|text| text.starts_with("x-max")));
        // The server was not driven to what would saturate first.
        assert!(!texts.iter().any(|text| text.contains("saturates-first")));
    }

    #[test]
    fn a_limit_before_the_end_of_the_growth_is_a_warning_of_its_own() {
        let mut answer = answer();
        answer.search.end = ClientsEnd::LimitReached;
        let texts = texts(&answer);
        let may_be = |text: &String| text == "most-clients-reached";
        assert!(texts.iter().any(may_be), "{texts:?}");
    }

    #[test]
    fn an_error_that_is_not_known_is_said_to_be_so() {
        let mut answer = answer();
        let evidence = |answer: &XmaxAnswer| {
            let found = all(answer);
            let mut found = found.into_iter();
            let found = found.find(|one| one.statement.code == "saturates-first");
            told(&found.unwrap().evidence)
        };
        let known = &evidence(&answer)[1];
        let expected = "demand-known-to (bound: 20,000/s in 19,600/s to 20,400/s, error: 2.0 %)";
        assert_eq!(known, expected);
        if let Some(demand) = &mut answer.bottleneck {
            demand.uncertainty_ratio = 1.0;
        }
        let known = &evidence(&answer)[1];
        assert_eq!(known, "demand-known-to");
    }

    #[test]
    fn a_search_without_an_end_and_a_rate_that_is_not_sustained_are_warnings() {
        let mut answer = answer();
        answer.search.end = ClientsEnd::StillGrowing;
        answer.confirmations[0].kept = false;
        answer.sustained_rate_per_s = None;
        let first = texts(&answer);
        let not_tried = |text: &String| text == "none-sustained-yet";
        assert!(first.iter().any(not_tried), "{first:?}");
        let last = answer.confirmations[0].clone();
        answer.confirmations.resize(CONFIRMATION_RATIOS.len(), last);
        let texts = texts(&answer);
        assert!(texts.iter().any(|text| *text == "rate-still-grew"));
        assert!(texts.iter().any(|text| *text == "none-sustained"));
        // What the client could not offer is not the server's failure.
        answer.confirmations[0].generator_bound = true;
        let found = all(&answer);
        let told = found
            .iter()
            .find(|one| one.statement.code == "none-sustained-by-client");
        let first = told.unwrap().evidence[0].to_string();
        assert!(
            first.contains("generator_bound: true, kept: false"),
            "{first}"
        );
    }
}
