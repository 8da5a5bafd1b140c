//! Reports of a search for the highest rate.

use super::demands::{self, Demands};
use super::figure::{TOO_SHORT, bound_of_rate, cell, interval_or_why};
use super::levels::clients;
use super::parts::Parts;
use super::search_costs;
use crate::caveat::{CaveatBook, Topic};
use crate::page::plot::{Measure, Plot, PlotAxis, PlotMark, PlotSeries, Role, Stroke};
use crate::page::table::{Cell, Table, Tone};
use crate::page::{Fact, Figure, Section, charts_of};
use crate::terms::terms;
use dyno_analyze::experiment::xmax::KEPT_RATIO;
use dyno_analyze::mean;
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
    let costs = search_costs::section(experiment);
    let sections = [Some(search(answer)), confirmations(answer), demands, costs];
    Parts {
        headline: figures(answer, book),
        facts: facts(experiment, answer),
        sections: sections.into_iter().flatten().collect(),
        definitions: terms(&["xmax", "interval", "service-demand"]),
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

fn search(answer: &XmaxAnswer) -> Section {
    let is_best = |tried: &TriedClients| tried.clients == answer.search.clients;
    let end = |tried: &TriedClients, pick: fn(f64, f64) -> f64| {
        let rates = tried.rates_per_s.iter().copied().filter(|_| tried.rates_per_s.len() > 1);
        Cell::known(rates.reduce(pick).map(Quantity::per_second))
    };
    let table = Table::of(&answer.search.tried)
        .number("clients", u8::MAX, |tried| {
            Cell::new(Quantity::count(tried.clients.into()), Tone::Strong)
        })
        .number("runs", 60, |tried| tried.rates_per_s.len())
        .number("mean rate", 200, |tried| {
            let tone = if is_best(tried) { Tone::Strong } else { Tone::Plain };
            Cell::new(Quantity::per_second(mean(&tried.rates_per_s)), tone)
        })
        .number("lowest", 100, |tried| end(tried, f64::min))
        .number("highest", 110, |tried| end(tried, f64::max))
        .text("notes", |tried| match tried.clients {
            _ if is_best(tried) => Cell::new("elected", Tone::Soft),
            clients if clients == answer.search.enough_clients => Cell::new("enough", Tone::Soft),
            _ => Cell::default(),
        })
        .table("Numbers of clients");
    Section {
        title: "Rate over clients".into(),
        charts: charts_of([plot(answer)]),
        tables: vec![table],
        notes: vec![
            "The best of many noisy runs is too good: the runs that elected a number of clients do not count for its rate."
                .to_owned(),
        ],
        ..Section::default()
    }
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
    let table = Table::of(&answer.confirmations)
        .number("offered", u8::MAX, |one| {
            Cell::new(Quantity::per_second(one.offered_rate_per_s), Tone::Strong)
        })
        .number("of the maximum", 100, |one| Quantity::ratio(one.ratio))
        .number("achieved", 200, |one| cell(Some(&one.rate_per_s), Quantity::per_second))
        .number("p99", 150, |one| cell(one.p99_us.as_ref(), Quantity::microseconds))
        .text("verdict", |one| match one.kept {
            true => Cell::new("kept", Tone::Strong),
            false => Cell::new("not kept", Tone::Doubt),
        });
    table.known("Confirmation").map(|table| Section {
        title: "Open loop just below".into(),
        lead: format!(
            "A rate is kept if {} of it are achieved, nothing is dropped and nothing fails.",
            Quantity::ratio(KEPT_RATIO)
        ),
        tables: vec![table],
        ..Section::default()
    })
}
