//! Estimates the time of a search from its plans, and checks it against the budget.

use crate::error::{Error, refuse};
use dyno_analyze::experiment::tune::LEAST_PAIRS;
use dyno_analyze::experiment::tune::across::budget_across;
use dyno_plan::task::Task;
use dyno_record::quantity::Quantity;

/// Fewest runs of each workload in a recommended budget.
const LEAST_RUNS: u32 = 30;

/// Time of a run outside its phases, before a run was made.
pub(super) const OVERHEAD_S: f64 = 0.5;

/// Planned time of a run.
pub(in crate::experiment) fn planned_run_s(task: &Task) -> f64 {
    let phases = &task.plan.phases;
    let duration = phases.duration.map_or(0.0, |length| length.0.as_secs_f64());
    phases.warmup.0.as_secs_f64() + duration + OVERHEAD_S
}

/// Refuses a budget that is too short for a search of each workload.
pub(super) fn check(budget_s: f64, tasks: &[Task]) -> Result<(), Error> {
    let round_s: f64 = tasks.iter().map(planned_run_s).sum();
    let fits = |budget_s: f64| budget_across(budget_s, round_s, tasks.len()).is_some();
    if fits(budget_s) {
        return Ok(());
    }
    let run_s = round_s / tasks.len() as f64;
    let of_each = match tasks.len() {
        1 => "runs".to_owned(),
        several => format!("a search for each of {several} workloads with runs"),
    };
    let text = format!(
        "`--budget` is {}, too short for {of_each} of {} each",
        Quantity::seconds(budget_s),
        Quantity::seconds(run_s)
    );
    let least = (LEAST_RUNS..).find(|runs| fits(f64::from(*runs) * round_s));
    let hint = format!(
        "give at least {}, or make the runs shorter with `--duration` and `--warmup`",
        Quantity::seconds((round_s * f64::from(least.unwrap_or(LEAST_RUNS))).ceil())
    );
    refuse(text, hint)
}

/// Number of pairs of a confirmation, given the most.
pub(super) fn pairs_in_words(most: u32) -> String {
    if most as usize > LEAST_PAIRS {
        format!("{LEAST_PAIRS} to {most} pairs")
    } else {
        format!("{LEAST_PAIRS} pairs")
    }
}
