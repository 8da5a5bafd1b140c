//! Formats log lines for people: MongoDB's JSON log as time, severity, component and message, with
//! important lines before the last ones.
//!
//! The format of the log: MongoDB manual, "Log Messages", "Structured Logging" (4.4 and later).
//! Other lines stay unchanged.

use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Messages are truncated to this many characters: attributes may be whole configurations.
const MOST_CHARACTERS: usize = 240;

/// Attributes that contain the reason; they come first and without their name.
const REASONS: [&str; 5] = ["error", "errmsg", "reason", "message", "msg"];

/// Words of a message that explains why a server ended, in lower case.
const TELLING: [&str; 8] = [
    "assert",
    "invariant",
    "fatal",
    "out of memory",
    "bad_alloc",
    "cannot allocate",
    "got signal",
    "no space left",
];

/// Messages that fill the log after a crash without helping a reader: addresses in the program.
const NOISE: [&str; 2] = ["BACKTRACE", "Frame"];

/// At most `count` lines of a log: first the latest ones that explain why a server ended, then the
/// last ones of the rest. Each part is in the order of the log.
pub(super) fn readable(log: &str, count: usize) -> Vec<String> {
    let lines: Vec<Line> = log.lines().filter_map(Line::of).collect();
    let (telling, rest): (Vec<Line>, Vec<Line>) =
        lines.into_iter().partition(|line| line.is_telling);
    let telling = last(telling, count);
    let rest = last(rest, count - telling.len());
    telling.into_iter().chain(rest).map(|line| line.text).collect()
}

fn last(mut lines: Vec<Line>, count: usize) -> Vec<Line> {
    lines.split_off(lines.len().saturating_sub(count))
}

struct Line {
    text: String,
    is_telling: bool,
}

impl Line {
    /// `None` for an uninformative line.
    fn of(line: &str) -> Option<Line> {
        let parsed: Option<Map<String, Value>> = serde_json::from_str(line).ok();
        let fields = parsed.filter(|fields| fields.contains_key("msg"));
        let Some(fields) = fields else {
            let is_telling = tells(line);
            return (!line.trim().is_empty()).then(|| Line { text: line.to_owned(), is_telling });
        };
        let text_of = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let message = text_of("msg");
        if NOISE.contains(&message) {
            return None;
        }
        let severity = text_of("s");
        let mut text = format!("{} {severity} {}: {message}", time(&fields), text_of("c"));
        if let Some(Value::Object(attributes)) = fields.get("attr") {
            text.push_str(&details(attributes));
        }
        // Joins a message of several lines to one line.
        let mut text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_telling = matches!(severity, "F" | "E") || tells(&text);
        if let Some((end, _)) = text.char_indices().nth(MOST_CHARACTERS) {
            text.truncate(end);
            text.push('…');
        }
        Some(Line { text, is_telling })
    }
}

fn tells(text: &str) -> bool {
    let text = text.to_lowercase();
    TELLING.iter().any(|word| text.contains(word))
}

/// The time `19:46:32.028` of a date in the log; the date is the run's date.
fn time(fields: &Map<String, Value>) -> &str {
    let date = fields.get("t").and_then(|t| t.get("$date"));
    let date = date.and_then(Value::as_str).unwrap_or_default();
    date.get("2026-11-25T".len().."2026-11-25T19:46:32.028".len()).unwrap_or(date)
}

/// Text of the attributes: reasons without a name, others by their name.
fn details(attributes: &Map<String, Value>) -> String {
    let mut text = String::new();
    let known = REASONS.iter().filter_map(|name| attributes.get(*name));
    for value in known {
        let _ = write!(text, "; {}", plain(value));
    }
    let others = attributes.iter();
    for (name, value) in others.filter(|(name, _)| !REASONS.contains(&name.as_str())) {
        let _ = write!(text, ", {name} {}", plain(value));
    }
    text
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(severity: &str, id: u32, message: &str, attributes: &str) -> String {
        format!(
            r#"{{"t":{{"$date":"2026-11-25T19:46:32.028+00:00"}},"s":"{severity}",  "c":"CONTROL",  "id":{id},   "ctx":"main","msg":"{message}","attr":{attributes}}}"#
        )
    }

    #[test]
    fn fatal_messages_are_preferred_to_the_last_lines() {
        let frame = line("I", 31445, "Frame", r#"{"frame":{"a":"558FD3CFA8C6"}}"#);
        let ticket = |number: u32| {
            line("I", 7, "Connection ended", &format!(r#"{{"connectionId":{number}}}"#))
        };
        let mut log = vec![
            line(
                "F",
                6384300,
                "Writing fatal message",
                r#"{"message":"Got signal: 6 (Aborted).\n"}"#,
            ),
            line("I", 31380, "BACKTRACE", r#"{"bt":{"backtrace":[]}}"#),
        ];
        log.extend((0..20).map(|_| frame.clone()));
        log.extend((0..20).map(ticket));
        log.push("terminate called: std::bad_alloc".to_owned());
        let expected = [
            "19:46:32.028 F CONTROL: Writing fatal message; Got signal: 6 (Aborted).",
            "terminate called: std::bad_alloc",
            "19:46:32.028 I CONTROL: Connection ended, connectionId 18",
            "19:46:32.028 I CONTROL: Connection ended, connectionId 19",
        ];
        assert_eq!(readable(&log.join("\n"), 4), expected);
        assert_eq!(readable(&log.join("\n"), 1), expected[1..2]);
        assert!(readable(&log.join("\n"), 0).is_empty());
    }

    #[test]
    fn long_attributes_are_cut_and_reasons_come_first() {
        let long = line(
            "W",
            1,
            "Slow query",
            &format!(r#"{{"command":"{}","error":"why"}}"#, "x".repeat(1000)),
        );
        let [text] = &readable(&long, 5)[..] else {
            panic!("one line");
        };
        assert!(text.starts_with("19:46:32.028 W CONTROL: Slow"), "{text}");
        assert!(text.contains("; why, command xxx") && text.ends_with('…'), "{text}");
        assert_eq!(text.chars().count(), MOST_CHARACTERS + 1);
    }

    #[test]
    fn lines_that_are_not_mongodb_messages_stay_unchanged() {
        for text in ["secantusd-rs listening on 127.0.0.1:1", r#"{"a":1}"#, "{half"] {
            assert_eq!(readable(text, 3), [text]);
        }
    }
}
