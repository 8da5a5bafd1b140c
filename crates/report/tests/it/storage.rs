//! The table of prepared storage on the pages of experiments.

use crate::samples::experiment as support;
use dyno_record::experiment::{Answer, DisturbedPair, Experiment};
use dyno_record::storage::{PreparedStorageRecord, StorageLimitsRecord};
use dyno_report::experiment::render;
use dyno_report::{PageFormat, RenderOptions};

fn storage(setting: &str, no_capacity: Option<&str>) -> PreparedStorageRecord {
    PreparedStorageRecord {
        setting: setting.to_owned(),
        devices: vec!["/dev/loop0".to_owned()],
        size_bytes: 4 << 30,
        limits: Some(StorageLimitsRecord {
            random_reads_per_s: 58_563.0,
            synced_writes_per_s: 6_021.0,
            measured_by: "fio-3.33".to_owned(),
        }),
        not_measured: None,
        no_capacity: no_capacity.map(str::to_owned),
    }
}

/// The lines of the section on a terminal with 120 columns.
fn section(experiment: &Experiment) -> String {
    let options = RenderOptions { width: 120, ..RenderOptions::default() };
    let text = render(experiment, PageFormat::Human, &options).unwrap();
    let lines = text.lines().skip_while(|line| *line != "Storage");
    let lines = lines.take_while(|line| *line != "Runs");
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn storage_rates_omit_set_aside_runs_and_list_reasons_once() {
    let mut experiment = support::ab();
    let busy = "the machine's CPUs were busy; the devices may be faster";
    for point in &mut experiment.points {
        let setting = match point.side {
            Some(dyno_record::experiment::Side::A) => "ext4 on loop:4GiB",
            _ => "xfs on loop:4GiB",
        };
        point.storage = Some(storage(setting, Some(busy)));
    }
    // The first pair is set aside.
    for point in &mut experiment.points[..2] {
        point.figures.as_mut().unwrap().rate_per_s.value = 1e6;
    }
    let all = section(&experiment);
    assert!(all.contains("random reads") && all.contains("58,563/s"), "{all}");
    assert!(all.contains("A: ext4 on loop:4GiB"), "{all}");
    let words: Vec<&str> = all.split_whitespace().collect();
    assert_eq!(words.join(" ").matches(busy).count(), 1, "{all}");
    let Some(Answer::Ab(answer)) = &mut experiment.answer else {
        panic!("it compares two");
    };
    answer.set_aside.push(DisturbedPair { pair: 0, stolen_ratio: 0.5 });
    let rest = section(&experiment);
    assert_ne!(all, rest);
    assert!(rest.contains("Without 2 runs"), "{rest}");
    let runs = experiment.points.iter().filter(|point| point.figures.is_some());
    let count = format!("{}", runs.count() / 2 - 1);
    let row = rest.lines().find(|line| line.contains("A: ext4")).unwrap();
    assert!(row.trim_end().ends_with(&count), "{rest}");
}
