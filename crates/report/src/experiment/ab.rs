//! What a report says about a comparison of two plans.

use super::comparison::{basis, statistic, verdict};
use super::figure::seconds;
use super::model::{Parts, Section, headline};
use super::relative::demand_ratio;
use super::rows::{Row, RowValue, RowsChart, Scale, Tick};
use super::table::{Cell, Column, Table, Tone};
use crate::caveat::{CaveatBook, Topic};
use crate::facts::Fact;
use crate::model::{Definition, Figure};
use dyno_analyze::comparison::{Comparison, ComparisonVerdict};
use dyno_analyze::experiment::ab::{AbAnswer, AbEnd, labels, servers};
use dyno_analyze::experiment::demands::DemandRatio;
use dyno_analyze::experiment::figures::{Figures, PERCENTILES};
use dyno_analyze::experiment::relative::Explanation;
use dyno_analyze::experiment::{Experiment, Side};
use dyno_analyze::uncertainty::series::Statistic;
use dyno_record::quantity::Quantity;

/// What charts of ratios have along their axis.
const AXIS: &str = "B divided by A";

/// No chart of ratios reaches farther than this from 1, in both directions.
const MOST_RATIO: f64 = 8.0;

/// Most pairs that are shown one by one.
const MOST_PAIRS: usize = 40;

/// Distances of labels from 1, and from each other.
const STEPS: [f64; 8] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];

/// All that a comparison contributes to the report.
pub(super) fn parts(experiment: &Experiment, answer: &AbAnswer, book: &CaveatBook) -> Parts {
    let rows = &answer.comparisons;
    let marks = [Topic::Rate, Topic::Latency].map(|topic| book.marks(topic, None));
    Parts {
        headline: figures(rows, &marks),
        facts: facts(experiment, answer),
        sections: section(experiment, answer).into_iter().collect(),
        definitions: DEFINITIONS.to_vec(),
    }
}

/// The ratios of a headline, with the caveats of rates and of times.
pub(super) fn figures(rows: &[Comparison], [rate, time]: &[Vec<usize>; 2]) -> Vec<Figure> {
    rows.iter()
        .map(|row| {
            let marks = match row.statistic {
                Statistic::Rate => rate,
                _ => time,
            };
            headline(
                format!("{}, B / A", statistic(row.statistic)),
                Quantity::plain(row.ratio.value),
                Some(format!("95 % {}; {}", range(row), verdict(row))),
                marks.clone(),
            )
        })
        .collect()
}

fn range(row: &Comparison) -> String {
    format!("{:.3}–{:.3}", row.ratio.low, row.ratio.high)
}

fn facts(experiment: &Experiment, answer: &AbAnswer) -> Vec<Fact> {
    let settings = |name: &str| -> String {
        let list = experiment
            .options
            .get(name)
            .and_then(|list| list.as_array());
        let texts = list.into_iter().flatten().filter_map(|one| one.as_str());
        texts.collect::<Vec<_>>().join(", ")
    };
    let plan_b = experiment
        .options
        .get("plan_b")
        .and_then(|name| name.as_str());
    let side = |name: &str, set: String, server: Option<&str>| {
        let with = match set.is_empty() {
            true => String::new(),
            false => format!(" with {set}"),
        };
        let on = server.map_or(String::new(), |server| format!(", on {server}"));
        format!("{name}{with}{on}")
    };
    let [server_a, server_b] = servers(experiment);
    let name_b = plan_b.unwrap_or(&experiment.name);
    let mut facts = vec![
        Fact::new("A", side(&experiment.name, settings("set_a"), server_a)),
        Fact::new("B", side(name_b, settings("set_b"), server_b)),
    ];
    if let Some(first) = answer.comparisons.first() {
        let margin = Quantity::ratio(first.margin_ratio);
        facts.push(Fact::new("Difference of no interest", margin.to_string()));
        let end = match answer.end {
            AbEnd::Precise => "the interval was narrow enough",
            AbEnd::Spent => "their number or the time was spent",
        };
        facts.push(Fact::new("Pairs", format!("{}; {end}", first.pairs)));
    }
    facts
}

fn section(experiment: &Experiment, answer: &AbAnswer) -> Option<Section> {
    let rows = &answer.comparisons;
    let first = rows.first()?;
    let mut notes = vec![
        basis(rows).trim_end().to_owned(),
        "The values of A and B are geometric means over the runs of each.".to_owned(),
    ];
    if let Some(effect) = first.order_effect_ratio {
        notes.push(format!(
            "The second run of a pair had {effect:.3} times the value of the first; this is taken out of the ratio."
        ));
    }
    let charts = [Some(ratios(rows)), pairs(experiment, answer, first)];
    Some(Section {
        title: "B against A",
        rows: charts.into_iter().flatten().collect(),
        tables: std::iter::once(table(experiment, answer))
            .chain(demands(answer, &labels(experiment)))
            .collect(),
        notes,
        ..Section::default()
    })
}

/// What an operation needed of each resource on both sides.
fn demands(answer: &AbAnswer, [a, b]: &[String; 2]) -> Option<Table> {
    let columns = vec![
        Column::text("service demand"),
        Column::number(a.as_str(), 120),
        Column::number(b.as_str(), 130),
        Column::number("B / A", 200),
        Column::text("notes"),
    ];
    let explains = |name: &str| match &answer.explanation {
        Some(Explanation::Demand { name: explaining }) => explaining == name,
        _ => false,
    };
    let row = |demand: &DemandRatio| {
        vec![
            Cell::new(demand.name.clone(), Tone::Strong),
            seconds(demand.baseline_s).to_string().into(),
            seconds(demand.candidate_s).to_string().into(),
            demand_ratio(demand),
            match explains(&demand.name) {
                true => "explains the difference".into(),
                false => Cell::default(),
            },
        ]
    };
    let rows: Vec<_> = answer.demands.iter().map(row).collect();
    (!rows.is_empty()).then(|| Table::new("Service demands", columns, rows))
}

fn table(experiment: &Experiment, answer: &AbAnswer) -> Table {
    table_of(&answer.comparisons, &labels(experiment), |side, one| {
        let value = typical(experiment, answer, side, one);
        value.map_or(String::new(), |value| quantity(one)(value).to_string())
    })
}

/// The comparisons, with the values of both sides where they are known.
pub(super) fn table_of(
    rows: &[Comparison],
    [a, b]: &[String; 2],
    value: impl Fn(Side, Statistic) -> String,
) -> Table {
    let columns = vec![
        Column::text("figure"),
        Column::number(a.as_str(), 120),
        Column::number(b.as_str(), 130),
        Column::number("B / A", 200),
        Column::number("95 % interval", 180),
        Column::text("verdict"),
    ];
    let row = |row: &Comparison| {
        vec![
            Cell::new(statistic(row.statistic), Tone::Strong),
            value(Side::A, row.statistic).into(),
            value(Side::B, row.statistic).into(),
            format!("{:.3}", row.ratio.value).into(),
            range(row).into(),
            Cell::new(verdict(row), tone(row)),
        ]
    };
    Table::new("Comparisons", columns, rows.iter().map(row).collect())
}

fn tone(row: &Comparison) -> Tone {
    match row.verdict {
        ComparisonVerdict::Faster => Tone::Strong,
        ComparisonVerdict::Slower => Tone::Alarm,
        ComparisonVerdict::NoDifferenceLargerThan { .. } => Tone::Plain,
        ComparisonVerdict::NotEnoughData => Tone::Doubt,
    }
}

fn quantity(statistic: Statistic) -> fn(f64) -> Quantity {
    match statistic {
        Statistic::Rate => Quantity::per_second,
        _ => Quantity::microseconds,
    }
}

/// The geometric mean over the runs of a side that count; `None` without any.
fn typical(
    experiment: &Experiment,
    answer: &AbAnswer,
    side: Side,
    statistic: Statistic,
) -> Option<f64> {
    let counts = |place: usize| {
        let mut set_aside = answer.set_aside.iter();
        !set_aside.any(|one| one.pair as usize == place / 2)
    };
    let points = experiment
        .points
        .iter()
        .enumerate()
        .filter(|(place, point)| counts(*place) && point.side == Some(side));
    let logarithms: Vec<f64> = points
        .filter_map(|(_, point)| value(point.figures.as_ref()?, statistic))
        .map(f64::ln)
        .collect();
    let count = logarithms.len() as f64;
    (count > 0.0).then(|| (logarithms.iter().sum::<f64>() / count).exp())
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

/// Ratios with their intervals around 1.
pub(super) fn ratios(rows: &[Comparison]) -> RowsChart {
    let values: Vec<RowValue> = rows
        .iter()
        .enumerate()
        .map(|(place, row)| RowValue {
            label: statistic(row.statistic),
            value_text: format!("{:.3}", row.ratio.value),
            detail: range(row),
            is_strong: place == 0,
            value: row.ratio.value,
            interval: Some((row.ratio.low, row.ratio.high)),
        })
        .collect();
    chart(
        "Ratio of B to A",
        "Each ratio with its 95 % interval; the shaded band holds differences that are of no interest. Of rates more is \
         better, of times less.",
        AXIS,
        rows.first().map_or(0.0, |row| row.margin_ratio),
        values,
    )
}

/// The ratio of each pair in the figure that decides, in the order of time.
fn pairs(experiment: &Experiment, answer: &AbAnswer, first: &Comparison) -> Option<RowsChart> {
    let of = |place: usize| {
        let point = experiment.points.get(place)?;
        Some((
            point.side?,
            value(point.figures.as_ref()?, first.statistic)?,
        ))
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
                is_strong: false,
                value: ratio,
                interval: None,
            })
        })
        .collect();
    let title = format!("Pair by pair: {}", statistic(first.statistic));
    (1 < values.len() && values.len() <= MOST_PAIRS).then(|| {
        chart(
            &title,
            "The ratio of each pair in the order of time, with the order of its runs. A drift along the rows, or a \
             difference between the orders, is one of the bench.",
            AXIS,
            first.margin_ratio,
            values,
        )
    })
}

/// Ratios around 1, with the margin as a band if there is one.
pub(super) fn chart(
    title: &str,
    caption: &str,
    axis: &str,
    margin_ratio: f64,
    values: Vec<RowValue>,
) -> RowsChart {
    let reach = reach(&values, margin_ratio);
    let scale = Scale::logarithmic(1.0 / reach, reach);
    let margin = 1.0 + margin_ratio;
    let rows: Vec<Row> = values.into_iter().map(|value| scale.point(value)).collect();
    RowsChart {
        title: title.to_owned(),
        caption: caption.to_owned(),
        axis: axis.to_owned(),
        ticks: ticks(&scale, reach),
        band: (margin_ratio > 0.0).then(|| scale.span(1.0 / margin, margin)),
        reference_percent: Some(scale.percent(1.0)),
        rows,
    }
}

/// How far the chart reaches from 1: all values, their intervals up to a limit, and the margin.
fn reach(values: &[RowValue], margin_ratio: f64) -> f64 {
    let distance = |ratio: f64| ratio.ln().abs();
    let ends = values
        .iter()
        .flat_map(|row| row.interval.into_iter().flat_map(|(low, high)| [low, high]))
        .map(distance)
        .filter(|distance| distance.is_finite())
        .map(|distance| distance.min(MOST_RATIO.ln()));
    let centers = values.iter().map(|row| distance(row.value));
    let farthest = ends
        .chain(centers.filter(|distance| distance.is_finite()))
        .fold(1.5 * margin_ratio.ln_1p(), f64::max);
    (farthest.max(1e-3) * 1.1).exp()
}

/// Labels at round ratios on both sides of 1: three on each at most, or 1, 2, 5 and 10 times where the range is wide.
fn ticks(scale: &Scale, reach: f64) -> Vec<Tick> {
    let step = STEPS.iter().find(|step| 1.0 + 5.0 * **step > reach);
    let ratios: Vec<f64> = match step {
        Some(step) => (-3..=3)
            .map(|place| 1.0 + f64::from(place) * step)
            .collect(),
        None => (-3..=3)
            .flat_map(|power| [1.0, 2.0, 5.0].map(|first| first * 10f64.powi(power)))
            .collect(),
    };
    ratios
        .into_iter()
        .filter(|ratio| (1.0 / reach..=reach).contains(ratio))
        .map(|ratio| {
            let text = format!("{ratio:.3}");
            let text = text.trim_end_matches('0').trim_end_matches('.');
            scale.tick(ratio, text.to_owned())
        })
        .collect()
}

/// The terms that the report of a comparison uses.
const DEFINITIONS: &[Definition] = &[
    Definition {
        term: "pair",
        meaning: "A run of A and a run of B next to each other in time, in the orders AB, BA, BA, AB, so that a drift of \
                  the machine meets both alike.",
    },
    Definition {
        term: "ratio",
        meaning: "The value of B divided by that of A: the geometric mean over the pairs.",
    },
    Definition {
        term: "95 % interval",
        meaning: "Of many such intervals, 95 in 100 hold the true ratio. It rests on what differs from pair to pair, and is \
                  never narrower than what the windows inside of the runs leave open.",
    },
    Definition {
        term: "verdict",
        meaning: "Faster or slower: the interval does not hold 1 and reaches beyond the margin. No difference: the whole \
                  interval is within the margin. Not enough data: neither.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: f64, low: f64, high: f64) -> RowValue {
        RowValue {
            label: String::new(),
            value_text: String::new(),
            detail: String::new(),
            is_strong: false,
            value,
            interval: Some((low, high)),
        }
    }

    fn labels(values: Vec<RowValue>, margin_ratio: f64) -> Vec<String> {
        let chart = chart("", "", AXIS, margin_ratio, values);
        chart.ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn labels_are_round_whatever_the_range() {
        let small = labels(vec![row(1.0, 0.99, 1.01)], 0.05);
        assert_eq!(small, ["0.94", "0.96", "0.98", "1", "1.02", "1.04", "1.06"]);
        assert_eq!(
            labels(vec![row(2.0, 1.8, 2.2)], 0.05),
            ["0.5", "1", "1.5", "2"]
        );
        assert_eq!(
            labels(vec![row(20.0, 18.0, 22.0)], 0.05),
            ["0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20"]
        );
    }

    #[test]
    fn the_band_is_the_margin_around_one() {
        let chart = chart("", "", AXIS, 0.05, vec![row(1.0, 0.99, 1.01)]);
        let band = chart.band.unwrap();
        assert_eq!(chart.reference_percent, Some(50.0));
        let middle = band.from_percent + band.width_percent / 2.0;
        assert!((middle - 50.0).abs() < 0.02, "{band:?}");
        assert!(
            band.width_percent > 50.0 && band.width_percent < 70.0,
            "{band:?}"
        );
    }

    #[test]
    fn a_wild_interval_leaves_the_chart_instead_of_stretching_it() {
        let chart = chart("", "", AXIS, 0.05, vec![row(1.1, 1e-9, 1e9)]);
        let interval = chart.rows[0].interval.unwrap();
        assert_eq!(
            (interval.from_percent, interval.width_percent),
            (0.0, 100.0)
        );
        assert!(chart.ticks.len() > 2, "{chart:?}");
    }
}
