use super::*;
use crate::experiment::figures::resource_name;
use crate::experiment::findings::tests::{experiment as with_runs, figures};
use crate::values::reported;
use dyno_record::estimate::Estimate;
use dyno_record::experiment::{
    AbEnd, AbOptions, DemandRatio, Explanation, Figure, Figures, FindingKind, Options,
    SCHEMA_VERSION, Statistic, Verb,
};
use dyno_record::model::{ResourceKind, RunStatus};
use std::collections::BTreeMap;

pub(in crate::experiment::findings) fn row(
    statistic: Statistic,
    ratio: [f64; 3],
    verdict: ComparisonVerdict,
) -> Comparison {
    Comparison {
        statistic,
        ratio: Estimate { value: ratio[1], low: ratio[0], high: ratio[2], confidence_ratio: 0.95 },
        verdict,
        margin_ratio: 0.05,
        basis: Basis::BetweenRuns,
        pairs: 5,
        pair_deviation_ratio: 0.03,
        degrees_of_freedom: Some(4.0),
        order_effect_ratio: None,
    }
}

fn experiment() -> Experiment {
    Experiment {
        schema_version: SCHEMA_VERSION,
        dyno_version: "0.1.0".into(),
        verb: Verb::Ab,
        question: "which".into(),
        name: "a".into(),
        started_at: "2026-08-22T10:15:00Z".into(),
        status: RunStatus::Complete,
        ended_at: None,
        status_reason: None,
        plan: serde_json::Value::Null,
        options: Options {
            ab: Some(AbOptions { max_pairs: 5, ..AbOptions::default() }),
            ..Options::default()
        },
        axes: Vec::new(),
        environment: None,
        hosts: BTreeMap::new(),
        server_machines: BTreeMap::new(),
        points: Vec::new(),
        answer: None,
        limits: Vec::new(),
        findings: Vec::new(),
        caveats: Vec::new(),
    }
}

pub(in crate::experiment::findings) fn answer(comparisons: Vec<Comparison>) -> AbAnswer {
    AbAnswer {
        deciding: comparisons[0].statistic,
        comparisons,
        pairs_needed: Some(12),
        end: AbEnd::Spent,
        set_aside: Vec::new(),
        demands: Vec::new(),
        costs: Vec::new(),
        explanation: None,
    }
}

fn found(comparisons: Vec<Comparison>) -> Vec<Finding> {
    all(&experiment(), &answer(comparisons))
}

#[test]
fn verdict_is_reported_with_interval_and_agreeing_figures() {
    let p99 = Statistic::Percentile { percent: 99.0 };
    let slower = ComparisonVerdict::Slower;
    let rows =
        vec![row(Statistic::Rate, [0.58, 0.6, 0.62], slower), row(p99, [1.9, 2.0, 2.1], slower)];
    let found = found(rows);
    assert_eq!(
        found[0].statement.to_string(),
        "slower (a: A, b: B, ratio: 0.600 in 0.580 to 0.620, statistic: rate)"
    );
    assert_eq!(
        reported(&found[0].evidence),
        [
            "times-that-of-a (basis: from-pairs (pairs: 5), ratio: 0.600 in 0.580 to 0.620, statistic: rate)"
        ]
    );
    assert_eq!(
        found[1].statement.to_string(),
        "others-with-b (changes: [changed (ratio: 2.00 in 1.90 to 2.10, statistic: percentile-of-response-time (percent: 99))])"
    );
    assert_eq!(found.len(), 2);
}

#[test]
fn too_few_data_are_a_warning_with_what_would_be_needed() {
    let rows = vec![row(Statistic::Rate, [0.9, 1.02, 1.15], ComparisonVerdict::NotEnoughData)];
    let found = found(rows);
    assert_eq!(found[0].kind, FindingKind::Warning);
    assert_eq!(
        found[0].statement.to_string(),
        "not-enough-data-for-difference (a: A, b: B, margin: 5.0 %, ratio: 1.02 in 0.900 to 1.15, statistic: rate)"
    );
    assert!(found[1].statement.number("pairs") == Some(12.0));
    assert_eq!(found[1].evidence[1], statement!("pairs-allowed", most = 5u64));
    assert_eq!(found[1].evidence.len(), 2);
}

#[test]
fn widely_differing_pairs_get_placement_advice_on_shared_cpus() {
    let placed =
        Figures { shares_cpus: false, shared_cpus: None, ..figures(4, None, 1_000.0, 4_000.0) };
    let too_few = ComparisonVerdict::NotEnoughData;
    let answer = answer(vec![row(Statistic::Rate, [0.9, 1.02, 1.15], too_few)]);
    let reported = |figures: Figures| {
        let experiment = with_runs(("server.cache", &["1GiB"]), vec![figures]);
        let all = all(&experiment, &answer);
        let evidence = all.iter().flat_map(|finding| &finding.evidence);
        evidence.filter(|one| one.code == "place-apart").count()
    };
    assert_eq!(reported(figures(4, None, 1_000.0, 4_000.0)), 1);
    assert_eq!(reported(placed), 0);
}

#[test]
fn undecided_figures_need_no_more_pairs() {
    let rows = vec![row(Statistic::MeanTime, [0.9, 1.02, 1.15], ComparisonVerdict::NotEnoughData)];
    let answer = AbAnswer {
        comparisons: rows,
        deciding: Statistic::Percentile { percent: 99.0 },
        pairs_needed: None,
        end: AbEnd::Spent,
        set_aside: Vec::new(),
        demands: Vec::new(),
        costs: Vec::new(),
        explanation: None,
    };
    let found = all(&experiment(), &answer);
    let texts: Vec<String> = found.iter().map(|one| one.statement.to_string()).collect();
    assert_eq!(
        texts,
        [
            "not-enough-data (why: deciding-has-no-interval (operations: 1,000, statistic: percentile-of-response-time \
             (percent: 99)))"
        ]
    );
}

#[test]
fn equal_sides_and_lone_pair_are_reported() {
    let same = ComparisonVerdict::NoDifferenceLargerThan { margin_ratio: 0.05 };
    let mut rows = vec![row(Statistic::Rate, [0.99, 1.0, 1.01], same)];
    rows[0].basis = Basis::WithinRun;
    let texts: Vec<String> = found(rows).into_iter().map(|one| one.statement.to_string()).collect();
    assert!(texts[0].starts_with("no-difference-larger-than (a: A, b: B, margin: 5.0 %"));
    assert!(texts[1].starts_with("single-pair"));
}

/// The CPU time of B relative to A, with the ends of its interval.
pub(in crate::experiment::findings) fn demand(ratio: [f64; 3]) -> DemandRatio {
    DemandRatio {
        name: resource_name(ResourceKind::ServerCpu).into(),
        servers: 2,
        baseline_s: 50e-6,
        candidate_s: 50e-6 * ratio[1],
        ratio: Figure { value: ratio[1], low: Some(ratio[0]), high: Some(ratio[2]) },
    }
}

fn with_demand(
    rate: Comparison,
    demand: DemandRatio,
    explanation: Option<Explanation>,
) -> Vec<String> {
    let answer = AbAnswer {
        deciding: Statistic::Rate,
        comparisons: vec![rate],
        pairs_needed: None,
        end: AbEnd::Spent,
        set_aside: Vec::new(),
        demands: vec![demand],
        costs: Vec::new(),
        explanation,
    };
    all(&experiment(), &answer).into_iter().map(|one| one.statement.to_string()).collect()
}

#[test]
fn difference_names_its_demand_or_that_no_demand_explains_it() {
    let slower = || row(Statistic::Rate, [0.88, 0.9, 0.92], ComparisonVerdict::Slower);
    let name = resource_name(ResourceKind::ServerCpu).to_owned();
    let demand = demand([1.06, 1.1, 1.14]);
    let texts = with_demand(slower(), demand.clone(), Some(Explanation::Demand { name }));
    assert_eq!(
        texts[1],
        "explanation (explanation: needs (baseline: 50.0 µs, candidate: 55.0 µs, ratio: 1.10 in 1.06 to 1.14, resource: server CPU, subject: B))"
    );
    let texts = with_demand(slower(), demand.clone(), Some(Explanation::NoDemand));
    assert!(texts[1].contains("no-demand-explains"), "{texts:?}");
    // The difference is in the demand, not in the rate.
    let unclear = row(Statistic::Rate, [0.9, 1.0, 1.1], ComparisonVerdict::NotEnoughData);
    let texts = with_demand(unclear, demand, None);
    assert!(texts[1].starts_with("only-demands-differ"), "{texts:?}");
}
