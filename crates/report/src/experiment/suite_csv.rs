//! The table of a suite for a spreadsheet.

use super::suite::keys;
use crate::spreadsheet::{figure, line, with_interval};
use dyno_record::experiment::{
    CostKind, Experiment, Level, PERCENTILES, SuiteAnswer, SuiteOperation,
};
use std::collections::{BTreeMap, BTreeSet};

/// The table with its header.
pub(super) fn table(experiment: &Experiment, answer: &SuiteAnswer) -> String {
    let keys = keys(experiment);
    let kinds = kinds(answer);
    let mut text = line(&head(&keys, &kinds));
    for load in &answer.loads {
        let mut cells = vec!["load".to_owned()];
        cells.extend(settings(&keys, &load.settings));
        cells.push(load.runs.len().to_string());
        cells.extend(figure(Some(&load.documents_per_s), 3));
        cells.push("insert".to_owned());
        cells.extend(operation(&load.commands));
        cells.extend(kinds.iter().flat_map(|_| figure(None, 0)));
        text += &line(&cells);
    }
    for row in &answer.rows {
        for (name, one) in &row.operations {
            let mut cells = of_level(&keys, &row.level);
            cells.push(name.clone());
            cells.extend(operation(one));
            let of_kind = |kind| row.level.costs.iter().find(|cost| cost.kind == kind);
            let costs = kinds.iter().map(|kind| of_kind(*kind));
            cells.extend(costs.flat_map(|cost| figure(cost.map(|cost| &cost.value), 6)));
            text += &line(&cells);
        }
    }
    text
}

/// The costs known for at least one workload.
fn kinds(answer: &SuiteAnswer) -> Vec<CostKind> {
    let costs = answer.rows.iter().flat_map(|row| &row.level.costs);
    let known: BTreeSet<CostKind> = costs.map(|cost| cost.kind).collect();
    known.into_iter().collect()
}

fn head(keys: &[&str], kinds: &[CostKind]) -> Vec<String> {
    let mut head = vec!["workload".to_owned()];
    head.extend(keys.iter().map(|key| (*key).to_owned()));
    head.push("runs".to_owned());
    head.extend(with_interval("rate_per_s".to_owned()));
    head.extend(["operation", "succeeded", "failed"].map(str::to_owned));
    head.extend(with_interval("mean_us".to_owned()));
    head.extend(PERCENTILES.iter().flat_map(|(name, _)| with_interval(format!("{name}_us"))));
    head.push("max_us".to_owned());
    head.extend(with_interval("below_ratio".to_owned()));
    // The cost of the whole workload, like its rate.
    let names = kinds.iter().map(|kind| kind.as_str().to_owned());
    head.extend(names.flat_map(with_interval));
    head
}

fn of_level(keys: &[&str], level: &Level) -> Vec<String> {
    let mut cells = vec![level.workload.clone().unwrap_or_default()];
    cells.extend(settings(keys, &level.settings));
    cells.push(level.runs.len().to_string());
    cells.extend(figure(Some(&level.rate_per_s), 3));
    cells
}

fn settings(keys: &[&str], settings: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    keys.iter().map(|key| settings.get(*key).cloned().unwrap_or_default())
}

fn operation(one: &SuiteOperation) -> Vec<String> {
    let mut cells = vec![one.count.to_string(), one.errors.to_string()];
    cells.extend(figure(Some(&one.response_mean_us), 3));
    cells.extend(PERCENTILES.iter().flat_map(|(name, _)| figure(one.response_us.get(*name), 3)));
    cells.push(format!("{:.3}", one.max_us));
    cells.extend(figure(one.below_ratio.as_ref(), 6));
    cells
}
