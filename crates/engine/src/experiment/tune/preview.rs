//! Dry run of a search.

use super::super::request::{ExperimentOptions, Tasks};
use super::super::suite::quoted;
use super::knobs::{self, Facts};
use super::past::{self, KnownNoise};
use super::{across, budget};
use crate::run::host_settings;
use dyno_analyze::experiment::tune::across::budget_across;
use dyno_analyze::experiment::tune::{BASELINE_RUNS, visible_ratio};
use dyno_plan::host_setting::HostSetting;
use dyno_plan::knobs::{Knob, Reach};
use dyno_plan::task::Task;
use dyno_record::experiment::Experiment;
use dyno_record::quantity::Quantity;
use std::path::{Path, PathBuf};

/// Assumed noise of runs: on a quiet machine, and usual.
const NOISE: [f64; 2] = [0.01, 0.03];

/// Describes a search before its first run: its knobs with their values, the knobs that are left
/// out, the comparisons, restarts, changes to the machine, and the detectable gains.
pub fn preview(
    document: &Experiment,
    tasks: &Tasks,
    given: &ExperimentOptions<'_>,
) -> Option<String> {
    let (_, task) = tasks.first()?;
    let options = document.options.tune.clone()?;
    let mut wanted = knobs::wanted(document).ok()?;
    let round_s: f64 = tasks.iter().map(|(_, task)| budget::planned_run_s(task)).sum();
    let (trials, pairs) = budget_across(options.budget_s, round_s, tasks.len())?;
    let of_pairs = budget::pairs_in_words(pairs);
    let (of_each, afterwards) = across::preview(tasks, pairs);
    let mut left_out = options.left_out;
    for (_, task) in tasks {
        let facts = Facts::planned(task, Some(&given.environment));
        left_out.extend(knobs::sift(&mut wanted, &facts));
    }
    let folders = host_settings::named_folders(&task.plan);
    wanted.retain_mut(|knob| {
        let setting = knob.host_setting();
        let known = setting.filter(|setting| is_known(*setting, &folders));
        let missing = known.and_then(|setting| knobs::resolve_host(knob, setting, &folders).err());
        left_out.extend(missing.map(|reason| knobs::left(knob, reason)));
        missing.is_none()
    });
    let mut text = String::from("knobs:\n");
    for knob in &wanted {
        let how = match knob.reach {
            Reach::RunTime => "while the server runs",
            Reach::Restart => "by a restart of the server",
            Reach::Host if knob.needs_start() => "of this machine, by a restart of the server",
            Reach::Host => "of this machine, while the server runs",
            Reach::Client => "by the clients",
        };
        let values = knob.values.join(", ");
        text.push_str(&format!("  {} ({how}): {values}\n", knob.name));
    }
    for knob in &left_out {
        text.push_str(&format!("  {}\n", knobs::in_words(knob)));
    }
    text.push_str(&format!(
        "within {}, with runs of {} each:\n{of_each}{BASELINE_RUNS} unchanged runs, up to {trials} comparisons of two pairs each, then confirmations of {of_pairs}\n{afterwards}",
        Quantity::seconds(options.budget_s),
        Quantity::seconds(round_s / tasks.len() as f64),
    ));
    text.push_str(&restarts(&wanted, task, trials * tasks.len() as u32));
    text.push_str(&of_machine(&wanted, task));
    let known = past::known(tasks, options.goal, given);
    text.push_str(&visible(tasks, &known, pairs, options.budget_s));
    Some(text)
}

/// Smallest detectable gains, from this bench's noise if an experiment measured it.
fn visible(tasks: &Tasks, known: &[Option<KnownNoise>], pairs: u32, budget_s: f64) -> String {
    let gain = |noise_ratio| Quantity::ratio(visible_ratio(noise_ratio, pairs));
    let (mut text, mut unknown) = (String::new(), Vec::new());
    for ((_, task), known) in tasks.iter().zip(known) {
        let name = &task.plan.name;
        let Some(known) = known else {
            unknown.push(name.clone());
            continue;
        };
        text.push_str(&format!(
            "runs of `{name}` varied by {} here on {} (`{}`): gains below {} cannot be detected in {}\n",
            Quantity::ratio(known.noise_ratio),
            known.date(),
            known.folder.display(),
            gain(known.noise_ratio),
            Quantity::seconds(budget_s)
        ));
    }
    if !unknown.is_empty() {
        let [quiet, usual] = NOISE.map(gain);
        text.push_str(&format!(
            "gains below {quiet} cannot be detected if runs vary by 1 %, and below {usual} if they vary by 3 %; the noise \
             of {} on this machine is shown after the first {} runs\n",
            quoted(&unknown),
            BASELINE_RUNS * tasks.len()
        ));
    }
    text
}

/// Whether the location of a setting is known: disk settings need the data folder.
fn is_known(setting: HostSetting, folders: &[PathBuf]) -> bool {
    !host_settings::is_of_disk(setting) || !folders.is_empty()
}

/// Which servers are restarted, how often, and which documents that loads.
fn restarts(knobs: &[Knob], task: &Task, trials: u32) -> String {
    if task.remote.is_some() {
        return "no server is restarted: it is already running\n".to_owned();
    }
    let server = &task.plan.server;
    let topology = server.topology().map(|topology| topology.to_string());
    let topology = topology.unwrap_or_else(|_| "the servers".to_owned());
    let what = format!(
        "`{}` ({topology}), which loads {} documents",
        server.kind.as_str(),
        task.plan.data.records
    );
    let mut text = format!("restarted: {what}: before each pair of a confirmation");
    let names: Vec<&str> =
        knobs.iter().filter(|knob| knob.needs_start()).map(|knob| knob.name.as_str()).collect();
    if names.is_empty() {
        text.push_str("; in the search no run needs a restart\n");
    } else {
        let need = match names.len() {
            1 => "1 knob needs".to_owned(),
            several => format!("{several} knobs need"),
        };
        // A comparison runs other, tried, tried, other, and the next one may start with a new best.
        text.push_str(&format!(
            ", and in the search before each run that changes {}, up to {} times; fewer \
             comparisons than stated above fit, because {need} a restart, and restarts and loads take time\n",
            names.join(" or "),
            3 * trials
        ));
    }
    text
}

/// Machine settings to change, with their current values.
fn of_machine(knobs: &[Knob], task: &Task) -> String {
    let folders = host_settings::named_folders(&task.plan);
    let settings = knobs.iter().filter_map(|knob| Some((knob, knob.host_setting()?)));
    let mut lines: Vec<String> = settings
        .filter_map(|(knob, setting)| {
            if !is_known(setting, &folders) {
                return Some(format!("  {}: of the disk with the data\n", knob.name));
            }
            let found = host_settings::find(setting, &folders, Path::new("/")).ok()?;
            let file = found.files.first()?.display();
            let now = setting.read(&found.value);
            Some(format!("  {}: {now} now, {file}\n", knob.name))
        })
        .collect();
    if !lines.is_empty() {
        let text =
            "settings of this machine that are changed for single runs, and restored after each:\n";
        lines.insert(0, text.to_owned());
    }
    lines.concat()
}
