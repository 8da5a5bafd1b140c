//! Removes secrets from external texts: messages of libraries, output of programs, command lines,
//! server logs. When in doubt it hides too much.

mod clients;
mod names;
mod pieces;
mod uris;
mod values;

#[cfg(test)]
mod tests;

pub(crate) use clients::is_client;
use names::{Strength, strength};
use pieces::{Edits, group, pattern};
pub(crate) use pieces::{MASK, Part};
use regex::{Captures, Regex};
use std::ops::Range;
use std::sync::LazyLock;
use values::value_at;

/// The text with `***` instead of each secret.
pub fn redact(text: &str) -> String {
    redact_part(text, Part::Text)
}

pub(crate) fn redact_part(text: &str, part: Part) -> String {
    let mut text = uris::mask_user_information(text);
    let steps: [fn(&str, Part) -> Edits; 8] =
        [private_keys, headers, bearers, assignments, queries, options, users, clients::edits];
    for step in steps {
        let edits = step(&text, part);
        apply(&mut text, edits);
    }
    text
}

/// Masks the ranges. Overlapping ranges are merged.
fn apply(text: &mut String, mut edits: Edits) {
    edits.retain(|range| !range.is_empty() && &text[range.clone()] != MASK);
    edits.sort_by_key(|range| range.start);
    edits.dedup_by(|later, earlier| {
        let overlaps = later.start < earlier.end;
        if overlaps {
            earlier.end = earlier.end.max(later.end);
        }
        overlaps
    });
    for range in edits.into_iter().rev() {
        text.replace_range(range, MASK);
    }
}

/// All matches, including those that begin within an earlier match after `end`.
fn matches<'t>(
    pattern: &'static Regex,
    text: &'t str,
    mut found: impl FnMut(&Captures<'t>) -> usize,
) {
    let mut at = 0;
    while let Some(captures) = pattern.captures_at(text, at) {
        let whole = captures.get(0).expect("it has matched").range();
        at = found(&captures).max(whole.start + 1);
        while !text.is_char_boundary(at) {
            at += 1;
        }
        if at >= text.len() {
            return;
        }
    }
}

pattern!(PRIVATE_KEY, r"-----BEGIN [A-Z ]*PRIVATE KEY-----([\s\S]*?)(?:-----END|\z)");

fn private_keys(text: &str, _: Part) -> Edits {
    let keys = PRIVATE_KEY.captures_iter(text);
    keys.map(|captures| group(&captures, 1)).collect()
}

pattern!(HEADER, r#"(?i)\b(?:(?:proxy-)?authorization|(?:set-)?cookie2?)\\*["']?[ \t]*:[ \t]*"#);

/// Whole values of headers that consist of several words.
fn headers(text: &str, _: Part) -> Edits {
    let mut edits = Edits::new();
    matches(&HEADER, text, |captures| {
        let whole = group(captures, 0);
        let value = match values::quoted_at(text, whole.end) {
            Some(inner) => inner,
            None => whole.end..values::line_or_quote_end(text, whole.start, whole.end),
        };
        let end = value.end;
        edits.push(value);
        end
    });
    edits
}

pattern!(BEARER, r"(?i)\b(?:bearer|basic)[ \t]+([A-Za-z0-9._~+/=-]{4,})");

/// Tokens without their header's name. A single word is ordinary text: `basic authentication`.
fn bearers(text: &str, _: Part) -> Edits {
    let tokens = BEARER.captures_iter(text);
    let tokens = tokens.map(|captures| group(&captures, 1));
    let is_token = |range: &Range<usize>| {
        let token = &text[range.clone()];
        token.len() >= 24 || token.bytes().any(|byte| byte.is_ascii_digit())
    };
    tokens.filter(is_token).collect()
}

pattern!(ASSIGNMENT, r#"([A-Za-z0-9_][A-Za-z0-9_.-]*)(\\*["']?)([ \t]?)(=>|[=:])([ \t]*)"#);

/// Values in assignments: `name=value`, `name: value`, `"name": "value"`.
fn assignments(text: &str, part: Part) -> Edits {
    let mut edits = Edits::new();
    matches(&ASSIGNMENT, text, |captures| {
        let whole = group(captures, 0);
        let name = group(captures, 1);
        let found = strength(&text[name.clone()], part);
        let is_colon = &text[group(captures, 4)] == ":";
        let is_name_quoted = !group(captures, 2).is_empty();
        let (before, after) = (group(captures, 3), group(captures, 5));
        // With a weak name, `a= b` has no value, but `a = b` has one.
        let is_apart = !is_colon && before.is_empty() && !after.is_empty();
        if found == Strength::None || (is_apart && found == Strength::Weak) {
            return whole.end;
        }
        let Some(value) = value_at(text, name.start, whole.end) else {
            return whole.end;
        };
        let (own, shown) = (&text[name.clone()], &text[value.range.clone()]);
        // Usage such as `--set <KEY=VALUE>`.
        let is_form = text[..name.start].ends_with('<');
        if is_form && names::is_placeholder(shown.trim_end_matches('>')) {
            return whole.end;
        }
        // `--password= --quiet` has an empty value.
        if is_apart && !value.is_quoted && shown.starts_with('-') {
            return whole.end;
        }
        let is_header = own.contains('-');
        let is_reason = match is_name_quoted {
            true => names::is_reason(shown),
            false => !is_header && is_prose(text, name.start, shown),
        };
        // In JSON, such a name may have an object or a list, whose own names decide.
        let is_structure = is_name_quoted && shown.starts_with(['{', '[']);
        let is_secret = match (is_colon, found) {
            (false, Strength::Weak) => !value.is_number(text),
            (false, _) => true,
            (true, _) if value.is_quoted => found == Strength::Strong || !is_key(own),
            (true, Strength::Weak) if is_header && own.starts_with(['x', 'X']) => true,
            (true, Strength::Weak) => {
                let is_count = names::is_countable(own) && value.is_number(text);
                // `credentials::Source` is a type.
                let is_value = !shown.starts_with(['{', '[', ':']);
                names::is_password(own) && is_value && !is_count && !is_reason
            }
            (true, _) => !is_structure && !is_reason,
        };
        if !is_secret {
            return whole.end;
        }
        let range = match is_colon && is_header && !value.is_quoted {
            true => {
                value.range.start..values::line_or_quote_end(text, name.start, value.range.start)
            }
            false => value.range,
        };
        let end = range.end;
        edits.push(range);
        end
    });
    edits
}

/// Whether a word is an option whose next word is a secret.
pub(crate) fn is_secret_option(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    let dashes = word.len() - name.len();
    let is_option = dashes == 2 || dashes == 1 && name.len() > 3;
    is_option && !word.contains(['=', ' ']) && strength(name, Part::Command) != Strength::None
}

fn is_key(name: &str) -> bool {
    name.eq_ignore_ascii_case("key")
}

/// Whether a name ends a clause and the value begins the reason:
/// `cannot read the token: permission denied`.
fn is_prose(text: &str, name: usize, value: &str) -> bool {
    let line = text[..name].rsplit('\n').next().unwrap_or_default();
    let Some(before) = line.strip_suffix(' ') else {
        return false;
    };
    let follows_word = before.ends_with(|c: char| c.is_ascii_lowercase() || ":)`'\"".contains(c));
    follows_word && names::is_reason(value)
}

pattern!(QUERY, r##"[?&]([A-Za-z0-9_.%\[\]-]+)=([^&\s"'`<>#]*)"##);

/// All values of a query, except options of a connection string.
fn queries(text: &str, _: Part) -> Edits {
    let values = QUERY.captures_iter(text).filter_map(|captures| {
        let whole = group(&captures, 0);
        let is_end = |c: char| c.is_whitespace() || "\"'`<>".contains(c);
        let address = text[..whole.start].rsplit(is_end).next()?;
        let address = &text[whole.start - address.len()..=whole.start];
        let name = &text[group(&captures, 1)];
        let is_of_mongodb = address.to_ascii_lowercase().contains("mongodb");
        let is_option =
            is_of_mongodb || !address.contains("://") && crate::uri::names::is_option(name);
        (address.contains('?') && !is_option).then(|| group(&captures, 2))
    });
    values.collect()
}

pattern!(OPTION, r#"(?m)(?:^|[\s"'`(=])(--?)([A-Za-z][A-Za-z0-9_.-]*)[ \t]+"#);

/// Values in the word after an option: `--password S`.
fn options(text: &str, _: Part) -> Edits {
    let mut edits = Edits::new();
    matches(&OPTION, text, |captures| {
        let whole = group(captures, 0);
        let name = &text[group(captures, 2)];
        let is_long = &text[group(captures, 1)] == "--" || name.len() > 3;
        let next = whole.end.saturating_sub(1);
        if !is_long || strength(name, Part::Command) == Strength::None {
            return next;
        }
        let Some(value) = value_at(text, whole.start, whole.end) else {
            return next;
        };
        let shown = &text[value.range.clone()];
        let is_path = is_key(name) && shown.starts_with(['/', '.', '~']);
        if names::is_placeholder(shown) || shown.starts_with('-') || is_path {
            return next;
        }
        let end = value.range.end;
        edits.push(value.range);
        end
    });
    edits
}

pattern!(
    USER,
    r#"(?m)(?:^|[\s"'`(=])(?:-u[ \t]*|--(?:proxy-)?user(?:=|[ \t]+))["']?([^\s:"'`@/=]+):"#
);

/// Passwords after a user name: `-u me:S`.
fn users(text: &str, _: Part) -> Edits {
    let mut edits = Edits::new();
    matches(&USER, text, |captures| {
        let (whole, name) = (group(captures, 0), group(captures, 1));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let Some(value) = value_at(text, whole.start, whole.end) else {
            return whole.end;
        };
        let range = match text[..name.start].chars().next_back() {
            Some('"' | '\'') => whole.end..values::line_or_quote_end(text, name.start, whole.end),
            _ => value.range,
        };
        let shown = &text[range.clone()];
        // `--user 1000:1000` contains numbers of a user and a group.
        if is_number(&text[name.clone()]) && is_number(shown) || shown == "PASSWORD" {
            return whole.end;
        }
        let end = range.end;
        edits.push(range);
        end
    });
    edits
}
