//! The runs of an experiment, with links to their reports.

use super::figure::cell;
use crate::page::Section;
use crate::page::table::{Cell, Table, Tone};
use dyno_record::experiment::{Answer, Block, Experiment, Figures, Point, TuneAnswer};
use dyno_record::quantity::Quantity;

/// The report of a run, relative to its directory.
const PAGE: &str = "report.html";

/// The section with all runs in order of execution.
pub(super) fn section(experiment: &Experiment) -> Section {
    let is_repeated = experiment.points.iter().any(|point| point.repeat > 0);
    let rows: Vec<(usize, &Point)> = experiment.points.iter().enumerate().collect();
    let of_figures = |point: &Point, cell: fn(&Figures) -> Cell| {
        point.figures.as_ref().map_or_else(Cell::default, cell)
    };
    let table = Table::of(&rows)
        .text("run", |(_, point)| link(point))
        .text("settings", |(place, point)| settings(experiment, *place, point))
        .number("repetition", 40, |(_, point)| Cell::known(is_repeated.then_some(point.repeat + 1)))
        .number("rate", 90, |(_, point)| rate(point))
        .number("mean", 60, |(_, point)| {
            of_figures(point, |one| cell(Some(&one.response_mean_us), Quantity::microseconds))
        })
        .number("p99", 70, |(_, point)| {
            of_figures(point, |one| cell(one.percentile("p99").as_ref(), Quantity::microseconds))
        })
        .number("caveats", 30, |(_, point)| {
            of_figures(point, |one| Quantity::count(one.caveats.len() as u64).into())
        })
        .table("Runs");
    Section {
        title: "Runs".into(),
        lead: "Every run has a run directory with its own report.".into(),
        tables: vec![table],
        ..Section::default()
    }
}

/// Whether the run, or the pair that it belongs to, does not count.
pub(super) fn is_set_aside(experiment: &Experiment, place: usize) -> bool {
    let of_search = |answer: &TuneAnswer| answer.set_aside().any(|one| one.runs.contains(&place));
    match &experiment.answer {
        Some(Answer::Ab(answer)) => {
            answer.set_aside.iter().any(|one| one.pair as usize == place / 2)
        }
        Some(Answer::Tune(answer)) => of_search(answer),
        Some(Answer::TuneAcross(answer)) => {
            answer.searches.iter().any(|search| of_search(&search.answer))
        }
        _ => false,
    }
}

fn is_throttled(point: &Point) -> bool {
    let kind = point.settings.get("schedule.kind");
    kind.is_some_and(|kind| kind == "throttled")
}

/// The parameters that a run changes, and whether it was set aside. Parameters common to all runs of a block are omitted.
fn settings(experiment: &Experiment, place: usize, point: &Point) -> String {
    let is_varied = |key: &str| {
        let mut axes = experiment.axes_of(point.block);
        point.block.is_none() || axes.any(|axis| axis.key == key)
    };
    let settings = point.settings.iter().filter(|(key, _)| is_varied(key));
    let settings = settings.map(|(key, value)| format!("{key}={value}"));
    let side = point.side.map(|side| side.label().to_owned());
    let block = point.block.map(|block| match block {
        Block::Closed => "closed loop".to_owned(),
        Block::Open if is_throttled(point) => "throttled loop".to_owned(),
        Block::Open => "open loop".to_owned(),
    });
    let set_aside = is_set_aside(experiment, place).then(|| "set aside".to_owned());
    let before = [side, point.workload.clone(), block].into_iter().flatten();
    before.chain(settings).chain(set_aside).collect::<Vec<_>>().join(", ")
}

fn link(point: &Point) -> Cell {
    let name = point.directory.rsplit('/').next().unwrap_or_default();
    let is_linked = point.figures.is_some() && is_plain(&point.directory);
    let link = is_linked.then(|| format!("{}/{PAGE}", point.directory));
    Cell { link, ..Cell::new(name, Tone::Strong) }
}

fn rate(point: &Point) -> Cell {
    match (&point.figures, &point.problem) {
        (Some(figures), _) => cell(Some(&figures.rate_per_s), Quantity::per_second),
        (None, None) => Cell::new("not run", Tone::Soft),
        (None, problem) => Cell::new("failed", Tone::Alarm).with_detail(problem.clone()),
    }
}

/// Whether a path is safe as a link, like the names that experiments choose. A document from elsewhere may contain an
/// address that does more than open a file.
fn is_plain(path: &str) -> bool {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
    path.starts_with("runs/") && !path.contains("..") && path.chars().all(is_usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_without_measurements_is_shown_as_failed() {
        let point = Point {
            settings: Default::default(),
            side: None,
            workload: None,
            block: None,
            repeat: 0,
            directory: "runs/001".into(),
            figures: None,
            problem: None,
            refused: None,
            stolen_ratio: None,
            ended_after_s: None,
            server_ended: false,
            storage: None,
        };
        assert_eq!(rate(&point).text, "not run");
        let failed =
            Point { problem: Some("the run has measured nothing".into()), storage: None, ..point };
        let cell = rate(&failed);
        assert_eq!(cell.text, "failed");
        assert_eq!(cell.detail.as_deref(), Some("the run has measured nothing"));
    }

    #[test]
    fn only_paths_of_runs_become_links() {
        assert!(is_plain("runs/001-clients-4"));
        for path in ["javascript:alert(1)", "runs/../../x", "runs/a)b", "/runs/1"] {
            assert!(!is_plain(path), "{path}");
        }
    }
}
