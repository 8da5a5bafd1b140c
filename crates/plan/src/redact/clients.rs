//! Passwords recognizable only by the program: `mysql -pS`, `redis-cli -a S`, `db.auth("u", "S")`,
//! `echo S | sudo -S`.

use super::pieces::{Edits, Part, group, pattern};
use super::values::value_at;
use regex::Regex;
use std::sync::LazyLock;

/// Programs whose one-letter options take a password.
const CLIENTS: [&str; 7] = ["mongo", "mysql", "maria", "redis", "valkey", "ldap", "sshpass"];

/// Whether a word names such a program.
pub(crate) fn is_client(word: &str) -> bool {
    let word = word.trim_matches(['"', '\'', '`', '(']);
    let program = word.rsplit('/').next().unwrap_or(word);
    // `mongodb` is a scheme, a database and a YCSB binding.
    !program.starts_with("mongodb") && CLIENTS.iter().any(|client| program.starts_with(client))
}

pattern!(CALL, r"\.auth[ \t]*\(([^)\n]*)");
pattern!(
    PIPED,
    r#"\b(?:echo|printf)(?:[ \t]+-[neE]+)*[ \t]+((?:'[^'\n]*'|"[^"\n]*"|[^|;&\n'"])+?)[ \t]*\|[ \t]*(?:(?:\S*/)?sudo\b[^|;&\n]*[ \t](?:-[A-Za-z]*S\b|--stdin)|[^|;&\n]*[ \t]--password-stdin\b)"#
);
pattern!(HERE, r"(?m)\bsudo\b[^|;&\n]*[ \t](?:-[A-Za-z]*S\b|--stdin)[^|;&\n]*<<<[ \t]*");
pattern!(WORD, r"\S+");

pub(super) fn edits(text: &str, part: Part) -> Edits {
    let mut edits = Edits::new();
    edits.extend(CALL.captures_iter(text).map(|captures| group(&captures, 1)));
    edits.extend(PIPED.captures_iter(text).map(|captures| group(&captures, 1)));
    let here = HERE.find_iter(text);
    edits.extend(here.filter_map(|found| Some(value_at(text, found.start(), found.end())?.range)));
    let mut is_of_client = part == Part::ClientCommand;
    let mut is_of_redis = false;
    let mut end_of_last = 0;
    for word in WORD.find_iter(text) {
        if text[end_of_last..word.start()].contains('\n') {
            is_of_client = part == Part::ClientCommand;
        }
        end_of_last = word.end();
        let shown = word.as_str();
        if is_client(shown) {
            is_of_client = true;
            let name = shown.rsplit('/').next().unwrap_or(shown);
            is_of_redis = name.starts_with("redis") || name.starts_with("valkey");
        } else if is_of_client {
            let next = text[word.end()..].trim_start_matches([' ', '\t']);
            let next = text.len() - next.len();
            let is_next = match shown {
                "-p" | "-w" => !is_of_redis,
                "-a" => true,
                _ => is_of_redis && shown.eq_ignore_ascii_case("auth"),
            };
            let start = match shown.strip_prefix("-p") {
                _ if is_next => Some(next),
                Some(attached) if !attached.is_empty() && !is_of_redis => Some(word.start() + 2),
                _ => None,
            };
            let value = start.and_then(|start| value_at(text, word.start(), start));
            edits.extend(
                value
                    .map(|value| value.range)
                    .filter(|range| !text[range.clone()].starts_with('-')),
            );
        }
        if shown.ends_with(['|', ';', '&']) {
            (is_of_client, is_of_redis) = (part == Part::ClientCommand, false);
        }
    }
    edits
}
