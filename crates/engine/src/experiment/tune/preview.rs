//! Dry run of a search.

use super::super::request::Tasks;
use super::knobs::{Selection, resolve_host};
use super::{across, budget};
use crate::run::host_settings::{is_of_disk, named_folders};
use dyno_analyze::experiment::tune::across::budget_across;
use dyno_analyze::experiment::tune::{BASELINE_RUNS, visible_ratio};
use dyno_plan::knobs::{Knob, Reach};
use dyno_plan::task::Task;
use dyno_record::experiment::Experiment;
use dyno_record::quantity::Quantity;

/// Describes a search before its first run: its knobs with their values, the knobs that are left
/// out, the comparisons, restarts, and the detectable gains.
pub fn preview(document: &Experiment, tasks: &Tasks) -> Option<String> {
    let (_, task) = tasks.first()?;
    let options = document.options.tune.clone()?;
    let round_s: f64 = tasks.iter().map(|(_, task)| budget::planned_run_s(task)).sum();
    let (trials, pairs) = budget_across(options.budget_s, round_s, tasks.len())?;
    let mut selection = Selection { knobs: options.knobs, left_out: options.left_out };
    let folders = named_folders(&task.plan);
    selection.sift(|knob| match knob.host_setting() {
        // The disk with the data is not known yet.
        Some(setting) if is_of_disk(setting) && folders.is_empty() => Ok(()),
        _ => resolve_host(knob, &folders),
    });
    let mut text = String::from("knobs:\n");
    for knob in &selection.knobs {
        let values = knob.values.join(", ");
        let now = knob.files.first().map_or_else(String::new, |file| {
            format!("; {} now, {file}, restored after each run", knob.default_value())
        });
        text.push_str(&format!("  {} ({}): {values}{now}\n", knob.name, how(knob)));
    }
    selection.in_words().for_each(|left_out| text.push_str(&format!("  {left_out}\n")));
    let (of_each, afterwards) = across::preview(tasks, pairs);
    let [quiet, usual] = [0.01, 0.03].map(|noise| Quantity::ratio(visible_ratio(noise, pairs)));
    text.push_str(&format!(
        "within {}, with runs of {} each:\n{of_each}{BASELINE_RUNS} unchanged runs, up to {trials} comparisons of two pairs each, then confirmations of {}\n{afterwards}{}\
         gains below {quiet} cannot be detected if runs vary by 1 %, and below {usual} if they vary by 3 %; the noise here is shown after the first {} runs\n",
        Quantity::seconds(options.budget_s),
        Quantity::seconds(round_s / tasks.len() as f64),
        budget::pairs_in_words(pairs),
        restarts(&selection.knobs, task),
        BASELINE_RUNS * tasks.len()
    ));
    Some(text)
}

/// How a knob is set.
fn how(knob: &Knob) -> &'static str {
    match knob.reach {
        Reach::RunTime => "while the server runs",
        Reach::Restart => "by a restart of the server",
        Reach::Host if knob.needs_start() => "of this machine, by a restart of the server",
        Reach::Host => "of this machine, while the server runs",
        Reach::Client => "by the clients",
    }
}

/// Which servers are restarted, when, and which documents that loads.
fn restarts(knobs: &[Knob], task: &Task) -> String {
    if task.remote.is_some() {
        return "no server is restarted: it is already running\n".to_owned();
    }
    let server = &task.plan.server;
    let topology = server.topology().map(|topology| topology.to_string());
    let names: Vec<&str> =
        knobs.iter().filter(|knob| knob.needs_start()).map(|knob| knob.name.as_str()).collect();
    let in_search = match names.is_empty() {
        true => String::new(),
        false => format!(
            ", and before each run of the search that changes {}: then fewer comparisons fit",
            names.join(" or ")
        ),
    };
    format!(
        "restarted: `{}` ({}), which loads {} documents: before each pair of a confirmation{in_search}\n",
        server.kind.as_str(),
        topology.unwrap_or_else(|_| "the servers".to_owned()),
        task.plan.data.planned_documents()
    )
}
