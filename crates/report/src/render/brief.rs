//! The page on one screen: the answer, the result with its intervals, the verdict with its evidence, the first findings, and
//! the caveats. Texts are wrapped, never cut; left-out parts are counted, and the last line names the place of the full
//! report.

use super::layout::text_width;
use super::terminal::{Writer, caveat_line, finding_text, status_line, tone_of};
use crate::caveat::{NumberedCaveat, Severity};
use crate::page::table::{Table, Tone};
use crate::page::{Finding, Page, Verdict};
use dyno_analyze::grouping::distinct;

/// Largest number of lines, of at least 80 columns. Today's terminals have about 50, and the prompt and a note need some.
const MAX_LINES: usize = 45;
/// Largest number of headline figures.
const MAX_FIGURES: usize = 8;
/// Number of lines that caveats get before other parts get more room.
const FEWEST_CAVEAT_LINES: usize = 6;
/// Rows of the main table shown before evidence gets more room.
const FEWEST_ROWS: usize = 6;

/// Amount of detail for verdict and findings. The first of [`DETAILS`] that leaves room for caveats and table is used.
#[derive(Clone, Copy)]
struct Detail {
    /// Pieces of evidence for the first cause.
    evidence: usize,
    /// Number of findings: warnings first, then findings, then opportunities.
    findings: usize,
    /// Whether the first piece of evidence of a finding is shown.
    has_finding_evidence: bool,
    /// Number of causes in the verdict.
    causes: usize,
}

const DETAILS: [Detail; 5] = [
    Detail { evidence: 4, findings: 3, has_finding_evidence: true, causes: 3 },
    Detail { evidence: 3, findings: 3, has_finding_evidence: false, causes: 2 },
    Detail { evidence: 2, findings: 2, has_finding_evidence: false, causes: 1 },
    Detail { evidence: 1, findings: 1, has_finding_evidence: false, causes: 1 },
    Detail { evidence: 0, findings: 0, has_finding_evidence: false, causes: 1 },
];

/// Renders the page in at most [`MAX_LINES`] lines; `rest` names the place of the full report.
pub(super) fn render(page: &Page, width: usize, colours: bool, rest: &str) -> String {
    let mut top = Writer::new(width, colours);
    top.brief_title(page);
    let mut end = Writer::new(width, colours);
    end.line("");
    end.paragraph(rest, 0, 2, Tone::Soft);
    let table = main_table(page);
    let mut caveats = Writer::new(width, colours);
    caveats.brief_caveats(&page.caveats, MAX_LINES);
    let for_caveats = caveats.height().min(2 + FEWEST_CAVEAT_LINES);
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
    let result = results.iter().find(fits).unwrap_or(&results[DETAILS.len() - 1]);
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
    shown.brief_caveats(&page.caveats, room);
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
    writer.paragraph("the details below the values are in the full report", 2, 2, Tone::Soft);
    has_details.then_some(writer)
}

/// The most important rows of a table, and the number of left-out rows.
fn set_table(title: &str, table: &Table, rows: usize, width: usize, colours: bool) -> Writer {
    let mut set = table.clone();
    set.keep(rows);
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

    fn and_more(&mut self, count: usize, what: &str) {
        if count > 0 {
            let s = if count == 1 { "" } else { "s" };
            self.paragraph(&format!("and {count} more {what}{s}"), 2, 2, Tone::Soft);
        }
    }

    fn brief_title(&mut self, page: &Page) {
        self.answer(page);
        self.paragraph(&page.title, 0, 2, Tone::Strong);
        self.paragraph(&page.question, 0, 0, Tone::Plain);
        let (status, tone) = status_line(page);
        self.paragraph(&status, 0, 2, tone);
    }

    fn brief_result(&mut self, page: &Page, detail: Detail) {
        self.headline(page, MAX_FIGURES);
        self.and_more(page.headline.len().saturating_sub(MAX_FIGURES), "figure");
        if let Some(verdict) = &page.verdict {
            self.brief_verdict(verdict, detail);
        }
        // The first line already says the answer, perhaps after "Incomplete".
        let other = page.findings.iter().filter(|finding| !page.answer.ends_with(&finding.text));
        self.brief_findings(&other.collect::<Vec<_>>(), detail);
    }

    fn brief_verdict(&mut self, verdict: &Verdict, detail: Detail) {
        self.heading("Verdict");
        self.paragraph(&verdict.headline, 2, 2, Tone::Strong);
        for (number, cause) in verdict.causes.iter().take(detail.causes).enumerate() {
            let text = format!("{}. {}", number + 1, finding_text(cause));
            self.paragraph(&text, 2, 5, Tone::Plain);
            // The first cause is the most important one.
            let shown = if number == 0 { detail.evidence } else { detail.evidence.min(1) };
            for evidence in cause.evidence.iter().take(shown) {
                self.paragraph(&format!("- {}", evidence.text), 5, 7, Tone::Soft);
            }
            if let Some(advice) = cause.advice.first().filter(|_| number == 0) {
                self.paragraph(&format!("try: {advice}"), 5, 10, Tone::Plain);
            }
        }
        let left_out = verdict.causes.len().saturating_sub(detail.causes);
        self.and_more(left_out, "cause");
        self.paragraph(&verdict.not_watched, 2, 2, Tone::Soft);
    }

    fn brief_findings(&mut self, findings: &[&Finding], detail: Detail) {
        if findings.is_empty() {
            return;
        }
        if detail.findings > 0 {
            self.heading("Findings");
        }
        let mut by_weight = findings.to_vec();
        by_weight.sort_by_key(|finding| match finding.kind {
            "warning" => 0,
            "finding" => 1,
            _ => 2,
        });
        for (number, finding) in by_weight.into_iter().take(detail.findings).enumerate() {
            let text = format!("{}. {}", number + 1, finding_text(finding));
            self.paragraph(&text, 2, 5, tone_of(finding));
            let evidence = finding.evidence.first();
            if let Some(evidence) = evidence.filter(|_| detail.has_finding_evidence) {
                self.paragraph(&format!("- {}", evidence.text), 5, 7, Tone::Soft);
            }
        }
        self.and_more(findings.len().saturating_sub(detail.findings), "finding");
    }

    /// The caveats that fit into `room` lines; conditions, which every run on this machine has, share a paragraph.
    fn brief_caveats(&mut self, caveats: &[NumberedCaveat], room: usize) {
        let (conditions, doubts): (Vec<_>, Vec<_>) =
            caveats.iter().partition(|caveat| caveat.severity == Severity::Condition);
        let mut end = Writer::new(self.width, self.painter.colours);
        end.conditions(&conditions);
        // The heading with the line above it, and the number of the left-out caveats.
        let mut room = room.saturating_sub(3 + end.height());
        let mut shown = Writer::new(self.width, self.painter.colours);
        let mut left_out = doubts.len();
        for caveat in doubts {
            let mut one = Writer::new(self.width, self.painter.colours);
            let (text, tone) = caveat_line(caveat);
            one.paragraph(&text, 2, 6, tone);
            let Some(rest) = room.checked_sub(one.height()) else { break };
            room = rest;
            left_out -= 1;
            shown.text += &one.text;
        }
        shown.and_more(left_out, "caveat");
        if !(shown.text.is_empty() && end.text.is_empty()) {
            self.heading("Caveats");
            self.text += &(shown.text + &end.text);
        }
    }

    fn conditions(&mut self, conditions: &[&NumberedCaveat]) {
        let (Some(first), Some(last)) = (conditions.first(), conditions.last()) else {
            return;
        };
        let numbers = match first.number == last.number {
            true => format!("[{}]", first.number),
            false => format!("[{}–{}]", first.number, last.number),
        };
        let labels: Vec<&str> = distinct(conditions.iter().map(|one| one.label));
        let text =
            format!("{numbers} the same for every run on this machine: {}", labels.join(", "));
        self.paragraph(&text, 2, 6, Tone::Soft);
    }
}

/// The text without colour codes.
fn unpainted(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}
