//! Rules that hold for reading and for printing.

/// Characters of names and of keys without quotes.
pub(super) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

/// Bytes up to the slash that ends a regular expression: as in JavaScript, not one in a class or behind a backslash.
pub(super) fn regular_expression_end(text: &str) -> Option<usize> {
    let (mut is_escaped, mut is_class) = (false, false);
    for (offset, character) in text.char_indices() {
        match character {
            '\n' => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_class = true,
            ']' => is_class = false,
            '/' if !is_class => return Some(offset),
            _ => {}
        }
    }
    None
}

/// The name of a generator in a text; `%%` begins a literal text.
pub(super) fn generator_name(text: &str) -> Option<&str> {
    text.strip_prefix('%').filter(|name| !name.starts_with('%'))
}

/// A text that reads as itself, and does not name a generator.
pub(super) fn literal(text: &str) -> String {
    if text.starts_with('%') { format!("%{text}") } else { text.to_owned() }
}
