//! Writes the charts of a page to a folder.

use dyno_engine::files::{make_folder, write_error, write_file, write_file_with};
use dyno_engine::{Error, Kind};
use dyno_pictures::{PictureError, pictures, png};
use dyno_report::page::Page;
use std::path::Path;

/// Writes each chart of a page as `NN-title.svg` and `NN-title.png`, and returns the number of charts.
pub(crate) fn write(page: &Page, folder: &Path) -> Result<usize, Error> {
    let pictures = pictures(page).map_err(unexpected)?;
    make_folder(folder)?;
    for picture in &pictures {
        let path = |ending: &str| folder.join(format!("{}.{ending}", picture.name));
        write_file(&path("svg"), &picture.svg)?;
        let bytes = png(&picture.svg).map_err(unexpected)?;
        write_file_with(&path("png"), |file| file.write_all(&bytes).map_err(write_error))?;
    }
    Ok(pictures.len())
}

/// All charts of a page in one SVG document.
pub(crate) fn stacked(page: &Page) -> Result<String, Error> {
    Ok(dyno_pictures::stacked(&pictures(page).map_err(unexpected)?))
}

/// Error for a chart that cannot be drawn, which is a bug.
fn unexpected(error: PictureError) -> Error {
    Error::from_cause(Kind::Internal, error)
}
