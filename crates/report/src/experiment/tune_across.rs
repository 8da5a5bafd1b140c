//! Reports of a search for settings for several workloads: the settings found, their effect on the other workloads, the
//! settings that are good for all, and each search.

use super::figure::{TOO_SHORT, interval_of, interval_or_why};
use super::parts::Parts;
use super::suite;
use super::tune::{TunePage, facts, goal, less_is_better, settings, to_set, topic};
use super::tune_commands;
use crate::caveat::CaveatBook;
use crate::page::table::{Cell, Column, Table, Tone};
use crate::page::{Figure, Section};
use crate::terms::terms;
use crate::texts::list;
use dyno_record::experiment::{
    AcrossSettings, Experiment, Figure as Ratio, Knob, OnWorkload, TuneAcrossAnswer, TuneOptions,
    WorkloadSearch,
};
use dyno_record::quantity::Quantity;
use std::collections::BTreeSet;

/// All parts of the page of such searches.
pub(super) fn parts(
    experiment: &Experiment,
    answer: &TuneAcrossAnswer,
    book: &CaveatBook,
) -> Parts {
    let Some(options) = &experiment.options.tune else {
        return Parts::default();
    };
    let page = AcrossPage { experiment, answer, options };
    let mut sections = vec![page.matrix()];
    sections.extend(page.for_all());
    sections.extend(page.searches());
    let mut own = facts(options, page.knobs(), |knob| page.before(knob));
    own.extend(suite::workloads(experiment));
    Parts {
        headline: page.headline(book),
        facts: own,
        sections,
        definitions: terms(&["tune-across", "tune"]),
    }
}

struct AcrossPage<'a> {
    experiment: &'a Experiment,
    answer: &'a TuneAcrossAnswer,
    options: &'a TuneOptions,
}

impl AcrossPage<'_> {
    /// The knobs, with the defaults of the first workload.
    fn knobs(&self) -> &[Knob] {
        self.answer.searches.first().map_or(&[], |search| search.options.knobs.as_slice())
    }

    /// The original value of a knob, for each workload if it differs.
    fn before(&self, knob: &Knob) -> String {
        let of_each = self.answer.searches.iter().filter_map(|search| {
            let own = search.options.knobs.iter().find(|own| own.name == knob.name)?;
            Some((search.workload.as_str(), own.default_value()))
        });
        let of_each: Vec<(&str, &str)> = of_each.collect();
        let values: BTreeSet<&str> = of_each.iter().map(|(_, value)| *value).collect();
        if values.len() == 1 {
            return knob.default_value().to_owned();
        }
        let named = of_each.iter();
        let named: Vec<String> =
            named.map(|(workload, value)| format!("{value} ({workload})")).collect();
        named.join(", ")
    }

    fn headline(&self, book: &CaveatBook) -> Vec<Figure> {
        let marks = book.marks(topic(self.options.goal), None);
        let goal = goal(self.options.goal);
        let label = format!("{goal}, good for all / before");
        let mean = self.answer.for_all.as_ref().and_then(|found| found.mean_ratio);
        let together = match &mean {
            Some(mean) => Figure::new(label, Quantity::plain(mean.value)).with_note(format!(
                "{}; geometric mean",
                interval_or_why(mean, Quantity::plain, TOO_SHORT)
            )),
            None => {
                let what = match self.answer.is_empty() {
                    true => "nothing was found for any workload",
                    false => "none of the settings is proven to be good for all",
                };
                Figure::new(label, Quantity::plain(1.0)).with_note(what.to_owned())
            }
        };
        let of_each = self.answer.searches.iter().filter_map(|search| {
            let page = self.page(search);
            let gain = page.headline(book).into_iter().next()?;
            let label = format!("{}: {}", search.workload, gain.label);
            Some(Figure { label, ..gain })
        });
        std::iter::once(together.marked(&marks)).chain(of_each).collect()
    }

    fn page<'b>(&'b self, search: &'b WorkloadSearch) -> TunePage<'b> {
        TunePage::new(self.experiment, &search.workload, &search.options, &search.answer)
    }

    /// The settings found for each workload, and those of all workloads together.
    fn rows(&self) -> impl Iterator<Item = (String, &AcrossSettings)> {
        let found = self.answer.winners.iter();
        let found = found.map(|found| (found.found_for.concat(), found));
        let together = self.answer.together.iter();
        found.chain(together.map(|found| ("all together".to_owned(), found)))
    }

    /// The effect of each workload's settings on all workloads.
    fn matrix(&self) -> Section {
        let goal = goal(self.options.goal);
        let before = self.table("Divided by before", |on| self.cell(on), true);
        let own = self.table("Divided by the workload's own", |on| self.cell_of_own(on), false);
        Section {
            title: "Effect of each workload's settings on the others".into(),
            lead: format!(
                "The {goal} of each workload with the settings found for one of them, divided by the value with the original \
                 settings.{}",
                less_is_better(self.options.goal)
            ),
            tables: vec![before, own],
            notes: vec![
                "The 95 % interval is below each ratio, with a mark if the ratio is certainly better or worse. The first table compares \
                 pairs of runs on new servers; the second one has quotients of the first: a workload with another workload's settings, \
                 divided by the same workload with its own."
                    .to_owned(),
            ],
            ..Section::default()
        }
    }

    fn table(&self, label: &str, cell: impl Fn(&OnWorkload) -> Cell, has_mean: bool) -> Table {
        let rows: Vec<(String, &AcrossSettings)> = self.rows().collect();
        let mut columns = Table::of(&rows)
            .text("found for", |(name, _)| Cell::new(name, Tone::Strong))
            // Settings are long, and a narrow terminal must keep the ratios.
            .with(Column { rank: 60, ..Column::text("settings") }, |(_, found)| {
                Cell::new(settings(&found.settings), Tone::Soft)
            });
        for workload in self.answer.workloads() {
            columns = columns.number(workload, 200, |(_, found)| {
                found.on(workload).map_or_else(Cell::default, &cell)
            });
        }
        columns
            .number("geometric mean", 150, |(_, found)| {
                let mean = found.mean_ratio.as_ref().filter(|_| has_mean);
                mean.map_or_else(Cell::default, |mean| self.ratio(mean))
            })
            .table(label)
    }

    fn cell(&self, on: &OnWorkload) -> Cell {
        match (&on.ratio, &on.problem) {
            (Some(_), _) if on.pairs == 0 => Cell::new("as before", Tone::Soft),
            (Some(ratio), _) => self.ratio(ratio),
            (None, problem) => Cell::new("harm", Tone::Alarm).with_detail(problem.clone()),
        }
    }

    fn cell_of_own(&self, on: &OnWorkload) -> Cell {
        match (&on.beside_own, &on.ratio) {
            (Some(ratio), _) => self.ratio(ratio),
            (None, Some(_)) => Cell::new("its own", Tone::Soft),
            (None, None) => Cell::new("harm", Tone::Alarm),
        }
    }

    /// A ratio with its interval, marked if it is certainly better or worse.
    fn ratio(&self, ratio: &Ratio) -> Cell {
        let is_rising = self.options.goal.larger_is_better();
        let is_above = ratio.low.is_some_and(|low| low > 1.0);
        let is_below = ratio.high.is_some_and(|high| high < 1.0);
        let (word, tone) = match (is_above, is_below) {
            (false, false) => ("", Tone::Plain),
            (above, _) if above == is_rising => (", better", Tone::Strong),
            _ => (", worse", Tone::Alarm),
        };
        let interval = interval_of(ratio, Quantity::plain);
        Cell::new(Quantity::plain(ratio.value), tone)
            .with_detail(interval.map(|interval| format!("{interval}{word}")))
    }

    /// How to apply and undo the settings that are good for all.
    fn for_all(&self) -> Option<Section> {
        let found = self.answer.for_all.as_ref()?;
        let before = |knob: &Knob| self.before(knob);
        let table = to_set("Settings good for all", self.knobs(), &found.settings, &[], before);
        let workloads: Vec<&str> = self.answer.workloads().collect();
        Some(Section {
            title: "Settings good for all".into(),
            lead: format!("Found for {}.", list(&found.found_for)),
            tables: vec![table],
            lists: tune_commands::lists(
                &workloads.join(" "),
                self.knobs(),
                &found.settings,
                &found.keys,
            ),
            ..Section::default()
        })
    }

    /// Each search with its findings.
    fn searches(&self) -> impl Iterator<Item = Section> {
        self.answer.searches.iter().flat_map(|search| {
            self.page(search).sections().into_iter().map(move |section| Section {
                title: format!("{}: {}", search.workload, section.title).into(),
                ..section
            })
        })
    }
}
