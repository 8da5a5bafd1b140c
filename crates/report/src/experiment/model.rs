//! The one model that every renderer of an experiment shows. Renderers choose the layout and nothing else.

use super::density::DensityChart;
use super::picture::Picture;
use super::plot::Plot;
use super::rows::RowsChart;
use super::scatter::ScatterChart;
use super::table::Table;
use super::{ab, blocks, runs, slo, sweep, xmax};
use crate::caveat::{CaveatBook, NumberedCaveat, Topic};
use crate::facts::{self, Fact};
use crate::model::{Definition, Figure, Status};
use dyno_analyze::experiment::{Answer, Experiment, Finding, FindingKind, Verb};
use dyno_record::quantity::Quantity;
use serde::Serialize;

/// What a report says about an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExperimentModel {
    /// What the page is about, in a word.
    pub kind: &'static str,
    /// What it is, such as `Sweep of workload a`.
    pub title: String,
    /// What was asked.
    pub question: String,
    /// How it ended.
    pub status: Status,
    /// Its start, RFC 3339 in UTC; empty for runs that were made at different times.
    pub started_at: String,
    /// Version of the program that measured, or that compared what was measured.
    pub dyno_version: String,
    /// Whether there is an answer.
    pub has_answer: bool,
    /// The answer in a few numbers.
    pub headline: Vec<Figure>,
    /// What follows from it.
    pub findings: Vec<FindingModel>,
    /// Reasons to doubt it, the most serious first.
    pub caveats: Vec<NumberedCaveat>,
    /// Tables and charts.
    pub sections: Vec<Section>,
    /// How it was done.
    pub facts: Vec<Fact>,
    /// The plan that the runs change, as text; empty without one.
    pub plan: String,
    /// What the words mean.
    pub definitions: Vec<Definition>,
}

/// A finding as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FindingModel {
    /// `finding`, `warning` or `opportunity`.
    pub kind: &'static str,
    /// The sentence.
    pub text: String,
    /// The measurements behind it, a sentence each.
    pub evidence: Vec<String>,
}

/// A part of the report about one matter.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Section {
    /// Its title.
    pub title: &'static str,
    /// What to know before the tables.
    pub lead: String,
    /// Charts over an axis; only pages have them.
    pub plots: Vec<Plot>,
    /// Densities over two axes; only pages have them.
    pub densities: Vec<DensityChart>,
    /// Scatters of very many values; only pages have them.
    pub scatters: Vec<ScatterChart>,
    /// Charts of rows; only pages have them.
    pub rows: Vec<RowsChart>,
    /// Pictures; only pages have them.
    pub pictures: Vec<Picture>,
    /// Pictures of characters; only texts have them.
    #[serde(skip)]
    pub sketches: Vec<Sketch>,
    /// Tables.
    pub tables: Vec<Table>,
    /// What has to be known to read the tables.
    pub notes: Vec<String>,
}

/// A picture of characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    /// What it shows.
    pub title: String,
    /// Its lines.
    pub lines: Vec<String>,
}

impl Section {
    /// Whether a text has something to show of it, and not only pages have.
    pub(super) fn has_text(&self) -> bool {
        !(self.tables.is_empty() && self.notes.is_empty() && self.sketches.is_empty())
    }

    /// Whether it is nothing but charts, of which a text has none.
    pub(super) fn is_charts_only(&self) -> bool {
        let has_charts = !(self.densities.is_empty()
            && self.plots.is_empty()
            && self.scatters.is_empty()
            && self.rows.is_empty());
        has_charts && !self.has_text()
    }
}

/// What an answer contributes to the report.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    pub(super) headline: Vec<Figure>,
    /// How it was done, besides what is the same for all.
    pub(super) facts: Vec<Fact>,
    pub(super) sections: Vec<Section>,
    pub(super) definitions: Vec<Definition>,
}

impl ExperimentModel {
    /// Makes the model of an experiment.
    pub fn new(experiment: &Experiment) -> Self {
        let book = CaveatBook::new(&experiment.caveats);
        let parts = match &experiment.answer {
            Some(Answer::Sweep(answer)) => sweep::parts(experiment, answer, &book),
            Some(Answer::Blocks(answer)) => blocks::parts(experiment, answer, &book),
            Some(Answer::Xmax(answer)) => xmax::parts(experiment, answer, &book),
            Some(Answer::Slo(answer)) => slo::parts(answer, &book),
            Some(Answer::Ab(answer)) => ab::parts(experiment, answer, &book),
            None => Parts::default(),
        };
        let mut sections = parts.sections;
        sections.push(runs::section(experiment));
        ExperimentModel {
            kind: "experiment",
            title: title(experiment),
            question: experiment.question.clone(),
            status: status(experiment, &book),
            started_at: experiment.started_at.clone(),
            dyno_version: experiment.dyno_version.clone(),
            has_answer: experiment.answer.is_some(),
            headline: parts.headline,
            findings: experiment.findings.iter().map(FindingModel::new).collect(),
            sections,
            facts: how(experiment, parts.facts, &book),
            plan: facts::plan_text(&experiment.plan),
            definitions: parts.definitions,
            caveats: book.into_entries(),
        }
    }

    /// A page about runs that exist already: nothing but its title, its question and whether all is well.
    pub(crate) fn of_runs(
        kind: &'static str,
        title: String,
        question: String,
        label: &'static str,
    ) -> Self {
        ExperimentModel {
            kind,
            title,
            question,
            status: Status {
                label,
                reason: None,
                marks: Vec::new(),
            },
            started_at: String::new(),
            dyno_version: env!("CARGO_PKG_VERSION").to_owned(),
            has_answer: true,
            headline: Vec::new(),
            findings: Vec::new(),
            caveats: Vec::new(),
            sections: Vec::new(),
            facts: Vec::new(),
            plan: String::new(),
            definitions: Vec::new(),
        }
    }

    /// All charts over an axis.
    pub(super) fn plots(&self) -> Vec<&Plot> {
        let sections = self.sections.iter();
        sections.flat_map(|section| &section.plots).collect()
    }

    /// All scatters.
    pub(super) fn scatters(&self) -> Vec<&ScatterChart> {
        let sections = self.sections.iter();
        sections.flat_map(|section| &section.scatters).collect()
    }

    /// All densities.
    pub(super) fn densities(&self) -> Vec<&DensityChart> {
        let sections = self.sections.iter();
        sections.flat_map(|section| &section.densities).collect()
    }
}

fn title(experiment: &Experiment) -> String {
    let what = match experiment.verb {
        Verb::Sweep => "Sweep",
        Verb::Xmax => "Highest rate",
        Verb::Slo => "Objective",
        Verb::Ab => "Comparison",
    };
    format!("{what} of workload {}", experiment.name)
}

fn status(experiment: &Experiment, book: &CaveatBook) -> Status {
    Status::new(
        experiment.status,
        experiment.status_reason.as_deref(),
        book.marks(Topic::Status, None),
    )
}

impl FindingModel {
    /// The finding in whole sentences.
    pub(crate) fn new(finding: &Finding) -> Self {
        FindingModel {
            kind: match finding.kind {
                FindingKind::Finding => "finding",
                FindingKind::Warning => "warning",
                FindingKind::Opportunity => "opportunity",
            },
            text: sentence(&finding.text),
            evidence: finding.evidence.iter().map(|text| sentence(text)).collect(),
        }
    }
}

/// With a capital at its start and a period at its end. Code at the start stays as it is.
pub(crate) fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let mut sentence: String = match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => return String::new(),
    };
    if !sentence.ends_with(['.', '!', '?']) {
        sentence.push('.');
    }
    sentence
}

/// A figure of the headline that is no bad news.
pub(crate) fn headline(
    label: impl Into<String>,
    value: Quantity,
    note: Option<String>,
    marks: Vec<usize>,
) -> Figure {
    Figure {
        label: label.into(),
        value,
        note,
        alarming: false,
        marks,
    }
}

/// How it was done: the runs, what they change, and the workload.
fn how(experiment: &Experiment, own: Vec<Fact>, book: &CaveatBook) -> Vec<Fact> {
    let plan = &experiment.plan;
    let measured = experiment
        .points
        .iter()
        .filter(|point| point.figures.is_some());
    let order = experiment
        .options
        .get("order")
        .and_then(|order| order.as_str());
    let order = match order {
        Some("random") => ", in random order, so that a drift of the machine is no effect",
        _ => "",
    };
    let runs = format!(
        "{} of {} measured{order}",
        measured.count(),
        experiment.points.len()
    );
    let mut list = vec![Fact::new("Runs", runs)];
    list.extend(own);
    list.extend(
        experiment
            .axes
            .iter()
            .map(|axis| Fact::new(axis.key.clone(), axis.values.join(", "))),
    );
    let length = [
        ("/phases/warmup", "warm-up"),
        ("/phases/duration", "measured"),
    ];
    let length: Vec<String> = length
        .iter()
        .filter_map(|(pointer, word)| Some(format!("{} {word}", facts::text_at(plan, pointer)?)))
        .collect();
    let seed = facts::number_at(plan, "/client/seed").map(|seed| seed.to_string());
    list.extend([
        Fact::new("Length of each run", length.join(", ")),
        Fact::new("Mix", facts::mix(plan)),
        Fact {
            marks: book.marks(Topic::Data, None),
            ..Fact::new("Data", facts::documents(plan))
        },
        Fact::new("Key distribution", facts::keys(plan)),
        Fact::new("Seed", seed.unwrap_or_default()),
    ]);
    list.retain(|fact| !fact.value.is_empty());
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_with_a_capital_and_end_with_a_period() {
        assert_eq!(sentence("the rate falls"), "The rate falls.");
        assert_eq!(sentence("`a=1` is best"), "`a=1` is best.");
        assert_eq!(sentence("it works!"), "It works!");
        assert_eq!(sentence(""), "");
    }
}
