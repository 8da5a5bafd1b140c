use super::*;
use crate::values::reported;
use dyno_record::experiment::{ClientsResult, Demand, Figure, TriedClients};

pub(in crate::experiment::findings) fn answer() -> XmaxAnswer {
    let tried = [(1, 8_000.0), (2, 14_000.0), (4, 18_300.0), (8, 18_800.0)];
    let cpu = Demand {
        name: "server CPU".into(),
        servers: 2,
        quota: None,
        demand_s: 100e-6,
        uncertainty_ratio: 0.02,
    };
    XmaxAnswer {
        x_max_per_s: Some(Figure { value: 18_800.0, low: Some(18_500.0), high: Some(19_100.0) }),
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
                .map(|(clients, rate)| TriedClients { clients: *clients, rates_per_s: vec![*rate] })
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
        disk: None,
        bound_per_s: Some(Figure::bound_by(&cpu)),
        bottleneck: Some(cpu),
    }
}

fn texts(answer: &XmaxAnswer) -> Vec<String> {
    all(answer).into_iter().map(|finding| finding.statement.to_string()).collect()
}

#[test]
fn maximum_is_reported_with_its_bound_and_sustained_rate() {
    assert_eq!(
        texts(&answer()),
        [
            "x-max (clients: 8, x_max: 18,800/s in 18,500/s to 19,100/s)",
            "sustained (rate: 18,400/s)",
            "bottleneck (bound: 20,000/s, demand: 100 µs, is_highest_rate: true, is_near: true, rate: 18,800/s, resource: resource \
             (name: server CPU), share: 94 %, units: cpus (number: 2))",
        ]
    );
    let evidence = &all(&answer())[1].evidence[0].to_string();
    let expected = "confirmation (achieved: 18,400/s, generator_bound: false, kept: true, offered: 18,400/s, p99: 2.50 ms, share: 98 %)";
    assert_eq!(evidence, expected);
}

#[test]
fn low_maximum_does_not_claim_that_nothing_saturated() {
    let mut answer = answer();
    answer.search.rate_per_s = 0.69 * 20_000.0;
    let found = &texts(&answer)[2];
    assert!(found.starts_with("bottleneck "), "{found}");
    // The utilizations are unknown, so the text may only compare the known bounds.
    assert!(found.contains("is_near: false") && found.contains("is_of_known: true"), "{found}");
}

#[test]
fn client_limited_maximum_is_not_called_x_max() {
    let mut answer = answer();
    answer.x_max_per_s = None;
    answer.generator_bound = vec![Statement::recorded("3 of 3 runs say so")];
    let texts = texts(&answer);
    assert!(texts[0].starts_with("client-maximum (is_estimated: false, rate: 18,800/s)"));
    assert!(!texts.iter().any(|text| text.starts_with("x-max")));
    // The server did not reach the load at which it would saturate.
    assert!(!texts.iter().any(|text| text.contains("bottleneck")));
}

#[test]
fn unknown_error_is_reported_as_unknown() {
    let mut answer = answer();
    let evidence = |answer: &XmaxAnswer| {
        let found = all(answer);
        let mut found = found.into_iter();
        let found = found.find(|one| one.statement.code == "bottleneck");
        reported(&found.unwrap().evidence)
    };
    let known = &evidence(&answer)[0];
    assert!(known.starts_with("demand-is-busy-time-per-operation"), "{known}");
    assert!(known.contains("error: 2.0 %"), "{known}");
    if let Some(demand) = &mut answer.bottleneck {
        demand.uncertainty_ratio = 1.0;
    }
    let known = &evidence(&answer)[0];
    assert!(!known.contains("error"), "{known}");
}
