//! `dyno xmax`: closed-loop runs with more and more clients, then open-loop runs just below the
//! best rate.

use super::points::WhichPlan;
use super::request::{Resolve, document, refuse_think_time};
use super::runner::ExperimentRunner;
use crate::error::{Error, refuse};
use dyno_analyze::experiment::xmax::{CONFIRMATION_RATIOS, answer, confirmation, without_success};
use dyno_analyze::search::clients::{ClientsSearch, ClientsSettings, ClientsStep};
use dyno_plan::model::Schedule;
use dyno_plan::task::Task;
use dyno_record::experiment::{
    Answer, CLIENTS, ClientsResult, Confirmation, Experiment, Figures, Keys, RATE, Verb,
};
use dyno_record::model::CaveatKind;
use dyno_record::statement;
use dyno_record::statement::Statement;

/// Options of the search for the highest rate.
#[derive(Clone, Debug, Default)]
pub struct XmaxRequest {
    /// Plan keys and their values.
    pub settings: Vec<(String, String)>,
    /// Largest number of clients to try.
    pub max_clients: u32,
    /// Runs with the best number of clients, after it was found.
    pub repeat: u32,
}

/// Plans the experiment.
///
/// # Errors
/// The plan is invalid, or offers a rate.
pub fn plan(request: &XmaxRequest, resolve: Resolve<'_>) -> Result<(Experiment, Task), Error> {
    let settings = &request.settings;
    let task = resolve(None, settings, (None, None))?;
    if task.plan.schedule != (Schedule::Closed {}) {
        let text = "the plan offers a rate, but the search for the highest one needs a closed loop";
        return refuse(
            text,
            "use a plan without `[schedule]`, or `dyno slo` or `dyno sweep --rates`",
        );
    }
    refuse_think_time(&task.plan)?;
    if settings.iter().any(|(key, _)| key == CLIENTS) {
        let text = format!(
            "`--set {CLIENTS}` cannot be given here: the search varies the number of clients"
        );
        return refuse(text, "limit it with `--max-clients`, or give numbers to `dyno sweep`");
    }
    let question =
        format!("How many operations of `{}` per second can the server sustain?", task.plan.name);
    let mut experiment = document(Verb::Xmax, question, &task);
    experiment.options.max_clients = Some(request.max_clients);
    experiment.options.repeat = Some(request.repeat);
    Ok((experiment, task))
}

/// Searches, confirms, and computes the answer.
pub(crate) fn run(runner: &mut ExperimentRunner<'_>) -> Result<(), Error> {
    let repeats = runner.own(|options| &options.repeat)?;
    let max_clients = runner.own(|options| &options.max_clients)?;
    let settings = ClientsSettings::for_search(runner.least_clients()?, max_clients, repeats);
    let mut search = ClientsSearch::new(settings);
    let mut number = 0;
    let result = loop {
        match search.step() {
            ClientsStep::Done(result) => break result,
            ClientsStep::Measure { clients } => {
                let settings = with_clients(clients);
                // Too many clients end the search, but a first run without successes is an error.
                let figures = match number {
                    0 => Some(runner.measure(settings, &WhichPlan::Only, number)?),
                    _ => runner.probe(settings, number)?,
                };
                search.record(figures.map_or(0.0, |figures| figures.rate_per_s.value));
                number += 1;
            }
        }
    };
    let best = best_runs(runner, result.clients);
    let reasons = generator_bound(runner, &result, &best)?;
    let figures: Vec<&Figures> = best.iter().map(|(_, figures)| figures).collect();
    let all: Vec<Figures> =
        runner.document.points.iter().filter_map(|point| point.figures.clone()).collect();
    let all: Vec<&Figures> = all.iter().collect();
    let answer_with = |confirmations: &[Confirmation]| {
        let (result, reasons) = (result.clone(), reasons.clone());
        let found = answer(result, &figures, &all, reasons, confirmations.to_vec());
        Answer::Xmax(Box::new(found))
    };
    // A failed confirmation must not lose the result of the search.
    runner.document.answer = Some(answer_with(&[]));
    runner.save()?;
    if reasons.is_empty() {
        confirm(runner, &result, number, answer_with)?;
    }
    Ok(())
}

fn with_clients(clients: u32) -> Keys {
    Keys::from([(CLIENTS.to_owned(), clients.to_string())])
}

/// The closed-loop runs with this many clients: directory and figures.
fn best_runs(runner: &ExperimentRunner<'_>, clients: u32) -> Vec<(String, Figures)> {
    let settings = with_clients(clients);
    runner
        .document
        .points
        .iter()
        .filter(|point| point.settings == settings)
        .filter_map(|point| Some((point.directory.clone(), point.figures.clone()?)))
        .collect()
}

/// Reasons why the maximum may be the load generator's limit.
fn generator_bound(
    runner: &ExperimentRunner<'_>,
    result: &ClientsResult,
    best: &[(String, Figures)],
) -> Result<Vec<Statement>, Error> {
    let bound: Vec<&str> = best
        .iter()
        .filter(|(_, figures)| figures.is_generator_bound())
        .map(|(directory, _)| directory.as_str())
        .collect();
    // A single run may have been unlucky.
    if bound.len() * 2 <= best.len() {
        return Ok(Vec::new());
    }
    let mut reasons = vec![statement!(
        "client-limit-in-runs",
        runs = bound.len(),
        all = best.len(),
        clients = result.clients
    )];
    for directory in bound {
        let run = dyno_results::run::open(&runner.folder.path().join(directory))?;
        reasons.extend(
            run.document
                .caveats
                .into_iter()
                .filter(|caveat| caveat.kind == CaveatKind::GeneratorBottleneck)
                .map(|caveat| {
                    statement!("caveat-of-run", run = directory, caveat = caveat.statement)
                }),
        );
    }
    Ok(reasons)
}

/// Offers lower and lower rates until the server keeps up, and updates the answer.
fn confirm(
    runner: &mut ExperimentRunner<'_>,
    result: &ClientsResult,
    first: usize,
    answer_with: impl Fn(&[Confirmation]) -> Answer,
) -> Result<(), Error> {
    let mut confirmations = Vec::new();
    for (step, ratio) in CONFIRMATION_RATIOS.into_iter().enumerate() {
        let offered = (result.rate_per_s * ratio).max(1.0).floor();
        // Twice the clients, so that the number of connections does not hold back a server that
        // keeps up.
        let mut settings = with_clients(result.clients.saturating_mul(2).max(2));
        settings.insert("schedule.kind".to_owned(), "constant".to_owned());
        settings.insert(RATE.to_owned(), offered.to_string());
        confirmations.push(match runner.probe(settings, first + step)? {
            Some(figures) => confirmation(ratio, offered, &figures),
            None => without_success(ratio, offered),
        });
        runner.document.answer = Some(answer_with(&confirmations));
        runner.save()?;
        if confirmations.last().is_some_and(|last: &Confirmation| last.kept) {
            break;
        }
    }
    Ok(())
}
