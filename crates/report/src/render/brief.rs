//! The page on one screen: the result with its intervals, the verdict with its evidence, the first findings, and one line
//! per caveat. Left-out parts are counted, and the last line names the place of the full report.

use super::layout::{text_width, wrap};
use super::terminal::{MAX_PARAGRAPH, Writer, caveat_line, finding_text, status_line, tone_of};
use crate::page::table::{Table, Tone};
use crate::page::{Finding, Page, Verdict};

/// Largest number of lines, of at least 80 columns. Today's terminals have about 50, and the prompt and a note need some.
const MAX_LINES: usize = 45;
/// Largest number of headline figures.
const MAX_FIGURES: usize = 8;
/// Number of findings shown: warnings first, then findings, then opportunities.
const FINDINGS: usize = 3;
/// Number of caveats shown before other parts get more room.
const FEWEST_CAVEATS: usize = 4;
/// Rows of the main table shown before evidence gets more room.
const FEWEST_ROWS: usize = 6;

/// Amount of detail for verdict and findings. The first of [`DETAILS`] that leaves room for caveats and table is used.
#[derive(Clone, Copy)]
struct Detail {
    /// Pieces of evidence for the first cause.
    evidence: usize,
    /// Largest number of lines per piece of evidence.
    lines: usize,
    /// Largest number of lines per finding.
    finding_lines: usize,
    /// Whether the first piece of evidence is shown.
    has_finding_evidence: bool,
    /// Number of causes in the verdict.
    causes: usize,
}

const DETAILS: [Detail; 4] = [
    Detail { evidence: 4, lines: 2, finding_lines: 3, has_finding_evidence: true, causes: 3 },
    Detail { evidence: 3, lines: 2, finding_lines: 2, has_finding_evidence: true, causes: 2 },
    Detail { evidence: 3, lines: 1, finding_lines: 2, has_finding_evidence: false, causes: 2 },
    Detail { evidence: 2, lines: 1, finding_lines: 2, has_finding_evidence: false, causes: 1 },
];

/// Renders the page in at most [`MAX_LINES`] lines; `rest` names the place of the full report.
pub(super) fn render(page: &Page, width: usize, colours: bool, rest: &str) -> String {
    let mut top = Writer::new(width, colours);
    top.brief_title(page);
    let mut end = Writer::new(width, colours);
    end.line("");
    end.clipped(rest, 0, 2, Tone::Soft, 2);
    let table = main_table(page);
    let caveats = page.caveats.len();
    let for_caveats = match caveats {
        0 => 0,
        count if count <= FEWEST_CAVEATS => 2 + count,
        _ => 2 + FEWEST_CAVEATS + 1,
    };
    let used = top.height() + end.height();
    let for_table = table.map_or(0, |(title, table)| {
        let rows = table.rows.len().min(FEWEST_ROWS);
        set_table(title, table, rows, width, colours).height()
    });
    let results = DETAILS.map(|detail| {
        let mut writer = Writer::new(width, colours);
        writer.brief_result(page, detail);
        writer
    });
    let fits = |result: &&Writer| used + result.height() + for_caveats + for_table <= MAX_LINES;
    let result = results.iter().find(fits).unwrap_or(&results[3]);
    let used = used + result.height();
    let room = MAX_LINES.saturating_sub(used + for_caveats);
    let table = table.map_or(String::new(), |(title, table)| {
        let whole = set_table(title, table, table.rows.len(), width, colours);
        let sizes = (1..table.rows.len()).rev();
        let cut = sizes.map(|rows| set_table(title, table, rows, width, colours));
        std::iter::once(whole)
            .chain(without_details(title, table, width, colours))
            .chain(cut)
            .find(|set| set.height() <= room)
            .map_or(String::new(), |set| set.text)
    });
    let mut shown = Writer::new(width, colours);
    shown.text = top.text + &table + &result.text;
    let room = MAX_LINES.saturating_sub(shown.height() + end.height());
    shown.brief_caveats(page, room);
    shown.text + &end.text
}

/// The first table of an experiment, which answers its question. The headline answers the question of a run.
fn main_table(page: &Page) -> Option<(&str, &Table)> {
    if page.kind == "run" {
        return None;
    }
    page.sections.iter().find_map(|section| Some((section.title.as_ref(), section.tables.first()?)))
}

/// All rows of a table without details below the values; `None` if no cell has details.
fn without_details(title: &str, table: &Table, width: usize, colours: bool) -> Option<Writer> {
    let mut plain = table.clone();
    let mut has_details = false;
    for cell in plain.rows.iter_mut().flatten() {
        has_details |= cell.detail.take().is_some();
    }
    let mut writer = set_table(title, &plain, plain.rows.len(), width, colours);
    writer.clipped("the details below the values are in the full report", 2, 2, Tone::Soft, 1);
    has_details.then_some(writer)
}

/// The first rows of a table, and the number of left-out rows.
fn set_table(title: &str, table: &Table, rows: usize, width: usize, colours: bool) -> Writer {
    let mut set = table.clone();
    set.rows.truncate(rows);
    let mut writer = Writer::new(width, colours);
    writer.heading(title);
    writer.table(&set);
    writer.and_more(table.rows.len().saturating_sub(rows), "row");
    writer
}

impl Writer {
    /// Lines on the screen: a line that is too wide takes several.
    fn height(&self) -> usize {
        let rows = |line: &str| text_width(&unpainted(line)).div_ceil(self.width).max(1);
        self.text.lines().map(rows).sum()
    }

    /// A paragraph of at most `most` lines, each of at most the width.
    fn clipped(&mut self, text: &str, first: usize, rest: usize, tone: Tone, most: usize) {
        let width = self.width.min(MAX_PARAGRAPH);
        let mut lines = wrap(text, width, first, rest);
        if lines.len() > most {
            lines = wrap(text, width - 2, first, rest);
            lines.truncate(most);
            lines[most - 1].push_str(" …");
        }
        for line in lines {
            let line = cut(&line, width);
            let (indent, words) = line.split_at(line.len() - line.trim_start().len());
            let painted = self.painter.paint(tone, words);
            self.line(&format!("{indent}{painted}"));
        }
    }

    fn and_more(&mut self, count: usize, what: &str) {
        if count > 0 {
            let s = if count == 1 { "" } else { "s" };
            self.clipped(&format!("and {count} more {what}{s}"), 2, 2, Tone::Soft, 1);
        }
    }

    fn brief_title(&mut self, page: &Page) {
        self.clipped(&page.title, 0, 2, Tone::Strong, 1);
        self.clipped(&page.question, 0, 0, Tone::Plain, 2);
        let (status, tone) = status_line(page);
        self.clipped(&status, 0, 2, tone, 2);
    }

    fn brief_result(&mut self, page: &Page, detail: Detail) {
        self.headline(page, MAX_FIGURES);
        self.and_more(page.headline.len().saturating_sub(MAX_FIGURES), "figure");
        if let Some(verdict) = &page.verdict {
            self.brief_verdict(verdict, detail);
        }
        self.brief_findings(&page.findings, detail);
    }

    fn brief_verdict(&mut self, verdict: &Verdict, detail: Detail) {
        self.heading("Verdict");
        self.clipped(&verdict.headline, 2, 2, Tone::Strong, 2);
        for (number, cause) in verdict.causes.iter().take(detail.causes).enumerate() {
            let text = format!("{}. {}", number + 1, finding_text(cause));
            self.clipped(&text, 2, 5, Tone::Plain, 2);
            // The first cause is the most important one.
            let shown = if number == 0 { detail.evidence } else { 1 };
            for evidence in cause.evidence.iter().take(shown) {
                let text = format!("- {}", evidence.text);
                self.clipped(&text, 5, 7, Tone::Soft, detail.lines);
            }
            if let Some(advice) = cause.advice.first().filter(|_| number == 0) {
                let text = format!("try: {advice}");
                self.clipped(&text, 5, 10, Tone::Plain, detail.lines);
            }
        }
        let left_out = verdict.causes.len().saturating_sub(detail.causes);
        self.and_more(left_out, "cause");
        self.clipped(&verdict.not_watched, 2, 2, Tone::Soft, 2);
    }

    fn brief_findings(&mut self, findings: &[Finding], detail: Detail) {
        if findings.is_empty() {
            return;
        }
        self.heading("Findings");
        let mut by_weight: Vec<&Finding> = findings.iter().collect();
        by_weight.sort_by_key(|finding| match finding.kind {
            "warning" => 0,
            _ if finding.is_in_headline => 3,
            "finding" => 1,
            _ => 2,
        });
        for (number, finding) in by_weight.into_iter().take(FINDINGS).enumerate() {
            let text = format!("{}. {}", number + 1, finding_text(finding));
            self.clipped(&text, 2, 5, tone_of(finding), detail.finding_lines);
            let evidence = finding.evidence.first();
            if let Some(evidence) = evidence.filter(|_| detail.has_finding_evidence) {
                let text = format!("- {}", evidence.text);
                self.clipped(&text, 5, 7, Tone::Soft, 1);
            }
        }
        self.and_more(findings.len().saturating_sub(FINDINGS), "finding");
    }

    /// One line per caveat, for as many caveats as fit into `room` lines.
    fn brief_caveats(&mut self, page: &Page, room: usize) {
        let count = page.caveats.len();
        let room = room.saturating_sub(2);
        if count == 0 || room == 0 {
            return;
        }
        self.heading("Caveats");
        let shown = if count > room { room - 1 } else { count };
        for caveat in &page.caveats[..shown] {
            let (text, tone) = caveat_line(caveat);
            self.clipped(&text, 2, 6, tone, 1);
        }
        self.and_more(count - shown, "caveat");
    }
}

/// The line, cut to the width.
fn cut(line: &str, width: usize) -> String {
    if text_width(line) <= width {
        return line.to_owned();
    }
    let kept: String = line.chars().take(width - 1).collect();
    let kept = kept.trim_end_matches(['…', ' ']);
    format!("{kept}…")
}

/// The text without colour codes.
fn unpainted(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}
