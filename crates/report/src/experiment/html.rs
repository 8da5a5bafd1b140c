//! The report as one self-contained HTML file: styles, script and chart data are inside, nothing is loaded when
//! it is opened. The layout is in `templates/experiment.html`, the charts in `web/`.

use super::density::DensityChart;
use super::model::ExperimentModel;
use super::plot::Plot;
use super::scatter::ScatterChart;
use crate::caveat::Severity;
use crate::error::ReportError;
use crate::html::{PARTS, SCRIPT, STYLES, code, inline_json};
use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use serde::Serialize;

/// The name ends in `.html`, which makes the engine escape every value that is not marked safe.
const TEMPLATE: &str = "experiment.html";

/// What the script draws.
#[derive(Serialize)]
struct ChartData<'a> {
    plots: Vec<&'a Plot>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    densities: Vec<&'a DensityChart>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scatters: Vec<&'a ScatterChart>,
}

/// Renders the model.
pub(crate) fn render(model: &ExperimentModel) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.add_filter("code", code);
    environment.add_template(PARTS.0, PARTS.1)?;
    environment.add_template(TEMPLATE, include_str!("../../templates/experiment.html"))?;
    let severities: Vec<Severity> = model.caveats.iter().map(|c| c.severity).collect();
    let data = ChartData {
        plots: model.plots(),
        densities: model.densities(),
        scatters: model.scatters(),
    };
    let mut page = environment.get_template(TEMPLATE)?.render(context! {
        report => Serde(model),
        severities => Serde(&severities),
        css => Value::from_safe_string(STYLES.to_owned()),
        js => Value::from_safe_string(SCRIPT.to_owned()),
        data => Value::from_safe_string(inline_json(&data)?),
    })?;
    page.push('\n');
    Ok(page)
}
