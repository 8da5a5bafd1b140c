//! Converts SVG to PNG with an embedded font, because a server may have none.

use crate::error::PictureError;
use resvg::tiny_skia::{IntSize, Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// DejaVu Sans 2.37 without scripts that labels do not use; see `fonts/LICENSE`.
const FONT: &[u8] = include_bytes!("../fonts/DejaVuSans.ttf");
const FAMILY: &str = "DejaVu Sans";

/// Pixels per unit of the SVG, in both directions.
const SCALE: f32 = 2.0;

/// The PNG file of a picture, at twice the size of the SVG for high-resolution screens.
///
/// # Errors
/// [`PictureError::Raster`] for invalid or too large SVG.
pub fn png(svg: &str) -> Result<Vec<u8>, PictureError> {
    let mut options = Options { font_family: FAMILY.to_owned(), ..Options::default() };
    let fonts = options.fontdb_mut();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family(FAMILY);
    let failed = |reason: String| PictureError::Raster(reason);
    let tree = Tree::from_str(svg, &options).map_err(|error| failed(error.to_string()))?;
    let size = tree.size().to_int_size();
    let size = size.scale_by(SCALE).unwrap_or(size);
    let pixmap = Pixmap::new(size.width(), size.height());
    let mut pixmap = pixmap.ok_or_else(|| failed("it is too large".to_owned()))?;
    let transform = Transform::from_scale(SCALE, SCALE);
    resvg::render(&tree, transform, &mut pixmap.as_mut());
    pixmap.encode_png().map_err(|error| failed(error.to_string()))
}

/// A PNG file from pixels of four bytes each, which are opaque or transparent; `None` if their number does not match the
/// sides.
pub(crate) fn png_of_pixels(pixels: Vec<u8>, width: u32, height: u32) -> Option<Vec<u8>> {
    let size = IntSize::from_wh(width, height)?;
    Pixmap::from_vec(pixels, size)?.encode_png().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"\x89PNG\r\n\x1a\n";

    fn pixmap(svg: &str) -> Pixmap {
        Pixmap::decode_png(&png(svg).unwrap()).unwrap()
    }

    #[test]
    fn letters_are_drawn_without_a_font_of_the_system() {
        let around = |words: &str| {
            pixmap(&format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"20\"><rect width=\"100\" height=\"20\" fill=\"#fff\"/>\
                 <text x=\"5\" y=\"15\" font-family=\"system-ui, 'Segoe UI', sans-serif\" font-size=\"12\">{words}</text></svg>"
            ))
        };
        let empty = around("");
        assert_eq!((empty.width(), empty.height()), (200, 40));
        let dark = |pixmap: &Pixmap| pixmap.pixels().iter().filter(|it| it.red() < 128).count();
        assert_eq!(dark(&empty), 0);
        assert!(dark(&around("µs → ±")) > 50);
    }

    #[test]
    fn pixels_keep_their_colours_and_must_fit_the_sides() {
        let pixels = [[255, 0, 0, 255], [0, 0, 0, 0]].concat();
        let file = png_of_pixels(pixels.clone(), 2, 1).unwrap();
        assert!(file.starts_with(HEAD));
        assert_eq!(Pixmap::decode_png(&file).unwrap().data(), pixels);
        assert_eq!(png_of_pixels(pixels, 3, 1), None);
    }

    #[test]
    fn malformed_svg_is_an_error() {
        let error = png("<svg").unwrap_err();
        assert!(matches!(error, PictureError::Raster(_)), "{error}");
    }
}
