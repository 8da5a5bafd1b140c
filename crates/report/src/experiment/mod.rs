//! Reports of an experiment: question, findings, tables and charts. Each kind of answer has its own file.

mod ab;
mod blocks;
pub mod comparison;
pub(crate) mod demands;
pub(crate) mod figure;
pub mod history;
pub(crate) mod law_words;
mod levels;
mod parts;
mod ratios;
mod relative;
mod runs;
mod search_costs;
mod slo;
mod slo_charts;
mod storage;
mod suite;
mod suite_csv;
mod sweep;
mod sweep_charts;
mod tune;
mod tune_across;
mod tune_commands;
mod tune_trials;
mod xmax;

use crate::caveat::{CaveatBook, Topic};
use crate::error::ReportError;
use crate::facts;
use crate::machine;
use crate::options::{PageFormat, RenderOptions};
use crate::page::{Fact, FactList, NO_ANSWER, Page, Status};
use crate::render::show;
use crate::texts::list;
use dyno_record::experiment::{Answer, Experiment, Verb};
use dyno_record::plan::RecordedPlan;
use parts::Parts;

/// Renders an experiment. The text ends with a newline.
///
/// # Errors
/// [`ReportError::Template`] or [`ReportError::Json`] if the page or the document cannot be written, which does not depend
/// on the content of the experiment.
pub fn render(
    experiment: &Experiment,
    format: PageFormat,
    options: &RenderOptions,
) -> Result<String, ReportError> {
    show(format, options, || page(experiment), || experiment)
}

/// The table of a suite as CSV, with one row per kind of operation and numbers without units.
///
/// # Errors
/// [`ReportError::NoTable`] for other experiments, and for a suite without an answer.
pub fn csv(experiment: &Experiment) -> Result<String, ReportError> {
    match &experiment.answer {
        Some(Answer::Suite(answer)) => Ok(suite_csv::table(experiment, answer)),
        _ => Err(ReportError::NoTable),
    }
}

/// The page of an experiment.
pub fn page(experiment: &Experiment) -> Page {
    let book = CaveatBook::new(&experiment.caveats);
    let parts = match &experiment.answer {
        Some(Answer::Sweep(answer)) => sweep::parts(experiment, answer, &book),
        Some(Answer::Blocks(answer)) => blocks::parts(experiment, answer, &book),
        Some(Answer::Xmax(answer)) => xmax::parts(experiment, answer, &book),
        Some(Answer::Slo(answer)) => slo::parts(experiment, answer, &book),
        Some(Answer::Ab(answer)) => ab::parts(experiment, answer, &book),
        Some(Answer::Suite(answer)) => suite::parts(experiment, answer, &book),
        Some(Answer::Tune(answer)) => tune::parts(experiment, answer, &book),
        Some(Answer::TuneAcross(answer)) => tune_across::parts(experiment, answer, &book),
        None => Parts::default(),
    };
    let mut sections = parts.sections;
    sections.extend(storage::section(experiment));
    sections.push(runs::section(experiment));
    let (title, question) = (title(experiment), experiment.question.clone());
    Page {
        status: Status::of_run(
            experiment.status,
            experiment.status_reason.as_deref(),
            book.marks(Topic::Status, None),
        ),
        started_at: experiment.started_at.clone(),
        dashboard: facts::dashboard_between(
            facts::DASHBOARD,
            &experiment.recorded_plan(),
            (&experiment.started_at, experiment.ended_at.as_deref()),
        ),
        dyno_version: experiment.dyno_version.clone(),
        no_answer: if experiment.answer.is_some() { "" } else { NO_ANSWER },
        headline: parts.headline,
        findings: experiment.findings.iter().map(Into::into).collect(),
        sections,
        method: how(experiment, parts.facts, &book),
        plan: suite::plans(experiment).unwrap_or_else(|| facts::plan_text(&experiment.plan)),
        definitions: parts.definitions,
        caveats: book.into_entries(),
        ..Page::new("experiment", title, question, "complete")
    }
}

fn title(experiment: &Experiment) -> String {
    let what = match experiment.verb {
        Verb::Sweep => "Sweep",
        Verb::Xmax => "Highest rate",
        Verb::Slo => "Objective",
        Verb::Ab => "Comparison",
        Verb::Tune => "Settings",
        Verb::Suite => return format!("Suite {}", experiment.name),
    };
    match suite::workload_names(experiment).as_slice() {
        [] => format!("{what} of workload {}", experiment.name),
        names => format!("{what} of workloads {}", list(names)),
    }
}

/// Length of the phases of each run.
fn length(plan: &RecordedPlan) -> String {
    let Some(phases) = &plan.phases else {
        return String::new();
    };
    let measured = phases.duration.map(|duration| format!(", {duration} measured"));
    format!("{} warm-up{}", phases.warmup, measured.unwrap_or_default())
}

fn seed(plan: &RecordedPlan) -> String {
    let seed = plan.seed().map(|seed| seed.to_string());
    seed.unwrap_or_default()
}

/// The machines of the client, of remote servers, and of the hosts of a fleet.
fn machines(experiment: &Experiment, book: &CaveatBook) -> impl Iterator<Item = FactList> {
    let own = experiment.environment.as_ref();
    let own = match experiment.hosts.is_empty() {
        true => machine::list(own, book),
        false => machine::titled(machine::OF_CONTROLLER, own, book),
    };
    let hosts = experiment.hosts.iter();
    let hosts = hosts.map(|(host, environment)| (host.as_str(), environment));
    let servers = experiment.server_machines.iter();
    let servers = machine::of_servers(servers.map(|(address, one)| (address.as_str(), one)));
    own.into_iter().chain(servers).chain(machine::of_hosts(hosts))
}

/// Method: the runs, the parameters that they change, the workload, and the machine.
fn how(experiment: &Experiment, own: Vec<Fact>, book: &CaveatBook) -> Vec<FactList> {
    let plans = suite::recorded_plans(experiment);
    let plans = plans.unwrap_or_else(|| vec![experiment.recorded_plan()]);
    // Facts common to all workloads of a suite.
    let common = |text: fn(&RecordedPlan) -> String| {
        let mut texts = plans.iter().map(text);
        let first = texts.next().unwrap_or_default();
        if texts.all(|other| other == first) { first } else { String::new() }
    };
    // Shown per workload for a suite.
    let of_one = |text: fn(&RecordedPlan) -> String| match experiment.verb {
        Verb::Suite => String::new(),
        _ => common(text),
    };
    let measured = experiment.points.iter().filter(|point| point.figures.is_some());
    let order = if experiment.options.random_order {
        ", in random order, so that a drift of the machine does not look like an effect"
    } else {
        ""
    };
    let runs = format!("{} of {} measured{order}", measured.count(), experiment.points.len());
    let mut list = vec![Fact::new("Runs", runs)];
    list.extend(own);
    list.extend(
        experiment.axes.iter().map(|axis| Fact::new(axis.key.clone(), axis.values.join(", "))),
    );
    list.extend([
        Fact::new("Length of each run", common(length)),
        Fact::new("Mix", of_one(facts::mix)),
        Fact::new("Data", common(facts::documents)).marked(&book.marks(Topic::Data, None)),
        Fact::new("Key distribution", of_one(facts::keys)),
        Fact::new("Seed", common(seed)),
    ]);
    list.retain(|fact| !fact.value.is_empty());
    Page::method_of(list).into_iter().chain(machines(experiment, book)).collect()
}
