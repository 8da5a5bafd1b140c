//! Text of HTML pages.

/// An HTML page without the links of its terms, so that its sentences are whole.
pub fn without_term_links(page: &str) -> String {
    let mut parts = page.split("<a class=\"term\"");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (_, linked) = part.split_once('>').unwrap_or_default();
        text + &linked.replacen("</a>", "", 1)
    })
}
