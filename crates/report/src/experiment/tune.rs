//! Reports of a search for better settings.

use super::difference;
use super::figure::{TOO_SHORT, interval_of, interval_or_why};
use super::parts::Parts;
use super::ratios::{chart, ratios, short};
use super::tune_commands;
use super::tune_trials;
use crate::caveat::{CaveatBook, Topic};
use crate::page::plot::{Measure, Plot, PlotAxis, PlotSeries, Role, Stroke};
use crate::page::rows::RowValue;
use crate::page::table::{Cell, Table, Tone};
use crate::page::{Chart, Fact, Figure, Section, charts_of};
use crate::terms::terms;
use dyno_record::experiment::{
    Ablation, Experiment, Figure as Value, Figures, Knob, TuneAnswer, TuneGoal, TuneOptions,
    TunePurpose, TuneTrial,
};
use dyno_record::experiment::{Side, Statistic};
use dyno_record::quantity::Quantity;
use std::collections::BTreeMap;

/// All parts of the page of a search for settings.
pub(super) fn parts(experiment: &Experiment, answer: &TuneAnswer, book: &CaveatBook) -> Parts {
    let Some(options) = &experiment.options.tune else {
        return Parts::default();
    };
    let page = TunePage::new(experiment, &experiment.name, options, answer);
    Parts {
        headline: page.headline(book),
        facts: facts(options, page.knobs, before),
        sections: page.sections(),
        definitions: terms(&["tune"]),
    }
}

/// The goal in a few words.
pub(super) fn goal(goal: TuneGoal) -> &'static str {
    match goal {
        TuneGoal::Rate => "rate",
        TuneGoal::P99 => "p99 response",
        TuneGoal::Cpu => "server CPU per operation",
    }
}

/// The topic of the goal.
pub(super) fn topic(goal: TuneGoal) -> Topic {
    match goal {
        TuneGoal::P99 => Topic::Latency,
        TuneGoal::Rate | TuneGoal::Cpu => Topic::Rate,
    }
}

/// A note for ratios if less is better; otherwise empty.
pub(super) fn less_is_better(goal: TuneGoal) -> &'static str {
    if goal.larger_is_better() { "" } else { " Less is better." }
}

/// Method of the search, with the original value of each knob.
pub(super) fn facts(
    options: &TuneOptions,
    knobs: &[Knob],
    before: impl Fn(&Knob) -> String,
) -> Vec<Fact> {
    let mut facts = vec![
        Fact::new("Goal", goal(options.goal)),
        Fact::new("Difference of no interest", Quantity::ratio(options.margin_ratio)),
        Fact::new("Time", Quantity::seconds(options.budget_s)),
        Fact::new("Seed of the search", options.seed),
        Fact::new("Failed operations, maximum", Quantity::ratio(options.failed_ratio)),
    ];
    if options.allows_less_durable {
        let said = "some of them may lose acknowledged writes";
        facts.push(Fact::new("Less durable settings", said));
    }
    facts.extend(options.responses.iter().map(|one| {
        let limit = Quantity::microseconds(one.limit_us);
        Fact::new(format!("{}, at most", one.name()), limit)
    }));
    facts.extend(knobs.iter().map(|knob| {
        let values = knob.values.join(", ");
        let before = before(knob);
        Fact::new(knob.name.clone(), format!("{values}; before: {before}"))
    }));
    facts
}

/// The parts of the page about one search.
pub(super) struct TunePage<'a> {
    experiment: &'a Experiment,
    workload: &'a str,
    answer: &'a TuneAnswer,
    knobs: &'a [Knob],
    options: &'a TuneOptions,
}

impl<'a> TunePage<'a> {
    pub(super) fn new(
        experiment: &'a Experiment,
        workload: &'a str,
        options: &'a TuneOptions,
        answer: &'a TuneAnswer,
    ) -> TunePage<'a> {
        TunePage { experiment, workload, answer, knobs: &options.knobs, options }
    }

    pub(super) fn sections(&self) -> Vec<Section> {
        let sections = [
            self.result(),
            self.confirmation(),
            self.search(),
            self.effects(),
            Some(tune_trials::section(self.experiment, self.answer)),
        ];
        sections.into_iter().flatten().collect()
    }

    fn goal(&self) -> &'static str {
        goal(self.options.goal)
    }

    /// Caption of a chart of ratios.
    fn caption(&self, text: &str) -> String {
        format!("{text}{}", less_is_better(self.options.goal))
    }

    fn quantity(&self) -> fn(f64) -> Quantity {
        match self.options.goal {
            TuneGoal::Rate => Quantity::per_second,
            TuneGoal::P99 | TuneGoal::Cpu => Quantity::microseconds,
        }
    }

    pub(super) fn headline(&self, book: &CaveatBook) -> Vec<Figure> {
        let answer = self.answer;
        let marks = book.marks(topic(self.options.goal), None);
        let is_found = !answer.settings.is_empty();
        let ratio = answer.ratio.filter(|_| is_found);
        let label = format!("{}, change", self.goal());
        let change: fn(f64) -> Quantity = |ratio| Quantity::ratio(ratio - 1.0).signed();
        let gain = match &ratio {
            Some(ratio) => Figure::new(label, change(ratio.value))
                .with_note(format!("{}; confirmed", interval_or_why(ratio, change, TOO_SHORT))),
            None => {
                let visible = Quantity::ratio(answer.visible_ratio);
                let seen = format!("{visible} or more is ruled out");
                let is_shown = answer.shows(self.options.margin_ratio);
                let note = match (answer.was_compared(), is_shown) {
                    (false, _) => {
                        "no gain is proven; the settings to be compared did harm".to_owned()
                    }
                    _ if answer.candidate.is_none() => {
                        "no gain is proven; no setting was confirmed".to_owned()
                    }
                    (true, true) => format!("nothing to gain; {seen}"),
                    (true, false) => format!("no gain is proven; {seen}"),
                };
                Figure::new(label, change(1.0)).with_note(note)
            }
        };
        let baseline = &answer.baseline;
        let before =
            Figure::new(format!("{} before", self.goal()), self.quantity()(baseline.value))
                .with_note(interval_or_why(baseline, self.quantity(), TOO_SHORT))
                .marked(&marks);
        let noise = Figure::new("noise of a run", Quantity::ratio(answer.noise_ratio))
            .with_note("standard deviation of the goal".to_owned());
        vec![gain.marked(&marks), before, noise]
    }

    /// The settings to apply and the effect of each change.
    fn result(&self) -> Option<Section> {
        let answer = self.answer;
        if answer.settings.is_empty() {
            return None;
        }
        let table = to_set("What to set", self.knobs, &answer.settings, &answer.ablation, before);
        Some(Section {
            title: "What to set".into(),
            tables: vec![table],
            lists: tune_commands::lists(self.workload, self.knobs, &answer.settings, &answer.keys),
            notes: vec![format!(
                "Without it: the {} without this change, divided by the value with all changes of the candidate. A change without a proven effect, \
                 tested over all changes at once (Holm), was taken back, unless the settings prove a gain only together.{}",
                self.goal(),
                less_is_better(self.options.goal)
            )],
            ..Section::default()
        })
    }

    /// The confirmation as a comparison, with its explanation.
    fn confirmation(&self) -> Option<Section> {
        let compared = self.answer.comparison.as_ref()?;
        // Settings without a proven gain are not used.
        let [b, title, said] = match self.answer.settings.is_empty() {
            true => {
                ["candidate", "Candidate against before", "the candidate, which proved no gain"]
            }
            false => ["tuned", "Tuned against before", "tuned"],
        };
        let labels = ["before".to_owned(), b.to_owned()];
        let runs = self.confirmed_runs();
        let typical = |side: Side, statistic: Statistic| {
            let place = usize::from(side == Side::B);
            super::ab::typical(runs.iter().map(|pair| pair[place]), statistic)
        };
        let rows = &compared.comparisons;
        Some(Section {
            title: title.into(),
            charts: charts_of((!rows.is_empty()).then(|| ratios(rows))),
            tables: std::iter::once(difference::table(compared, &labels, &[], typical))
                .chain(super::ab::demands(compared, &labels))
                .chain(crate::costs::comparison(&super::ab::other_costs(compared), &labels))
                .collect(),
            notes: vec![format!(
                "The pairs of the confirmation, which were not part of the search; A is before, B is {said}."
            )],
            ..Section::default()
        })
    }

    /// The runs of the confirmation: before and tuned.
    fn confirmed_runs(&self) -> Vec<[&Figures; 2]> {
        let figures = |place: usize| self.experiment.points.get(place)?.figures.as_ref();
        let pairs = self.answer.confirmations().flat_map(|trial| trial.pairs());
        pairs.filter_map(|[tuned, before]| Some([figures(before)?, figures(tuned)?])).collect()
    }

    /// Expected ratios of the best settings over the search, and the results of single comparisons.
    fn search(&self) -> Option<Section> {
        let made_for = |purpose: TunePurpose| {
            self.answer
                .trials
                .iter()
                .zip(1_u32..)
                .filter(move |(trial, _)| trial.purpose == purpose)
        };
        let points = |purpose: TunePurpose, pick: fn(&TuneTrial) -> Option<Value>| {
            let known = made_for(purpose)
                .filter_map(move |(trial, number)| Some((f64::from(number), pick(trial)?)));
            known.collect::<Vec<(f64, Value)>>()
        };
        let best = points(TunePurpose::Search, |trial| trial.best_ratio);
        let tried = points(TunePurpose::Search, |trial| trial.ratio);
        let confirmed = points(TunePurpose::Confirm, |trial| trial.ratio);
        if best.len() < 2 {
            return None;
        }
        let series = |label: &str, role, stroke, points: Vec<(f64, Value)>| PlotSeries {
            low: points.iter().map(|(_, value)| value.low).collect(),
            high: points.iter().map(|(_, value)| value.high).collect(),
            ..PlotSeries::curve(
                label,
                role,
                stroke,
                points.iter().map(|(at, value)| (*at, value.value)),
            )
        };
        let plot = Plot {
            id: format!("plot-tune-search-{}", self.workload),
            title: "The search".to_owned(),
            caption: self.caption(
                "The model's expectation for the best settings so far, relative to the original settings; the results of single \
                 comparisons with the best settings at that time; and the results of the confirmations, which were not part of the \
                 search.",
            ),
            x: PlotAxis::linear("comparison", Measure::Count),
            y: PlotAxis::linear("ratio", Measure::Count),
            series: vec![
                series("tried, divided by the best so far", Role::Measured, Stroke::Points, tried),
                series("best so far, divided by before", Role::Model, Stroke::LineAndPoints, best),
            ]
            .into_iter()
            .chain((!confirmed.is_empty()).then(|| {
                series("confirmed, divided by before", Role::P99, Stroke::Points, confirmed)
            }))
            .collect(),
            marks: Vec::new(),
        };
        Some(Section {
            title: "The search".into(),
            charts: vec![Chart::Plot(plot)],
            ..Section::default()
        })
    }

    /// The model's view of each knob.
    fn effects(&self) -> Option<Section> {
        let knob = |name: &String| self.knob(name);
        let charts = self.answer.effects.iter().filter_map(|effect| {
            let knob = knob(&effect.knob)?;
            let own = self.answer.settings.get(&effect.knob);
            let own = own.map_or(knob.default_value(), String::as_str);
            let rows = effect.ratios.iter().zip(&knob.values).map(|(ratio, value)| RowValue {
                label: value.clone(),
                value_text: format!("{:.3}", ratio.value),
                detail: if value == knob.default_value() { "before" } else { "" }.to_owned(),
                is_strong: value == own,
                value: ratio.value,
                interval: ratio.low.zip(ratio.high),
            });
            Some(chart(
                &effect.knob,
                &self.caption(
                    "The model's expectation relative to the original settings, with all other knobs as in the answer.",
                ),
                ("divided by before", short),
                self.options.margin_ratio,
                rows.collect(),
            ))
        });
        let charts = charts_of(charts);
        (!charts.is_empty()).then(|| Section {
            title: "Modelled effect of each knob".into(),
            charts,
            ..Section::default()
        })
    }

    fn knob(&self, name: &str) -> Option<&Knob> {
        self.knobs.iter().find(|knob| knob.name == *name)
    }
}

/// The original value of a knob.
fn before(knob: &Knob) -> String {
    knob.default_value().to_owned()
}

/// Settings with their original values and the effect of each change; changes that were taken back come last.
pub(super) fn to_set(
    title: &str,
    knobs: &[Knob],
    settings: &BTreeMap<String, String>,
    ablation: &[Ablation],
    before: impl Fn(&Knob) -> String,
) -> Table {
    let taken_back = ablation.iter().filter(|one| !one.stays).map(|one| {
        let tried = Cell::new("taken back", Tone::Soft);
        (&one.knob, tried.with_detail(Some(one.value.clone())))
    });
    let stay = settings.iter().map(|(name, value)| (name, value.into()));
    let rows = stay
        .chain(taken_back)
        .filter_map(|(name, set)| Some((knobs.iter().find(|knob| knob.name == *name)?, set)));
    let rows: Vec<(&Knob, Cell)> = rows.collect();
    let mut columns = Table::of(&rows)
        .text("setting", |(knob, _)| Cell::new(&knob.name, Tone::Strong))
        .number("before", 100, |(knob, _)| before(knob))
        .number("set", 200, |(_, set)| set.clone());
    if !ablation.is_empty() {
        columns = columns.number("without it", 180, |(knob, _)| {
            let without = ablation.iter().find(|one| one.knob == knob.name);
            without.map_or_else(Cell::default, of_ablation)
        });
    }
    columns
        .text("how it is set", |(knob, _)| knob.reach.as_str())
        .text("what it can break", |(knob, _)| Cell::known(knob.risk.as_ref()))
        .table(title)
}

fn of_ablation(one: &Ablation) -> Cell {
    match (&one.ratio, &one.problem) {
        (Some(ratio), _) => {
            let together = one.is_only_together.then(|| "proven only together".to_owned());
            let detail = interval_of(ratio, Quantity::plain).into_iter().chain(together);
            let detail: Vec<String> = detail.collect();
            let detail = (!detail.is_empty()).then(|| detail.join("; "));
            Cell::from(Quantity::plain(ratio.value)).with_detail(detail)
        }
        (None, Some(problem)) => Cell::new(problem, Tone::Alarm),
        (None, None) => Cell::default(),
    }
}

pub(super) fn settings(settings: &BTreeMap<String, String>) -> String {
    let all: Vec<String> = settings.iter().map(|(knob, value)| format!("{knob} {value}")).collect();
    if all.is_empty() { "as before".to_owned() } else { all.join(", ") }
}
