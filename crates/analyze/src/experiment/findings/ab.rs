//! What a comparison of two plans means.

use super::difference::{self, change, explained, only_in_demands, signed};
use super::{finding, opportunity, warning};
use crate::experiment::ab::undecided;
use crate::experiment::ab::{labels, name};
use crate::experiment::words::{count, exact, list, number, percent};
use dyno_record::experiment::{
    AbAnswer, Basis, Comparison, ComparisonVerdict, Experiment, Explanation, Finding,
};

/// An effect of the order from which on it is told, as a share.
const ORDER_RATIO: f64 = 0.02;

/// All rules.
pub(super) fn all(experiment: &Experiment, answer: &AbAnswer) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(set_aside(answer));
    found.extend(verdict(experiment, answer));
    found.extend(demands(experiment, answer));
    found.extend(others(answer));
    found.extend(order_effect(answer));
    found.extend(single_pair(answer));
    found.extend(more_pairs(experiment, answer));
    found
}

fn evidence(row: &Comparison) -> String {
    let basis = match row.basis {
        Basis::BetweenRuns => format!("from {}", count(row.pairs, "pair", "pairs")),
        Basis::WithinRun => "from the windows of one pair".to_owned(),
    };
    format!(
        "{} of B is {} times that of A ({} % interval {} to {}), {basis}",
        name(row.statistic),
        number(row.ratio.value),
        exact(row.ratio.confidence_ratio * 100.0),
        number(row.ratio.low),
        number(row.ratio.high)
    )
}

/// The machine itself was disturbed.
fn set_aside(answer: &AbAnswer) -> Option<Finding> {
    let pairs = &answer.set_aside;
    let (were, does) = match pairs.len() {
        1 => ("was", "does"),
        _ => ("were", "do"),
    };
    let largest = pairs.iter().map(|one| one.stolen_ratio).reduce(f64::max)?;
    Some(warning(
        format!(
            "{} {were} set aside and {does} not count: the hypervisor took CPU time from this machine, which says nothing of \
             A and B",
            count(pairs.len(), "pair", "pairs")
        ),
        vec![format!(
            "up to {} of the CPU time of a run was stolen",
            percent(largest)
        )],
    ))
}

/// The figure that decides.
fn verdict(experiment: &Experiment, answer: &AbAnswer) -> Option<Finding> {
    let Some(first) = answer.decision() else {
        return Some(warning(
            format!("there are not enough data: {}", undecided(answer)?),
            vec![format!(
                "{} of other figures can be compared",
                count(answer.comparisons.len(), "interval", "intervals")
            )],
        ));
    };
    let what = name(first.statistic);
    let [a, b] = labels(experiment);
    let than = match a.as_str() {
        "A" => String::new(),
        a => format!(" than {a}"),
    };
    let sure = format!(
        "{} to {}",
        signed(first.ratio.low),
        signed(first.ratio.high)
    );
    let text = match first.verdict {
        ComparisonVerdict::Faster => {
            format!(
                "{b} is faster{than}: {what} is {} ({sure})",
                change(first.ratio.value)
            )
        }
        ComparisonVerdict::Slower => {
            format!(
                "{b} is slower{than}: {what} is {} ({sure})",
                change(first.ratio.value)
            )
        }
        ComparisonVerdict::NoDifferenceLargerThan { margin_ratio } => format!(
            "there is no difference larger than {}: {what} of {b} differs by {sure}",
            percent(margin_ratio)
        ),
        ComparisonVerdict::NotEnoughData => format!(
            "there are not enough data to tell a difference of {}: {what} of {b} differs by {sure}",
            percent(first.margin_ratio)
        ),
    };
    let make = match first.verdict {
        ComparisonVerdict::NotEnoughData => warning,
        _ => finding,
    };
    Some(make(text, vec![evidence(first)]))
}

/// The demand that explains the difference, or one that differs although the runs do not show it in what decides.
fn demands(experiment: &Experiment, answer: &AbAnswer) -> Option<Finding> {
    let first = answer.decision()?;
    let [_, b] = labels(experiment);
    let rows = &answer.demands;
    let text = match &answer.explanation {
        Some(explanation) => {
            let text = explained(&b, explanation, rows);
            match explanation {
                Explanation::Demand { .. } => format!("{text}, which explains the difference"),
                Explanation::NoDemand | Explanation::NotWatched => text,
            }
        }
        None => format!(
            "{}, although {} does not show a difference",
            only_in_demands(&b, rows)?,
            name(first.statistic)
        ),
    };
    let mut support = difference::evidence(rows);
    if support.is_empty() {
        support.push(evidence(first));
    }
    Some(finding(text, support))
}

/// The other figures, where they say something for certain.
fn others(answer: &AbAnswer) -> Option<Finding> {
    let certain: Vec<&Comparison> = answer
        .comparisons
        .iter()
        .filter(|row| row.statistic != answer.deciding)
        .filter(|row| {
            matches!(
                row.verdict,
                ComparisonVerdict::Faster | ComparisonVerdict::Slower
            )
        })
        .collect();
    let parts: Vec<String> = certain
        .iter()
        .map(|row| format!("{} is {}", name(row.statistic), change(row.ratio.value)))
        .collect();
    let evidence = certain.iter().map(|row| evidence(row)).collect();
    (!certain.is_empty()).then(|| finding(format!("with B {}", list(&parts)), evidence))
}

/// The second run of a pair differs from the first.
fn order_effect(answer: &AbAnswer) -> Option<Finding> {
    let first = answer.comparisons.first()?;
    let effect = first.order_effect_ratio?;
    ((effect - 1.0).abs() > ORDER_RATIO).then(|| {
        warning(
            format!(
                "the second run of a pair differs from the first: {} is {}",
                name(first.statistic),
                change(effect)
            ),
            vec![format!(
                "over {} in both orders the second run had {} times the value of the first; this is taken out of the \
                 ratio, but says that a run changes the bench for the next",
                count(first.pairs, "pair", "pairs"),
                number(effect)
            )],
        )
    })
}

/// One pair says nothing about what differs from run to run.
fn single_pair(answer: &AbAnswer) -> Option<Finding> {
    let first = answer.comparisons.first()?;
    (first.basis == Basis::WithinRun).then(|| {
        warning(
            "a single pair of runs knows nothing of what differs from run to run".to_owned(),
            vec![format!(
                "the intervals rest on the windows of {} alone",
                count(first.pairs, "pair", "pairs")
            )],
        )
    })
}

/// How many pairs would be enough for the figure that decides.
fn more_pairs(experiment: &Experiment, answer: &AbAnswer) -> Option<Finding> {
    let first = answer.decision()?;
    if first.verdict != ComparisonVerdict::NotEnoughData {
        return None;
    }
    let deviation = format!(
        "single pairs differ by {} from each other, and {} were run",
        percent(first.pair_deviation_ratio),
        count(first.pairs, "pair", "pairs")
    );
    let limit = experiment
        .options
        .get("max_pairs")
        .and_then(|most| most.as_u64());
    let limit = limit.map(|most| format!("at most {most} pairs were allowed"));
    let mut figures = experiment.points.iter().flat_map(|point| &point.figures);
    // What runs already is not placed by us.
    let is_started = experiment.recorded_plan().server.kind.as_deref() != Some("uri");
    let apart = (is_started && figures.any(|figures| figures.shares_cpus)).then(|| {
        "client and server take each other's CPUs; where each has its own, such as by `--placement 'cores=1 client=0'` on two CPUs, pairs differ less"
            .to_owned()
    });
    let text = match answer.pairs_needed {
        Some(pairs) => format!(
            "about {} would tell whether there is a difference of {}",
            count(pairs as usize, "pair", "pairs"),
            percent(first.margin_ratio)
        ),
        None => format!(
            "no reasonable number of pairs would tell a difference of {}: make the bench quieter, or the runs longer",
            percent(first.margin_ratio)
        ),
    };
    Some(opportunity(
        text,
        std::iter::once(deviation)
            .chain(limit)
            .chain(apart)
            .collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::figures::resource_name;
    use crate::experiment::findings::tests::{experiment as with_runs, figures};
    use dyno_record::estimate::Estimate;
    use dyno_record::experiment::{
        AbEnd, DemandRatio, Figure, Figures, FindingKind, SCHEMA_VERSION, Statistic, Verb,
    };
    use dyno_record::model::{ResourceKind, RunStatus};

    fn row(statistic: Statistic, ratio: [f64; 3], verdict: ComparisonVerdict) -> Comparison {
        Comparison {
            statistic,
            ratio: Estimate {
                value: ratio[1],
                low: ratio[0],
                high: ratio[2],
                confidence_ratio: 0.95,
            },
            verdict,
            margin_ratio: 0.05,
            basis: Basis::BetweenRuns,
            pairs: 5,
            pair_deviation_ratio: 0.03,
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
            status_reason: None,
            plan: serde_json::Value::Null,
            options: [("max_pairs".to_owned(), 5.into())].into(),
            axes: Vec::new(),
            points: Vec::new(),
            answer: None,
            findings: Vec::new(),
            caveats: Vec::new(),
        }
    }

    fn answer(comparisons: Vec<Comparison>) -> AbAnswer {
        AbAnswer {
            deciding: comparisons[0].statistic,
            comparisons,
            pairs_needed: Some(12),
            end: AbEnd::Spent,
            set_aside: Vec::new(),
            demands: Vec::new(),
            explanation: None,
        }
    }

    fn found(comparisons: Vec<Comparison>) -> Vec<Finding> {
        all(&experiment(), &answer(comparisons))
    }

    #[test]
    fn a_verdict_is_told_with_its_interval_and_the_figures_that_agree() {
        let p99 = Statistic::Percentile { percent: 99.0 };
        let slower = ComparisonVerdict::Slower;
        let rows = vec![
            row(Statistic::Rate, [0.58, 0.6, 0.62], slower),
            row(p99, [1.9, 2.0, 2.1], slower),
        ];
        let found = found(rows);
        assert_eq!(
            found[0].text,
            "B is slower: the rate is 40 % lower (−42 % to −38 %)"
        );
        assert_eq!(
            found[0].evidence,
            ["the rate of B is 0.600 times that of A (95 % interval 0.580 to 0.620), from 5 pairs"]
        );
        assert_eq!(
            found[1].text,
            "with B the p99 of the response time is 100 % higher"
        );
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn too_few_data_are_a_warning_with_what_would_be_needed() {
        let rows = vec![row(
            Statistic::Rate,
            [0.9, 1.02, 1.15],
            ComparisonVerdict::NotEnoughData,
        )];
        let found = found(rows);
        assert_eq!(found[0].kind, FindingKind::Warning);
        assert_eq!(
            found[0].text,
            "there are not enough data to tell a difference of 5.0 %: the rate of B differs by −10 % to +15 %"
        );
        assert!(found[1].text.starts_with("about 12 pairs would tell"));
        assert_eq!(found[1].evidence[1], "at most 5 pairs were allowed");
        assert_eq!(found[1].evidence.len(), 2);
    }

    #[test]
    fn pairs_that_differ_by_much_are_told_what_makes_them_differ_less() {
        let placed = Figures {
            shares_cpus: false,
            ..figures(4, None, 1_000.0, 4_000.0)
        };
        let too_few = ComparisonVerdict::NotEnoughData;
        let answer = answer(vec![row(Statistic::Rate, [0.9, 1.02, 1.15], too_few)]);
        let told = |figures: Figures| {
            let experiment = with_runs(("server.cache", &["1GiB"]), vec![figures]);
            let all = all(&experiment, &answer);
            let evidence = all.iter().flat_map(|finding| &finding.evidence);
            evidence.filter(|line| line.contains("--placement")).count()
        };
        assert_eq!(told(figures(4, None, 1_000.0, 4_000.0)), 1);
        assert_eq!(told(placed), 0);
    }

    #[test]
    fn figures_that_doesnot_decide_ask_for_no_pairs() {
        let rows = vec![row(
            Statistic::MeanTime,
            [0.9, 1.02, 1.15],
            ComparisonVerdict::NotEnoughData,
        )];
        let answer = AbAnswer {
            comparisons: rows,
            deciding: Statistic::Percentile { percent: 99.0 },
            pairs_needed: None,
            end: AbEnd::Spent,
            set_aside: Vec::new(),
            demands: Vec::new(),
            explanation: None,
        };
        let found = all(&experiment(), &answer);
        let texts: Vec<&str> = found.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "there are not enough data: the p99 of the response time decides, and it has no interval: it takes some \
                 recording windows and 1,000 operations of each side"
            ]
        );
    }

    #[test]
    fn equal_sides_an_order_effect_and_a_lone_pair_are_told() {
        let same = ComparisonVerdict::NoDifferenceLargerThan { margin_ratio: 0.05 };
        let mut rows = vec![row(Statistic::Rate, [0.99, 1.0, 1.01], same)];
        rows[0].order_effect_ratio = Some(0.93);
        rows[0].basis = Basis::WithinRun;
        let texts: Vec<String> = found(rows).into_iter().map(|one| one.text).collect();
        assert!(texts[0].starts_with("there is no difference larger than 5.0 %"));
        assert!(texts[1].ends_with("the rate is 7.0 % lower"), "{texts:?}");
        assert!(texts[2].starts_with("a single pair"));
    }

    /// The CPU time of B relative to A, with the ends of its interval.
    fn demand(ratio: [f64; 3]) -> DemandRatio {
        DemandRatio {
            name: resource_name(ResourceKind::ServerCpu).into(),
            servers: 2,
            baseline_s: 50e-6,
            candidate_s: 50e-6 * ratio[1],
            ratio: Figure {
                value: ratio[1],
                low: Some(ratio[0]),
                high: Some(ratio[2]),
            },
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
            explanation,
        };
        let found = all(&experiment(), &answer).into_iter();
        found.map(|one| one.text).collect()
    }

    #[test]
    fn the_demand_that_explains_a_difference_is_told_and_so_is_that_none_does() {
        let slower = || {
            row(
                Statistic::Rate,
                [0.88, 0.9, 0.92],
                ComparisonVerdict::Slower,
            )
        };
        let name = resource_name(ResourceKind::ServerCpu).to_owned();
        let demand = demand([1.06, 1.1, 1.14]);
        let texts = with_demand(slower(), demand.clone(), Some(Explanation::Demand { name }));
        assert_eq!(
            texts[1],
            "B needs 10 % more server CPU per operation (55.0 µs instead of 50.0 µs), which explains the difference"
        );
        let texts = with_demand(slower(), demand.clone(), Some(Explanation::NoDemand));
        assert!(
            texts[1].starts_with("no service demand explains it"),
            "{texts:?}"
        );
        // Not the rate, but what it rests on.
        let unclear = row(
            Statistic::Rate,
            [0.9, 1.0, 1.1],
            ComparisonVerdict::NotEnoughData,
        );
        let texts = with_demand(unclear, demand, None);
        assert!(
            texts[1].ends_with("although the rate does not show a difference"),
            "{texts:?}"
        );
    }

    #[test]
    fn a_demand_that_does_not_differ_for_certain_is_not_told() {
        let unclear = row(
            Statistic::Rate,
            [0.9, 1.0, 1.1],
            ComparisonVerdict::NotEnoughData,
        );
        let texts = with_demand(unclear, demand([0.97, 1.1, 1.25]), None);
        assert!(
            texts.iter().all(|text| !text.contains("needs")),
            "{texts:?}"
        );
    }
}
