//! Runs the corpus, and mutations of it.

use dyno_fuzz::TARGETS;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;
use std::fs;
use std::path::Path;

/// The inputs of a target.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![own.join("corpus").join(target)];
    if target == "plan-file" {
        folders.push(own.join("../../workloads"));
    }
    let mut found = Vec::new();
    for folder in folders {
        for entry in fs::read_dir(&folder).expect("can list") {
            let path = entry.expect("can list").path();
            if path.is_file() {
                found.push(fs::read(path).expect("can read"));
            }
        }
    }
    assert!(found.len() > 1, "{target}");
    found
}

#[test]
fn every_target_accepts_its_corpus() {
    for (name, target) in TARGETS {
        corpus(name).iter().for_each(|input| target(input));
    }
}

#[test]
fn every_target_accepts_mutations_of_its_corpus() {
    for (name, target) in TARGETS {
        let inputs = corpus(name);
        let mut runner = TestRunner::new(ProptestConfig {
            cases: 200,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        let change = (any::<Index>(), any::<u8>(), 0_usize..4);
        let changes = (any::<Index>(), prop::collection::vec(change, 1..6));
        let tried = runner.run(&changes, |(which, changes)| {
            let mut input = inputs[which.index(inputs.len())].clone();
            for (place, value, how) in changes {
                mutate(&mut input, place, value, how);
            }
            target(&input);
            Ok(())
        });
        tried.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// Changes a byte, truncates, inserts a byte, or duplicates the rest.
fn mutate(input: &mut Vec<u8>, place: Index, value: u8, how: usize) {
    let at = place.index(input.len() + 1);
    match how {
        0 if at < input.len() => input[at] = value,
        1 => input.truncate(at),
        2 => input.insert(at, value),
        _ => input.extend_from_within(at..),
    }
    input.truncate(1 << 16);
}
