//! The report for a terminal: what was done, phase by phase, and at the end, where people look
//! first, the result with its caveats. It returns text and prints nothing.

use crate::caveat::{NumberedCaveat, Severity};
use crate::experiment;
use crate::facts::Fact;
use crate::instances::InstancesModel;
use crate::layout::{Cell, Column, Painter, Style, Table, text_width, wrap};
use crate::model::{Figure, Headline, LatencyRow, OperationModel, PhaseModel, ReportModel};
use crate::watched::WatchedModel;
use dyno_record::quantity::Quantity;

/// Narrowest width that the layout is made for; narrower terminals get lines that are too long.
pub(crate) const MIN_WIDTH: usize = 40;

/// Widest paragraph that reads well; tables may be wider.
pub(crate) const MAX_PARAGRAPH: usize = 100;

/// Renders the model in at most `width` columns where that is possible.
pub(crate) fn render(model: &ReportModel, width: usize, colours: bool) -> String {
    let mut page = Page {
        text: String::new(),
        width: width.max(MIN_WIDTH),
        painter: Painter { colours },
    };
    page.title(model);
    page.facts("Workload", &model.workload);
    page.facts("Server", &model.server);
    page.facts("Machine", &model.machine);
    for phase in &model.phases {
        page.phase(phase);
    }
    if let Some(instances) = &model.instances {
        page.instances("Instances", "instance", instances);
    }
    if let Some(hosts) = &model.hosts {
        page.instances("Fleet", "host", hosts);
    }
    let analysis = model.analysis.as_ref();
    let [sections, findings] = analysis.map_or_else(Default::default, |analysis| {
        experiment::terminal::parts(analysis, width, colours)
    });
    page.text += &sections;
    page.watched(&model.watched);
    page.text += &experiment::terminal::sections(&model.io_trace, width, colours);
    if let Some(headline) = &model.headline {
        page.headline(headline);
    }
    if let Some(verdict) = &model.watched.verdict {
        page.verdict(verdict);
    }
    if let Some(changes) = &model.watched.changes {
        page.changes(changes);
    }
    page.text += &findings;
    page.caveats(&model.caveats);
    page.text
}

/// ` [1][3]`, or nothing.
pub(crate) fn marks_text(marks: &[usize]) -> String {
    marks.iter().map(|mark| format!("[{mark}]")).collect()
}

/// A report under construction.
pub(crate) struct Page {
    text: String,
    width: usize,
    painter: Painter,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Text in lines; the first one begins with `first` spaces, later ones with `rest`.
    pub(crate) fn paragraph(&mut self, text: &str, first: usize, rest: usize, style: Style) {
        let width = self.width.min(MAX_PARAGRAPH);
        for line in wrap(text, width, first, rest) {
            // Spaces stay outside of the colour, or some terminals underline them.
            let (indent, words) = line.split_at(line.len() - line.trim_start().len());
            let painted = self.painter.paint(style, words);
            self.line(&format!("{indent}{painted}"));
        }
    }

    /// The title of a part.
    pub(crate) fn heading(&mut self, text: &str) {
        self.line("");
        self.paragraph(text, 0, 2, Style::Bold);
    }

    fn title(&mut self, model: &ReportModel) {
        let name = self.painter.paint(Style::Bold, &model.name);
        self.line(&format!("Workload {name}"));
        self.paragraph(&model.description, 0, 0, Style::Plain);
        let marks = marks_text(&model.status.marks);
        let mut status = format!("{} {marks}", model.status.label)
            .trim_end()
            .to_owned();
        if let Some(reason) = &model.status.reason {
            status += &format!(": {reason}");
        }
        let style = match model.status.label {
            "complete" => Style::Dim,
            _ => Style::Alarm,
        };
        let text = format!(
            "{status}; {}, started {}, measured by dyno {}",
            model.server_name, model.started_at, model.dyno_version
        );
        self.paragraph(&text, 0, 2, style);
    }

    /// Facts as one paragraph: they are looked up, not compared.
    fn facts(&mut self, title: &str, facts: &[Fact]) {
        if facts.is_empty() {
            return;
        }
        self.heading(title);
        let label_width = facts.iter().map(|f| text_width(&f.label)).max();
        for fact in facts {
            self.fact(fact, label_width.unwrap_or(0));
        }
    }

    fn fact(&mut self, fact: &Fact, label_width: usize) {
        let indent = 2 + label_width + 2;
        let width = self.width.clamp(indent + 20, MAX_PARAGRAPH + indent);
        let marks = marks_text(&fact.marks);
        let lines = wrap(&format!("{} {marks}", fact.value), width - indent, 0, 0);
        let mut label = format!("{:label_width$}", fact.label);
        for line in lines {
            let painted = self.painter.paint(Style::Dim, &label);
            self.line(&format!("  {painted}  {line}"));
            label = " ".repeat(label_width);
        }
    }

    fn phase(&mut self, phase: &PhaseModel) {
        let rate_marks = marks_text(&phase.rate_marks);
        let offered = phase
            .offered
            .map_or(String::new(), |rate| format!(" of {rate} offered"));
        self.heading(&format!("Phase {}: {}", phase.name.as_str(), phase.purpose));
        let rate = format!("{}{offered} {rate_marks}", phase.achieved);
        let text = format!("{} at {}", phase.duration, rate.trim_end());
        self.line(&format!("  {text}"));
        self.operations(phase);
        let mut facts = phase.facts.clone();
        if !phase.errors.is_empty() {
            facts.insert(0, errors_fact(phase));
        }
        let label_width = facts.iter().map(|f| text_width(&f.label)).max();
        for fact in &facts {
            self.fact(fact, label_width.unwrap_or(0));
        }
        for note in &phase.notes {
            self.paragraph(note, 2, 2, Style::Dim);
        }
    }

    fn operations(&mut self, phase: &PhaseModel) {
        if phase.operations.is_empty() {
            return;
        }
        let mut table = operations_table();
        for operation in &phase.operations {
            operation_rows(&mut table, operation);
        }
        self.table(table);
        for (what, marks) in [
            ("latencies", &phase.latency_marks),
            ("p99.9 and above", &phase.tail_marks),
        ] {
            if !marks.is_empty() {
                let text = format!("caveats of {what}: {}", marks_text(marks));
                self.paragraph(&text, 2, 2, Style::Caution);
            }
        }
        self.line("");
    }

    /// A table, and what did not fit into it.
    fn table(&mut self, table: Table) {
        let (lines, left_out) = table.lines(self.width - 2, self.painter);
        self.line("");
        for line in lines {
            self.line(&format!("  {line}"));
        }
        if !left_out.is_empty() {
            let columns = left_out.join(", ");
            let text = format!("(too narrow for {columns})");
            self.paragraph(&text, 2, 2, Style::Dim);
        }
    }

    fn instances(&mut self, title: &str, what: &'static str, instances: &InstancesModel) {
        self.heading(&format!(
            "{title}: rate, and response time of {}",
            instances.operation
        ));
        let mut table = Table::new(vec![
            Column::text(what),
            Column::number("rate", 90),
            Column::number("failed", 60),
            Column::number("p50", 70),
            Column::number("p99", 80),
            Column::number("p99.9", 50),
            Column::number("max", 40),
            Column::number("CPU/op", 20),
        ]);
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
            let mut cells = vec![Cell::new(&row.label, Style::Bold)];
            cells.extend(numbers.iter().map(|number| Cell::from(number.to_string())));
            table.row(cells);
        }
        self.table(table);
        for note in &instances.notes {
            self.paragraph(note, 2, 2, Style::Plain);
        }
    }

    /// The tables of what was watched.
    fn watched(&mut self, watched: &WatchedModel) {
        let sections = &watched.sections;
        self.text += &experiment::terminal::sections(sections, self.width, self.painter.colours);
        self.missing(&watched.missing);
    }

    fn headline(&mut self, headline: &Headline) {
        self.heading(&format!("Result of phase {}", headline.phase.as_str()));
        let figures = &headline.figures;
        let widest = |text: fn(&Figure) -> String| {
            let widths = figures.iter().map(|figure| text_width(&text(figure)));
            widths.max().unwrap_or(0)
        };
        let label_width = widest(|figure| figure.label.clone());
        let value_width = widest(|figure| figure.value.to_string());
        for figure in figures {
            let value = figure.value.to_string();
            let style = match figure.alarming {
                true => Style::Alarm,
                false => Style::Bold,
            };
            let note = figure.note.as_deref().unwrap_or("");
            let marks = marks_text(&figure.marks);
            let start = format!(
                "  {}  {}{}",
                self.painter
                    .paint(Style::Dim, &format!("{:label_width$}", figure.label)),
                " ".repeat(value_width - text_width(&value)),
                self.painter.paint(style, &value),
            );
            let note_and_marks = format!(
                "{} {}",
                self.painter.paint(Style::Dim, note),
                self.painter.paint(Style::Caution, &marks),
            );
            let indent = 2 + label_width + 2 + value_width + 2;
            if indent + text_width(note) + 1 + text_width(&marks) <= self.width {
                self.line(&format!("{start}  {note_and_marks}"));
            } else {
                self.line(&start);
                self.line(&format!("    {note_and_marks}"));
            }
        }
    }

    fn caveats(&mut self, caveats: &[NumberedCaveat]) {
        if caveats.is_empty() {
            return;
        }
        self.heading("Caveats");
        for caveat in caveats {
            let place = caveat
                .phase
                .map_or(String::new(), |phase| format!(" ({})", phase.as_str()));
            let text = format!(
                "[{}] {}{place}: {}",
                caveat.number, caveat.label, caveat.message
            );
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

/// The failures by kind, as one fact.
fn errors_fact(phase: &PhaseModel) -> Fact {
    let kinds = phase.errors.iter();
    let kinds: Vec<String> = kinds
        .map(|error| format!("{} {}", error.label, error.value))
        .collect();
    Fact {
        label: "Errors".into(),
        value: kinds.join(", "),
        marks: phase.error_marks.clone(),
    }
}

/// Ranks say which columns go first on a narrow terminal.
fn operations_table() -> Table {
    Table::new(vec![
        Column::text("operation"),
        Column::number("count", 40),
        Column::number("rate", 45),
        Column::number("errors", 60),
        Column::number("documents", 12),
        Column::text("time"),
        Column::number("mean", 30),
        Column::number("min", 10),
        Column::number("p50", 80),
        Column::number("p90", 15),
        Column::number("p95", 20),
        Column::number("p99", 90),
        Column::number("p99.9", 70),
        Column::number("p99.99", 25),
        Column::number("max", 50),
    ])
}

fn operation_rows(table: &mut Table, operation: &OperationModel) {
    let failed = operation.errors.value() > 0.0;
    let error_style = if failed { Style::Alarm } else { Style::Plain };
    let documents = operation.documents.map_or(String::new(), |n| n.to_string());
    let mut start: Vec<Cell> = vec![
        Cell::new(&operation.label, Style::Bold),
        operation.count.to_string().into(),
        operation.rate.to_string().into(),
        Cell::new(operation.errors.to_string(), error_style),
        documents.into(),
    ];
    if operation.latencies.is_empty() {
        table.row(std::mem::take(&mut start));
    }
    for latency in &operation.latencies {
        start.resize(5, Cell::default());
        let mut row = std::mem::take(&mut start);
        row.push(Cell::new(latency.clock, Style::Dim));
        row.extend(latency_cells(latency));
        table.row(row);
    }
}

fn latency_cells(row: &LatencyRow) -> impl Iterator<Item = Cell> {
    latency_values(row)
        .into_iter()
        .map(|value| value.to_string().into())
}

/// The figures of a row in the order of the columns.
pub(crate) fn latency_values(row: &LatencyRow) -> [Quantity; 9] {
    [
        row.mean, row.min, row.p50, row.p90, row.p95, row.p99, row.p99_9, row.p99_99, row.max,
    ]
}
