//! What a search for the highest rate means.

use super::saturation::ERROR_NOT_KNOWN;
use super::view::{spread, subject, units};
use super::{finding, opportunity, warning};
use crate::experiment::words::{count, interval, interval_or_none, list, percent, rate, time};
use crate::experiment::xmax::CONFIRMATION_RATIOS;
use dyno_record::experiment::{ClientsEnd, Confirmation, Finding, XmaxAnswer};

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

fn clients(number: u32) -> String {
    count(number as usize, "client", "clients")
}

/// The client was the limit: there is no X_max then.
fn generator_bound(answer: &XmaxAnswer) -> Option<Finding> {
    (!answer.generator_bound.is_empty()).then(|| {
        warning(
            format!(
                "the load generator was the limit: {}{} is what the client can do, and X_max of the server is at least that",
                rate(answer.search.rate_per_s),
                answer
                    .client_maximum_per_s
                    .map_or(String::new(), |maximum| interval_or_none(&maximum, rate))
            ),
            answer.generator_bound.clone(),
        )
    })
}

/// X_max, and where it was found.
fn x_max(answer: &XmaxAnswer) -> Option<Finding> {
    let x_max = answer.x_max_per_s?;
    let tried: Vec<String> = answer
        .search
        .tried
        .iter()
        .map(|tried| format!("{} with {}", rate(mean(&tried.rates_per_s)), tried.clients))
        .collect();
    Some(finding(
        format!(
            "X_max is {}{}, with {}",
            rate(x_max.value),
            interval_or_none(&x_max, rate),
            clients(answer.search.clients)
        ),
        vec![format!("rates by the number of clients: {}", list(&tried))],
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
    let mut evidence: Vec<String> = answer.confirmations.iter().map(confirmation).collect();
    if answer.sustained_rate_per_s.is_some() {
        evidence.push(
            "each rate was offered in one run, so that the boundary between them has no interval"
                .to_owned(),
        );
    }
    Some(match answer.sustained_rate_per_s {
        Some(kept) => finding(
            format!(
                "{} are sustained when they are offered from outside",
                rate(kept)
            ),
            evidence,
        ),
        None => {
            let is_client = answer.confirmations.iter().any(|one| one.generator_bound);
            let all_tried = answer.confirmations.len() >= CONFIRMATION_RATIOS.len();
            let text = match (all_tried, is_client) {
                (false, _) => {
                    "no offered rate was sustained yet, and the lower ones were not tried"
                }
                (true, true) => {
                    "none of the offered rates below it was sustained, but the load generator was the limit in some of \
                     these runs: they do not tell whether the server sustains them"
                }
                (true, false) => {
                    "none of the offered rates below it was sustained: X_max holds for a closed loop alone"
                }
            };
            warning(text.to_owned(), evidence)
        }
    })
}

fn confirmation(one: &Confirmation) -> String {
    let p99 = one.p99_us.map_or(String::new(), |p99| {
        format!(", with a p99 of {}", time(p99.value * 1e-6))
    });
    let verdict = match (one.kept, one.generator_bound) {
        (true, _) => "kept",
        (false, true) => "not kept, with the load generator as the limit",
        (false, false) => "not kept",
    };
    format!(
        "{} offered ({} of the maximum): {} achieved{}{p99}: {verdict}",
        rate(one.offered_rate_per_s),
        percent(one.ratio),
        rate(one.rate_per_s.value),
        interval(&one.rate_per_s, rate)
    )
}

/// The resource that saturates first; where the client was the limit, nothing saturated that could be told.
fn bottleneck(answer: &XmaxAnswer) -> Option<Finding> {
    let of_server = answer.bottleneck.as_ref();
    let demand = of_server.filter(|_| answer.generator_bound.is_empty())?;
    let bound = demand.saturation_rate_per_s().value;
    let measured = answer.search.rate_per_s;
    let others: Vec<String> = answer
        .demands
        .iter()
        .map(|demand| format!("{} {}", subject(&demand.name), time(demand.demand_s)))
        .collect();
    let mut evidence = vec![format!(
        "demands of an operation {}: {}",
        with(answer),
        list(&others)
    )];
    evidence.push(match demand.uncertainty_ratio < 1.0 {
        true => format!(
            "the demand is known to ± {}{}",
            percent(demand.uncertainty_ratio),
            bound_interval(answer)
        ),
        false => format!("the demand is known, {ERROR_NOT_KNOWN}"),
    });
    evidence.extend(spread(demand));
    Some(finding(
        format!(
            "{} saturates first: {} per operation on {} bound the rate at {}; the measured maximum is {} of it",
            subject(&demand.name),
            time(demand.demand_s),
            units(&demand.name, demand.servers),
            rate(bound),
            percent(measured / bound)
        ),
        evidence,
    ))
}

/// `, and the bound with it (95 % interval 19,600/s to 20,400/s)`
fn bound_interval(answer: &XmaxAnswer) -> String {
    answer.bound_per_s.map_or(String::new(), |bound| {
        format!(", and the bound with it{}", interval(&bound, rate))
    })
}

fn with(answer: &XmaxAnswer) -> String {
    format!("with {}", clients(answer.search.clients))
}

/// The search did not see the end of the growth.
fn unfinished(answer: &XmaxAnswer) -> Option<Finding> {
    let measured: usize = answer
        .search
        .tried
        .iter()
        .map(|t| t.rates_per_s.len())
        .sum();
    let evidence = format!(
        "the search made {} with up to {}",
        count(measured, "run", "runs"),
        clients(answer.search.tried.last()?.clients)
    );
    let text = match answer.search.end {
        ClientsEnd::Plateau => return None,
        ClientsEnd::StillGrowing => {
            "the rate still grew with the largest number of clients: the maximum is higher, raise `--max-clients`"
        }
        ClientsEnd::LimitReached => {
            "the largest number of clients was reached before two doublings in a row brought too little: the maximum may be \
             higher, `--max-clients` allows more"
        }
        ClientsEnd::OutOfMeasurements => {
            "the search ended before the rate was the same with neighbouring numbers of clients"
        }
    };
    Some(warning(text.to_owned(), vec![evidence]))
}

/// More clients than needed only wait.
fn enough_clients(answer: &XmaxAnswer) -> Option<Finding> {
    let search = &answer.search;
    let enough = search
        .tried
        .iter()
        .find(|tried| tried.clients == search.enough_clients)?;
    (search.enough_clients < search.clients).then(|| {
        opportunity(
            format!(
                "{} nearly enough: more of them wait",
                count(search.enough_clients as usize, "client is", "clients are")
            ),
            vec![format!(
                "{} with {}, {} of the rate {}",
                rate(mean(&enough.rates_per_s)),
                clients(enough.clients),
                percent(mean(&enough.rates_per_s) / search.rate_per_s),
                with(answer)
            )],
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
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
            .map(|finding| finding.text)
            .collect()
    }

    #[test]
    fn the_maximum_is_told_with_its_bound_and_what_was_sustained() {
        assert_eq!(
            texts(&answer()),
            [
                "X_max is 18,800/s (95 % interval 18,500/s to 19,100/s), with 8 clients",
                "18,400/s are sustained when they are offered from outside",
                "the server's CPU saturates first: 100 µs per operation on 2 CPUs bound the rate at 20,000/s; the \
                 measured maximum is 94 % of it",
                "4 clients are nearly enough: more of them wait",
            ]
        );
        let evidence = &all(&answer())[1].evidence[0];
        let expected = "18,400/s offered (98 % of the maximum): 18,400/s achieved, with a p99 of 2.50 ms: kept";
        assert_eq!(evidence, expected);
    }

    #[test]
    fn a_maximum_of_the_client_is_not_called_x_max() {
        let mut answer = answer();
        answer.x_max_per_s = None;
        answer.generator_bound = vec!["3 of 3 runs say so".into()];
        let texts = texts(&answer);
        assert!(
            texts[0].starts_with(
                "the load generator was the limit: 18,800/s is what the client can do"
            )
        );
        assert!(!texts.iter().any(|text| text.starts_with("X_max is")));
        // The server was not driven to what would saturate first.
        assert!(!texts.iter().any(|text| text.contains("saturates first")));
    }

    #[test]
    fn a_limit_before_the_end_of_the_growth_is_a_warning_of_its_own() {
        let mut answer = answer();
        answer.search.end = ClientsEnd::LimitReached;
        let texts = texts(&answer);
        let may_be = |text: &String| text.contains("the maximum may be higher, `--max-clients`");
        assert!(texts.iter().any(may_be), "{texts:?}");
    }

    #[test]
    fn an_error_that_is_not_known_is_said_to_be_so() {
        let mut answer = answer();
        let evidence = |answer: &XmaxAnswer| {
            let found = all(answer);
            let mut found = found.into_iter();
            let found = found.find(|one| one.text.contains("saturates first"));
            found.unwrap().evidence
        };
        let told = &evidence(&answer)[1];
        let expected = "the demand is known to ± 2.0 %, and the bound with it (95 % interval 19,600/s to 20,400/s)";
        assert_eq!(told, expected);
        if let Some(demand) = &mut answer.bottleneck {
            demand.uncertainty_ratio = 1.0;
        }
        let told = &evidence(&answer)[1];
        assert!(
            told.contains("neither it nor the bound has an interval"),
            "{told}"
        );
    }

    #[test]
    fn a_search_without_an_end_and_a_rate_that_is_not_sustained_are_warnings() {
        let mut answer = answer();
        answer.search.end = ClientsEnd::StillGrowing;
        answer.confirmations[0].kept = false;
        answer.sustained_rate_per_s = None;
        let first = texts(&answer);
        let not_tried = |text: &String| text.contains("the lower ones were not tried");
        assert!(first.iter().any(not_tried), "{first:?}");
        let last = answer.confirmations[0].clone();
        answer.confirmations.resize(CONFIRMATION_RATIOS.len(), last);
        let texts = texts(&answer);
        assert!(
            texts
                .iter()
                .any(|text| text.contains("the maximum is higher, raise"))
        );
        assert!(
            texts
                .iter()
                .any(|text| text.contains("X_max holds for a closed loop alone"))
        );
        // What the client could not offer is not the server's failure.
        answer.confirmations[0].generator_bound = true;
        let found = all(&answer);
        let told = found.iter().find(|one| one.text.contains("none of the"));
        let told = told.unwrap();
        assert!(told.text.contains("the load generator was the limit"));
        assert!(!told.text.contains("closed loop alone"));
        assert!(told.evidence[0].ends_with("not kept, with the load generator as the limit"));
    }
}
