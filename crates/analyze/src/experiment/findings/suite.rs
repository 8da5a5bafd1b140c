//! Findings of a suite: effects of the settings.

use super::difference::explained;
use super::relative::{basis, is_of_one_run};
use super::trust::poorly_known;
use crate::experiment::ab::name;
use crate::experiment::relative::decision;
use crate::experiment::sweep::version;
use crate::values::rate_of;
use dyno_record::experiment::{
    AgainstBase, Comparison, ComparisonVerdict, Experiment, Finding, Level, PROGRAM, Relative,
    SuiteAnswer,
};
use dyno_record::quantity::Unit;
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};

/// All rules.
pub(super) fn all(experiment: &Experiment, answer: &SuiteAnswer) -> Vec<Finding> {
    let rows = Rows { experiment, answer };
    let relative = answer.relative.iter();
    let changes = relative.flat_map(|relative| changes(&rows, relative));
    changes.chain(poorly_known(rows.levels(), |levels| rows.at(levels))).collect()
}

/// A row with its comparison to its base.
type Compared<'a> = (&'a Level, &'a AgainstBase, &'a Comparison);

/// Effect of each value that is not the base: the most changed row, and the undecided rows.
fn changes(rows: &Rows<'_>, relative: &Relative) -> Vec<Finding> {
    let (base, key) = (&relative.base, &relative.base.key);
    let values = rows.experiment.axes.iter().find(|axis| axis.key == *key);
    let values = values.map_or(&[][..], |axis| &axis.values);
    let of_value = |value: &String| {
        let (mut compared, mut unknown): (Vec<Compared<'_>>, Vec<&Level>) = Default::default();
        for row in &relative.levels {
            let level = rows.level(row.level);
            if level.settings.get(key) != Some(value) {
                continue;
            }
            match decision(row, level.offered_rate_per_s.is_some()) {
                Some(decision) => compared.push((level, row, decision)),
                None => unknown.extend([level, rows.level(row.base)]),
            }
        }
        let than = rows.with(key, &base.value);
        let uncompared = uncompared(rows, &unknown, &than);
        let change = change(rows, key, rows.with(key, value), than, &compared);
        [change, uncompared].into_iter().flatten()
    };
    let others = values.iter().filter(|value| **value != base.value);
    others.flat_map(of_value).collect()
}

/// Rows, each followed by its base, that are not compared with it.
fn uncompared(rows: &Rows<'_>, unknown: &[&Level], than: &Statement) -> Option<Finding> {
    let own: Vec<&Level> = unknown.iter().step_by(2).copied().collect();
    let rates = unknown.iter().map(|level| {
        let rate = rate_of(&level.rate_per_s);
        statement!("rate-at", at = rows.at(&[level]), rate = rate)
    });
    let said = statement!("level-not-compared", at = rows.at(&own), than = than);
    (!own.is_empty()).then(|| Finding::warning(said, rates.collect()))
}

fn change(
    rows: &Rows<'_>,
    key: &str,
    at: Statement,
    than: Statement,
    compared: &[Compared<'_>],
) -> Option<Finding> {
    let is = |verdict| move |(_, _, found): &&Compared<'_>| found.verdict == verdict;
    let slower = compared.iter().filter(is(ComparisonVerdict::Slower));
    let faster = compared.iter().filter(is(ComparisonVerdict::Faster));
    let certain = slower.clone().chain(faster.clone());
    let size = |(_, _, found): &&Compared<'_>| found.ratio.value.ln().abs();
    let most = certain.max_by(|one, other| size(one).total_cmp(&size(other)));
    let of_row = |code, (level, _, found): &Compared<'_>| {
        statement!(
            code,
            row = rows.named_without(level, Some(key)),
            statistic = name(found.statistic),
            ratio = Number::estimate(&found.ratio, Unit::Plain)
        )
    };
    let is_of_one_run = compared.iter().any(|(_, _, found)| is_of_one_run(found));
    let is_certain = most.is_some() && !is_of_one_run;
    let said = statement!(
        "suite-changed",
        at = at,
        than = than,
        most = most.map(|row| of_row("row-changed-most", row)),
        slower = slower.count(),
        faster = faster.count(),
        is_of_one_run = is_of_one_run.then_some(true),
        all = compared.len()
    );
    let evidence = compared.iter().map(|row| {
        let (_, against, found) = row;
        let explanation = against.explanation.as_ref();
        let explanation = explanation.and_then(|one| explained("", one, &against.demands));
        of_row("row-times-that-of-base", row)
            .with("basis", basis(found))
            .with("explanation", explanation)
    });
    let evidence = evidence.collect();
    (!compared.is_empty()).then(|| match is_certain {
        true => Finding::found(said, evidence),
        false => Finding::warning(said, evidence),
    })
}

/// A suite with the names of its rows.
struct Rows<'a> {
    experiment: &'a Experiment,
    answer: &'a SuiteAnswer,
}

impl<'a> Rows<'a> {
    fn levels(&self) -> impl Iterator<Item = &'a Level> + Clone + use<'a> {
        self.answer.rows.iter().map(|row| &row.level)
    }

    fn level(&self, place: u32) -> &'a Level {
        &self.answer.rows[place as usize].level
    }

    /// `for a and c`, or all of them.
    fn at(&self, levels: &[&Level]) -> Statement {
        if levels.len() > 2 && levels.len() == self.answer.rows.len() {
            return statement!("for-all-rows", rows = levels.len());
        }
        let rows: Vec<Statement> = levels.iter().map(|level| self.named(level)).collect();
        statement!("for-rows", rows = rows)
    }

    /// All rows with this value of a key.
    fn with(&self, key: &str, value: &str) -> Statement {
        let has_value = |level: &&Level| level.settings.get(key).is_some_and(|own| own == value);
        let level = self.levels().find(has_value);
        let settings = level.map(|level| self.setting(level, key, value));
        statement!("with-settings", settings = settings.into_iter().collect::<Vec<String>>())
    }

    /// A workload, with the settings that distinguish its rows.
    fn named(&self, level: &Level) -> Statement {
        self.named_without(level, None)
    }

    /// The workload's name without one of these settings.
    fn named_without(&self, level: &Level, key: Option<&str>) -> Statement {
        let varied = self
            .experiment
            .axes
            .iter()
            .filter(|axis| axis.values.len() > 1 && Some(axis.key.as_str()) != key);
        let settings = varied.filter_map(|axis| {
            let value = level.settings.get(&axis.key)?;
            Some(self.setting(level, &axis.key, value))
        });
        let settings: Vec<String> = settings.collect();
        statement!(
            "workload-row",
            workload = level.workload.as_ref(),
            settings = (!settings.is_empty()).then_some(settings)
        )
    }

    /// A setting of a level; a server's own name and version replace its program, if they distinguish all
    /// programs.
    fn setting(&self, level: &Level, key: &str, value: &str) -> String {
        match (key, version(self.levels(), level)) {
            (PROGRAM, Some(version)) => version.to_owned(),
            _ => format!("`{key}={value}`"),
        }
    }
}
