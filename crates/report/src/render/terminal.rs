//! The page as text for a terminal: the answer with its figures, verdict, findings and caveats first, then tables and method.

use super::layout::{self, Painter, text_width, wrap};
use crate::caveat::{NumberedCaveat, Severity, TrustLevel};
use crate::page::table::{Cell, Table, Tone};
use crate::page::{Fact, Figure, Finding, FoldedList, Page, Section, Status, Verdict};

/// Narrowest supported width; narrower terminals get lines that are too long.
const MIN_WIDTH: usize = 40;

/// Widest readable paragraph; tables may be wider.
pub(super) const MAX_PARAGRAPH: usize = 100;

/// Renders the page in at most `width` columns if possible.
pub(super) fn render(page: &Page, width: usize, colours: bool) -> String {
    let mut writer = Writer::new(width, colours);
    writer.title(page);
    writer.headline(page, usize::MAX);
    if let Some(verdict) = &page.verdict {
        writer.verdict(verdict);
    }
    writer.findings(&page.findings);
    writer.caveats(&page.caveats);
    let (tables, changes): (Vec<&Section>, Vec<&Section>) =
        page.sections.iter().partition(|section| section.events.is_empty());
    for section in changes.into_iter().chain(tables) {
        writer.section(section);
    }
    for list in &page.method {
        writer.facts_with_title(&list.title, &list.facts);
    }
    writer.text
}

/// `[1][3]`, or nothing.
fn marks_text(marks: &[usize]) -> String {
    marks.iter().map(|mark| format!("[{mark}]")).collect()
}

/// The text followed by the marks.
fn marked(text: &str, marks: &[usize]) -> String {
    format!("{text} {}", marks_text(marks)).trim_end().to_owned()
}

/// A report under construction.
pub(super) struct Writer {
    pub(super) text: String,
    pub(super) width: usize,
    pub(super) painter: Painter,
}

impl Writer {
    pub(super) fn new(width: usize, colours: bool) -> Self {
        Writer { text: String::new(), width: width.max(MIN_WIDTH), painter: Painter { colours } }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Wrapped text; the first line begins with `first` spaces, later ones with `rest`.
    pub(super) fn paragraph(&mut self, text: &str, first: usize, rest: usize, tone: Tone) {
        let width = self.width.min(MAX_PARAGRAPH);
        for line in wrap(text, width, first, rest) {
            // Spaces stay outside of the colour, because some terminals underline them.
            let (indent, words) = line.split_at(line.len() - line.trim_start().len());
            let painted = self.painter.paint(tone, words);
            self.line(&format!("{indent}{painted}"));
        }
    }

    pub(super) fn heading(&mut self, text: &str) {
        self.line("");
        self.paragraph(text, 0, 2, Tone::Strong);
    }

    /// The answer, before everything else.
    pub(super) fn answer(&mut self, page: &Page) {
        if !page.answer.is_empty() {
            self.paragraph(&page.answer, 0, 0, Tone::Strong);
            if let Some(trust) = &page.trust {
                let tone = match trust.level {
                    TrustLevel::Low => Tone::Alarm,
                    TrustLevel::Fair => Tone::Doubt,
                    TrustLevel::High => Tone::Plain,
                };
                self.paragraph(&marked(&trust.text(), &trust.marks), 0, 0, tone);
            }
            self.line("");
        }
    }

    fn title(&mut self, page: &Page) {
        self.answer(page);
        self.paragraph(&page.title, 0, 2, Tone::Strong);
        self.paragraph(&page.question, 0, 0, Tone::Plain);
        let (text, tone) = status_line(page);
        self.paragraph(&text, 0, 2, tone);
        if let Some(dashboard) = &page.dashboard {
            self.paragraph(&format!("in Grafana: {dashboard}"), 0, 2, Tone::Soft);
        }
    }

    /// The first `most` headline figures.
    pub(super) fn headline(&mut self, page: &Page, most: usize) {
        if !page.no_answer.is_empty() {
            self.line("");
            self.paragraph(page.no_answer, 0, 0, Tone::Strong);
        }
        if page.headline.is_empty() || page.headline_is_in_table {
            return;
        }
        self.heading(&page.headline_title);
        let figures = &page.headline[..page.headline.len().min(most)];
        let widest = |text: fn(&Figure) -> String| {
            let widths = figures.iter().map(|figure| text_width(&text(figure)));
            widths.max().unwrap_or(0)
        };
        let label_width = widest(|figure| figure.label.clone());
        let value_width = widest(|figure| figure.value.to_string());
        for figure in figures {
            self.figure(figure, label_width, value_width);
        }
    }

    fn figure(&mut self, figure: &Figure, label_width: usize, value_width: usize) {
        let value = figure.value.to_string();
        let style = if figure.alarming { Tone::Alarm } else { Tone::Strong };
        let note = figure.note.as_deref().unwrap_or("");
        let marks = marks_text(&figure.marks);
        let label = format!("{:label_width$}", figure.label);
        let start = format!(
            "  {}  {}{}",
            self.painter.paint(Tone::Soft, &label),
            " ".repeat(value_width - text_width(&value)),
            self.painter.paint(style, &value),
        );
        let end = format!(
            "{} {}",
            self.painter.paint(Tone::Soft, note),
            self.painter.paint(Tone::Doubt, &marks),
        );
        let indent = 2 + label_width + 2 + value_width + 2;
        if indent + text_width(note) + 1 + text_width(&marks) <= self.width {
            self.line(&format!("{start}  {end}"));
        } else {
            self.line(&start);
            self.paragraph(format!("{note} {marks}").trim(), 4, 4, Tone::Soft);
        }
    }

    /// The verdict.
    fn verdict(&mut self, verdict: &Verdict) {
        self.heading("Verdict");
        self.paragraph(&verdict.headline, 2, 2, Tone::Strong);
        self.numbered(&verdict.causes);
        self.paragraph(&verdict.not_watched, 2, 2, Tone::Soft);
    }

    fn findings(&mut self, findings: &[Finding]) {
        if !findings.is_empty() {
            self.heading("Findings");
            self.numbered(findings);
        }
    }

    fn numbered(&mut self, findings: &[Finding]) {
        // Texts are aligned, whatever the digits of their numbers.
        let column = 4 + findings.len().to_string().len();
        for (number, finding) in findings.iter().enumerate() {
            let number = (number + 1).to_string();
            let text = format!("{number}. {}", finding_text(finding));
            self.paragraph(&text, column - 2 - number.len(), column, tone_of(finding));
            for evidence in &finding.evidence {
                let text = format!("- {}", evidence.text);
                self.paragraph(&text, column, column + 2, Tone::Soft);
            }
            for advice in &finding.advice {
                self.paragraph(&format!("try: {advice}"), column, column + 5, Tone::Plain);
            }
        }
    }

    fn section(&mut self, section: &Section) {
        if section.is_charts_only() {
            return;
        }
        self.heading(&section.title);
        self.paragraph(&section.lead, 2, 2, Tone::Soft);
        for (number, event) in section.events.iter().enumerate() {
            let number = format!("{}.", number + 1);
            self.paragraph(&format!("{number} {event}"), 2, 3 + number.len(), Tone::Plain);
        }
        for table in &section.tables {
            self.table(table);
        }
        if !section.facts.is_empty() {
            self.line("");
            self.facts(&section.facts);
        }
        if !section.notes.is_empty() {
            self.line("");
        }
        for note in &section.notes {
            self.paragraph(note, 2, 2, Tone::Soft);
        }
        for list in &section.lists {
            self.list(list);
        }
    }

    fn list(&mut self, list: &FoldedList) {
        if !list.is_open {
            self.paragraph(&format!("{}.", list.title), 2, 4, Tone::Soft);
            return;
        }
        self.paragraph(&format!("{}:", list.title), 2, 4, Tone::Soft);
        for entry in &list.entries {
            self.paragraph(&format!("- {entry}"), 4, 6, Tone::Soft);
        }
    }

    /// A table with optional second lines in its cells, and the titles of left-out columns. Caveats are listed below the
    /// table if the titles have no room for them.
    pub(super) fn table(&mut self, table: &Table) {
        let width = self.width - 2;
        let has_marks = table.columns.iter().any(|column| !column.marks.is_empty());
        let (mut lines, mut left_out) = layout::lines(&laid_out(table, true), width, self.painter);
        let are_below = has_marks && !left_out.is_empty();
        if are_below {
            (lines, left_out) = layout::lines(&laid_out(table, false), width, self.painter);
        }
        self.line("");
        for line in lines {
            self.line(&format!("  {line}"));
        }
        if !left_out.is_empty() {
            let text = format!("(too narrow for {})", left_out.join(", "));
            self.paragraph(&text, 2, 2, Tone::Soft);
        }
        if are_below {
            let marked = table.columns.iter().filter(|column| !column.marks.is_empty());
            let marked: Vec<String> = marked
                .map(|column| format!("{} {}", column.title, marks_text(&column.marks)))
                .collect();
            let text = format!("caveats of {}", marked.join(", of "));
            self.paragraph(&text, 2, 2, Tone::Doubt);
        }
    }

    fn facts_with_title(&mut self, title: &str, facts: &[Fact]) {
        if !facts.is_empty() {
            self.heading(title);
            self.facts(facts);
        }
    }

    /// Facts on separate lines, because they are looked up, not compared.
    fn facts(&mut self, facts: &[Fact]) {
        let label_width = facts.iter().map(|fact| text_width(&fact.label)).max();
        let label_width = label_width.unwrap_or(0);
        let indent = 2 + label_width + 2;
        let width = self.width.clamp(indent + 20, MAX_PARAGRAPH + indent);
        for fact in facts {
            let mut label = format!("{:label_width$}", fact.label);
            for line in wrap(&marked(&fact.value, &fact.marks), width - indent, 0, 0) {
                let painted = self.painter.paint(Tone::Soft, &label);
                self.line(&format!("  {painted}  {line}"));
                label = " ".repeat(label_width);
            }
        }
    }

    fn caveats(&mut self, caveats: &[NumberedCaveat]) {
        if caveats.is_empty() {
            return;
        }
        self.heading("Caveats");
        for caveat in caveats {
            let (text, tone) = caveat_line(caveat);
            self.paragraph(&text, 2, 6, tone);
            if let Some(hint) = &caveat.hint {
                self.paragraph(&format!("hint: {hint}"), 6, 12, Tone::Soft);
            }
        }
    }
}

/// Status, subject and time.
pub(super) fn status_line(page: &Page) -> (String, Tone) {
    let tone = match page.status.label {
        "complete" | "comparable" | "no regression" => Tone::Soft,
        _ => Tone::Alarm,
    };
    let status = status(&page.status);
    let subject = match page.subject.as_str() {
        "" => String::new(),
        subject => format!("{subject}, "),
    };
    (format!("{status}; {subject}{}", page.origin()), tone)
}

/// A finding in a sentence, with its kind if it is a warning or an opportunity.
pub(super) fn finding_text(finding: &Finding) -> String {
    let word = match finding.kind {
        "warning" => "Warning: ",
        "opportunity" => "Opportunity: ",
        _ => "",
    };
    format!("{word}{}", finding.text_and_sureness())
}

pub(super) fn tone_of(finding: &Finding) -> Tone {
    if finding.kind == "warning" { Tone::Doubt } else { Tone::Plain }
}

/// A caveat without its hint.
pub(super) fn caveat_line(caveat: &NumberedCaveat) -> (String, Tone) {
    let place = caveat.phase;
    let place = place.map_or(String::new(), |phase| format!(" ({})", phase.as_str()));
    let text = format!("[{}] {}{place}: {}", caveat.number, caveat.label, caveat.message);
    let tone = match caveat.severity {
        Severity::Serious => Tone::Alarm,
        Severity::Doubt => Tone::Doubt,
        Severity::Condition => Tone::Plain,
    };
    (text, tone)
}

/// A table for layout: with or without caveats in the titles, and with details as rows.
fn laid_out(table: &Table, with_marks: bool) -> Table {
    let mut set = table.clone();
    for column in set.columns.iter_mut().filter(|_| with_marks) {
        column.title += &marks_text(&column.marks);
    }
    set.rows = table.rows.iter().flat_map(|row| with_details(row)).collect();
    set
}

/// A row, followed by a row of its details.
fn with_details(row: &[Cell]) -> Vec<Vec<Cell>> {
    let mut rows = vec![row.to_vec()];
    if row.iter().any(|cell| cell.detail.is_some()) {
        let details = row.iter().map(|cell| cell.detail.as_deref());
        let details = details.map(|text| Cell::new(text.unwrap_or_default(), Tone::Soft));
        rows.push(details.collect());
    }
    rows
}

fn status(status: &Status) -> String {
    let text = marked(status.label, &status.marks);
    match &status.reason {
        Some(reason) => format!("{text}: {reason}"),
        None => text,
    }
}
