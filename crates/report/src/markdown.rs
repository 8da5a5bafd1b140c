//! The report as Markdown (GitHub's tables), for issues, commit messages and wikis.

use crate::experiment;
use crate::facts::Fact;
use crate::instances::InstancesModel;
use crate::model::{Headline, OperationModel, PhaseModel, ReportModel};
use crate::terminal::latency_values;
use std::ops::Range;

/// Renders the model.
pub(crate) fn render(model: &ReportModel) -> String {
    let mut page = Page::default();
    page.title(model);
    if let Some(headline) = &model.headline {
        page.headline(headline);
    }
    let analysis = model.analysis.as_ref();
    let [findings, sections] = analysis.map_or_else(Default::default, experiment::markdown::parts);
    if let Some(verdict) = &model.watched.verdict {
        page.verdict(verdict);
    }
    if let Some(changes) = &model.watched.changes {
        page.changes(changes);
    }
    page.text += &findings;
    page.caveats(model);
    page.text += &sections;
    page.text += &experiment::markdown::sections(&model.watched.sections);
    page.text += &experiment::markdown::sections(&model.io_trace);
    page.missing(&model.watched.missing);
    page.section("Workload", &model.workload);
    for phase in &model.phases {
        page.phase(phase);
    }
    if let Some(instances) = &model.instances {
        page.instances("Instances", "instance", instances);
    }
    if let Some(hosts) = &model.hosts {
        page.instances("Fleet", "host", hosts);
    }
    page.section("Server", &model.server);
    page.section(model.machine_title, &model.machine);
    page.definitions(model);
    page.text
}

/// Makes text safe for a line or a table cell: nothing in it is markup, and it has one line.
pub(crate) fn escape(text: &str) -> String {
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

/// Like [`escape`], but what stands in a pair of backticks stays code.
pub(crate) fn escape_around_code(text: &str) -> String {
    let mut parts: Vec<&str> = text.split('`').collect();
    let last = parts.pop().unwrap_or("");
    // An even number of parts before the last one means that every backtick has its partner.
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

/// ` ⚠1 ⚠3`, or nothing. Square brackets would have to be escaped.
pub(crate) fn marks_text(marks: &[usize]) -> String {
    marks.iter().map(|mark| format!(" ⚠{mark}")).collect()
}

/// A report under construction.
#[derive(Default)]
pub(crate) struct Page {
    text: String,
}

impl Page {
    /// A line, or several.
    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// The title of a part.
    pub(crate) fn heading(&mut self, heading: &str) {
        self.line(&format!("\n## {heading}\n"));
    }

    /// The head of a table whose columns in `numbers` are aligned to the right.
    fn table_head(&mut self, titles: &[&str], numbers: Range<usize>) {
        self.line(&format!("| {} |", titles.join(" | ")));
        let alignment = |index| match numbers.contains(&index) {
            true => "---:",
            false => "---",
        };
        let alignments: Vec<&str> = (0..titles.len()).map(alignment).collect();
        self.line(&format!("| {} |", alignments.join(" | ")));
    }

    fn row(&mut self, cells: &[String]) {
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    fn title(&mut self, model: &ReportModel) {
        self.line(&format!("# Workload {}\n", escape(&model.name)));
        if !model.description.is_empty() {
            self.line(&format!("{}\n", escape(&model.description)));
        }
        let reason = model.status.reason.as_deref();
        let reason = reason.map_or(String::new(), |reason| format!(": {}", escape(reason)));
        self.line(&format!(
            "**{}**{}{reason}; {}, started {}, measured by dyno {}",
            model.status.label,
            marks_text(&model.status.marks),
            escape(&model.server_name),
            escape(&model.started_at),
            escape(&model.dyno_version)
        ));
    }

    fn instances(&mut self, title: &str, what: &str, instances: &InstancesModel) {
        self.heading(title);
        let operation = escape(&instances.operation);
        self.table_head(
            &[
                what,
                "rate",
                "failed",
                &format!("{operation} p50"),
                "p99",
                "p99.9",
                "max",
                "client CPU",
            ],
            1..8,
        );
        for row in &instances.rows {
            let numbers = [
                &row.rate,
                &row.failed,
                &row.p50,
                &row.p99,
                &row.p99_9,
                &row.max,
                &row.cpu,
            ];
            let mut cells = vec![escape(&row.label)];
            cells.extend(numbers.iter().map(ToString::to_string));
            self.row(&cells);
        }
        self.line("");
        for note in &instances.notes {
            self.line(&format!("- {}", escape(note)));
        }
    }

    fn headline(&mut self, headline: &Headline) {
        self.heading(&format!("Result of phase {}", headline.phase.as_str()));
        self.table_head(&["", "value", "", "caveats"], 1..2);
        for figure in &headline.figures {
            self.row(&[
                figure.label.clone(),
                format!("**{}**", figure.value),
                escape(figure.note.as_deref().unwrap_or("")),
                marks_text(&figure.marks).trim_start().into(),
            ]);
        }
    }

    fn caveats(&mut self, model: &ReportModel) {
        if model.caveats.is_empty() {
            return;
        }
        self.heading("Caveats");
        for caveat in &model.caveats {
            let place = caveat.phase;
            let place = place.map_or(String::new(), |phase| format!(" ({})", phase.as_str()));
            let hint = caveat.hint.as_deref();
            let hint = hint.map_or(String::new(), |hint| {
                format!(" Hint: {}.", escape_around_code(hint))
            });
            self.line(&format!(
                "- ⚠{} **{}**{place}: {}{}{hint}",
                caveat.number,
                caveat.label,
                escape_around_code(&caveat.message),
                if hint.is_empty() { "" } else { "." },
            ));
        }
    }

    fn section(&mut self, title: &str, facts: &[Fact]) {
        if !facts.is_empty() {
            self.heading(title);
            self.facts(facts);
        }
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

    fn phase(&mut self, phase: &PhaseModel) {
        self.heading(&format!("Phase {}", phase.name.as_str()));
        let offered = phase.offered;
        let offered = offered.map_or(String::new(), |rate| format!(" of {rate} offered"));
        let rate_marks = marks_text(&phase.rate_marks);
        self.line(&format!(
            "{} at **{}**{offered}{rate_marks}: {}.\n",
            phase.duration, phase.achieved, phase.purpose
        ));
        if !phase.operations.is_empty() {
            self.operations(phase);
        }
        if !phase.errors.is_empty() {
            let marks = marks_text(&phase.error_marks);
            let kinds = phase.errors.iter();
            let kinds: Vec<String> = kinds
                .map(|kind| format!("{} {}", escape(&kind.label), kind.value))
                .collect();
            self.line(&format!("- Errors: {}{marks}", kinds.join(", ")));
        }
        self.facts(&phase.facts);
        for note in &phase.notes {
            self.line(&format!("- {}", escape(note)));
        }
    }

    fn operations(&mut self, phase: &PhaseModel) {
        let marked = |title: &str, marks: &[usize]| format!("{title}{}", marks_text(marks));
        let (errors, p50, p99_9) = (
            marked("errors", &phase.error_marks),
            marked("p50", &phase.latency_marks),
            marked("p99.9", &phase.tail_marks),
        );
        let titles = [
            "operation",
            "time",
            "count",
            "rate",
            &errors,
            "mean",
            "min",
            &p50,
            "p90",
            "p95",
            "p99",
            &p99_9,
            "p99.99",
            "max",
        ];
        self.table_head(&titles, 2..titles.len());
        for operation in &phase.operations {
            self.operation(operation);
        }
        self.line("");
    }

    fn operation(&mut self, operation: &OperationModel) {
        let documents = operation.documents;
        let documents = documents.map_or(String::new(), |n| format!(" ({n} documents)"));
        let mut start = vec![
            format!("**{}**{documents}", escape(&operation.label)),
            String::new(),
            operation.count.to_string(),
            operation.rate.to_string(),
            operation.errors.to_string(),
        ];
        if operation.latencies.is_empty() {
            start.resize(14, String::new());
            self.row(&start);
        }
        for latency in &operation.latencies {
            let mut cells = std::mem::replace(&mut start, vec![String::new(); 5]);
            cells[1] = latency.clock.into();
            cells.extend(latency_values(latency).map(|value| value.to_string()));
            self.row(&cells);
        }
    }

    fn definitions(&mut self, model: &ReportModel) {
        self.heading("What the words mean");
        for definition in &model.definitions {
            let meaning = escape(definition.meaning);
            self.line(&format!("- **{}**: {meaning}", definition.term));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_text_is_escaped_and_code_stays_code() {
        assert_eq!(escape("a|b_c<d>\ne"), "a\\|b\\_c\\<d\\> e");
        assert_eq!(
            escape_around_code("use `--a_b` or *c*"),
            "use `--a_b` or \\*c\\*"
        );
        assert_eq!(escape_around_code("an odd ` one"), "an odd \\` one");
        assert_eq!(escape_around_code("`a` `b`"), "`a` `b`");
    }
}
