//! Comparison of two runs: differences, and ratios of their results.

use super::ratios::{self, basis};
use crate::costs;
use crate::error::ReportError;
use crate::options::{PageFormat, RenderOptions};
use crate::page::table::{Cell, Table, Tone};
use crate::page::{Fact, Page, Section, charts_of};
use crate::render::show;
use crate::terms::terms;
use crate::texts::text;
use dyno_analyze::experiment::ab::RunComparison;
use dyno_record::experiment::{AbAnswer, Basis};
use dyno_record::quantity::Quantity;

/// Renders a comparison. The text ends with a newline.
///
/// # Errors
/// [`ReportError::Template`] or [`ReportError::Json`]; no content of a comparison causes them.
pub fn render(
    comparison: &RunComparison,
    format: PageFormat,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    show(format, options, || page(comparison), || comparison)
}

/// The basis of the intervals: runs or windows.
fn basis_of(comparison: &RunComparison, answer: &AbAnswer) -> String {
    let [a, b] = comparison.runs;
    match answer.comparisons.first() {
        Some(row) if row.basis == Basis::BetweenRuns => {
            format!("Intervals of 95 % from the variation between {a} runs of A and {b} runs of B.")
        }
        _ => basis(&answer.comparisons),
    }
}

/// A page with the ratios as a chart.
fn page(comparison: &RunComparison) -> Page {
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
                std::iter::once(basis_of(comparison, answer)).chain(undecided(answer))
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
    Page {
        no_answer: if rows.is_empty() { "The runs cannot be compared." } else { "" },
        headline: ratios::figures(rows, &[Vec::new(), Vec::new()]),
        sections: sections.into_iter().flatten().collect(),
        method: Page::method_of(facts),
        definitions: terms(&["comparison", "verdict"]),
        ..Page::new("comparison", title, question, label)
    }
}

/// Differences between the runs other than the result.
fn differences(comparison: &RunComparison) -> Option<Section> {
    let table = Table::of(&comparison.differences)
        .text("difference", |one| Cell::new(&one.what, Tone::Strong))
        .text("A", |one| &one.a)
        .text("B", |one| &one.b)
        .text("forbids the comparison", |one| match one.forbids {
            true => Cell::new("yes", Tone::Alarm),
            false => Cell::new("no", Tone::Soft),
        });
    table.known("Differences").map(|table| Section {
        title: "Other differences".into(),
        tables: vec![table],
        ..Section::default()
    })
}

/// A sentence if the deciding figure cannot be compared.
fn undecided(answer: &AbAnswer) -> Option<String> {
    let why = text(&dyno_analyze::experiment::ab::undecided(answer)?);
    Some(format!("Not enough data for a verdict: {why}."))
}
