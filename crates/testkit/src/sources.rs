//! The sources of the product and its catalogue of sentences, for tests of their completeness.

use crate::project_dir;
use std::collections::BTreeSet;
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// Every source of the product without its tests and comments, by its path in the project.
///
/// # Panics
/// If the sources cannot be read.
pub fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let crates = read_dir(project_dir().join("crates")).expect("there are crates");
    for folder in crates.map(|entry| entry.expect("it can be listed").path()) {
        // Code for tests is not part of the product.
        if !folder.ends_with("testkit") && folder.join("src").is_dir() {
            walk(&folder.join("src"), &mut found);
        }
    }
    assert!(found.len() > 300, "{} sources", found.len());
    found
}

fn walk(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in read_dir(folder).expect("a folder of sources can be listed") {
        let path = entry.expect("it can be listed").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "tests" {
            walk(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            let text = read_to_string(&path).expect("a source can be read");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let is_code = |line: &&str| !line.trim_start().starts_with("//");
            let code: Vec<&str> = code.lines().filter(is_code).collect();
            let inside = path.strip_prefix(project_dir()).unwrap_or(&path);
            found.push((inside.to_owned(), code.join("\n")));
        }
    }
}

/// Codes with a sentence in the catalogue of the reports, without its tables.
///
/// # Panics
/// If the catalogue cannot be read.
pub(crate) fn codes_with_texts() -> BTreeSet<String> {
    let folder = project_dir().join("crates/report/src/texts");
    let files = read_dir(folder).expect("there is a catalogue");
    let files = files.map(|entry| entry.expect("it can be listed").path());
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let mut codes = BTreeSet::new();
    for text in files.map(|path| read_to_string(path).expect("it can be read")) {
        let lines = text.lines().take_while(|line| !line.starts_with('['));
        codes.extend(lines.filter_map(|line| Some(line.split_once(" = ")?.0.to_owned())));
    }
    assert!(codes.len() > 300, "{} codes", codes.len());
    codes
}
