//! The report as one self-contained HTML file: styles, script and chart data are inside, nothing
//! is loaded when it is opened. The layout is in `templates/report.html`, the charts in `web/`.

use crate::caveat::Severity;
use crate::error::ReportError;
use crate::model::ReportModel;
use minijinja::value::Serde;
use minijinja::{Environment, HtmlEscape, Value, context};
use serde::Serialize;

/// The charts, bundled from `web/` by `scripts/bundle.sh`.
pub(crate) const SCRIPT: &str = include_str!("../bundle/report.js");

/// The styles, bundled from `web/` by `scripts/bundle.sh`.
pub(crate) const STYLES: &str = include_str!("../bundle/report.css");

/// The name ends in `.html`, which makes the engine escape every value that is not marked safe.
const TEMPLATE: &str = "report.html";

/// What pages of runs and of experiments have in common, with its name.
pub(crate) const PARTS: (&str, &str) = ("parts.html", include_str!("../templates/parts.html"));

/// Renders the model.
pub(crate) fn render(model: &ReportModel) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.add_filter("code", code);
    environment.add_template(PARTS.0, PARTS.1)?;
    environment.add_template(TEMPLATE, include_str!("../templates/report.html"))?;
    let charts = &model.charts;
    let severities: Vec<Severity> = model.caveats.iter().map(|c| c.severity).collect();
    let mut page = environment.get_template(TEMPLATE)?.render(context! {
        report => Serde(model),
        severities => Serde(&severities),
        has_charts => !charts.time.start_s.is_empty(),
        has_offered => charts.time.offered_per_s.is_some(),
        has_errors => charts.time.failed_per_s.is_some(),
        thinning => charts.thinning.as_deref(),
        css => Value::from_safe_string(STYLES.to_owned()),
        js => Value::from_safe_string(SCRIPT.to_owned()),
        data => Value::from_safe_string(inline_json(charts)?),
    })?;
    page.push('\n');
    Ok(page)
}

/// Text in which what stands in backticks is set as code, escaped. An odd backtick stays one.
pub(crate) fn code(text: &str) -> Value {
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

/// What is before, in and after the first pair of backticks.
fn next_quoted(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('`')?;
    let (quoted, after) = rest.split_once('`')?;
    Some((before, quoted, after))
}

/// JSON that can stand inside a script element: without `<`, nothing in it can end the element or
/// begin a comment. The escapes mean the same text to a JSON parser.
pub(crate) fn inline_json<T: Serialize>(charts: &T) -> Result<String, ReportError> {
    let text = serde_json::to_string(charts)?;
    Ok(text
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn backticks_become_code_and_everything_is_escaped() {
        let html = |text| code(text).to_string();
        assert_eq!(
            html("use `--a` or `<b>`"),
            "use <code>--a</code> or <code>&lt;b&gt;</code>"
        );
        assert_eq!(html("an odd ` & more"), "an odd ` &amp; more");
        assert_eq!(html(""), "");
    }

    #[test]
    fn a_name_in_the_chart_data_cannot_end_its_element() {
        let mut model = ReportModel::new(&testdata::closed_run(), None);
        let harmless = render(&model).unwrap();
        let name = "</script><!--<script>&amp;";
        model.charts.operations = vec![name.to_owned()];
        let html = render(&model).unwrap();
        for tag in ["<script", "</script", "<!--"] {
            let count = |html: &str| html.matches(tag).count();
            assert_eq!(count(&html), count(&harmless), "{tag}");
        }
        let start = html.find("id=\"data\">").unwrap() + "id=\"data\">".len();
        let end = start + html[start..].find("</script>").unwrap();
        let data: serde_json::Value = serde_json::from_str(&html[start..end]).unwrap();
        assert_eq!(data["operations"][0], name);
    }

    #[test]
    fn script_and_styles_cannot_end_their_elements() {
        assert!(SCRIPT.len() > 40_000 && STYLES.len() > 5_000);
        assert!(!SCRIPT.to_lowercase().contains("</script"));
        assert!(!SCRIPT.contains("<!--"));
        assert!(!STYLES.to_lowercase().contains("</style"));
    }
}
