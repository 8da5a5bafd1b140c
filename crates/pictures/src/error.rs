//! Errors of drawing charts.

use dyno_report::ReportError;

/// A chart could not be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The data of the charts could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The input of the script could not be written as JSON, or its output could not be read.
    #[error("cannot pass the charts to the code that draws them")]
    Json(#[from] serde_json::Error),
    /// The code of the page failed.
    #[error("cannot draw the charts with the code of the page: {0}")]
    Script(String),
    /// The SVG could not be converted to PNG.
    #[error("cannot convert a chart to PNG: {0}")]
    Raster(String),
}
