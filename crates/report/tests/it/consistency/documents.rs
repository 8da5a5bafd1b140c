//! Checks of every page and its JSON, for experiments, index builds, traces and messages.

use super::{wrong_numbers, wrong_shares_of_time};
use crate::samples::trace::Traced;
use crate::{experiments, index_builds, messages, traces};
use dyno_record::experiment::{Answer, Experiment};
use dyno_record::statement::Statement;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Names of shares, from 0 to 1.
const SHARES: [&str; 6] =
    ["failed_ratio", "dropped_ratio", "stolen_ratio", "late_ratio", "confidence_ratio", "p_value"];

/// All contradictions within a page or its JSON.
pub(super) fn contradictions(markdown: &str, json: &str) -> Vec<String> {
    let document: Json = serde_json::from_str(json).expect("it is JSON");
    let mut found = wrong_shares_of_time(markdown);
    in_json("", &document, &mut found);
    found.extend(different_cells(markdown));
    found
}

/// Intervals that do not contain their value, and shares beyond 1, also in statements.
fn in_json(name: &str, json: &Json, found: &mut Vec<String>) {
    match json {
        Json::Object(fields) => {
            let number = |name: &str| fields.get(name).and_then(Json::as_f64);
            if let Some(value) = number("value") {
                let (low, high) = (number("low"), number("high"));
                if low.is_some_and(|low| low > value) || high.is_some_and(|high| high < value) {
                    found.push(format!("{name}: {value} is outside of {low:?} to {high:?}"));
                }
            }
            if fields.contains_key("code")
                && let Ok(statement) = serde_json::from_value::<Statement>(json.clone())
            {
                found.extend(wrong_numbers(&statement));
            }
            for (name, inner) in fields {
                // CPU time is counted in ticks, so short runs may exceed the elapsed time slightly.
                let most = match name.as_str() {
                    "busy_ratio" => 1.01,
                    name if SHARES.contains(&name) => 1.0,
                    _ => f64::INFINITY,
                };
                if let Some(share) = inner.as_f64().filter(|_| most.is_finite())
                    && !(0.0..=most).contains(&share)
                {
                    found.push(format!("{name} is {share}"));
                }
                in_json(name, inner, found);
            }
        }
        Json::Array(items) => items.iter().for_each(|item| in_json(name, item, found)),
        _ => {}
    }
}

/// Cells of one section with the same row and column names but different values. Rows that share their name within a table
/// are ignored, because other cells identify them.
fn different_cells(markdown: &str) -> Vec<String> {
    markdown.split("\n## ").flat_map(different_cells_of_section).collect()
}

fn different_cells_of_section(section: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut known: BTreeMap<(String, String), String> = BTreeMap::new();
    for table in tables(section) {
        let Some((columns, rows)) = table.split_first() else {
            continue;
        };
        // In matrices, each table has its own subject.
        if rows.iter().any(|row| columns[1..].contains(&row[0])) {
            continue;
        }
        let is_alone = |row: &&Vec<String>| rows.iter().filter(|one| one[0] == row[0]).count() == 1;
        for row in rows.iter().filter(is_alone) {
            for (column, cell) in columns.iter().zip(row).skip(1) {
                let place = (row[0].clone(), column.clone());
                let before = known.entry(place).or_insert_with(|| cell.clone());
                if before != cell {
                    found.push(format!("{}, {column}: {before} and {cell}", row[0]));
                }
            }
        }
    }
    found
}

/// Rows of all tables, starting with the column names.
pub(super) fn tables(markdown: &str) -> Vec<Vec<Vec<String>>> {
    let mut tables = vec![Vec::new()];
    for line in markdown.lines() {
        match line.strip_prefix('|') {
            Some(rule)
                if rule.starts_with("--") || rule.starts_with(" --") || rule.starts_with(":-") => {}
            Some(row) => {
                let cells = row.trim_end().trim_end_matches('|').split('|');
                let cells = cells.map(|cell| cell.trim().replace("**", ""));
                tables.last_mut().expect("there is one").push(cells.collect());
            }
            None => tables.push(Vec::new()),
        }
    }
    tables
}

/// Sentences of a search for settings that claim more than its figures show.
fn wrong_claims(experiment: &Experiment) -> Vec<String> {
    let Some(Answer::Tune(answer)) = &experiment.answer else {
        return Vec::new();
    };
    let options = experiment.options.tune.as_ref().expect("a search has its options");
    let says = |code: &str| experiment.findings.iter().any(|one| one.statement.code == code);
    let mut found = Vec::new();
    if says("tune-nothing-to-gain") {
        let high = answer.ratio.and_then(|ratio| match options.goal.larger_is_better() {
            true => ratio.high,
            false => Some(1.0 / ratio.low?),
        });
        if high.is_some_and(|high| high - 1.0 > answer.visible_ratio + 1e-9) {
            let visible = answer.visible_ratio;
            found.push(format!("{visible} would have been seen, but {high:?} is possible"));
        }
        if !answer.settings.is_empty() {
            found.push(format!("nothing to gain, and {:?}", answer.settings));
        }
    }
    found
}

fn golden(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/golden");
    fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn pages_of_experiments_do_not_contradict_themselves() {
    let recorded = ["ab", "blocks", "slo", "suite", "sweep", "xmax"].map(|name| {
        let text = golden(&format!("experiments/{name}.json"));
        (name, serde_json::from_str::<Experiment>(&text).unwrap())
    });
    let found: Vec<String> = experiments::all()
        .into_iter()
        .chain(recorded)
        .flat_map(|(name, experiment)| {
            let [markdown, json] = experiments::markdown_and_json(&experiment);
            let mut found = contradictions(&markdown, &json);
            found.extend(wrong_claims(&experiment));
            found.into_iter().map(move |one| format!("{name}: {one}"))
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn pages_of_index_builds_do_not_contradict_themselves() {
    let recorded = serde_json::from_str(&golden("index-build.json")).unwrap();
    let documents = index_builds::all().into_iter().chain([("recorded", recorded)]);
    let found: Vec<String> = documents
        .flat_map(|(name, document)| {
            let [markdown, json] = index_builds::markdown_and_json(&document);
            contradictions(&markdown, &json).into_iter().map(move |one| format!("{name}: {one}"))
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn pages_of_traces_do_not_contradict_themselves() {
    let found: Vec<String> = traces::all()
        .into_iter()
        .flat_map(|(name, traced): (&str, Traced)| {
            let [markdown, json] = traces::markdown_and_json(&traced);
            contradictions(&markdown, &json).into_iter().map(move |one| format!("{name}: {one}"))
        })
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn pages_of_messages_do_not_contradict_themselves() {
    for count in [300, 20_000] {
        let [markdown, json] = messages::markdown_and_json(count);
        let found = contradictions(&markdown, &json);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
