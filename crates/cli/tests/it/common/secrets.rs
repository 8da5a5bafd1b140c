//! Searches for secrets in places that others can read.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The secrets in an agent's private file: passwords, keys, and a line of each private key.
pub(crate) fn words_of_bundle(text: &str) -> Vec<String> {
    let (_, json) = text.split_once('\n').unwrap();
    let bundle: Value = serde_json::from_str(json).unwrap();
    let own = &bundle["own"];
    let pairs = [&own["client"], &own["server"]["certificate"]];
    let keys = pairs.into_iter().filter_map(|pair| pair[1].as_str());
    let mut words: Vec<String> = keys.map(line_of_key).collect();
    let texts = [&own["password"], &own["server"]["member_key"]];
    words.extend(texts.into_iter().filter_map(|text| text.as_str().map(str::to_owned)));
    assert!(words.iter().all(|word| word.len() > 20), "{words:?}");
    words
}

/// A line that is unique to a private key.
pub(crate) fn line_of_key(pem: &str) -> String {
    let (_, key) = pem.split_once("PRIVATE KEY-----\n").unwrap();
    key.lines().next().unwrap().to_owned()
}

/// Processes with one of these words among their arguments or environment variables.
pub(crate) fn processes_that_show(words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        for file in ["cmdline", "environ"] {
            let path = entry.path().join(file);
            let text = std::fs::read(&path).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            if words.iter().any(|word| text.contains(word)) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// Files below a folder with one of these words. Files may disappear during the search.
pub(crate) fn files_that_show(folder: &Path, words: &[String]) -> Vec<String> {
    let mut grep = Command::new("grep");
    grep.arg("-rlsF").env("LC_ALL", "C");
    for word in words {
        grep.args(["-e", word]);
    }
    let found = grep.arg(folder).output().unwrap();
    let lines = String::from_utf8(found.stdout).unwrap();
    lines.lines().map(str::to_owned).collect()
}

/// Checks that no value in Redis contains one of these words; `says` returns the answer to a command.
pub(crate) fn assert_not_in_redis(says: impl Fn(&[&str]) -> String, words: &[String]) {
    for key in says(&["KEYS", "*"]).lines() {
        let all = match says(&["TYPE", key]).as_str() {
            "stream" => says(&["XRANGE", key, "-", "+"]),
            "hash" => says(&["HGETALL", key]),
            "zset" => says(&["ZRANGE", key, "0", "-1"]),
            _ => says(&["GET", key]),
        };
        assert!(!words.iter().any(|word| all.contains(word)), "{key}");
    }
}
