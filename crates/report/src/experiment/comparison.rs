//! Comparison of two runs: differences, and ratios of their results.

use super::ratios::{self, VERDICT, basis, statistic, too_few, verdict};

use crate::costs;
use crate::error::ReportError;
use crate::page::table::{Cell, Column, Table, Tone};
use crate::page::{Definition, Fact, NO_ANSWER, Page, Section, charts_of};
use crate::render;
use crate::texts::text;
use dyno_analyze::experiment::ab::RunComparison;
use dyno_record::experiment::{AbAnswer, Basis, Comparison};
use dyno_record::quantity::Quantity;
use std::fmt::Write as _;

/// Tables for a terminal.
pub fn human(comparison: &RunComparison) -> String {
    let mut text = format!("A  {}\nB  {}\n", comparison.a, comparison.b);
    if !comparison.comparable {
        text.push_str("\nThe runs are not comparable.\n");
    }
    if !comparison.differences.is_empty() {
        text.push_str("\nDifferences\n");
        for difference in &comparison.differences {
            let mark = if difference.forbids { "!" } else { " " };
            let _ = writeln!(
                text,
                " {mark} {}: {} in A, {} in B",
                difference.what, difference.a, difference.b
            );
        }
        if comparison.differences.iter().any(|one| one.forbids) {
            text.push_str("   ! forbids the comparison\n");
        }
    }
    let Some(answer) = &comparison.answer else {
        return text;
    };
    text.push_str("\nB divided by A\n");
    for row in &answer.comparisons {
        let _ = writeln!(
            text,
            "  {:<14}  {:.3}  [{}]  {}",
            statistic(row.statistic),
            row.ratio.value,
            range_or_why(row, ", "),
            verdict(row)
        );
    }
    if !answer.costs.is_empty() {
        text.push_str("\nCost per operation\n");
    }
    for one in &answer.costs {
        let [a, b] = costs::both(one);
        let _ = writeln!(
            text,
            "  {:<20}  {:.3}  {a} in A, {b} in B",
            costs::label(one.kind),
            one.ratio.value
        );
    }
    text.push('\n');
    text.push_str(&basis_of(comparison, answer));
    text.extend(undecided(answer).map(|why| format!("{why}\n")));
    text
}

/// The ends of an interval, or the reason for a missing one.
fn range_or_why(row: &Comparison, between: &str) -> String {
    too_few(row).map_or_else(
        || format!("{:.3}{between}{:.3}", row.ratio.low, row.ratio.high),
        str::to_owned,
    )
}

/// The basis of the intervals: runs or windows.
fn basis_of(comparison: &RunComparison, answer: &AbAnswer) -> String {
    let [a, b] = comparison.runs;
    match answer.comparisons.first() {
        Some(row) if row.basis == Basis::BetweenRuns => {
            format!(
                "Intervals of 95 % from the variation between {a} runs of A and {b} runs of B.\n"
            )
        }
        _ => basis(&answer.comparisons),
    }
}

/// Tables as Markdown.
pub fn markdown(comparison: &RunComparison) -> String {
    let mut text = format!("# B against A\n\n- A: `{}`\n- B: `{}`\n", comparison.a, comparison.b);
    if !comparison.comparable {
        text.push_str("\n**The runs are not comparable.**\n");
    }
    if !comparison.differences.is_empty() {
        text.push_str("\n| Difference | A | B | Forbids the comparison |\n|---|---|---|---|\n");
        for difference in &comparison.differences {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                cell(&difference.what),
                cell(&difference.a),
                cell(&difference.b),
                if difference.forbids { "yes" } else { "no" }
            );
        }
    }
    let Some(answer) = &comparison.answer else {
        return text;
    };
    text.push_str("\n| Figure | B / A | 95 % interval | Verdict |\n|---|---|---|---|\n");
    for row in &answer.comparisons {
        let _ = writeln!(
            text,
            "| {} | {:.3} | {} | {} |",
            statistic(row.statistic),
            row.ratio.value,
            range_or_why(row, " to "),
            verdict(row)
        );
    }
    if !answer.costs.is_empty() {
        text.push_str("\n| Cost per operation | A | B | B / A |\n|---|---:|---:|---:|\n");
    }
    for one in &answer.costs {
        let [a, b] = costs::both(one);
        let what = costs::label(one.kind);
        let _ = writeln!(text, "| {what} | {a} | {b} | {:.3} |", one.ratio.value);
    }
    text.push('\n');
    text.push_str(&basis_of(comparison, answer));
    text.extend(undecided(answer).map(|why| format!("\n**{why}**\n")));
    text
}

/// A page with the ratios as a chart.
///
/// # Errors
/// [`ReportError::Template`] or [`ReportError::Json`]; no content of a comparison causes them.
pub fn html(comparison: &RunComparison) -> Result<String, ReportError> {
    let rows = match &comparison.answer {
        Some(answer) => answer.comparisons.as_slice(),
        None => &[],
    };
    let label = if comparison.comparable { "comparable" } else { "not comparable" };
    let question = format!("Is `{}` faster than `{}`?", comparison.b, comparison.a);
    let title = match comparison.runs {
        [1, 1] => "Comparison of two runs".to_owned(),
        [a, b] => format!("Comparison of {a} runs with {b}"),
    };
    let fact = |name: &str, text: &String| Fact::new(name, text.clone());
    let mut facts = vec![fact("A", &comparison.a), fact("B", &comparison.b)];
    if let Some(first) = rows.first() {
        let margin = Quantity::ratio(first.margin_ratio);
        facts.push(Fact::new("Difference of no interest", margin));
    }
    let ratios = (!rows.is_empty()).then(|| Section {
        title: "B against A".into(),
        charts: charts_of([ratios::ratios(rows)]),
        tables: vec![ratios::table_of(rows, &["A", "B"].map(str::to_owned), |_, _| String::new())],
        notes: comparison
            .answer
            .iter()
            .flat_map(|answer| {
                let basis = basis_of(comparison, answer).trim_end().to_owned();
                std::iter::once(basis).chain(undecided(answer))
            })
            .collect(),
        ..Section::default()
    });
    let costs = comparison.answer.as_ref().and_then(|answer| {
        let names = ["A", "B"].map(str::to_owned);
        costs::comparison(&answer.costs, &names)
    });
    let costs = costs.map(|table| Section {
        title: "Cost per operation".into(),
        tables: vec![table],
        notes: comparison
            .is_of_single_runs()
            .then(|| {
                "Counted in one run of each; the variation between runs is unknown.".to_owned()
            })
            .into_iter()
            .collect(),
        ..Section::default()
    });
    let sections = [ratios, costs, differences(comparison)];
    render::html(&Page {
        no_answer: if rows.is_empty() { NO_ANSWER } else { "" },
        headline: ratios::figures(rows, &[Vec::new(), Vec::new()]),
        sections: sections.into_iter().flatten().collect(),
        method: Page::method_of(facts),
        definitions: DEFINITIONS.to_vec(),
        ..Page::new("comparison", title, question, label)
    })
}

/// Differences between the runs other than the result.
fn differences(comparison: &RunComparison) -> Option<Section> {
    let columns = ["difference", "A", "B", "forbids the comparison"].map(Column::text);
    let rows = comparison.differences.iter().map(|one| {
        let (word, tone) = if one.forbids { ("yes", Tone::Alarm) } else { ("no", Tone::Soft) };
        vec![
            Cell::new(one.what.clone(), Tone::Strong),
            one.a.clone().into(),
            one.b.clone().into(),
            Cell::new(word, tone),
        ]
    });
    let table = Table::new("Differences", columns.to_vec(), rows.collect());
    (!table.rows.is_empty()).then(|| Section {
        title: "Other differences".into(),
        tables: vec![table],
        ..Section::default()
    })
}

/// Terms used on the page of a comparison of two runs.
const DEFINITIONS: &[Definition] = &[
    Definition { term: "ratio", meaning: "The value of B divided by the value of A." },
    Definition {
        term: "95 % interval",
        meaning: "Of many such intervals, 95 in 100 hold the true ratio. With several runs of a side it rests on the \
                  variation between runs. With one run each it rests on their windows, and decides nothing.",
    },
    VERDICT,
];

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A sentence if the deciding figure cannot be compared.
fn undecided(answer: &AbAnswer) -> Option<String> {
    let why = text(&dyno_analyze::experiment::ab::undecided(answer)?);
    Some(format!("Not enough data for a verdict: {why}."))
}
