//! Reports of a comparison of two plans.

use super::figure::seconds;
use super::parts::Parts;
use super::ratios::{AXIS, basis, chart, demand_ratio, figures, ratios, statistic, table_of};
use crate::caveat::{CaveatBook, Topic};
use crate::costs;
use crate::page::rows::{RowValue, RowsChart};
use crate::page::table::{Cell, Table, Tone};
use crate::page::{Fact, Section, charts_of};
use crate::terms::terms;
use dyno_analyze::experiment::ab::{labels, servers};
use dyno_record::experiment::{
    AbAnswer, AbEnd, Comparison, Experiment, Explanation, Figures, PERCENTILES, Side, Statistic,
};
use dyno_record::quantity::Quantity;

/// Largest number of pairs shown individually.
const MOST_PAIRS: usize = 40;

/// All parts of the page of a comparison.
pub(super) fn parts(experiment: &Experiment, answer: &AbAnswer, book: &CaveatBook) -> Parts {
    let rows = &answer.comparisons;
    let marks = [Topic::Rate, Topic::Latency].map(|topic| book.marks(topic, None));
    Parts {
        headline: figures(rows, &marks),
        facts: facts(experiment, answer),
        sections: section(experiment, answer).into_iter().collect(),
        definitions: terms(&["ab", "verdict"]),
    }
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
    let mut notes = vec![
        basis(rows),
        "The values of A and B are geometric means over the runs of each.".to_owned(),
    ];
    if let Some(effect) = first.order_effect_ratio {
        notes.push(format!(
            "The second run of a pair had {effect:.3} times the value of the first; the ratio is corrected for this."
        ));
    }
    let charts = [Some(ratios(rows)), pairs(experiment, answer, first)];
    Some(Section {
        title: "B against A".into(),
        charts: charts_of(charts.into_iter().flatten()),
        tables: std::iter::once(table(experiment, answer))
            .chain(demands(answer, &labels(experiment)))
            .chain(costs::comparison(&answer.costs, &labels(experiment)))
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
        .number("B / A", 200, demand_ratio)
        .text("notes", |demand| if explains(&demand.name) { "explains the difference" } else { "" })
        .known("Service demands")
}

fn table(experiment: &Experiment, answer: &AbAnswer) -> Table {
    let counts = |place: usize| {
        let mut set_aside = answer.set_aside.iter();
        !set_aside.any(|one| one.pair as usize == place / 2)
    };
    table_of(&answer.comparisons, &labels(experiment), |side, one| {
        let points = experiment.points.iter().enumerate();
        let points = points.filter(|(place, point)| counts(*place) && point.side == Some(side));
        typical(points.filter_map(|(_, point)| point.figures.as_ref()), one)
    })
}

/// The geometric mean over runs; empty without any.
pub(super) fn typical<'a>(runs: impl Iterator<Item = &'a Figures>, statistic: Statistic) -> String {
    let logarithms: Vec<f64> = runs.filter_map(|run| value(run, statistic)).map(f64::ln).collect();
    let count = logarithms.len() as f64;
    let mean = (logarithms.iter().sum::<f64>() / count).exp();
    match statistic {
        _ if logarithms.is_empty() => String::new(),
        Statistic::Rate => Quantity::per_second(mean).to_string(),
        _ => Quantity::microseconds(mean).to_string(),
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
                value_text: format!("{ratio:.3}"),
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
            "The ratio of each pair in the order of time, with the order of its runs. A drift over the rows, or a \
             difference between the orders, comes from the machines.",
            AXIS,
            first.margin_ratio,
            values,
        )
    })
}
