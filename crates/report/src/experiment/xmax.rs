//! Reports of a search for the highest rate.

use super::demands::{self, Demands};
use super::figure::{TOO_SHORT, bound_of_rate, cell, interval_or_why};
use super::levels::clients;
use super::parts::Parts;
use super::search_costs;
use crate::caveat::{CaveatBook, Topic};
use crate::page::plot::{Measure, Plot, PlotAxis, PlotMark, PlotSeries, Role, Stroke};
use crate::page::table::{Cell, Column, Table, Tone};
use crate::page::{Definition, Fact, Figure, Section, charts_of};
use dyno_analyze::experiment::xmax::KEPT_RATIO;
use dyno_record::experiment::Figure as Interval;
use dyno_record::experiment::{ClientsEnd, Experiment, TriedClients, XmaxAnswer};
use dyno_record::quantity::Quantity;

/// All parts of the page of such a search.
pub(super) fn parts(experiment: &Experiment, answer: &XmaxAnswer, book: &CaveatBook) -> Parts {
    let demands = (!answer.demands.is_empty()).then(|| {
        demands::section(&Demands {
            stations: &answer.demands,
            parts: Vec::new(),
            disk: answer.disk.as_ref(),
            bottleneck: answer.bottleneck.as_ref(),
            rate_per_s: answer.search.rate_per_s,
            lead: format!("Measured with {}, at the maximum.", clients(answer.search.clients)),
        })
    });
    let costs = search_costs::section(experiment, answer.search.rate_per_s);
    let sections = [Some(search(answer)), confirmations(answer), demands, costs];
    Parts {
        headline: figures(answer, book),
        facts: facts(experiment, answer),
        sections: sections.into_iter().flatten().collect(),
        definitions: DEFINITIONS.to_vec(),
    }
}

fn facts(experiment: &Experiment, answer: &XmaxAnswer) -> Vec<Fact> {
    let most = experiment.options.max_clients;
    let end = match answer.search.end {
        ClientsEnd::Plateau => "more clients did not raise the rate",
        ClientsEnd::LimitReached => "the largest number of clients was reached",
        ClientsEnd::StillGrowing => "the rate still grew with the largest number of clients",
        ClientsEnd::OutOfMeasurements => "all runs were used",
    };
    let most = most.map(|most| Fact::new("Most clients", Quantity::count(u64::from(most))));
    most.into_iter().chain([Fact::new("End of the search", end)]).collect()
}

fn figures(answer: &XmaxAnswer, book: &CaveatBook) -> Vec<Figure> {
    let marks = book.marks(Topic::Rate, None);
    let with = clients(answer.search.clients);
    let measured = |label: &str, rate: &Interval| {
        let range = interval_or_why(rate, Quantity::per_second, TOO_SHORT);
        Figure::new(label, Quantity::per_second(rate.value))
            .with_note(format!("with {with}, {range}"))
            .marked(&marks)
    };
    let mut figures = match &answer.x_max_per_s {
        Some(x_max) => vec![measured("X_max", x_max)],
        None => {
            let unknown = Figure::new("X_max", Quantity::per_second(f64::NAN));
            let note = "the client was the limit".to_owned();
            let unknown = Figure { alarming: true, ..unknown.with_note(note).marked(&marks) };
            let bare = || Interval::bare(answer.search.rate_per_s);
            let maximum = answer.client_maximum_per_s.unwrap_or_else(bare);
            vec![unknown, measured("maximum of the client", &maximum)]
        }
    };
    if let Some(kept) = answer.sustained_rate_per_s {
        let p99 = answer.confirmations.iter().filter(|one| one.kept).find_map(|one| one.p99_us);
        let p99 = p99.map(|p99| {
            let us = Quantity::microseconds;
            let range = interval_or_why(&p99, us, "too few values");
            format!("; p99 {}, {range}", us(p99.value))
        });
        let note = format!("offered in one run: no interval{}", p99.unwrap_or_default());
        let figure = Figure::new("sustained rate", Quantity::per_second(kept));
        figures.push(figure.with_note(note).marked(&marks));
    }
    let bottleneck = answer.bottleneck.as_ref();
    figures.extend(
        bottleneck
            .map(|demand| bound_of_rate(demand, answer.bound_per_s, answer.search.rate_per_s)),
    );
    let enough = Quantity::count(answer.search.enough_clients.into());
    let note = "of the numbers tried, so no interval; more clients only wait".to_owned();
    figures.push(Figure::new("enough clients", enough).with_note(note));
    figures
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn search(answer: &XmaxAnswer) -> Section {
    let columns = vec![
        Column::number("clients", u8::MAX),
        Column::number("runs", 60),
        Column::number("mean rate", 200),
        Column::number("lowest", 100),
        Column::number("highest", 110),
        Column::text("notes"),
    ];
    let rows = answer.search.tried.iter();
    let rows = rows.map(|tried| search_row(answer, tried)).collect();
    Section {
        title: "Rate over clients".into(),
        charts: charts_of([plot(answer)]),
        tables: vec![Table::new("Numbers of clients", columns, rows)],
        notes: vec![
            "The best of many noisy runs is too good: the runs that elected a number of clients do not count for its rate."
                .to_owned(),
        ],
        ..Section::default()
    }
}

fn search_row(answer: &XmaxAnswer, tried: &TriedClients) -> Vec<Cell> {
    let rates = &tried.rates_per_s;
    let is_best = tried.clients == answer.search.clients;
    let is_enough = tried.clients == answer.search.enough_clients;
    let note = match (is_best, is_enough) {
        (true, _) => "elected",
        (false, true) => "enough",
        (false, false) => "",
    };
    let end = |pick: fn(f64, f64) -> f64| match rates.len() {
        0 | 1 => String::new(),
        _ => {
            let value = rates.iter().copied().reduce(pick).unwrap_or(f64::NAN);
            Quantity::per_second(value).to_string()
        }
    };
    let tone = if is_best { Tone::Strong } else { Tone::Plain };
    vec![
        Cell::new(Quantity::count(tried.clients.into()), Tone::Strong),
        rates.len().into(),
        Cell::new(Quantity::per_second(mean(rates)), tone),
        end(f64::min).into(),
        end(f64::max).into(),
        Cell::new(note, Tone::Soft),
    ]
}

fn plot(answer: &XmaxAnswer) -> Plot {
    let tried = answer.search.tried.iter();
    let points = tried.map(|tried| (f64::from(tried.clients), mean(&tried.rates_per_s)));
    let curve = PlotSeries::curve("mean rate", Role::Measured, Stroke::LineAndPoints, points);
    let bound = answer.bottleneck.as_ref().map(|demand| {
        let at = demand.saturation_rate_per_s().value;
        PlotMark::horizontal(format!("bound by {}", demand.name), at)
    });
    Plot {
        id: "plot-search".to_owned(),
        title: "Closed loop with increasing clients".to_owned(),
        caption: "The rate of each number of clients tried, and the bounds from the demands at the maximum.".to_owned(),
        x: PlotAxis::fitting("clients", Measure::Count, &curve.x),
        y: PlotAxis::linear("operations per second", Measure::Rate),
        series: vec![curve],
        marks: bound.into_iter().collect(),
    }
}

fn confirmations(answer: &XmaxAnswer) -> Option<Section> {
    let columns = vec![
        Column::number("offered", u8::MAX),
        Column::number("of the maximum", 100),
        Column::number("achieved", 200),
        Column::number("p99", 150),
        Column::text("verdict"),
    ];
    let rows = answer.confirmations.iter().map(|one| {
        let verdict = if one.kept {
            Cell::new("kept", Tone::Strong)
        } else {
            Cell::new("not kept", Tone::Doubt)
        };
        vec![
            Cell::new(Quantity::per_second(one.offered_rate_per_s), Tone::Strong),
            Quantity::ratio(one.ratio).into(),
            cell(Some(&one.rate_per_s), Quantity::per_second),
            cell(one.p99_us.as_ref(), Quantity::microseconds),
            verdict,
        ]
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    (!rows.is_empty()).then(|| Section {
        title: "Open loop just below".into(),
        lead: format!(
            "A rate is kept if {} of it are achieved, nothing is dropped and nothing fails.",
            Quantity::ratio(KEPT_RATIO)
        ),
        tables: vec![Table::new("Confirmation", columns, rows)],
        ..Section::default()
    })
}

/// Terms used on the page of such a search.
const DEFINITIONS: &[Definition] = &[
    Definition {
        term: "X_max",
        meaning: "The highest rate of a closed loop, with its number of clients: the mean of runs that were \
                  made after that number was found. Its interval is between these runs, or over the windows of the \
                  run if there is only one.",
    },
    Definition {
        term: "sustained rate",
        meaning: "The highest offered rate, independent of the server's speed, that the server sustained. It is \
                  one of a few given rates with one run each, so it has no interval.",
    },
    Definition {
        term: "bound of the rate",
        meaning: "The rate at which the busiest resource is saturated, from the service demands at the maximum, with \
                  their error.",
    },
    Definition {
        term: "limit of the client",
        meaning: "If the load generator is saturated, its maximum does not describe the server, and is not called X_max.",
    },
];
