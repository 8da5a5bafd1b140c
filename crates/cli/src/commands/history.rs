//! `dyno history`: detects changes in a series of runs of the same plan.

use crate::args::experiments::HistoryArguments;
use crate::args::values::moment;
use crate::commands::pictures;
use crate::exit::Exit;
use crate::export::output;
use crate::invocation::Invocation;
use crate::messages::print_data;
use crate::records::{self, DEPTH};
use crate::reports::{refused, terminal_options};
use dyno_analyze::caveats::has_other_load;
use dyno_analyze::change_point::ChangePointSettings;
use dyno_analyze::costs::of_measure;
use dyno_analyze::experiment::comparable::series_differences;
use dyno_analyze::experiment::figures::{is_open, measured};
use dyno_analyze::experiment::history::{HistoryRun, analyze};
use dyno_analyze::uncertainty::series;
use dyno_engine::files::write_error;
use dyno_engine::{Error, Kind};
use dyno_record::Document;
use dyno_record::experiment::Statistic;
use dyno_record::model::{PhaseKind, RunDocument, RunStatus};
use dyno_record::quantity::Quantity;
use dyno_record::reader::Run;
use dyno_record::responses::responses;
use dyno_record::sums;
use dyno_report::experiment::history as page;
use dyno_report::texts;
use dyno_report::{Extent, PageFormat};
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Fixed, so that the same runs give the same answer.
const SEED: u64 = 42;

/// Executes `dyno history`.
pub(crate) fn history(
    arguments: &HistoryArguments,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let Invocation { surroundings, messages, .. } = invocation;
    if !arguments.directory.is_dir() {
        let text = format!("the folder `{}` does not exist", arguments.directory.display());
        return Err(Error::new(Kind::BadInput, text).with_hint(FOLDER_HINT));
    }
    if let Some(out) = &arguments.pictures {
        output::check_folder(out)?;
    }
    let mut folders = Vec::new();
    find_runs(&arguments.directory, DEPTH, &mut folders)?;
    let mut left_out = Vec::new();
    let mut others = BTreeSet::new();
    let mut runs: Vec<(RunDocument, HistoryRun)> = Vec::new();
    for folder in folders {
        let name =
            folder.strip_prefix(&arguments.directory).unwrap_or(&folder).display().to_string();
        match read(&folder, &name, arguments.workload.as_deref()) {
            Ok(Found::Run(run)) => runs.push(*run),
            Ok(Found::Other(workload)) => drop(others.insert(workload)),
            Ok(Found::Changed(how)) => {
                messages.warning(&format!("skipping `{name}`: {how}"));
                left_out.push(format!("`{name}`: {how}"));
            }
            Err(reason) => left_out.push(format!("`{name}`: {reason}")),
        }
    }
    left_out.sort();
    // The directory orders runs that started in the same second.
    let key = |run: &HistoryRun| (run.started_at.clone(), run.directory.clone());
    runs.sort_by_key(|(_, run)| key(run));
    let Some(last) = runs.len().checked_sub(1) else {
        return Err(nothing_found(arguments, &left_out, &others));
    };
    let like = match &arguments.like {
        Some(like) => {
            let inside = Path::new(like).strip_prefix(&arguments.directory).ok();
            let like = inside.and_then(Path::to_str).unwrap_or(like);
            run_named(runs.iter().map(|(_, run)| run), like)?.ok_or_else(|| {
                let text =
                    format!("`--like {like}` is not part of the name of a complete run here");
                Error::new(Kind::BadInput, text).with_hint("list the names with `dyno runs`")
            })?
        }
        None => last,
    };
    let Series { name, runs, others } = Series::of(runs, like);
    left_out.extend(others);
    let settings = settings(arguments.significance)?;
    let since = arguments.since.as_deref();
    let since = since.map(|since| position(&runs, since)).transpose()?;
    let found = analyze(&name, runs, left_out, arguments.margin, settings);
    let found = match since {
        Some(position) => found.judged_since(position),
        None => found,
    };
    if let Some(path) = &arguments.picture {
        let text = pictures::stacked(&page::page(&found))?;
        let write =
            |file: &mut (dyn Write + Send)| file.write_all(text.as_bytes()).map_err(write_error);
        output::to_file(path, arguments.force, Box::new(write))?;
        messages.note(&format!("picture: {}", path.display()));
    }
    if let Some(out) = &arguments.pictures {
        let written = pictures::write(&page::page(&found), out)?;
        messages.note(&format!(
            "{} in `{}`",
            Quantity::counted(written as u64, "chart"),
            out.display()
        ));
    }
    let options = terminal_options(surroundings, Extent::Full);
    print_data(&page::render(&found, arguments.format, &options).map_err(refused)?)?;
    // The text says so itself.
    if found.is_too_short() && arguments.format != PageFormat::Human {
        messages.warning(&format!(
            "too few runs to distinguish a change from chance: {} found, {} required",
            found.runs.len(),
            found.fewest_runs
        ));
    }
    Ok(Exit::of_check(!found.has_regression()))
}

/// Position of the run that a name or a part of it means.
fn run_named<'r>(
    runs: impl Iterator<Item = &'r HistoryRun>,
    name: &str,
) -> Result<Option<usize>, Error> {
    let names: Vec<String> = runs.map(|run| run.directory.clone()).collect();
    records::choose(name, &names)
}

/// Position of a run by its name, or of the first run since a time.
fn position(runs: &[HistoryRun], since: &str) -> Result<usize, Error> {
    let time = match runs.iter().position(|run| run.directory == since) {
        Some(position) => return Ok(position),
        None => moment(since).ok(),
    };
    let Some(time) = time else {
        return run_named(runs.iter(), since)?.ok_or_else(|| {
            let text = format!("`--since {since}` is neither a run of the series nor a time");
            Error::new(Kind::BadInput, text)
                .with_hint("pass the name of a run in the table, or a time such as `2026-08-22`")
        });
    };
    let is_since = |run: &HistoryRun| {
        let started: Option<Timestamp> = run.started_at.parse().ok();
        started.is_some_and(|started| started >= time)
    };
    runs.iter().position(is_since).ok_or_else(|| {
        let text = format!("no run of the series started since `{since}`");
        Error::new(Kind::BadInput, text).with_hint("pass an earlier time, or remove `--since`")
    })
}

const FOLDER_HINT: &str = "name a folder with run directories, such as `runs`";

/// Settings of the change detection. The smallest possible p value is one over the number of permutations.
fn settings(significance_ratio: f64) -> Result<ChangePointSettings, Error> {
    let defaults = ChangePointSettings::seeded(SEED);
    let needed = (PERMUTATIONS_PER_ALARM / significance_ratio).ceil();
    if needed > MOST_PERMUTATIONS {
        let least = PERMUTATIONS_PER_ALARM / MOST_PERMUTATIONS * 100.0;
        let text = format!(
            "`--significance` is `{}%`, but must be at least {least} %",
            significance_ratio * 100.0
        );
        return Err(Error::new(Kind::BadInput, text)
            .with_hint("use `--significance 0.1%` for one false alarm per thousand series"));
    }
    Ok(ChangePointSettings {
        significance_ratio,
        permutations: (needed as usize).max(defaults.permutations),
        ..defaults
    })
}

/// Expected number of permutations that are as extreme by chance, so that a decisive p value rests on several.
const PERMUTATIONS_PER_ALARM: f64 = 5.0;
/// Limit of permutations; more take minutes for a long series.
const MOST_PERMUTATIONS: f64 = 10_000.0;

fn nothing_found(
    arguments: &HistoryArguments,
    left_out: &[String],
    others: &BTreeSet<String>,
) -> Error {
    let directory = arguments.directory.display();
    let of = match &arguments.workload {
        Some(workload) => format!(" of `{workload}`"),
        None => String::new(),
    };
    let names: Vec<&str> = others.iter().map(String::as_str).collect();
    let hint = match left_out.first() {
        _ if !names.is_empty() => format!("the folder has runs of {}", names.join(", ")),
        Some(one) => format!("skipped {one}"),
        None => FOLDER_HINT.to_owned(),
    };
    Error::new(Kind::BadInput, format!("no complete runs{of} in `{directory}`")).with_hint(hint)
}

/// Finds the run directories below a folder, without searching inside of runs.
pub(crate) fn find_runs(
    folder: &Path,
    depth: usize,
    found: &mut Vec<PathBuf>,
) -> Result<(), Error> {
    let is_run = |path: &Path| path.join(RunDocument::FILE).is_file();
    records::search(folder, depth, &is_run, found)
}

/// Relation of a run directory to the series.
enum Found {
    /// Part of the series.
    Run(Box<(RunDocument, HistoryRun)>),
    /// A run of this other workload.
    Other(String),
    /// The record was changed after the run, as described.
    Changed(String),
}

/// Reads a run. An error gives the reason to skip it.
fn read(folder: &Path, name: &str, workload: Option<&str>) -> Result<Found, String> {
    let document = Run::open(folder).map_err(|error| error.to_string())?.document;
    if workload.is_some_and(|workload| workload != document.name) {
        return Ok(Found::Other(document.name));
    }
    if document.status != RunStatus::Complete {
        return Err("the run is not complete".into());
    }
    let changes = sums::check(folder).map_err(|error| error.to_string())?;
    if let Some(changed) = changes.statement() {
        return Ok(Found::Changed(texts::text(&changed)));
    }
    let windows = responses(folder, PhaseKind::Measure, None).map_err(|error| error.to_string())?;
    let series = series::Series::new(&measured(&windows, is_open(&document)).samples);
    const US_PER_NS: f64 = 1e-3;
    let value = |statistic, unit: f64| series.value(statistic).map(|value| value * unit);
    let percentile = |percent| value(Statistic::Percentile { percent }, US_PER_NS);
    let values: Option<Vec<f64>> = [
        value(Statistic::Rate, 1.0),
        value(Statistic::MeanTime, US_PER_NS),
        percentile(95.0),
        percentile(99.0),
    ]
    .into_iter()
    .collect();
    let costs = of_measure(&document);
    let run = HistoryRun {
        currency: costs.as_ref().and_then(|costs| costs.currency.clone()),
        costs: costs.map_or_else(Vec::new, |costs| costs.values),
        directory: name.to_owned(),
        started_at: document.started_at.clone(),
        other_load: has_other_load(&document.environment),
        values: values.ok_or("the run did not measure anything")?,
    };
    Ok(Found::Run(Box::new((document, run))))
}

/// The runs of one plan with the same data, server settings and load.
struct Series {
    /// Name of the plan.
    name: String,
    runs: Vec<HistoryRun>,
    /// One line about each other series among the runs.
    others: Vec<String>,
}

impl Series {
    /// The series of the run at this position.
    fn of(runs: Vec<(RunDocument, HistoryRun)>, like: usize) -> Series {
        let chosen = runs[like].0.clone();
        let same = |a: &RunDocument, b: &RunDocument| {
            a.name == b.name && series_differences(&a.plan, &b.plan).is_empty()
        };
        let mut own = Vec::new();
        // The first run of each other series, the name of its last run, and the number of its runs.
        let mut others: Vec<(RunDocument, String, usize)> = Vec::new();
        for (document, run) in runs {
            if same(&document, &chosen) {
                own.push(run);
                continue;
            }
            match others.iter_mut().find(|(first, ..)| same(first, &document)) {
                Some((_, last, number)) => (*last, *number) = (run.directory, *number + 1),
                None => others.push((document, run.directory, 1)),
            }
        }
        let others = others.iter().map(|(first, last, number)| {
            let (runs, name) = (Quantity::counted(*number as u64, "run"), &first.name);
            let why = difference(first, &chosen);
            format!("{runs} of `{name}`{why}; show with `--like {last}`")
        });
        Series { others: others.collect(), name: chosen.name, runs: own }
    }
}

/// Most differing keys that are named.
const MOST_KEYS: usize = 2;

/// The keys in which a run of the same plan differs. Another plan differs by its name.
fn difference(other: &RunDocument, chosen: &RunDocument) -> String {
    if other.name != chosen.name {
        return String::new();
    }
    let found = series_differences(&other.plan, &chosen.plan);
    let keys = found.iter().take(MOST_KEYS).map(|one| {
        let number = |text: &str| {
            text.parse::<u64>().map_or_else(|_| text.to_owned(), |n| Quantity::count(n).to_string())
        };
        format!("`{}` {} instead of {}", one.what, number(&one.a), number(&one.b))
    });
    let mut keys: Vec<String> = keys.collect();
    if found.len() > MOST_KEYS {
        keys.push(Quantity::counted((found.len() - MOST_KEYS) as u64, "more key"));
    }
    format!(" with {}", keys.join(", "))
}
