//! `dyno status`: shows the live state files of the runs in progress.

use crate::args::standing::StatusArguments;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::messages::{pretty_json, print_data};
use crate::records;
use dyno_engine::Error;
use dyno_engine::run::live::{self, LiveState, sparkline};
use dyno_record::quantity::Quantity;
use jiff::Timestamp;
use std::path::Path;
use std::time::Duration;

/// Refresh interval with `--follow`.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);

/// Bars of the sparkline of the rate.
const BARS: usize = 60;

/// Executes `dyno status`.
pub(crate) fn status(
    arguments: &StatusArguments,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let state_dir = invocation.environment().state_dir.as_deref();
    let mut exit = look(arguments, state_dir)?;
    while arguments.follow && exit == Exit::Done {
        std::thread::sleep(FOLLOW_EVERY);
        exit = look(arguments, state_dir)?;
    }
    // Following a run to its end is a success.
    Ok(if arguments.follow { Exit::Done } else { exit })
}

fn look(arguments: &StatusArguments, state_dir: Option<&Path>) -> Result<Exit, Error> {
    let states = find(arguments.run.as_deref(), state_dir)?;
    if arguments.json {
        print_data(&pretty_json(&states))?;
    } else if states.is_empty() {
        print_data("No run in progress\n")?;
    } else {
        let texts: Vec<String> = states.iter().map(text).collect();
        print_data(&texts.join("\n"))?;
    }
    Ok(Exit::of_check(!states.is_empty()))
}

/// Finds the run in progress in a directory, or all runs in progress.
///
/// # Errors
/// The directory does not exist.
pub(crate) fn find(run: Option<&Path>, state_dir: Option<&Path>) -> Result<Vec<LiveState>, Error> {
    Ok(match run {
        Some(given) => live::read(&records::folder(given)?).into_iter().collect(),
        None => state_dir.map(live::running).unwrap_or_default(),
    })
}

/// A time without its fraction of a second.
fn in_seconds(time: &str) -> String {
    match time.parse::<Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => time.to_owned(),
    }
}

fn text(state: &LiveState) -> String {
    let mut lines = vec![format!(
        "{} in {} (process {}, since {})",
        state.name,
        state.directory.display(),
        state.process,
        in_seconds(&state.started_at)
    )];
    let Some(phase) = state.phase else {
        lines.push("  preparing".to_owned());
        return lines.join("\n") + "\n";
    };
    let elapsed = Quantity::seconds(state.elapsed_s);
    let planned = match (state.planned_s, state.planned_operations) {
        (Some(planned_s), _) => format!(" of {}", Quantity::seconds(planned_s)),
        (None, Some(count)) => {
            format!(", {} of {}", Quantity::count(state.done), Quantity::count(count))
        }
        (None, None) => String::new(),
    };
    let mut figures = vec![format!("{}: {elapsed}{planned}", phase.as_str())];
    figures.extend(state.rate_per_s.map(|rate| Quantity::per_second(rate).to_string()));
    for (name, value_us) in [("p50", state.response_p50_us), ("p99", state.response_p99_us)] {
        figures.extend(value_us.map(|us| format!("{name} {}", Quantity::microseconds(us))));
    }
    figures.push(format!("{} failed", Quantity::count(state.failed)));
    lines.push(format!("  {}", figures.join(", ")));
    if state.timeline_per_s.len() > 1 {
        let largest = state.timeline_per_s.iter().copied().fold(0.0, f64::max);
        let bars = sparkline(&state.timeline_per_s, BARS);
        lines.push(format!("  {bars} up to {}", Quantity::per_second(largest)));
    }
    lines.extend(state.notices.iter().map(|notice| format!("  {notice}")));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::model::PhaseKind;

    #[test]
    fn status_shows_a_run_in_a_few_lines() {
        let state = LiveState {
            name: "a".into(),
            directory: "/runs/x".into(),
            process: 7,
            started_at: "2026-01-01T00:00:00.123456789Z".into(),
            phase: Some(PhaseKind::Measure),
            elapsed_s: 120.0,
            planned_s: Some(3_600.0),
            rate_per_s: Some(5_000.0),
            response_p50_us: Some(200.0),
            timeline_per_s: vec![5_000.0, 2_500.0, 5_000.0],
            notices: vec!["the rate fell".into()],
            ..LiveState::default()
        };
        let text = text(&state);
        let lines: Vec<&str> = text.lines().collect();
        for shown in ["a ", "/runs/x", "process 7", "since 2026-01-01 00:00:00 UTC)"] {
            assert!(lines[0].contains(shown), "{text}");
        }
        assert!(lines[1].contains("5,000/s, p50 200"), "{text}");
        assert!(lines[2].starts_with("  █▅█ up to 5,000/s"), "{text}");
        assert_eq!(lines[3], "  the rate fell");
    }
}
