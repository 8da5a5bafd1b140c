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

impl Format {
    /// All of them, each with its name and a line of help.
    pub const NAMES: &[(Format, &'static str, &'static str)] = &[
        (Format::Human, "human", "Text and tables for people"),
        (Format::Markdown, "markdown", "Markdown"),
        (Format::Html, "html", "One self-contained page with charts"),
        (Format::Json, "json", "One JSON document"),
        (Format::Ycsb, "ycsb", "The text that YCSB prints"),
        (
            Format::Kpi,
            "kpi",
            "The key figures of the multi-instance benchmark, by its labels",
        ),
    ];
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

impl PageFormat {
    /// All of them, each with its name and a line of help.
    pub const NAMES: &[(PageFormat, &'static str, &'static str)] = &[
        (PageFormat::Human, "human", "Text and tables for people"),
        (PageFormat::Markdown, "markdown", "Markdown"),
        (
            PageFormat::Html,
            "html",
            "One self-contained page with charts",
        ),
        (PageFormat::Json, "json", "One JSON document"),
    ];

    /// The format of a page that is called as one of a run; `None` if only runs have one of this name.
    pub fn from_format(format: Format) -> Option<Self> {
        match format {
            Format::Human => Some(PageFormat::Human),
            Format::Markdown => Some(PageFormat::Markdown),
            Format::Html => Some(PageFormat::Html),
            Format::Json => Some(PageFormat::Json),
            Format::Ycsb | Format::Kpi => None,
        }
    }
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
