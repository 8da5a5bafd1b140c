//! Users and passwords in addresses.

use super::pieces::{MASK, group, pattern};
use regex::Regex;
use std::sync::LazyLock;

/// Placeholder for user and password in documentation and hints.
const PLACEHOLDER: &str = "USER:PASSWORD";

pattern!(SCHEME, r"(?i)\b([a-z][a-z0-9+.-]*)://");

/// Masks users and passwords. A connection string ends at white space, and everything up to its
/// last `@` counts as credentials. The same applies to another address whose host would have an
/// invalid port.
pub(super) fn mask_user_information(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(captures) = SCHEME.captures(rest) {
        let scheme = rest[group(&captures, 1)].to_ascii_lowercase();
        let (before, after) = rest.split_at(group(&captures, 0).end);
        result.push_str(before);
        let word_end = after.find(char::is_whitespace).unwrap_or(after.len());
        let line_end = after.find('\n').unwrap_or(after.len());
        let word = &after[..word_end];
        let is_of_mongodb = scheme.starts_with("mongodb");
        let is_open = has_password_without_host(word);
        let authority_end = word.find(['/', '?', '#', '"', '\'', '`']).unwrap_or(word.len());
        let secret_end = match word[..authority_end].rfind('@') {
            _ if is_of_mongodb || is_open => word.rfind('@'),
            found => found,
        };
        let secret_end = secret_end.or_else(|| {
            let is_cut = is_of_mongodb && is_open;
            is_cut.then(|| after[..line_end].rfind('@')).flatten()
        });
        match secret_end {
            Some(at) => {
                let is_placeholder = after[..at] == *PLACEHOLDER;
                result.push_str(if is_placeholder { PLACEHOLDER } else { MASK });
                rest = &after[at..];
            }
            None => rest = after,
        }
    }
    result.push_str(rest);
    result
}

/// Whether a word that should start with a host has an invalid port after its colon: the beginning
/// of a password that contains white space.
fn has_password_without_host(word: &str) -> bool {
    let authority_end = word.find(['/', '?', ',']).unwrap_or(word.len());
    let authority = &word[..authority_end];
    if authority.starts_with('[') && authority.contains(']') {
        return false;
    }
    authority
        .split_once(':')
        .is_some_and(|(_, port)| !port.bytes().all(|byte| byte.is_ascii_digit()))
}
