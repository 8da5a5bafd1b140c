//! The bundled chart code and styles of a page, which `scripts/bundle.sh` builds from `web/`, and their data; for the page,
//! and for drawing its charts without a browser.

use crate::error::ReportError;
use crate::page::density::DensityChart;
use crate::page::plot::Plot;
use crate::page::scatter::ScatterChart;
use crate::page::time::TimeCharts;
use crate::page::{Chart, Page};
use serde::Serialize;

/// The script that draws charts.
pub const SCRIPT: &str = include_str!("../bundle/report.js");

/// The styles of the page.
pub const STYLES: &str = include_str!("../bundle/report.css");

/// A document in which [`SCRIPT`] draws without a browser.
pub const HEADLESS: &str = include_str!("../bundle/headless.js");

/// Data of the charts.
#[derive(Default, Serialize)]
struct ChartData<'a> {
    plots: Vec<&'a Plot>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    densities: Vec<&'a DensityChart>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scatters: Vec<&'a ScatterChart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<&'a TimeCharts>,
}

/// The data of a page's charts as JSON.
///
/// # Errors
/// [`ReportError::Json`]; no content of a page causes it.
pub fn chart_data(page: &Page) -> Result<String, ReportError> {
    let mut data = ChartData { time: page.time.as_ref(), ..ChartData::default() };
    for chart in page.charts() {
        match chart {
            Chart::Plot(plot) => data.plots.push(plot),
            Chart::Density(density) => data.densities.push(density),
            Chart::Scatter(scatter) => data.scatters.push(scatter),
            Chart::Time(_) | Chart::Rows(_) => {}
        }
    }
    Ok(serde_json::to_string(&data)?)
}

/// A colour of the page on a light background, such as `--grid`; black if the styles do not have it.
pub fn colour(name: &str) -> &'static str {
    let value = STYLES.split_once(&format!("{name}:"));
    let value = value.map_or("", |(_, value)| value.trim_start());
    let value = value.strip_prefix("light-dark(").unwrap_or(value);
    let end = value.find([',', ';', '}']).unwrap_or(0);
    match value[..end].trim() {
        colour if colour.starts_with('#') => colour,
        _ => "#000",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_the_styles() {
        assert_eq!(colour("--operation-0"), "#0072b2");
        assert_eq!(colour("--grid"), "#e9ecf0");
        assert_eq!(colour("--no-such"), "#000");
    }

    #[test]
    fn scripts_and_styles_cannot_close_their_elements() {
        assert!(SCRIPT.len() > 40_000 && STYLES.len() > 5_000);
        assert!(!SCRIPT.to_lowercase().contains("</script"));
        assert!(!SCRIPT.contains("<!--"));
        assert!(!STYLES.to_lowercase().contains("</style"));
    }
}
