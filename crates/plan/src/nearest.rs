//! "Did you mean": the known name that a misspelt one is closest to.

/// The candidate nearest to `name` without regard to case, or none if all of them are far away:
/// more than a third of the name would have to change.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| {
            let lower = candidate.to_lowercase();
            (strsim::damerau_levenshtein(&name, &lower), candidate)
        })
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_name_and_nonsense_finds_none() {
        let names = ["recordcount", "operationcount", "w"];
        assert_eq!(nearest("recordcuont", names), Some("recordcount"));
        assert_eq!(nearest("RecordCount", names), Some("recordcount"));
        assert_eq!(nearest("something", names), None);
    }
}
