//! Escapes control characters of foreign text for display: they could move the cursor, set the terminal title, hide or
//! reverse text.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// Marks dyno's own colour changes. Foreign text cannot contain it, because it is different in each process.
static MARK: LazyLock<String> =
    LazyLock::new(|| format!("\u{1b}[{:016x};", RandomState::new().hash_one(0)));

/// Replaces control characters by escapes such as `\u{1b}`. Line ends and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    let is_harmless = |c: char| c == '\n' || c == '\t' || !(c.is_control() || is_of_direction(c));
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_harmless(c) {
            true => shown.push(c),
            false => shown.extend(c.escape_default()),
        }
    }
    Cow::Owned(shown)
}

/// Whether a character changes the writing direction, which could disguise a text.
fn is_of_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text in a colour or weight (a code of ECMA-48 SGR), for [`coloured`].
pub fn painted(code: &str, text: &str) -> String {
    format!("{0}{code}m{text}{0}0m", *MARK)
}

/// Text for a terminal: [`painted`] parts in their colour, everything else [`visible`].
pub fn coloured(text: &str) -> Cow<'_, str> {
    if !text.contains(&*MARK) {
        return visible(text);
    }
    let mut parts = text.split(&*MARK);
    let first = visible(parts.next().unwrap_or_default()).into_owned();
    let all = parts.fold(first, |shown, part| match part.split_once('m') {
        Some((code, rest)) => shown + "\u{1b}[" + code + "m" + &visible(rest),
        None => shown + &visible(part),
    });
    Cow::Owned(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(
            visible("a\x1b]0;title\x07b\x1b[2Jc\rd\u{9b}2J\u{202e}e\x1b[8mf\tg\n"),
            "a\\u{1b}]0;title\\u{7}b\\u{1b}[2Jc\\rd\\u{9b}2J\\u{202e}e\\u{1b}[8mf\tg\n"
        );
        assert_eq!(visible("ä\tb\n"), "ä\tb\n");
    }

    #[test]
    fn only_our_own_colours_reach_a_terminal() {
        let text = format!("x {} y\x1b[1mz", painted("31", "red \x1b[8mhidden"));
        let expected = "x \x1b[31mred \\u{1b}[8mhidden\x1b[0m y\\u{1b}[1mz";
        assert_eq!(coloured(&text), expected);
        assert_eq!(coloured("\x1b[8mx"), "\\u{1b}[8mx");
    }
}
