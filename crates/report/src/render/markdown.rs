//! The page as Markdown (GitHub's tables), for issues, commit messages and wikis.

use crate::caveat::NumberedCaveat;
use crate::page::table::{Cell, Column, Table, Tone};
use crate::page::{Fact, Finding, FoldedList, Page, Section, Verdict};

/// Renders the page.
pub(super) fn render(page: &Page) -> String {
    let mut writer = Writer::default();
    writer.title(page);
    writer.headline(page);
    if let Some(verdict) = &page.verdict {
        writer.verdict(verdict);
    }
    let (tables, changes): (Vec<&Section>, Vec<&Section>) =
        page.sections.iter().partition(|section| section.events.is_empty());
    for section in changes {
        writer.section(section);
    }
    if !page.findings.is_empty() {
        writer.heading("Findings");
        writer.numbered(&page.findings);
    }
    writer.caveats(&page.caveats);
    for section in tables {
        writer.section(section);
    }
    for list in page.method.iter().filter(|list| !list.facts.is_empty()) {
        writer.heading(&list.title);
        writer.facts(&list.facts);
    }
    writer.definitions(page);
    writer.text
}

/// Makes text safe for a line or a table cell: nothing in it is markup, and it has one line.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '&' | '~' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '\n' | '\r' => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Like [`escape`], but backticked text stays code.
fn escape_around_code(text: &str) -> String {
    let mut parts: Vec<&str> = text.split('`').collect();
    let last = parts.pop().unwrap_or("");
    // An even number of parts before the last one means that all backticks are paired.
    if !parts.len().is_multiple_of(2) {
        return escape(text);
    }
    let mut escaped = String::new();
    for pair in parts.chunks(2) {
        let code = pair[1].replace(['\n', '\r'], " ");
        escaped += &format!("{}`{code}`", escape(pair[0]));
    }
    escaped + &escape(last)
}

/// ` ⚠1 ⚠3`, or nothing. Square brackets would need escaping.
fn marks_text(marks: &[usize]) -> String {
    marks.iter().map(|mark| format!(" ⚠{mark}")).collect()
}

/// A report under construction.
#[derive(Default)]
struct Writer {
    text: String,
}

impl Writer {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn heading(&mut self, heading: &str) {
        if !self.text.ends_with("\n\n") {
            self.line("");
        }
        self.line(&format!("## {heading}\n"));
    }

    fn title(&mut self, page: &Page) {
        self.line(&format!("# {}\n", escape_around_code(&page.title)));
        if !page.answer.is_empty() {
            self.line(&format!("**{}**\n", escape_around_code(&page.answer)));
        }
        if let Some(trust) = &page.trust {
            let text = escape_around_code(&trust.text());
            self.line(&format!("{text}{}\n", marks_text(&trust.marks)));
        }
        if !page.question.is_empty() {
            self.line(&format!("{}\n", escape_around_code(&page.question)));
        }
        let reason = page.status.reason.as_deref();
        let reason =
            reason.map_or(String::new(), |reason| format!(": {}", escape_around_code(reason)));
        let subject = match page.subject.as_str() {
            "" => String::new(),
            subject => format!("{}, ", escape(subject)),
        };
        let dashboard = page.dashboard.as_deref();
        let dashboard = dashboard.map_or(String::new(), |address| {
            // Only angle brackets end an address in angle brackets.
            let address = address.replace(['<', '>', '\n', '\r'], "");
            format!(", [in Grafana](<{address}>)")
        });
        self.line(&format!(
            "**{}**{}{reason}; {subject}{}{dashboard}",
            page.status.label,
            marks_text(&page.status.marks),
            escape(&page.origin())
        ));
    }

    fn headline(&mut self, page: &Page) {
        if !page.no_answer.is_empty() {
            self.line(&format!("\n{}", page.no_answer));
        }
        if page.headline.is_empty() || page.headline_is_in_table {
            return;
        }
        self.heading(&page.headline_title);
        let columns = [
            Column::text(""),
            Column::number("value", 0),
            Column::text(""),
            Column::text("caveats"),
        ];
        self.table_head(&columns);
        for figure in &page.headline {
            self.row(&[
                figure.label.clone(),
                format!("**{}**", figure.value),
                escape(figure.note.as_deref().unwrap_or("")),
                marks_text(&figure.marks).trim_start().to_owned(),
            ]);
        }
    }

    /// The verdict.
    fn verdict(&mut self, verdict: &Verdict) {
        self.heading("Verdict");
        self.line(&format!("**{}**", escape_around_code(&verdict.headline)));
        if !verdict.causes.is_empty() {
            self.line("");
        }
        self.numbered(&verdict.causes);
        if !verdict.not_watched.is_empty() {
            self.line(&format!("\n{}", escape_around_code(&verdict.not_watched)));
        }
    }

    fn numbered(&mut self, findings: &[Finding]) {
        for (number, finding) in findings.iter().enumerate() {
            let word = match finding.kind {
                "warning" => "**Warning:** ",
                "opportunity" => "**Opportunity:** ",
                _ => "",
            };
            let text = escape_around_code(&finding.text_and_sureness());
            self.line(&format!("{}. {word}{text}", number + 1));
            for evidence in &finding.evidence {
                self.line(&format!("   - {}", escape_around_code(&evidence.text)));
            }
            for advice in &finding.advice {
                self.line(&format!("   - **Try:** {}", escape_around_code(advice)));
            }
        }
    }

    fn caveats(&mut self, caveats: &[NumberedCaveat]) {
        if caveats.is_empty() {
            return;
        }
        self.heading("Caveats");
        for caveat in caveats {
            let place = caveat.phase;
            let place = place.map_or(String::new(), |phase| format!(" ({})", phase.as_str()));
            let hint = caveat.hint.as_deref();
            let hint =
                hint.map_or(String::new(), |hint| format!(". Hint: {}.", escape_around_code(hint)));
            self.line(&format!(
                "- ⚠{} **{}**{place}: {}{hint}",
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
        self.heading(&escape(&section.title));
        if !section.lead.is_empty() {
            self.line(&format!("{}\n", escape_around_code(&section.lead)));
        }
        for (number, event) in section.events.iter().enumerate() {
            self.line(&format!("{}. {}", number + 1, escape_around_code(event)));
        }
        if !section.events.is_empty() {
            self.line("");
        }
        for table in &section.tables {
            self.table(table);
        }
        self.facts(&section.facts);
        for note in &section.notes {
            self.line(&format!("- {}", escape_around_code(note)));
        }
        for list in &section.lists {
            self.list(list);
        }
    }

    /// The entries, if the list is open.
    fn list(&mut self, list: &FoldedList) {
        let end = if list.is_open { ":" } else { "." };
        self.line(&format!("- {}{end}", escape_around_code(&list.title)));
        for entry in list.entries.iter().filter(|_| list.is_open) {
            self.line(&format!("  - {}", escape_around_code(entry)));
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
        let titles = columns
            .iter()
            .map(|column| format!("{}{}", escape(&column.title), marks_text(&column.marks)));
        self.row(&titles.collect::<Vec<_>>());
        let alignments =
            columns.iter().map(|column| if column.is_number { "---:" } else { "---" }.to_owned());
        self.row(&alignments.collect::<Vec<_>>());
    }

    fn row(&mut self, cells: &[String]) {
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    fn facts(&mut self, facts: &[Fact]) {
        for fact in facts {
            self.line(&format!(
                "- {}: {}{}",
                escape(&fact.label),
                escape(&fact.value),
                marks_text(&fact.marks)
            ));
        }
    }

    fn definitions(&mut self, page: &Page) {
        if page.definitions.is_empty() {
            return;
        }
        self.heading("Terms");
        for definition in &page.definitions {
            let meaning = escape(definition.meaning);
            self.line(&format!("- **{}**: {meaning}", escape(definition.term)));
        }
    }
}

fn cell(cell: &Cell) -> String {
    let mut text = escape(&cell.text);
    if let Some(link) = &cell.link {
        // The name of a run's folder contains no characters that end a link.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_text_is_escaped_and_code_stays_code() {
        assert_eq!(escape("a|b_c<d>\ne"), "a\\|b\\_c\\<d\\> e");
        assert_eq!(escape_around_code("use `--a_b` or *c*"), "use `--a_b` or \\*c\\*");
        assert_eq!(escape_around_code("an odd ` one"), "an odd \\` one");
        assert_eq!(escape_around_code("`a` `b`"), "`a` `b`");
    }
}
