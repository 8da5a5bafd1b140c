//! The one model of a report: what a page says of a run, an experiment, a trace, an index build or messages. Makers fill
//! it, `render` shows it; neither knows of the other.

pub mod density;
pub mod plot;
pub mod rows;
pub mod scatter;
pub mod table;
pub mod time;

use crate::caveat::NumberedCaveat;
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

/// What is said where there is no answer yet.
pub const NO_ANSWER: &str = "There is no answer yet.";

/// All that a report says.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Page {
    /// What the page is about, in a word or two: `run`, `experiment`, `trace`.
    pub kind: &'static str,
    /// What it is, such as `Sweep of workload a`.
    pub title: String,
    /// What was asked, or what the workload is for.
    pub question: String,
    /// How it ended.
    pub status: Status,
    /// What was measured against; empty where the page has several, or tells it elsewhere.
    pub subject: String,
    /// Its start, RFC 3339 in UTC; empty for runs that were made at different times.
    pub started_at: String,
    /// Address of a dashboard in Grafana at the time of the run or the experiment; absent if the plan names no Grafana.
    pub dashboard: Option<String>,
    /// Version of the program that measured, or that compared what was measured.
    pub dyno_version: String,
    /// What the headline is: `Answer`.
    pub headline_title: Cow<'static, str>,
    /// The answer in a few numbers.
    pub headline: Vec<Figure>,
    /// What is said where there is no answer; empty if there is one.
    pub no_answer: &'static str,
    /// What held a run up; absent if nothing was watched.
    pub verdict: Option<Verdict>,
    /// What follows from the measurements.
    pub findings: Vec<Finding>,
    /// Reasons to doubt it, the most serious first.
    pub caveats: Vec<NumberedCaveat>,
    /// Charts and tables.
    pub sections: Vec<Section>,
    /// How it was done.
    pub method: Vec<FactList>,
    /// The resolved plan as text; empty without one.
    pub plan: String,
    /// What the words mean.
    pub definitions: Vec<Definition>,
    /// Data of the charts over the time of a run, which share one axis.
    #[serde(skip)]
    pub time: Option<TimeCharts>,
}

/// How it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Status {
    /// `complete`, `partial`, `failed` or `running`; of a comparison its outcome.
    pub label: &'static str,
    /// Why, if it is not complete.
    pub reason: Option<String>,
    /// Numbers of the caveats that touch it.
    pub marks: Vec<usize>,
}

/// A number with its label.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What it is.
    pub label: String,
    /// The number.
    pub value: Quantity,
    /// What it has to be read with, such as its interval.
    pub note: Option<String>,
    /// Whether it is bad news by itself, such as errors above 0.
    pub alarming: bool,
    /// Numbers of the caveats that touch it.
    pub marks: Vec<usize>,
}

/// What held a run up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// It in one sentence.
    pub headline: String,
    /// The causes, the one that explains most first.
    pub causes: Vec<Finding>,
    /// What could neither be found nor ruled out; empty if all was watched.
    pub not_watched: String,
}

/// Something that follows from measurements.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// `finding`, `warning` or `opportunity`.
    pub kind: &'static str,
    /// The sentence; empty for a cause that the headline of the verdict states already.
    pub text: String,
    /// How sure a cause is, and when it held.
    pub sureness: Option<Sureness>,
    /// The measurements behind it.
    pub evidence: Vec<Evidence>,
    /// What to try, a sentence each.
    pub advice: Vec<String>,
    /// Whether the headline says it already.
    #[serde(skip)]
    pub is_in_headline: bool,
}

/// How sure a cause is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sureness {
    /// In words: `very likely`.
    pub words: &'static str,
    /// The same as a share.
    pub confidence: Quantity,
    /// When it was so; empty if nobody knows.
    pub when: String,
}

/// A measurement that supports a finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// What it says, as a sentence.
    pub text: String,
    /// The chart over time that shows it; absent if none does.
    pub chart: Option<String>,
    /// Start of the time that it is about, from the start of the run.
    pub start_s: f64,
    /// End of it.
    pub end_s: f64,
}

/// A part of the report about one matter.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Section {
    /// Its title.
    pub title: Cow<'static, str>,
    /// What to know before the charts and tables.
    pub lead: String,
    /// Events in the order of time; charts mark them by their numbers, which begin with 1.
    pub events: Vec<String>,
    /// Charts; only pages have them.
    pub charts: Vec<Chart>,
    /// Whether charts stand beside each other where there is room.
    pub is_grid: bool,
    /// Pictures of characters; only texts have them.
    #[serde(skip)]
    pub sketches: Vec<Sketch>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Facts that belong to the tables.
    pub facts: Vec<Fact>,
    /// What has to be known to read the tables.
    pub notes: Vec<String>,
    /// Lists that few readers need.
    pub lists: Vec<FoldedList>,
    /// Whether a page shows its tables only to those who open it.
    pub is_folded: bool,
}

/// A picture that a page draws.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Chart {
    /// Over the time of a run.
    Time(TimeChart),
    /// Over a numeric axis.
    Plot(Plot),
    /// How often something happened at each place of two axes.
    Density(DensityChart),
    /// A value of each of very many things.
    Scatter(ScatterChart),
    /// Values below each other.
    Rows(RowsChart),
    /// A drawing.
    Picture(Picture),
}

/// A drawing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Picture {
    /// Its title.
    pub title: String,
    /// What it shows, in a sentence.
    pub caption: String,
    /// The SVG element.
    pub svg: String,
}

/// A picture of characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    /// What it shows.
    pub title: String,
    /// Its lines.
    pub lines: Vec<String>,
}

/// A list with a sentence about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoldedList {
    /// What is listed, as a sentence without its period.
    pub title: String,
    /// The entries.
    pub entries: Vec<String>,
    /// Whether it matters enough to be shown at once, and in texts at all.
    pub is_open: bool,
}

/// A label with its value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    /// What it is.
    pub label: String,
    /// Its value with the unit, as shown.
    pub value: String,
    /// Numbers of the caveats that touch it.
    pub marks: Vec<usize>,
}

/// Facts about one matter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactList {
    /// What they are about.
    pub title: Cow<'static, str>,
    /// The facts.
    pub facts: Vec<Fact>,
}

/// The meaning of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Definition {
    /// The term.
    pub term: &'static str,
    /// Its meaning in one or two sentences.
    pub meaning: &'static str,
}

impl Page {
    /// A page of this program's version that has nothing but its title, its question and how it ended.
    pub fn new(kind: &'static str, title: String, question: String, label: &'static str) -> Self {
        Page {
            kind,
            title,
            question,
            status: Status {
                label,
                ..Status::default()
            },
            dyno_version: env!("CARGO_PKG_VERSION").to_owned(),
            headline_title: "Answer".into(),
            ..Page::default()
        }
    }

    /// The method of what has facts of one kind.
    pub fn method_of(facts: Vec<Fact>) -> Vec<FactList> {
        let title = "How it was done".into();
        vec![FactList { title, facts }]
    }

    /// All charts.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.sections.iter().flat_map(|section| &section.charts)
    }
}

impl Status {
    /// How a run or an experiment ended.
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

impl Figure {
    /// A figure that is no bad news.
    pub fn new(label: impl Into<String>, value: Quantity) -> Self {
        Figure {
            label: label.into(),
            value,
            note: None,
            alarming: false,
            marks: Vec::new(),
        }
    }

    /// The same with what it has to be read with.
    pub fn with_note(self, note: impl Into<Option<String>>) -> Self {
        let note = note.into();
        Figure { note, ..self }
    }

    /// The same with these caveats.
    pub fn marked(self, marks: &[usize]) -> Self {
        let marks = marks.to_vec();
        Figure { marks, ..self }
    }
}

impl Finding {
    /// A finding of which nothing is known but its sentence.
    pub fn new(kind: &'static str, text: &str) -> Self {
        Finding {
            kind,
            text: sentence(text),
            sureness: None,
            evidence: Vec::new(),
            advice: Vec::new(),
            is_in_headline: false,
        }
    }

    /// The sentence, and how sure it is: `The disk was the limit. Likely, all the measured time.`
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
        let evidence = found.evidence.iter().map(|one| Evidence {
            text: sentence(&text(one)),
            ..Evidence::default()
        });
        Finding {
            evidence: evidence.collect(),
            is_in_headline: found.statement.code == "rate-of-run",
            ..Finding::new(kind, &text(&found.statement))
        }
    }
}

impl Section {
    /// Whether a page has something to draw of it.
    pub fn is_picture(&self) -> bool {
        !(self.charts.is_empty() && self.events.is_empty())
    }

    /// Whether it has numbers in words.
    pub fn has_tables(&self) -> bool {
        !(self.tables.is_empty() && self.facts.is_empty() && self.lists.is_empty())
    }

    /// Whether a text has something to draw of it.
    pub fn is_drawn_in_text(&self) -> bool {
        !(self.sketches.is_empty() && self.events.is_empty())
    }

    /// Whether it is nothing but charts, of which a text has none.
    pub fn is_charts_only(&self) -> bool {
        let has_text = self.has_tables() || self.is_drawn_in_text() || !self.notes.is_empty();
        !self.charts.is_empty() && !has_text
    }
}

impl Fact {
    /// A fact that no caveat touches.
    pub fn new(label: impl Into<String>, value: impl Display) -> Self {
        Fact {
            label: label.into(),
            value: value.to_string(),
            marks: Vec::new(),
        }
    }

    /// The same with these caveats.
    pub fn marked(self, marks: &[usize]) -> Self {
        let marks = marks.to_vec();
        Fact { marks, ..self }
    }
}

/// Charts of one kind.
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
    Rows: RowsChart,
    Picture: Picture
);

/// With a capital at its start and a period at its end. Code at the start stays as it is.
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
