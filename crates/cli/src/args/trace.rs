//! Arguments of the tracer, and of the experiment with index builds.

use super::names::{one_of, some_of};
use super::run::{ExtentArguments, OF_STARTED, StartArguments};
use super::standing::{GrafanaArguments, PriceArguments};
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
    /// Trace this process, its threads and what it starts; can be given several times
    #[arg(long = "pid", value_name = "PID", help_heading = "What is traced",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) processes: Vec<u32>,
    /// Trace the server on this machine that a connection string leads to; its files are told by what they hold
    #[arg(long, value_name = "URI", help_heading = "What is traced",
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) server: Option<String>,
    /// Only files that this pattern fits, such as `*.wt`; one with `/` is a pattern of whole paths. Can be given several times
    #[arg(long = "file", value_name = "PATTERN", help_heading = "What is traced",
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) files: Vec<String>,
    /// Trace reads, and accesses to mapped files; without this, `--writes` and `--fsync` all three
    #[arg(long, help_heading = "What is traced")]
    pub(crate) reads: bool,
    /// Trace writes
    #[arg(long, help_heading = "What is traced")]
    pub(crate) writes: bool,
    /// Trace flushes: `fsync`, `fdatasync` and the like
    #[arg(long, help_heading = "What is traced")]
    pub(crate) fsync: bool,
    /// Leave out calls for fewer bytes
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, help_heading = "What is traced")]
    pub(crate) smallest: Option<Bytes>,
    /// End after this time; a COMMAND is asked to end then. Default: until COMMAND or the processes end, or Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::<Span>, help_heading = "How")]
    pub(crate) length: Option<Span>,
    /// Keep counts and histograms of each file, and no single calls: costs less, stays small for days
    #[arg(long, help_heading = "How")]
    pub(crate) aggregated: bool,
    /// Leave the block layer out: what was read from the page cache is not told from what was read from the device
    #[arg(long, help_heading = "How")]
    pub(crate) no_block: bool,
    /// Have the kernel count how long the probes run, which makes each of them a little slower
    #[arg(long, help_heading = "How")]
    pub(crate) cost: bool,
    /// Memory for events on their way from the kernel, a power of two; more of it loses fewer under bursts
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, default_value = "16MiB", help_heading = "How")]
    pub(crate) buffer: Bytes,
    /// A call that begins at most this far behind the end of an earlier one of its stream still continues it
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, default_value = "128KiB", help_heading = "Output")]
    pub(crate) gap: Bytes,
    #[command(flatten)]
    pub(crate) part: TracePart,
    /// Folder of the trace; default: `runs/TIME-trace`
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageArguments,
    /// Program to start and trace, with its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// In which form a record of another kind than a run is shown.
#[derive(Debug, Args)]
pub(crate) struct PageArguments {
    /// What to print
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

/// Which part of a trace is looked at.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TracePart {
    /// Only calls that began in this part of the trace, such as `10s..40s`, counted from its start; either end can be absent
    #[arg(long, value_name = "FROM..TO", value_parser = parse_window, help_heading = "Output")]
    pub(crate) window: Option<TimeRange>,
    /// Show the figures of each piece of this length too
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Output")]
    pub(crate) slices: Option<Span>,
}

impl From<&TracePart> for dyno_results::trace::TracePart {
    fn from(part: &TracePart) -> Self {
        Self {
            window: part.window,
            slices: part.slices.map(|length| length.0),
        }
    }
}

/// Reads `FROM..TO`.
fn parse_window(text: &str) -> Result<TimeRange, String> {
    let (from, to) = text
        .split_once("..")
        .ok_or("expected two times with `..` between them, such as `10s..40s`")?;
    let time = |text: &str| match text {
        "" => Ok(None),
        text => quantity(text).map(|Span(time)| Some(time)),
    };
    let window = TimeRange {
        from: time(from)?.unwrap_or_default(),
        to: time(to)?,
    };
    match window.to {
        Some(to) if to <= window.from => Err("it ends before it begins".to_owned()),
        _ => Ok(window),
    }
}

#[derive(Debug, Args)]
pub(crate) struct IndexBuildArguments {
    /// How the documents come into the collection: a built-in layout, or a plan file with an `[index_build]` table
    ///
    /// Built-in: `ordered`, `shuffled`, `concurrent`, `churned`, `migrated`. See `docs/index-build.md`.
    #[arg(value_name = "LAYOUT", default_value = "churned", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) layout: String,
    #[command(flatten)]
    pub(crate) start: StartArguments,
    #[command(flatten)]
    pub(crate) price: PriceArguments,
    #[command(flatten)]
    pub(crate) grafana: GrafanaArguments,
    /// Build the index on a server on this machine that is already running: on one of its collections, or on documents that are loaded
    /// into it and stay
    ///
    /// A connection string. The variable keeps credentials out of the list of processes.
    #[arg(
        long,
        value_name = "URI",
        env = "DYNO_URI",
        hide_env_values = true,
        help_heading = "Server",
        conflicts_with_all = OF_STARTED
    )]
    pub(crate) uri: Option<String>,
    /// Take this collection as it is, and load nothing; of `--uri` or `--data-dir`
    #[arg(long, value_name = "DATABASE.COLLECTION", value_parser = namespace, help_heading = "Data", conflicts_with = "layout")]
    pub(crate) collection: Option<(String, String)>,
    /// Documents that are loaded, such as `40k` or `20M`; default of the built-in layouts: 40000, of 3 KB each
    #[arg(
        long,
        value_name = "N",
        value_parser = count,
        help_heading = "Data",
        conflicts_with = "collection"
    )]
    pub(crate) records: Option<u64>,
    /// Start of all random sequences; the same seed makes the same documents; default: 42
    #[arg(long, value_name = "N", help_heading = "Data")]
    pub(crate) seed: Option<u64>,
    /// Fields of the index, such as `date:-1,number:1`; default: `date`
    #[arg(long, value_name = "FIELD[:-1],…", help_heading = "Index", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) keys: Option<String>,
    /// Leave caches as they are, in place of restarting the server and dropping the page cache, which needs root
    #[arg(long, help_heading = "Index")]
    pub(crate) warm: bool,
    /// Give the documents another order on the disk, verify them, and build the index again
    ///
    /// `rewrite` copies them in the order of `_id`, `natural-copy` in the order of the server, `dump` goes by a file,
    /// `compact` leaves it to the server. Nothing is dropped before its copy is verified.
    #[arg(long, value_name = "REMEDY", value_parser = one_of(Remedy::NAMES), help_heading = "Index")]
    pub(crate) remedy: Option<Remedy>,
    /// Apply the remedy on this server of `--topology split=N` only, such as `split-1`; default: on all of them
    #[arg(long, value_name = "SERVER", value_parser = NonEmptyStringValueParser::new(), help_heading = "Index", requires = "remedy")]
    pub(crate) remedy_on: Option<String>,
    /// Repeat each build so often without a trace, in turns with one under trace, to tell what tracing costs; default: 1
    ///
    /// With 2 and more the cost has an interval. 0: build under trace only.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100), help_heading = "Index")]
    pub(crate) untraced: Option<u32>,
    /// Prepare storage for the data, such as `ext4 on loop:4GiB at 200 iops`, and take it away again
    ///
    /// A limit of operations applies while an index is built, so that a fast machine shows what a disk with seeks does. Needs
    /// root.
    #[arg(long, value_name = "STORAGE", help_heading = "Index")]
    pub(crate) storage: Option<Storage>,
    /// Folder of the experiment; default: `experiments/TIME-index-build-NAME`
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageArguments,
    /// Print the plan and do nothing
    #[arg(long, help_heading = "Output")]
    pub(crate) dry_run: bool,
}

/// `database.collection`, of which the latter may have more dots.
fn namespace(text: &str) -> Result<(String, String), String> {
    match text.split_once('.') {
        Some((database, collection)) if !database.is_empty() && !collection.is_empty() => {
            Ok((database.to_owned(), collection.to_owned()))
        }
        _ => Err("give the database and the collection, such as `shop.orders`".to_owned()),
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
