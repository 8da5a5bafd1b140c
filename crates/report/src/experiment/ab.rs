//! Reports of a comparison of two plans.

use super::difference::{self, Remedy, limits_table, tiles};
use super::figure::seconds;
use super::parts::Parts;
use super::ratios::{AXIS, basis, chart, demand_change, ratios, statistic};
use crate::caveat::{CaveatBook, Topic};
use crate::costs;
use crate::page::rows::{RowValue, RowsChart};
use crate::page::table::{Cell, Table, Tone};
use crate::page::{Fact, Section, charts_of};
use crate::terms::terms;
use dyno_analyze::experiment::ab::{MOST_REASONABLE_PAIRS, labels, servers};
use dyno_record::experiment::{
    AbAnswer, AbEnd, Basis, Comparison, CostRatio, Experiment, Explanation, Figures, PERCENTILES,
    Side, Statistic,
};
use dyno_record::model::{Caveat, milliseconds};
use dyno_record::quantity::Quantity;

/// Largest number of pairs shown individually.
const MOST_PAIRS: usize = 40;

/// All parts of the page of a comparison.
pub(super) fn parts(experiment: &Experiment, answer: &AbAnswer, book: &CaveatBook) -> Parts {
    let marks = [Topic::Rate, Topic::Latency].map(|topic| book.marks(topic, None));
    Parts {
        headline: tiles(answer, &marks, |side, one| value_of_side(experiment, answer, side, one)),
        facts: facts(experiment, answer),
        sections: section(experiment, answer).into_iter().collect(),
        definitions: terms(&["ab", "verdict", "service-demand"]),
    }
}

/// The caveats that can change the decision.
pub(super) fn relevant_caveats(experiment: &Experiment) -> Vec<Caveat> {
    let options = experiment.options.ab.as_ref();
    let of_other_plan = options.filter(|own| own.plan_b != experiment.name).map(|_| "data");
    let set = options.into_iter().flat_map(|own| own.set_a.iter().chain(&own.set_b));
    let keys = set.map(|setting| setting.split('=').next().unwrap_or(setting));
    difference::relevant_caveats(&experiment.caveats, keys.chain(of_other_plan))
}

fn facts(experiment: &Experiment, answer: &AbAnswer) -> Vec<Fact> {
    let Some(options) = &experiment.options.ab else {
        return Vec::new();
    };
    let side = |name: &str, set: &[String], server: Option<String>| {
        let with = if set.is_empty() { String::new() } else { format!(" with {}", set.join(", ")) };
        let on = server.map_or(String::new(), |server| format!(", on {server}"));
        format!("{name}{with}{on}")
    };
    let [server_a, server_b] = servers(experiment);
    let mut facts = vec![
        Fact::new("A", side(&experiment.name, &options.set_a, server_a)),
        Fact::new("B", side(&options.plan_b, &options.set_b, server_b)),
    ];
    if let Some(first) = answer.comparisons.first() {
        let margin = Quantity::ratio(first.margin_ratio);
        facts.push(Fact::new("Difference of no interest", margin));
        let end = match answer.end {
            AbEnd::Precise => "the interval was narrow enough",
            AbEnd::Spent => "the pairs or the time were used up",
        };
        facts.push(Fact::new("Pairs", format!("{}; {end}", first.pairs)));
    }
    facts
}

fn section(experiment: &Experiment, answer: &AbAnswer) -> Option<Section> {
    let rows = &answer.comparisons;
    let first = rows.first()?;
    let mut notes =
        vec!["The values of A and B are geometric means over the runs of each.".to_owned()];
    if first.basis == Basis::BetweenRuns {
        notes.insert(0, basis(rows));
    }
    if let Some(effect) = first.order_effect_ratio {
        notes.push(format!(
            "The second run of a pair differed by {} from the first; the change is corrected for this.",
            difference::change(effect)
        ));
    }
    let titles = difference::titles(labels(experiment));
    let charts = [Some(ratios(rows)), pairs(experiment, answer, first)];
    let limits = &experiment.limits;
    Some(Section {
        title: "B against A".into(),
        charts: charts_of(charts.into_iter().flatten()),
        tables: std::iter::once(difference::table(answer, &titles, limits, |side, one| {
            value_of_side(experiment, answer, side, one)
        }))
        .chain(limits_table(limits))
        .chain(demands(answer, &titles))
        .chain(costs::comparison(&other_costs(answer), &titles))
        .collect(),
        notes,
        ..Section::default()
    })
}

/// The service demands of both sides.
pub(super) fn demands(answer: &AbAnswer, [a, b]: &[String; 2]) -> Option<Table> {
    let explains = |name: &str| match &answer.explanation {
        Some(Explanation::Demand { name: explaining }) => explaining == name,
        _ => false,
    };
    Table::of(&answer.demands)
        .text("service demand", |demand| Cell::new(&demand.name, Tone::Strong))
        .number(a, 120, |demand| seconds(demand.baseline_s))
        .number(b, 130, |demand| seconds(demand.candidate_s))
        .number("change", 200, demand_change)
        .text("notes", |demand| if explains(&demand.name) { "explains the difference" } else { "" })
        .known("Service demands")
}

/// The costs that are not also service demands, whose intervals have another basis.
pub(super) fn other_costs(answer: &AbAnswer) -> Vec<CostRatio> {
    let is_demand = |one: &&CostRatio| {
        answer.demands.iter().any(|demand| demand.name == costs::label(one.kind))
    };
    answer.costs.iter().filter(|one| !is_demand(one)).cloned().collect()
}

/// The typical value of a side over its counted runs.
fn value_of_side(
    experiment: &Experiment,
    answer: &AbAnswer,
    side: Side,
    statistic: Statistic,
) -> String {
    let counts = |place: usize| {
        let mut set_aside = answer.set_aside.iter();
        !set_aside.any(|one| one.pair as usize == place / 2)
    };
    let points = experiment.points.iter().enumerate();
    let points = points.filter(|(place, point)| counts(*place) && point.side == Some(side));
    typical(points.filter_map(|(_, point)| point.figures.as_ref()), statistic)
}

/// What shows the variation between runs.
const ONE_PAIR: &str = "make more pairs, such as with `--max-pairs 20`";

/// The answer in a sentence.
pub(super) fn sentence(experiment: &Experiment, answer: &AbAnswer) -> String {
    let first = answer.comparisons.first();
    let is_of_one_pair = first.is_some_and(|row| row.basis == Basis::WithinRun);
    let remedy = Remedy {
        of_one_run: ONE_PAIR,
        more: match answer.pairs_needed {
            _ if is_of_one_pair => ONE_PAIR.to_owned(),
            Some(pairs) if pairs > MOST_REASONABLE_PAIRS => no_reasonable_number("pairs"),
            Some(pairs) => {
                let time = time_of_pairs(experiment, pairs);
                format!("about {}{time} would", Quantity::counted(pairs.into(), "pair"))
            }
            None if answer.decision().is_some() => no_reasonable_number("pairs"),
            None => "longer runs or more pairs would".to_owned(),
        },
    };
    difference::sentence(answer, &labels(experiment), &experiment.limits, &remedy)
}

/// What decides a comparison that would need too many pairs or runs.
pub(super) fn no_reasonable_number(what: &str) -> String {
    format!("no reasonable number of {what} would; use a quieter machine or longer runs")
}

/// `, 50 min,`: the expected time of this many pairs, from the time of the pairs so far; empty if it is unknown.
fn time_of_pairs(experiment: &Experiment, pairs: u32) -> String {
    let ended_at = experiment.ended_at.as_deref();
    let between = milliseconds(&experiment.started_at).zip(ended_at.and_then(milliseconds));
    let done = experiment.points.iter().filter(|point| point.figures.is_some()).count() / 2;
    between.filter(|_| done > 0).map_or(String::new(), |(start_ms, end_ms)| {
        let each_s = (end_ms - start_ms) as f64 / 1e3 / done as f64;
        let minutes = (each_s * f64::from(pairs) / 60.0).ceil();
        format!(", {},", Quantity::seconds(minutes * 60.0).brief())
    })
}

/// The geometric mean over runs; empty without any.
pub(super) fn typical<'a>(runs: impl Iterator<Item = &'a Figures>, statistic: Statistic) -> String {
    let logarithms: Vec<f64> = runs.filter_map(|run| value(run, statistic)).map(f64::ln).collect();
    let count = logarithms.len() as f64;
    let mean = (logarithms.iter().sum::<f64>() / count).exp();
    if logarithms.is_empty() { String::new() } else { shown(mean, statistic) }
}

/// A value with its unit.
pub(super) fn shown(value: f64, statistic: Statistic) -> String {
    match statistic {
        Statistic::Rate => Quantity::per_second(value).to_string(),
        _ => Quantity::microseconds(value).to_string(),
    }
}

fn value(figures: &Figures, statistic: Statistic) -> Option<f64> {
    match statistic {
        Statistic::Rate => Some(figures.rate_per_s.value),
        Statistic::MeanTime => Some(figures.response_mean_us.value),
        Statistic::Percentile { percent } => {
            let (name, _) = PERCENTILES.iter().find(|(_, level)| *level == percent)?;
            figures.percentile(name).map(|figure| figure.value)
        }
    }
}

/// The ratio of each pair in the deciding figure, in order of time.
fn pairs(experiment: &Experiment, answer: &AbAnswer, first: &Comparison) -> Option<RowsChart> {
    let of = |place: usize| {
        let point = experiment.points.get(place)?;
        Some((point.side?, value(point.figures.as_ref()?, first.statistic)?))
    };
    let values: Vec<RowValue> = (0..experiment.points.len() / 2)
        .filter_map(|pair| {
            let (one, other) = (of(2 * pair)?, of(2 * pair + 1)?);
            let (order, ratio) = match (one.0, other.0) {
                (Side::A, Side::B) => ("AB", other.1 / one.1),
                (Side::B, Side::A) => ("BA", one.1 / other.1),
                _ => return None,
            };
            let counts = !answer.set_aside.iter().any(|one| one.pair as usize == pair);
            let detail = if counts { "" } else { "set aside" };
            Some(RowValue {
                label: format!("pair {}, {order}", pair + 1),
                value_text: difference::change(ratio),
                detail: detail.to_owned(),
                value: ratio,
                ..RowValue::default()
            })
        })
        .collect();
    let title = format!("Pair by pair: {}", statistic(first.statistic));
    (1 < values.len() && values.len() <= MOST_PAIRS).then(|| {
        chart(
            &title,
            "The change in each pair in the order of time, with the order of its runs. A drift over the rows, or a \
             difference between the orders, comes from the machines.",
            (AXIS, difference::change),
            first.margin_ratio,
            values,
        )
    })
}
