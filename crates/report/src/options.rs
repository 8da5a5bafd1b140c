//! Formats of reports, and options for rendering.

use crate::ycsb::YcsbOptions;

/// The format of a run's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text for a terminal.
    Human,
    /// Markdown with GitHub's tables.
    Markdown,
    /// One self-contained page with charts.
    Html,
    /// The run document with its analysis.
    Json,
    /// The output of YCSB at the end of a run.
    Ycsb,
    /// The key figures of the multi-instance benchmark, with its labels.
    Kpi,
    /// The table of a suite or of messages for a spreadsheet.
    Csv,
}

impl Format {
    /// All formats with their names and help texts.
    pub const NAMES: &[(Format, &'static str, &'static str)] = &[
        (Format::Human, "human", "Text and tables for people"),
        (Format::Markdown, "markdown", "Markdown"),
        (Format::Html, "html", "One self-contained page with charts"),
        (Format::Json, "json", "One JSON document"),
        (Format::Ycsb, "ycsb", "The output of YCSB"),
        (Format::Kpi, "kpi", "The key figures of the multi-instance benchmark, with its labels"),
        (Format::Csv, "csv", "The table of several workloads, or of messages, for a spreadsheet"),
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

/// The format of any other report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFormat {
    /// Text for a terminal.
    Human,
    /// Markdown with GitHub's tables.
    Markdown,
    /// One self-contained page with charts.
    Html,
    /// The document behind the page with its analysis.
    Json,
}

impl PageFormat {
    /// All formats with their names and help texts.
    pub const NAMES: &[(PageFormat, &'static str, &'static str)] = &[
        (PageFormat::Human, "human", "Text and tables for people"),
        (PageFormat::Markdown, "markdown", "Markdown"),
        (PageFormat::Html, "html", "One self-contained page with charts"),
        (PageFormat::Json, "json", "One JSON document"),
    ];

    /// The page format with the same name; `None` if only runs have this format.
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

/// How much of a page is shown in a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// One screen, at most 45 lines of 80 columns: the answer, the result, the verdict, three findings, and caveats.
    Brief {
        /// The last line: a sentence about where to find the rest.
        rest: String,
    },
    /// The whole page.
    #[default]
    Full,
}

/// How a report is rendered. Each format uses only the options that apply to it.
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
