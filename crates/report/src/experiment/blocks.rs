//! Reports of a sweep with a closed loop over numbers of clients and an open loop over offered rates, with X_max on the
//! axis of offered rates.

use super::figure::{interval_or_why, no_interval_of_p99};
use super::parts::Parts;
use super::{sweep, sweep_charts};
use crate::caveat::{CaveatBook, Topic};
use crate::page::plot::PlotMark;
use crate::page::{Chart, Fact, Figure};
use crate::terms::{added, terms};
use dyno_analyze::experiment::sweep::{is_throttled, kept_rate_per_s};
use dyno_record::experiment::{BlocksAnswer, Experiment, RATE, SweepAnswer};
use dyno_record::quantity::Quantity;

/// The reason why the highest offered rate has no interval.
const OFFERED: &str = "one of the rates offered: no interval";

/// All parts of the page of such a sweep.
pub(super) fn parts(experiment: &Experiment, answer: &BlocksAnswer, book: &CaveatBook) -> Parts {
    let of = |answer: &Option<SweepAnswer>| match answer {
        Some(answer) => sweep::parts(experiment, answer, book),
        None => Parts::default(),
    };
    let (closed, mut open) = (of(&answer.closed), of(&answer.open));
    for section in &mut open.sections {
        for chart in &mut section.charts {
            if let Chart::Plot(plot) = chart
                && plot.id == sweep_charts::RESPONSE_OVER_RATE
            {
                plot.marks.extend(x_max_mark(answer));
            }
        }
    }
    let definitions = added(closed.definitions, open.definitions);
    Parts {
        headline: figures(answer, closed.headline, book),
        facts: facts(answer),
        sections: closed.sections.into_iter().chain(open.sections).collect(),
        definitions: added(definitions, terms(&["blocks"])),
    }
}

/// The figures of the closed loop, with the name of the loop in the first, and the sustained offered rates.
fn figures(answer: &BlocksAnswer, closed: Vec<Figure>, book: &CaveatBook) -> Vec<Figure> {
    let mut figures = closed;
    if let Some(first) = figures.first_mut().filter(|_| answer.x_max_per_s.is_some()) {
        first.label =
            if answer.is_x_max_reached { "X_max".to_owned() } else { "X_max, at least".to_owned() };
    }
    let Some(open) = &answer.open else {
        return figures;
    };
    let kept = kept_rate_per_s(open);
    let note = kept.map(|kept| match answer.x_max_per_s {
        Some(x_max) => format!("{} of X_max, {OFFERED}", Quantity::ratio(kept / x_max.value)),
        None => OFFERED.to_owned(),
    });
    let per_s = Quantity::per_second(kept.unwrap_or(f64::NAN));
    figures.push(Figure {
        alarming: kept.is_none(),
        ..Figure::new("offered rate kept", per_s)
            .with_note(note)
            .marked(&book.marks(Topic::Rate, None))
    });
    let level = open.levels.iter().find(|level| kept.is_some() && level.offered_rate_per_s == kept);
    if let Some((level, p99)) = level.and_then(|one| Some((one, one.response_us.get("p99")?))) {
        let why = no_interval_of_p99(level);
        let note = interval_or_why(p99, Quantity::microseconds, why);
        let figure = Figure::new("p99 at that rate", Quantity::microseconds(p99.value));
        figures.push(figure.with_note(note).marked(&book.marks(Topic::Latency, None)));
    }
    figures
}

fn facts(answer: &BlocksAnswer) -> Vec<Fact> {
    let open = answer.open.as_ref();
    let kind = match open.is_some_and(is_throttled) {
        true => "a throttled loop",
        false => "an open loop",
    };
    let clients = open.and_then(|open| open.levels.first());
    let with = clients.map_or(String::new(), |level| {
        format!(" with {} clients", Quantity::count(level.clients.into()))
    });
    let blocks = format!(
        "a closed loop over the numbers of clients, and {kind}{with} over the offered rates; each round has all of \
         the first, then all of the second"
    );
    vec![Fact::new("Blocks", blocks)]
}

/// X_max as a mark on charts of offered rates.
fn x_max_mark(answer: &BlocksAnswer) -> Option<PlotMark> {
    let x_max = answer.x_max_per_s?;
    let is_over_rates = answer.open.as_ref()?.axis.as_deref() == Some(RATE);
    is_over_rates.then(|| {
        let at = x_max.value;
        PlotMark::vertical(format!("X_max {}", Quantity::per_second(at)), at)
    })
}
