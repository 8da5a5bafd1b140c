//! Folders of finished experiments, made from the golden record documents.

use crate::common::{Bench, names};
use dyno_record::messages::{self, MESSAGE_COLUMNS, RECEIPT_COLUMNS};
use dyno_record::sums;
use dyno_testkit::project_dir;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The first cell of [`messages`].
pub(crate) const CELL: &str = "01-wire-to-wire-in-flight-1-pool-4";

fn golden() -> PathBuf {
    project_dir().join("crates/record/tests/golden")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(from, to).unwrap();
}

/// An experiment without run directories.
pub(crate) fn experiment(bench: &Bench, name: &str, verb: &str) {
    let document = golden().join(format!("experiments/{verb}.json"));
    let folder = bench.path(name);
    copy(&document, &folder.join("experiment.json"));
    sums::write(&folder);
}

/// Two builds, the first one with a trace.
pub(crate) fn index_build(bench: &Bench, name: &str) {
    let build = bench.path(name);
    let trace = golden().join("io-trace-v1");
    for name in names(&trace) {
        copy(&trace.join(&name), &build.join("before").join(name));
    }
    copy(&golden().join("index-build.json"), &build.join("index-build.json"));
    sums::write(&build.join("before"));
    sums::write(&build);
}

/// Messages of all cells, 600 each: number *n* was intended and sent at *n* nanoseconds, answered at *n* + 1 and received at *n*
/// + 2.
pub(crate) fn messages(bench: &Bench, name: &str) {
    let tail = bench.path(name);
    copy(&golden().join("tail.json"), &tail.join("tail.json"));
    let document: Value =
        serde_json::from_slice(&fs::read(tail.join("tail.json")).unwrap()).unwrap();
    let at = |after: i64| -> Vec<i64> { (after..600 + after).collect() };
    let first = || vec![0; 600];
    for cell in document["cells"].as_array().unwrap() {
        let cell = tail.join("cells").join(cell["name"].as_str().unwrap());
        fs::create_dir_all(&cell).unwrap();
        let sent = [first(), at(0), at(0), at(0), at(1)];
        messages::write(&cell.join("messages.parquet"), MESSAGE_COLUMNS, &sent).unwrap();
        let received = [first(), first(), at(0), at(2), at(0)];
        messages::write(&cell.join("receipts.parquet"), RECEIPT_COLUMNS, &received).unwrap();
    }
    sums::write(&tail);
}
