//! Comparison of existing runs: their answer, their figures and their other differences.

use super::ab::{no_reasonable_number, shown};
use super::difference::{self, Remedy, limits_table, tiles};
use super::ratios;
use crate::caveat::{CaveatBook, NO_INTERVAL, Topic};
use crate::costs;
use crate::error::ReportError;
use crate::options::{PageFormat, RenderOptions};
use crate::page::table::{Cell, Table, Tone};
use crate::page::{Fact, Page, Section, charts_of};
use crate::render::show;
use crate::terms::terms;
use crate::texts::list;
use dyno_analyze::experiment::ab::{MOST_REASONABLE_PAIRS, RunComparison};
use dyno_record::experiment::{Side, Statistic};
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

/// The variation that the intervals are based on; empty if nothing shows it.
fn basis_of(comparison: &RunComparison) -> String {
    let [a, b] = comparison.runs;
    let [earlier_a, earlier_b] = comparison.earlier_runs;
    if comparison.is_of_single_runs() {
        return String::new();
    }
    match earlier_a + earlier_b {
        0 => {
            let [a, b] = [a, b].map(|runs| Quantity::counted(runs as u64, "run"));
            format!("Intervals of 95 % from the variation between {a} of A and {b} of B.")
        }
        earlier => format!(
            "Intervals of 95 % from the variation between {} of the same plan and server in the same folder.",
            Quantity::counted(earlier as u64, "other run")
        ),
    }
}

/// The answer in a sentence.
fn sentence(comparison: &RunComparison) -> String {
    if !comparison.comparable {
        let forbidding = comparison.differences.iter().filter(|one| one.forbids);
        let said = forbidding.map(|one| format!("{} ({}; {})", one.what, one.a, one.b));
        let said: Vec<String> = said.collect();
        return format!("A and B cannot be compared because of {}.", list(&said));
    }
    let Some(answer) = &comparison.answer else {
        return TOO_SHORT.to_owned();
    };
    let remedy = Remedy {
        of_one_run: ONE_RUN,
        more: match answer.pairs_needed {
            _ if comparison.is_of_single_runs() => ONE_RUN.to_owned(),
            Some(runs) if runs > MOST_REASONABLE_PAIRS => no_reasonable_number("runs"),
            Some(runs) => format!("about {} of each would", Quantity::counted(runs.into(), "run")),
            None => "longer runs, or more of them with `dyno ab`, would".to_owned(),
        },
    };
    difference::sentence(answer, &comparison.labels(), &comparison.limits, &remedy)
}

/// The answer without any compared figure.
pub(super) const TOO_SHORT: &str = "Cannot tell: the runs are too short to compare.";

/// What shows the variation between runs.
const ONE_RUN: &str = "repeat both with `--repeat 5`, or use `dyno ab`";

/// The page; without figures if the runs cannot be compared.
pub fn page(comparison: &RunComparison) -> Page {
    let differing = comparison.differences.iter().map(|one| one.what.as_str());
    let caveats = difference::relevant_caveats(&comparison.caveats, differing);
    let book = CaveatBook::new(&caveats);
    let answer = comparison.answer.as_ref();
    let answer = answer.filter(|answer| comparison.comparable && !answer.comparisons.is_empty());
    let label = if comparison.comparable { "comparable" } else { "not comparable" };
    let question = format!("Is `{}` faster than `{}`?", comparison.b, comparison.a);
    let title = match comparison.runs {
        [1, 1] => "Comparison of two runs".to_owned(),
        [a, b] => format!("Comparison of {} with {b}", Quantity::counted(a as u64, "run")),
    };
    let mut facts = vec![Fact::new("A", &comparison.a), Fact::new("B", &comparison.b)];
    if let Some(first) = answer.and_then(|answer| answer.comparisons.first()) {
        let margin = Quantity::ratio(first.margin_ratio);
        facts.push(Fact::new("Difference of no interest", margin));
    }
    let value = |side: Side, statistic: Statistic| {
        let found = comparison.values.iter().find(|one| one.statistic == statistic);
        found.map_or(String::new(), |found| {
            let value = if side == Side::A { found.a } else { found.b };
            shown(value, statistic)
        })
    };
    let marks = [Topic::Rate, Topic::Latency].map(|topic| book.marks(topic, None));
    let names = difference::titles(comparison.labels());
    let compared = answer.map(|answer| Section {
        title: "B against A".into(),
        charts: charts_of([ratios::ratios(&answer.comparisons)]),
        tables: std::iter::once(difference::table(answer, &names, &comparison.limits, value))
            .chain(limits_table(&comparison.limits))
            .chain(costs::comparison(&answer.costs, &names))
            .collect(),
        notes: Some(basis_of(comparison)).filter(|note| !note.is_empty()).into_iter().collect(),
        ..Section::default()
    });
    let lack = answer.map_or(Some(NO_INTERVAL), difference::lack);
    let runs = comparison.runs.iter().sum();
    Page {
        answer: sentence(comparison),
        trust: comparison.comparable.then(|| book.trust(runs, lack)),
        headline: answer.map_or(Vec::new(), |answer| tiles(answer, &marks, value)),
        headline_is_in_table: true,
        sections: [compared, differences(comparison)].into_iter().flatten().collect(),
        method: Page::method_of(facts),
        definitions: terms(&["comparison", "verdict", "load"]),
        caveats: book.into_entries(),
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
