//! The levels of a sweep and their labels.

use crate::caveat::CaveatBook;
use crate::page::table::{Cell, Column, Tone};
use dyno_analyze::experiment::sweep::{is_throttled, version};
use dyno_record::experiment::{Block, CLIENTS, Experiment, Level, PROGRAM, RATE, SweepAnswer};
use dyno_record::quantity::Quantity;

/// A sweep with the labels of its levels.
pub(super) struct Sweep<'a> {
    pub(super) answer: &'a SweepAnswer,
    pub(super) experiment: &'a Experiment,
    pub(super) book: &'a CaveatBook,
}

impl<'a> Sweep<'a> {
    /// The levels in the order of their values.
    pub(super) fn levels(&self) -> Vec<&'a Level> {
        let mut levels: Vec<&Level> = self.answer.levels.iter().collect();
        if self.answer.axis.is_none() {
            levels.sort_by_key(|level| self.places(level));
        }
        levels
    }

    /// Indexes of a level's values within their axes.
    fn places(&self, level: &Level) -> Vec<usize> {
        let axes = self.experiment.axes_of(self.answer.block);
        axes.map(|axis| {
            let value = level.settings.get(&axis.key);
            let place = axis.values.iter().position(|other| Some(other) == value);
            place.unwrap_or(usize::MAX)
        })
        .collect()
    }

    /// The level with the highest rate.
    pub(super) fn best(&self) -> &'a Level {
        &self.answer.levels[self.answer.best as usize]
    }

    /// Keys that distinguish levels.
    pub(super) fn keys(&self) -> Vec<&'a str> {
        let all = || self.experiment.axes_of(self.answer.block);
        let swept: Vec<&str> =
            all().filter(|axis| axis.values.len() > 1).map(|axis| axis.key.as_str()).collect();
        if swept.is_empty() { all().map(|axis| axis.key.as_str()).collect() } else { swept }
    }

    /// The label of a level: `8 clients`, `5,000/s offered`, `server.cache=1GiB`.
    pub(super) fn name(&self, level: &Level) -> String {
        match self.answer.axis.as_deref() {
            Some(CLIENTS) => clients(level.clients),
            Some(_) => format!(
                "{} offered",
                Quantity::per_second(level.offered_rate_per_s.unwrap_or(f64::NAN))
            ),
            None => {
                let keys = self.keys();
                let setting = |key: &&str| {
                    let value = level.settings.get(*key)?;
                    Some(match (*key, version(self.answer.levels.iter(), level)) {
                        (PROGRAM, Some(version)) => version.to_owned(),
                        (key, _) => format!("{key}={value}"),
                    })
                };
                let settings: Vec<String> = keys.iter().filter_map(setting).collect();
                settings.join(", ")
            }
        }
    }

    /// The label of a level inside a sentence: `with 8 clients`, `at 5,000/s offered`.
    pub(super) fn at(&self, level: &Level) -> String {
        let word = match self.answer.axis.as_deref() {
            Some(RATE) => "at",
            _ => "with",
        };
        format!("{word} {}", self.name(level))
    }

    /// The title of a section that both blocks have: unchanged with one block, otherwise preceded by the loop.
    pub(super) fn title(&self, title: &str) -> String {
        let (first, rest) = title.split_at(1);
        let lower = format!("{}{rest}", first.to_lowercase());
        match self.answer.block {
            None => title.to_owned(),
            Some(Block::Closed) => format!("Closed loop: {lower}"),
            Some(Block::Open) if is_throttled(self.answer) => format!("Throttled loop: {lower}"),
            Some(Block::Open) => format!("Open loop: {lower}"),
        }
    }

    /// The value of a key; for a program its own name and version if they distinguish the programs.
    pub(super) fn key_cell(&self, key: &str, level: &Level) -> Cell {
        let text = match (key, level.offered_rate_per_s, version(self.answer.levels.iter(), level))
        {
            (CLIENTS, ..) => Quantity::count(level.clients.into()).to_string(),
            (RATE, Some(rate), _) => Quantity::per_second(rate).to_string(),
            (PROGRAM, _, Some(version)) => version.to_owned(),
            _ => level.settings.get(key).cloned().unwrap_or_default(),
        };
        Cell::new(text, Tone::Strong)
    }
}

/// `1 client`, `8 clients`.
pub(super) fn clients(number: u32) -> String {
    match number {
        1 => "1 client".to_owned(),
        number => format!("{} clients", Quantity::count(number.into())),
    }
}

pub(super) fn key_column(key: &str) -> Column {
    match key {
        CLIENTS => Column::number("clients", u8::MAX),
        RATE => Column::number("offered", u8::MAX),
        key => Column::text(key),
    }
}
