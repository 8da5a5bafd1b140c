//! What reports are rendered as, and how.

use crate::ycsb::YcsbOptions;

/// What a run is rendered as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text for a terminal.
    Human,
    /// Markdown with GitHub's tables.
    Markdown,
    /// One self-contained page with charts.
    Html,
    /// The run document, with what follows from it.
    Json,
    /// What YCSB prints at the end of a run.
    Ycsb,
    /// The key figures of the multi-instance benchmark, by its labels.
    Kpi,
}

/// What a page is rendered as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFormat {
    /// Text for a terminal.
    Human,
    /// Markdown with GitHub's tables.
    Markdown,
    /// One self-contained page with charts.
    Html,
    /// The document behind the page, with what follows from it.
    Json,
}

/// How a report is rendered. Each format looks only at what concerns it.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderOptions {
    /// Columns of the terminal; used by [`PageFormat::Human`].
    pub width: usize,
    /// Whether to write ANSI colours; used by [`PageFormat::Human`].
    pub colours: bool,
    /// Used by [`Format::Ycsb`].
    pub ycsb: YcsbOptions,
}

impl Default for RenderOptions {
    fn default() -> Self {
        RenderOptions {
            width: 100,
            colours: false,
            ycsb: YcsbOptions::default(),
        }
    }
}
