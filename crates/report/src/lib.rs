//! Reports: a run, an experiment, a trace of file I/O, an index build or messages become a [`page::Page`], which is shown as
//! text for a terminal, as Markdown, or as one self-contained HTML file; the document behind it is there as JSON, and of a
//! run the text that YCSB prints.
//!
//! Nothing is printed or written here; everything returns text. Caveats are found by the analysis and arrive with the run.

pub mod bundle;
pub mod caveat;
mod costs;
mod error;
pub mod experiment;
mod facts;
pub mod index_build;
pub mod io_trace;
mod machine;
mod options;
pub mod page;
mod render;
mod rounding;
pub mod run;
mod spreadsheet;
pub mod tail;
mod terms;
pub mod texts;
mod watched;
pub mod ycsb;

#[cfg(test)]
#[path = "../tests/it/support/mod.rs"]
mod testdata;

pub use error::ReportError;
pub use options::{Extent, Format, PageFormat, RenderOptions};
pub use render::table_text;
pub use run::result::incomplete;
pub use run::{render, render_traced};
pub use spreadsheet::text_cell;
