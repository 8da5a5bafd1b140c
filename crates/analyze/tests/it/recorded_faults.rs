//! Verdicts of recorded runs with known faults. `dyno-bench verdict "" FOLDER` records them; the ones in the
//! repository are unselected except for the machine.

use dyno_analyze::timeline::timeline;
use dyno_analyze::verdict::{Bench, Cause, judge};
use dyno_record::reader::Run;
use std::fs;
use std::path::{Path, PathBuf};

fn folders() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded-faults");
    let entries = fs::read_dir(all).expect("the recorded runs of the repository");
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

fn found(folder: &Path) -> Vec<Cause> {
    let run = Run::open(folder).expect("a readable run");
    let bench = Bench {
        document: &run.document,
        tables: &run.metrics,
        windows: &run.intervals,
        operations: &run.series,
    };
    let timeline = timeline(&bench, &run.sub_second, 42);
    let verdict = judge(&bench, &timeline.transitions());
    verdict.causes.iter().map(|cause| cause.cause).collect()
}

#[test]
fn fault_is_named_first_and_clean_run_has_none() {
    let mut wrong = Vec::new();
    let (mut faults, mut clean) = (0, 0);
    for folder in folders() {
        let text = fs::read_to_string(folder.join("truth.txt")).expect("the known fault");
        let truth: Vec<&str> = text.lines().collect();
        let causes = found(&folder);
        let names: Vec<String> = causes.iter().map(|cause| name(*cause)).collect();
        let is_right = match (truth.as_slice(), names.first()) {
            ([], first) => first.is_none(),
            (truth, first) => first.is_some_and(|first| truth.contains(&first.as_str())),
        };
        match truth.is_empty() {
            true => clean += 1,
            false => faults += 1,
        }
        if !is_right {
            wrong.push(format!("{}: {truth:?}, found {names:?}", folder.display()));
        }
    }
    assert!(faults >= 10 && clean >= 10, "{faults} faults, {clean} clean runs");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Its name in records.
fn name(cause: Cause) -> String {
    let value = serde_json::to_value(cause).expect("a name");
    value.as_str().expect("a string").to_owned()
}
