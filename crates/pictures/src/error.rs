//! What can go wrong when charts are drawn.

use dyno_report::ReportError;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The data of the charts could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// What charts are made of could not be written as JSON, or read.
    #[error("the charts cannot be told to the code that draws them")]
    Json(#[from] serde_json::Error),
    /// The code of the page failed.
    #[error("the code of the page does not draw the charts: {0}")]
    Script(String),
    /// The SVG could not be made a PNG.
    #[error("a chart cannot be made a PNG file: {0}")]
    Raster(String),
}
