//! "Did you mean": the known name closest to a misspelt one.

/// The candidate nearest to `name`, ignoring case. `None` if more than a third of the name, or all
/// of it, would have to change for all candidates.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let characters = name.chars().count();
    let limit = (characters / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| {
            let lower = candidate.to_lowercase();
            (strsim::damerau_levenshtein(&name, &lower), candidate)
        })
        .filter(|(distance, _)| *distance <= limit && *distance < characters.max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typo_finds_its_name_and_nonsense_finds_none() {
        let names = ["recordcount", "operationcount", "w"];
        assert_eq!(nearest("recordcuont", names), Some("recordcount"));
        assert_eq!(nearest("RecordCount", names), Some("recordcount"));
        assert_eq!(nearest("something", names), None);
        assert_eq!(nearest("W", names), Some("w"));
        assert_eq!(nearest("z", names), None);
    }
}
