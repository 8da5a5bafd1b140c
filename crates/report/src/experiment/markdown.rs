//! The report as Markdown (GitHub's tables), for issues, commit messages and wikis.

use super::model::{ExperimentModel, FindingModel, Section};
use super::table::{Cell, Column, Table, Tone};
use crate::analysis::AnalysisModel;
use crate::markdown::{escape, escape_around_code, marks_text};

/// Renders the model.
pub(crate) fn render(model: &ExperimentModel) -> String {
    let mut page = Page::default();
    page.title(model);
    page.headline(model);
    page.findings(&model.findings);
    page.caveats(model);
    for section in &model.sections {
        page.section(section);
    }
    page.end(model);
    page.text
}

/// What the analysis says of a single run: findings, and tables.
pub(crate) fn parts(model: &AnalysisModel) -> [String; 2] {
    let mut findings = Page::default();
    findings.findings(&model.findings);
    [findings.text, sections(&model.sections)]
}

/// Tables of a single run.
pub(crate) fn sections(sections: &[Section]) -> String {
    let mut page = Page::default();
    for section in sections {
        page.section(section);
    }
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn heading(&mut self, heading: &str) {
        self.line(&format!("\n## {heading}\n"));
    }

    fn title(&mut self, model: &ExperimentModel) {
        self.line(&format!("# {}\n", escape(&model.title)));
        self.line(&format!("{}\n", escape_around_code(&model.question)));
        let reason = model.status.reason.as_deref();
        let reason = reason.map_or(String::new(), |reason| {
            format!(": {}", escape_around_code(reason))
        });
        self.line(&format!(
            "**{}**{}{reason}; started {}, measured by dyno {}",
            model.status.label,
            marks_text(&model.status.marks),
            escape(&model.started_at),
            escape(&model.dyno_version)
        ));
    }

    fn headline(&mut self, model: &ExperimentModel) {
        if !model.has_answer {
            self.line("\nThere is no answer yet.");
        }
        if model.headline.is_empty() {
            return;
        }
        self.heading("Answer");
        let columns = [
            Column::text(""),
            Column::number("value", 0),
            Column::text(""),
            Column::text("caveats"),
        ];
        self.table_head(&columns);
        for figure in &model.headline {
            let note = figure.note.as_deref().unwrap_or("");
            self.row(&[
                figure.label.clone(),
                format!("**{}**", figure.value),
                escape(note),
                marks_text(&figure.marks).trim_start().to_owned(),
            ]);
        }
    }

    fn findings(&mut self, findings: &[FindingModel]) {
        if findings.is_empty() {
            return;
        }
        self.heading("Findings");
        for (number, finding) in findings.iter().enumerate() {
            let word = match finding.kind {
                "warning" => "**Warning:** ",
                "opportunity" => "**Opportunity:** ",
                _ => "",
            };
            let text = escape_around_code(&finding.text);
            self.line(&format!("{}. {word}{text}", number + 1));
            for evidence in &finding.evidence {
                self.line(&format!("   - {}", escape_around_code(evidence)));
            }
        }
    }

    fn caveats(&mut self, model: &ExperimentModel) {
        if model.caveats.is_empty() {
            return;
        }
        self.heading("Caveats");
        for caveat in &model.caveats {
            let hint = caveat.hint.as_deref();
            let hint = hint.map_or(String::new(), |hint| {
                format!(". Hint: {}.", escape_around_code(hint))
            });
            self.line(&format!(
                "- ⚠{} **{}**: {}{hint}",
                caveat.number,
                caveat.label,
                escape_around_code(&caveat.message),
            ));
        }
    }

    fn section(&mut self, section: &Section) {
        if section.is_charts_only() {
            return;
        }
        self.heading(section.title);
        if !section.lead.is_empty() {
            self.line(&format!("{}\n", escape(&section.lead)));
        }
        for sketch in &section.sketches {
            self.line(&format!("{}:\n\n```text", escape(&sketch.title)));
            sketch.lines.iter().for_each(|line| self.line(line));
            self.line("```\n");
        }
        for table in &section.tables {
            self.table(table);
        }
        for note in &section.notes {
            self.line(&format!("- {}", escape(note)));
        }
    }

    fn table(&mut self, table: &Table) {
        self.table_head(&table.columns);
        for row in &table.rows {
            let cells: Vec<String> = row.iter().map(cell).collect();
            self.row(&cells);
        }
        self.line("");
    }

    fn table_head(&mut self, columns: &[Column]) {
        let titles: Vec<String> = columns
            .iter()
            .map(|column| format!("{}{}", escape(&column.title), marks_text(&column.marks)))
            .collect();
        self.row(&titles);
        let alignments = columns.iter().map(|column| match column.is_number {
            true => "---:".to_owned(),
            false => "---".to_owned(),
        });
        let alignments: Vec<String> = alignments.collect();
        self.row(&alignments);
    }

    fn row(&mut self, cells: &[String]) {
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    fn end(&mut self, model: &ExperimentModel) {
        self.heading("How it was done");
        for fact in &model.facts {
            let marks = marks_text(&fact.marks);
            self.line(&format!(
                "- {}: {}{marks}",
                escape(&fact.label),
                escape(&fact.value)
            ));
        }
        if model.definitions.is_empty() {
            return;
        }
        self.heading("What the words mean");
        for definition in &model.definitions {
            let meaning = escape(definition.meaning);
            self.line(&format!("- **{}**: {meaning}", escape(definition.term)));
        }
    }
}

fn cell(cell: &Cell) -> String {
    let mut text = escape(&cell.text);
    if let Some(link) = &cell.link {
        // The name of a run's folder has no characters that end a link.
        text = format!("[{text}]({link})");
    }
    if matches!(cell.tone, Tone::Strong | Tone::Alarm) && !text.is_empty() {
        text = format!("**{text}**");
    }
    match &cell.detail {
        Some(detail) => format!("{text} ({})", escape(detail)),
        None => text,
    }
}
