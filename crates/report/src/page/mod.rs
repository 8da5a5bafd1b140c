//! The model of a report page about a run, an experiment, a trace, an index build or messages. Makers fill it, `render`
//! shows it; neither depends on the other.

pub mod density;
pub mod plot;
pub mod rows;
pub mod scatter;
pub mod table;
pub mod time;

use crate::caveat::{NumberedCaveat, Trust};
use crate::texts::text;
use density::DensityChart;
use dyno_record::experiment::FindingKind;
use dyno_record::model::RunStatus;
use dyno_record::quantity::Quantity;
use plot::Plot;
use rows::RowsChart;
use scatter::ScatterChart;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Display;
use table::Table;
use time::{TimeChart, TimeCharts};

/// Text for an experiment without an answer.
pub const NO_ANSWER: &str = "There is no answer yet.";

/// The whole content of a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Page {
    /// Kind of the subject in a word or two: `run`, `experiment`, `trace`.
    pub kind: &'static str,
    /// For example `Sweep of workload a`.
    pub title: String,
    /// The sentence that answers the question; empty if there is none.
    pub answer: String,
    /// How far the answer can be trusted; absent without an answer.
    pub trust: Option<Trust>,
    /// The question of the experiment, or the purpose of the workload.
    pub question: String,
    pub status: Status,
    /// The measured server; empty if there are several, or if the page shows it elsewhere.
    pub subject: String,
    /// Mix, data, load, server and machine in one line.
    pub setup: String,
    /// RFC 3339 in UTC; empty for runs made at different times.
    pub started_at: String,
    /// Grafana URL at the time of the run or experiment; absent if the plan has no Grafana.
    pub dashboard: Option<String>,
    /// Version of the program that measured or compared.
    pub dyno_version: String,
    /// Title of the headline, such as `Answer`.
    pub headline_title: Cow<'static, str>,
    pub headline: Vec<Figure>,
    /// Whether a table has the same figures; texts show only the table.
    pub headline_is_in_table: bool,
    /// Text shown instead of an answer; empty if there is an answer.
    pub no_answer: &'static str,
    /// The cause that limited the run; absent if nothing was watched.
    pub verdict: Option<Verdict>,
    pub findings: Vec<Finding>,
    /// Caveats, the most serious first.
    pub caveats: Vec<NumberedCaveat>,
    pub sections: Vec<Section>,
    pub method: Vec<FactList>,
    /// The resolved plan as text; empty without a plan.
    pub plan: String,
    pub definitions: Vec<Definition>,
    /// Data of all charts over the time of a run, which share one axis.
    #[serde(skip)]
    pub time: Option<TimeCharts>,
}

/// How a run or experiment ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Status {
    /// `complete`, `partial`, `failed` or `running`; for a comparison its outcome.
    pub label: &'static str,
    /// The reason, unless it is complete.
    pub reason: Option<String>,
    /// Numbers of the caveats that apply to it.
    pub marks: Vec<usize>,
}

/// A headline number with its label.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    pub label: String,
    pub value: Quantity,
    /// Context of the number, such as its interval.
    pub note: Option<String>,
    /// Bad news by itself, such as errors above 0.
    pub alarming: bool,
    /// Numbers of the caveats that apply to it.
    pub marks: Vec<usize>,
}

/// The cause that limited a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    pub headline: String,
    /// The most important cause first.
    pub causes: Vec<Finding>,
    /// Causes that could neither be found nor ruled out; empty if everything was watched.
    pub not_watched: String,
}

/// A statement about measurements with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// `finding`, `warning` or `opportunity`.
    pub kind: &'static str,
    /// The sentence; empty for a cause that the verdict's headline already states.
    pub text: String,
    /// Confidence in a cause, and its time.
    pub sureness: Option<Sureness>,
    pub evidence: Vec<Evidence>,
    /// Things to try, one sentence each.
    pub advice: Vec<String>,
}

/// Confidence in a cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sureness {
    /// For example `very likely`.
    pub words: &'static str,
    /// The confidence as a share.
    pub confidence: Quantity,
    /// The time when the cause applied; empty if unknown.
    pub when: String,
}

/// A measurement that supports a finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evidence {
    pub text: String,
    /// The chart over time that shows it; absent if there is none.
    pub chart: Option<String>,
    /// Start of the time range, from the start of the run.
    pub start_s: f64,
    /// End of the time range.
    pub end_s: f64,
}

/// A titled part of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Section {
    pub title: Cow<'static, str>,
    /// Introduction before the charts and tables.
    pub lead: String,
    /// Events in order of time; charts mark them with their numbers, starting at 1.
    pub events: Vec<String>,
    /// Charts, shown only on HTML pages.
    pub charts: Vec<Chart>,
    /// Whether charts may be arranged side by side.
    pub is_grid: bool,
    pub tables: Vec<Table>,
    /// Facts that belong to the tables.
    pub facts: Vec<Fact>,
    /// Notes on how to read the tables.
    pub notes: Vec<String>,
    /// Lists that few readers need.
    pub lists: Vec<FoldedList>,
    /// Whether an HTML page shows the charts and tables only on demand.
    pub is_folded: bool,
}

/// A chart of an HTML page.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Chart {
    /// Over the time of a run.
    Time(TimeChart),
    /// Over a numeric axis.
    Plot(Plot),
    /// Counts at each place of two axes.
    Density(DensityChart),
    /// Values of a very large number of things.
    Scatter(ScatterChart),
    /// One value per row.
    Rows(RowsChart),
}

impl Chart {
    /// Adds a name to the chart's name in the page, where another chart has the same one.
    pub(crate) fn set_apart(&mut self, name: &str) {
        let id = match self {
            Chart::Time(chart) => &mut chart.id,
            Chart::Plot(chart) => &mut chart.id,
            Chart::Density(chart) => &mut chart.id,
            Chart::Scatter(chart) => &mut chart.id,
            Chart::Rows(_) => return,
        };
        *id = format!("{id}-{name}");
    }
}

/// A list that can be collapsed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoldedList {
    /// Description of the entries, as a sentence without its period.
    pub title: String,
    pub entries: Vec<String>,
    /// Shown expanded, and included in texts.
    pub is_open: bool,
}

/// A label with its value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    pub label: String,
    /// The value with its unit, as shown.
    pub value: String,
    /// Numbers of the caveats that apply to it.
    pub marks: Vec<usize>,
}

/// Facts about one subject.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactList {
    pub title: Cow<'static, str>,
    pub facts: Vec<Fact>,
}

/// The meaning of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Definition {
    pub term: &'static str,
    /// One or two sentences.
    pub meaning: &'static str,
    /// Its spellings in texts; without any, the term itself. An empty one says that it is too common a word for links.
    #[serde(skip)]
    pub others: &'static [String],
}

impl Definition {
    /// The spellings of the term in texts.
    pub fn spellings(&self) -> impl Iterator<Item = &'static str> {
        let own = self.others.is_empty().then_some(self.term);
        let others = self.others.iter().map(String::as_str);
        own.into_iter().chain(others).filter(|name| !name.is_empty())
    }
}

impl Page {
    /// A page of this program version with only a kind, title, question and status.
    pub fn new(kind: &'static str, title: String, question: String, label: &'static str) -> Self {
        Page {
            kind,
            title,
            question,
            status: Status { label, ..Status::default() },
            dyno_version: env!("CARGO_PKG_VERSION").to_owned(),
            headline_title: "Answer".into(),
            ..Page::default()
        }
    }

    /// Start and program version in words.
    pub fn origin(&self) -> String {
        match self.started_at.as_str() {
            "" => format!("compared by dyno {}", self.dyno_version),
            start => format!("started {start}, measured by dyno {}", self.dyno_version),
        }
    }

    /// A method section with one list of facts.
    pub fn method_of(facts: Vec<Fact>) -> Vec<FactList> {
        let title = "How it was done".into();
        vec![FactList { title, facts }]
    }

    /// All charts of the page.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.sections.iter().flat_map(|section| &section.charts)
    }
}

impl Status {
    /// The status of a run or an experiment.
    pub fn of_run(status: RunStatus, reason: Option<&str>, marks: Vec<usize>) -> Self {
        Status {
            label: match status {
                RunStatus::Running => "running",
                RunStatus::Complete => "complete",
                RunStatus::Partial => "partial",
                RunStatus::Failed => "failed",
            },
            reason: reason.map(str::to_owned),
            marks,
        }
    }
}

impl Verdict {
    /// Whether a piece of evidence refers to this chart.
    pub fn cites(&self, chart: &str) -> bool {
        let mut evidence = self.causes.iter().flat_map(|cause| &cause.evidence);
        evidence.any(|one| one.chart.as_deref() == Some(chart))
    }
}

impl Figure {
    /// A figure without a note that is not alarming.
    pub fn new(label: impl Into<String>, value: Quantity) -> Self {
        Figure { label: label.into(), value, note: None, alarming: false, marks: Vec::new() }
    }

    /// Adds context, such as an interval.
    pub fn with_note(self, note: impl Into<Option<String>>) -> Self {
        let note = note.into();
        Figure { note, ..self }
    }

    /// Adds caveats.
    pub fn marked(self, marks: &[usize]) -> Self {
        let marks = marks.to_vec();
        Figure { marks, ..self }
    }
}

impl Finding {
    /// A finding with only a sentence.
    pub fn new(kind: &'static str, text: &str) -> Self {
        Finding {
            kind,
            text: sentence(text),
            sureness: None,
            evidence: Vec::new(),
            advice: Vec::new(),
        }
    }

    /// The sentence with its confidence: `The disk was the limit. Likely, all the measured time.`
    pub fn text_and_sureness(&self) -> String {
        let sureness = self.sureness.as_ref();
        let sureness = sureness.map_or(String::new(), |sureness| {
            let when = if sureness.when.is_empty() { "" } else { ", " };
            sentence(&format!("{}{when}{}", sureness.words, sureness.when))
        });
        format!("{} {sureness}", self.text).trim().to_owned()
    }
}

impl From<&dyno_record::experiment::Finding> for Finding {
    fn from(found: &dyno_record::experiment::Finding) -> Self {
        let kind = match found.kind {
            FindingKind::Finding => "finding",
            FindingKind::Warning => "warning",
            FindingKind::Opportunity => "opportunity",
        };
        let evidence = found
            .evidence
            .iter()
            .map(|one| Evidence { text: sentence(&text(one)), ..Evidence::default() });
        Finding { evidence: evidence.collect(), ..Finding::new(kind, &text(&found.statement)) }
    }
}

impl Section {
    /// Whether an HTML page has something to draw for the section.
    pub fn is_picture(&self) -> bool {
        !(self.charts.is_empty() && self.events.is_empty())
    }

    /// Whether the section has tables or other text.
    pub fn has_tables(&self) -> bool {
        !(self.tables.is_empty() && self.facts.is_empty() && self.lists.is_empty())
    }

    /// Whether the section has only charts, which texts do not show.
    pub fn is_charts_only(&self) -> bool {
        let has_text = self.has_tables() || !(self.events.is_empty() && self.notes.is_empty());
        !self.charts.is_empty() && !has_text
    }
}

impl Fact {
    /// A fact without caveats.
    pub fn new(label: impl Into<String>, value: impl Display) -> Self {
        Fact { label: label.into(), value: value.to_string(), marks: Vec::new() }
    }

    /// Adds caveats.
    pub fn marked(self, marks: &[usize]) -> Self {
        let marks = marks.to_vec();
        Fact { marks, ..self }
    }
}

/// Converts charts of one type.
pub fn charts_of<T: Into<Chart>>(charts: impl IntoIterator<Item = T>) -> Vec<Chart> {
    charts.into_iter().map(Into::into).collect()
}

macro_rules! charts_from {
    ($($kind:ident: $chart:ty),*) => {
        $(impl From<$chart> for Chart {
            fn from(chart: $chart) -> Chart {
                Chart::$kind(chart)
            }
        })*
    };
}

charts_from!(
    Time: TimeChart,
    Plot: Plot,
    Density: DensityChart,
    Scatter: ScatterChart,
    Rows: RowsChart
);

/// Adds a capital at the start and a period at the end. Code at the start stays unchanged.
pub fn sentence(text: &str) -> String {
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
