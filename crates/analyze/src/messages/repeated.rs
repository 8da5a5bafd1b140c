//! Combined results of the repetitions of each combination, and which combinations differ.
//!
//! Each repetition has its own median, mean, 99th percentile and rate. Values are their geometric means with
//! Student's intervals over the logarithms, as in all experiments (`docs/decisions/006`): cells with two or
//! three repetitions also use the variation of the other cells (`with_pooled`). Two cells differ if the
//! interval of their ratio does not include 1; it includes the errors of both cells (B. L. Welch, "The
//! Generalization of 'Student's' Problem when Several Different Population Variances are Involved",
//! *Biometrika* 34 (1947)).

use super::lines::{Line, bound, combination, lines};
use crate::estimate::Spread;
use crate::robust::mean;
use crate::uncertainty::runs::with_pooled;
use crate::values::{rate_of, times_of, us_of};
use dyno_record::estimate::Estimate;
use dyno_record::experiment::{Figure, Finding};
use dyno_record::statement;
use dyno_record::statement::Statement;
use dyno_record::tail::{InFlight, TailDocument};
use serde::Serialize;

/// Multiple of the middle deviation of all cells from which a cell is of another kind. Among cells with equal
/// variation, it occurs in one of a thousand cases with three repetitions, and in one of thirty with two.
const ERRATIC_FACTOR: f64 = 3.2;

/// Number of pairs of which one is expected to differ at 95 % by chance.
const MANY_PAIRS: usize = 20;

/// A producer of a combination over its repetitions; without intervals if there is only one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Repeated {
    pub label: String,
    /// Directory of the producer's driver.
    pub producer: String,
    /// Number among simultaneous producers, from 0.
    pub number: usize,
    /// Directory of the consumer's driver.
    pub consumer: String,
    /// Maximum of inserts without an answer.
    pub in_flight: InFlight,
    /// Connections in a driver's pool.
    pub pool: u64,
    /// Number of complete repetitions; failed and interrupted ones are excluded.
    pub repetitions: usize,
    /// Median of intended → received by the first consumer; absent if nothing was received.
    pub median_us: Option<Figure>,
    /// Mean of the same time.
    pub mean_us: Option<Figure>,
    /// 99th percentile of the same time.
    pub p99_us: Option<Figure>,
    /// Messages acknowledged per second.
    pub rate_per_s: Option<Figure>,
    /// The producer's CPU time per acknowledged message.
    pub cpu_us: Option<Figure>,
    /// Its median divided by the smallest median with the same bound on inserts in flight.
    pub times_fastest: Option<Figure>,
    /// Combinations with the same bound and a median that differs beyond the intervals.
    pub differs_from: Vec<String>,
    /// Combinations with the same bound and an undecided difference in the median.
    pub like: Vec<String>,
    /// Combinations with the same bound and a message rate that differs beyond the intervals.
    pub rate_differs_from: Vec<String>,
    /// Combinations with the same bound and an undecided difference in the message rate.
    pub rate_like: Vec<String>,
}

/// A figure over the repetitions, with its uncertainty.
#[derive(Clone, Copy)]
struct Level {
    value: f64,
    spread: Option<Spread>,
}

impl Level {
    fn figure(&self) -> Figure {
        let estimate = self.spread.and_then(|spread| spread.around(self.value));
        estimate.map_or(Figure::bare(self.value), Figure::from)
    }

    /// Its ratio to another figure; `None` if there are too few repetitions.
    fn over(&self, other: &Level) -> Option<Estimate> {
        let spread = Spread::of_ratio(self.spread?, other.spread?);
        spread.around(self.value / other.value)
    }
}

/// Repetitions of one combination, in the order of their rounds.
type Group<'a> = Vec<Line<'a>>;

/// Whether the plan repeats combinations.
pub fn is_repeated(document: &TailDocument) -> bool {
    document.cells.iter().any(|cell| cell.repetition.is_some())
}

/// The combinations of an experiment, grouped by the bound on inserts in flight, the smallest median first.
pub fn repeated(document: &TailDocument) -> Vec<Repeated> {
    let mut all = Vec::new();
    for (in_flight, groups) in groups(document) {
        let medians = levels(&groups, |line| line.median_us());
        let means = levels(&groups, |line| line.total().map(|total| total.mean_us));
        let p99s = levels(&groups, |line| line.total().map(|total| total.p99_us));
        let rates = levels(&groups, |line| Some(line.producer.timeline.rates.acknowledged_per_s));
        let costs = levels(&groups, Line::cpu_us);
        let known = (0..groups.len()).filter_map(|place| Some((place, medians[place]?)));
        let fastest = known.min_by(|(_, left), (_, right)| left.value.total_cmp(&right.value));
        let labels = groups.iter().map(|group| called(document, &group[0]));
        let labels: Vec<String> = labels.collect();
        let mut of_bound: Vec<Repeated> = Vec::new();
        for (place, group) in groups.iter().enumerate() {
            let (differs_from, like) = split(place, &medians, &labels);
            let (rate_differs_from, rate_like) = split(place, &rates, &labels);
            let settings = &group[0].cell.settings;
            let figure = |of: &[Option<Level>]| of[place].as_ref().map(Level::figure);
            let times = medians[place].zip(fastest).map(|(own, (first, fastest))| {
                // A ratio to itself has no error.
                let interval = own.over(&fastest).filter(|_| first != place);
                let bare = Figure::bare(own.value / fastest.value);
                interval.map_or(bare, Figure::from)
            });
            of_bound.push(Repeated {
                label: labels[place].clone(),
                producer: settings.producers.first().cloned().unwrap_or_default(),
                number: group[0].number,
                consumer: settings.consumers.first().cloned().unwrap_or_default(),
                in_flight,
                pool: settings.pool,
                repetitions: group.len(),
                median_us: figure(&medians),
                mean_us: figure(&means),
                p99_us: figure(&p99s),
                rate_per_s: figure(&rates),
                cpu_us: figure(&costs),
                times_fastest: times,
                differs_from,
                like,
                rate_differs_from,
                rate_like,
            });
        }
        let median = |one: &Repeated| one.median_us.map_or(f64::INFINITY, |median| median.value);
        of_bound.sort_by(|left, right| median(left).total_cmp(&median(right)));
        all.extend(of_bound);
    }
    all
}

/// Label of a combination's producer.
fn called(document: &TailDocument, line: &Line<'_>) -> String {
    let label = combination(document, line.cell);
    match line.measured.producers.len() {
        1 => label,
        _ => format!("{label} #{}", line.number),
    }
}

/// The complete repetitions by bound and combination, in the order of the first measurement.
fn groups(document: &TailDocument) -> Vec<(InFlight, Vec<Group<'_>>)> {
    let mut bounds: Vec<(InFlight, Vec<Group<'_>>)> = Vec::new();
    for line in lines(document).into_iter().filter(Line::is_whole) {
        let in_flight = line.cell.settings.in_flight;
        let place = bounds.iter().position(|(bound, _)| *bound == in_flight);
        let place = place.unwrap_or_else(|| {
            bounds.push((in_flight, Vec::new()));
            bounds.len() - 1
        });
        let groups = &mut bounds[place].1;
        match groups.iter_mut().find(|group| group[0].repeats(&line)) {
            Some(group) => group.push(line),
            None => groups.push(vec![line]),
        }
    }
    bounds
}

/// A figure of each group; values that are not positive have no logarithm and are left out.
fn levels<'a>(groups: &[Group<'a>], of: impl Fn(&Line<'a>) -> Option<f64>) -> Vec<Option<Level>> {
    let logarithms = groups.iter().map(|group| -> Vec<f64> {
        group.iter().filter_map(&of).filter(|value| *value > 0.0).map(f64::ln).collect()
    });
    let logarithms: Vec<Vec<f64>> = logarithms.collect();
    let own: Vec<Option<Spread>> = logarithms.iter().map(|all| Spread::of(all)).collect();
    learned(&own)
        .into_iter()
        .zip(&logarithms)
        .map(|(spread, all)| {
            (!all.is_empty()).then(|| Level {
                value: mean(all).exp(),
                spread: spread.map(|spread| spread.of_mean(all.len())),
            })
        })
        .collect()
}

/// The variation of each cell, pooled with the others. An erratic cell has its own variation and does not
/// affect the others: the latency of a driver that queues without a bound may differ tenfold between
/// repetitions when all others are stable.
fn learned(own: &[Option<Spread>]) -> Vec<Option<Spread>> {
    let mut deviations: Vec<f64> = own.iter().flatten().map(|one| one.deviation).collect();
    deviations.sort_by(f64::total_cmp);
    let middle = deviations.get(deviations.len() / 2).copied();
    let most = middle.map_or(f64::INFINITY, |middle| middle * ERRATIC_FACTOR);
    let is_like = |one: &Spread| one.deviation <= most;
    let like: Vec<Option<Spread>> = own.iter().map(|one| one.filter(is_like)).collect();
    with_pooled(&like).into_iter().zip(own).map(|(pooled, own)| pooled.or(*own)).collect()
}

/// The cells that a figure differs from, and the undecided cells.
fn split(place: usize, levels: &[Option<Level>], labels: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut differs_from, mut like) = (Vec::new(), Vec::new());
    let Some(own) = levels[place] else {
        return (differs_from, like);
    };
    for (other, label) in labels.iter().enumerate() {
        let Some(level) = levels[other].filter(|_| other != place) else {
            continue;
        };
        let differs = own.over(&level).is_some_and(|ratio| !ratio.contains(1.0));
        let list = if differs { &mut differs_from } else { &mut like };
        list.push(label.clone());
    }
    (differs_from, like)
}

/// Findings about cells that differ beyond the intervals of their repetitions: for each bound that at least two
/// cells have.
pub(super) fn findings(document: &TailDocument) -> Vec<Finding> {
    let all = repeated(document);
    let mut found = Vec::new();
    let of_bounds = all.chunk_by(|left, right| left.in_flight == right.in_flight);
    for cells in of_bounds {
        let known = cells.iter().filter(|cell| cell.median_us.is_some());
        let known: Vec<&Repeated> = known.collect();
        let pairs = known.len() * known.len().saturating_sub(1) / 2;
        if pairs == 0 {
            continue;
        }
        // Both members of a pair name each other.
        let beyond = |of: fn(&Repeated) -> &Vec<String>| {
            let named = known.iter().map(|cell| of(cell).len());
            named.sum::<usize>() / 2
        };
        let said = statement!(
            "differences-beyond-intervals",
            bound = bound(cells[0].in_flight),
            beyond = beyond(|cell| &cell.differs_from),
            in_rate = beyond(|cell| &cell.rate_differs_from),
            pairs = pairs,
            are_many = pairs >= MANY_PAIRS
        );
        let evidence = known.iter().map(|cell| evidence(cell));
        found.push(Finding::found(said, evidence.collect()));
    }
    found
}

fn evidence(cell: &Repeated) -> Statement {
    let named = |label: &String| statement!("cell", cell = label);
    statement!(
        "median-over-repetitions",
        who = named(&cell.label),
        repetitions = cell.repetitions,
        median = cell.median_us.as_ref().map(us_of),
        rate = cell.rate_per_s.as_ref().map(rate_of),
        times = cell.times_fastest.as_ref().map(times_of),
        like = cell.like.iter().map(named).collect::<Vec<Statement>>(),
        rate_like = cell.rate_like.iter().map(named).collect::<Vec<Statement>>()
    )
}
