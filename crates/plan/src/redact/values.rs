//! Finds the end of a name's value.

use super::names::is_literal;
use std::ops::Range;

/// Longest quoted value over several lines.
const LONGEST_QUOTED: usize = 4096;
const QUOTES: [char; 2] = ['"', '\''];

/// A value in a text.
#[derive(Debug)]
pub(super) struct Value {
    /// Excludes the quotes.
    pub(super) range: Range<usize>,
    pub(super) is_quoted: bool,
}

impl Value {
    pub(super) fn is_number(&self, text: &str) -> bool {
        text[self.range.clone()].bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// The value at `start` of a name at `name`; `None` if it is missing or not a secret.
pub(super) fn value_at(text: &str, name: usize, start: usize) -> Option<Value> {
    let value = match quoted_at(text, start) {
        Some(inner) => {
            // A shell joins `"a"b` to one word.
            let behind = (inner.end + 1).min(text.len());
            let is_joined = text[start..].starts_with(QUOTES)
                && text.get(behind..).is_some_and(|rest| {
                    rest.starts_with(|c: char| c.is_alphanumeric() || QUOTES.contains(&c))
                });
            let range = match is_joined {
                true => start..unquoted_end(text, name, start),
                false => inner,
            };
            Value { range, is_quoted: true }
        }
        None => Value { range: start..unquoted_end(text, name, start), is_quoted: false },
    };
    let shown = &text[value.range.clone()];
    let is_none = shown.is_empty() || shown.starts_with('=') || is_literal(shown);
    (!is_none).then_some(value)
}

/// The inner part of a quoted value at `start`, whose quotes may have backslashes, as in nested
/// JSON. An unclosed value ends with its line.
pub(super) fn quoted_at(text: &str, start: usize) -> Option<Range<usize>> {
    let rest = &text[start..];
    let slashes = rest.len() - rest.trim_start_matches('\\').len();
    let quote = rest[slashes..].chars().next().filter(|c| QUOTES.contains(c))?;
    let begin = slashes + 1;
    let opener = &rest[..begin];
    let mut at = begin;
    while let Some(found) = rest[at..].find(opener).map(|found| at + found) {
        let before = &rest[begin..found];
        let escapes = before.len() - before.trim_end_matches('\\').len();
        // In a shell a backslash before a single quote is an ordinary character.
        let is_end =
            rest[found + opener.len()..].chars().next().is_none_or(|c| !c.is_alphanumeric());
        if escapes.is_multiple_of(2) || (quote == '\'' && is_end) {
            let is_near = !before.contains('\n') || before.len() <= LONGEST_QUOTED;
            return is_near
                .then_some(start + begin..start + found)
                .or_else(|| Some(start + begin..line_end(text, start + begin)));
        }
        at = found + opener.len();
    }
    Some(start + begin..line_end(text, start + begin))
}

fn line_end(text: &str, start: usize) -> usize {
    text[start..].find('\n').map_or(text.len(), |end| start + end)
}

/// The quote that is open at a position of its line.
fn open_quote(text: &str, place: usize) -> Option<char> {
    let line = text[..place].rsplit('\n').next().unwrap_or_default();
    let mut open = None;
    for (at, c) in line.char_indices() {
        // An apostrophe within a word is not an opening quote.
        let is_apostrophe =
            c == '\'' && open.is_none() && line[..at].ends_with(char::is_alphanumeric);
        if QUOTES.contains(&c) && !is_apostrophe {
            open = match open {
                None => Some(c),
                Some(quote) if quote == c => None,
                other => other,
            };
        }
    }
    open
}

/// The end of the line, or of the quotes that enclose a name at `name`.
pub(super) fn line_or_quote_end(text: &str, name: usize, start: usize) -> usize {
    let end = line_end(text, start);
    let open = open_quote(text, name);
    let closed = open.and_then(|quote| text[start..end].find(quote));
    let backtick = text[..name].ends_with('`').then(|| text[start..end].find('`')).flatten();
    closed.into_iter().chain(backtick).min().map_or(end, |close| start + close)
}

/// The end of a word, including its quoted parts.
fn unquoted_end(text: &str, name: usize, start: usize) -> usize {
    let outer = open_quote(text, name);
    let address = text[..name].rsplit(|c: char| c.is_whitespace()).next();
    let is_query = address.is_some_and(|address| address.contains('?'));
    let mut inner = None;
    let mut is_escaped = false;
    let mut end = text.len();
    for (at, c) in text[start..].char_indices() {
        let is_end = match inner {
            _ if is_escaped => false,
            Some(_) => c == '\n',
            None => c.is_whitespace() || c == '`' || (is_query && c == '&') || outer == Some(c),
        };
        if is_end {
            end = start + at;
            break;
        }
        if !is_escaped && QUOTES.contains(&c) {
            inner = match inner {
                Some(quote) if quote == c => None,
                None => Some(c),
                other => other,
            };
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    let word = text[start..end].trim_end_matches([',', '.', ':', ';', '}', ']', ')', '\\']);
    start + word.len()
}
