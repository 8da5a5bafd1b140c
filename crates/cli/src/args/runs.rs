//! Arguments of `runs`.

use super::values::{moment, until};
use crate::messages::DataFormat;
use clap::Args;
use jiff::Timestamp;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct RunsArguments {
    /// Folders to search, or runs by their folder or a part of their name (default: `runs` and `experiments`)
    #[arg(value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
    /// Only runs of this plan
    #[arg(long, value_name = "NAME", help_heading = "Filter")]
    pub(crate) plan: Option<String>,
    /// Only runs with this tag, see `dyno run --tag`; may be repeated to require several
    #[arg(long = "tag", value_name = "TAG", help_heading = "Filter")]
    pub(crate) tags: Vec<String>,
    /// Only runs of a server whose name, version or address contains this text, such as `6.0` or `db1:27017`
    #[arg(long, value_name = "TEXT", help_heading = "Filter")]
    pub(crate) server: Option<String>,
    /// Only runs that started at this time or later: a day, a time, or an age such as `12h` or `7d`
    #[arg(long, value_name = "TIME", value_parser = moment, help_heading = "Filter")]
    pub(crate) since: Option<Timestamp>,
    /// Only runs that started before this time; a day includes its end
    #[arg(long, value_name = "TIME", value_parser = until, help_heading = "Filter")]
    pub(crate) until: Option<Timestamp>,
    /// Delete the listed runs, after a question
    ///
    /// Runs in progress stay, and so do files that no run has written. The runs of an experiment are deleted with it.
    #[arg(long)]
    pub(crate) prune: bool,
    /// Delete without a question
    #[arg(long, requires = "prune")]
    pub(crate) yes: bool,
    /// Format of the list
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: DataFormat,
}
