//! Arguments of `dyno trace` and `dyno index-build`.

use super::names::{one_of, some_of};
use super::run::{ChosenServer, ExtentArguments};
use super::standing::ShownArguments;
use super::values::{count, quantity};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use dyno_plan::index_build::Remedy;
use dyno_plan::storage::Storage;
use dyno_plan::units::{Bytes, Span};
use dyno_report::PageFormat;
use dyno_results::trace::TimeRange;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// Trace this process, its threads and its children; may be repeated
    #[arg(long = "pid", value_name = "PID", help_heading = "What is traced",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) processes: Vec<u32>,
    /// Trace the server at this connection string, on this machine; its files are shown by their content
    #[arg(long, value_name = "URI", help_heading = "What is traced",
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) server: Option<String>,
    /// Only files that match, such as `*.wt`; a pattern with `/` matches whole paths; may be repeated
    #[arg(long = "file", value_name = "PATTERN", help_heading = "What is traced",
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) files: Vec<String>,
    /// Trace reads and accesses to mapped files (default: all of `--reads`, `--writes`, `--fsync`)
    #[arg(long, help_heading = "What is traced")]
    pub(crate) reads: bool,
    /// Trace writes
    #[arg(long, help_heading = "What is traced")]
    pub(crate) writes: bool,
    /// Trace flushes, such as `fsync` and `fdatasync`
    #[arg(long, help_heading = "What is traced")]
    pub(crate) fsync: bool,
    /// Ignore calls for fewer bytes
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, help_heading = "What is traced")]
    pub(crate) smallest: Option<Bytes>,
    /// End after this time, and ask COMMAND to end (default: when COMMAND or the processes end, or Ctrl-C)
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::<Span>, help_heading = "How")]
    pub(crate) length: Option<Span>,
    /// Keep counts and histograms per file instead of single calls: cheaper, and small enough for days
    #[arg(long, help_heading = "How")]
    pub(crate) aggregated: bool,
    /// Do not trace the block layer: reads from the page cache and from the device are not distinguished
    #[arg(long, help_heading = "How")]
    pub(crate) no_block: bool,
    /// Measure how long the probes run in the kernel, which slows them slightly
    #[arg(long, help_heading = "How")]
    pub(crate) cost: bool,
    /// Buffer for events from the kernel, a power of two; a larger buffer loses fewer events in bursts
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, default_value = "16MiB", help_heading = "How")]
    pub(crate) buffer: Bytes,
    /// Largest gap between the end of one call and the start of the next in the same stream
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, default_value = "128KiB", help_heading = "Output")]
    pub(crate) gap: Bytes,
    #[command(flatten)]
    pub(crate) part: TracePart,
    /// Folder of the trace (default: `runs/TIME-trace`)
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageArguments,
    /// Program to start and trace, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Format options of records other than runs.
#[derive(Debug, Args)]
pub(crate) struct PageArguments {
    /// Format of the report on standard output
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "human",
        value_parser = some_of(PageFormat::NAMES, |format| *format != PageFormat::Html),
        help_heading = "Output"
    )]
    pub(crate) format: PageFormat,
    #[command(flatten)]
    pub(crate) extent: ExtentArguments,
}

/// Part of a trace to show.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TracePart {
    /// Show only calls that began in this time range, such as `10s..40s`, `..40s` or `10s..`, from the start of the trace
    #[arg(long, value_name = "FROM..TO", value_parser = parse_window, help_heading = "Output")]
    pub(crate) window: Option<TimeRange>,
    /// Also show the figures of each slice of this length
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Output")]
    pub(crate) slices: Option<Span>,
}

impl From<&TracePart> for dyno_results::trace::TracePart {
    fn from(part: &TracePart) -> Self {
        Self { window: part.window, slices: part.slices.map(|length| length.0) }
    }
}

/// Parses `FROM..TO`, where either end may be absent.
fn parse_window(text: &str) -> Result<TimeRange, String> {
    let (from, to) = text
        .split_once("..")
        .ok_or("expected two times with `..` between them, such as `10s..40s`")?;
    let time = |text: &str| match text {
        "" => Ok(None),
        text => quantity(text).map(|Span(time)| Some(time)),
    };
    let window = TimeRange { from: time(from)?.unwrap_or_default(), to: time(to)? };
    match window.to {
        Some(to) if to <= window.from => Err("the end must be after the start".to_owned()),
        _ => Ok(window),
    }
}

#[derive(Debug, Args)]
pub(crate) struct IndexBuildArguments {
    /// Layout of the documents on disk: a built-in layout, or a plan file with an `[index_build]` table
    ///
    /// Built-in layouts: `ordered`, `shuffled`, `concurrent`, `churned`, `migrated`. See `docs/index-build.md`.
    #[arg(value_name = "LAYOUT", default_value = "churned", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) layout: String,
    #[command(flatten)]
    pub(crate) server: ChosenServer,
    #[command(flatten)]
    pub(crate) shown: ShownArguments,
    /// Use this existing collection of `--uri` or `--data-dir`, and load nothing
    #[arg(long, value_name = "DATABASE.COLLECTION", value_parser = namespace, help_heading = "Data", conflicts_with = "layout")]
    pub(crate) collection: Option<(String, String)>,
    /// Documents to load, such as `40k` or `20M` (built-in layouts: 40000 documents of 3 KB)
    #[arg(
        long,
        value_name = "N",
        value_parser = count,
        help_heading = "Data",
        conflicts_with = "collection"
    )]
    pub(crate) records: Option<u64>,
    /// Seed of all random sequences; the same seed makes the same documents (default: 42)
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub(crate) seed: Option<u64>,
    /// Fields of the index, such as `date:-1,number:1` (default: `date`)
    #[arg(long, value_name = "FIELD[:-1],…", help_heading = "Index", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) keys: Option<String>,
    /// Keep the caches, instead of restarting the server and dropping the page cache (which needs root)
    #[arg(long, help_heading = "Index")]
    pub(crate) warm: bool,
    /// Reorder the documents on disk, verify them, and build the index again
    ///
    /// `rewrite` copies them in `_id` order, `natural-copy` in the server's order, `dump` copies them through a file, `compact`
    /// runs the server's `compact`. Nothing is dropped before its copy is verified.
    #[arg(long, value_name = "REMEDY", value_parser = one_of(Remedy::NAMES), help_heading = "Index")]
    pub(crate) remedy: Option<Remedy>,
    /// Apply the remedy only to this server of `--topology split=N`, such as `split-1` (default: to all servers)
    #[arg(long, value_name = "SERVER", value_parser = NonEmptyStringValueParser::new(), help_heading = "Index", requires = "remedy")]
    pub(crate) remedy_on: Option<String>,
    /// Repeat each build N times without a trace, alternating with traced builds, to measure the cost of tracing (default: 1)
    ///
    /// With 2 or more the cost has an interval. With 0 all builds are traced.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100), help_heading = "Index")]
    pub(crate) untraced: Option<u32>,
    /// Prepare storage for the data, such as `ext4 on loop:4GiB at 200 iops`, and remove it afterwards; needs root
    ///
    /// The limit of operations applies during index builds, so that a fast machine behaves like a disk with seeks.
    #[arg(long, value_name = "STORAGE", help_heading = "Index")]
    pub(crate) storage: Option<Storage>,
    /// Folder of the experiment (default: `experiments/TIME-index-build-NAME`)
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageArguments,
    /// Print the steps without running them; with `--full` the plan
    #[arg(long, help_heading = "Output")]
    pub(crate) dry_run: bool,
}

/// Parses `database.collection`; the collection name may contain dots.
fn namespace(text: &str) -> Result<(String, String), String> {
    match text.split_once('.') {
        Some((database, collection)) if !database.is_empty() && !collection.is_empty() => {
            Ok((database.to_owned(), collection.to_owned()))
        }
        _ => Err("it must be `DATABASE.COLLECTION`, such as `shop.orders`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn trace_window_may_lack_either_end() {
        let window = |from, to: Option<u64>| TimeRange {
            from: Duration::from_secs(from),
            to: to.map(Duration::from_secs),
        };
        assert_eq!(parse_window("10s..40s"), Ok(window(10, Some(40))));
        assert_eq!(parse_window("..40s"), Ok(window(0, Some(40))));
        assert_eq!(parse_window("1m.."), Ok(window(60, None)));
        for wrong in ["10s", "40s..10s", "5s..5s", "a..b", "1s..2s..3s"] {
            assert!(parse_window(wrong).is_err(), "{wrong}");
        }
    }
}
