//! Terms used on pages with their meanings, from `terms.toml`.

use crate::page::Definition;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Terms and meanings by key.
static TERMS: LazyLock<BTreeMap<String, Vec<Vec<String>>>> =
    LazyLock::new(|| toml::from_str(include_str!("terms.toml")).unwrap_or_default());

/// The terms of these keys, each once. A test finds keys without terms.
pub(crate) fn terms(keys: &[&str]) -> Vec<Definition> {
    let found = keys.iter().filter_map(|key| TERMS.get(*key)).flatten();
    let definition = |entry: &'static Vec<String>| match entry.as_slice() {
        [term, meaning, others @ ..] => Some(Definition { term, meaning, others }),
        _ => None,
    };
    added(Vec::new(), found.filter_map(definition))
}

/// The terms with others, unless they are there already.
pub(crate) fn added(
    mut terms: Vec<Definition>,
    others: impl IntoIterator<Item = Definition>,
) -> Vec<Definition> {
    for other in others {
        if terms.iter().all(|known| known.term != other.term) {
            terms.push(other);
        }
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_page_has_terms_and_is_used() {
        let mut used = Vec::new();
        // In two parts, so that this line is not found.
        let call = ["terms(&", "[\""].concat();
        for (_, source) in dyno_testkit::sources() {
            for keys in source.split(&call).skip(1) {
                let keys = keys.split(']').next().unwrap_or_default();
                used.extend(keys.split('"').step_by(2).map(str::to_owned));
            }
        }
        used.sort();
        used.dedup();
        let known: Vec<String> = TERMS.keys().cloned().collect();
        assert_eq!(used, known);
        assert!(TERMS.values().all(|terms| !terms.is_empty()));
        assert!(TERMS.values().flatten().all(|entry| entry.len() >= 2));
    }
}
