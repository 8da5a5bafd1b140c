//! Names whose values are secrets.

use super::pieces::Part;

// Lists of words are texts, with spaces between the words.

/// How certainly a name belongs to a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strength {
    None,
    /// Only before `=`, as an option, or with a quoted value. Names in [`PASSWORDS`] also before
    /// `:`.
    Weak,
    /// Always.
    Strong,
}

const STRONG: &str = "\
    password passwd passphrase passwort pwd secret token cookie apikey accesskey secretkey \
    privatekey accountkey authkey";
const WEAK: &str = "\
    pass passin passout pw auth authorization credential credentials sig signature psk";
/// Weak names that hold a secret before `:` as well.
const PASSWORDS: &str = "pass pw psk credential credentials";
/// Prefixes that make a `key` a secret, as opposed to a document's key.
const KEYS: &str = "\
    api access secret private account shared encryption signing ssh ssl tls auth license storage \
    subscription";
/// Last part of a name that describes a secret without containing it.
const ABOUT: &str = "file path folder dir directory env variable name length type url policy";
/// Texts instead of a secret that show how to pass one.
const PLACEHOLDERS: &str = "PASSWORD TOKEN SECRET KEY PASS VALUE";
/// Values that are not secrets.
const LITERALS: &str = "true false null none nil undefined yes no required";

/// Words that begin a reason or a description after a name, as in `wrong password: try another`.
/// Any other word counts as a secret.
const REASONS: &str = "\
    a access all an and are as at authentication authorization bad both broken by can cannot \
    connection could denied does either empty error expected expired failed failure file for \
    forbidden found from give has if in incorrect invalid is it its malformed may mismatch \
    missing must name neither not nothing of only operation or permission refused rejected \
    server stream that the there they this timed to too try unauthorized unexpected unknown use \
    was wrong you";

fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

pub(super) fn strength(name: &str, part: Part) -> Strength {
    let parts = parts(name);
    let Some(last) = parts.last() else {
        return Strength::None;
    };
    if has(ABOUT, last) {
        return Strength::None;
    }
    let is_strong = |part: &String| STRONG.split(' ').any(|end| part.ends_with(end));
    if parts.iter().any(is_strong) || name.to_ascii_lowercase().ends_with("authmechanismproperties")
    {
        return Strength::Strong;
    }
    if last == "key" {
        let before = parts.len().checked_sub(2).map(|place| parts[place].as_str());
        let is_of_environment = !name.bytes().any(|byte| byte.is_ascii_lowercase());
        return match before {
            Some(before) if has(KEYS, before) => Strength::Strong,
            _ if part != Part::Text || is_of_environment => Strength::Weak,
            _ => Strength::None,
        };
    }
    if has(WEAK, last) { Strength::Weak } else { Strength::None }
}

/// Whether a weak name has a secret after `:` as well.
pub(super) fn is_password(name: &str) -> bool {
    let last = parts(name).pop();
    last.is_some_and(|last| has(PASSWORDS, &last))
}

/// Whether a number after a name is a count, as in `pass: 12`.
pub(super) fn is_countable(name: &str) -> bool {
    parts(name).last().is_some_and(|last| last == "pass")
}

/// Whether a text after a name begins a reason or a description.
pub(super) fn is_reason(word: &str) -> bool {
    has(REASONS, &word.to_ascii_lowercase())
}

pub(super) fn is_placeholder(value: &str) -> bool {
    value.starts_with(['<', '[']) || has(PLACEHOLDERS, value) || is_literal(value)
}

/// Whether a value is a literal or a variable instead of a secret.
pub(super) fn is_literal(value: &str) -> bool {
    let variable = value.strip_prefix('$');
    let variable = variable.map(|name| name.trim_start_matches('{').trim_end_matches('}'));
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
    };
    variable.is_some_and(is_name)
        || value.starts_with("$(")
        || has(LITERALS, &value.to_ascii_lowercase())
}

/// The lower-case words of a name such as `tlsKeyFile`, `x-api-key` or `API_KEY`.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() || (was_lower && c.is_ascii_uppercase()) {
            parts.push(String::new());
        }
        was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        if let Some(part) = parts.last_mut().filter(|_| c.is_ascii_alphanumeric()) {
            part.push(c.to_ascii_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}
