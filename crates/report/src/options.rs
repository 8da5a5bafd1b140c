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
    /// The table of a suite or of messages, for a spreadsheet.
    Csv,
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
        (
            Format::Csv,
            "csv",
            "The table of several workloads, or of messages, for a spreadsheet",
        ),
    ];
}

impl From<PageFormat> for Format {
    fn from(format: PageFormat) -> Self {
        match format {
            PageFormat::Human => Format::Human,
            PageFormat::Markdown => Format::Markdown,
            PageFormat::Html => Format::Html,
            PageFormat::Json => Format::Json,
        }
    }
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
            Format::Ycsb | Format::Kpi | Format::Csv => None,
        }
    }
}

/// How much of a page a text for a terminal has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// What fits on a screen, at most 45 lines of 80 columns: the result, the verdict, three findings, and caveats in a
    /// line each.
    Brief {
        /// Where the rest is, as a sentence; it is the last line.
        rest: String,
    },
    /// All of it.
    #[default]
    Full,
}

/// How a report is rendered. Each format looks only at what concerns it.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderOptions {
    /// Columns of the terminal; used by [`PageFormat::Human`].
    pub width: usize,
    /// Whether to write ANSI colours; used by [`PageFormat::Human`].
    pub colours: bool,
    /// How much is shown; used by [`PageFormat::Human`].
    pub extent: Extent,
    /// Used by [`Format::Ycsb`].
    pub ycsb: YcsbOptions,
}

impl Default for RenderOptions {
    fn default() -> Self {
        RenderOptions {
            width: 100,
            colours: false,
            extent: Extent::Full,
            ycsb: YcsbOptions::default(),
        }
    }
}
