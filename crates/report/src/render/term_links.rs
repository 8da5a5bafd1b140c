//! Links the first use of each term in a section of a page to its definition.

use crate::page::Definition;
use minijinja::HtmlEscape;

/// Elements whose text has no links to terms.
const WITHOUT_LINKS: [&str; 9] =
    ["a", "button", "code", "h1", "h2", "h3", "noscript", "pre", "summary"];

/// Elements that begin a section: each term is linked in it again.
const SECTIONS: [&str; 2] = ["<section", "<details"];

/// The markup of a page with links to its definitions. The last part of the page, which begins with `end`, stays as it is.
pub(super) fn linked(html: &str, definitions: &[Definition], end: &str) -> String {
    let start = html.find("<main").unwrap_or(0);
    let end = html.rfind(end).unwrap_or(html.len());
    let spellings = spellings(definitions);
    let mut out = html[..start].to_owned();
    let mut used = vec![false; definitions.len()];
    let mut without = 0;
    let mut rest = &html[start..end];
    while let Some(tag) = rest.find('<') {
        let text = &rest[..tag];
        if without == 0 {
            link(text, &spellings, definitions, &mut used, &mut out);
        } else {
            out.push_str(text);
        }
        let length = rest[tag..].find('>').map_or(rest.len() - tag, |length| length + 1);
        let whole = &rest[tag..tag + length];
        if SECTIONS.iter().any(|section| whole.starts_with(section)) {
            used.fill(false);
        }
        let name = whole.trim_start_matches(['<', '/']);
        let name = name.split([' ', '>', '\n']).next().unwrap_or_default();
        if WITHOUT_LINKS.contains(&name) {
            without = if whole.starts_with("</") { without - 1 } else { without + 1 };
        }
        out.push_str(whole);
        rest = &rest[tag + length..];
    }
    out + rest + &html[end..]
}

/// The spellings of all terms with the place of their definition, the longest first.
fn spellings(definitions: &[Definition]) -> Vec<(&'static str, usize)> {
    let all = definitions.iter().enumerate();
    let mut all: Vec<_> =
        all.flat_map(|(place, one)| one.spellings().map(move |name| (name, place))).collect();
    all.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    all
}

/// Adds a text, with a link at the first use of each term.
fn link(
    text: &str,
    spellings: &[(&'static str, usize)],
    definitions: &[Definition],
    used: &mut [bool],
    out: &mut String,
) {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let mut before = ' ';
    let mut written = 0;
    for (at, character) in text.char_indices() {
        let previous = std::mem::replace(&mut before, character);
        if at < written || is_part(previous) || previous == '&' {
            continue;
        }
        let found = spellings.iter().find_map(|(name, place)| {
            let start = text.get(at..at + name.len())?;
            let rest = &text[at + name.len()..];
            let plural = usize::from(rest.starts_with('s'));
            let is_end = !rest[plural..].starts_with(is_part);
            (start.eq_ignore_ascii_case(name) && is_end).then_some((name.len() + plural, *place))
        });
        let Some((length, place)) = found.filter(|(_, place)| !used[*place]) else {
            continue;
        };
        used[place] = true;
        out.push_str(&text[written..at]);
        let (word, meaning) = (&text[at..at + length], HtmlEscape(definitions[place].meaning));
        out.push_str(&format!(
            "<a class=\"term\" href=\"#term-{}\" title=\"{meaning}\">{word}</a>",
            place + 1
        ));
        written = at + length;
    }
    out.push_str(&text[written..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFINITIONS: [Definition; 3] = [
        Definition { term: "window", meaning: "One \"second\".", others: &[] },
        Definition { term: "N*", meaning: "Clients.", others: &[] },
        Definition { term: "offered and achieved rate", meaning: "Rates.", others: &[] },
    ];

    fn links(html: &str) -> String {
        let html = linked(&format!("<main>{html}"), &DEFINITIONS, "<section id=\"terms\"");
        html.replacen("<main>", "", 1)
    }

    #[test]
    fn first_use_in_a_section_is_linked() {
        let window = "<a class=\"term\" href=\"#term-1\" title=\"One &quot;second&quot;.\">";
        assert_eq!(
            links("<p>Windows and a window</p><section>window </section>"),
            format!(
                "<p>{window}Windows</a> and a window</p><section>{window}window</a> </section>"
            )
        );
        assert!(links("<p>beyond N* = 2</p>").contains("title=\"Clients.\">N*</a> = 2"));
    }

    #[test]
    fn code_links_headings_and_parts_of_words_stay() {
        for html in [
            "<code>window</code>",
            "<a href=\"#x\">a window</a>",
            "<h2>Window</h2>",
            "<p>windowing and sub-window</p>",
            "<i title=\"window\"></i>",
            "<section id=\"terms\">window",
        ] {
            assert_eq!(links(html), html);
        }
    }
}
