//! The report for a terminal. It returns text and prints nothing.

use super::model::{ExperimentModel, FindingModel, Section};
use super::table::{Table, Tone};
use crate::analysis::AnalysisModel;
use crate::caveat::Severity;
use crate::facts::Fact;
use crate::layout::{self, Painter, Style, text_width, wrap};
use crate::model::Figure;
use crate::terminal::{MAX_PARAGRAPH, MIN_WIDTH, marks_text};

/// Renders the model in at most `width` columns where that is possible.
pub(crate) fn render(model: &ExperimentModel, width: usize, colours: bool) -> String {
    let mut page = Page {
        text: String::new(),
        width: width.max(MIN_WIDTH),
        painter: Painter { colours },
    };
    page.title(model);
    if !model.has_answer {
        page.heading("There is no answer yet");
    }
    page.headline(&model.headline);
    page.findings(&model.findings);
    for section in &model.sections {
        page.section(section);
    }
    page.facts(&model.facts);
    page.caveats(model);
    page.text
}

/// What the analysis says of a single run: tables, which are the longer part, and findings, for the place where people
/// look first.
pub(crate) fn parts(model: &AnalysisModel, width: usize, colours: bool) -> [String; 2] {
    let mut findings = Page {
        text: String::new(),
        width: width.max(MIN_WIDTH),
        painter: Painter { colours },
    };
    findings.findings(&model.findings);
    [sections(&model.sections, width, colours), findings.text]
}

/// Tables of a single run.
pub(crate) fn sections(sections: &[Section], width: usize, colours: bool) -> String {
    let mut page = Page {
        text: String::new(),
        width: width.max(MIN_WIDTH),
        painter: Painter { colours },
    };
    for section in sections {
        page.section(section);
    }
    page.text
}

struct Page {
    text: String,
    width: usize,
    painter: Painter,
}

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::Plain,
        Tone::Strong => Style::Bold,
        Tone::Soft => Style::Dim,
        Tone::Doubt => Style::Caution,
        Tone::Alarm => Style::Alarm,
    }
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn paragraph(&mut self, text: &str, first: usize, rest: usize, style: Style) {
        let width = self.width.min(MAX_PARAGRAPH);
        for line in wrap(text, width, first, rest) {
            // Spaces stay outside of the colour, or some terminals underline them.
            let (indent, words) = line.split_at(line.len() - line.trim_start().len());
            let painted = self.painter.paint(style, words);
            self.line(&format!("{indent}{painted}"));
        }
    }

    fn heading(&mut self, text: &str) {
        self.line("");
        self.paragraph(text, 0, 2, Style::Bold);
    }

    fn title(&mut self, model: &ExperimentModel) {
        self.paragraph(&model.title, 0, 2, Style::Bold);
        self.paragraph(&model.question, 0, 0, Style::Plain);
        let mut status = format!("{} {}", model.status.label, marks_text(&model.status.marks));
        if let Some(reason) = &model.status.reason {
            status = format!("{}: {reason}", status.trim_end());
        }
        let style = match model.status.label {
            "complete" => Style::Dim,
            _ => Style::Alarm,
        };
        let text = format!(
            "{}; started {}, measured by dyno {}",
            status.trim_end(),
            model.started_at,
            model.dyno_version
        );
        self.paragraph(&text, 0, 2, style);
    }

    fn headline(&mut self, figures: &[Figure]) {
        if figures.is_empty() {
            return;
        }
        self.line("");
        let widths = |text: fn(&Figure) -> String| {
            let all = figures.iter().map(|figure| text_width(&text(figure)));
            all.max().unwrap_or(0)
        };
        let label_width = widths(|figure| figure.label.clone());
        let value_width = widths(|figure| figure.value.to_string());
        for figure in figures {
            let value = figure.value.to_string();
            let label = format!("{:label_width$}", figure.label);
            let note = figure.note.as_deref().unwrap_or("");
            let marks = marks_text(&figure.marks);
            let start = format!(
                "  {}  {}{}",
                self.painter.paint(Style::Dim, &label),
                " ".repeat(value_width - text_width(&value)),
                self.painter.paint(Style::Bold, &value),
            );
            let end = format!(
                "{} {}",
                self.painter.paint(Style::Dim, note),
                self.painter.paint(Style::Caution, &marks)
            );
            let indent = 2 + label_width + 2 + value_width + 2;
            match indent + text_width(note) + 1 + text_width(&marks) <= self.width {
                true => self.line(&format!("{start}  {end}")),
                false => {
                    self.line(&start);
                    self.line(&format!("    {end}"));
                }
            }
        }
    }

    fn findings(&mut self, findings: &[FindingModel]) {
        if findings.is_empty() {
            return;
        }
        self.heading("Findings");
        for (number, finding) in findings.iter().enumerate() {
            let (word, style) = match finding.kind {
                "warning" => ("Warning: ", Style::Caution),
                "opportunity" => ("Opportunity: ", Style::Plain),
                _ => ("", Style::Plain),
            };
            // Texts begin in one column, whatever the digits of their numbers.
            let digits = findings.len().to_string().len();
            let number = (number + 1).to_string();
            let text = format!("{number}. {word}{}", finding.text);
            let column = 4 + digits;
            self.paragraph(&text, column - 2 - number.len(), column, style);
            for evidence in &finding.evidence {
                self.paragraph(&format!("- {evidence}"), column, column + 2, Style::Dim);
            }
        }
    }

    fn section(&mut self, section: &Section) {
        if section.is_charts_only() {
            return;
        }
        self.heading(section.title);
        self.paragraph(&section.lead, 2, 2, Style::Dim);
        for sketch in &section.sketches {
            self.line("");
            self.paragraph(&sketch.title, 2, 2, Style::Plain);
            for line in &sketch.lines {
                self.line(&format!("  {line}"));
            }
        }
        for table in &section.tables {
            self.table(table);
        }
        if !section.notes.is_empty() {
            self.line("");
        }
        for note in &section.notes {
            self.paragraph(note, 2, 2, Style::Dim);
        }
    }

    /// A table whose cells may have a second line, and what did not fit into it.
    fn table(&mut self, table: &Table) {
        let columns = table.columns.iter().map(|column| {
            let title = format!("{}{}", column.title, marks_text(&column.marks));
            match column.is_number {
                true => layout::Column::number(title, column.rank),
                false => layout::Column::text(title),
            }
        });
        let mut set = layout::Table::new(columns.collect());
        for row in &table.rows {
            let cells = row.iter();
            set.row(
                cells
                    .map(|cell| layout::Cell::new(cell.text.clone(), style(cell.tone)))
                    .collect(),
            );
            if row.iter().any(|cell| cell.detail.is_some()) {
                let details = row
                    .iter()
                    .map(|cell| cell.detail.clone().unwrap_or_default());
                set.row(
                    details
                        .map(|text| layout::Cell::new(text, Style::Dim))
                        .collect(),
                );
            }
        }
        let (lines, left_out) = set.lines(self.width - 2, self.painter);
        self.line("");
        for line in lines {
            self.line(&format!("  {line}"));
        }
        if !left_out.is_empty() {
            let text = format!("(too narrow for {})", left_out.join(", "));
            self.paragraph(&text, 2, 2, Style::Dim);
        }
    }

    fn facts(&mut self, facts: &[Fact]) {
        self.heading("How it was done");
        let label_width = facts.iter().map(|fact| text_width(&fact.label)).max();
        let label_width = label_width.unwrap_or(0);
        for fact in facts {
            let indent = 2 + label_width + 2;
            let width = self.width.clamp(indent + 20, MAX_PARAGRAPH + indent);
            let value = format!("{} {}", fact.value, marks_text(&fact.marks));
            let mut label = format!("{:label_width$}", fact.label);
            for line in wrap(&value, width - indent, 0, 0) {
                let painted = self.painter.paint(Style::Dim, &label);
                self.line(&format!("  {painted}  {line}"));
                label = " ".repeat(label_width);
            }
        }
    }

    fn caveats(&mut self, model: &ExperimentModel) {
        if model.caveats.is_empty() {
            return;
        }
        self.heading("Caveats");
        for caveat in &model.caveats {
            let text = format!("[{}] {}: {}", caveat.number, caveat.label, caveat.message);
            let style = match caveat.severity {
                Severity::Serious => Style::Alarm,
                Severity::Doubt => Style::Caution,
                Severity::Condition => Style::Plain,
            };
            self.paragraph(&text, 2, 6, style);
            if let Some(hint) = &caveat.hint {
                self.paragraph(&format!("hint: {hint}"), 6, 12, Style::Dim);
            }
        }
    }
}
