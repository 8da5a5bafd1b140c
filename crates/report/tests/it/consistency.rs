//! Consistency of pages: the same quantity has the same value everywhere, shares are shares, and no sentence claims more
//! than the figures of its page show. Tested with the golden record, the recorded faults, and variations of these.

use dyno_analyze::experiment::run::RunAnalysis;
use dyno_analyze::verdict::{Cause, Verdict};
use dyno_record::experiment::{LawVerdict, Resource};
use dyno_record::metrics::MetricTable;
use dyno_record::model::{PhaseKind, PhaseRecord, ResourceKind};
use dyno_record::quantity::Unit;
use dyno_record::reader::Run;
use dyno_record::statement::{Number, Statement, Value};
use dyno_report::{Format, RenderOptions, render};
use dyno_results::run::{analyse, open};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

mod documents;

/// Number of generated records.
const GENERATED: u64 = 300;
/// A resource with at least this utilization has no capacity left.
const SATURATED_RATIO: f64 = 0.95;
/// Words that make a claim about all measurements.
const ABSOLUTE: [&str; 5] = ["nothing", "none", "no resource", "never", "certainly"];
/// Ratios of two quantities. All other ratios of a statement are shares, from 0 to 1.
const QUOTIENTS: [&str; 9] = [
    "write_over_read_ratio",
    "data_over_cache_ratio",
    "checkpoint_slowdown_ratio",
    "connections_per_operation_ratio",
    "variation_ratio",
    "flatter_operations_ratio",
    "bytes_variation_ratio",
    "law-checked",
    "above-bound",
];

/// The justification of a sentence with an absolute word.
enum Ground {
    /// A check against the other figures of its page.
    Checked(fn(&Statement, &View<'_>) -> Option<String>),
    /// The word belongs to a count or share in the same sentence.
    Counted,
    /// The sentence is a definition, a method, or about something that was not measured.
    Definition,
    /// The sentence appears only on pages of experiments. The analysis tests check it against servers with known behaviour.
    Experiment,
}

/// The justification of each sentence with an absolute word.
const GROUNDS: &[(&str, Ground)] = &[
    ("arrivals-never-sent", Ground::Counted),
    ("arrivals-dropped-in-run", Ground::Counted),
    ("attempt", Ground::Counted),
    ("bottleneck", Ground::Checked(nothing_near_saturation)),
    ("cause.too-few-clients", Ground::Checked(nothing_exhausted)),
    ("cells-measured-once", Ground::Definition),
    ("cursor-alive-without-messages", Ground::Counted),
    ("dropped-in-run", Ground::Counted),
    ("dropped-share", Ground::Counted),
    ("interval-of-rate", Ground::Definition),
    ("missing-bound-is-the-cause", Ground::Experiment),
    ("more-clients-could-raise", Ground::Checked(nothing_near_saturation)),
    ("no-demand-explains", Ground::Experiment),
    ("no-interval-of-rates", Ground::Definition),
    ("no-offered-rate-achieved", Ground::Experiment),
    ("none-sustained", Ground::Experiment),
    ("none-sustained-by-client", Ground::Experiment),
    ("nothing-exhausted", Ground::Checked(nothing_exhausted)),
    ("nothing-measured", Ground::Counted),
    ("nothing-to-mend", Ground::Experiment),
    ("nothing-watched", Ground::Checked(nothing_watched)),
    ("operations-wait-beyond", Ground::Experiment),
    ("single-pair", Ground::Definition),
    ("suite-changed", Ground::Experiment),
    ("tune-across-depends", Ground::Experiment),
    ("tune-good-for-none", Ground::Experiment),
    ("tune-not-proven", Ground::Experiment),
    ("tune-nothing-to-gain", Ground::Experiment),
    ("tune-on-workload", Ground::Experiment),
    ("waits-shorter", Ground::Experiment),
    ("wrong-values-read", Ground::Counted),
    ("x-max-of-blocks", Ground::Experiment),
];

/// A page with its input.
struct View<'a> {
    run: &'a Run,
    analysis: &'a RunAnalysis,
    verdict: Option<&'a Verdict>,
    phase: &'a PhaseRecord,
    markdown: &'a str,
}

impl View<'_> {
    /// A resource that was busy all the time, whoever used it. Disks are excluded, because a disk that serves several
    /// requests at once is busy long before it is saturated, as are paced clients, which poll the clock while they wait.
    fn saturated(&self) -> Option<String> {
        let figures = &self.analysis.figures;
        let is_paced = figures.offered_rate_per_s.is_some() || figures.think_mean_us.is_some();
        let resources = figures.resources.iter();
        let resources = resources.filter(|_| !is_paced);
        let busy = resources
            .filter(|one| !one.name.contains("disk") && one.busy_ratio >= SATURATED_RATIO)
            .max_by(|a, b| a.busy_ratio.total_cmp(&b.busy_ratio));
        let said = |Resource { name, busy_ratio, .. }: &Resource| {
            format!("{name} was busy {:.1} % of the time", 100.0 * busy_ratio)
        };
        busy.map(said)
    }

    /// The longest part of the measured time without a success, in recording windows.
    fn windows_without_success(&self) -> usize {
        let windows = self.run.intervals.iter();
        let (mut longest, mut now) = (0, 0);
        for window in windows.filter(|window| window.phase == PhaseKind::Measure) {
            now = if window.succeeded == 0 { now + 1 } else { 0 };
            longest = longest.max(now);
        }
        longest
    }

    fn statements(&self) -> Vec<&Statement> {
        let mut found = Vec::new();
        for finding in &self.analysis.findings {
            collect(&finding.statement, &mut found);
            finding.evidence.iter().for_each(|one| collect(one, &mut found));
        }
        if let Some(verdict) = self.verdict {
            collect(&verdict.headline, &mut found);
            for cause in &verdict.causes {
                collect(&cause.statement, &mut found);
                cause.evidence.iter().for_each(|one| collect(&one.statement, &mut found));
            }
        }
        self.run.document.caveats.iter().for_each(|caveat| collect(&caveat.statement, &mut found));
        found
    }
}

fn collect<'a>(statement: &'a Statement, found: &mut Vec<&'a Statement>) {
    fn parts<'a>(value: &'a Value, found: &mut Vec<&'a Statement>) {
        match value {
            Value::Statement(part) => collect(part, found),
            Value::List(values) => values.iter().for_each(|one| parts(one, found)),
            _ => {}
        }
    }
    found.push(statement);
    statement.values.values().for_each(|value| parts(value, found));
}

fn nothing_near_saturation(said: &Statement, view: &View<'_>) -> Option<String> {
    let flag = |name: &str| said.values.get(name) == Some(&Value::Flag(true));
    let claims = !["is_near", "is_beside_verdict", "is_of_known"].into_iter().any(flag);
    let claims = claims && !said.values.contains_key("used_up");
    claims.then(|| view.saturated())?
}

fn nothing_exhausted(_: &Statement, view: &View<'_>) -> Option<String> {
    let gap = view.windows_without_success();
    let gap = (gap > 1).then(|| format!("{gap} windows without a success"));
    view.saturated().or(gap)
}

fn nothing_watched(_: &Statement, view: &View<'_>) -> Option<String> {
    let sources = view.run.metrics.iter().map(|table| table.source.as_str());
    let sources: Vec<&str> = sources.collect();
    (!sources.is_empty()).then(|| format!("sources {sources:?} were read"))
}

/// All contradictions on a page.
fn contradictions(view: &View<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let statements = view.statements();
    for statement in &statements {
        found.extend(wrong_numbers(statement));
        let ground = GROUNDS.iter().find(|(code, _)| *code == statement.code);
        if let Some((code, Ground::Checked(check))) = ground {
            found.extend(check(statement, view).map(|figure| format!("`{code}`, but {figure}")));
        }
    }
    found.extend(wrong_shares_of_time(view.markdown));
    found.extend(different_values(view));
    found.extend(broken_and_held(view));
    found.extend(another_is_used_more(view));
    found
}

/// Shares above 1, and intervals that do not contain their value.
fn wrong_numbers(statement: &Statement) -> Vec<String> {
    let code = &statement.code;
    let is_quotient =
        |name: &str| QUOTIENTS.iter().any(|end| code.ends_with(end) || name.ends_with(end));
    let mut found = Vec::new();
    for (name, value) in &statement.values {
        let Value::Number(Number { value: Some(number), unit, low, high, .. }) = value else {
            continue;
        };
        let is_share = *unit == Unit::Ratio && ["share", "value"].contains(&name.as_str());
        if is_share
            && !is_quotient(name)
            && !(-1e-9..=1.0 + 1e-9).contains(number)
            && !is_of_bound(code)
        {
            found.push(format!("`{code}`: {name} is {number}"));
        }
        if low.is_some_and(|low| low > *number) || high.is_some_and(|high| high < *number) {
            found.push(format!("`{code}`: {name} {number} is outside of {low:?} to {high:?}"));
        }
    }
    found
}

/// Rates may exceed their bound: then a law is broken, which the page reports.
fn is_of_bound(code: &str) -> bool {
    ["bottleneck", "reached-of-bound"].contains(&code)
}

/// `105 % of the time`.
fn wrong_shares_of_time(markdown: &str) -> Vec<String> {
    let places = markdown.match_indices("% of the time");
    let said = places.filter_map(|(at, _)| {
        let number = markdown[..at].trim_end().rsplit([' ', '(', '|']).next()?;
        let value: f64 = number.replace(',', "").parse().ok()?;
        (value > 100.0).then(|| format!("{number} % of the time"))
    });
    said.collect()
}

/// Differences between the figures of the phase and of its findings and intervals, unless the page names a part of the
/// phase.
fn different_values(view: &View<'_>) -> Vec<String> {
    let figures = &view.analysis.figures;
    if figures.warm_up_s > 0.0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut same = |what: &str, a: f64, b: f64| {
        if (a / b - 1.0).abs() > 1e-9 {
            found.push(format!("{what}: {a} in the phase, {b} in what follows from it"));
        }
    };
    same("rate", view.phase.achieved_rate_per_s, figures.rate_per_s.value);
    for (name, operation) in &view.analysis.operations {
        let Some(recorded) = view.phase.operations.get(name) else {
            continue;
        };
        let response = &recorded.response_time_us;
        same(&format!("rate of {name}"), recorded.rate_per_s, operation.rate_per_s.value);
        same(&format!("mean of {name}"), response.mean, operation.response_mean_us.value);
        for (percentile, figure) in &operation.response_us {
            let recorded = match percentile.as_str() {
                "p50" => response.p50,
                "p95" => response.p95,
                "p99" => response.p99,
                _ => continue,
            };
            same(&format!("{percentile} of {name}"), recorded, figure.value);
        }
    }
    let table = table_of(view.markdown, "## Rate and response time");
    for (label, value, note) in headline(view.markdown) {
        let Some(percentile) = label.strip_suffix(" response time") else {
            continue;
        };
        let operation = note.split(',').next().unwrap_or_default().to_owned();
        let cell = table.get(&(operation.clone(), percentile.to_owned()));
        let cell = cell.map(|cell| cell.split(" (").next().unwrap_or_default());
        if cell.is_some_and(|cell| cell != value) {
            found.push(format!(
                "{label} of {operation}: {value} in the headline, {cell:?} in the table"
            ));
        }
    }
    found
}

/// Label, value and note of the headline figures.
fn headline(markdown: &str) -> Vec<(String, String, String)> {
    let rows = markdown
        .split("\n## ")
        .nth(1)
        .unwrap_or_default()
        .lines()
        .filter(|line| line.starts_with("| "))
        .skip(2);
    let cells = rows
        .map(|row| row.split('|').map(|cell| cell.trim().replace("**", "")).collect::<Vec<_>>());
    cells
        .filter(|cells| cells.len() > 4)
        .map(|cells| (cells[1].clone(), cells[2].clone(), cells[3].clone()))
        .collect()
}

/// Cells of the first table below a heading, by row and column name.
fn table_of(markdown: &str, heading: &str) -> BTreeMap<(String, String), String> {
    let below = markdown.find(heading).map_or("", |at| &markdown[at..]);
    let tables = documents::tables(below);
    let first = tables.into_iter().find(|table| !table.is_empty());
    let mut rows = first.into_iter().flatten();
    let columns = rows.next().unwrap_or_default();
    let mut found = BTreeMap::new();
    for row in rows {
        for (column, cell) in columns.iter().zip(&row) {
            found.insert((row[0].clone(), column.clone()), cell.clone());
        }
    }
    found
}

/// Laws that are reported both as holding and as broken.
fn broken_and_held(view: &View<'_>) -> Vec<String> {
    let broken: BTreeSet<String> = view
        .analysis
        .figures
        .laws
        .iter()
        .filter(|check| check.verdict == LawVerdict::Broken)
        .map(|check| format!("{:?}", check.law))
        .collect();
    let warned =
        view.analysis.findings.iter().filter(|one| one.statement.code == "law-broken").count();
    (warned != broken.len())
        .then(|| format!("{warned} laws are said to be broken, {broken:?} are"))
        .into_iter()
        .collect()
}

/// A saturated CPU that the verdict does not mention although it names other causes.
fn another_is_used_more(view: &View<'_>) -> Option<String> {
    let verdict = view.verdict.filter(|verdict| verdict.is_reached())?;
    let saturated = view.saturated()?;
    let named = verdict.causes.iter().any(|cause| {
        matches!(
            cause.cause,
            Cause::ServerCpu
                | Cause::SharedCpu
                | Cause::Client
                | Cause::NoisyNeighbour
                | Cause::CpuThrottled
                | Cause::CpuStolen
        )
    });
    let said = view.markdown.contains("CPU");
    (!named && !said).then(|| format!("the verdict names no CPU, but {saturated}"))
}

fn records() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let recorded = fs::read_dir(crates.join("analyze/tests/recorded-faults")).unwrap();
    let mut folders: Vec<PathBuf> =
        recorded.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.push(crates.join("record/tests/golden/v1"));
    folders
}

fn looked_at(run: &Run, name: &str) -> Vec<String> {
    let Some(analysis) = analyse(run) else {
        return Vec::new();
    };
    let markdown =
        render(run, Some(&analysis), Format::Markdown, &RenderOptions::default()).unwrap();
    let options = RenderOptions::default();
    let json = render(run, Some(&analysis), Format::Json, &options).unwrap();
    let phases = &run.document.phases;
    let phase = phases.iter().find(|phase| phase.name == PhaseKind::Measure).unwrap();
    let mut found = documents::contradictions(&markdown, &json);
    found.extend(contradictions(&View {
        run,
        analysis: &analysis,
        verdict: analysis.verdict.as_ref(),
        phase,
        markdown: &markdown,
    }));
    found.into_iter().map(|one| format!("{name}: {one}")).collect()
}

/// Varies resource use, CPUs, threads and clients of a record.
fn change(run: &mut Run, random: &mut Xoshiro256PlusPlus) {
    let cpus = [1, 2, 4, 16][random.random_range(0..4)];
    run.document.environment.cpus = Some(cpus);
    let threads = [1, 2, 8][random.random_range(0..3)];
    run.document.plan["client"]["threads"] = threads.into();
    run.document.plan["client"]["clients"] =
        (threads * [1, 4, 32][random.random_range(0..3)]).into();
    let mut share =
        || [0.0, 0.02, 0.3, 0.69, 0.71, 0.94, 0.96, 0.999, 1.0][random.random_range(0..9)];
    let (server, client, others, disk): (f64, f64, f64, f64) = (share(), share(), share(), share());
    let together = (server + client + others).max(1.0);
    for used in &mut run.document.resources {
        let share = match used.resource {
            ResourceKind::ServerCpu => server / together,
            ResourceKind::ClientCpu => client / together,
            ResourceKind::HostCpu => (server + client + others) / together,
            _ => disk,
        };
        if used.resource != ResourceKind::Disk {
            used.units = cpus;
        }
        used.busy_s = share * used.units as f64 * used.duration_s;
    }
    for table in &mut run.metrics {
        change_table(table, random);
    }
}

fn change_table(table: &mut MetricTable, random: &mut Xoshiro256PlusPlus) {
    for (id, values) in &mut table.columns {
        if !random.random_bool(0.3) {
            continue;
        }
        let factor = random.random_range(0.0..4.0);
        let is_share = id.name().ends_with("_ratio") && id.group() != "process";
        for value in values.iter_mut() {
            *value *= factor;
            if is_share {
                *value = value.min(1.0);
            }
        }
    }
}

#[test]
fn recorded_pages_do_not_contradict_themselves() {
    let found: Vec<String> = records()
        .iter()
        .flat_map(|folder| looked_at(&open(folder).unwrap(), &folder.display().to_string()))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn generated_pages_do_not_contradict_themselves() {
    let records = records();
    let one = |seed: u64| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let folder = &records[random.random_range(0..records.len())];
        let mut run = open(folder).unwrap();
        change(&mut run, &mut random);
        looked_at(&run, &format!("seed {seed} of {}", folder.file_name().unwrap().display()))
    };
    let found: Vec<String> = std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            scope.spawn(move || (0..GENERATED / 2).flat_map(|n| one(2 * n + half)).collect())
        });
        halves
            .map(|half| half.join().unwrap())
            .into_iter()
            .flat_map(|half: Vec<String>| half)
            .collect()
    });
    assert!(found.is_empty(), "{} contradictions\n{}", found.len(), found.join("\n"));
}

#[test]
fn sentences_with_absolute_words_have_a_ground() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/texts");
    let mut absolute = BTreeSet::new();
    for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_some_and(|end| end == "toml") {
            let table: toml::Table = fs::read_to_string(file).unwrap().parse().unwrap();
            sentences("", &table, &mut absolute);
        }
    }
    let known: BTreeSet<String> = GROUNDS.iter().map(|(code, _)| (*code).to_owned()).collect();
    let without: Vec<&String> = absolute.difference(&known).collect();
    let superfluous: Vec<&String> = known.difference(&absolute).collect();
    assert!(
        without.is_empty() && superfluous.is_empty(),
        "without a ground: {without:?}; without such a word: {superfluous:?}"
    );
}

/// Codes of sentences with an absolute word in their text.
fn sentences(above: &str, table: &toml::Table, found: &mut BTreeSet<String>) {
    for (key, value) in table {
        let code = match (above, key.as_str()) {
            ("", key) => key.to_owned(),
            (above, "text") => above.to_owned(),
            (above, key) => format!("{above}.{key}"),
        };
        match value {
            toml::Value::Table(inner) => sentences(&code, inner, found),
            toml::Value::String(text) if is_absolute(text) && !code.ends_with(".hint") => {
                found.insert(code);
            }
            _ => {}
        }
    }
}

/// Whether a template can write an absolute word, in its text or in strings of its placeholders.
fn is_absolute(template: &str) -> bool {
    let mut written = String::new();
    for (n, part) in template.split("{{").enumerate() {
        let (inside, after) = match n {
            0 => ("", part),
            _ => part.split_once("}}").unwrap_or((part, "")),
        };
        inside
            .split('\'')
            .skip(1)
            .step_by(2)
            .for_each(|text| written.push_str(&format!(" {text} ")));
        written.push_str(after);
    }
    let written = written.to_lowercase();
    let words: Vec<&str> = written.split(|c: char| !c.is_alphanumeric()).collect();
    let joined = format!(" {} ", words.join(" "));
    ABSOLUTE.iter().any(|word| joined.contains(&format!(" {word} ")))
}
