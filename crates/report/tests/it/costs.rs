//! Tables of costs on pages of experiments.

use crate::samples::experiment as support;
use dyno_record::experiment::{Cost, CostBasis, CostKind, Costs, Experiment, Figure};
use dyno_record::quantity::Quantity;
use dyno_report::experiment::render;
use dyno_report::{PageFormat, RenderOptions};

fn human(experiment: &Experiment) -> String {
    let options = RenderOptions { width: 150, ..RenderOptions::default() };
    render(experiment, PageFormat::Human, &options).unwrap()
}

/// A value with this relative uncertainty.
fn cost(kind: CostKind, value: f64, error_ratio: f64) -> Cost {
    let value = Figure {
        value,
        low: Some(value * (1.0 - error_ratio)),
        high: Some(value * (1.0 + error_ratio)),
    };
    Cost { kind, value }
}

fn costs(server_us: f64) -> Costs {
    Costs {
        basis: CostBasis::Operation,
        basis_count: 1000,
        values: vec![
            cost(CostKind::ServerCpu, server_us, 0.02),
            cost(CostKind::CacheMisses, 0.25, 0.001),
            cost(CostKind::JournalSyncs, 12.0, 0.001),
            cost(CostKind::SentBytes, 1700.0, 0.001),
            cost(CostKind::Price, 0.014, 0.1),
        ],
        currency: Some("USD".to_owned()),
        changed: None,
        unknown: Vec::new(),
    }
}

/// Each run costs as many µs as its number.
fn with_costs(mut experiment: Experiment) -> Experiment {
    for (number, point) in experiment.points.iter_mut().enumerate() {
        if let Some(figures) = &mut point.figures {
            figures.costs = Some(costs(number as f64 + 1.0));
        }
    }
    experiment
}

/// The lines of the section.
fn section(text: &str) -> Vec<&str> {
    let lines = text.lines().skip_while(|line| *line != "Cost per operation");
    lines.take_while(|line| *line != "Runs").collect()
}

#[test]
fn xmax_page_has_costs_by_clients_and_by_offered_rate() {
    let mut experiment = with_costs(support::highest_rate(false));
    let last = experiment.points.last_mut().and_then(|point| point.figures.as_mut());
    last.unwrap().offered_rate_per_s = Some(17_000.0);
    let clients: Vec<String> = experiment
        .points
        .iter()
        .filter_map(|point| point.figures.as_ref())
        .filter(|figures| figures.offered_rate_per_s.is_none())
        .map(|figures| figures.clients.to_string())
        .collect();
    let text = human(&experiment);
    let lines = section(&text);
    let find = |begin: &str| {
        let found = lines.iter().find(|line| line.trim_start().starts_with(begin));
        *found.unwrap_or_else(|| panic!("{begin}: {text}"))
    };
    let head = find("load");
    assert!(clients.iter().all(|count| head.contains(count.as_str())), "{head} {clients:?}");
    assert!(head.contains("17,000/s offered"), "{head}");
    assert!(find("server CPU").contains("1 µs"), "{text}");
    assert!(find("price of").contains("0.0140 USD"), "{text}");
    assert!(find("cache misses").contains("0.25"), "{text}");
    assert!(find("journal syncs").contains("12 µs"), "{text}");
    assert!(find("server sent").contains("1.66 KiB"), "{text}");
    // An interval of ± 0.1 % around 1.7 kB is too narrow to be shown.
    assert!(!text.contains("1.66–1.66"), "{text}");
    assert!(text.contains("1.96–2.04 µs"), "{text}");
}

#[test]
fn slo_page_has_costs_of_every_rate() {
    let experiment = with_costs(support::objective());
    let rates =
        experiment.points.iter().filter_map(|point| point.figures.as_ref()?.offered_rate_per_s);
    let rates: Vec<f64> = rates.collect();
    assert!(rates.len() > 5, "{rates:?}");
    let text = human(&experiment);
    let lines = section(&text).join("\n");
    for rate in rates {
        let offered = format!("{} offered", Quantity::per_second(rate));
        assert!(lines.contains(&offered), "{offered}: {text}");
    }
}

#[test]
fn without_costs_there_is_no_table() {
    for experiment in [support::highest_rate(false), support::objective()] {
        assert_eq!(section(&human(&experiment)), [""; 0]);
    }
}
