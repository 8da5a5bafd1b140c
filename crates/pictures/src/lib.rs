//! The charts of a page as files. SVG comes from the code that draws the charts in a browser: an embedded JavaScript engine
//! runs the bundle of the page on a minimal document (`web/src/headless.ts`). PNG is rendered from the SVG. Charts of rows,
//! which a page draws with styles instead of code, are written here with the same geometry.
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
    /// File name without an extension: number in the page and title.
    pub name: String,
    /// An SVG document that ends with a newline.
    pub svg: String,
}

/// All charts of a page in order.
///
/// # Errors
/// [`PictureError`]; no content of a page causes it.
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
        };
        let svg = svg.ok_or_else(|| PictureError::Script(format!("`{title}` is missing")))?;
        let name = format!("{:02}-{}", pictures.len() + 1, slug(title));
        pictures.push(Picture { name, svg });
    }
    Ok(pictures)
}

/// One SVG document with these pictures, one below the other.
pub fn stacked(pictures: &[Picture]) -> String {
    let (mut parts, mut width, mut height) = (String::new(), 0, 0);
    for picture in pictures {
        let number = |name: &str| {
            let value = picture.svg.split_once(&format!(" {name}=\""))?.1;
            value.split_once('"')?.0.parse::<u32>().ok()
        };
        parts += &picture.svg.replacen("<svg ", &format!("<svg y=\"{height}\" "), 1);
        width = number("width").unwrap_or(0).max(width);
        height += number("height").unwrap_or(0);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">{parts}</svg>\n"
    )
}

/// A title as part of a file name.
fn slug(title: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }
    };
    let dashed: String = title.chars().map(plain).collect();
    let words = dashed.split('-').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}
