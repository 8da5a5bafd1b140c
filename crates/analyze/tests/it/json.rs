//! Results survive a round trip through JSON records.
use dyno_analyze::change_point::{ChangePointSettings, change_points};
use dyno_analyze::comparison::{Pair, compare};
use dyno_analyze::knee::{LoadPoint, knee};
use dyno_analyze::laws;
use dyno_analyze::resampling::Resampling;
use dyno_analyze::search::clients::{ClientsSearch, ClientsSettings, ClientsStep};
use dyno_analyze::search::objective::{ObjectiveSearch, ObjectiveSettings, ObjectiveStep};
use dyno_analyze::uncertainty::histogram::SparseHistogram;
use dyno_analyze::uncertainty::series::{IntervalSample, Series};
use dyno_analyze::usl::{self, UslPoint};
use dyno_record::estimate::Quantity;
use dyno_record::experiment::Statistic;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// Writes and reads `result`, and returns the text.
fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(result: &T) -> String {
    let text = serde_json::to_string(result).unwrap();
    assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), result, "{text}");
    text
}

fn quantity(value: f64) -> Quantity {
    Quantity { value, uncertainty_ratio: 0.01 }
}

/// Rates that grow with the clients, ever more slowly.
fn rate(clients: u32) -> f64 {
    1000.0 * f64::from(clients) / (1.0 + 0.1 * f64::from(clients - 1))
}

#[test]
fn laws_and_fits_survive_json() {
    let check = laws::little(quantity(2.0), quantity(1000.0), quantity(0.002));
    let text = round_trip(&check.unwrap());
    assert!(text.contains(r#""law":"little""#) && text.contains(r#""verdict":"holds""#), "{text}");
    let wiggle = |clients: u32| 1.0 + 0.02 * f64::from(clients % 3);
    let points = [1, 2, 4, 8, 16, 32]
        .map(|clients| UslPoint { clients, rate_per_s: quantity(rate(clients) * wiggle(clients)) });
    round_trip(&usl::fit(&points, Resampling::seeded(1)).unwrap());
    let points = [1, 2, 4, 8, 16, 32].map(|clients| LoadPoint {
        load: f64::from(clients),
        rate_per_s: quantity(rate(clients)),
        response_s: quantity(f64::from(clients) / rate(clients)),
    });
    let text = round_trip(&knee(&points));
    assert!(text.contains(r#""kind":"found""#), "{text}");
}

#[test]
fn comparisons_and_changes_survive_json() {
    let series = |factor: u64| {
        let interval = |i: u64| IntervalSample {
            duration_s: 1.0,
            operations: factor * (1000 + i * 7 % 5),
            times: SparseHistogram::from_counts([(100 / factor + i * 3 % 7, 100)]),
        };
        Series::new(&(0..30).map(interval).collect::<Vec<_>>())
    };
    let pair = Pair { baseline: series(1), candidate: series(2), baseline_first: true };
    let statistic = Statistic::Percentile { percent: 99.0 };
    let found = compare(&[pair], statistic, 0.05, Resampling::seeded(1)).unwrap();
    let text = round_trip(&found);
    assert!(text.contains(r#""verdict":"faster""#), "{text}");
    assert!(text.contains(r#""statistic":{"percentile":{"percent":99.0}}"#), "{text}");
    let history: Vec<f64> = (0..30).map(|i| f64::from(1000 - i / 20 * 300 + i % 4)).collect();
    let changes = change_points(&history, ChangePointSettings::seeded(1));
    assert_eq!(changes.len(), 1);
    round_trip(&changes);
}

#[test]
fn results_of_searches_survive_json() {
    let mut search = ObjectiveSearch::new(ObjectiveSettings::starting_at(500.0));
    let objective = loop {
        match search.step() {
            ObjectiveStep::Measure { rate_per_s } => search.record(rate_per_s < 2000.0),
            ObjectiveStep::Done(result) => break *result,
        }
    };
    round_trip(&objective);
    let mut search = ClientsSearch::new(ClientsSettings::default());
    let clients = loop {
        match search.step() {
            ClientsStep::Measure { clients } => search.record(rate(clients).min(5000.0)),
            ClientsStep::Done(result) => break result,
        }
    };
    round_trip(&clients);
}
