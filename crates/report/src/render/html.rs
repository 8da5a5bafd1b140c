//! The page as one self-contained HTML file with styles, script and chart data; it loads nothing. The layout is in
//! `templates/page.html`, the charts are in `web/`.

use super::term_links::linked;
use crate::bundle::{SCRIPT, STYLES, chart_data};
use crate::caveat::Severity;
use crate::error::ReportError;
use crate::page::{Page, Section};
use minijinja::value::Serde;
use minijinja::{Environment, HtmlEscape, Value, context};

/// The name ends with `.html`, so the engine escapes every value that is not marked safe.
const TEMPLATE: (&str, &str) = ("page.html", include_str!("../../templates/page.html"));

/// Repeated parts of the page.
const PARTS: (&str, &str) = ("parts.html", include_str!("../../templates/parts.html"));

/// Start of the definitions in the page.
const TERMS: &str = "<section class=\"definitions\"";

/// Tables with more rows are folded.
const MOST_ROWS: usize = 20;

/// Renders the page.
pub(super) fn render(page: &Page) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.add_filter("code", code);
    for (name, source) in [PARTS, TEMPLATE] {
        environment.add_template(name, source)?;
    }
    let severities: Vec<Severity> = page.caveats.iter().map(|c| c.severity).collect();
    let pictures: Vec<&Section> = page.sections.iter().filter(|one| one.is_picture()).collect();
    let tables = page.sections.iter().filter(|one| one.has_tables() || !one.is_picture());
    let tables: Vec<&Section> = tables.collect();
    // The first charts, and the changes that they mark, come before findings and caveats.
    let first = pictures.iter().position(|one| !(one.charts.is_empty() || one.is_folded));
    let is_first = |place: usize| Some(place) == first || !pictures[place].events.is_empty();
    let (first, rest): (Vec<usize>, Vec<usize>) = (0..pictures.len()).partition(|at| is_first(*at));
    let of = |places: Vec<usize>| places.into_iter().map(|at| pictures[at]).collect::<Vec<_>>();
    let html = environment.get_template(TEMPLATE.0)?.render(context! {
        page => Serde(page),
        first => Serde(&of(first)),
        rest => Serde(&of(rest)),
        tables_of => Serde(&tables),
        severities => Serde(&severities),
        most_rows => MOST_ROWS,
        css => Value::from_safe_string(STYLES.to_owned()),
        js => Value::from_safe_string(SCRIPT.to_owned()),
        data => Value::from_safe_string(inline_json(&chart_data(page)?)),
    })?;
    Ok(linked(&html, &page.definitions, TERMS) + "\n")
}

/// Escapes text and marks backticked parts as code. An odd backtick stays.
fn code(text: &str) -> Value {
    let mut html = String::new();
    let mut rest = text;
    while let Some((before, quoted, after)) = next_quoted(rest) {
        let (before, quoted) = (HtmlEscape(before), HtmlEscape(quoted));
        html.push_str(&format!("{before}<code>{quoted}</code>"));
        rest = after;
    }
    html.push_str(&HtmlEscape(rest).to_string());
    Value::from_safe_string(html)
}

/// The text before, in and after the first pair of backticks.
fn next_quoted(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('`')?;
    let (quoted, after) = rest.split_once('`')?;
    Some((before, quoted, after))
}

/// JSON for a script element: without `<`, it cannot end the element or begin a comment. The escapes mean the same text to
/// a JSON parser.
fn inline_json(text: &str) -> String {
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn backticks_become_code_and_everything_is_escaped() {
        let html = |text| code(text).to_string();
        assert_eq!(html("use `--a` or `<b>`"), "use <code>--a</code> or <code>&lt;b&gt;</code>");
        assert_eq!(html("an odd ` & more"), "an odd ` &amp; more");
        assert_eq!(html(""), "");
    }

    #[test]
    fn a_name_in_the_chart_data_cannot_end_its_element() {
        let mut page = crate::run::page(&testdata::closed_run(), None, None);
        let harmless = render(&page).unwrap();
        let name = "</script><!--<script>&amp;";
        page.time.as_mut().unwrap().operations = vec![name.to_owned()];
        let html = render(&page).unwrap();
        for tag in ["<script", "</script", "<!--"] {
            let count = |html: &str| html.matches(tag).count();
            assert_eq!(count(&html), count(&harmless), "{tag}");
        }
        let start = html.find("id=\"data\">").unwrap() + "id=\"data\">".len();
        let end = start + html[start..].find("</script>").unwrap();
        let data: serde_json::Value = serde_json::from_str(&html[start..end]).unwrap();
        assert_eq!(data["time"]["operations"][0], name);
    }
}
