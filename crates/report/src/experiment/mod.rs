//! Reports of an experiment: question, findings, tables and charts. Each kind of answer has its own file.

pub mod ab;
mod blocks;
pub mod comparison;
pub(crate) mod demands;
pub mod difference;
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
pub(crate) mod sweep_charts;
mod tune;
mod tune_across;
mod tune_commands;
mod tune_trials;
mod xmax;

use crate::caveat::{CaveatBook, SINGLE_RUNS, Topic, Trust, TrustJson};
use crate::error::ReportError;
use crate::facts;
use crate::machine;
use crate::options::{PageFormat, RenderOptions};
use crate::page::{Fact, FactList, NO_ANSWER, Page, Status, sentence};
use crate::render::show;
use crate::terms::{added, terms};
use crate::texts::{list, text};
use dyno_analyze::experiment::findings;
use dyno_analyze::grouping::distinct;
use dyno_record::experiment::{Answer, Experiment, Finding, Level, Verb};
use dyno_record::model::RunStatus;
use dyno_record::plan::RecordedPlan;
use parts::Parts;
use serde::Serialize;

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
    show(
        format,
        options,
        || page(experiment),
        || {
            let (_, trust) = answered(experiment, &CaveatBook::new(&experiment.caveats));
            ExperimentJson { experiment, trust: trust.map(TrustJson::from) }
        },
    )
}

/// The JSON document of an experiment.
#[derive(Serialize)]
struct ExperimentJson<'a> {
    #[serde(flatten)]
    experiment: &'a Experiment,
    /// How far the answer can be trusted; absent without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    trust: Option<TrustJson>,
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
    let book = match experiment.verb {
        Verb::Ab => CaveatBook::new(&ab::relevant_caveats(experiment)),
        _ => CaveatBook::new(&experiment.caveats),
    };
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
    let (answer, trust) = answered(experiment, &book);
    // The answer says the same.
    let is_said = |finding: &&Finding| {
        experiment.verb == Verb::Ab && IN_ANSWER.contains(&finding.statement.code.as_str())
    };
    let shown = experiment.findings.iter().filter(|finding| !is_said(finding));
    let mut sections = parts.sections;
    sections.extend(storage::section(experiment));
    sections.push(runs::section(experiment));
    let (title, question) = (title(experiment), experiment.question.clone());
    let plans = Plans::of(experiment);
    Page {
        setup: setup(experiment, &plans),
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
        headline_is_in_table: matches!(experiment.answer, Some(Answer::Ab(_))),
        trust,
        answer,
        findings: shown.map(Into::into).collect(),
        sections,
        method: how(experiment, &plans, parts.facts, &book),
        plan: suite::plans(experiment).unwrap_or_else(|| facts::plan_text(&experiment.plan)),
        definitions: added(parts.definitions, terms(&["load"])),
        caveats: book.into_entries(),
        ..Page::new("experiment", title, question, "complete")
    }
}

/// The sentence that answers the question, empty without an answer, and how far it can be trusted.
fn answered(experiment: &Experiment, book: &CaveatBook) -> (String, Option<Trust>) {
    let answer = match &experiment.answer {
        Some(Answer::Suite(answer)) => suite::sentence(experiment, answer, book),
        Some(Answer::Ab(answer)) => ab::sentence(experiment, answer),
        None if experiment.verb == Verb::Ab => comparison::TOO_SHORT.to_owned(),
        _ => findings::answer(&experiment.findings)
            .map_or(String::new(), |one| sentence(&text(&one.statement))),
    };
    let has_ended_early = matches!(experiment.status, RunStatus::Partial | RunStatus::Failed);
    let answer = if experiment.answer.is_some() && has_ended_early && !answer.is_empty() {
        format!("Incomplete: {answer}")
    } else {
        answer
    };
    let runs = experiment.points.iter().filter(|point| point.figures.is_some()).count();
    let lack = experiment.answer.as_ref().and_then(lack);
    let trust = (!answer.is_empty()).then(|| book.trust(runs, lack));
    (answer, trust)
}

/// Reason to doubt an answer even without any caveat, such as settings that are compared by one run of each.
fn lack(answer: &Answer) -> Option<&'static str> {
    let is_of_one_run = |level: &Level| level.runs.len() <= 1;
    let compares_single_runs = match answer {
        Answer::Ab(answer) => return difference::lack(answer),
        Answer::Sweep(answer) => answer.levels.iter().all(is_of_one_run),
        Answer::Suite(answer) => {
            answer.relative.is_some() && answer.rows.iter().all(|row| is_of_one_run(&row.level))
        }
        _ => false,
    };
    compares_single_runs.then_some(SINGLE_RUNS)
}

/// Findings of a comparison that its answer states.
const IN_ANSWER: [&str; 6] = [
    "faster",
    "slower",
    "no-difference-larger-than",
    "not-enough-data",
    "not-enough-data-for-difference",
    "others-with-b",
];

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

/// The plans of an experiment.
struct Plans {
    plans: Vec<RecordedPlan>,
    /// A suite shows what differs per workload.
    is_suite: bool,
}

impl Plans {
    fn of(experiment: &Experiment) -> Plans {
        let plans = suite::recorded_plans(experiment);
        Plans {
            plans: plans.unwrap_or_else(|| vec![experiment.recorded_plan()]),
            is_suite: experiment.verb == Verb::Suite,
        }
    }

    /// A fact that all plans share; otherwise empty.
    fn common(&self, text: fn(&RecordedPlan) -> String) -> String {
        let mut texts = self.plans.iter().map(text);
        let first = texts.next().unwrap_or_default();
        if texts.all(|other| other == first) { first } else { String::new() }
    }

    /// A fact that a suite shows per workload.
    fn of_one(&self, text: fn(&RecordedPlan) -> String) -> String {
        if self.is_suite { String::new() } else { self.common(text) }
    }
}

/// Mix, data, server and machine; settings that the experiment varies are in its question.
fn setup(experiment: &Experiment, plans: &Plans) -> String {
    let runs = experiment.points.iter().filter_map(|point| point.figures.as_ref());
    let servers = distinct(runs.clone().filter_map(|run| run.server.as_deref()));
    let addresses = distinct(runs.filter_map(|run| run.server_address.as_deref()));
    // Servers that are started for each run have other ports each time.
    let are_few = (1..=2).contains(&addresses.len()) && !servers.is_empty();
    let at = if are_few { format!(" at {}", list(&addresses)) } else { String::new() };
    let machine = experiment.environment.as_ref().map(machine::in_short);
    facts::setup([
        plans.of_one(facts::mix),
        plans.common(facts::documents),
        list(&servers) + &at,
        machine.unwrap_or_default(),
    ])
}

/// Method: the runs, the parameters that they change, the workload, and the machine.
fn how(experiment: &Experiment, plans: &Plans, own: Vec<Fact>, book: &CaveatBook) -> Vec<FactList> {
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
        Fact::new("Length of each run", plans.common(length)),
        Fact::new("Mix", plans.of_one(facts::mix)),
        Fact::new("Data", plans.common(facts::documents)).marked(&book.marks(Topic::Data, None)),
        Fact::new("Key distribution", plans.of_one(facts::keys)),
        Fact::new("Seed", plans.common(seed)),
    ]);
    list.retain(|fact| !fact.value.is_empty());
    Page::method_of(list).into_iter().chain(machines(experiment, book)).collect()
}
