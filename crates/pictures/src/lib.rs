//! The charts of a page as files. SVG comes from the code that draws the charts in a browser: the bundle of the page runs in
//! an engine for JavaScript inside of the program, on a document of its own (`web/src/headless.ts`). PNG is made from that
//! SVG. Charts of rows, which are styles of the page and no code, are written here from the same places.
//!
//! See `docs/decisions/014-pictures-by-the-code-of-the-page.md`.

mod browser;
mod error;
mod raster;
mod rows;

use dyno_report::page::{Chart, Page};

pub use error::PictureError;
pub use raster::png;

/// A chart of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// A name for its file, without an ending: its place in the page and its title.
    pub name: String,
    /// An SVG document, with a line end.
    pub svg: String,
}

/// All charts of a page in their order.
///
/// # Errors
/// [`PictureError`], which no content of a page causes.
pub fn pictures(page: &Page) -> Result<Vec<Picture>, PictureError> {
    let mut drawn = browser::draw(page)?.into_iter();
    let mut pictures = Vec::new();
    for chart in page.charts() {
        let (title, svg) = match chart {
            Chart::Rows(chart) => (&chart.title, Some(rows::svg(chart))),
            Chart::Time(chart) => (&chart.title, drawn.next()),
            Chart::Plot(chart) => (&chart.title, drawn.next()),
            Chart::Density(chart) => (&chart.title, drawn.next()),
            Chart::Scatter(chart) => (&chart.title, drawn.next()),
            // Those of a history, which has drawings of its own for files: see `named`.
            Chart::Picture(_) => continue,
        };
        let svg = svg.ok_or_else(|| PictureError::Script(format!("`{title}` is missing")))?;
        pictures.push((title.clone(), svg));
    }
    Ok(named(pictures))
}

/// Drawings with their titles, each an SVG document, with names for files.
pub fn named(drawings: Vec<(String, String)>) -> Vec<Picture> {
    let numbered = (1..).zip(drawings);
    let named = numbered.map(|(number, (title, svg))| Picture {
        name: format!("{number:02}-{}", slug(&title)),
        svg,
    });
    named.collect()
}

/// A title as a part of a file's name.
fn slug(title: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let dashed: String = title.chars().map(plain).collect();
    let words = dashed.split('-').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}
