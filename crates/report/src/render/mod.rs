//! Renders a [`Page`] as text for a terminal, as Markdown, or as one self-contained HTML file. Renderers only choose the
//! layout; they return text and print nothing.

mod brief;
mod html;
mod layout;
mod markdown;
mod term_links;
mod terminal;

use crate::error::ReportError;
use crate::options::{Extent, PageFormat, RenderOptions};
use crate::page::Page;
use crate::page::table::Table;
use crate::texts::with_texts;
use dyno_record::visible::visible;
use layout::Painter;
use serde::Serialize;

/// A table as text, for output without a page: with the columns that fit into this width, or with all.
pub fn table_text(table: &Table, width: Option<usize>) -> String {
    /// Wider than any table.
    const WIDTH: usize = 1 << 20;
    let width = width.unwrap_or(WIDTH);
    let (lines, _) = layout::lines(table, width, Painter { colours: false });
    lines.join("\n") + "\n"
}

/// Renders the page, or the document behind it, in the requested format. The text ends with a newline.
pub(crate) fn show<T: Serialize>(
    format: PageFormat,
    options: &RenderOptions,
    page: impl FnOnce() -> Page,
    document: impl FnOnce() -> T,
) -> Result<String, ReportError> {
    Ok(match format {
        PageFormat::Human => {
            let text = match &options.extent {
                Extent::Brief { rest } => {
                    brief::render(&page(), options.width, options.colours, rest)
                }
                Extent::Full => terminal::render(&page(), options.width, options.colours),
            };
            match options.colours {
                true => text,
                false => visible(&text).into_owned(),
            }
        }
        PageFormat::Markdown => visible(&markdown::render(&page())).into_owned(),
        PageFormat::Html => html::render(&page())?,
        PageFormat::Json => serde_json::to_string_pretty(&with_texts(&document())?)? + "\n",
    })
}
